// Publishes the best trial of a search: writes its strategy file at once, and its model at
// intervals and at the end.
//
//     struct msc_publisher publisher = {0};
//     MSC_TRY_OUT(msc_publisher_begin(&publisher, &session));
//     ... MSC_TRY_OUT(msc_publisher_take_best(&publisher, trial)) ...
//     msc_publisher_write(&publisher, record, result);
//     out: msc_publisher_finish(&publisher);
#ifndef MSC_PIPELINE_PUBLISHER_H
#define MSC_PIPELINE_PUBLISHER_H

#include "pipeline/processor_result.h"
#include "pipeline/session.h"

struct msc_publisher {
    const struct msc_session *session; // borrowed
    const char *model_path;            // NULL: no model is written
    bool may_publish;                  // false: nothing to publish, or a later search has begun
    struct cJSON *best_edits;          // edits of the best trial so far, or NULL
    int64_t best_id;                   // -1: none
    bool is_strategy_due;              // best_edits is newer than the strategy file
    bool is_model_due;
    double model_written_s;
};

// Path for the model of an entry. NULL: no model is written, or a later search has begun from the
// entry's result.
enum msc_status msc_publisher_model_path(const char **out, const struct msc_setup *setup,
                                         const struct msc_config_entry *e);

enum msc_status msc_publisher_begin(struct msc_publisher *p, const struct msc_session *s);
void msc_publisher_finish(struct msc_publisher *p); // accepts a zeroed struct

// For msc_search_callbacks.best; the payload is the publisher. Failures to write are only warnings.
enum msc_status msc_publisher_take_best(void *payload, const struct msc_trial *trial);
// Replaces the best trial's plan by `plan` and takes ownership of `plan`.
void msc_publisher_take_plan(struct msc_publisher *p, struct cJSON *plan);
// Writes the files that are due at the end, and stores the first failure in the result. The model's
// metadata identify `record`.
void msc_publisher_write(struct msc_publisher *p, const struct msc_record *record,
                         struct msc_processor_result *result);
// Adds `files`, the paths of the written files, to a report.
enum msc_status msc_publisher_add_files(struct cJSON *report, const struct msc_publisher *p);

#endif
