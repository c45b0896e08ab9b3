#include "pipeline/processor_result.h"

#include "base/json.h"

void msc_processor_result_finish(struct msc_processor_result *result) {
    cJSON_Delete(result->reports);
    result->reports = NULL;
}
