#include "report/figures_internal.h"

#include "env/api/trial.h"
#include "report/page_internal.h"
#include "results/units.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EFFECTS = 20, NAME_BYTES = 36 };

// ---- Numbers ------------------------------------------------------------------------------------

enum msc_status msc_figures__numbers(struct msc_figure_numbers *out, struct msc_arena *arena,
                                     size_t n) {
    out->at = msc_arena_array(arena, n + 1, sizeof out->at[0]);
    out->n = 0;
    return MSC_ALLOCATED(out->at);
}

enum msc_status msc_figures__read(struct msc_figure_numbers *out, struct msc_arena *arena,
                                  const cJSON *list) {
    const cJSON *item = NULL;
    MSC_TRY(msc_figures__numbers(out, arena, (size_t)cJSON_GetArraySize(list)));
    cJSON_ArrayForEach(item, list) {
        out->at[out->n++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return MSC_OK;
}

enum msc_status msc_figures__name(const char **out, struct msc_arena *arena, const char *metric) {
    struct msc_str name = {0};
    msc_unit_name(&name, metric);
    *out = msc_str_keep(&name, arena);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_figures__keep(const struct msc_figures_subject *s, const char *what,
                                  struct msc_str *svg, enum msc_status status) {
    struct msc_figures *to = s->to;
    if (status != MSC_OK) {
        msc_str_finish(svg);
        return status;
    }
    struct msc_figure figure = {.name = msc_arena_printf(&to->arena, "%s-%s.svg", s->prefix, what),
                                .svg = msc_str_keep(svg, &to->arena)};
    MSC_TRY(MSC_ALLOCATED(figure.name));
    MSC_TRY(MSC_ALLOCATED(figure.svg));
    MSC_TRY(msc_grow(&to->items, &to->capacity, to->n + 1, sizeof to->items[0]));
    to->items[to->n++] = figure;
    return MSC_OK;
}

enum msc_status msc_figures__keep_plot(const struct msc_figures_subject *s, const char *what,
                                       const struct msc_plot *plot) {
    struct msc_str svg = {0};
    return msc_plot_has_points(plot) ? msc_figures__keep(s, what, &svg, msc_plot_write(&svg, plot))
                                     : MSC_OK;
}

// ---- The best so far ----------------------------------------------------------------------------

// The value of the best uniform plan within the bounds; NaN if there is none. A label that begins
// with "the", such as "the quickest", is not a uniform plan's.
static double best_uniform(const struct msc_figures_subject *s) {
    const cJSON *numbers = msc_json_get(s->record, "numbers"), *row = NULL;
    const cJSON *goal = cJSON_GetArrayItem(msc_json_get(numbers, "objectives"), 0);
    double sign = cJSON_IsTrue(msc_json_get(goal, "maximise")) ? -1.0 : 1.0, best = NAN;
    cJSON_ArrayForEach(row, msc_json_get(numbers, "baselines")) {
        double value = msc_page__number(msc_json_get(row, "metrics"), s->objective);
        bool is_usable = strcmp(msc_page__text(row, "state"), "complete") == 0 &&
                         !msc_json_get(row, "left_out") &&
                         strncmp(msc_page__text(row, "label"), "the ", 4) != 0;
        if (is_usable && isfinite(value) && !(sign * value >= sign * best)) {
            best = value;
        }
    }
    return best;
}

static enum msc_status draw_best(const struct msc_figures_subject *s, const char *key,
                                 const char *what, const char *title) {
    const cJSON *trials = msc_json_get(s->record, "trials"), *best = msc_json_get(trials, "best");
    struct msc_arena *arena = &s->to->arena;
    double end = msc_page__number(trials, strcmp(key, "trial") == 0 ? "n" : "elapsed_s");
    double level = best_uniform(s);
    struct msc_figure_numbers x, y;
    MSC_TRY(msc_figures__read(&x, arena, msc_json_get(best, key)));
    MSC_TRY(msc_figures__read(&y, arena, msc_json_get(best, "value")));
    if (y.n == 0 || x.n != y.n || !(end > 0.0)) {
        return MSC_OK;
    }
    x.at[x.n] = fmax(end, x.at[x.n - 1]); // the last value holds until the end
    y.at[y.n] = y.at[y.n - 1];
    const double level_x[] = {x.at[0], x.at[x.n]}, level_y[] = {level, level};
    const struct msc_plot_set sets[] = {
        {"best uniform plan", MSC_FIGURE_FAINT, level_x, level_y, 2, MSC_PLOT_DASHES},
        {"best so far", MSC_FIGURE_ACCENT, x.at, y.at, y.n + 1, MSC_PLOT_STEPS}};
    const struct msc_plot plot = {
        .title = msc_arena_printf(arena, "%s: the best so far over %s", s->prefix, title),
        .x = {.title = title, .least = 0.0, .most = x.at[x.n]},
        .y = {.title = s->name, .metric = s->objective, .may_be_log = true},
        .sets = sets,
        .n_sets = 2};
    MSC_TRY(MSC_ALLOCATED(plot.title));
    return msc_figures__keep_plot(s, what, &plot);
}

// ---- Loss against cost --------------------------------------------------------------------------

struct point {
    double x, y;
};

static int by_x(const void *a, const void *b) {
    const struct point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

enum msc_status msc_figures__front(struct msc_figure_numbers *x, struct msc_figure_numbers *y,
                                   const struct msc_figures_subject *s, const char *cost) {
    const cJSON *front = msc_json_get(msc_json_get(s->record, "trials"), "front"), *row = NULL;
    size_t n = (size_t)cJSON_GetArraySize(front);
    struct point *points = msc_arena_array(&s->to->arena, n + 1, sizeof points[0]);
    MSC_TRY(MSC_ALLOCATED(points));
    MSC_TRY(msc_figures__numbers(x, &s->to->arena, n));
    MSC_TRY(msc_figures__numbers(y, &s->to->arena, n));
    n = 0;
    cJSON_ArrayForEach(row, front) {
        const cJSON *metrics = msc_json_get(row, "metrics");
        struct point p = {msc_page__number(metrics, cost), msc_page__number(metrics, s->objective)};
        if (isfinite(p.x) && isfinite(p.y)) {
            points[n++] = p;
        }
    }
    qsort(points, n, sizeof points[0], by_x);
    for (size_t i = 0; i < n; i++) {
        x->at[x->n++] = points[i].x;
        y->at[y->n++] = points[i].y;
    }
    return MSC_OK;
}

// Splits the trials: complete ones, within the bounds, and the others.
static enum msc_status split_points(struct msc_figure_numbers *kept, struct msc_figure_numbers *out,
                                    const struct msc_figures_subject *s,
                                    const struct msc_figure_numbers *y) {
    const cJSON *points = msc_json_get(msc_json_get(s->record, "trials"), "points");
    struct msc_figure_numbers state;
    MSC_TRY(msc_figures__read(&state, &s->to->arena, msc_json_get(points, "state")));
    MSC_TRY(msc_figures__numbers(kept, &s->to->arena, y->n));
    MSC_TRY(msc_figures__numbers(out, &s->to->arena, y->n));
    for (size_t i = 0; i < y->n; i++) {
        bool is_kept = i < state.n && state.at[i] == (double)MSC_TRIAL_COMPLETE;
        kept->at[kept->n++] = is_kept ? y->at[i] : NAN;
        out->at[out->n++] = is_kept ? NAN : y->at[i];
    }
    return MSC_OK;
}

static enum msc_status draw_tradeoff(const struct msc_figures_subject *s) {
    const cJSON *trials = msc_json_get(s->record, "trials");
    const cJSON *metrics = msc_json_get(msc_json_get(trials, "points"), "metrics");
    const cJSON *delivered = msc_json_get(msc_json_get(s->record, "delivered"), "metrics");
    const char *cost = msc_page__text(trials, "cost"), *cost_name = "";
    struct msc_arena *arena = &s->to->arena;
    struct msc_figure_numbers x, y, kept, out, front_x, front_y;
    if (!cost[0] || strcmp(cost, s->objective) == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_figures__name(&cost_name, arena, cost));
    MSC_TRY(msc_figures__read(&x, arena, msc_json_get(metrics, cost)));
    MSC_TRY(msc_figures__read(&y, arena, msc_json_get(metrics, s->objective)));
    if (x.n != y.n) {
        return MSC_OK;
    }
    MSC_TRY(split_points(&kept, &out, s, &y));
    MSC_TRY(msc_figures__front(&front_x, &front_y, s, cost));
    const double best_x = msc_page__number(delivered, cost);
    const double best_y = msc_page__number(delivered, s->objective);
    const struct msc_plot_set sets[] = {
        {"outside of the bounds", MSC_FIGURE_FAINT, x.at, out.at, x.n, MSC_PLOT_RINGS},
        {"trials", MSC_FIGURE_ACCENT, x.at, kept.at, x.n, MSC_PLOT_POINTS},
        {"front", MSC_FIGURE_THIRD, front_x.at, front_y.at, front_x.n, MSC_PLOT_STEPS},
        {"delivered", MSC_FIGURE_SECOND, &best_x, &best_y, 1, MSC_PLOT_LARGE}};
    const struct msc_plot plot = {
        .title = msc_arena_printf(arena, "%s: %s against %s", s->prefix, s->name, cost_name),
        .x = {.title = cost_name, .metric = cost, .may_be_log = true},
        .y = {.title = s->name, .metric = s->objective, .may_be_log = true},
        .sets = sets,
        .n_sets = sizeof sets / sizeof sets[0]};
    MSC_TRY(MSC_ALLOCATED(plot.title));
    return msc_figures__keep_plot(s, "tradeoff", &plot);
}

// ---- The plan -----------------------------------------------------------------------------------

// Draws a number of each task in the network's order.
static enum msc_status draw_plan(const struct msc_figures_subject *s, const char *key,
                                 const char *title) {
    const cJSON *plan = msc_json_get(s->record, "plan"), *row = NULL;
    struct msc_arena *arena = &s->to->arena;
    struct msc_figure_numbers x, weights, activations;
    size_t n = (size_t)cJSON_GetArraySize(plan);
    double most = strcmp(key, "bits") == 0 ? 8.0 : 1.0;
    MSC_TRY(msc_figures__numbers(&x, arena, n));
    MSC_TRY(msc_figures__numbers(&weights, arena, n));
    MSC_TRY(msc_figures__numbers(&activations, arena, n));
    cJSON_ArrayForEach(row, plan) {
        double value = msc_page__number(row, key);
        bool is_activation = strcmp(msc_page__text(row, "kind"), "activation") == 0;
        x.at[x.n] = (double)(x.n + 1);
        x.n++;
        weights.at[weights.n++] = is_activation ? NAN : value;
        activations.at[activations.n++] = is_activation ? value : NAN;
        most = isfinite(value) ? fmax(most, value) : most;
    }
    const struct msc_plot_set sets[] = {
        {"weights", MSC_FIGURE_ACCENT, x.at, weights.at, n, MSC_PLOT_BARS},
        {"activations", MSC_FIGURE_SECOND, x.at, activations.at, n, MSC_PLOT_BARS}};
    const struct msc_plot plot = {
        .title = msc_arena_printf(arena, "%s: %s of each task of the plan", s->prefix, title),
        .x = {.title = "tasks, in the network's order",
              .least = 0.4,
              .most = (double)n + 0.6,
              .has_no_ticks = true},
        .y = {.title = title, .least = 0.0, .most = most},
        .sets = sets,
        .n_sets = 2};
    MSC_TRY(MSC_ALLOCATED(plot.title));
    return msc_figures__keep_plot(s, key, &plot);
}

// ---- Effects ------------------------------------------------------------------------------------

const char *msc_figures__shorten(struct msc_arena *arena, const char *name) {
    size_t length = strlen(name), head = NAME_BYTES / 3, tail = length - 2 * NAME_BYTES / 3;
    if (length <= NAME_BYTES) {
        return name;
    }
    while (head > 0 && ((unsigned char)name[head] & 0xc0) == 0x80) {
        head--;
    }
    while (((unsigned char)name[tail] & 0xc0) == 0x80) {
        tail++;
    }
    return msc_arena_printf(arena, "%.*s…%s", (int)head, name, name + tail);
}

static bool has_bar(const struct msc_plot_bar bars[], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(bars[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Reads the largest effect of each task. The list begins with the largest effect of all.
static size_t read_effects(struct msc_plot_bar bars[MOST_EFFECTS], const cJSON *alone) {
    const cJSON *row = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(row, alone) {
        struct msc_plot_bar bar = {msc_page__text(row, "task"),
                                   msc_page__number(row, "difference")};
        if (n < MOST_EFFECTS && isfinite(bar.value) && !has_bar(bars, n, bar.name)) {
            bars[n++] = bar;
        }
    }
    return n;
}

enum msc_status msc_figures__keep_bars(const struct msc_figures_subject *s, const char *what,
                                       const char *title, const struct msc_plot_axis *axis,
                                       struct msc_plot_bar bars[], size_t n) {
    struct msc_str svg = {0};
    if (n == 0 || bars[0].value == 0.0) {
        return MSC_OK;
    }
    for (size_t i = 0; i < n; i++) {
        bars[i].name = msc_figures__shorten(&s->to->arena, bars[i].name);
        MSC_TRY(MSC_ALLOCATED(bars[i].name));
    }
    MSC_TRY(MSC_ALLOCATED(title));
    MSC_TRY(MSC_ALLOCATED(axis->title));
    return msc_figures__keep(s, what, &svg, msc_plot_write_bars(&svg, title, axis, bars, n));
}

static enum msc_status draw_effects(const struct msc_figures_subject *s) {
    const cJSON *effects = msc_json_get(s->record, "effects");
    const char *metric = msc_page__text(effects, "metric"), *name = "";
    struct msc_arena *arena = &s->to->arena;
    struct msc_plot_bar bars[MOST_EFFECTS];
    size_t n = read_effects(bars, msc_json_get(effects, "alone"));
    MSC_TRY(msc_figures__name(&name, arena, metric));
    const struct msc_plot_axis axis = {.title = msc_arena_printf(arena, "%s: difference", name),
                                       .metric = metric};
    const char *title = msc_arena_printf(arena, "%s: the largest effect of each task", s->prefix);
    return msc_figures__keep_bars(s, "effects", title, &axis, bars, n);
}

static enum msc_status draw_importance(const struct msc_figures_subject *s) {
    const cJSON *tasks =
        msc_json_get(msc_json_get(msc_json_get(s->record, "effects"), "importance"), "tasks");
    const cJSON *row = NULL;
    struct msc_plot_bar bars[MOST_EFFECTS];
    size_t n = 0;
    cJSON_ArrayForEach(row, tasks) {
        if (n < MOST_EFFECTS) {
            bars[n++] =
                (struct msc_plot_bar){msc_page__text(row, "task"), msc_page__number(row, "share")};
        }
    }
    const struct msc_plot_axis axis = {.title = "share of the variance", .metric = "size_ratio"};
    const char *title = msc_arena_printf(&s->to->arena, "%s: importance of tasks", s->prefix);
    return msc_figures__keep_bars(s, "importance", title, &axis, bars, n);
}

// ---- Speed --------------------------------------------------------------------------------------

static enum msc_status draw_speed(const struct msc_figures_subject *s, const char *key,
                                  const char *what, const char *title) {
    const cJSON *speed = msc_json_get(msc_json_get(s->record, "trials"), "speed");
    struct msc_arena *arena = &s->to->arena;
    struct msc_figure_numbers x, y;
    MSC_TRY(msc_figures__read(&x, arena, msc_json_get(speed, "seconds")));
    MSC_TRY(msc_figures__read(&y, arena, msc_json_get(speed, key)));
    if (x.n != y.n) {
        return MSC_OK;
    }
    const struct msc_plot_set set = {title, MSC_FIGURE_ACCENT, x.at, y.at, y.n, MSC_PLOT_LINE};
    const struct msc_plot plot = {.title = msc_arena_printf(arena, "%s: %s", s->prefix, title),
                                  .x = {.title = "seconds of search"},
                                  .y = {.title = title},
                                  .sets = &set,
                                  .n_sets = 1};
    MSC_TRY(MSC_ALLOCATED(plot.title));
    return msc_figures__keep_plot(s, what, &plot);
}

// ---- All of them --------------------------------------------------------------------------------

static enum msc_status draw_record(struct msc_figures *to, const cJSON *record,
                                   const char *prefix) {
    const cJSON *objectives = msc_json_get(msc_json_get(record, "numbers"), "objectives");
    struct msc_figures_subject s = {
        .to = to,
        .record = record,
        .prefix = prefix,
        .objective = msc_page__text(cJSON_GetArrayItem(objectives, 0), "metric")};
    MSC_TRY(msc_figures__name(&s.name, &to->arena, s.objective));
    MSC_TRY(draw_best(&s, "trial", "best-trials", "trials"));
    MSC_TRY(draw_best(&s, "seconds", "best-time", "seconds of search"));
    MSC_TRY(draw_tradeoff(&s));
    MSC_TRY(draw_plan(&s, "bits", "bits"));
    MSC_TRY(draw_plan(&s, "density", "share that is kept"));
    MSC_TRY(msc_figures__choices(&s));
    MSC_TRY(draw_importance(&s));
    MSC_TRY(draw_effects(&s));
    MSC_TRY(draw_speed(&s, "trials_per_s", "speed", "trials a second"));
    MSC_TRY(draw_speed(&s, "reuse", "reuse", "share of the work that was reused"));
    MSC_TRY(msc_figures__layers(&s));
    return msc_figures__network(&s);
}

enum msc_status msc_figures_draw(struct msc_figures *figures, const struct cJSON *document) {
    const cJSON *records = msc_json_get(document, "records"), *record = NULL;
    size_t n = (size_t)cJSON_GetArraySize(records), i = 0;
    cJSON_ArrayForEach(record, records) {
        const char *name = msc_page__text(record, "name");
        const char *prefix = n == 1 ? name : msc_arena_printf(&figures->arena, "%zu-%s", ++i, name);
        MSC_TRY(MSC_ALLOCATED(prefix));
        MSC_TRY(draw_record(figures, record, prefix));
    }
    return n > 1 ? msc_figures__compare(figures, records) : MSC_OK;
}

void msc_figures_finish(struct msc_figures *figures) {
    msc_free(figures->items);
    msc_arena_finish(&figures->arena);
    *figures = (struct msc_figures){0};
}
