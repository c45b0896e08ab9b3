#include "records/rerank.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Places where a metric may have been measured, best first.
enum place {
    PLACE_VALIDATION,
    PLACE_RUNTIME,
    PLACE_EXAMINED,
    PLACE_RECORD,
    PLACE_COUNT,
};
static const char *const place_names[PLACE_COUNT] = {"runtime.validation.", "runtime.", "", ""};

bool msc_rerank_is_of_runtime(const char *metric) {
    static const char *const names[] = {"distill_loss", "accuracy", "latency_us", "latency_ratio"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(metric, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static double value_at(const struct msc_rerank_row *row, enum place place,
                       const struct msc_space *space, int metric) {
    const char *name = space->metrics[metric].name;
    const cJSON *runtime = msc_json_get(row->examined, "runtime");
    switch (place) {
    case PLACE_VALIDATION:
        return msc_json_number_of(msc_json_get(runtime, "validation"), name);
    case PLACE_RUNTIME:
        return msc_json_number_of(runtime, name);
    case PLACE_EXAMINED:
        return msc_json_number_of(row->examined, name);
    default:
        return row->trial->outcome.metrics[metric];
    }
}

// The first place, from `first` on, where any row has the metric.
static enum place find_place(const struct msc_rerank_row rows[], size_t n, enum place first,
                             const struct msc_space *space, int metric) {
    for (enum place place = first; place < PLACE_RECORD; place++) {
        for (size_t i = 0; i < n; i++) {
            if (!rows[i].has_failed && !isnan(value_at(&rows[i], place, space, metric))) {
                return place;
            }
        }
    }
    return PLACE_RECORD;
}

static void fill_values(struct msc_rerank_by *by, struct msc_rerank_row rows[], size_t n,
                        const struct msc_goal *goal, const struct msc_space *space,
                        bool has_command) {
    int metric = goal->objectives[0].metric;
    enum place place = find_place(rows, n, PLACE_VALIDATION, space, metric);
    bool is_unmeasured =
        place == PLACE_RECORD && msc_rerank_is_of_runtime(space->metrics[metric].name);
    snprintf(by->name, sizeof by->name, "%s%.40s", has_command ? "" : place_names[place],
             has_command ? "score" : space->metrics[metric].name);
    for (size_t i = 0; i < n; i++) {
        rows[i].value = has_command ? msc_json_number_of(rows[i].examined, "score")
                                    : value_at(&rows[i], place, space, metric);
        if (rows[i].has_failed || (is_unmeasured && !has_command)) {
            rows[i].value = NAN;
        }
    }
}

static void fill_violations(struct msc_rerank_row rows[], size_t n, const struct msc_goal *goal,
                            const struct msc_space *space) {
    double metrics[MSC_MAX_METRICS];
    enum place places[MSC_MAX_METRICS];
    for (size_t m = 0; m < space->n_metrics; m++) {
        places[m] = find_place(rows, n, PLACE_RUNTIME, space, (int)m);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t m = 0; m < space->n_metrics; m++) {
            metrics[m] = value_at(&rows[i], places[m], space, (int)m);
        }
        rows[i].violation = msc_goal_violation(goal, metrics) + rows[i].held_out_violation;
        for (size_t b = 0; b < goal->n_bounds; b++) {
            rows[i].value = isnan(metrics[goal->bounds[b].metric]) ? NAN : rows[i].value;
        }
    }
}

static bool is_before(const struct msc_rerank_row *a, const struct msc_rerank_row *b,
                      const struct msc_rerank_by *by) {
    bool a_counts = !isnan(a->value), b_counts = !isnan(b->value);
    if (a_counts != b_counts) {
        return a_counts;
    }
    if (a_counts && a->violation != b->violation) {
        return a->violation < b->violation;
    }
    if (a_counts && a->value != b->value) {
        return by->is_maximised ? a->value > b->value : a->value < b->value;
    }
    return a->rank < b->rank;
}

void msc_rerank_sort(struct msc_rerank_by *by, struct msc_rerank_row rows[], size_t n,
                     const struct msc_goal *goal, const struct msc_space *space, bool has_command,
                     bool command_is_maximised) {
    by->is_maximised = has_command ? command_is_maximised : goal->objectives[0].is_maximised;
    fill_values(by, rows, n, goal, space, has_command);
    fill_violations(rows, n, goal, space);
    by->n_measured = 0;
    for (size_t i = 0; i < n; i++) {
        by->n_measured += !isnan(rows[i].value);
    }
    for (size_t i = 1; i < n; i++) { // insertion sort: there are few rows
        struct msc_rerank_row row = rows[i];
        size_t k = i;
        for (; k > 0 && is_before(&row, &rows[k - 1], by); k--) {
            rows[k] = rows[k - 1];
        }
        rows[k] = row;
    }
}
