// The part of a processor that all searches of a configuration share: the configuration with the
// options applied, the log, the model with its samples, and the strategy found so far.
//
//     MSC_TRY(msc_setup_create(&setup, config, &options));
//     MSC_TRY_OUT(msc_setup_load(setup, MSC_SETUP_RUN));
//     ... setup->model ...
//     out: msc_setup_destroy(setup);
#ifndef MSC_PIPELINE_SETUP_H
#define MSC_PIPELINE_SETUP_H

#include "config/config.h"
#include "model/model.h"
#include "pipeline/processor_options.h"

struct msc_log_file;
struct msc_strategy;

enum msc_setup_mode {
    MSC_SETUP_RUN,  // stale files are removed, new ones written
    MSC_SETUP_LOOK, // nothing is written
};

// Callers may read the members, but not change them. Entries take over values of their records.
struct msc_setup {
    struct msc_arena arena;
    struct msc_processor_options options;
    struct msc_config *config;
    size_t first, end; // entries to run
    struct msc_log_file *log_file;
    const struct msc_log *log;
    // Log for progress lines. If the console shows progress itself, the lines go only to the file.
    const struct msc_log *news;
    struct msc_model *model;    // NULL: no entry needs one
    const char *model_output;   // path of the compressed model; NULL: none is written
    struct msc_strategy *found; // result of the entries so far; NULL: none
};

// Takes ownership of the configuration, also on failure. *out is owned by the caller.
enum msc_status msc_setup_create(struct msc_setup **out, struct msc_config *config,
                                 const struct msc_processor_options *options);
// Like msc_setup_create, but with the configuration in the header of a record.
enum msc_status msc_setup_open_record(struct msc_setup **out, const char *path,
                                      const struct msc_processor_options *options);
void msc_setup_destroy(struct msc_setup *setup); // accepts NULL

// Opens the log file and creates the workspace.
enum msc_status msc_setup_open_log(struct msc_setup *setup, enum msc_setup_mode mode);
// Opens the configuration's model, without samples. *out is owned by the caller.
enum msc_status msc_setup_open_model(struct msc_model **out, const struct msc_setup *setup,
                                     const struct msc_log *log);
// Loads model and samples.
enum msc_status msc_setup_load_model(struct msc_setup *setup);
// Opens the log; loads model and samples if an entry needs them.
enum msc_status msc_setup_load(struct msc_setup *setup, enum msc_setup_mode mode);
// The numerics id of this process; "none" without a model.
const char *msc_setup_numerics(const struct msc_setup *setup);

// Makes the next entries start from the edits of this point, if the environment has edits.
enum msc_status msc_setup_keep(struct msc_setup *setup, struct msc_env *env,
                               const uint32_t choices[]);
// Makes the next entries start from this plan, a strategy's JSON.
enum msc_status msc_setup_keep_plan(struct msc_setup *setup, const struct cJSON *plan);

#endif
