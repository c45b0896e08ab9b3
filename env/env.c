#include "env/env.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "env/trial_runs.h"
#include "tools/strategy.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct msc_env {
    const struct msc_env_def *def;
    void *state;
    struct msc_env_host host, whole;
    struct msc_graph *pruned; // the graph without the channels that `base` removes; NULL: unchanged
    const struct cJSON *config;
    const struct msc_env_elsewhere *elsewhere; // NULL: this process measures trials
    struct msc_arena arena;
    // Memory of an evaluation, kept between calls: the trials to measure, their bounds and terms,
    // their indices in the caller's list, and whether they were reported.
    struct msc_trial **trials;
    size_t trials_capacity;
    double *bounds;
    size_t bounds_capacity;
    double **terms;
    size_t terms_capacity;
    size_t *places;
    size_t places_capacity;
    bool *reported;
    size_t reported_capacity;
};

void *msc_env_state(const struct msc_env *env) {
    return env->state;
}

const struct msc_env_host *msc_env_host(const struct msc_env *env) {
    return &env->host;
}

const struct msc_env_host *msc_env_whole_host(const struct msc_env *env) {
    return &env->whole;
}

const struct cJSON *msc_env_config(const struct msc_env *env) {
    return env->config;
}

struct msc_arena *msc_env_arena(struct msc_env *env) {
    return &env->arena;
}

const struct msc_env_def *msc_env_definition(const struct msc_env *env) {
    return env->def;
}

const struct msc_space *msc_env_space(const struct msc_env *env) {
    return env->def->space(env);
}

static enum msc_status check_needs(const struct msc_env_def *def, const struct msc_env_host *host) {
    const struct {
        unsigned need;
        bool is_there;
        const char *what;
    } needs[] = {
        {MSC_ENV_NEEDS_GRAPH, host->graph != NULL, "a model"},
        {MSC_ENV_NEEDS_DATASET, host->dataset != NULL, "a dataset"},
        {MSC_ENV_NEEDS_BACKEND, host->backend != NULL, "a model and a dataset"},
    };
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if ((def->needs & needs[i].need) && !needs[i].is_there) {
            return MSC_FAIL(MSC_E_INVALID, "environment %s needs %s, but the config has none",
                            def->name, needs[i].what);
        }
    }
    return MSC_OK;
}

// If the strategy to start from prunes channels, the search works on the pruned graph.
static enum msc_status prune_graph(struct msc_env *env) {
    const struct msc_strategy *base = env->host.base;
    if (!base || !env->host.graph || !msc_strategy_prunes(base)) {
        return MSC_OK;
    }
    MSC_TRY(msc_strategy_prune(&env->pruned, base, env->host.graph));
    env->host.graph = env->pruned;
    return MSC_OK;
}

static enum msc_status env_start(struct msc_env *env) {
    static const char *const ignore[] = {"type", "objectives", "bounds", NULL};
    const struct msc_env_def *def = env->def;
    MSC_TRY(check_needs(def, &env->host));
    MSC_TRY(prune_graph(env));
    env->state = msc_alloc_zero(1, def->state_size ? def->state_size : 1);
    MSC_TRY(MSC_ALLOCATED(env->state));
    msc_param_defaults(def->params, env->state);
    MSC_TRY(msc_param_read(def->params, env->state, env->config, "env", ignore, &env->arena));
    MSC_TRY(def->init(env));
    enum msc_status status = msc_space_check(def->space(env));
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, "environment %s", def->name);
}

enum msc_status msc_env_create(struct msc_env **out, const struct msc_env_def *def,
                               const struct cJSON *config, const struct msc_env_host *host) {
    if (def->abi != MSC_ENV_ABI) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "environment %s was built for ABI %u, expected %u; rebuild it with the installed "
            "headers",
            def->name, def->abi, MSC_ENV_ABI);
    }
    struct msc_env *env = msc_alloc_zero(1, sizeof *env);
    MSC_TRY(MSC_ALLOCATED(env));
    env->def = def;
    env->config = config;
    env->host = *host;
    env->host.abi = MSC_ENV_ABI;
    env->whole = env->host;
    enum msc_status status = env_start(env);
    if (status != MSC_OK) {
        msc_env_destroy(env);
        return status;
    }
    *out = env;
    return MSC_OK;
}

void msc_env_destroy(struct msc_env *env) {
    if (!env) {
        return;
    }
    if (env->state && env->def->finish) {
        env->def->finish(env);
    }
    msc_free(env->state);
    msc_free(env->trials);
    msc_free(env->bounds);
    msc_free(env->terms);
    msc_free(env->places);
    msc_free(env->reported);
    msc_arena_finish(&env->arena);
    msc_graph_destroy(env->pruned);
    msc_free(env);
}

// One call of the definition's evaluate.
struct pass {
    struct msc_env *env;
    const struct msc_goal *goal;
    const struct msc_evaluation *caller;
    const struct msc_env_part *part; // NULL: all batches
};

// Fails a trial that a plug-in stopped below its bound, because it could have been the best one.
static void check_pruned(const struct pass *pass, struct msc_outcome *outcome, double bound) {
    double loss = outcome->metrics[pass->goal->objectives[0].metric];
    if (outcome->state == MSC_TRIAL_PRUNED && !pass->part && !(loss > bound)) {
        msc_outcome_fail(
            outcome, MSC_CAUSE_TRIAL,
            "the environment stopped the trial at %.17g, expected more than its bound of %.17g",
            loss, bound);
    }
}

// Makes the reason one line of UTF-8, because a plug-in may have written it directly.
static void tidy_reason(struct msc_outcome *outcome) {
    char text[MSC_REASON_BYTES];
    outcome->reason[MSC_REASON_BYTES - 1] = '\0';
    msc_shown_copy(text, sizeof text, outcome->reason);
    memcpy(outcome->reason, text, strlen(text) + 1);
}

static void report_finished(void *payload, size_t index) {
    struct pass *pass = payload;
    struct msc_env *env = pass->env;
    if (env->reported[index]) {
        return;
    }
    env->reported[index] = true;
    struct msc_outcome *outcome = &env->trials[index]->outcome;
    tidy_reason(outcome);
    check_pruned(pass, outcome, env->bounds[index]);
    msc_goal_judge(pass->goal, msc_env_space(env), outcome);
    if (pass->caller->finished) {
        pass->caller->finished(pass->caller->payload, env->places[index]);
    }
}

static enum msc_status check_choices(const struct msc_space *space, const struct msc_trial *trial) {
    const uint32_t *choices = trial->proposal.choices;
    for (size_t t = 0; t < space->n_tasks; t++) {
        if (choices[t] >= space->tasks[t].n_choices) {
            return MSC_FAIL(MSC_E_INVALID, "trial %lld: task %s has no choice %u, only %u choices",
                            (long long)trial->id, space->tasks[t].name, choices[t],
                            space->tasks[t].n_choices);
        }
    }
    return MSC_OK;
}

static enum msc_status env_reserve(struct msc_env *env, size_t n) {
    MSC_TRY(msc_grow(&env->trials, &env->trials_capacity, n, sizeof *env->trials));
    MSC_TRY(msc_grow(&env->bounds, &env->bounds_capacity, n, sizeof *env->bounds));
    MSC_TRY(msc_grow(&env->terms, &env->terms_capacity, n, sizeof *env->terms));
    MSC_TRY(msc_grow(&env->places, &env->places_capacity, n, sizeof *env->places));
    return msc_grow(&env->reported, &env->reported_capacity, n, sizeof *env->reported);
}

// Begins a trial. If the trial continues after an earlier part (`goes_on`), its metrics are kept,
// and only a failure in that part is cleared.
static void begin_trial(struct msc_trial *trial, const struct msc_space *space, bool goes_on) {
    if (goes_on) {
        trial->outcome.state = MSC_TRIAL_COMPLETE;
        trial->outcome.cause = MSC_CAUSE_NONE;
        trial->outcome.reason[0] = '\0';
    } else {
        msc_trial_begin(trial, space);
    }
}

// Begins every trial and reports those that need not be measured. Lists the others in env->trials
// and returns their number.
static size_t sort_out(struct pass *pass) {
    struct msc_env *env = pass->env;
    const struct msc_evaluation *e = pass->caller;
    const struct msc_space *space = msc_env_space(env);
    bool takes_bound = msc_goal_takes_bound(pass->goal, space);
    size_t n_left = 0;
    for (size_t i = 0; i < e->n; i++) {
        struct msc_trial *trial = e->trials[i];
        struct msc_outcome *outcome = &trial->outcome;
        bool goes_on = pass->part && pass->part->first > 0;
        begin_trial(trial, space, goes_on);
        if (!goes_on && !trial->proposal.probe &&
            msc_goal_violation(pass->goal, outcome->metrics) > 0.0) {
            outcome->state = MSC_TRIAL_INFEASIBLE;
            msc_goal_judge(pass->goal, space, outcome);
            if (e->finished) {
                e->finished(e->payload, i);
            }
            continue;
        }
        env->trials[n_left] = trial;
        env->bounds[n_left] = takes_bound ? trial->proposal.bound : INFINITY;
        env->terms[n_left] = pass->part && pass->part->terms ? pass->part->terms[i] : NULL;
        env->places[n_left] = i;
        env->reported[n_left] = false;
        n_left++;
    }
    return n_left;
}

static enum msc_status measure(struct msc_env *env, const struct msc_evaluation *e,
                               const struct msc_env_part *part) {
    return part ? env->def->evaluate_part(env, e, part) : env->def->evaluate(env, e);
}

static enum msc_status measure_pass(const struct pass *pass, const struct msc_evaluation *e) {
    struct msc_env *env = pass->env;
    struct msc_env_part part = {0};
    if (pass->part) {
        part = *pass->part;
        part.terms = part.terms ? env->terms : NULL;
    }
    const struct msc_env_part *asked = pass->part ? &part : NULL;
    return env->elsewhere ? env->elsewhere->measure(env->elsewhere->payload, e, asked)
                          : measure(env, e, asked);
}

static enum msc_status run_pass(struct pass *pass) {
    struct msc_env *env = pass->env;
    const struct msc_evaluation *e = pass->caller;
    for (size_t i = 0; i < e->n; i++) {
        MSC_TRY(check_choices(msc_env_space(env), e->trials[i]));
    }
    MSC_TRY(env_reserve(env, e->n));
    size_t n_left = sort_out(pass);
    if (n_left == 0) {
        return MSC_OK;
    }
    const struct msc_evaluation measured = {
        .trials = env->trials,
        .n = n_left,
        .finished = report_finished,
        .payload = pass,
        .bounds = env->bounds,
    };
    MSC_TRY(measure_pass(pass, &measured));
    for (size_t i = 0; i < n_left; i++) {
        report_finished(pass, i);
    }
    return MSC_OK;
}

enum msc_status msc_env_evaluate(struct msc_env *env, const struct msc_goal *goal,
                                 const struct msc_evaluation *e) {
    struct pass pass = {.env = env, .goal = goal, .caller = e};
    return run_pass(&pass);
}

// ---- Parts ------------------------------------------------------------------------------------

struct msc_env_batches msc_env_batches(const struct msc_env *env) {
    return env->def->batches ? env->def->batches(env) : (struct msc_env_batches){0};
}

size_t msc_env_n_batches(const struct msc_env *env) {
    return msc_env_batches(env).n;
}

size_t msc_env_n_terms(const struct msc_env *env) {
    return msc_env_batches(env).n_terms;
}

double msc_env_partial_loss(const struct msc_env *env, const double terms[], size_t n_batches) {
    return env->def->partial_loss(env, terms, n_batches);
}

enum msc_status msc_env_evaluate_part(struct msc_env *env, const struct msc_goal *goal,
                                      const struct msc_evaluation *e,
                                      const struct msc_env_part *part) {
    struct pass pass = {.env = env, .goal = goal, .caller = e, .part = part};
    assert(part->first < part->end && part->end <= msc_env_n_batches(env));
    return run_pass(&pass);
}

// ---- Measuring for other machines, and on them -------------------------------------------------

enum msc_status msc_env_measure(struct msc_env *env, const struct msc_evaluation *e,
                                const struct msc_env_part *part) {
    for (size_t i = 0; i < e->n; i++) {
        MSC_TRY(check_choices(msc_env_space(env), e->trials[i]));
        msc_trial_begin(e->trials[i], msc_env_space(env));
    }
    return measure(env, e, part);
}

void msc_env_set_elsewhere(struct msc_env *env, const struct msc_env_elsewhere *elsewhere) {
    env->elsewhere = elsewhere;
}

enum msc_status msc_env_fold(struct msc_env *env, const struct msc_evaluation *e,
                             const struct msc_env_part *part) {
    assert(part->kind == MSC_PART_FOLD && part->found);
    return env->def->evaluate_part(env, e, part);
}

enum msc_status msc_env_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    for (size_t i = 0; i < MSC_MAX_METRICS; i++) {
        metrics[i] = NAN;
    }
    return env->def->reference ? env->def->reference(env, metrics) : MSC_OK;
}

bool msc_env_has_edits(const struct msc_env *env) {
    return env->def->edits != NULL;
}

enum msc_status msc_env_edits(struct msc_env *env, const uint32_t choices[], struct cJSON **out) {
    if (!env->def->edits) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "environment %s has no model to edit", env->def->name);
    }
    return env->def->edits(env, choices, out);
}

enum msc_status msc_env_reevaluate(struct msc_env *env, const uint32_t choices[], unsigned what,
                                   struct cJSON **out) {
    if (env->def->reevaluate) {
        return env->def->reevaluate(env, choices, what, out);
    }
    *out = cJSON_CreateObject();
    return MSC_ALLOCATED(*out);
}

// Hashes the parameters as JSON.
static enum msc_status hash_params(struct msc_hash *out, const struct msc_env *env) {
    struct cJSON *params = cJSON_CreateObject();
    enum msc_status status =
        params ? msc_param_write(env->def->params, env->state, params)
               : MSC_FAIL(MSC_E_NOMEM, "environment %s: out of memory", env->def->name);
    if (status == MSC_OK) {
        status = msc_json_hash(out, params);
    }
    cJSON_Delete(params);
    return status;
}

enum msc_status msc_env_identity(struct msc_hash *out, const struct msc_env *env) {
    struct msc_hash params;
    MSC_TRY(hash_params(&params, env));
    struct msc_hash h = msc_hash_bytes("msc_env", 7);
    h = msc_hash_add_text(h, env->def->name);
    h = msc_hash_add_u64(h, env->def->version);
    h = msc_hash_combine(h, msc_space_hash(msc_env_space(env)));
    h = msc_hash_combine(h, params);
    *out = env->def->identity ? msc_hash_combine(h, env->def->identity(env)) : h;
    return MSC_OK;
}

enum msc_status msc_env_describe(const struct msc_env *env, struct cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "type", env->def->name));
    MSC_TRY(msc_json_add_number(object, "version", env->def->version));
    struct cJSON *params = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "params", params));
    MSC_TRY(msc_param_write(env->def->params, env->state, params));
    return env->def->describe ? env->def->describe(env, object) : MSC_OK;
}

enum msc_status msc_env_save(const struct msc_env *env, struct cJSON **out) {
    if (env->def->save) {
        return env->def->save(env, out);
    }
    *out = cJSON_CreateNull();
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_env_restore(struct msc_env *env, const struct cJSON *state) {
    if (env->def->restore) {
        return env->def->restore(env, state);
    }
    return cJSON_IsNull(state)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "environment %s has no state to restore, expected null",
                          env->def->name);
}
