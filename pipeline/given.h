// A given strategy: the strategy file of a section that lists no searches. It is measured,
// exported, and the next entries start from it. The file is somebody's choice, and is never
// replaced unless they ask for it (--restart).
#ifndef MSC_PIPELINE_GIVEN_H
#define MSC_PIPELINE_GIVEN_H

#include "pipeline/processor_result.h"
#include "pipeline/setup.h"

// Is the strategy of the entry given? Not if it is the outcome of the section's own record,
// unchanged, or if the entry begins again.
enum msc_status msc_given_is(bool *out, const struct msc_setup *setup, size_t entry);
// The next entries start from the strategy. MSC_E_STATE: it is for another model, or does not go
// with what the entries before found.
enum msc_status msc_given_take(struct msc_setup *setup, size_t entry);
// The same, measured and exported, with a report.
enum msc_status msc_given_apply(struct msc_setup *setup, size_t entry,
                                struct msc_processor_result *result);
// Renames the file, before the entry begins again.
enum msc_status msc_given_set_aside(struct msc_setup *setup, size_t entry);

#endif
