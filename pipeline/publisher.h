// Publishes the best trial of a search: its strategy file at once, its model now and then and at
// the end.
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
    bool may_publish;                  // no later search has begun from this one
    struct cJSON *best_edits;          // of the best trial so far, or NULL
    int64_t best_id;                   // -1: none
    bool is_strategy_due;              // newer than the file on disk
    bool is_model_due;
    double model_written_s;
};

// Path of the model of an entry. NULL: there is none, or a later search has begun from the entry.
enum msc_status msc_publisher_model_path(const char **out, const struct msc_setup *setup,
                                         const struct msc_config_entry *e);

enum msc_status msc_publisher_begin(struct msc_publisher *p, const struct msc_session *s);
void msc_publisher_finish(struct msc_publisher *p); // accepts a zeroed one

// For msc_search_callbacks.best; the payload is the publisher. Failures to write are only warnings.
enum msc_status msc_publisher_take_best(void *payload, const struct msc_trial *trial);
// The plan of the best trial becomes this one; takes its ownership.
void msc_publisher_take_plan(struct msc_publisher *p, struct cJSON *plan);
// Writes what is due, at the end; the first failure goes into the result. The model's metadata name
// `record`.
void msc_publisher_write(struct msc_publisher *p, const struct msc_record *record,
                         struct msc_processor_result *result);
// Adds `files`, the paths of what was written, to a report.
enum msc_status msc_publisher_add_files(struct cJSON *report, const struct msc_publisher *p);

#endif
