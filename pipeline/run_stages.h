// Runs the stages that a configuration names: prepare, parse, baseline, its searches in turn,
// export, track.
//
// Each stage is recorded (pipeline/stages.h) with the hash of all that it depends on, and is done
// again only when that has changed: the part of the configuration for the stage, the contents of
// all files that are read, the program, and, for searches and later stages, what the searches
// before have found. Model and samples are loaded when a stage needs them.
#ifndef MSC_PIPELINE_RUN_STAGES_H
#define MSC_PIPELINE_RUN_STAGES_H

#include "pipeline/processor_result.h"
#include "pipeline/setup.h"

enum msc_status msc_run_stages(struct msc_setup *setup, struct msc_processor_result *result);

#endif
