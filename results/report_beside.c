// Adds the contents of the files next to a record to its report.
#include "base/json.h"
#include "records/distilled.h"
#include "records/kept.h"
#include "results/report.h"
#include "records/reranked.h"

static enum msc_status add_distilled(struct cJSON *report, const struct msc_record *record,
                                     const struct msc_log *log) {
    struct msc_record_line winner;
    bool has_winner = false;
    cJSON *distilled = NULL;
    MSC_TRY(msc_reranked_winner(&has_winner, &winner, record, NULL));
    if (!has_winner) {
        return MSC_OK;
    }
    MSC_TRY(msc_distilled_load(&distilled, record, winner.trial.id, log));
    enum msc_status status = msc_report_add_distilled(report, distilled);
    cJSON_Delete(distilled);
    return status;
}

enum msc_status msc_report_add_beside(struct cJSON *report, const struct msc_record *record,
                                      const struct cJSON *kept, const struct msc_log *log) {
    cJSON *reranked = NULL;
    MSC_TRY(msc_kept_add(report, kept));
    MSC_TRY(msc_reranked_load(&reranked, record, log));
    enum msc_status status = msc_report_add_reranked(report, record, reranked);
    cJSON_Delete(reranked);
    return status == MSC_OK ? add_distilled(report, record, log) : status;
}

enum msc_status msc_report_open_record(struct msc_record **out, struct cJSON **kept,
                                       const char *path, size_t n_top, bool has_front,
                                       const struct msc_log *log) {
    struct msc_record *record = NULL;
    size_t n_reranked = 0, n_left_out = 0;
    MSC_TRY(msc_reranked_n_top(&n_reranked, path));
    MSC_TRY(msc_kept_n_left_out(&n_left_out, path));
    size_t n_best = n_top > n_reranked ? n_top : n_reranked;
    MSC_TRY(msc_record_open_best(&record, path, n_best + n_left_out + 1, log));
    enum msc_status status = msc_kept_load(kept, record, log);
    if (status == MSC_OK && has_front && msc_json_get(*kept, "left_out")) {
        // Trials that were dominated only by left-out trials now belong to the front, so the record
        // is read again.
        msc_record_close(record);
        cJSON_Delete(*kept);
        *kept = NULL;
        MSC_TRY(msc_record_open(&record, path, MSC_RECORD_READ, NULL));
        status = msc_kept_load(kept, record, NULL);
    }
    if (status != MSC_OK) {
        msc_record_close(record);
        return status;
    }
    *out = record;
    return MSC_OK;
}
