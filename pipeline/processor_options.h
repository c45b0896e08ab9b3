// Options of a processor: values that override a configuration, and callbacks that report progress.
#ifndef MSC_PIPELINE_PROCESSOR_OPTIONS_H
#define MSC_PIPELINE_PROCESSOR_OPTIONS_H

#include "base/cancel.h"
#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_binding;
struct msc_config_entry;
struct msc_search_progress;
struct msc_worker;

struct msc_processor_options {
    const char *entry;  // run only this entry ("quantize[1]"); NULL: all
    const char *record; // path of the entry's record, in place of the configuration's
    bool has_trials;    // `trials` replaces the budget of the entry
    int64_t trials;
    double seconds; // > 0: replaces the time budget of the entry
    // Replaces the bound of every entry on the accuracy: the most by which it may drop.
    bool has_accuracy_drop;
    double accuracy_drop;
    // llama.cpp's importance file for the entries of section `quantize`, in place of the
    // configuration's; NULL: the configuration's.
    const char *imatrix;
    bool is_dry_run; // only estimate each search; no record is written
    bool restart;    // set old records aside
    bool accept_new_numerics;
    bool warm_start;
    bool retry_failed;
    bool baseline_greedy; // the same as "baseline": "greedy" in the configuration
    // Records and strategy files; a new search of one entry begins with their points
    // (search/warm.h).
    const char *const *warm_from;
    size_t n_warm_from;
    // An agent that searches in place of the entry's own, until it ends by itself. Its record is
    // NAME.<beside>.jsonl unless `record` names one, and its results are not delivered. NULL: the
    // entry's own agent searches.
    const struct cJSON *agent;
    const char *beside; // names the record of `agent`: "sensitivity" for NAME.sensitivity.jsonl
    bool allow_plugins; // for a record: libraries and programs that it names may run
    const char
        *tensorboard; // folder that gets a run for each search (results/tensorboard.h); or NULL
    // Where trials are measured. "local:N": by N workers on this machine. "ray:HOST:PORT" or
    // "ray:auto": in a Ray cluster; a further ":N" allows at most N workers.
    // "slurm[:PARTITION][:N]": in Slurm jobs. NULL: in this process. The record is the same in each
    // case.
    const char *cluster;
    // Numerics id of the workers; workers with another id are refused. NULL: this process's id.
    const char *numerics;
    // An absolute folder, the same on all nodes, with the environment's library or program. It
    // takes the place of the configuration's folder. NULL: environments that are a library or
    // program cannot have workers on other machines.
    const char *node_path;
    // For Slurm: an absolute folder, the same on all nodes, to which each worker's files are
    // copied. NULL: nodes have the files under the same paths as this machine.
    const char *copy_to;
    bool is_node;               // this process is a worker that measures trials of a record
    const char *worker_program; // for local workers: the path of this program
    const char *node_program;   // path of the program on the workers' machines; NULL: mscgym
    const char *device;         // NULL: the configuration's
    const char *isa;            // msc_backend_set_isa; NULL: the best that the processor has
    int n_threads;              // 0: as many as the machine has
    uint64_t memory_bytes;      // limit for the process; 0: half of the free memory, at most 4 GB
    const struct msc_binding *bindings; // override the configuration's bindings
    size_t n_bindings;
    const char *const *plugins; // paths of plug-ins for operators, before the configuration's
    size_t n_plugins;
    const struct msc_log *log; // gets the lines that the configuration's `verbose` allows
    bool has_log_level;        // `log_level` replaces `verbose`
    enum msc_log_level log_level;
    const struct msc_cancel *cancel;
    struct msc_worker *worker;
    // Optional, as in msc_search_callbacks. `best`: the best value of the first objective's metric;
    // NaN: none yet.
    void (*progress)(void *payload, const struct msc_config_entry *entry,
                     const struct msc_search_progress *progress, double best);
    // Optional: called before each step of the measurements after a search. `left_s`: estimated
    // time for all remaining steps; NaN: unknown.
    void (*measuring)(void *payload, const struct msc_config_entry *entry, const char *what,
                      double left_s);
    // Optional: the environment's preparation (`preparing` in env/api/env.h).
    void (*preparing)(void *payload, const char *what, double part);
    void *preparing_payload;
    void *payload;       // of `progress` and `measuring`
    bool shows_progress; // the callbacks show progress, so progress lines go only to the log file
};

#define MSC_PROCESSOR_OPTIONS_INIT                                                                 \
    { .device = NULL }

MSC_PUBLIC_END

#endif
