// MSCProcessor: the stages of a configuration, from the model file to the compressed model.
//
//     struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
//     MSC_TRY(msc_processor_open(&p, "digits.json", &o));
//     MSC_TRY(msc_processor_run(p, &result));
//     ... result.reports ...
//     msc_processor_result_finish(&result);
//     msc_processor_close(p);
//
// Stages: `baseline` checks the backend; then each search of the configuration in turn, starting
// from what those before it found; the best of each goes to the section's strategy file and, as
// ONNX, to WORKSPACE/<model>.onnx, while the search runs and at its end. A record stands for a
// configuration with its one search (msc_processor_open_record).
//
// A configuration that names more of the RFC's stages (`prepare`, `parse`, `optimize`, `distill`,
// `track`, `compile`, `export`) has each of them recorded in WORKSPACE/msc_stages.json with the hash of
// all that it rests on. What is unchanged is not done again, model and dataset are not even loaded, and
// its report is that of the time when it was done (docs/stages.md).
//
// How a search goes stands in the log and its file: each improvement, now and then a line on how far
// it is (`log_every`), and at the end why it ended and with what.
//
// Beside a record: RECORD.params (scales and reference outputs), RECORD.moments (how far it has come
// with these, while it makes integers of weights or orders of channels), RECORD.prepared (the first, of a
// launch that was ended before its record began), RECORD.base.json (the strategy it started from, if any), RECORD.result.json
// (what its end worked out), RECORD.rerank.json (how its best trials were ordered anew, if asked for),
// RECORD.distill.json (its winner with better weights, if asked for), RECORD.attempt (while it runs). All
// go with a record that is set aside, but the second, the third and the last.
#ifndef MSC_PIPELINE_PROCESSOR_H
#define MSC_PIPELINE_PROCESSOR_H

#include "pipeline/config.h"
#include "pipeline/export.h"
#include "pipeline/model.h"
#include "pipeline/program_id.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct msc_processor;
struct msc_worker;

struct msc_processor_options {
    const char *entry;  // run this one alone ("quantize[1]"); NULL: all
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
    // Records and strategy files whose points a new search of one entry begins with (search/warm.h).
    const char *const *warm_from;
    size_t n_warm_from;
    // An agent that searches beside the one entry's own: to its end, in a record NAME.<beside>.jsonl
    // unless `record` names one, and of what it finds nothing is delivered. NULL: none does.
    const struct cJSON *agent;
    const char *beside; // "sensitivity"
    bool allow_plugins; // of a record: libraries and programs that it names may run
    const char
        *tensorboard; // folder that gets a run of each search (search/tensorboard.h); or NULL
    // Where trials are measured: "local:N", so many workers on this machine; "ray:HOST:PORT" or "ray:auto",
    // on a cluster of Ray's, ":N" at the end so many at most; "slurm[:PARTITION][:N]", as jobs of Slurm's;
    // NULL: in this process. Nothing of the record depends on it.
    const char *cluster;
    // Numerics id under which they are to measure; workers of others are refused. NULL: that of this process.
    const char *numerics;
    // A folder of all nodes, absolute, in which an environment's library or program lies as it does in the
    // configuration's here. NULL: such environments have no workers elsewhere.
    const char *node_path;
    // With Slurm: a folder of all nodes, absolute, to which each worker's files are copied. NULL: nodes find them
    // under their paths here.
    const char *copy_to;
    bool is_node;               // of a record: this is such a worker
    const char *worker_program; // of local ones: the path of this program
    const char *node_program;   // of others: on their machines; NULL: mscgym
    const char *device;         // NULL: the configuration's
    const char *isa;            // msc_backend_set_isa; NULL: all that the processor has
    int n_threads;              // 0: all there are
    uint64_t memory_bytes;
    const struct msc_binding *bindings; // over those of the configuration
    size_t n_bindings;
    const struct msc_log *log; // gets what the configuration's `verbose` lets through
    bool has_log_level;        // `log_level` replaces `verbose`
    enum msc_log_level log_level;
    const struct msc_cancel *cancel;
    struct msc_worker *worker;
    // Optional, as in msc_search_callbacks. `best` is the first objective's metric; NaN: none yet.
    void (*progress)(void *payload, const struct msc_config_entry *entry,
                     const struct msc_search_progress *progress, double best);
    // Optional: before each step of measuring the winner once more, which takes about `left_s` in
    // all from now on; NaN: not known.
    void (*measuring)(void *payload, const struct msc_config_entry *entry, const char *what,
                      double left_s);
    void *payload;
    bool shows_progress; // by these: lines on how the search goes are for the log file alone
};

#define MSC_PROCESSOR_OPTIONS_INIT                                                                 \
    { .device = NULL }

// `path` is a configuration. Nothing but it is read or written yet. Text in the options is borrowed
// until close. *out is owned by the caller.
enum msc_status msc_processor_open(struct msc_processor **out, const char *path,
                                   const struct msc_processor_options *options);
// From the header of a record alone. MSC_E_STATE: it names a library or a program (in a dry run,
// which starts no agent: a library that would have to be loaded; at a worker, which has no node_path: an
// environment that is code), and options do not allow it.
enum msc_status msc_processor_open_record(struct msc_processor **out, const char *path,
                                          const struct msc_processor_options *options);
void msc_processor_close(struct msc_processor *p); // accepts NULL

const struct msc_config *msc_processor_config(const struct msc_processor *p);

struct msc_processor_result {
    // A list, one object for each search: `entry`, the members of msc_report_create, `files`
    // (strategy, model), `greedy`, `profile`; after a dry run `entry`,
    // `estimate` in numbers and `estimate_text` for people. The stage track adds {"stage", "file",
    // "worst", "fall_db"}.
    struct cJSON *reports;
    bool is_feasible;   // every search has a winner within its bounds
    bool was_cancelled; // stopped on request before the end
    // The search is whole, but its strategy file or model could not be written, or its runtime refuses
    // that model: why.
    enum msc_status export_status;
    char export_message[512];
};
enum msc_status msc_processor_run(struct msc_processor *p, struct msc_processor_result *result);
void msc_processor_result_finish(struct msc_processor_result *result); // accepts a zeroed one

// For looking at a record: model, dataset and environment of its search, as the record was made.
enum msc_status msc_processor_prepare(struct msc_processor *p);
struct msc_env *msc_processor_env(const struct msc_processor *p);  // once prepared; borrowed
const char *msc_processor_numerics(const struct msc_processor *p); // once prepared
const struct msc_graph *msc_processor_graph(const struct msc_processor *p); // NULL without a model

MSC_PUBLIC_END

#endif
