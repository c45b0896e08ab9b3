// Outputs of earlier runs of a configuration, found through its records and stages. They may be
// replaced whatever they contain; damaged ones are renamed and written again.
#ifndef MSC_PIPELINE_LEFT_OUTPUTS_H
#define MSC_PIPELINE_LEFT_OUTPUTS_H

#include "model/output.h"
#include "pipeline/setup.h"

// True if an earlier run has written `path` as an output of this kind, whatever it contains now.
bool msc_left_outputs_have(const struct msc_setup *setup, enum msc_output kind, const char *path);
// Renames damaged outputs, with a warning.
enum msc_status msc_left_outputs_set_aside(struct msc_setup *setup);
// Like msc_left_outputs_set_aside, but for the log file. Call it before the log file is opened.
enum msc_status msc_left_outputs_set_log_aside(struct msc_setup *setup);

#endif
