#include "report/verdict.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "env/api/space.h"
#include "env/api/trial.h"
#include "search/report.h"
#include "search/report_runtime.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

// A noise that makes the order of near plans a matter of luck.
#define NOISE_TO_MENTION 0.02
// A loss on validation samples that is so many times the search's own: it does not carry over.
#define VALIDATION_TO_MENTION 1.5
// Latencies nearer than that are one.
#define SAME_LATENCY 0.02
// A mean square of errors over that of the outputs: a third of their size.
#define FAR_LOSS 0.1

struct verdict {
    const cJSON *report;
    const cJSON *winner; // what is delivered
    const cJSON *reference;
    const cJSON *eight;    // the uniform plan of 8 bits, or NULL
    const char *objective; // metric
    bool is_maximised;
    bool is_relative; // distill_loss is a mean square over that of the outputs
    cJSON *reasons;
    struct msc_str text; // the sentence being written
};

static const cJSON *verdict_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static double verdict_number(const cJSON *object, const char *key) {
    const cJSON *item = verdict_get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static double metric_of(const cJSON *row, const char *metric) {
    return verdict_number(verdict_get(row, "metrics"), metric);
}

static bool is_in_state(const cJSON *row, enum msc_trial_state state) {
    const cJSON *text = verdict_get(row, "state");
    return cJSON_IsString(text) && strcmp(text->valuestring, msc_trial_state_name(state)) == 0;
}

// "trial 17", "uniform 8".
static void write_plan(struct msc_str *out, const cJSON *row) {
    const cJSON *label = verdict_get(row, "label");
    if (label) {
        msc_str_append(out, msc_baseline_kind(label->valuestring));
        msc_shown_append(out, label->valuestring);
    } else {
        msc_str_printf(out, "trial %.0f", verdict_number(row, "id"));
    }
}

// The sentence becomes a reason.
static enum msc_status end_reason(struct verdict *v) {
    MSC_TRY(msc_str_status(&v->text));
    MSC_TRY(msc_json_push(v->reasons, cJSON_CreateString(msc_str_text(&v->text))));
    msc_str_clear(&v->text);
    return MSC_OK;
}

// ---- Bounds -----------------------------------------------------------------------------------

static void write_limit(struct msc_str *out, const cJSON *bound) {
    const cJSON *min = verdict_get(bound, "min"), *max = verdict_get(bound, "max");
    if (max) {
        msc_str_printf(out, "at most %.4g", max->valuedouble);
    }
    if (min) {
        msc_str_printf(out, "%sat least %.4g", max ? " and " : "", min->valuedouble);
    }
}

// "size_ratio at most 0.2, macs_ratio at most 0.4"
static void write_bounds(struct msc_str *out, const cJSON *report) {
    const cJSON *bound = NULL;
    const char *before = "";
    cJSON_ArrayForEach(bound, verdict_get(report, "bounds")) {
        msc_str_append(out, before);
        msc_shown_append(out, verdict_get(bound, "metric")->valuestring);
        msc_str_char(out, ' ');
        write_limit(out, bound);
        before = ", ";
    }
}

static bool breaks(const cJSON *row, const cJSON *bound) {
    double value = metric_of(row, verdict_get(bound, "metric")->valuestring);
    return value > verdict_number(bound, "max") || value < verdict_number(bound, "min");
}

// "size_ratio is 0.24, allowed is at most 0.2" of each that is broken.
static void write_broken(struct msc_str *out, const cJSON *report, const cJSON *row) {
    const cJSON *bound = NULL;
    const char *before = "";
    cJSON_ArrayForEach(bound, verdict_get(report, "bounds")) {
        if (breaks(row, bound)) {
            const char *metric = verdict_get(bound, "metric")->valuestring;
            msc_str_append(out, before);
            msc_shown_append(out, metric);
            msc_str_printf(out, " is %.4g, allowed is ", metric_of(row, metric));
            write_limit(out, bound);
            before = "; ";
        }
    }
}

// ---- Reasons ----------------------------------------------------------------------------------

static enum msc_status add_standing(struct verdict *v) {
    double n = verdict_number(verdict_get(v->report, "counts"), "complete");
    double value = metric_of(v->winner, v->objective);
    const cJSON *by = verdict_get(verdict_get(v->report, "reranked"), "by");
    if (by) {
        msc_str_append(&v->text, "Of the best trials, measured once more as exported models, it is "
                                 "the first by ");
        msc_shown_append(&v->text, msc_report__text(verdict_get(v->report, "reranked"), "by"));
        msc_str_char(&v->text, '.');
        MSC_TRY(end_reason(v));
    }
    msc_str_printf(&v->text, "%s ", by ? "The search measured" : "It has");
    if (!by) {
        msc_str_printf(&v->text, "the %s ", v->is_maximised ? "greatest" : "least");
    }
    msc_shown_append(&v->text, v->objective);
    msc_str_printf(&v->text, "%s %.4g", by ? " of" : ",", value);
    if (!by) {
        msc_str_printf(&v->text, ", of the %.0f trial%s that ", n, n == 1.0 ? "" : "s");
        bool has_bounds = cJSON_GetArraySize(verdict_get(v->report, "bounds")) > 0;
        msc_str_append(&v->text, has_bounds ? "meet the bounds (" : "came to a result");
        if (has_bounds) {
            write_bounds(&v->text, v->report);
            msc_str_char(&v->text, ')');
        }
    }
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

static bool is_far(const struct verdict *v) {
    return v->is_relative && metric_of(v->winner, "distill_loss") >= FAR_LOSS;
}

// What a loss is, for those who have not seen one.
static enum msc_status add_size_of_loss(struct verdict *v) {
    double loss = metric_of(v->winner, "distill_loss");
    if (!v->is_relative || isnan(loss)) {
        return MSC_OK;
    }
    msc_str_printf(&v->text, "Its outputs are off by %.2g %% of their size (root mean square)",
                   100.0 * sqrt(loss));
    if (is_far(v)) {
        msc_str_append(&v->text,
                       ": try it on what the model is for before it goes anywhere, or allow "
                       "more bits");
    }
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

static bool is_better(const struct verdict *v, const cJSON *a, const cJSON *b) {
    double x = metric_of(a, v->objective), y = metric_of(b, v->objective);
    return isnan(y) ? !isnan(x) : v->is_maximised ? x > y : x < y;
}

static bool is_uniform(const cJSON *row) {
    const cJSON *label = verdict_get(row, "label");
    return label && msc_baseline_kind(label->valuestring)[0] != '\0';
}

static enum msc_status add_uniform_plans(struct verdict *v) {
    const cJSON *row = NULL, *best = NULL, *first = NULL;
    cJSON_ArrayForEach(row, verdict_get(v->report, "baselines")) {
        if (!is_uniform(row)) {
            continue;
        }
        first = first ? first : row;
        bool is_candidate = is_in_state(row, MSC_TRIAL_COMPLETE) && !verdict_get(row, "left_out");
        best = is_candidate && (!best || is_better(v, row, best)) ? row : best;
    }
    if (!first || (best && verdict_number(best, "id") == verdict_number(v->winner, "id"))) {
        return MSC_OK;
    }
    if (!best) {
        msc_str_append(&v->text, "No uniform plan meets the bounds: with ");
        write_plan(&v->text, first);
        msc_str_char(&v->text, ' ');
        write_broken(&v->text, v->report, first);
        msc_str_char(&v->text, '.');
        return end_reason(v);
    }
    double ours = metric_of(v->winner, v->objective), theirs = metric_of(best, v->objective);
    double times = v->is_maximised ? ours / theirs : theirs / ours;
    msc_str_append(&v->text, "The best uniform plan that may be deployed, ");
    write_plan(&v->text, best);
    msc_str_printf(&v->text, ", has %.4g", theirs);
    if (isfinite(times) && times > 1.0) {
        msc_str_printf(&v->text, ": %.3g times as %s", v->is_maximised ? 1.0 / times : times,
                       "much");
    }
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

// What is left of the uncompressed model: a metric, and how it is called here.
static const struct {
    const char *metric, *words;
} ratios[] = {
    {"size_ratio", "of the bytes of its weights"},
    {"macs_ratio", "of its multiply-accumulates"},
    {"bit_ops_ratio", "of its bit operations"},
};

static enum msc_status add_savings(struct verdict *v) {
    size_t n = 0;
    double accuracy = metric_of(v->winner, "accuracy");
    double whole = metric_of(v->reference, "accuracy");
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        double ratio = metric_of(v->winner, ratios[i].metric);
        if (ratio < 1.0) {
            msc_str_printf(&v->text, "%s%.3g %% %s", n++ > 0 ? ", " : "Of the model it leaves ",
                           100.0 * ratio, ratios[i].words);
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
    return end_reason(v);
}

static enum msc_status add_validation(struct verdict *v) {
    const cJSON *of = verdict_get(verdict_get(v->winner, "examined"), "validation");
    double loss = verdict_number(of, "distill_loss"), own = metric_of(v->winner, "distill_loss");
    double accuracy = verdict_number(of, "accuracy");
    if (!of || isnan(loss)) {
        msc_str_append(&v->text,
                       "It was not measured on samples that the search did not choose by: "
                       "give dataset.validation.");
        return end_reason(v);
    }
    msc_str_printf(&v->text, "On %.0f samples that nothing was chosen by, distill_loss is %.4g",
                   verdict_number(of, "samples"), loss);
    if (!isnan(accuracy)) {
        msc_str_printf(&v->text, " and accuracy %.4g %%, uncompressed %.4g %%", 100.0 * accuracy,
                       100.0 * verdict_number(of, "float_accuracy"));
    }
    if (loss > VALIDATION_TO_MENTION * own) {
        msc_str_printf(&v->text,
                       ": %.3g times that of the search, so more samples to calibrate with "
                       "may help",
                       loss / own);
    }
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

static enum msc_status add_runtime_numbers(struct verdict *v) {
    const cJSON *runtime = verdict_get(v->report, "runtime");
    const cJSON *examined = verdict_get(v->winner, "examined");
    const cJSON *there = verdict_get(examined, "runtime");
    const cJSON *beside = verdict_get(v->reference, "examined");
    double us = verdict_number(there, "latency_us"), bytes = verdict_number(examined, "file_bytes");
    if (!there || !runtime) {
        return MSC_OK;
    }
    msc_str_append(&v->text, "In ");
    msc_shown_append(&v->text, msc_report__text(runtime, "name"));
    msc_str_printf(&v->text, " its file has %.0f bytes, uncompressed %.0f", bytes,
                   verdict_number(beside, "file_bytes"));
    if (!isnan(us)) {
        double ratio = verdict_number(there, "latency_ratio");
        msc_str_printf(&v->text,
                       us < 1e3 ? ", and a sample takes %.4g µs" : ", and a sample takes %.4g ms",
                       us < 1e3 ? us : 1e-3 * us);
        if (fabs(ratio - 1.0) < SAME_LATENCY) {
            msc_str_append(&v->text, ", as uncompressed");
        } else {
            msc_str_printf(&v->text, ", %.3g times as long as uncompressed", ratio);
        }
    }
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

// The lines of the text report on the runtime, but for the first, which names it.
static enum msc_status add_runtime_words(struct verdict *v) {
    struct msc_str lines = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_report__write_runtime(&lines, v->report));
    const cJSON *missing = verdict_get(verdict_get(v->report, "runtime"), "missing");
    const char *line = msc_str_text(&lines);
    const char *first_end = strchr(line, '\n');
    line = missing || !first_end ? line : first_end + 1;
    for (const char *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
        bool is_lower = *line >= 'a' && *line <= 'z';
        msc_str_char(&v->text, is_lower ? (char)(*line - 'a' + 'A') : *line);
        msc_str_append_n(&v->text, line + 1, (size_t)(end - line - 1));
        msc_str_char(&v->text, '.');
        MSC_TRY_OUT(end_reason(v));
    }
out:
    msc_str_finish(&lines);
    return status;
}

static enum msc_status add_noise(struct verdict *v) {
    double noise = verdict_number(verdict_get(v->winner, "examined"), "noise");
    if (!(noise > NOISE_TO_MENTION)) {
        return MSC_OK;
    }
    msc_str_printf(&v->text,
                   "Rounding alone may move its distill_loss by %.2g %%: plans nearer than that "
                   "are equals.",
                   100.0 * noise);
    return end_reason(v);
}

static enum msc_status add_distilled(struct verdict *v) {
    const cJSON *distilled = verdict_get(v->report, "distilled");
    if (!distilled) {
        return MSC_OK;
    }
    msc_report_distilled_text(&v->text, distilled);
    msc_str_char(&v->text, '.');
    return end_reason(v);
}

static enum msc_status add_end(struct verdict *v) {
    const cJSON *end = verdict_get(v->report, "end");
    for (int i = 0; cJSON_IsString(end) && i < MSC_SEARCH_END_COUNT; i++) {
        if (strcmp(end->valuestring, msc_search_end_name((enum msc_search_end)i)) == 0) {
            msc_str_printf(&v->text, "The search has ended: %s.",
                           msc_search_end_text((enum msc_search_end)i));
            return end_reason(v);
        }
    }
    msc_str_append(&v->text,
                   "The search has not come to its end: what is best may still change, and "
                   "nothing was measured once more.");
    return end_reason(v);
}

// ---- The whole --------------------------------------------------------------------------------

static void take_objective(struct verdict *v) {
    const cJSON *first = cJSON_GetArrayItem(verdict_get(v->report, "objectives"), 0);
    v->objective = verdict_get(first, "metric")->valuestring;
    v->is_maximised = cJSON_IsTrue(verdict_get(first, "maximise"));
}

static enum msc_status add_reasons(struct verdict *v) {
    MSC_TRY(add_standing(v));
    MSC_TRY(add_size_of_loss(v));
    MSC_TRY(add_uniform_plans(v));
    MSC_TRY(add_runtime_words(v));
    MSC_TRY(add_savings(v));
    MSC_TRY(add_runtime_numbers(v));
    MSC_TRY(add_validation(v));
    MSC_TRY(add_noise(v));
    return add_distilled(v);
}

static enum msc_status add_infeasible(struct verdict *v) {
    msc_str_append(&v->text, "The nearest is ");
    write_plan(&v->text, v->winner);
    msc_str_append(&v->text, ": ");
    write_broken(&v->text, v->report, v->winner);
    msc_str_char(&v->text, '.');
    MSC_TRY(end_reason(v));
    msc_str_append(&v->text, "Give the search more trials, cheaper choices or wider bounds.");
    return end_reason(v);
}

static const char *kind_of(const struct verdict *v) {
    return !cJSON_IsObject(v->winner)                    ? "none"
           : !is_in_state(v->winner, MSC_TRIAL_COMPLETE) ? "infeasible"
           : is_far(v)                                   ? "far"
           : verdict_get(v->winner, "label")             ? "uniform"
           : msc_report__is_not_better(v->report)        ? "caution"
                                                         : "deploy";
}

static void write_headline(struct verdict *v, const char *kind) {
    if (strcmp(kind, "none") == 0) {
        msc_str_append(&v->text, "There is nothing to deploy yet: no trial has a result.");
    } else if (strcmp(kind, "infeasible") == 0) {
        msc_str_append(&v->text, "There is nothing to deploy: no trial meets every bound.");
    } else if (strcmp(kind, "far") == 0) {
        msc_str_append(&v->text, "The best that was found, ");
        write_plan(&v->text, v->winner);
        msc_str_append(&v->text, ", is far from the model: do not deploy it untried.");
    } else if (strcmp(kind, "caution") == 0) {
        write_plan(&v->text, v->winner);
        v->text.data[0] = 'T'; // "Trial 17"
        msc_str_append(&v->text, " is not better than ");
        write_plan(&v->text, v->eight);
        bool may = is_in_state(v->eight, MSC_TRIAL_COMPLETE);
        msc_str_append(&v->text, may ? ": deploy that, which needs no search."
                                     : ", but that does not meet the bounds.");
    } else {
        msc_str_append(&v->text, "Deploy ");
        write_plan(&v->text, v->winner);
        msc_str_append(&v->text,
                       strcmp(kind, "uniform") == 0 ? ": nothing that was found is better." : ".");
    }
}

static enum msc_status fill(cJSON *verdict, struct verdict *v) {
    const char *kind = kind_of(v);
    MSC_TRY(msc_json_add_text(verdict, "kind", kind));
    write_headline(v, kind);
    MSC_TRY(msc_str_status(&v->text));
    MSC_TRY(msc_json_add_text(verdict, "headline", msc_str_text(&v->text)));
    msc_str_clear(&v->text);
    v->reasons = cJSON_CreateArray();
    MSC_TRY(msc_json_add(verdict, "reasons", v->reasons));
    bool is_feasible = cJSON_IsObject(v->winner) && is_in_state(v->winner, MSC_TRIAL_COMPLETE);
    if (is_feasible) {
        MSC_TRY(add_reasons(v));
    } else if (cJSON_IsObject(v->winner)) {
        MSC_TRY(add_infeasible(v));
    }
    MSC_TRY(add_end(v));
    if (!is_feasible) {
        return MSC_OK;
    }
    msc_str_append(&v->text, "mscgym export ");
    msc_shown_append(&v->text, verdict_get(v->report, "record")->valuestring);
    msc_str_append(&v->text, " -o compressed.onnx");
    MSC_TRY(msc_str_status(&v->text));
    return msc_json_add_text(verdict, "command", msc_str_text(&v->text));
}

enum msc_status msc_verdict_make(struct cJSON **out, const struct cJSON *report, const char *loss) {
    struct verdict v = {.report = report,
                        .is_relative = loss && strcmp(loss, "mse") == 0,
                        .winner = msc_report__find_delivered(report),
                        .reference = verdict_get(report, "reference"),
                        .eight = msc_report__find_uniform_8(report)};
    cJSON *verdict = cJSON_CreateObject();
    take_objective(&v);
    enum msc_status status =
        verdict ? fill(verdict, &v) : MSC_FAIL(MSC_E_NOMEM, "out of memory for a verdict");
    msc_str_finish(&v.text);
    if (status != MSC_OK) {
        cJSON_Delete(verdict);
        return status;
    }
    *out = verdict;
    return MSC_OK;
}
