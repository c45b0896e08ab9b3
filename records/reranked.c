#include "records/reranked.h"

#include "base/alloc.h"
#include "records/record_query.h"
#include "records/kept_file.h"
#include "records/rerank.h"

#include <string.h>

#define MOST_TOP 1000000.0

static const struct msc_kept_kind kind = {".rerank.json", "mscgym.rerank.1"};

enum msc_status msc_reranked_save(const struct msc_record *record, const struct cJSON *reranked) {
    return msc_kept_file_save(&kind, record, reranked);
}

enum msc_status msc_reranked_bind_row(struct cJSON *row, const struct msc_record *record,
                                      int64_t id) {
    return msc_kept_bind_row(row, record, id);
}

static bool is_among(const int64_t ids[], size_t n, int64_t id) {
    while (n > 0 && ids[n - 1] != id) {
        n--;
    }
    return n > 0;
}

void msc_reranked_candidates(int64_t ids[], size_t *n, size_t max,
                             const struct msc_record *record) {
    size_t n_top = 0;
    *n = 0;
    msc_record_top(ids, &n_top, max, record);
    for (size_t i = 0; i < n_top; i++) {
        const struct msc_record_line line = msc_record_trial(record, (size_t)ids[i]);
        if (line.trial.outcome.state == MSC_TRIAL_COMPLETE) {
            ids[(*n)++] = ids[i];
        }
    }
    for (size_t i = 0; i < msc_record_space(record)->n_baselines; i++) {
        struct msc_record_line line;
        if (msc_record_baseline(&line, record, i) &&
            line.trial.outcome.state == MSC_TRIAL_COMPLETE && line.trial.outcome.violation <= 0 &&
            !is_among(ids, *n, line.trial.id)) {
            ids[(*n)++] = line.trial.id;
        }
    }
}

// ---- Loading ----------------------------------------------------------------------------------

// Drops rows that do not fit their trial's line. The row of the float model has no id and is kept.
static enum msc_status drop_rows(cJSON *list, const struct msc_record *record) {
    cJSON *next = NULL;
    for (cJSON *row = list ? list->child : NULL; row; row = next) {
        bool fits = !msc_json_get(row, "id");
        next = row->next;
        if (!fits) {
            MSC_TRY(msc_kept_row_fits(&fits, row, record));
        }
        if (!fits) {
            cJSON_Delete(cJSON_DetachItemViaPointer(list, row));
        }
    }
    return MSC_OK;
}

enum msc_status msc_reranked_load_rows(struct cJSON **out, const struct msc_record *record,
                                       const struct msc_log *log) {
    MSC_TRY(msc_kept_file_load(out, &kind, record, log));
    enum msc_status status = drop_rows(msc_json_get(*out, "plans"), record);
    if (status == MSC_OK) {
        status = drop_rows(msc_json_get(*out, "references"), record);
    }
    if (status != MSC_OK) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return status;
}

static bool has_row(const cJSON *list, int64_t id) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        const cJSON *item = msc_json_get(row, "id");
        if (cJSON_IsNumber(item) && item->valuedouble == (double)id) {
            return true;
        }
    }
    return false;
}

// The number of best trials that were to be measured; 0: not in the file.
static size_t top_of(const cJSON *reranked) {
    const cJSON *top = msc_json_get(reranked, "top");
    bool is_number = cJSON_IsNumber(top) && top->valuedouble >= 1.0 && top->valuedouble <= MOST_TOP;
    return is_number ? (size_t)top->valuedouble : 0;
}

enum msc_status msc_reranked_n_top(size_t *n, const char *path) {
    struct msc_record *record = NULL;
    cJSON *reranked = NULL;
    MSC_TRY(msc_record_open(&record, path, MSC_RECORD_HEADER, NULL));
    enum msc_status status = msc_kept_file_load(&reranked, &kind, record, NULL);
    *n = status == MSC_OK ? top_of(reranked) : 0;
    cJSON_Delete(reranked);
    msc_record_close(record);
    return status;
}

// Sets *fits: are the measured trials the record's best trials?
static enum msc_status check_candidates(bool *fits, const cJSON *reranked,
                                        const struct msc_record *record) {
    const cJSON *plans = msc_json_get(reranked, "plans");
    size_t n = 0;
    size_t max = top_of(reranked);
    *fits = max > 0;
    if (!*fits) {
        return MSC_OK;
    }
    int64_t *ids = msc_alloc_zero(max + msc_record_space(record)->n_baselines, sizeof *ids);
    MSC_TRY(MSC_ALLOCATED(ids));
    msc_reranked_candidates(ids, &n, max, record);
    *fits = n > 0 && (size_t)cJSON_GetArraySize(plans) == n;
    for (size_t i = 0; *fits && i < n; i++) {
        *fits = has_row(plans, ids[i]);
    }
    msc_free(ids);
    return MSC_OK;
}

enum msc_status msc_reranked_load(struct cJSON **out, const struct msc_record *record,
                                  const struct msc_log *log) {
    bool fits = false;
    MSC_TRY(msc_reranked_load_rows(out, record, log));
    if (!*out) {
        return MSC_OK;
    }
    enum msc_status status = check_candidates(&fits, *out, record);
    if (status == MSC_OK && !fits) {
        msc_log(log, MSC_LOG_INFO,
                "%s%s: ignored, because the search has continued since; the end of the search "
                "repeats the measurements",
                msc_record_path(record), kind.ending);
    }
    const cJSON *by = msc_json_get(*out, "by");
    bool is_ordered = cJSON_IsString(by) && !msc_rerank_is_of_runtime(by->valuestring);
    if (status != MSC_OK || !fits || !is_ordered) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return status;
}

enum msc_status msc_reranked_winner(bool *is_there, struct msc_record_line *out,
                                    const struct msc_record *record, const struct msc_log *log) {
    cJSON *reranked = NULL;
    MSC_TRY(msc_reranked_load(&reranked, record, log));
    const cJSON *first = cJSON_GetArrayItem(msc_json_get(reranked, "plans"), 0);
    const cJSON *id = msc_json_get(first, "id");
    *is_there = id || msc_record_best(out, record);
    if (id) {
        *out = msc_record_trial(record, (size_t)id->valuedouble);
    }
    cJSON_Delete(reranked);
    return MSC_OK;
}
