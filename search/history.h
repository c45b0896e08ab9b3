// What a search has come to over its trials and over its time, from its lines in their order, in fixed
// memory: the best so far, its last improvements, and values of all trials downsampled with their
// extremes kept. It knows nothing of how it is shown.
//
//     struct msc_history history;
//     MSC_TRY(msc_history_init(&history, goal, 512));
//     ... msc_history_add(&history, line) for each line of msc_record_scan_next ...
//     double best_after_100 = msc_history_at(&history, MSC_HISTORY_TRIALS, 100);
//     msc_history_finish(&history);
#ifndef MSC_SEARCH_HISTORY_H
#define MSC_SEARCH_HISTORY_H

#include "records/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// ---- Best so far ------------------------------------------------------------------------------

// From this trial on, the best feasible one had this value.
struct msc_history_step {
    int64_t trial;    // its id
    double elapsed_s; // seconds of search over all launches when its line was written
    double value;     // of the first objective, as the metric says it
};

// What the best is looked up by: so many lines of the record, or seconds of search.
enum msc_history_axis { MSC_HISTORY_TRIALS, MSC_HISTORY_SECONDS };

#define MSC_HISTORY_LAST 8
#define MSC_HISTORY_MARKS 19 // 10, 30, 100, ... 1e10

struct msc_history {
    const struct msc_goal *goal; // borrowed
    // The improvements in order, at most max_steps: where there are more, every other one is left
    // out, but never the first and the last.
    struct msc_history_step *steps;
    size_t n_steps, max_steps;
    size_t n_improvements;
    struct msc_history_step last[MSC_HISTORY_LAST]; // the newest first, none left out
    size_t n_last;
    // Exact values of the best after 10, 30, 100, ... lines; NaN: none was feasible. n_marks of them
    // were reached.
    double marks[MSC_HISTORY_MARKS];
    size_t n_marks;
    int64_t n_trials; // lines that were added
    double elapsed_s; // of the last one
};

// max_steps: at least 4. MSC_E_NOMEM.
enum msc_status msc_history_init(struct msc_history *history, const struct msc_goal *goal,
                                 size_t max_steps);
// All lines of a record's file, also of one that holds but its best trials; what is left out of the record is
// left out. MSC_E_NOMEM, MSC_E_IO.
enum msc_status msc_history_read(struct msc_history *history, const struct msc_record *record,
                                 size_t max_steps);
// Lines must come in order of their ids. True when the line is an improvement.
bool msc_history_add(struct msc_history *history, const struct msc_record_line *line);
// The best after `x` lines, or seconds, in the first objective's own direction; NaN: none yet.
double msc_history_at(const struct msc_history *history, enum msc_history_axis axis, double x);
// out [n]: the best at the ends of n equal parts of the whole, NaN where there was none.
void msc_history_sample(double out[], size_t n, const struct msc_history *history,
                        enum msc_history_axis axis);
// The lines that marks[i] is of: 10, 30, 100, ...
int64_t msc_history_mark(size_t i);
void msc_history_finish(struct msc_history *history); // accepts a zeroed one

// ---- Any value of all trials ------------------------------------------------------------------

// Points whose x lie in one stretch.
struct msc_series_part {
    size_t n;                // 0: none, and nothing else counts
    double first_x, last_x;  // of the first and the last point
    double first_y, last_y;  // the same
    double least_x, least_y; // the point with the smallest y
    double greatest_x, greatest_y;
    double sum_y;
};

// Downsampled as it grows: part i has the points with x in [i, i + 1) * width.
struct msc_series {
    struct msc_series_part *parts; // [n_parts]
    size_t n_parts, max_parts;
    double width; // doubled when max_parts do not reach
};

// `width` > 0 at first; max_parts: at least 2. MSC_E_NOMEM.
enum msc_status msc_series_init(struct msc_series *series, size_t max_parts, double width);
// x >= 0 in any order. A NaN is passed over.
void msc_series_add(struct msc_series *series, double x, double y);
void msc_series_finish(struct msc_series *series); // accepts a zeroed one

MSC_PUBLIC_END

#endif
