// The inside of a processor, shared by the files of this folder.
#ifndef MSC_PIPELINE_PROCESSOR_INTERNAL_H
#define MSC_PIPELINE_PROCESSOR_INTERNAL_H

#include "base/json.h"
#include "pipeline/log_file.h"
#include "pipeline/output.h"
#include "pipeline/processor.h"
#include "records/record.h"
#include "tools/strategy.h"

struct msc_delivery;
struct msc_file_set;
struct msc_tensorboard;
struct msc_delivery_plan;
struct msc_delivery_plans;

#define MSC_PROCESSOR_STAGES_FILE "msc_stages.json" // in the workspace (pipeline/stages.h)

struct msc_processor {
    struct msc_arena arena;
    struct msc_processor_options options;
    struct msc_config *config;
    bool is_from_record; // else from a configuration
    size_t first, end;   // entries to run
    struct msc_log_file *log_file;
    const struct msc_log *log;
    const struct msc_log *news; // how the search goes: not to who shows that already
    struct msc_model *model;    // NULL: no entry needs one
    struct msc_strategy *found; // by entries so far; NULL: nothing
    const char *model_output;   // where the compressed model goes; NULL: there is none

    // The entry at hand.
    size_t index;
    const char *parameters_path, *prepared_path;
    struct msc_strategy *base; // what it starts from; NULL: nothing
    struct msc_env *env;
    struct msc_record *record; // that the search goes on with, until it takes it over; or NULL
    struct msc_goal goal;
    struct msc_race race; // of the entry's rounds; without rungs: none

    cJSON *sameness; // {"sameness"}: what there is to say of samples (pipeline/sameness.h), or NULL
    bool is_beside;  // a greedy search beside it runs, of which nothing is published

    // What is published of it.
    const char *model_path;   // the compressed model; NULL: none is written
    bool may_publish;         // no later search has gone on from it
    struct cJSON *best_edits; // of the best trial so far, or NULL
    int64_t best_id;
    bool is_strategy_due; // newer edits than those on disk
    bool is_model_due;
    double model_written_s;

    struct msc_tensorboard *tensorboard; // its run; NULL: not begun
    bool is_tensorboard_lost;            // it could not be written

    // What is told of it.
    double news_s;     // when the last line was
    double measured_s; // when measuring once more will end; NaN: not known
};

enum msc_processor_mode {
    MSC_PROCESSOR_RUN,  // stale files are removed, new ones written
    MSC_PROCESSOR_LOOK, // nothing is written
};

static inline const struct msc_config_entry *msc_processor__entry(const struct msc_processor *p) {
    return &p->config->entries[p->index];
}

// processor_open.c
// Takes the ownership of the configuration, also on failure. *out is owned by the caller.
enum msc_status msc_processor__create(struct msc_processor **out, struct msc_config *config,
                                      const struct msc_processor_options *options);
enum msc_status msc_processor__no_memory(void);
// Log file and workspace.
enum msc_status msc_processor__open_log(struct msc_processor *p, enum msc_processor_mode mode);
// Model and dataset.
enum msc_status msc_processor__load_model(struct msc_processor *p);
// Log file and workspace; then model and dataset, when an entry needs them.
enum msc_status msc_processor__load(struct msc_processor *p, enum msc_processor_mode mode);
// Makes the entry's environment: base, parameters, goal. Close it with msc_processor__leave.
enum msc_status msc_processor__enter(struct msc_processor *p, size_t entry,
                                     enum msc_processor_mode mode);
void msc_processor__leave(struct msc_processor *p);
// Is there a record with a header?
enum msc_status msc_processor__has_record(bool *out, const char *path);

// processor_files.c
// Refuses outputs that are inputs, or one another, before anything is written; decides where the
// model goes.
enum msc_status msc_processor__claim_files(struct msc_processor *p);

// processor_outputs.c: is the file at `path`, whatever it holds, what an earlier run of the configuration left as
// its output of that kind? Stages and records know what they left.

bool msc_processor__is_output(const struct msc_processor *p, enum msc_output kind,
                              const char *path);
// Gives outputs that are damaged another name, with a warning; they are made again. The log file before it is
// opened.
enum msc_status msc_processor__set_damaged_aside(struct msc_processor *p);
enum msc_status msc_processor__set_damaged_log_aside(struct msc_processor *p);

// processor_files.c
// All that is read: model, samples, code.
enum msc_status msc_processor__read_files(struct msc_file_set *files,
                                          const struct msc_processor *p);

// What measuring a trial of the first entry reads, but for its record.
enum msc_status msc_processor__measured_files(struct msc_file_set *files,
                                              const struct msc_processor *p);

// processor_stages.c: all stages of a configuration that names them, each recorded.
enum msc_status msc_processor__run_stages(struct msc_processor *p,
                                          struct msc_processor_result *result);
// processor.c: runs an entry, or recalls what it found where it is not to be run.
enum msc_status msc_processor__run_entry(struct msc_processor *p, size_t i,
                                         struct msc_processor_result *result);

// processor_base.c
// Reads or checks what the entry at hand starts from. `record` NULL: there is none yet.
enum msc_status msc_processor__set_base(struct msc_processor *p, const struct msc_record *record,
                                        enum msc_processor_mode mode);
// The configuration in the header of a record that is now `record`: what the search began with went
// with the record if it was renamed together with it.
enum msc_status msc_processor__find_base(struct msc_config *config, const char *record);
// Gives the record of the entry at hand a base file of its own when it has that of record `from`.
enum msc_status msc_processor__copy_base(struct msc_processor *p, const char *from);
// Adds what the record of an entry that is not run now has found.
enum msc_status msc_processor__recall(struct msc_processor *p, size_t entry);
// Makes the edits of a point of the entry at hand what the next entries start from.
enum msc_status msc_processor__keep(struct msc_processor *p, const uint32_t choices[]);
// The same of a plan, a strategy's JSON.
enum msc_status msc_processor__keep_plan(struct msc_processor *p, const struct cJSON *plan);

// processor_search.c: searches the entry at hand and adds its report to the result.
enum msc_status msc_processor__search(struct msc_processor *p, struct msc_processor_result *result);

// processor_pool.c: the workers that measure its trials; *out, the caller's, is NULL where none are
// asked for. MSC_E_INVALID: --cluster says what there is not.
struct msc_bridge;
struct msc_pool;
// The numerics id under which trials are measured: of this process, or of its workers.
const char *msc_processor__trial_numerics(const struct msc_processor *p);
// Do its workers need a GPU each?
bool msc_processor__needs_gpu(const struct msc_processor *p);
enum msc_status msc_processor__check_numerics(const struct msc_processor *p);
// Options that go with some clusters only.
enum msc_status msc_processor__check_cluster(struct msc_processor *p);
// Tells a bridge of the files that workers read.
enum msc_status msc_processor__name_files(struct msc_processor *p, struct msc_bridge *bridge);
// Hash of an environment's library; NULL: it is none.
enum msc_status msc_processor__hash_library(const char **out, struct msc_processor *p);
// processor_slurm_copy.c: packs the files that workers read into an archive.
enum msc_status msc_processor__pack_files(struct msc_processor *p, const char *archive);
// Text of slurm.sh, which lists its steps and their arguments: sh -c TEXT sh STEP ARGUMENT...
extern const char msc_slurm_script[];
enum msc_status msc_processor__open_pool(struct msc_pool **out, struct msc_processor *p);
// processor_slurm.c: those under Slurm.
struct msc_bridge;
struct msc_cluster;
enum msc_status msc_processor__open_slurm(struct msc_bridge **out, struct msc_processor *p,
                                          const struct msc_cluster *c);

// Pieces of it: what is searched, under which configuration (for the header; owned by the caller),
// and what came out (owned by the caller; stopped while it measures, the search ended so).
void msc_processor__fill_options(struct msc_search_options *o, struct msc_processor *p,
                                 const cJSON *config);
enum msc_status msc_processor__make_config(cJSON **out, struct msc_processor *p);
// Fills `sameness`.
enum msc_status msc_processor__look_at_samples(struct msc_processor *p);
enum msc_status msc_processor__make_report(cJSON **out, struct msc_processor *p,
                                           struct msc_search_result *found);

// processor_news.c: lines on how a search goes, in MSC_LOG and for who does not show it.
void msc_processor__tell_begin(struct msc_processor *p);
// For the callbacks of the search and the report; the payload is the processor.
void msc_processor__tell_progress(void *payload, const struct msc_search_progress *progress);
void msc_processor__tell_best(const struct msc_processor *p, const struct msc_trial *trial);
void msc_processor__tell_measuring(void *payload, const char *what);
// Why it ended and with what, by its report; and to TensorBoard.
void msc_processor__tell_end(struct msc_processor *p, const struct cJSON *report,
                             const struct msc_search_result *found);

// processor_tensorboard.c: a run of TensorBoard for it, if asked for. The trials that are new; the
// last ones, and the report, of the search that is done with; closed without a word.
void msc_processor__show_tensorboard(struct msc_processor *p, const struct msc_record *record);
void msc_processor__end_tensorboard(struct msc_processor *p, const struct msc_record *record,
                                    const cJSON *report);
void msc_processor__close_tensorboard(struct msc_processor *p);

// processor_extras.c
// A greedy search in the environment at hand, with a record of its own (NULL: memory is short),
// reported beside the winner.
const char *msc_processor__greedy_record(struct msc_processor *p, const char *record);
// The entry's agent becomes that of `config`, a record's: all of it where the entry names none, since another
// one was the default once and ended by itself; else the parameters that the entry does not say.
enum msc_status msc_processor__keep_old_agent(struct msc_config_entry *e,
                                              const struct cJSON *config);
// The record of another search beside that of `record`: NAME.<what>.jsonl. NULL: memory is short.
const char *msc_processor__record_beside(struct msc_processor *p, const char *record,
                                         const char *what);
enum msc_status msc_processor__add_greedy(struct msc_processor *p,
                                          struct msc_processor_result *result, cJSON *report,
                                          const struct msc_trial *winner);
// Latency of the float model and of what is delivered; NULL: of neither.
enum msc_status msc_processor__add_profile(struct msc_processor *p, cJSON *report,
                                           const struct msc_strategy *delivered);

// processor_runtime.c
// Has the entry at hand a runtime that its plans can be measured in, and wants it?
bool msc_processor__has_runtime(const struct msc_processor *p);
enum msc_status msc_processor__open_delivery(struct msc_delivery **out, struct msc_processor *p);
// Describes the runtime, or why it is missing, in an object.
enum msc_status msc_processor__start_runtime(bool *is_there, cJSON *runtime,
                                             const struct msc_processor *p, struct msc_delivery *d);
// Warns of a plan that cannot be measured.
void msc_processor__tell_refused(const struct msc_processor *p,
                                 const struct msc_delivery_plan *plan);
// What ends measuring is told, and costs nothing but the numbers: MSC_OK, unless it was stopped or has
// lost its device.
enum msc_status msc_processor__settle_measuring(const struct msc_processor *p,
                                                enum msc_status status);
// Puts what was found into a report; takes the ownership of `runtime`, empty where nothing is known.
enum msc_status msc_processor__report_runtime(cJSON *report, cJSON *runtime,
                                              const struct msc_delivery_plans *list);
// Adds to a report what the runtime makes of the winner, the uniform plans and the float model, or
// why it does not. MSC_E_CANCELLED when it was stopped; all other failures are only told.
enum msc_status msc_processor__add_runtime(struct msc_processor *p, cJSON *report,
                                           const struct msc_record *record,
                                           const struct msc_trial *best);
// A winner that its runtime refuses, though it takes the float model, is a failure of the export.
void msc_processor__check_refused(const struct msc_processor *p, const cJSON *report,
                                  struct msc_processor_result *result);

// processor_rerank.c
// Measures the best trials, adds them to a report in their new order, and gives the first of them;
// without a runtime and a command *best stays. Goes on where RECORD.rerank.json ends. As above else.
enum msc_status msc_processor__rerank(struct msc_processor *p, cJSON *report,
                                      const struct msc_record *record, struct msc_trial *best);

// processor_distill.c
// Improves the weights of a trial's plan, or takes what RECORD.distill.json has, and adds it to a
// report. *plan, the caller's, is the improved one as a strategy's JSON; NULL: the trial's own is
// delivered, and the report or the log says why. MSC_E_CANCELLED when it was stopped; all other
// failures are only told.
enum msc_status msc_processor__distill(struct cJSON **plan, struct msc_processor *p, cJSON *report,
                                       const struct msc_record *record,
                                       const struct msc_trial *trial);

// What the entry at hand says about the stage; there must be one.
struct msc_quantize_distill_options;
void msc_processor__fill_distill(struct msc_quantize_distill_options *o,
                                 const struct msc_processor *p);

// processor_given.c: a section that lists no searches, whose strategy file is there. It is applied, and stays
// as it is, unless it is what the section's own record has come to, or the entry begins anew.
enum msc_status msc_processor__is_given(bool *out, const struct msc_processor *p, size_t entry);
// Makes it what the next entries start from. MSC_E_STATE: it is for another model, or does not go with what
// the entries before found.
enum msc_status msc_processor__take_given(struct msc_processor *p, size_t entry);
// The same, measured and exported, with its report.
enum msc_status msc_processor__apply_given(struct msc_processor *p, size_t entry,
                                           struct msc_processor_result *result);
// Gives it another name, before the entry begins anew.
enum msc_status msc_processor__set_given_aside(struct msc_processor *p, size_t entry);

// processor_publish.c
// Where the model of the entry at hand goes; NULL: a later search has gone on from it.
enum msc_status msc_processor__find_model_path(const char **out, const struct msc_processor *p);
// The same for a plan that a trial's has become; takes its ownership.
void msc_processor__take_plan(struct msc_processor *p, struct cJSON *plan);
// For msc_search_callbacks.best; the payload is the processor.
enum msc_status msc_processor__take_best(void *payload, const struct msc_trial *trial);
// Writes what is due, at the end; failures go into the result. `record` names the record in the
// model's metadata.
void msc_processor__publish(struct msc_processor *p, const struct msc_record *record,
                            struct msc_processor_result *result);
enum msc_status msc_processor__start_publishing(struct msc_processor *p);
void msc_processor__end_publishing(struct msc_processor *p);

#endif
