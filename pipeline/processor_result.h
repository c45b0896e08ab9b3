// The result of a processor's run: the reports of its searches, and how it ended.
#ifndef MSC_PIPELINE_PROCESSOR_RESULT_H
#define MSC_PIPELINE_PROCESSOR_RESULT_H

#include "base/status.h"

#include <stdbool.h>

MSC_PUBLIC_BEGIN

struct cJSON;

struct msc_processor_result {
    // A list with an object for each search: `entry`, the members of msc_report_create, `files`
    // (strategy, model), `greedy`, `profile`. After a dry run: `entry`, `estimate` in numbers and
    // `estimate_text` for people. The stage track adds {"stage", "file", "worst", "fall_db"}.
    struct cJSON *reports;
    bool is_feasible;   // every search has a winner within its bounds
    bool was_cancelled; // stopped on request before the end
    // The search is complete, but its strategy file or model could not be written, or the runtime
    // refuses the model. export_message says why.
    enum msc_status export_status;
    char export_message[512];
};

void msc_processor_result_finish(struct msc_processor_result *result); // accepts a zeroed struct

MSC_PUBLIC_END

#endif
