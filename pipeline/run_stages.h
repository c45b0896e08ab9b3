// Runs the stages that a configuration names: prepare, parse, baseline, the searches in turn,
// export and track.
//
// Each stage is recorded (pipeline/stages.h) with a hash of everything that the stage depends on,
// and runs again only if the hash has changed. The hash covers the stage's part of the
// configuration, the contents of all files that are read, the program and, for searches and later
// stages, the results of earlier searches. Model and samples are loaded when a stage needs them.
#ifndef MSC_PIPELINE_RUN_STAGES_H
#define MSC_PIPELINE_RUN_STAGES_H

#include "pipeline/processor_result.h"
#include "pipeline/setup.h"

enum msc_status msc_run_stages(struct msc_setup *setup, struct msc_processor_result *result);

#endif
