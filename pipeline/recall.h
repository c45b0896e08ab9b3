// Recalls the result of an entry that does not run now, so that the next entries start from it.
#ifndef MSC_PIPELINE_RECALL_H
#define MSC_PIPELINE_RECALL_H

#include "pipeline/setup.h"

// Adds the winner of the entry's record, or its given strategy, to setup->found. MSC_E_STATE: there
// is no record, or none of its trials meets every bound.
enum msc_status msc_recall(struct msc_setup *setup, size_t entry);

#endif
