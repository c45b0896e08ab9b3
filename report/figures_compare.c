// Figures of several records together: the best so far, the fronts, and the layers of their plans.
#include "report/figures_internal.h"

#include "report/page_internal.h"

#include <string.h>

// Further records would have the colours of the first ones.
enum { MOST_RECORDS = 5 };
static const char *const colors[MOST_RECORDS] = {
    MSC_FIGURE_ACCENT, MSC_FIGURE_SECOND, MSC_FIGURE_THIRD, MSC_FIGURE_FOURTH, MSC_FIGURE_FAINT};

struct compared {
    struct msc_figures_subject subject; // of the first record
    const cJSON *records[MOST_RECORDS]; // those with its objective
    size_t n;
    struct msc_plot_set sets[MOST_RECORDS];
    size_t n_sets;
};

static const cJSON *objective_of(const cJSON *record) {
    return cJSON_GetArrayItem(msc_json_get(msc_json_get(record, "numbers"), "objectives"), 0);
}

static bool is_alike(const cJSON *a, const cJSON *b) {
    return strcmp(msc_page__text(objective_of(a), "metric"),
                  msc_page__text(objective_of(b), "metric")) == 0 &&
           cJSON_IsTrue(msc_json_get(objective_of(a), "maximise")) ==
               cJSON_IsTrue(msc_json_get(objective_of(b), "maximise"));
}

static void add_set(struct compared *c, size_t i, const struct msc_figure_numbers *x,
                    const struct msc_figure_numbers *y, enum msc_plot_mark mark) {
    if (x->n == y->n && y->n > 0) {
        c->sets[c->n_sets++] = (struct msc_plot_set){
            msc_page__text(c->records[i], "name"), colors[i], x->at, y->at, y->n, mark};
    }
}

static enum msc_status keep(struct compared *c, const char *what, const char *title,
                            const struct msc_plot_axis *x, const struct msc_plot_axis *y) {
    const struct msc_plot plot = {
        .title = title, .x = *x, .y = *y, .sets = c->sets, .n_sets = c->n_sets};
    enum msc_status status =
        c->n_sets > 1 ? msc_figures__keep_plot(&c->subject, what, &plot) : MSC_OK;
    c->n_sets = 0;
    return status;
}

static enum msc_status draw_best(struct compared *c) {
    struct msc_arena *arena = &c->subject.to->arena;
    double end = 0.0;
    for (size_t i = 0; i < c->n; i++) {
        const cJSON *trials = msc_json_get(c->records[i], "trials");
        const cJSON *best = msc_json_get(trials, "best");
        struct msc_figure_numbers x, y;
        MSC_TRY(msc_figures__read(&x, arena, msc_json_get(best, "trial")));
        MSC_TRY(msc_figures__read(&y, arena, msc_json_get(best, "value")));
        if (x.n == y.n && y.n > 0) { // the last value holds until the end
            x.at[x.n++] = msc_page__number(trials, "n");
            y.at[y.n] = y.at[y.n - 1];
            y.n++;
        }
        end = fmax(end, msc_page__number(trials, "n"));
        add_set(c, i, &x, &y, MSC_PLOT_STEPS);
    }
    const struct msc_plot_axis x = {.title = "trials", .least = 0.0, .most = end};
    const struct msc_plot_axis y = {
        .title = c->subject.name, .metric = c->subject.objective, .may_be_log = true};
    return keep(c, "best", "The best so far of each record over trials", &x, &y);
}

static enum msc_status draw_fronts(struct compared *c) {
    const char *cost = msc_page__text(msc_json_get(c->records[0], "trials"), "cost"), *name = "";
    if (!cost[0] || strcmp(cost, c->subject.objective) == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_figures__name(&name, &c->subject.to->arena, cost));
    for (size_t i = 0; i < c->n; i++) {
        struct msc_figures_subject s = c->subject;
        struct msc_figure_numbers x, y;
        s.record = c->records[i];
        MSC_TRY(msc_figures__front(&x, &y, &s, cost));
        add_set(c, i, &x, &y, MSC_PLOT_STEPS);
    }
    const struct msc_plot_axis x = {.title = name, .metric = cost, .may_be_log = true};
    const struct msc_plot_axis y = {
        .title = c->subject.name, .metric = c->subject.objective, .may_be_log = true};
    return keep(c, "fronts", "The fronts of the records", &x, &y);
}

// ---- Layers -------------------------------------------------------------------------------------

// The place of a joint among the layers of the first record; NaN: it does not have it.
static double place_of(const cJSON *first, const char *joint) {
    const cJSON *row = NULL;
    double place = 1.0;
    cJSON_ArrayForEach(row, first) {
        if (strcmp(msc_page__text(row, "joint"), joint) == 0) {
            return place;
        }
        place += 1.0;
    }
    return NAN;
}

static const cJSON *layers_of(const cJSON *record) {
    return msc_json_get(msc_json_get(record, "layers"), "layers");
}

static enum msc_status draw_layers(struct compared *c, const char *key, const char *what,
                                   const struct msc_plot_axis *y_axis) {
    struct msc_arena *arena = &c->subject.to->arena;
    const cJSON *first = layers_of(c->records[0]);
    for (size_t i = 0; i < c->n; i++) {
        const cJSON *list = layers_of(c->records[i]), *row = NULL;
        struct msc_figure_numbers x, y;
        MSC_TRY(msc_figures__numbers(&x, arena, (size_t)cJSON_GetArraySize(list)));
        MSC_TRY(msc_figures__numbers(&y, arena, (size_t)cJSON_GetArraySize(list)));
        cJSON_ArrayForEach(row, list) {
            double value = msc_page__number(row, key);
            if (value > 0.0) {
                x.at[x.n++] = place_of(first, msc_page__text(row, "joint"));
                y.at[y.n++] = value;
            }
        }
        add_set(c, i, &x, &y, MSC_PLOT_LINE);
    }
    const struct msc_plot_axis x = {.title = "layers, in the network's order",
                                    .least = 0.5,
                                    .most = (double)cJSON_GetArraySize(first) + 0.5,
                                    .has_no_ticks = true};
    return keep(c, what, y_axis->title, &x, y_axis);
}

enum msc_status msc_figures__compare(struct msc_figures *to, const cJSON *records) {
    static const struct msc_plot_axis error = {
        .title = "error after the layer", .metric = "size_ratio", .may_be_log = true};
    static const struct msc_plot_axis bytes = {
        .title = "bytes of weights", .metric = "size_bytes", .may_be_log = true};
    static const struct msc_plot_axis time = {
        .title = "time", .metric = "latency_us", .may_be_log = true};
    const cJSON *first = records->child, *record = NULL;
    struct compared c = {.subject = {.to = to,
                                     .record = first,
                                     .prefix = "compared",
                                     .objective = msc_page__text(objective_of(first), "metric")}};
    cJSON_ArrayForEach(record, records) {
        if (c.n < MOST_RECORDS && is_alike(first, record)) {
            c.records[c.n++] = record;
        }
    }
    MSC_TRY(msc_figures__name(&c.subject.name, &to->arena, c.subject.objective));
    MSC_TRY(draw_best(&c));
    MSC_TRY(draw_fronts(&c));
    if (!layers_of(first)) {
        return MSC_OK;
    }
    MSC_TRY(draw_layers(&c, "error", "error", &error));
    MSC_TRY(draw_layers(&c, "bytes", "bytes", &bytes));
    return draw_layers(&c, "us", "time", &time);
}
