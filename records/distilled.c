#include "records/distilled.h"

#include "records/kept_file.h"

static const struct msc_kept_kind kind = {".distill.json", "mscgym.distill.1"};

enum msc_status msc_distilled_save(const struct msc_record *record, struct cJSON *distilled,
                                   int64_t trial) {
    cJSON *winner = cJSON_CreateObject();
    MSC_TRY(msc_json_add(distilled, "winner", winner));
    MSC_TRY(msc_kept_bind_row(winner, record, trial));
    return msc_kept_file_save(&kind, record, distilled);
}

const struct cJSON *msc_distilled_plan(const struct cJSON *distilled) {
    return msc_json_get(distilled, "plan");
}

// A report needs all of these members; a number that was not measured is null.
static bool is_complete(const cJSON *distilled) {
    static const char *const numbers[] = {"improved", "held_back", "loss_before", "loss_after"};
    const cJSON *objection = msc_json_get(distilled, "objection");
    bool is_whole = cJSON_IsArray(msc_json_get(distilled, "weights")) &&
                    (!objection || cJSON_IsString(objection));
    for (size_t i = 0; is_whole && i < sizeof numbers / sizeof numbers[0]; i++) {
        const cJSON *number = msc_json_get(distilled, numbers[i]);
        is_whole = cJSON_IsNumber(number) || cJSON_IsNull(number);
    }
    return is_whole;
}

enum msc_status msc_distilled_load(struct cJSON **out, const struct msc_record *record,
                                   int64_t trial, const struct msc_log *log) {
    cJSON *distilled = NULL;
    bool fits = false;
    *out = NULL;
    MSC_TRY(msc_kept_file_load(&distilled, &kind, record, log));
    if (!distilled) {
        return MSC_OK;
    }
    const cJSON *winner = msc_json_get(distilled, "winner");
    enum msc_status status = msc_kept_row_fits(&fits, winner, record);
    const cJSON *id = msc_json_get(winner, "id");
    if (status == MSC_OK && (!fits || id->valuedouble != (double)trial)) {
        fits = false;
        msc_log(log, MSC_LOG_INFO, "%s%s: ignored, because it is not about the winner",
                msc_record_path(record), kind.ending);
    } else if (status == MSC_OK && !is_complete(distilled)) {
        fits = false;
        msc_log(log, MSC_LOG_INFO, "%s%s: ignored, because it is incomplete",
                msc_record_path(record), kind.ending);
    }
    if (!fits) {
        cJSON_Delete(distilled);
        return status;
    }
    *out = distilled;
    return MSC_OK;
}

enum msc_status msc_distilled_delivered(struct cJSON **out, const struct msc_record *record,
                                        int64_t trial, const struct msc_log *log) {
    cJSON *distilled = NULL;
    *out = NULL;
    MSC_TRY(msc_distilled_load(&distilled, record, trial, log));
    const cJSON *plan = msc_distilled_plan(distilled);
    enum msc_status status = MSC_OK;
    if (plan) {
        *out = cJSON_Duplicate(plan, true);
        status = MSC_ALLOCATED(*out);
    }
    cJSON_Delete(distilled);
    return status;
}
