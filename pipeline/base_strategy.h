// The strategy that a search starts from: a file that the entry names, or the result of the
// searches before it, which is stored as RECORD.base.json when the record begins.
#ifndef MSC_PIPELINE_BASE_STRATEGY_H
#define MSC_PIPELINE_BASE_STRATEGY_H

#include "pipeline/setup.h"
#include "records/record.h"

// Reads the strategy file, or takes the strategy found so far. *out, owned by the caller, is NULL
// if the entry starts from the unmodified model. If `record` is not NULL, it must have begun with
// the same strategy. The entry's `base` becomes the path of the file, or NULL.
enum msc_status msc_base_strategy_open(struct msc_strategy **out, struct msc_setup *setup,
                                       struct msc_config_entry *e, const struct msc_record *record,
                                       enum msc_setup_mode mode);
// If the entry's base is the base file of record `from`, saves the strategy as the base file of the
// entry's own record.
enum msc_status msc_base_strategy_copy(struct msc_setup *setup, struct msc_config_entry *e,
                                       const struct msc_strategy *base, const char *from);

#endif
