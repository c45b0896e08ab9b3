#include "records/kept.h"

#include "base/json.h"
#include "records/record_query.h"
#include "records/kept_file.h"

#include <string.h>

static const struct msc_kept_kind kind = {".result.json", "mscgym.result.1"};

// ---- Saving -----------------------------------------------------------------------------------

// Fills `row` from a row of a report: binds `row` to the line of the trial, and adds the
// measurements made for the report.
static enum msc_status fill_row(cJSON *row, const struct msc_record *record, const cJSON *from) {
    int64_t id = 0;
    MSC_TRY(msc_json_get_i64(&id, from, "id", "report"));
    MSC_TRY(msc_kept_bind_row(row, record, id));
    return msc_kept_add_copy(row, "examined", msc_json_get(from, "examined"));
}

static enum msc_status kept_fill(cJSON *kept, const struct msc_record *record,
                                 const cJSON *report) {
    const cJSON *item = NULL;
    const cJSON *winner = msc_json_get(report, "winner");
    MSC_TRY(msc_json_add_number(kept, "trials", (double)msc_record_n_trials(record)));
    MSC_TRY(msc_kept_add_copy(kept, "end", msc_json_get(report, "end")));
    MSC_TRY(msc_kept_add_copy(kept, "learnt", msc_json_get(report, "learnt")));
    if (cJSON_IsObject(winner)) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_add(kept, "winner", row));
        MSC_TRY(fill_row(row, record, winner));
    }
    MSC_TRY(msc_kept_add_copy(kept, "reference", msc_json_get(report, "reference")));
    MSC_TRY(msc_kept_add_copy(kept, "runtime", msc_json_get(report, "runtime")));
    cJSON *baselines = cJSON_CreateArray();
    MSC_TRY(msc_json_add(kept, "baselines", baselines));
    cJSON_ArrayForEach(item, msc_json_get(report, "baselines")) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(baselines, row));
        MSC_TRY(fill_row(row, record, item));
    }
    return msc_kept_add_copy(kept, "left_out", msc_json_get(report, "left_out"));
}

enum msc_status msc_kept_save(const struct msc_record *record, const struct cJSON *report) {
    cJSON *kept = cJSON_CreateObject();
    enum msc_status status =
        kept ? kept_fill(kept, record, report) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = msc_kept_file_save(&kind, record, kept);
    }
    cJSON_Delete(kept);
    return status;
}

// ---- Loading ----------------------------------------------------------------------------------

// Leaves out of the record the lines that `left_out` names. Drops rows that do not fit their lines.
static enum msc_status kept_leave_out(cJSON *kept, struct msc_record *record) {
    cJSON *next = NULL;
    cJSON *list = msc_json_get(kept, "left_out");
    for (cJSON *row = list ? list->child : NULL; row; row = next) {
        bool fits = false;
        next = row->next;
        MSC_TRY(msc_kept_row_fits(&fits, row, record));
        if (fits) {
            msc_record_leave_out(record, (int64_t)msc_json_get(row, "id")->valuedouble);
        } else {
            cJSON_Delete(cJSON_DetachItemViaPointer(list, row));
        }
    }
    return MSC_OK;
}

// Sets *fits: are all measurements in the file of the record's current lines?
static enum msc_status check_rows(bool *fits, const cJSON *kept, const struct msc_record *record) {
    struct msc_record_line best;
    bool has_best = msc_record_best(&best, record);
    const cJSON *winner = msc_json_get(kept, "winner");
    const cJSON *row = NULL;
    *fits = has_best == (winner != NULL);
    if (*fits && winner) {
        MSC_TRY(msc_kept_row_fits(fits, winner, record));
        *fits = *fits && msc_json_get(winner, "id")->valuedouble == (double)best.trial.id;
    }
    cJSON_ArrayForEach(row, msc_json_get(kept, "baselines")) {
        bool row_fits = false;
        MSC_TRY(msc_kept_row_fits(&row_fits, row, record));
        *fits = *fits && row_fits;
    }
    return MSC_OK;
}

// Removes results that are no longer valid, and logs that.
static enum msc_status kept_check(cJSON *kept, struct msc_record *record,
                                  const struct msc_log *log) {
    static const char *const measured[] = {"end",       "learnt",  "winner",
                                           "reference", "runtime", "baselines"};
    bool fits = false;
    MSC_TRY(kept_leave_out(kept, record));
    MSC_TRY(check_rows(&fits, kept, record));
    if (!fits) {
        msc_log(log, MSC_LOG_INFO,
                "%s%s: ignored, because the search has continued since; the end of the search "
                "repeats the measurements",
                msc_record_path(record), kind.ending);
        for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(kept, measured[i]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_kept_load(struct cJSON **out, struct msc_record *record,
                              const struct msc_log *log) {
    cJSON *kept = NULL;
    *out = NULL;
    MSC_TRY(msc_kept_file_load(&kept, &kind, record, log));
    enum msc_status status = kept ? kept_check(kept, record, log) : MSC_OK;
    if (status != MSC_OK) {
        cJSON_Delete(kept);
        return status == MSC_E_NOMEM ? status : MSC_OK;
    }
    *out = kept;
    return MSC_OK;
}

enum msc_status msc_kept_n_left_out(size_t *n, const char *path) {
    struct msc_record *record = NULL;
    cJSON *kept = NULL;
    MSC_TRY(msc_record_open(&record, path, MSC_RECORD_HEADER, NULL));
    enum msc_status status = msc_kept_file_load(&kept, &kind, record, NULL);
    *n = (size_t)cJSON_GetArraySize(msc_json_get(kept, "left_out"));
    cJSON_Delete(kept);
    msc_record_close(record);
    return status;
}

enum msc_status msc_kept_leave_out(struct msc_record *record, const struct msc_log *log) {
    cJSON *kept = NULL;
    enum msc_status status = msc_kept_load(&kept, record, log);
    cJSON_Delete(kept);
    return status;
}

// ---- Showing ----------------------------------------------------------------------------------

static enum msc_status kept_add_baselines(cJSON *report, const cJSON *kept) {
    const cJSON *row = NULL;
    cJSON *baseline = NULL;
    cJSON_ArrayForEach(row, msc_json_get(kept, "baselines")) {
        cJSON_ArrayForEach(baseline, msc_json_get(report, "baselines")) {
            if (msc_json_get(baseline, "id")->valuedouble == msc_json_get(row, "id")->valuedouble) {
                MSC_TRY(msc_kept_add_copy(baseline, "examined", msc_json_get(row, "examined")));
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_kept_add(struct cJSON *report, const struct cJSON *kept) {
    cJSON *winner = msc_json_get(report, "winner");
    const cJSON *n_trials = msc_json_get(kept, "trials");
    const cJSON *n_now = msc_json_get(msc_json_get(report, "counts"), "trials");
    if (!kept) {
        return MSC_OK;
    }
    if (cJSON_IsNumber(n_trials) && cJSON_IsNumber(n_now) &&
        n_trials->valuedouble == n_now->valuedouble) {
        MSC_TRY(msc_kept_add_copy(report, "end", msc_json_get(kept, "end")));
        MSC_TRY(msc_kept_add_copy(report, "learnt", msc_json_get(kept, "learnt")));
    }
    if (cJSON_IsObject(winner)) {
        MSC_TRY(msc_kept_add_copy(winner, "examined",
                                  msc_json_get(msc_json_get(kept, "winner"), "examined")));
    }
    MSC_TRY(msc_kept_add_copy(report, "reference", msc_json_get(kept, "reference")));
    MSC_TRY(msc_kept_add_copy(report, "runtime", msc_json_get(kept, "runtime")));
    MSC_TRY(kept_add_baselines(report, kept));
    return msc_kept_add_copy(report, "left_out", msc_json_get(kept, "left_out"));
}
