// What a report says of the stage `distill`.
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "search/report.h"

static const cJSON *distilled_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

// The plan itself is no part of a report.
enum msc_status msc_report_add_distilled(struct cJSON *report, const struct cJSON *from) {
    static const char *const inner[] = {"schema", "record", "checksum", "winner", "plan"};
    if (!from) {
        return MSC_OK;
    }
    cJSON *distilled = cJSON_Duplicate(from, true);
    cJSON_DeleteItemFromObjectCaseSensitive(report, "distilled");
    MSC_TRY(msc_json_add(report, "distilled", distilled));
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(distilled, inner[i]);
    }
    return MSC_OK;
}

void msc_report_distilled_text(struct msc_str *out, const struct cJSON *distilled) {
    const cJSON *objection = distilled_get(distilled, "objection");
    msc_str_printf(
        out,
        "distill: %.0f of %d weights improved, which takes the loss on %.0f samples held "
        "back from %.4g to %.4g; ",
        distilled_get(distilled, "improved")->valuedouble,
        cJSON_GetArraySize(distilled_get(distilled, "weights")),
        distilled_get(distilled, "held_back")->valuedouble,
        distilled_get(distilled, "loss_before")->valuedouble,
        distilled_get(distilled, "loss_after")->valuedouble);
    if (objection) {
        msc_shown_append(out, objection->valuestring);
        msc_str_append(out, ": the plan of the search is delivered");
    } else {
        msc_str_append(out, "this plan is delivered");
    }
}
