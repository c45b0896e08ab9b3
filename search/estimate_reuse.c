// Measures how much work the trials of the agent's first round have in common, on the first batch
// of samples.
#include "search/estimate_internal.h"

#include "base/alloc.h"
#include "env/env.h"
#include "env/trial_runs.h"

#include <string.h>

// Trials to measure on the first batch. Room for n of each; baselines come first.
struct reuse {
    struct msc_env *env;
    struct msc_arena arena;
    struct msc_trial *trials;
    struct msc_trial **measured;
    struct msc_proposal *proposals;
    double **terms;
    double *bounds;
};

static enum msc_status make_reuse_room(struct reuse *r, size_t n) {
    const struct msc_space *space = msc_env_space(r->env);
    r->trials = msc_arena_array(&r->arena, n, sizeof *r->trials);
    r->measured = msc_arena_array(&r->arena, n, sizeof(struct msc_trial *));
    r->proposals = msc_arena_array(&r->arena, n, sizeof *r->proposals);
    r->terms = msc_arena_array(&r->arena, n, sizeof(double *));
    r->bounds = msc_arena_array(&r->arena, n, sizeof *r->bounds);
    MSC_TRY(MSC_ALLOCATED(r->trials && r->measured && r->proposals && r->terms && r->bounds));
    for (size_t i = 0; i < n; i++) {
        r->bounds[i] = INFINITY;
        r->terms[i] = msc_arena_array(&r->arena, msc_env_n_terms(r->env), sizeof *r->terms[i]);
        MSC_TRY(MSC_ALLOCATED(r->terms[i]));
        MSC_TRY(msc_trial_init(&r->trials[i], &r->arena, space));
        r->proposals[i] = r->trials[i].proposal;
    }
    return MSC_OK;
}

// Asks a new agent, which has observed the baselines, for its first round. Lists the trials that a
// search would measure.
static enum msc_status ask_first_round(size_t *n, struct reuse *r,
                                       const struct msc_search_options *o,
                                       struct msc_trial *const baselines[]) {
    const struct msc_space *space = msc_env_space(r->env);
    struct msc_agent *agent = NULL;
    size_t n_asked = 0;
    enum msc_status status = MSC_OK;
    *n = 0;
    MSC_TRY(msc_estimate__open_agent(&agent, o));
    for (size_t i = 0; agent && i < space->n_baselines; i++) {
        MSC_TRY_OUT(msc_agent_tell(agent, baselines[i]));
    }
    MSC_TRY_OUT(agent ? msc_agent_ask(agent, r->proposals, o->parallel, &n_asked) : MSC_OK);
    for (size_t i = 0; i < n_asked; i++) {
        r->trials[i].proposal = r->proposals[i];
        bool breaks = msc_goal_exact_violation(o->goal, space, r->proposals[i].choices) > 0.0;
        if (r->proposals[i].probe || !breaks) {
            r->measured[(*n)++] = &r->trials[i];
        }
    }
out:
    msc_agent_destroy(agent);
    return status;
}

// Measures trials on the first batch; *ratio is the mean share of their work that was reused.
static enum msc_status measure_reuse(double *ratio, const struct reuse *r,
                                     struct msc_trial *const trials[], size_t n) {
    const struct msc_env_part first = {.end = 1, .terms = r->terms, .kind = MSC_PART_ALONE};
    const struct msc_evaluation e = {.trials = trials, .n = n, .bounds = r->bounds};
    for (size_t i = 0; i < n; i++) {
        memset(r->terms[i], 0, msc_env_n_terms(r->env) * sizeof *r->terms[i]);
    }
    MSC_TRY(msc_env_measure(r->env, &e, &first));
    *ratio = 0.0;
    for (size_t i = 0; i < n; i++) {
        *ratio += trials[i]->outcome.reuse_ratio / (double)n;
    }
    return MSC_OK;
}

enum msc_status msc_estimate__reuse(struct msc_estimate *e, const struct msc_search_options *o,
                                    struct msc_trial *const baselines[], size_t n_baselines) {
    const struct msc_trial_runs *runs = msc_trial_runs_of(o->env);
    struct reuse r = {.env = o->env};
    double with_cache, unused;
    size_t n = 0;
    enum msc_status status = MSC_OK;
    if (!runs) {
        return MSC_OK;
    }
    MSC_TRY_OUT(make_reuse_room(&r, o->parallel > n_baselines ? o->parallel : n_baselines));
    MSC_TRY_OUT(ask_first_round(&n, &r, o, baselines));
    if (n > 0) {
        msc_trial_runs_drop_caches(runs);
        MSC_TRY_OUT(measure_reuse(&e->shared_ratio, &r, r.measured, n));
        msc_trial_runs_drop_caches(runs);
        MSC_TRY_OUT(measure_reuse(&unused, &r, baselines, n_baselines));
        MSC_TRY_OUT(measure_reuse(&with_cache, &r, r.measured, n));
        e->kept_ratio = fmax(with_cache - e->shared_ratio, 0.0);
        e->n_shared = n;
    }
out:
    msc_arena_finish(&r.arena);
    return status;
}
