#include "env/api/trial.h"

#include "base/shown.h"
#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[MSC_TRIAL_STATE_COUNT] = {
    [MSC_TRIAL_COMPLETE] = "complete",
    [MSC_TRIAL_PRUNED] = "pruned",
    [MSC_TRIAL_INFEASIBLE] = "infeasible",
    [MSC_TRIAL_FAILED] = "failed",
};

const char *msc_trial_state_name(enum msc_trial_state state) {
    return state_names[state];
}

bool msc_trial_state_parse(enum msc_trial_state *out, const char *name) {
    for (int i = 0; i < MSC_TRIAL_STATE_COUNT; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *out = (enum msc_trial_state)i;
            return true;
        }
    }
    return false;
}

enum msc_status msc_outcome_init(struct msc_outcome *outcome, struct msc_arena *arena,
                                 const struct msc_space *space) {
    *outcome = (struct msc_outcome){
        .state = MSC_TRIAL_COMPLETE,
        .metrics = msc_arena_array(arena, space->n_metrics, sizeof *outcome->metrics),
        .reason = msc_arena_alloc(arena, MSC_REASON_BYTES),
    };
    MSC_TRY(MSC_ALLOCATED(outcome->metrics && outcome->reason));
    for (size_t i = 0; i < space->n_metrics; i++) {
        outcome->metrics[i] = NAN;
    }
    return MSC_OK;
}

enum msc_status msc_trial_init(struct msc_trial *trial, struct msc_arena *arena,
                               const struct msc_space *space) {
    *trial = (struct msc_trial){.id = -1, .proposal = {.parent = -1, .bound = INFINITY}};
    trial->proposal.choices =
        msc_arena_array(arena, space->n_tasks, sizeof *trial->proposal.choices);
    return trial->proposal.choices ? msc_outcome_init(&trial->outcome, arena, space)
                                   : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

void msc_trial_begin(struct msc_trial *trial, const struct msc_space *space) {
    double *metrics = trial->outcome.metrics;
    char *reason = trial->outcome.reason;
    trial->outcome =
        (struct msc_outcome){.state = MSC_TRIAL_COMPLETE, .metrics = metrics, .reason = reason};
    reason[0] = '\0';
    for (size_t i = 0; i < space->n_metrics; i++) {
        metrics[i] = NAN;
    }
    for (size_t i = 0; i < space->n_costs; i++) {
        int metric = msc_space_find_metric(space, space->costs[i].metric);
        metrics[metric] = msc_cost_value(&space->costs[i], trial->proposal.choices);
    }
}

#define CHARACTER_BYTES 4 // longest UTF-8 character

// vsnprintf may cut a character in two, but only beyond the bytes that msc_shown_copy keeps.
static void set_reason(struct msc_outcome *outcome, const char *format, va_list arguments) {
    char text[MSC_REASON_BYTES + CHARACTER_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    msc_shown_copy(outcome->reason, MSC_REASON_BYTES, text);
}

void msc_outcome_fail(struct msc_outcome *outcome, enum msc_trial_cause cause, const char *format,
                      ...) {
    va_list arguments;
    outcome->state = MSC_TRIAL_FAILED;
    outcome->cause = cause;
    va_start(arguments, format);
    set_reason(outcome, format, arguments);
    va_end(arguments);
}

void msc_outcome_prune(struct msc_outcome *outcome, const char *format, ...) {
    va_list arguments;
    outcome->state = MSC_TRIAL_PRUNED;
    va_start(arguments, format);
    set_reason(outcome, format, arguments);
    va_end(arguments);
}

static double bound_violation(const struct msc_bound *bound, double value) {
    double overshoot = 0.0;
    double limit = 1.0;
    if (value > bound->max) {
        overshoot = value - bound->max;
        limit = fabs(bound->max);
    } else if (value < bound->min) {
        overshoot = bound->min - value;
        limit = fabs(bound->min);
    }
    return limit > 0.0 ? overshoot / limit : overshoot;
}

double msc_goal_violation(const struct msc_goal *goal, const double metrics[]) {
    double sum = 0.0;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        sum += bound_violation(&goal->bounds[i], metrics[goal->bounds[i].metric]);
    }
    return sum;
}

double msc_goal_exact_violation(const struct msc_goal *goal, const struct msc_space *space,
                                const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const struct msc_metric *metric = &space->metrics[goal->bounds[i].metric];
        if (metric->is_exact) {
            const struct msc_cost *cost = msc_space_find_cost(space, metric->name);
            sum += bound_violation(&goal->bounds[i], msc_cost_value(cost, choices));
        }
    }
    return sum;
}

// The first metric of the goal without a usable value, or -1.
static int missing_metric(const struct msc_goal *goal, const double metrics[]) {
    for (size_t i = 0; i < goal->n_objectives; i++) {
        if (!isfinite(metrics[goal->objectives[i].metric])) {
            return goal->objectives[i].metric;
        }
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (!isfinite(metrics[goal->bounds[i].metric])) {
            return goal->bounds[i].metric;
        }
    }
    return -1;
}

void msc_goal_set_objectives(const struct msc_goal *goal, struct msc_outcome *outcome) {
    for (size_t i = 0; i < goal->n_objectives; i++) {
        double value = outcome->metrics[goal->objectives[i].metric];
        outcome->objectives[i] = goal->objectives[i].is_maximised ? -value : value;
    }
}

void msc_goal_judge(const struct msc_goal *goal, const struct msc_space *space,
                    struct msc_outcome *outcome) {
    msc_goal_set_objectives(goal, outcome);
    outcome->violation = msc_goal_violation(goal, outcome->metrics);
    if (outcome->state != MSC_TRIAL_COMPLETE) {
        return;
    }
    int missing = missing_metric(goal, outcome->metrics);
    if (missing >= 0) {
        msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "%s is %s", space->metrics[missing].name,
                         isnan(outcome->metrics[missing]) ? "not a number" : "infinite");
    } else if (outcome->violation > 0.0) {
        outcome->state = MSC_TRIAL_INFEASIBLE;
    }
}

bool msc_goal_takes_bound(const struct msc_goal *goal, const struct msc_space *space) {
    const struct msc_objective *objective = &goal->objectives[0];
    return goal->n_objectives == 1 && !objective->is_maximised &&
           strcmp(space->metrics[objective->metric].name, "distill_loss") == 0;
}

bool msc_goal_is_estimate(const struct msc_goal *goal, const struct msc_trial *trial) {
    double loss = trial->outcome.metrics[goal->objectives[0].metric];
    return trial->outcome.state == MSC_TRIAL_PRUNED && loss <= trial->proposal.bound;
}

struct msc_outcome msc_goal_learn(const struct msc_goal *goal, const struct msc_trial *trial) {
    struct msc_outcome outcome = trial->outcome;
    if (!msc_goal_is_estimate(goal, trial)) {
        return outcome;
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (isnan(outcome.metrics[goal->bounds[i].metric])) {
            return outcome;
        }
    }
    outcome.state = outcome.violation > 0.0 ? MSC_TRIAL_INFEASIBLE : MSC_TRIAL_COMPLETE;
    return outcome;
}

static enum msc_status check_reachable_bound(const struct msc_bound *bound,
                                             const struct msc_space *space) {
    if (bound->metric < 0 || (size_t)bound->metric >= space->n_metrics) {
        return MSC_FAIL(MSC_E_INVALID, "a bound names metric %d, but there are only %zu metrics",
                        bound->metric, space->n_metrics);
    }
    const struct msc_metric *metric = &space->metrics[bound->metric];
    if (isnan(bound->min) || isnan(bound->max) || bound->min > bound->max) {
        return MSC_FAIL(MSC_E_INVALID, "bound %s: min %g is above max %g", metric->name, bound->min,
                        bound->max);
    }
    const struct msc_cost *cost = msc_space_find_cost(space, metric->name);
    if (!cost) {
        return MSC_OK;
    }
    bool is_exact;
    struct msc_str text = {0};
    double low = msc_cost_min(space, cost, &is_exact, NULL);
    if (low > bound->max) {
        msc_str_printf(&text, "bound %s: no choice can meet max ", metric->name);
        msc_str_double(&text, bound->max);
        msc_str_append(&text,
                       is_exact ? "; the reachable minimum is " : "; every choice is at least ");
        msc_str_double(&text, low);
    }
    double high = msc_cost_max(space, cost, &is_exact, NULL);
    if (high < bound->min) {
        msc_str_printf(&text, "bound %s: no choice can meet min ", metric->name);
        msc_str_double(&text, bound->min);
        msc_str_append(&text,
                       is_exact ? "; the reachable maximum is " : "; every choice is at most ");
        msc_str_double(&text, high);
    }
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK && text.length > 0) {
        status = MSC_FAIL(MSC_E_INVALID, "%s", msc_str_text(&text));
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_goal_check(const struct msc_goal *goal, const struct msc_space *space) {
    if (goal->n_objectives == 0 || goal->n_objectives > MSC_MAX_OBJECTIVES) {
        return MSC_FAIL(MSC_E_INVALID, "there are %zu objectives, expected 1 to %d",
                        goal->n_objectives, MSC_MAX_OBJECTIVES);
    }
    if (goal->n_bounds > MSC_MAX_BOUNDS) {
        return MSC_FAIL(MSC_E_INVALID, "there are %zu bounds, expected at most %d", goal->n_bounds,
                        MSC_MAX_BOUNDS);
    }
    for (size_t i = 0; i < goal->n_objectives; i++) {
        int metric = goal->objectives[i].metric;
        if (metric < 0 || (size_t)metric >= space->n_metrics) {
            return MSC_FAIL(MSC_E_INVALID,
                            "objective %zu names metric %d, but there are only %zu metrics", i,
                            metric, space->n_metrics);
        }
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        MSC_TRY(check_reachable_bound(&goal->bounds[i], space));
    }
    return MSC_OK;
}

// 0: feasible; 1: infeasible; 2: pruned or failed, which can never win.
static int outcome_class(const struct msc_outcome *outcome) {
    static const int classes[MSC_TRIAL_STATE_COUNT] = {
        [MSC_TRIAL_COMPLETE] = 0,
        [MSC_TRIAL_INFEASIBLE] = 1,
        [MSC_TRIAL_PRUNED] = 2,
        [MSC_TRIAL_FAILED] = 2,
    };
    return classes[outcome->state];
}

static int trial_compare_doubles(double a, double b) {
    return (a > b) - (a < b);
}

int msc_trial_compare(const struct msc_trial *a, const struct msc_trial *b) {
    int class_a = outcome_class(&a->outcome);
    int order = class_a - outcome_class(&b->outcome);
    if (order == 0 && class_a == 0) {
        order = trial_compare_doubles(a->outcome.objectives[0], b->outcome.objectives[0]);
    } else if (order == 0 && class_a == 1) {
        order = trial_compare_doubles(a->outcome.violation, b->outcome.violation);
    }
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

bool msc_outcome_covers(const struct msc_outcome *a, const struct msc_outcome *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (a->objectives[i] > b->objectives[i]) {
            return false;
        }
    }
    return true;
}

bool msc_outcome_dominates(const struct msc_outcome *a, const struct msc_outcome *b, size_t n) {
    return msc_outcome_covers(a, b, n) && !msc_outcome_covers(b, a, n);
}
