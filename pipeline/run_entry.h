// Runs one entry of a configuration: applies its given strategy, or searches. For an entry before
// the selected ones, only recalls the result.
#ifndef MSC_PIPELINE_RUN_ENTRY_H
#define MSC_PIPELINE_RUN_ENTRY_H

#include "pipeline/processor_result.h"
#include "pipeline/setup.h"

enum msc_status msc_run_entry(struct msc_setup *setup, size_t i,
                              struct msc_processor_result *result);

#endif
