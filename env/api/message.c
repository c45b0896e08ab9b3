#include "env/api/message.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"

#include <math.h>

static void message_write_key(struct msc_str *out, bool is_first, const char *key) {
    msc_str_append(out, is_first ? "" : ",");
    msc_json_write_text(out, key);
    msc_str_char(out, ':');
}

void msc_message_write_choices(struct msc_str *out, const uint32_t values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_str_u64(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_numbers(struct msc_str *out, const double values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_number(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_texts(struct msc_str *out, const char *const values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_text(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_task(struct msc_str *out, const struct msc_space *space, size_t t) {
    const struct msc_task *task = &space->tasks[t];
    msc_str_append(out, t > 0 ? ",{" : "{");
    message_write_key(out, true, "name");
    msc_json_write_text(out, task->name);
    message_write_key(out, false, "choices");
    message_write_texts(out, task->labels, task->n_choices);
    message_write_key(out, false, "dearest_first");
    msc_message_write_choices(out, task->most_expensive_first, task->n_choices);
    message_write_key(out, false, "features");
    message_write_numbers(out, task->features, space->n_features);
    if (space->n_choice_features > 0) {
        message_write_key(out, false, "choice_features");
        for (uint32_t c = 0; c < task->n_choices; c++) {
            msc_str_char(out, c > 0 ? ',' : '[');
            message_write_numbers(out, task->choice_features + c * space->n_choice_features,
                                  space->n_choice_features);
        }
        msc_str_char(out, ']');
    }
    msc_str_char(out, '}');
}

static void message_write_metric(struct msc_str *out, const struct msc_metric *metric,
                                 bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "name");
    msc_json_write_text(out, metric->name);
    message_write_key(out, false, "unit");
    msc_json_write_text(out, metric->unit ? metric->unit : "");
    message_write_key(out, false, "maximised");
    msc_str_append(out, metric->is_maximised ? "true" : "false");
    message_write_key(out, false, "exact");
    msc_str_append(out, metric->is_exact ? "true" : "false");
    msc_str_char(out, '}');
}

static void message_write_term(struct msc_str *out, const struct msc_space *space,
                               const struct msc_cost_term *term, bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "scale");
    msc_json_write_number(out, term->scale);
    message_write_key(out, false, "factors");
    msc_str_char(out, '[');
    for (uint32_t j = 0; j < term->n_factors; j++) {
        uint32_t task = term->factors[j].task;
        msc_str_append(out, j > 0 ? ",{" : "{");
        message_write_key(out, true, "task");
        msc_str_u64(out, task);
        message_write_key(out, false, "values");
        message_write_numbers(out, term->factors[j].by_choice, space->tasks[task].n_choices);
        msc_str_char(out, '}');
    }
    msc_str_append(out, "]}");
}

static void message_write_cost(struct msc_str *out, const struct msc_space *space,
                               const struct msc_cost *cost, bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "metric");
    msc_json_write_text(out, cost->metric);
    message_write_key(out, false, "constant");
    msc_json_write_number(out, cost->constant);
    message_write_key(out, false, "terms");
    msc_str_char(out, '[');
    for (size_t i = 0; i < cost->n_terms; i++) {
        message_write_term(out, space, &cost->terms[i], i == 0);
    }
    msc_str_append(out, "]}");
}

static void message_write_neighbours(struct msc_str *out, const struct msc_space *space) {
    message_write_key(out, false, "neighbours");
    for (size_t i = 0; i < space->n_neighbours; i++) {
        msc_str_char(out, i > 0 ? ',' : '[');
        msc_message_write_choices(out, space->neighbours[i], 2);
    }
    msc_str_char(out, ']');
}

void msc_message_write_space(struct msc_str *out, const struct msc_space *space) {
    msc_str_char(out, '{');
    message_write_key(out, true, "feature_names");
    message_write_texts(out, space->feature_names, space->n_features);
    if (space->n_choice_features > 0) {
        message_write_key(out, false, "choice_feature_names");
        message_write_texts(out, space->choice_feature_names, space->n_choice_features);
    }
    message_write_key(out, false, "tasks");
    msc_str_char(out, '[');
    for (size_t t = 0; t < space->n_tasks; t++) {
        message_write_task(out, space, t);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "metrics");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_metrics; i++) {
        message_write_metric(out, &space->metrics[i], i == 0);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "costs");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_costs; i++) {
        message_write_cost(out, space, &space->costs[i], i == 0);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "baselines");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_baselines; i++) {
        msc_str_append(out, i > 0 ? ",{" : "{");
        message_write_key(out, true, "label");
        msc_json_write_text(out, space->baselines[i].label);
        message_write_key(out, false, "choices");
        msc_message_write_choices(out, space->baselines[i].choices, space->n_tasks);
        msc_str_char(out, '}');
    }
    msc_str_char(out, ']');
    if (space->n_neighbours > 0) {
        message_write_neighbours(out, space);
    }
    msc_str_char(out, '}');
}

static void message_write_bound(struct msc_str *out, const struct msc_bound *bound) {
    msc_str_char(out, '{');
    if (isfinite(bound->min)) {
        message_write_key(out, true, "min");
        msc_json_write_number(out, bound->min);
    }
    if (isfinite(bound->max)) {
        message_write_key(out, !isfinite(bound->min), "max");
        msc_json_write_number(out, bound->max);
    }
    msc_str_char(out, '}');
}

void msc_message_write_goal(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal) {
    msc_str_char(out, '{');
    message_write_key(out, true, "objectives");
    msc_str_char(out, '[');
    for (size_t i = 0; i < goal->n_objectives; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_text(out, space->metrics[goal->objectives[i].metric].name);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "bounds");
    msc_str_char(out, '{');
    for (size_t i = 0; i < goal->n_bounds; i++) {
        message_write_key(out, i == 0, space->metrics[goal->bounds[i].metric].name);
        message_write_bound(out, &goal->bounds[i]);
    }
    msc_str_append(out, "}}");
}

static void message_write_metrics(struct msc_str *out, const struct msc_space *space,
                                  const double metrics[]) {
    bool is_first = true;
    msc_str_char(out, '{');
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (isfinite(metrics[i])) {
            message_write_key(out, is_first, space->metrics[i].name);
            msc_json_write_number(out, metrics[i]);
            is_first = false;
        }
    }
    msc_str_char(out, '}');
}

void msc_message_write_outcome(struct msc_str *out, const struct msc_space *space,
                               const struct msc_goal *goal, const struct msc_outcome *outcome) {
    msc_str_append(out, "{\"state\":");
    msc_json_write_text(out, msc_trial_state_name(outcome->state));
    msc_str_append(out, ",\"metrics\":");
    message_write_metrics(out, space, outcome->metrics);
    msc_str_append(out, ",\"objectives\":");
    message_write_numbers(out, outcome->objectives, goal->n_objectives);
    msc_str_append(out, ",\"violation\":");
    msc_json_write_number(out, outcome->violation);
    msc_str_append(out, ",\"reason\":");
    // A reason from a forged record may contain bytes that are not UTF-8.
    msc_shown_append_string(out, outcome->reason);
    msc_str_char(out, '}');
}
