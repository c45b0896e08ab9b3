// Several records beside each other: what their configurations differ in, what each has found after so many
// trials and after so long, what their winners choose, and how their fronts lie. As JSON, which
// compare_text.c prints.
//
//     cJSON *comparison;
//     MSC_TRY(msc_compare_create(&comparison, &(struct msc_compare_options){.paths = paths, .n = n}));
//     MSC_TRY_OUT(msc_compare_text(&text, comparison, &(struct msc_compare_text_options){0}));
//     cJSON_Delete(comparison);
#ifndef MSC_SEARCH_COMPARE_H
#define MSC_SEARCH_COMPARE_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
struct msc_str;

struct msc_compare_options {
    const char *const *paths; // of records, at least one
    size_t n;
    const struct msc_log *log;
};

// {
//   "records"            what msc_report_create says of each, and what stands beside it; of several
//                        objectives with its front, each point with `on_joint_front`
//   "notes"              texts: what of them cannot be compared, and why
//   "differences"        of their configurations (search/differences.h), or where a record has none, of what
//                        its header says of environment, agent and seed
//   "best_over_trials"   list of {"trials", "values"}: the best after 10, 30, 100, … trials, baselines
//                        among them, and in the end; null: none yet, or the record has not so many
//   "best_over_time"     list of {"seconds", "values"}: the same after parts of the time of the quickest
//                        search, and in the end (no "seconds")
//   "winners"            their choices (search/differences.h), without records that have none
//   "joint_front"        of several objectives, the same of all: points on the front of all fronts
// }
// Lists of values have one for each record. Of a long record no more is held than of a short one. *out is
// owned by the caller (cJSON_Delete). Errors are those of msc_record_open_best.
enum msc_status msc_compare_create(struct cJSON **out, const struct msc_compare_options *options);

struct msc_compare_text_options {
    bool has_front;   // list the joint front
    bool has_all;     // all tasks, also where the winners agree
    size_t n_columns; // that tables are folded to; 0: however wide
};
// For people; records are A, B, …
enum msc_status msc_compare_text(struct msc_str *out, const struct cJSON *comparison,
                                 const struct msc_compare_text_options *options);
// "part,key" and a column for each record, named by its file; a cell is empty where it has no such value.
void msc_compare_csv(struct msc_str *out, const struct cJSON *comparison);

#endif
