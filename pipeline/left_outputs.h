// Outputs that earlier runs of a configuration have left, as their records and stages tell. They
// may be replaced, whatever they hold now; a damaged one is renamed and made again.
#ifndef MSC_PIPELINE_LEFT_OUTPUTS_H
#define MSC_PIPELINE_LEFT_OUTPUTS_H

#include "model/output.h"
#include "pipeline/setup.h"

// Is the file at `path`, whatever it holds, an output of that kind that an earlier run has left?
bool msc_left_outputs_have(const struct msc_setup *setup, enum msc_output kind, const char *path);
// Renames damaged outputs, with a warning.
enum msc_status msc_left_outputs_set_aside(struct msc_setup *setup);
// The same for the log file, before it is opened.
enum msc_status msc_left_outputs_set_log_aside(struct msc_setup *setup);

#endif
