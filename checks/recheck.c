#include "checks/recheck.h"

#include "base/json.h"
#include "base/str.h"
#include "records/record_query.h"
#include "checks/verify.h"

#include <string.h>

// Sets *is_same: are the winner's results equal, or impossible to compare? If *is_same is false,
// `text` describes the difference.
static enum msc_status recheck_evaluate(bool *is_same, struct msc_str *text, const char **metric,
                                        const struct msc_record *record,
                                        const struct msc_record_line *best,
                                        const struct msc_recheck_options *o) {
    struct msc_verify_result result = {0};
    const struct msc_verify_options what = {
        .record = record,
        .env = o->env,
        .numerics = o->numerics,
        .ids = &best->trial.id,
        .n_ids = 1,
        .log = o->log,
        .cancel = o->cancel,
    };
    int64_t origin = best->repeat_of >= 0 ? best->repeat_of : best->trial.id;
    *is_same = strcmp(msc_record_numerics(record, origin), o->numerics ? o->numerics : "") != 0;
    if (*is_same) {
        return MSC_OK;
    }
    MSC_TRY(msc_verify_run(&result, &what));
    *is_same = result.n_by_verdict[MSC_VERIFY_DIFFERENT] == 0;
    if (!*is_same) {
        *metric = result.lines[0].metric;
        msc_verify_describe(text, &result.lines[0]);
    }
    msc_verify_result_finish(&result);
    return msc_str_status(text);
}

enum msc_status msc_recheck_leave_out(struct cJSON **row, struct cJSON *list,
                                      struct msc_record *record, int64_t id, const char *metric,
                                      const char *difference) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash checksum;
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_record_checksum(&checksum, record, id));
    MSC_TRY(msc_json_add_number(object, "id", (double)id));
    MSC_TRY(msc_json_add_number(object, "line", (double)msc_record_line_number(record, id)));
    MSC_TRY(msc_json_add_text(object, "checksum", msc_hash_format(text, checksum)));
    MSC_TRY(msc_json_add_text(object, "metric", metric));
    MSC_TRY(msc_json_add_text(object, "difference", difference));
    msc_record_leave_out(record, id);
    *row = object;
    return MSC_OK;
}

static enum msc_status recheck_leave_out(cJSON *list, struct msc_record *record, int64_t id,
                                         const char *metric, const char *difference,
                                         const struct msc_log *log) {
    cJSON *row = NULL;
    msc_log(log, MSC_LOG_WARNING,
            "%s: line %zu (trial %lld) could not be reproduced: %s; it is left out and the next "
            "best is used; mscgym verify checks the others",
            msc_record_path(record), msc_record_line_number(record, id), (long long)id, difference);
    return msc_recheck_leave_out(&row, list, record, id, metric, difference);
}

static enum msc_status recheck_best(cJSON *list, struct msc_record *record,
                                    const struct msc_recheck_options *o) {
    for (int n = 0; n < MSC_RECHECK_MOST; n++) {
        struct msc_record_line best;
        bool has_best = msc_record_best(&best, record);
        const char *metric = "";
        struct msc_str text = {0};
        bool is_same = true;
        enum msc_status status =
            has_best ? recheck_evaluate(&is_same, &text, &metric, record, &best, o) : MSC_OK;
        if (status == MSC_OK && !is_same) {
            status =
                recheck_leave_out(list, record, best.trial.id, metric, msc_str_text(&text), o->log);
        }
        msc_str_finish(&text);
        if (status != MSC_OK || is_same) {
            return status;
        }
    }
    return MSC_FAIL(
        MSC_E_STATE,
        "%s: its %d best lines could not be reproduced: this machine or the environment gives "
        "different results each time, or the record is damaged; run mscgym verify for details",
        msc_record_path(record), MSC_RECHECK_MOST);
}

enum msc_status msc_recheck_winner(struct cJSON **left_out, struct msc_record *record,
                                   const struct msc_recheck_options *options) {
    cJSON *list = cJSON_CreateArray();
    enum msc_status status =
        list ? recheck_best(list, record, options) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(list);
        return status;
    }
    *left_out = list;
    return MSC_OK;
}
