#include "results/report_rows.h"

#include "base/json.h"

#include <string.h>

const char *msc_report__text(const struct cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

const struct cJSON *msc_report__find_delivered(const struct cJSON *report) {
    const cJSON *first = msc_json_get(msc_json_get(report, "reranked"), "plans");
    const cJSON *distilled = msc_json_get(report, "delivered");
    return distilled               ? distilled
           : first && first->child ? first->child
                                   : msc_json_get(report, "winner");
}

bool msc_report__is_another(const struct cJSON *report) {
    const cJSON *winner = msc_json_get(report, "winner");
    return cJSON_IsObject(winner) &&
           msc_json_number_of(winner, "id") !=
               msc_json_number_of(msc_report__find_delivered(report), "id");
}

// The uniform plan labelled "8", else the first one whose label begins with "8 ", or NULL.
const struct cJSON *msc_report__find_uniform_8(const struct cJSON *report) {
    const cJSON *row = NULL;
    const cJSON *found = NULL;
    cJSON_ArrayForEach(row, msc_json_get(report, "baselines")) {
        const cJSON *label = msc_json_get(row, "label");
        if (!cJSON_IsString(label)) {
            continue;
        }
        if (strcmp(label->valuestring, "8") == 0) {
            return row;
        }
        found = !found && strncmp(label->valuestring, "8 ", 2) == 0 ? row : found;
    }
    return found;
}
