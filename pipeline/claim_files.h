// Checks that no output of a run is one of its inputs, or another output, before anything is
// written.
#ifndef MSC_PIPELINE_CLAIM_FILES_H
#define MSC_PIPELINE_CLAIM_FILES_H

#include "pipeline/setup.h"

// Also chooses setup->model_output. MSC_E_INVALID names the two files that are the same, or the
// file that an output would replace though it is of another kind.
enum msc_status msc_claim_files(struct msc_setup *setup);

#endif
