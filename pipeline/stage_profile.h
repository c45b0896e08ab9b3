// The stage `profile`: measures the latency of one sample, for the float model and for the
// delivered plan.
#ifndef MSC_PIPELINE_STAGE_PROFILE_H
#define MSC_PIPELINE_STAGE_PROFILE_H

#include "pipeline/setup.h"

// Adds `profile` to a report; it is empty if `delivered` is NULL.
enum msc_status msc_stage_profile(const struct msc_setup *setup, struct cJSON *report,
                                  const struct msc_strategy *delivered);

#endif
