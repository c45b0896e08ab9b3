// Rules for every environment. They evaluate random points and the baselines.
#include "base/json.h"
#include "base/rng.h"
#include "checks/check.h"

#include <math.h>
#include <string.h>

enum { N_DRAWN = 16, CHECK_STREAM = 0x636865 };

// An environment with a set of trials. All sets of one check have the same points.
struct check_set {
    const struct msc_check_env *subject;
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_arena arena;
    struct msc_trial **trials; // [n]
    size_t n;
};

static void set_close(struct check_set *set) {
    if (set->env) {
        set->subject->close(set->subject->payload, set->env);
    }
    msc_arena_finish(&set->arena);
    memset(set, 0, sizeof *set);
}

static void draw_point(struct msc_rng *rng, const struct msc_space *space, uint32_t choices[]) {
    for (size_t t = 0; t < space->n_tasks; t++) {
        choices[t] = (uint32_t)msc_rng_below(rng, space->tasks[t].n_choices);
    }
}

static enum msc_status draw_trials(struct check_set *set) {
    const struct msc_space *space = msc_env_space(set->env);
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, CHECK_STREAM);
    set->n = N_DRAWN + space->n_baselines;
    set->trials = msc_arena_array(&set->arena, set->n, sizeof set->trials[0]);
    for (size_t i = 0; i < set->n; i++) {
        struct msc_trial *trial = msc_arena_array(&set->arena, 1, sizeof *trial);
        MSC_TRY(MSC_ALLOCATED(set->trials && trial));
        MSC_TRY(msc_trial_init(trial, &set->arena, space));
        trial->id = (int64_t)i;
        trial->proposal.probe = true;
        if (i < N_DRAWN) {
            draw_point(&rng, space, trial->proposal.choices);
        } else {
            memcpy(trial->proposal.choices, space->baselines[i - N_DRAWN].choices,
                   space->n_tasks * sizeof(uint32_t));
        }
        set->trials[i] = trial;
    }
    return MSC_OK;
}

// Opens an environment with the trials of a check. The goal is the first metric. The caller closes
// the set, also after a failure.
static enum msc_status set_open(struct check_set *set, const struct msc_check_env *subject) {
    memset(set, 0, sizeof *set);
    set->subject = subject;
    MSC_TRY(subject->open(subject->payload, &set->env));
    MSC_TRY(msc_env_read_goal(&set->goal, msc_env_space(set->env), NULL));
    return draw_trials(set);
}

static enum msc_status evaluate(struct check_set *set, size_t first, size_t n) {
    const struct msc_evaluation e = {.trials = set->trials + first, .n = n};
    return msc_env_evaluate(set->env, &set->goal, &e);
}

static enum msc_status try_rule(enum msc_status (*rule)(struct check_set *a, struct check_set *b),
                                const void *subject) {
    struct check_set a, b = {.n = 0};
    enum msc_status status = set_open(&a, subject);
    if (status == MSC_OK) {
        status = set_open(&b, subject);
    }
    if (status == MSC_OK) {
        status = rule(&a, &b);
    }
    set_close(&a);
    set_close(&b);
    return status;
}

// ---- Rules ------------------------------------------------------------------------------------

// Checks the order of choices by cost; msc_env_create itself checks that the space is valid.
static enum msc_status rule_space(struct check_set *a, struct check_set *b) {
    const struct msc_space *space = msc_env_space(a->env);
    double reference[MSC_MAX_METRICS];
    uint32_t *expensive = msc_arena_array(&a->arena, space->n_tasks, sizeof *expensive);
    uint32_t *cheap = msc_arena_array(&a->arena, space->n_tasks, sizeof *cheap);
    (void)b;
    MSC_TRY(MSC_ALLOCATED(expensive && cheap));
    MSC_TRY(msc_env_reference(a->env, reference));
    for (size_t t = 0; t < space->n_tasks; t++) {
        const struct msc_task *task = &space->tasks[t];
        expensive[t] = task->most_expensive_first[0];
        cheap[t] = task->most_expensive_first[task->n_choices - 1];
    }
    for (size_t i = 0; i < space->n_costs && i < 1; i++) {
        double most = msc_cost_value(&space->costs[i], expensive);
        double least = msc_cost_value(&space->costs[i], cheap);
        if (most < least) {
            return MSC_FAIL(MSC_E_INVALID,
                            "the plan of all choices that are listed as most expensive has %s %g, "
                            "less than the plan of all cheapest choices, %g",
                            space->costs[i].metric, most, least);
        }
    }
    return MSC_OK;
}

static enum msc_status rule_identity(struct check_set *a, struct check_set *b) {
    struct msc_hash x, y;
    MSC_TRY(msc_env_identity(&x, a->env));
    MSC_TRY(msc_env_identity(&y, b->env));
    bool is_same_space = msc_hash_equal(msc_space_hash(msc_env_space(a->env)),
                                        msc_space_hash(msc_env_space(b->env)));
    if (!is_same_space || !msc_hash_equal(x, y)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "a second environment from the same configuration has another %s",
                        is_same_space ? "identity" : "space");
    }
    return MSC_OK;
}

static enum msc_status compare_outcomes(const struct check_set *set, const struct msc_trial *a,
                                        const struct msc_trial *b) {
    const struct msc_space *space = msc_env_space(set->env);
    if (a->outcome.state != b->outcome.state) {
        return MSC_FAIL(MSC_E_INVALID,
                        "point %lld is %s when evaluated with others, but %s by itself",
                        (long long)a->id, msc_trial_state_name(a->outcome.state),
                        msc_trial_state_name(b->outcome.state));
    }
    for (size_t i = 0; i < space->n_metrics; i++) {
        bool is_same = memcmp(&a->outcome.metrics[i], &b->outcome.metrics[i], sizeof(double)) == 0;
        if (!is_same && !space->metrics[i].is_measured) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "point %lld has %s %.17g when evaluated with others, but %.17g by itself",
                (long long)a->id, space->metrics[i].name, a->outcome.metrics[i],
                b->outcome.metrics[i]);
        }
    }
    return MSC_OK;
}

// Checks that results depend only on choices, and not on the other trials, their order or earlier
// trials. Resume and verify rely on this.
static enum msc_status rule_choices(struct check_set *together, struct check_set *alone) {
    MSC_TRY(evaluate(together, 0, together->n));
    for (size_t i = alone->n; i-- > 0;) {
        MSC_TRY(evaluate(alone, i, 1));
        MSC_TRY(compare_outcomes(together, together->trials[i], alone->trials[i]));
    }
    return MSC_OK;
}

static enum msc_status check_costs(const struct msc_space *space, const struct msc_trial *trial) {
    for (size_t i = 0; i < space->n_costs; i++) {
        int metric = msc_space_find_metric(space, space->costs[i].metric);
        double said = trial->outcome.metrics[metric];
        double value = msc_cost_value(&space->costs[i], trial->proposal.choices);
        if (said != value) {
            return MSC_FAIL(MSC_E_INVALID,
                            "point %lld has %s %.17g, but the space's costs give %.17g",
                            (long long)trial->id, space->costs[i].metric, said, value);
        }
    }
    return MSC_OK;
}

static enum msc_status rule_outcomes(struct check_set *a, struct check_set *b) {
    const struct msc_space *space = msc_env_space(a->env);
    size_t n_complete = 0;
    const char *reason = "";
    (void)b;
    MSC_TRY(evaluate(a, 0, a->n));
    for (size_t i = 0; i < a->n; i++) {
        const struct msc_outcome *outcome = &a->trials[i]->outcome;
        bool is_failed = outcome->state == MSC_TRIAL_FAILED;
        n_complete += outcome->state == MSC_TRIAL_COMPLETE;
        reason = is_failed ? outcome->reason : reason;
        if (is_failed && outcome->reason[0] == '\0') {
            return MSC_FAIL(MSC_E_INVALID, "point %zu fails without a reason", i);
        }
        MSC_TRY(check_costs(space, a->trials[i]));
    }
    if (n_complete == 0) {
        return MSC_FAIL(MSC_E_INVALID, "none of %zu points can be evaluated: %s", a->n, reason);
    }
    return MSC_OK;
}

static enum msc_status check_bounded(const struct msc_trial *bounded, double loss) {
    double bound = bounded->proposal.bound;
    double said = bounded->outcome.metrics[0];
    bool is_pruned = bounded->outcome.state == MSC_TRIAL_PRUNED;
    if (is_pruned && loss <= bound) {
        return MSC_FAIL(MSC_E_INVALID,
                        "point %lld is stopped at its bound of %.17g, but its loss is only %.17g",
                        (long long)bounded->id, bound, loss);
    }
    if (is_pruned ? !(said > bound && said <= loss) : !isnan(loss) && said != loss) {
        return MSC_FAIL(MSC_E_INVALID,
                        "point %lld, with a bound of %.17g, is %s with a loss of %.17g, but "
                        "without a bound it is %.17g",
                        (long long)bounded->id, bound, msc_trial_state_name(bounded->outcome.state),
                        said, loss);
    }
    return MSC_OK;
}

// Checks that a trial is stopped only if its loss exceeds the bound. Tries three bounds: half the
// loss, just below the loss, and the loss itself.
static enum msc_status rule_bounds(struct check_set *a, struct check_set *b) {
    static const double parts[] = {0.5, 0.999, 1.0};
    if (!msc_goal_takes_bound(&a->goal, msc_env_space(a->env))) {
        return MSC_OK;
    }
    MSC_TRY(evaluate(a, 0, a->n));
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        for (size_t i = 0; i < b->n; i++) {
            double loss = a->trials[i]->outcome.metrics[0];
            b->trials[i]->proposal.bound = isnan(loss) ? INFINITY : parts[k] * loss;
        }
        MSC_TRY(evaluate(b, 0, b->n));
        for (size_t i = 0; i < b->n; i++) {
            MSC_TRY(check_bounded(b->trials[i], a->trials[i]->outcome.metrics[0]));
        }
    }
    return MSC_OK;
}

static enum msc_status rule_state(struct check_set *a, struct check_set *b) {
    cJSON *state = NULL;
    MSC_TRY(evaluate(a, 0, a->n));
    MSC_TRY(msc_env_save(a->env, &state));
    enum msc_status status = msc_env_restore(b->env, state);
    cJSON_Delete(state);
    MSC_TRY(status);
    MSC_TRY(evaluate(b, 0, b->n));
    for (size_t i = 0; i < a->n; i++) {
        MSC_TRY(compare_outcomes(a, a->trials[i], b->trials[i]));
    }
    return MSC_OK;
}

static enum msc_status rule_edits(struct check_set *a, struct check_set *b) {
    (void)b;
    for (size_t i = 0; msc_env_has_edits(a->env) && i < a->n; i++) {
        cJSON *edits = NULL;
        MSC_TRY(msc_env_edits(a->env, a->trials[i]->proposal.choices, &edits));
        bool is_object = cJSON_IsObject(edits);
        cJSON_Delete(edits);
        if (!is_object) {
            return MSC_FAIL(MSC_E_INVALID, "the edits of point %zu are not a JSON object", i);
        }
    }
    return MSC_OK;
}

static enum msc_status rule_init(struct check_set *a, struct check_set *b) {
    (void)a;
    (void)b;
    return MSC_OK; // opening both environments was the test
}

static enum msc_status check_init(const void *subject) {
    return try_rule(rule_init, subject);
}

static enum msc_status check_space(const void *subject) {
    return try_rule(rule_space, subject);
}

static enum msc_status check_identity(const void *subject) {
    return try_rule(rule_identity, subject);
}

static enum msc_status check_choices(const void *subject) {
    return try_rule(rule_choices, subject);
}

static enum msc_status check_outcomes(const void *subject) {
    return try_rule(rule_outcomes, subject);
}

static enum msc_status check_bounds(const void *subject) {
    return try_rule(rule_bounds, subject);
}

static enum msc_status check_state(const void *subject) {
    return try_rule(rule_state, subject);
}

static enum msc_status check_edits(const void *subject) {
    return try_rule(rule_edits, subject);
}

const struct msc_check_rule msc_check_env_rules[] = {
    {"init", "starts, more than once", check_init},
    {"space", "its space is valid, and choices are ordered by cost", check_space},
    {"identity", "the same configuration gives the same identity and space", check_identity},
    {"choices", "an outcome depends only on the choices, to the bit", check_choices},
    {"outcomes", "points can be evaluated, and exact costs equal the space's", check_outcomes},
    {"bounds", "a trial is stopped at its bound only if its loss exceeds it", check_bounds},
    {"state", "its saved state can be restored", check_state},
    {"edits", "if it has edits, every point has them", check_edits},
    {NULL, NULL, NULL},
};
