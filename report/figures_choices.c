// The figure of the best trials' choices as parallel coordinates: an axis for each task that
// matters most, for the cost and for the objective, as on a page (report/page_choices.js).
#include "report/figures_internal.h"

#include "base/heap.h"
#include "env/api/trial.h"
#include "model/output.h"
#include "report/html.h"
#include "report/page_internal.h"
#include "results/units.h"

#include <string.h>

enum { WIDTH = 720, LEFT = 24, RIGHT = 24, TOP = 40, STEP = 58, MOST_LINES = 300, MOST_AXES = 8 };

struct axis {
    const char *title;
    const cJSON *labels;              // of a task; NULL: a metric
    const char *metric;               // of a metric
    struct msc_figure_numbers values; // of all points: a choice or a number
    double least, most;
    bool is_log;
};

struct choices {
    const struct msc_figures_subject *s;
    struct axis axes[MOST_AXES];
    size_t n_axes;
    struct msc_figure_numbers state, objective;
    bool is_maximised;
    size_t *order; // points within the bounds, best first
    size_t n;
};

static bool is_better(const void *context, const void *a, const void *b) {
    const struct choices *c = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double x = c->objective.at[i], y = c->objective.at[j];
    return x != y ? (c->is_maximised ? x > y : x < y) : i < j;
}

static enum msc_status rank_points(struct choices *c) {
    size_t spare;
    c->order = msc_arena_array(&c->s->to->arena, c->objective.n + 1, sizeof c->order[0]);
    MSC_TRY(MSC_ALLOCATED(c->order));
    for (size_t i = 0; i < c->objective.n && i < c->state.n; i++) {
        if (c->state.at[i] == (double)MSC_TRIAL_COMPLETE && isfinite(c->objective.at[i])) {
            c->order[c->n++] = i;
        }
    }
    const struct msc_heap heap = {.elements = c->order,
                                  .element_bytes = sizeof c->order[0],
                                  .spare = &spare,
                                  .is_before = is_better,
                                  .context = c};
    msc_heap_sort(&heap, c->n);
    return MSC_OK;
}

// ---- Axes ---------------------------------------------------------------------------------------

static enum msc_status add_axis(struct choices *c, const struct axis *axis, const cJSON *values) {
    struct axis *to = &c->axes[c->n_axes];
    *to = *axis;
    MSC_TRY(msc_figures__read(&to->values, &c->s->to->arena, values));
    if (to->labels) {
        to->most = (double)cJSON_GetArraySize(to->labels) - 1.0;
    } else {
        to->least = INFINITY, to->most = -INFINITY;
        for (size_t k = 0; k < c->n; k++) {
            double value = c->order[k] < to->values.n ? to->values.at[c->order[k]] : NAN;
            to->least = fmin(to->least, value);
            to->most = fmax(to->most, value);
        }
        to->is_log = to->least > 0.0 && to->most > 10.0 * to->least;
    }
    c->n_axes += to->values.n == c->objective.n && to->least <= to->most;
    return MSC_OK;
}

static enum msc_status add_metric(struct choices *c, const char *metric) {
    const cJSON *trials = msc_json_get(c->s->record, "trials");
    const cJSON *metrics = msc_json_get(msc_json_get(trials, "points"), "metrics");
    struct axis axis = {.metric = metric};
    MSC_TRY(msc_figures__name(&axis.title, &c->s->to->arena, metric));
    return add_axis(c, &axis, msc_json_get(metrics, metric));
}

static enum msc_status add_axes(struct choices *c) {
    const cJSON *trials = msc_json_get(c->s->record, "trials"), *task = NULL;
    const char *cost = msc_page__text(trials, "cost");
    cJSON_ArrayForEach(task, msc_json_get(trials, "tasks")) {
        const struct axis axis = {
            .title = msc_figures__shorten(&c->s->to->arena, msc_page__text(task, "task")),
            .labels = msc_json_get(task, "labels")};
        MSC_TRY(MSC_ALLOCATED(axis.title));
        if (c->n_axes + 2 < MOST_AXES) {
            MSC_TRY(add_axis(c, &axis, msc_json_get(task, "choices")));
        }
    }
    bool has_cost = c->n_axes > 0 && cost[0] && strcmp(cost, c->s->objective) != 0;
    MSC_TRY(has_cost ? add_metric(c, cost) : MSC_OK);
    return c->n_axes > 0 ? add_metric(c, c->s->objective) : MSC_OK;
}

// ---- Drawing ------------------------------------------------------------------------------------

static double across(double share) {
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double level(size_t axis) {
    return TOP + STEP * (double)axis;
}

// The place of a value on an axis. Lines of one choice are spread a little, in the order of their
// trials.
static double place(const struct axis *axis, size_t i) {
    double value = axis->values.at[i];
    if (!(axis->least < axis->most)) {
        return across(0.5);
    }
    double share = axis->is_log ? log(value / axis->least) / log(axis->most / axis->least)
                                : (value - axis->least) / (axis->most - axis->least);
    double part = fmod((double)i * 0.618034, 1.0) - 0.5;
    return across(share + (axis->labels ? part * fmin(0.4 / axis->most, 0.05) : 0.0));
}

static void write_line(struct msc_str *out, const struct choices *c, size_t i, bool is_best) {
    const char *before = "M";
    msc_str_printf(out, "<path fill=\"none\" stroke=\"%s\" stroke-opacity=\"%s\" d=\"",
                   is_best ? MSC_FIGURE_ACCENT : MSC_FIGURE_FAINT, is_best ? "0.8" : "0.25");
    for (size_t k = 0; k < c->n_axes; k++) {
        double x = place(&c->axes[k], i);
        if (isfinite(x)) {
            msc_str_printf(out, "%s%.1f %.1f", before, x, level(k));
            before = "L";
        }
    }
    msc_str_append(out, "\"/>\n");
}

static void write_label(struct msc_str *out, double share, double y, const char *text) {
    const char *anchor = share == 0.0 ? "start" : share == 1.0 ? "end" : "middle";
    msc_str_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", across(share), y,
                   anchor);
    msc_html_text(out, text);
    msc_str_append(out, "</text>\n");
}

static void write_ends(struct msc_str *out, const struct axis *axis, double y) {
    const cJSON *label = NULL;
    double k = 0.0;
    cJSON_ArrayForEach(label, axis->labels) {
        double share = axis->most > 0.0 ? k++ / axis->most : 0.5;
        write_label(out, share, y, cJSON_IsString(label) ? label->valuestring : "");
    }
    for (int end = 0; !axis->labels && end < 2; end++) {
        struct msc_str text = {0};
        msc_unit_value(&text, axis->metric, end == 0 ? axis->least : axis->most);
        write_label(out, end, y, msc_str_text(&text));
        out->failed |= text.failed;
        msc_str_finish(&text);
    }
}

static void write_axis(struct msc_str *out, const struct axis *axis, double y) {
    msc_str_printf(out, "<path stroke=\"#1b1f24\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
    msc_str_printf(out, "<text x=\"%d\" y=\"%.1f\" fill=\"#1b1f24\">", LEFT, y - 8.0);
    msc_html_text(out, axis->title);
    msc_str_append(out, "</text>\n");
    write_ends(out, axis, y + 16.0);
}

static enum msc_status write_drawing(struct msc_str *out, const struct choices *c) {
    size_t n_lines = c->n < MOST_LINES ? c->n : MOST_LINES;
    size_t n_best = n_lines < 10 ? 1 : n_lines / 10;
    size_t each = c->n > n_best ? 1 + (c->n - n_best - 1) / (MOST_LINES - n_best) : 1;
    double height = level(c->n_axes - 1) + 30.0;
    msc_str_printf(out,
                   MSC_OUTPUT_FIGURE_BEGINNING
                   " width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\" "
                   "font-family=\"sans-serif\" font-size=\"12\" fill=\"#5a636e\">\n<title>",
                   WIDTH, height, WIDTH, height);
    msc_html_text(out, c->s->prefix);
    msc_str_append(out, ": choices of the best trials</title>\n");
    msc_str_printf(out, "<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n", WIDTH, height);
    for (size_t k = c->n; k-- > 0;) { // the best last, on top
        if (k < n_best || (k - n_best) % each == 0) {
            write_line(out, c, c->order[k], k < n_best);
        }
    }
    for (size_t k = 0; k < c->n_axes; k++) {
        write_axis(out, &c->axes[k], level(k));
    }
    msc_str_append(out, "</svg>\n");
    return msc_str_status(out);
}

enum msc_status msc_figures__choices(const struct msc_figures_subject *s) {
    const cJSON *numbers = msc_json_get(s->record, "numbers");
    const cJSON *goal = cJSON_GetArrayItem(msc_json_get(numbers, "objectives"), 0);
    const cJSON *points = msc_json_get(msc_json_get(s->record, "trials"), "points");
    const cJSON *values = msc_json_get(msc_json_get(points, "metrics"), s->objective);
    struct choices c = {.s = s, .is_maximised = cJSON_IsTrue(msc_json_get(goal, "maximise"))};
    struct msc_str svg = {0};
    MSC_TRY(msc_figures__read(&c.state, &s->to->arena, msc_json_get(points, "state")));
    MSC_TRY(msc_figures__read(&c.objective, &s->to->arena, values));
    MSC_TRY(rank_points(&c));
    MSC_TRY(add_axes(&c));
    return c.n < 2 || c.n_axes == 0
               ? MSC_OK
               : msc_figures__keep(s, "choices", &svg, write_drawing(&svg, &c));
}
