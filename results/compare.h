// Compares several records: differences of their configurations, the best value after equal numbers
// of trials and equal times, the choices of their winners, and their Pareto fronts. The result is
// JSON, which compare_text.c prints.
//
//     cJSON *comparison;
//     const struct msc_compare_options options = {.paths = paths, .n = n};
//     MSC_TRY(msc_compare_create(&comparison, &options));
//     MSC_TRY_OUT(msc_compare_text(&text, comparison, &(struct msc_compare_text_options){0}));
//     cJSON_Delete(comparison);
#ifndef MSC_RESULTS_COMPARE_H
#define MSC_RESULTS_COMPARE_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
struct msc_str;

struct msc_compare_options {
    const char *const *paths; // paths of records, at least one
    size_t n;
    const struct msc_log *log;
};

// {
//   "records"            each record's report (msc_report_create), with data of the files next to
//                        the record; with several objectives, the report has the record's front,
//                        and each point of the front has `on_joint_front`
//   "notes"              texts: what cannot be compared, and why
//   "differences"        of the configurations (results/differences.h); if a record has none, its
//                        header's environment, agent and seed are compared
//   "best_over_trials"   list of {"trials", "values"}: the best after 10, 30, 100, … trials
//                        (baselines included) and at the end; a value is null if no trial is
//                        feasible or the record is shorter
//   "best_over_time"     list of {"seconds", "values"}: the best after fractions of the shortest
//                        search's time; the last entry is the best at the end and has no "seconds"
//   "winners"            the winners' choices (results/differences.h); records without a winner
//                        are left out
//   "joint_front"        with several objectives: the Pareto front of all records' fronts together
// }
// Lists of values have one entry for each record. Memory does not grow with the length of a record.
// *out is owned by the caller (cJSON_Delete). Errors are those of msc_record_open_best.
enum msc_status msc_compare_create(struct cJSON **out, const struct msc_compare_options *options);

struct msc_compare_text_options {
    bool has_front;   // list the joint front
    bool has_all;     // list all tasks, including those whose choices agree
    size_t n_columns; // greatest width of a table in characters; 0: any width
};
// Writes text for people, in which the records are called A, B, …
enum msc_status msc_compare_text(struct msc_str *out, const struct cJSON *comparison,
                                 const struct msc_compare_text_options *options);
// Writes CSV with the columns "part", "key" and one for each record, named after the record's file.
// Missing values are empty.
void msc_compare_csv(struct msc_str *out, const struct cJSON *comparison);

#endif
