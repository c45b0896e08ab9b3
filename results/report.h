// The result of a search as JSON and as a table: the winner with the uniform baselines and the
// uncompressed model for comparison, counts of trials, and why the search ended.
//
//     cJSON *report;
//     MSC_TRY(msc_report_create(&report, &(struct msc_report_options){.record = r, .env = env}));
//     msc_report_text(&text, report);                 // or msc_json_write_pretty(&text, report)
//     cJSON_Delete(report);
#ifndef MSC_RESULTS_REPORT_H
#define MSC_RESULTS_REPORT_H

#include "env/api/env.h"
#include "records/record.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_report_options {
    const struct msc_record *record;
    // If not NULL, the winner (with all measurements) and the baselines (on the validation samples)
    // are measured again (msc_env_reevaluate), and the uncompressed model's metrics are added.
    // NULL: only recorded numbers.
    struct msc_env *env;
    const struct msc_search_result *result; // how this launch ended, or NULL
    size_t n_top;                           // number of trials listed after the winner; 0: none
    bool has_front;                         // list the Pareto front
    // Optional: called before each measurement with `env`, with a text such as "noise of the
    // winner".
    void (*measuring)(void *payload, const char *what);
    void *payload;
};

// *out is owned by the caller. Members: record, end, learnt, counts, objectives, winner, reference,
// baselines, top, front (docs/record.md). Further members are possible: left_out
// (msc_recheck_winner) and results kept from an earlier report (msc_kept_add).
enum msc_status msc_report_create(struct cJSON **out, const struct msc_report_options *options);
// Adds the reranked trials (msc_reranked_load; NULL: nothing) as `reranked`. Their rows are
// completed with data of the record.
enum msc_status msc_report_add_reranked(struct cJSON *report, const struct msc_record *record,
                                        const struct cJSON *reranked);
// Adds the results of the stage `distill` (msc_distilled_load; NULL: nothing) as `distilled`. If
// the improved plan is delivered, also adds that plan's row as `delivered`.
enum msc_status msc_report_add_distilled(struct cJSON *report, const struct cJSON *distilled);
// Adds the contents of all files next to the record: `kept` (msc_kept_load; may be NULL), and the
// reranked and distilled results, if there are any.
enum msc_status msc_report_add_beside(struct cJSON *report, const struct msc_record *record,
                                      const struct cJSON *kept, const struct msc_log *log);
// Opens a record for a report with its best n_top trials and, if has_front and there are several
// objectives, its front. If the record is long, only the trials to show are held in memory. *kept
// is as in msc_kept_load. The caller owns both.
enum msc_status msc_report_open_record(struct msc_record **out, struct cJSON **kept,
                                       const char *path, size_t n_top, bool has_front,
                                       const struct msc_log *log);
// Completes a copy of a plan's row with the data of other rows of the same trial.
enum msc_status msc_report_complete_delivered(struct cJSON *row, const struct cJSON *report);
void msc_report_distilled_text(struct msc_str *out, const struct cJSON *distilled);
// The label of a number in the table: "noise_ratio" for "noise".
const char *msc_report_label(const char *name);
// Appends the report as text for people; it ends with a newline.
enum msc_status msc_report_text(struct msc_str *out, const struct cJSON *report);
// Like msc_report_text, but no line of the table is longer than `n_columns` (base/table.h); 0: any
// width.
enum msc_status msc_report_text_folded(struct msc_str *out, const struct cJSON *report,
                                       size_t n_columns);

MSC_PUBLIC_END

#endif
