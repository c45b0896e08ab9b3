#include "results/trial_figures.h"

#include "base/alloc.h"
#include "base/heap.h"
#include "base/json.h"
#include "records/record_query.h"
#include "results/plan_layers.h"
#include "results/history.h"

#include <math.h>
#include <string.h>

#define MOST_STEPS 400
#define STRETCHES 60

struct figures {
    const struct msc_record *record;
    const struct msc_space *space;
    int objective, cost; // indices of metrics; cost < 0: there is no cost
    int64_t *front;      // [n_front] ids of trials, sorted by cost
    size_t n_front;
    const char *const *tasks; // [n_tasks] names of the tasks whose choices are listed
    size_t n_tasks;
    struct msc_arena arena;
};

int msc_trial_figures_cost(const struct msc_record *record) {
    const struct msc_space *space = msc_record_space(record);
    const struct msc_goal *goal = msc_record_goal(record);
    int objective = goal->objectives[0].metric;
    if (goal->n_objectives > 1) {
        return goal->objectives[1].metric;
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (goal->bounds[i].metric != objective) {
            return goal->bounds[i].metric;
        }
    }
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (space->metrics[i].is_exact && (int)i != objective) {
            return (int)i;
        }
    }
    return -1;
}

static enum msc_status add_list(cJSON **out, cJSON *object, const char *key) {
    *out = cJSON_CreateArray();
    return msc_json_add(object, key, *out);
}

// Appends a number; NaN and infinities become null.
static enum msc_status push_number(cJSON *list, double value) {
    return msc_json_push(list, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

// Rounds a value, but keeps more digits than a chart can show.
static double rounded(double value) {
    if (!isfinite(value) || value == 0.0) {
        return value;
    }
    double unit = pow(10.0, floor(log10(fabs(value))) - 6.0);
    return unit > 0.0 && isfinite(value / unit) ? round(value / unit) * unit : value;
}

// ---- Best so far ------------------------------------------------------------------------------

static enum msc_status fill_best(cJSON *figures, const struct msc_history *h) {
    cJSON *best = cJSON_CreateObject(), *trial, *seconds, *value;
    MSC_TRY(msc_json_add(figures, "best", best));
    MSC_TRY(add_list(&trial, best, "trial"));
    MSC_TRY(add_list(&seconds, best, "seconds"));
    MSC_TRY(add_list(&value, best, "value"));
    for (size_t i = 0; i < h->n_steps; i++) {
        MSC_TRY(push_number(trial, (double)h->steps[i].trial));
        MSC_TRY(push_number(seconds, h->steps[i].elapsed_s));
        MSC_TRY(push_number(value, h->steps[i].value));
    }
    MSC_TRY(msc_json_add_number(figures, "n", (double)h->n_trials));
    return msc_json_add_number(figures, "elapsed_s", h->elapsed_s);
}

static enum msc_status add_best(cJSON *figures, const struct figures *f) {
    struct msc_history history = {0};
    MSC_TRY(msc_history_init(&history, msc_record_goal(f->record), MOST_STEPS));
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        msc_history_add(&history, &line);
    }
    enum msc_status status = fill_best(figures, &history);
    msc_history_finish(&history);
    return status;
}

// ---- Loss against cost -----------------------------------------------------------------------

// A range of values. The scale is logarithmic if all values are positive and span a wide range.
struct scale {
    double low, high;
    bool is_log;
};

static void widen(struct scale *s, double value) {
    s->low = isnan(s->low) || value < s->low ? value : s->low;
    s->high = isnan(s->high) || value > s->high ? value : s->high;
}

static int cell_on(const struct scale *s, double value, int n) {
    double at = s->is_log ? log(value / s->low) / log(s->high / s->low)
                          : (value - s->low) / (s->high - s->low);
    return isfinite(at) ? (int)fmin(at * n, n - 1) : 0;
}

static double metric_of(const struct msc_record_line *line, int metric) {
    return metric >= 0 ? line->trial.outcome.metrics[metric] : (double)line->trial.id;
}

static bool is_point(const struct figures *f, const struct msc_record_line *line) {
    return msc_trial_state_is_result(line->trial.outcome.state) && line->repeat_of < 0 &&
           !line->is_left_out && isfinite(metric_of(line, f->objective)) &&
           isfinite(metric_of(line, f->cost));
}

// Marks the first trial in each cell and the trials at the ends of both ranges.
static enum msc_status mark_cells(bool is_kept[], struct figures *f) {
    enum { N = MSC_FIGURE_COLUMNS * MSC_FIGURE_ROWS };
    struct scale x = {NAN, NAN, false}, y = {NAN, NAN, false};
    bool *is_taken = msc_arena_array(&f->arena, N, sizeof *is_taken);
    size_t n = msc_record_n_trials(f->record);
    MSC_TRY(MSC_ALLOCATED(is_taken));
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (is_point(f, &line)) {
            widen(&x, metric_of(&line, f->cost));
            widen(&y, metric_of(&line, f->objective));
        }
    }
    y.is_log = y.low > 0.0 && y.high > 10.0 * y.low;
    bool ends[4] = {false};
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (!is_point(f, &line)) {
            continue;
        }
        double cost = metric_of(&line, f->cost), loss = metric_of(&line, f->objective);
        size_t cell = (size_t)(cell_on(&x, cost, MSC_FIGURE_COLUMNS) * MSC_FIGURE_ROWS +
                               cell_on(&y, loss, MSC_FIGURE_ROWS));
        bool at[4] = {cost == x.low, cost == x.high, loss == y.low, loss == y.high};
        is_kept[i] = is_kept[i] || !is_taken[cell] || line.baseline >= 0;
        is_taken[cell] = true;
        for (int k = 0; k < 4; k++) {
            is_kept[i] = is_kept[i] || (at[k] && !ends[k]);
            ends[k] = ends[k] || at[k];
        }
    }
    return MSC_OK;
}

// ---- Front ------------------------------------------------------------------------------------

// A trial with objective and cost, signed so that smaller is better.
struct candidate {
    double cost, loss;
    int64_t id;
};

// The front so far, sorted by cost, followed by trials that may belong to it.
struct candidates {
    struct candidate *items;
    size_t n, n_front, capacity;
};

static struct candidate candidate_of(const struct figures *f, const struct msc_record_line *line) {
    bool is_turned = f->cost >= 0 && f->space->metrics[f->cost].is_maximised;
    double cost = metric_of(line, f->cost);
    return (struct candidate){.cost = is_turned ? -cost : cost,
                              .loss = line->trial.outcome.objectives[0],
                              .id = line->trial.id};
}

static bool is_cheaper(const void *context, const void *x, const void *y) {
    const struct candidate *a = x, *b = y;
    (void)context;
    return a->cost != b->cost   ? a->cost < b->cost
           : a->loss != b->loss ? a->loss < b->loss
                                : a->id < b->id;
}

// True if the trial is dominated by, or equal to, a point of the front. Points of the front are
// earlier trials.
static bool is_covered(const struct candidates *c, const struct candidate *trial) {
    size_t low = 0, high = c->n_front;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->items[middle].cost <= trial->cost) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && c->items[low - 1].loss <= trial->loss;
}

// Removes all candidates that are not on the front.
static void settle_front(struct candidates *c) {
    struct candidate spare;
    const struct msc_heap heap = {.elements = c->items,
                                  .element_bytes = sizeof *c->items,
                                  .spare = &spare,
                                  .is_before = is_cheaper};
    double best = INFINITY;
    msc_heap_sort(&heap, c->n);
    c->n_front = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->items[i].loss < best) {
            best = c->items[i].loss;
            c->items[c->n_front++] = c->items[i];
        }
    }
    c->n = c->n_front;
}

// Finds the feasible trials that no other trial beats in both cost and loss. Memory is bounded by a
// few times the size of the front, however long the record.
static enum msc_status find_front(struct candidates *c, const struct figures *f) {
    enum { MOST_BEHIND = 1024 };
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (!is_point(f, &line) || line.trial.outcome.state != MSC_TRIAL_COMPLETE) {
            continue;
        }
        const struct candidate trial = candidate_of(f, &line);
        if (is_covered(c, &trial)) {
            continue;
        }
        MSC_TRY(msc_grow(&c->items, &c->capacity, c->n + 1, sizeof *c->items));
        c->items[c->n++] = trial;
        if (c->n > 2 * c->n_front + MOST_BEHIND) {
            settle_front(c);
        }
    }
    settle_front(c);
    return MSC_OK;
}

static enum msc_status take_pareto_front(struct figures *f) {
    int64_t *ids = NULL;
    MSC_TRY(msc_record_front(&ids, &f->n_front, f->record));
    f->front = msc_arena_array(&f->arena, f->n_front + 1, sizeof *f->front);
    for (size_t i = 0; f->front && i < f->n_front; i++) {
        f->front[i] = ids[i];
    }
    msc_free(ids);
    return MSC_ALLOCATED(f->front);
}

static enum msc_status take_front(struct figures *f) {
    if (msc_record_goal(f->record)->n_objectives > 1) {
        return take_pareto_front(f);
    }
    struct candidates c = {0};
    enum msc_status status = find_front(&c, f);
    if (status == MSC_OK) {
        f->n_front = c.n_front;
        f->front = msc_arena_array(&f->arena, c.n_front + 1, sizeof *f->front);
        status = MSC_ALLOCATED(f->front);
    }
    for (size_t i = 0; status == MSC_OK && i < c.n_front; i++) {
        f->front[i] = c.items[i].id;
    }
    msc_free(c.items);
    return status;
}

// Lists every n-th point and both ends.
static enum msc_status add_front(cJSON *figures, struct figures *f) {
    size_t each = 1 + f->n_front / MSC_FIGURE_FRONT;
    cJSON *front;
    MSC_TRY(add_list(&front, figures, "front"));
    MSC_TRY(msc_json_add_number(figures, "n_front", (double)f->n_front));
    for (size_t i = 0; i < f->n_front; i++) {
        const struct msc_record_line line = msc_record_trial(f->record, (size_t)f->front[i]);
        cJSON *row, *metrics;
        char *summary = NULL;
        if (i % each != 0 && i + 1 < f->n_front) {
            continue;
        }
        row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(front, row));
        MSC_TRY(msc_json_add_number(row, "id", (double)line.trial.id));
        metrics = cJSON_CreateObject();
        MSC_TRY(msc_json_add(row, "metrics", metrics));
        for (size_t m = 0; m < f->space->n_metrics; m++) {
            double value = line.trial.outcome.metrics[m];
            if (isfinite(value)) {
                MSC_TRY(msc_json_add_number(metrics, f->space->metrics[m].name, rounded(value)));
            }
        }
        MSC_TRY(msc_plan_summary(&summary, &f->arena, f->record, line.trial.proposal.choices));
        MSC_TRY(msc_json_add_text(row, "summary", summary));
    }
    return MSC_OK;
}

static void mark_front(bool is_kept[], const struct figures *f) {
    for (size_t i = 0; i < f->n_front; i++) {
        is_kept[f->front[i]] = true;
    }
    struct msc_record_line best;
    if (msc_record_best(&best, f->record)) {
        is_kept[best.trial.id] = true;
    }
}

// ---- Points -----------------------------------------------------------------------------------

static enum msc_status add_metric(cJSON *metrics, const struct figures *f, const bool is_kept[],
                                  size_t metric) {
    cJSON *list;
    MSC_TRY(add_list(&list, metrics, f->space->metrics[metric].name));
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (is_kept[i] && is_point(f, &line)) {
            MSC_TRY(push_number(list, rounded(line.trial.outcome.metrics[metric])));
        }
    }
    return MSC_OK;
}

static enum msc_status add_choices(cJSON *tasks, const struct figures *f, const bool is_kept[],
                                   size_t t) {
    const struct msc_task *task = &f->space->tasks[t];
    cJSON *object = cJSON_CreateObject(), *labels, *choices;
    MSC_TRY(msc_json_push(tasks, object));
    MSC_TRY(msc_json_add_text(object, "task", task->name));
    MSC_TRY(add_list(&labels, object, "labels"));
    for (size_t c = 0; c < task->n_choices; c++) {
        MSC_TRY(msc_json_push(labels, cJSON_CreateString(task->labels[c])));
    }
    MSC_TRY(add_list(&choices, object, "choices"));
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (is_kept[i] && is_point(f, &line)) {
            MSC_TRY(push_number(choices, (double)line.trial.proposal.choices[t]));
        }
    }
    return MSC_OK;
}

// Lists the tasks in the given order.
static enum msc_status add_tasks(cJSON *figures, const struct figures *f, const bool is_kept[]) {
    cJSON *tasks;
    MSC_TRY(add_list(&tasks, figures, "tasks"));
    for (size_t i = 0; i < f->n_tasks; i++) {
        for (size_t t = 0; t < f->space->n_tasks; t++) {
            if (strcmp(f->space->tasks[t].name, f->tasks[i]) == 0) {
                MSC_TRY(add_choices(tasks, f, is_kept, t));
            }
        }
    }
    return MSC_OK;
}

static enum msc_status fill_points(cJSON *points, const struct figures *f, const bool is_kept[]) {
    cJSON *ids, *states, *baselines, *metrics = cJSON_CreateObject();
    MSC_TRY(msc_json_add(points, "metrics", metrics));
    MSC_TRY(add_list(&ids, points, "id"));
    MSC_TRY(add_list(&states, points, "state"));
    MSC_TRY(add_list(&baselines, points, "baseline"));
    for (size_t i = 0; i < msc_record_n_trials(f->record); i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        if (!is_kept[i] || !is_point(f, &line)) {
            continue;
        }
        MSC_TRY(push_number(ids, (double)line.trial.id));
        MSC_TRY(push_number(states, (double)line.trial.outcome.state));
        MSC_TRY(push_number(baselines, (double)line.baseline));
    }
    for (size_t m = 0; m < f->space->n_metrics; m++) {
        MSC_TRY(add_metric(metrics, f, is_kept, m));
    }
    return MSC_OK;
}

static enum msc_status add_points(cJSON *figures, struct figures *f) {
    size_t n = msc_record_n_trials(f->record);
    bool is_thinned = n > MSC_FIGURE_POINTS;
    bool *is_kept = msc_arena_array(&f->arena, n + 1, sizeof *is_kept);
    cJSON *points = cJSON_CreateObject();
    MSC_TRY(msc_json_add(figures, "points", points));
    MSC_TRY(MSC_ALLOCATED(is_kept));
    for (size_t i = 0; i < n; i++) {
        is_kept[i] = !is_thinned;
    }
    if (is_thinned) {
        MSC_TRY(mark_cells(is_kept, f));
        mark_front(is_kept, f);
    }
    if (f->cost >= 0) {
        MSC_TRY(msc_json_add_text(figures, "cost", f->space->metrics[f->cost].name));
    }
    MSC_TRY(msc_json_add_bool(figures, "is_thinned", is_thinned));
    MSC_TRY(add_tasks(figures, f, is_kept));
    return fill_points(points, f, is_kept);
}

// ---- Speed and reuse --------------------------------------------------------------------------

// The trials since the end of the previous interval.
struct stretch {
    double begin_s, reuse;
    size_t n, n_evaluated;
};

static enum msc_status end_stretch(struct stretch *s, double end_s, cJSON *const lists[3]) {
    MSC_TRY(push_number(lists[0], rounded(end_s)));
    MSC_TRY(push_number(lists[1], rounded((double)s->n / (end_s - s->begin_s))));
    MSC_TRY(push_number(lists[2], rounded(s->reuse / (double)s->n_evaluated)));
    *s = (struct stretch){.begin_s = end_s};
    return MSC_OK;
}

// Trials of one commit share a time, so an interval ends only between commits.
static enum msc_status fill_speed(const struct figures *f, cJSON *const lists[3]) {
    size_t n = msc_record_n_trials(f->record);
    double least_s = n > 0 ? msc_record_trial(f->record, n - 1).elapsed_s / STRETCHES : 0.0;
    struct stretch s = {0};
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line line = msc_record_trial(f->record, i);
        bool is_evaluated =
            msc_record_is_evaluated(&line) && msc_trial_state_is_result(line.trial.outcome.state);
        s.n++;
        s.n_evaluated += is_evaluated;
        s.reuse += is_evaluated ? line.trial.outcome.reuse_ratio : 0.0;
        bool is_end = i + 1 == n || msc_record_trial(f->record, i + 1).elapsed_s > line.elapsed_s;
        if (is_end && line.elapsed_s > s.begin_s && line.elapsed_s - s.begin_s >= least_s) {
            MSC_TRY(end_stretch(&s, line.elapsed_s, lists));
        }
    }
    return MSC_OK;
}

static enum msc_status add_speed(cJSON *figures, const struct figures *f) {
    static const char *const keys[] = {"seconds", "trials_per_s", "reuse"};
    cJSON *speed = cJSON_CreateObject(), *lists[3];
    MSC_TRY(msc_json_add(figures, "speed", speed));
    for (int i = 0; i < 3; i++) {
        MSC_TRY(add_list(&lists[i], speed, keys[i]));
    }
    return fill_speed(f, lists);
}

static enum msc_status fill_figures(cJSON *figures, struct figures *f) {
    MSC_TRY(add_best(figures, f));
    MSC_TRY(take_front(f));
    MSC_TRY(add_front(figures, f));
    MSC_TRY(add_points(figures, f));
    return add_speed(figures, f);
}

enum msc_status msc_trial_figures(struct cJSON **out, const struct msc_record *record,
                                  const char *const tasks[], size_t n_tasks) {
    struct figures f = {.record = record,
                        .tasks = tasks,
                        .n_tasks = n_tasks,
                        .space = msc_record_space(record),
                        .objective = msc_record_goal(record)->objectives[0].metric,
                        .cost = msc_trial_figures_cost(record)};
    cJSON *figures = cJSON_CreateObject();
    enum msc_status status =
        figures ? fill_figures(figures, &f) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_arena_finish(&f.arena);
    if (status != MSC_OK) {
        cJSON_Delete(figures);
        return status;
    }
    *out = figures;
    return MSC_OK;
}
