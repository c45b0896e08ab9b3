#include "results/history.h"

#include "base/alloc.h"
#include "records/record_scan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// ---- Best so far ------------------------------------------------------------------------------

int64_t msc_history_mark(size_t i) {
    int64_t mark = i % 2 == 0 ? 10 : 30;
    for (; i >= 2; i -= 2) {
        mark *= 10;
    }
    return mark;
}

enum msc_status msc_history_init(struct msc_history *history, const struct msc_goal *goal,
                                 size_t max_steps) {
    assert(max_steps >= 4);
    *history = (struct msc_history){.goal = goal, .max_steps = max_steps};
    history->steps = msc_alloc_zero(max_steps, sizeof *history->steps);
    return MSC_ALLOCATED(history->steps);
}

void msc_history_finish(struct msc_history *history) {
    msc_free(history->steps);
    *history = (struct msc_history){0};
}

// Drops every other step except the first and the last.
static void thin_steps(struct msc_history *history) {
    const struct msc_history_step last = history->steps[history->n_steps - 1];
    size_t n = 0;
    for (size_t i = 0; i + 1 < history->n_steps; i += 2) {
        history->steps[n++] = history->steps[i];
    }
    history->steps[n++] = last;
    history->n_steps = n;
}

static bool is_improvement(const struct msc_history *history, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    double value = outcome->objectives[0]; // negated if maximised: smaller is better
    if (line->is_left_out || outcome->state != MSC_TRIAL_COMPLETE || isnan(value)) {
        return false;
    }
    double sign = history->goal->objectives[0].is_maximised ? -1.0 : 1.0;
    return history->n_last == 0 || value < sign * history->last[0].value;
}

bool msc_history_add(struct msc_history *history, const struct msc_record_line *line) {
    bool is_better = is_improvement(history, line);
    history->n_trials = line->trial.id + 1;
    history->elapsed_s = fmax(history->elapsed_s, line->elapsed_s);
    if (is_better) {
        double sign = history->goal->objectives[0].is_maximised ? -1.0 : 1.0;
        const struct msc_history_step step = {
            .trial = line->trial.id,
            .elapsed_s = history->elapsed_s,
            .value = sign * line->trial.outcome.objectives[0],
        };
        if (history->n_steps == history->max_steps) {
            thin_steps(history);
        }
        history->steps[history->n_steps++] = step;
        history->n_improvements++;
        memmove(&history->last[1], &history->last[0],
                (MSC_HISTORY_LAST - 1) * sizeof history->last[0]);
        history->last[0] = step;
        history->n_last += history->n_last < MSC_HISTORY_LAST;
    }
    while (history->n_marks < MSC_HISTORY_MARKS &&
           msc_history_mark(history->n_marks) <= history->n_trials) {
        history->marks[history->n_marks++] = history->n_last > 0 ? history->last[0].value : NAN;
    }
    return is_better;
}

enum msc_status msc_history_read(struct msc_history *history, const struct msc_record *record,
                                 size_t max_steps) {
    const char *path = msc_record_path(record);
    struct msc_record_scan *scan = NULL;
    const struct msc_record_line *line = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_history_init(history, msc_record_goal(record), max_steps));
    MSC_TRY(msc_record_scan_open(&scan, path, NULL));
    // Lines that were appended since the record was read are not included.
    for (size_t i = 0; i < msc_record_n_trials(record) && status == MSC_OK; i++) {
        status = msc_record_scan_next(&line, scan);
        if (status == MSC_OK && !line) {
            status = MSC_FAIL(MSC_E_IO, "%s: the file changed while it was read; try again", path);
        }
        if (status == MSC_OK) {
            struct msc_record_line noted = *line;
            // Only trials held in memory can be the best, so only they can be marked as left out.
            if (msc_record_holds(record, line->trial.id)) {
                noted.is_left_out = msc_record_trial(record, (size_t)line->trial.id).is_left_out;
            }
            msc_history_add(history, &noted);
        }
    }
    msc_record_scan_close(scan);
    return status;
}

static double step_place(const struct msc_history_step *step, enum msc_history_axis axis) {
    return axis == MSC_HISTORY_TRIALS ? (double)step->trial + 1.0 : step->elapsed_s;
}

double msc_history_at(const struct msc_history *history, enum msc_history_axis axis, double x) {
    size_t low = 0;
    size_t high = history->n_steps;
    while (low < high) { // finds the first step after x
        size_t middle = low + (high - low) / 2;
        if (step_place(&history->steps[middle], axis) <= x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? history->steps[low - 1].value : NAN;
}

void msc_history_sample(double out[], size_t n, const struct msc_history *history,
                        enum msc_history_axis axis) {
    double whole = axis == MSC_HISTORY_TRIALS ? (double)history->n_trials : history->elapsed_s;
    for (size_t i = 0; i < n; i++) {
        double x = i + 1 == n ? whole : whole * (double)(i + 1) / (double)n;
        out[i] = msc_history_at(history, axis, x);
    }
}

// ---- Any value of all trials ------------------------------------------------------------------

enum msc_status msc_series_init(struct msc_series *series, size_t max_parts, double width) {
    assert(max_parts >= 2 && width > 0.0);
    *series = (struct msc_series){.max_parts = max_parts, .width = width};
    series->parts = msc_alloc_zero(max_parts, sizeof *series->parts);
    return MSC_ALLOCATED(series->parts);
}

void msc_series_finish(struct msc_series *series) {
    msc_free(series->parts);
    *series = (struct msc_series){0};
}

// Merges the points of `b` into `a`.
static void merge_parts(struct msc_series_part *a, const struct msc_series_part *b) {
    if (b->n == 0) {
        return;
    }
    if (a->n == 0) {
        *a = *b;
        return;
    }
    if (b->first_x < a->first_x) {
        a->first_x = b->first_x;
        a->first_y = b->first_y;
    }
    if (b->last_x >= a->last_x) {
        a->last_x = b->last_x;
        a->last_y = b->last_y;
    }
    if (b->least_y < a->least_y) {
        a->least_x = b->least_x;
        a->least_y = b->least_y;
    }
    if (b->greatest_y > a->greatest_y) {
        a->greatest_x = b->greatest_x;
        a->greatest_y = b->greatest_y;
    }
    a->n += b->n;
    a->sum_y += b->sum_y;
}

// Halves the number of parts.
static void merge_pairs(struct msc_series *series) {
    for (size_t i = 0; i < series->n_parts; i += 2) {
        struct msc_series_part pair = series->parts[i];
        if (i + 1 < series->n_parts) {
            merge_parts(&pair, &series->parts[i + 1]);
        }
        series->parts[i / 2] = pair;
    }
    size_t n = (series->n_parts + 1) / 2;
    memset(series->parts + n, 0, (series->max_parts - n) * sizeof *series->parts);
    series->n_parts = n;
    series->width *= 2.0;
}

void msc_series_add(struct msc_series *series, double x, double y) {
    const struct msc_series_part point = {
        .n = 1,
        .first_x = x,
        .last_x = x,
        .first_y = y,
        .last_y = y,
        .least_x = x,
        .least_y = y,
        .greatest_x = x,
        .greatest_y = y,
        .sum_y = y,
    };
    if (!(x >= 0.0 && isfinite(x)) || isnan(y)) {
        return;
    }
    while (x / series->width >= (double)series->max_parts) {
        merge_pairs(series);
    }
    size_t i = (size_t)(x / series->width);
    merge_parts(&series->parts[i], &point);
    series->n_parts = i + 1 > series->n_parts ? i + 1 : series->n_parts;
}
