// Adds the results of the stage `distill` to a report.
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "results/report.h"
#include "results/report_rows.h"

// ---- The improved plan, as a row ---------------------------------------------------------------

// Copies the members of `from` that `to` lacks.
static enum msc_status add_lacking(cJSON *to, const cJSON *from) {
    bool are_objects = cJSON_IsObject(to) && cJSON_IsObject(from); // the file may hold any JSON
    for (const cJSON *item = are_objects ? from->child : NULL; item; item = item->next) {
        if (!msc_json_get(to, item->string)) {
            MSC_TRY(msc_json_add(to, item->string, cJSON_Duplicate(item, true)));
        }
    }
    return MSC_OK;
}

// Copies what a row lacks from another row of the same trial.
static enum msc_status complete_row(cJSON *row, const cJSON *other) {
    if (!cJSON_Compare(msc_json_get(row, "id"), msc_json_get(other, "id"), true)) {
        return MSC_OK;
    }
    MSC_TRY(add_lacking(row, other));
    return add_lacking(msc_json_get(row, "examined"), msc_json_get(other, "examined"));
}

enum msc_status msc_report_complete_delivered(cJSON *row, const cJSON *report) {
    const cJSON *uniform = NULL;
    MSC_TRY(complete_row(row, msc_json_get(report, "winner")));
    cJSON_ArrayForEach(uniform, msc_json_get(report, "baselines")) {
        MSC_TRY(complete_row(row, uniform));
    }
    return MSC_OK;
}

static enum msc_status replace_member(cJSON *object, const char *key, const cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return value ? msc_json_add(object, key, cJSON_Duplicate(value, true)) : MSC_OK;
}

// The improved plan has other weights of the same types, so the latency of the trial's plan
// applies.
static enum msc_status keep_latency(cJSON *examined, const cJSON *old) {
    static const char *const keys[] = {"latency_us", "latency_ratio", "us_by_round"};
    cJSON *runtime = msc_json_get(examined, "runtime");
    const cJSON *from = msc_json_get(old, "runtime");
    for (size_t i = 0; cJSON_IsObject(runtime) && i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *item = msc_json_get(from, keys[i]);
        if (item && !msc_json_get(runtime, keys[i])) {
            MSC_TRY(msc_json_add(runtime, keys[i], cJSON_Duplicate(item, true)));
        }
    }
    return MSC_OK;
}

// Fills the trial's row. Measurements of the improved plan replace the measurements of the trial's
// own plan.
static enum msc_status fill_delivered(cJSON *row, const cJSON *report, const cJSON *distilled) {
    MSC_TRY(msc_report_complete_delivered(row, report));
    cJSON *metrics = cJSON_Duplicate(msc_json_get(distilled, "metrics"), true);
    enum msc_status status = add_lacking(metrics, msc_json_get(row, "metrics"));
    if (status == MSC_OK) {
        status = replace_member(row, "metrics", metrics);
    }
    cJSON_Delete(metrics);
    MSC_TRY(status);
    cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(row, "examined");
    status = replace_member(row, "examined", msc_json_get(distilled, "examined"));
    if (status == MSC_OK) {
        status = keep_latency(msc_json_get(row, "examined"), old);
    }
    cJSON_Delete(old);
    return status == MSC_OK ? msc_json_add_bool(row, "distilled", true) : status;
}

static enum msc_status add_delivered(cJSON *report, const cJSON *distilled) {
    const cJSON *trial = msc_report__find_delivered(report);
    if (msc_json_get(distilled, "objection") || !cJSON_IsObject(trial)) {
        return MSC_OK;
    }
    cJSON *row = cJSON_Duplicate(trial, true);
    enum msc_status status =
        row ? fill_delivered(row, report, distilled) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(row);
        return status;
    }
    return msc_json_add(report, "delivered", row);
}

// Leaves out the plan itself, which is not part of a report.
enum msc_status msc_report_add_distilled(struct cJSON *report, const struct cJSON *from) {
    static const char *const inner[] = {"schema", "record", "checksum", "winner", "plan"};
    if (!from) {
        return MSC_OK;
    }
    cJSON *distilled = cJSON_Duplicate(from, true);
    cJSON_DeleteItemFromObjectCaseSensitive(report, "distilled");
    cJSON_DeleteItemFromObjectCaseSensitive(report, "delivered");
    MSC_TRY(msc_json_add(report, "distilled", distilled));
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(distilled, inner[i]);
    }
    return add_delivered(report, distilled);
}

void msc_report_distilled_text(struct msc_str *out, const struct cJSON *distilled) {
    const cJSON *objection = msc_json_get(distilled, "objection");
    msc_str_printf(out,
                   "distill: %.0f of %d weights improved, which changes the loss on %.0f held-back "
                   "samples from %.4g to %.4g; ",
                   msc_json_get(distilled, "improved")->valuedouble,
                   cJSON_GetArraySize(msc_json_get(distilled, "weights")),
                   msc_json_get(distilled, "held_back")->valuedouble,
                   msc_json_get(distilled, "loss_before")->valuedouble,
                   msc_json_get(distilled, "loss_after")->valuedouble);
    if (objection) {
        msc_shown_append(out, objection->valuestring);
        msc_str_append(out, ": the search's plan is delivered");
    } else {
        msc_str_append(out, "this plan is delivered");
    }
}
