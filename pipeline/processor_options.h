// Options of a processor: what a command says over a configuration, and who observes its searches.
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
    const char *entry;  // run only this one ("quantize[1]"); NULL: all
    const char *record; // path of its record, in place of the configuration's
    bool has_trials;    // replace the budgets of the entry
    int64_t trials;
    double seconds; // > 0: the same
    bool is_dry_run;
    bool restart; // set old records aside
    bool accept_new_numerics;
    bool warm_start;
    bool retry_failed;
    bool baseline_greedy; // as "baseline": "greedy"
    // Records and strategy files whose points a new search of one entry begins with
    // (search/warm.h).
    const char *const *warm_from;
    size_t n_warm_from;
    // An agent that searches in place of the entry's own, until it ends by itself. Its record is
    // NAME.<beside>.jsonl unless `record` names one, and nothing that it finds is delivered. NULL:
    // the entry's own agent searches.
    const struct cJSON *agent;
    const char *beside; // "sensitivity"
    bool allow_plugins; // of a record: libraries and programs that it names may run
    const char
        *tensorboard; // folder that gets a run of each search (results/tensorboard.h); or NULL
    // Who measures trials: "local:N", N workers on this machine; "ray:HOST:PORT" or "ray:auto", a
    // Ray cluster, with ":N" at most N workers; "slurm[:PARTITION][:N]", Slurm jobs; NULL: this
    // process. The record does not depend on it.
    const char *cluster;
    // Numerics id under which they measure; workers with another one are refused. NULL: that of
    // this process.
    const char *numerics;
    // A folder of all nodes, absolute, that has an environment's library or program as the
    // configuration's folder has it here. NULL: such environments have no workers on other
    // machines.
    const char *node_path;
    // With Slurm: a folder of all nodes, absolute, to which each worker's files are copied. NULL:
    // nodes find them under the paths of this machine.
    const char *copy_to;
    bool is_node;               // of a record: this is such a worker
    const char *worker_program; // of local workers: the path of this program
    const char *node_program;   // of other workers: its path on their machines; NULL: mscgym
    const char *device;         // NULL: the configuration's
    const char *isa;            // msc_backend_set_isa; NULL: all that the processor has
    int n_threads;              // 0: all there are
    uint64_t memory_bytes;
    const struct msc_binding *bindings; // over those of the configuration
    size_t n_bindings;
    const struct msc_log *log; // gets the lines that the configuration's `verbose` lets through
    bool has_log_level;        // `log_level` replaces `verbose`
    enum msc_log_level log_level;
    const struct msc_cancel *cancel;
    struct msc_worker *worker;
    // Optional, as in msc_search_callbacks. `best` is the first objective's metric; NaN: none yet.
    void (*progress)(void *payload, const struct msc_config_entry *entry,
                     const struct msc_search_progress *progress, double best);
    // Optional: called before each step of the measurements after a search. `left_s` is about how
    // long all remaining steps take; NaN: not known.
    void (*measuring)(void *payload, const struct msc_config_entry *entry, const char *what,
                      double left_s);
    void *payload;
    bool shows_progress; // these show it: progress lines go only to the log file
};

#define MSC_PROCESSOR_OPTIONS_INIT                                                                 \
    { .device = NULL }

MSC_PUBLIC_END

#endif
