#include "results/report_sameness.h"

#include "base/json.h"
#include "base/shown.h"

static const cJSON *sameness_get(const cJSON *report, const char *key) {
    const cJSON *sameness = msc_json_get(report, "sameness");
    return msc_json_get(sameness, key);
}

bool msc_report__is_blind(const cJSON *report) {
    return cJSON_IsTrue(sameness_get(report, "same")) ||
           cJSON_IsArray(sameness_get(report, "dead"));
}

static void write_names(struct msc_str *out, const cJSON *list) {
    const cJSON *item = NULL;
    const char *before = ": nothing varies after ";
    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsString(item)) {
            msc_str_append(out, before);
            msc_shown_append(out, item->valuestring);
            before = ", ";
        }
    }
}

void msc_report__write_sameness(struct msc_str *out, const cJSON *report) {
    const cJSON *dead = sameness_get(report, "dead");
    if (cJSON_IsTrue(sameness_get(report, "same"))) {
        msc_str_append(out,
                       "all samples are the same, so the loss tells nothing about other samples\n");
    }
    if (cJSON_IsArray(dead)) {
        msc_str_append(out, "the model gives the same outputs for all samples");
        write_names(out, dead);
        msc_str_append(out, ", so the loss is meaningless\n");
    }
    if (sameness_get(report, "unshared")) {
        msc_str_append(out, "all validation samples are also calibration samples, so no plan was "
                            "measured on samples that the search did not use\n");
    }
}
