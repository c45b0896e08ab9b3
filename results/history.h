// The history of a search in fixed memory, from the lines of its record in order: the best so far,
// the latest improvements, and the values of all trials, downsampled with their extremes kept.
//
//     struct msc_history history;
//     MSC_TRY(msc_history_init(&history, goal, 512));
//     ... msc_history_add(&history, line) for each line of msc_record_scan_next ...
//     double best_after_100 = msc_history_at(&history, MSC_HISTORY_TRIALS, 100);
//     msc_history_finish(&history);
#ifndef MSC_RESULTS_HISTORY_H
#define MSC_RESULTS_HISTORY_H

#include "records/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

// ---- Best so far ------------------------------------------------------------------------------

// An improvement: the trial is the best feasible one until the next step.
struct msc_history_step {
    int64_t trial;    // the trial's id
    double elapsed_s; // search time over all launches when the trial's line was written
    double value;     // value of the first objective, not negated if maximised
};

// The best is looked up by the number of lines or by seconds of search.
enum msc_history_axis { MSC_HISTORY_TRIALS, MSC_HISTORY_SECONDS };

#define MSC_HISTORY_LAST 8
#define MSC_HISTORY_MARKS 19 // 10, 30, 100, ... 1e10

struct msc_history {
    const struct msc_goal *goal; // borrowed
    // At most max_steps improvements, in order. When there are more, every other one is dropped,
    // except the first and the last.
    struct msc_history_step *steps;
    size_t n_steps, max_steps;
    size_t n_improvements;
    struct msc_history_step last[MSC_HISTORY_LAST]; // newest first, without gaps
    size_t n_last;
    // The exact best after 10, 30, 100, ... lines; NaN: none was feasible. The first n_marks have
    // been reached.
    double marks[MSC_HISTORY_MARKS];
    size_t n_marks;
    int64_t n_trials; // lines added
    double elapsed_s; // search time at the last line
};

// max_steps: at least 4. Fails only with MSC_E_NOMEM.
enum msc_status msc_history_init(struct msc_history *history, const struct msc_goal *goal,
                                 size_t max_steps);
// Reads all lines of a record's file, even if `record` holds only its best trials. Trials left out
// of the record are skipped. Fails with MSC_E_NOMEM or MSC_E_IO.
enum msc_status msc_history_read(struct msc_history *history, const struct msc_record *record,
                                 size_t max_steps);
// Adds a line; call in order of ids. Returns true if the line is an improvement.
bool msc_history_add(struct msc_history *history, const struct msc_record_line *line);
// The best value of the first objective after `x` lines or seconds, not negated if maximised; NaN:
// none yet.
double msc_history_at(const struct msc_history *history, enum msc_history_axis axis, double x);
// Fills out [n]: the best value at the end of each of n equal parts of the trials or of the time;
// NaN: none yet.
void msc_history_sample(double out[], size_t n, const struct msc_history *history,
                        enum msc_history_axis axis);
// The number of lines at marks[i]: 10, 30, 100, ...
int64_t msc_history_mark(size_t i);
void msc_history_finish(struct msc_history *history); // accepts a zeroed struct

// ---- Downsampled values of all trials ----------------------------------------------------------

// Points whose x is in the same interval.
struct msc_series_part {
    size_t n;                // 0: no points; the other members are undefined
    double first_x, last_x;  // x of the first and the last point
    double first_y, last_y;  // y of the first and the last point
    double least_x, least_y; // the point with the smallest y
    double greatest_x, greatest_y;
    double sum_y;
};

// A series of points (x, y), downsampled as it grows: part i has the points with x in
// [i, i + 1) * width.
struct msc_series {
    struct msc_series_part *parts; // [n_parts]
    size_t n_parts, max_parts;
    double width; // of a part; doubled when more than max_parts would be needed
};

// `width` > 0 is the initial width; max_parts is at least 2. Fails only with MSC_E_NOMEM.
enum msc_status msc_series_init(struct msc_series *series, size_t max_parts, double width);
// Adds a point with x >= 0; points may come in any order. NaN is ignored.
void msc_series_add(struct msc_series *series, double x, double y);
void msc_series_finish(struct msc_series *series); // accepts a zeroed struct

MSC_PUBLIC_END

#endif
