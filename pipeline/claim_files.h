// Checks, before anything is written, that no output of a run is also an input or another output.
#ifndef MSC_PIPELINE_CLAIM_FILES_H
#define MSC_PIPELINE_CLAIM_FILES_H

#include "pipeline/setup.h"

// Checks the files, and sets setup->model_output. MSC_E_INVALID names the two uses of the same
// file, or an existing file of another kind that an output would replace.
enum msc_status msc_claim_files(struct msc_setup *setup);

#endif
