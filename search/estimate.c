#include "search/estimate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "env/env.h"
#include "records/record_query.h"

#include <math.h>

// Parts of a trial line's length: what every line has, one choice, one metric.
#define LINE_BYTES 240
#define CHOICE_BYTES 2.1
#define METRIC_BYTES 36
// For the header and what the file system needs around it.
#define SPARE_BYTES 65536

static void fill_rest(struct msc_estimate *e, const struct msc_search_options *o,
                      int64_t n_budgeted, double elapsed_s) {
    double n_trials = INFINITY;
    if (o->budget.trials >= 0) {
        n_trials = fmax(0.0, (double)(o->budget.trials - n_budgeted));
    }
    if (o->budget.seconds > 0.0 && e->trial_s > 0.0) {
        n_trials = fmin(n_trials, floor(fmax(0.0, o->budget.seconds - elapsed_s) / e->trial_s));
    }
    e->n_trials = fmin(n_trials, e->n_points);
    e->is_counted = o->budget.trials >= 0;
    e->left_s = e->n_trials * e->trial_s;
    if (isnan(e->trial_s) && o->budget.seconds > 0.0) {
        e->left_s = fmax(0.0, o->budget.seconds - elapsed_s);
    }
    e->end_wall_s = msc_clock_wall_seconds() + e->left_s;
    e->record_bytes = e->n_trials * (double)e->line_bytes;
}

enum msc_status msc_estimate_from_record(struct msc_estimate *out, const struct msc_record *record,
                                         const struct msc_search_options *options) {
    const struct msc_space *space = msc_env_space(options->env);
    struct msc_record_counts counts;
    msc_record_count(&counts, record);
    size_t n_evaluated = counts.n_trials - counts.n_repeats;
    *out = (struct msc_estimate){
        .trial_s = NAN,
        .n_measured = n_evaluated,
        .n_points = msc_space_n_points(space),
        .n_recorded = counts.n_trials,
        .line_bytes = LINE_BYTES + (uint64_t)(CHOICE_BYTES * (double)space->n_tasks) +
                      METRIC_BYTES * space->n_metrics,
    };
    if (n_evaluated > 0) {
        out->trial_s = counts.elapsed_s / (double)n_evaluated;
    }
    fill_rest(out, options, (int64_t)counts.n_budgeted, counts.elapsed_s);
    return msc_file_free_bytes(&out->free_bytes, options->record_path);
}

// Time for the baselines, or for one point when there are none.
static enum msc_status measure(struct msc_estimate *e, const struct msc_search_options *o,
                               const struct msc_space *space) {
    enum msc_status status = MSC_OK;
    size_t n = space->n_baselines > 0 ? space->n_baselines : 1;
    uint32_t *point = msc_alloc_zero(space->n_tasks + 1, sizeof *point);
    struct msc_trial *trials = msc_alloc_zero(n, sizeof *trials);
    struct msc_outcome *outcomes = msc_alloc_zero(n, sizeof *outcomes);
    if (!point || !trials || !outcomes) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for %zu trials", n);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        trials[i] = (struct msc_trial){
            .id = (int64_t)i,
            .choices = space->n_baselines > 0 ? space->baselines[i].choices : point,
            .parent = -1,
            .bound = INFINITY,
            .probe = true,
        };
    }
    const struct msc_evaluation evaluation = {.trials = trials, .n = n, .outcomes = outcomes};
    double begin_s = msc_clock_seconds();
    MSC_TRY_OUT(msc_env_evaluate(o->env, o->goal, &evaluation));
    e->trial_s = (msc_clock_seconds() - begin_s) / (double)n;
    e->n_measured = n;
out:
    msc_free(outcomes);
    msc_free(trials);
    msc_free(point);
    return status;
}

enum msc_status msc_estimate_make(struct msc_estimate *out,
                                  const struct msc_search_options *options) {
    const struct msc_space *space = msc_env_space(options->env);
    struct msc_record *record = NULL;
    if (msc_file_exists(options->record_path) && !options->restart) {
        enum msc_status status =
            msc_record_open(&record, options->record_path, MSC_RECORD_READ, options->log);
        if (status == MSC_OK) {
            status = msc_estimate_from_record(out, record, options);
            msc_record_close(record);
        }
        if (status != MSC_E_NOT_FOUND && (status != MSC_OK || out->n_measured > 0)) {
            return status;
        }
    }
    *out = (struct msc_estimate){
        .n_points = msc_space_n_points(space),
        .line_bytes = LINE_BYTES + (uint64_t)(CHOICE_BYTES * (double)space->n_tasks) +
                      METRIC_BYTES * space->n_metrics,
    };
    MSC_TRY(measure(out, options, space));
    // Baselines are written and take their time, too.
    fill_rest(out, options, 0, 0.0);
    return msc_file_free_bytes(&out->free_bytes, options->record_path);
}

static void write_bytes(struct msc_str *out, double n_bytes) {
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (n_bytes >= 1000.0 && unit + 1 < sizeof units / sizeof units[0]) {
        n_bytes /= 1000.0;
        unit++;
    }
    msc_str_printf(out, "%.3g %s", n_bytes, units[unit]);
}

static void write_duration(struct msc_str *out, double seconds) {
    if (seconds < 1e-3) {
        msc_str_printf(out, "%.3g us", seconds * 1e6);
    } else if (seconds < 1.0) {
        msc_str_printf(out, "%.3g ms", seconds * 1e3);
    } else if (seconds < 60.0) {
        msc_str_printf(out, "%.3g s", seconds);
    } else if (seconds < 3600.0) {
        msc_str_printf(out, "%d min %02d s", (int)(seconds / 60.0), (int)fmod(seconds, 60.0));
    } else {
        msc_str_printf(out, "%.0f h %02d min", floor(seconds / 3600.0),
                       (int)fmod(seconds / 60.0, 60.0));
    }
}

enum msc_status msc_estimate_check(const struct msc_estimate *estimate, const char *record_path) {
    // Without a number of trials to go by, an agent may end long before time or space do.
    double need = estimate->is_counted ? estimate->record_bytes : 0.0;
    if ((double)estimate->free_bytes >= need + SPARE_BYTES) {
        return MSC_OK;
    }
    struct msc_str need_text = {0};
    struct msc_str free_text = {0};
    write_bytes(&need_text, need + SPARE_BYTES);
    write_bytes(&free_text, (double)estimate->free_bytes);
    enum msc_status status =
        MSC_FAIL(MSC_E_IO, "%s: the record will need about %s, and its disk has %s free",
                 record_path, msc_str_text(&need_text), msc_str_text(&free_text));
    msc_str_finish(&need_text);
    msc_str_finish(&free_text);
    return status;
}

static void write_budget(struct msc_str *out, const struct msc_estimate *e) {
    char when[MSC_CLOCK_TEXT_BYTES];
    msc_str_append(out, "budget: ");
    if (isfinite(e->n_trials)) {
        msc_str_printf(out, "%.0f trials", e->n_trials);
    } else {
        msc_str_append(out, "no limit on trials");
    }
    if (e->n_recorded > 0) {
        msc_str_printf(out, " after the %zu in the record", e->n_recorded);
    }
    if (isfinite(e->left_s)) {
        msc_str_append(out, ", about ");
        write_duration(out, e->left_s);
        msc_str_printf(out, ", until %s", msc_clock_format(when, e->end_wall_s));
    }
    msc_str_char(out, '\n');
}

void msc_estimate_text(struct msc_str *out, const struct msc_estimate *estimate) {
    if (isfinite(estimate->n_points)) {
        msc_str_printf(out, "space: %.0f points\n", estimate->n_points);
    } else {
        msc_str_append(out, "space: more than 2^53 points\n");
    }
    if (!isnan(estimate->trial_s)) {
        msc_str_append(out, "trial: about ");
        write_duration(out, estimate->trial_s);
        msc_str_printf(out, ", measured on %zu\n", estimate->n_measured);
    }
    write_budget(out, estimate);
    msc_str_append(out, "record: about ");
    write_bytes(out, (double)estimate->line_bytes);
    msc_str_append(out, " a trial, ");
    if (isfinite(estimate->record_bytes)) {
        write_bytes(out, estimate->record_bytes);
        msc_str_append(out, " to come; ");
    }
    write_bytes(out, (double)estimate->free_bytes);
    msc_str_append(out, " free on its disk\n");
}
