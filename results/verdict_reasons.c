// Reasons for or against a plan that meets the bounds.
#include "results/verdict_internal.h"

#include "base/shown.h"
#include "env/api/space.h"
#include "results/report.h"
#include "results/report_drop.h"
#include "results/report_rows.h"
#include "results/report_runtime.h"
#include "results/report_sameness.h"
#include "results/units.h"

#include <math.h>
#include <string.h>

// Relative noise above which the order of similar plans is a matter of luck.
#define NOISE_TO_MENTION 0.02
// If the loss on validation samples is this many times the search's loss, the plan does not
// generalise.
#define VALIDATION_TO_MENTION 1.5
// Latencies with a smaller relative difference count as equal.
#define SAME_LATENCY 0.02
// Relative mean squared error above which outputs are far off: the errors are about a third of the
// outputs' size.
#define FAR_LOSS 0.1

static void write_value(struct msc_verdict__state *v, const cJSON *row) {
    msc_unit_value(&v->text, v->objective, msc_verdict__metric(row, v->objective));
}

// Adds a reason such as "Of the best trials, measured again as exported models, it is first by time
// of a run (in the runtime)."
static enum msc_status add_rank(struct msc_verdict__state *v) {
    msc_str_append(&v->text,
                   "Of the best trials, measured again as exported models, it is first by ");
    msc_unit_phrase(&v->text, msc_report__text(msc_verdict__get(v->report, "reranked"), "by"));
    msc_str_char(&v->text, '.');
    MSC_TRY(msc_verdict__end_reason(v));
    msc_str_append(&v->text, "In the search, its ");
    msc_unit_phrase(&v->text, v->objective);
    msc_str_append(&v->text, " was ");
    write_value(v, v->plan_of_search);
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

// Adds a reason such as "It has the least loss, 0.0001, of the 7 trials that meet the bounds
// (relative size at most 20 %)."
static enum msc_status add_standing(struct msc_verdict__state *v) {
    double n = msc_verdict__number(msc_verdict__get(v->report, "counts"), "complete");
    bool has_bounds = cJSON_GetArraySize(msc_verdict__get(v->report, "bounds")) > 0;
    bool is_same = v->plan_of_search == v->plan;
    msc_str_printf(&v->text, is_same ? "It has the %s " : "In the search it had the %s ",
                   v->is_maximised ? "greatest" : "least");
    msc_unit_phrase(&v->text, v->objective);
    msc_str_append(&v->text, ", ");
    write_value(v, v->plan_of_search);
    msc_str_printf(&v->text, n == 1.0 ? ", of the %.0f trial that " : ", of the %.0f trials that ",
                   n);
    if (has_bounds) {
        msc_str_append(&v->text, n == 1.0 ? "meets the bounds (" : "meet the bounds (");
        msc_verdict__write_bounds(&v->text, v->report);
        msc_str_char(&v->text, ')');
    } else {
        msc_str_append(&v->text, "produced a result");
    }
    if (!is_same) {
        msc_str_append(&v->text, "; with better weights it has ");
        write_value(v, v->plan);
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

// For several objectives, adds a reason such as "The front has 5 plans, which trade loss for
// relative size."
static enum msc_status add_front(struct msc_verdict__state *v) {
    const cJSON *objectives = msc_verdict__get(v->report, "objectives");
    if (v->n_objectives < 2 || !(v->n_front > 1.0)) {
        return MSC_OK;
    }
    msc_str_printf(&v->text, "The front has %.0f plans, which trade ", v->n_front);
    msc_unit_phrase(&v->text, v->objective);
    const cJSON *other = objectives->child->next;
    for (const char *before = " for "; other; other = other->next, before = " and ") {
        msc_str_append(&v->text, before);
        msc_unit_phrase(&v->text, msc_report__text(other, "metric"));
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

bool msc_verdict__is_far(const struct msc_verdict__state *v) {
    return v->is_relative && msc_verdict__metric(v->plan, "distill_loss") >= FAR_LOSS;
}

// Explains the size of a loss to a reader who does not know the scale.
static enum msc_status add_size_of_loss(struct msc_verdict__state *v) {
    double loss = msc_verdict__metric(v->plan, "distill_loss");
    if (!v->is_relative || isnan(loss) || msc_report__is_blind(v->report)) {
        return MSC_OK;
    }
    msc_str_printf(&v->text, "Its outputs are off by %.2g %% of their size (root mean square)",
                   100.0 * sqrt(loss));
    if (msc_verdict__is_far(v)) {
        msc_str_append(&v->text,
                       ": test it on the model's task before you deploy it, or allow more "
                       "bits");
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

static bool is_better(const struct msc_verdict__state *v, const cJSON *a, const cJSON *b) {
    double x = msc_verdict__metric(a, v->objective), y = msc_verdict__metric(b, v->objective);
    return isnan(y) ? !isnan(x) : v->is_maximised ? x > y : x < y;
}

static bool is_uniform(const cJSON *row) {
    const cJSON *label = msc_verdict__get(row, "label");
    return cJSON_IsString(label) && msc_baseline_kind(label->valuestring)[0] != '\0';
}

static const cJSON *find_best_uniform(const struct msc_verdict__state *v) {
    const cJSON *row = NULL, *best = NULL;
    cJSON_ArrayForEach(row, msc_verdict__get(v->report, "baselines")) {
        bool may = is_uniform(row) && msc_verdict__is_in_state(row, MSC_TRIAL_COMPLETE) &&
                   !msc_verdict__get(row, "left_out");
        best = may && (!best || is_better(v, row, best)) ? row : best;
    }
    return best;
}

static const cJSON *find_broken_uniform(const struct msc_verdict__state *v) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, msc_verdict__get(v->report, "baselines")) {
        if (is_uniform(row) && msc_verdict__is_broken(v->report, row)) {
            return row;
        }
    }
    return NULL;
}

static enum msc_status add_best_uniform(struct msc_verdict__state *v, const cJSON *best) {
    double ours = msc_verdict__metric(v->plan, v->objective);
    double theirs = msc_verdict__metric(best, v->objective);
    bool is_worse = v->is_maximised ? theirs < ours : theirs > ours;
    msc_str_append(&v->text, "The best uniform plan within the bounds, ");
    msc_verdict__write_plan(&v->text, best);
    msc_str_append(&v->text, ", has ");
    msc_unit_value(&v->text, v->objective, theirs);
    if (is_worse && ours > 0.0 && theirs > 0.0) {
        msc_str_printf(&v->text, ": %.3g times as much", theirs / ours);
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

static enum msc_status add_uniform_plans(struct msc_verdict__state *v) {
    const cJSON *best = find_best_uniform(v), *broken = find_broken_uniform(v);
    if (best) {
        bool is_plan = v->plan_of_search == v->plan &&
                       msc_verdict__number(best, "id") == msc_verdict__number(v->plan, "id");
        return is_plan ? MSC_OK : add_best_uniform(v, best);
    }
    if (!broken) {
        return MSC_OK;
    }
    msc_str_append(&v->text, "No uniform plan meets the bounds: with ");
    msc_verdict__write_plan(&v->text, broken);
    msc_str_char(&v->text, ' ');
    msc_verdict__write_broken(&v->text, v->report, broken);
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

// Metrics relative to the uncompressed model, with the words that describe each of them.
static const struct {
    const char *metric, *words;
} ratios[] = {
    {"size_ratio", "of the model's weight bytes"},
    {"macs_ratio", "of the multiply-accumulates"},
    {"bit_ops_ratio", "of the bit operations"},
};

static enum msc_status add_savings(struct msc_verdict__state *v) {
    size_t n = 0;
    double accuracy = msc_verdict__metric(v->plan, "accuracy");
    double whole = msc_verdict__metric(v->reference, "accuracy");
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        double ratio = msc_verdict__metric(v->plan, ratios[i].metric);
        if (ratio < 1.0) {
            msc_str_printf(&v->text, "%s%.3g %% %s", n++ > 0 ? ", " : "It keeps ", 100.0 * ratio,
                           ratios[i].words);
        }
    }
    if (!isnan(accuracy)) {
        msc_str_printf(&v->text, "%s%.4g %%", n > 0 ? "; accuracy " : "Its accuracy is ",
                       100.0 * accuracy);
        if (!isnan(whole)) {
            msc_str_printf(&v->text, ", uncompressed %.4g %%", 100.0 * whole);
        }
        n++;
    }
    if (n == 0) {
        return MSC_OK;
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

// True if a search with a dataset has no validation samples (samples that a search does not use).
static bool lacks_validation(const struct msc_verdict__state *v) {
    const cJSON *dataset = msc_verdict__get(v->config, "dataset");
    return msc_verdict__get(v->report, "end") && dataset &&
           !msc_verdict__get(dataset, "validation");
}

// Adds a reason for each bound by drop, such as "The drop of accuracy is 0.19 % (standard error
// 0.32 %) on 540 validation samples."
static enum msc_status add_drops(struct msc_verdict__state *v) {
    const cJSON *bound = NULL;
    cJSON_ArrayForEach(bound, msc_verdict__get(v->report, "bounds")) {
        struct msc_report_drop drop;
        struct msc_str text = {0};
        enum msc_status status = MSC_OK;
        if (msc_report__read_drop(&drop, bound) &&
            msc_report__write_held_out(&text, &drop, v->plan)) {
            msc_str_append(&v->text, "The ");
            msc_unit_phrase(&v->text, drop.name);
            msc_str_printf(&v->text, " is %s.", msc_str_text(&text));
            status = msc_str_status(&text);
            status = status == MSC_OK ? msc_verdict__end_reason(v) : status;
        }
        msc_str_finish(&text);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status add_validation(struct msc_verdict__state *v) {
    const cJSON *of = msc_verdict__get(msc_verdict__get(v->plan, "examined"), "validation");
    double loss = msc_verdict__number(of, "distill_loss"),
           own = msc_verdict__metric(v->plan, "distill_loss");
    double accuracy = msc_verdict__number(of, "accuracy");
    bool was_measured = of && !isnan(loss);
    if (!was_measured && !lacks_validation(v)) {
        return MSC_OK;
    }
    if (!was_measured) {
        msc_str_append(
            &v->text,
            "It was not measured on samples that the search did not use: add dataset.validation.");
        return msc_verdict__end_reason(v);
    }
    msc_str_printf(&v->text, "On %.0f samples that the search did not use, the loss is ",
                   msc_verdict__number(of, "samples"));
    msc_unit_value(&v->text, "distill_loss", loss);
    if (!isnan(accuracy)) {
        msc_str_printf(&v->text, " and accuracy %.4g %%, uncompressed %.4g %%", 100.0 * accuracy,
                       100.0 * msc_verdict__number(of, "float_accuracy"));
    }
    if (loss > VALIDATION_TO_MENTION * own) {
        msc_str_printf(&v->text,
                       ": %.3g times the search's loss, so more calibration samples may help",
                       loss / own);
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

static enum msc_status add_runtime_numbers(struct msc_verdict__state *v) {
    const cJSON *runtime = msc_verdict__get(v->report, "runtime");
    const cJSON *examined = msc_verdict__get(v->plan, "examined");
    const cJSON *there = msc_verdict__get(examined, "runtime");
    const cJSON *beside = msc_verdict__get(v->reference, "examined");
    double us = msc_verdict__number(there, "latency_us"),
           bytes = msc_verdict__number(examined, "file_bytes");
    if (!there || !runtime) {
        return MSC_OK;
    }
    msc_str_append(&v->text, "In ");
    msc_shown_append(&v->text, msc_report__text(runtime, "name"));
    msc_str_append(&v->text, " its file has ");
    msc_unit_value(&v->text, "file_bytes", bytes);
    msc_str_append(&v->text, ", uncompressed ");
    msc_unit_value(&v->text, "file_bytes", msc_verdict__number(beside, "file_bytes"));
    if (!isnan(us)) {
        double ratio = msc_verdict__number(there, "latency_ratio");
        msc_str_append(&v->text, ", and a sample takes ");
        msc_unit_value(&v->text, "latency_us", us);
        if (fabs(ratio - 1.0) < SAME_LATENCY) {
            msc_str_append(&v->text, ", the same as uncompressed");
        } else {
            msc_str_printf(&v->text, ", %.3g times as long as uncompressed", ratio);
        }
    }
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

// Adds each line of a text as a reason.
static enum msc_status add_lines(struct msc_verdict__state *v, const char *line) {
    for (const char *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
        bool is_lower = *line >= 'a' && *line <= 'z';
        msc_str_char(&v->text, is_lower ? (char)(*line - 'a' + 'A') : *line);
        msc_str_append_n(&v->text, line + 1, (size_t)(end - line - 1));
        msc_str_char(&v->text, '.');
        MSC_TRY(msc_verdict__end_reason(v));
    }
    return MSC_OK;
}

// Adds the text report's lines about the runtime, except the first, which only names the runtime.
static enum msc_status add_runtime_words(struct msc_verdict__state *v) {
    struct msc_str lines = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_report__write_runtime(&lines, v->report));
    const cJSON *missing = msc_verdict__get(msc_verdict__get(v->report, "runtime"), "missing");
    const char *line = msc_str_text(&lines);
    const char *first_end = strchr(line, '\n');
    status = add_lines(v, missing || !first_end ? line : first_end + 1);
out:
    msc_str_finish(&lines);
    return status;
}

static enum msc_status add_sameness(struct msc_verdict__state *v) {
    struct msc_str lines = {0};
    msc_report__write_sameness(&lines, v->report);
    enum msc_status status = msc_str_status(&lines);
    if (status == MSC_OK) {
        status = add_lines(v, msc_str_text(&lines));
    }
    msc_str_finish(&lines);
    return status;
}

static enum msc_status add_noise(struct msc_verdict__state *v) {
    double noise = msc_verdict__number(msc_verdict__get(v->plan, "examined"), "noise");
    if (!(noise > NOISE_TO_MENTION)) {
        return MSC_OK;
    }
    msc_str_printf(&v->text,
                   "Rounding can change its loss by %.2g %%: plans that differ by less "
                   "are equal.",
                   100.0 * noise);
    return msc_verdict__end_reason(v);
}

static enum msc_status add_distilled(struct msc_verdict__state *v) {
    const cJSON *distilled = msc_verdict__get(v->report, "distilled");
    if (!distilled) {
        return MSC_OK;
    }
    msc_report_distilled_text(&v->text, distilled);
    msc_str_char(&v->text, '.');
    return msc_verdict__end_reason(v);
}

enum msc_status msc_verdict__add_reasons(struct msc_verdict__state *v) {
    MSC_TRY(msc_verdict__get(v->report, "reranked") ? add_rank(v) : add_standing(v));
    MSC_TRY(add_sameness(v));
    MSC_TRY(add_front(v));
    MSC_TRY(add_size_of_loss(v));
    MSC_TRY(add_uniform_plans(v));
    MSC_TRY(add_runtime_words(v));
    MSC_TRY(add_savings(v));
    MSC_TRY(add_runtime_numbers(v));
    MSC_TRY(add_validation(v));
    MSC_TRY(add_drops(v));
    MSC_TRY(add_noise(v));
    return add_distilled(v);
}
