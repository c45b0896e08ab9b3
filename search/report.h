// The result of a search as JSON and as a table: the winner beside the uniform baselines and the
// uncompressed model, what was tried, and why it ended.
//
//     cJSON *report;
//     MSC_TRY(msc_report_create(&report, &(struct msc_report_options){.record = r, .env = env}));
//     msc_report_text(&text, report);                 // or msc_json_write_pretty(&text, report)
//     cJSON_Delete(report);
#ifndef MSC_SEARCH_REPORT_H
#define MSC_SEARCH_REPORT_H

#include "env/api/env.h"
#include "records/record.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_report_options {
    const struct msc_record *record;
    // Measures once more (msc_env_reevaluate) the winner, all that there is, and the baselines, on
    // the validation samples; and gives the uncompressed model's metrics. NULL: only what is
    // recorded.
    struct msc_env *env;
    const struct msc_search_result *result; // how this launch ended; may be NULL
    size_t n_top;                           // trials listed after the winner; 0: none
    bool has_front;                         // list the Pareto front
    // Optional: called before each step of measuring once more: "noise of the winner".
    void (*measuring)(void *payload, const char *what);
    void *payload;
};

// *out is owned by the caller. Members: record, end, counts, objectives, winner, reference,
// baselines, top, front (docs/record.md); others may be added: left_out (msc_recheck_winner), and
// what was kept of an earlier one (msc_kept_add).
enum msc_status msc_report_create(struct cJSON **out, const struct msc_report_options *options);
// Adds the best trials in another order (msc_reranked_load; NULL: nothing), as `reranked`, their rows
// with what the record has of them.
enum msc_status msc_report_add_reranked(struct cJSON *report, const struct msc_record *record,
                                        const struct cJSON *reranked);
// Adds what the stage `distill` has made of the winner's plan (msc_distilled_load; NULL: nothing), as
// `distilled`, and where that is delivered, its row as `delivered`; and says it in a line, without its end.
enum msc_status msc_report_add_distilled(struct cJSON *report, const struct cJSON *distilled);
// All that stands in files beside the record: `kept` (msc_kept_load; may be NULL), and what the two above
// are about, if there is any.
enum msc_status msc_report_add_beside(struct cJSON *report, const struct msc_record *record,
                                      const struct cJSON *kept, const struct msc_log *log);
// Opens a record for such a report, with the best n_top trials and, of several objectives, the front
// (has_front). Of a long one only what is to be shown is held. *kept is as of msc_kept_load; both are owned
// by the caller.
enum msc_status msc_report_open_record(struct msc_record **out, struct cJSON **kept,
                                       const char *path, size_t n_top, bool has_front,
                                       const struct msc_log *log);
// Adds to a copy of the row of a plan what other rows of a report say of the same trial.
enum msc_status msc_report_complete_delivered(struct cJSON *row, const struct cJSON *report);
void msc_report_distilled_text(struct msc_str *out, const struct cJSON *distilled);
// How a number of the report is called in the table: "noise_ratio" for "noise".
const char *msc_report_label(const char *name);
// Appends the report as text for people, ending in a newline.
enum msc_status msc_report_text(struct msc_str *out, const struct cJSON *report);
// The same with the table folded to so many columns (base/table.h); 0: however wide.
enum msc_status msc_report_text_folded(struct msc_str *out, const struct cJSON *report,
                                       size_t n_columns);

MSC_PUBLIC_END

#endif
