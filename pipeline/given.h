// A given strategy: the strategy file of a section that lists no searches, if the user supplied or
// edited it. It is measured and exported, and the next entries start from it. It is replaced only
// with --restart.
#ifndef MSC_PIPELINE_GIVEN_H
#define MSC_PIPELINE_GIVEN_H

#include "pipeline/processor_result.h"
#include "pipeline/setup.h"

// True if the entry's strategy is given. False if the strategy is the unchanged result of the
// section's own record, or if the entry is restarted.
enum msc_status msc_given_is(bool *out, const struct msc_setup *setup, size_t entry);
// Makes the next entries start from the given strategy. MSC_E_STATE: the strategy is for another
// model, or does not fit the results of earlier entries.
enum msc_status msc_given_take(struct msc_setup *setup, size_t entry);
// Like msc_given_take, but also measures and exports the strategy, and adds a report.
enum msc_status msc_given_apply(struct msc_setup *setup, size_t entry,
                                struct msc_processor_result *result);
// Renames the file of a given strategy. Call it before the entry is restarted.
enum msc_status msc_given_set_aside(struct msc_setup *setup, size_t entry);

#endif
