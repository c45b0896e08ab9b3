// Estimates how many trials an agent still needs, and how much time the agent itself takes.
// External agents are not run for this.
#include "search/estimate_internal.h"

#include "base/json_get.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "env/env.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

// Sets `left` to the agent's trials after `n_done` proposals, limited by the space and the budget.
static void limit_left(struct msc_estimate_live *out, const struct msc_search_options *o,
                       const struct msc_agent *agent, double n_done) {
    double n_points = msc_space_n_points(msc_env_space(o->env));
    if (agent) {
        out->left = msc_agent_left(agent);
        out->left.n -= n_done;
        out->left.n_plan = fmax(out->left.n_plan - n_done, 0.0);
    }
    if (o->budget.trials >= 0) {
        out->left.n = fmin(out->left.n, (double)o->budget.trials - n_done);
    }
    if (n_points < out->left.n) { // an upper bound, since the agent may skip points
        out->left.n = n_points;
        out->left.is_exact = false;
    }
    out->left.n = fmax(out->left.n, 0.0);
    out->left.is_exact |= out->left.n == 0.0;
    out->effort = agent && n_done == 0.0 ? msc_agent_effort(agent, out->left.n) : out->left.n;
}

enum msc_status msc_estimate__baseline(struct msc_trial *trial, struct msc_arena *arena,
                                       const struct msc_space *space, size_t index) {
    MSC_TRY(msc_trial_init(trial, arena, space));
    trial->id = (int64_t)index;
    trial->proposal.probe = true;
    if (index < space->n_baselines) {
        memcpy(trial->proposal.choices, space->baselines[index].choices,
               space->n_tasks * sizeof *trial->proposal.choices);
    }
    return MSC_OK;
}

static const struct msc_agent_def *find_agent(const struct msc_search_options *o) {
    const cJSON *type = msc_json_get(o->agent_config, "type");
    return cJSON_IsString(type) ? msc_agent_find(type->valuestring) : NULL;
}

enum msc_status msc_estimate__open_agent(struct msc_agent **out,
                                         const struct msc_search_options *o) {
    const struct msc_agent_host host = {.cancel = o->cancel};
    *out = NULL;
    if (!find_agent(o)) {
        return MSC_OK;
    }
    return msc_agent_open(out, o->agent_config, msc_env_space(o->env), o->goal, o->seed, &host);
}

enum msc_status msc_estimate__ask(struct msc_estimate_live *out, const struct msc_search_options *o,
                                  size_t n_done) {
    const struct msc_space *space = msc_env_space(o->env);
    struct msc_agent *agent = NULL;
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    *out = (struct msc_estimate_live){.left = MSC_AGENT_LEFT_UNKNOWN, .trial_s = NAN};
    MSC_TRY(msc_estimate__open_agent(&agent, o));
    // The agent observes baselines before the first ask; their results do not matter here.
    for (size_t i = 0; agent && i < space->n_baselines; i++) {
        struct msc_trial trial;
        MSC_TRY_OUT(msc_estimate__baseline(&trial, &arena, space, i));
        trial.outcome.state = MSC_TRIAL_FAILED;
        trial.outcome.violation = msc_goal_exact_violation(o->goal, space, trial.proposal.choices);
        MSC_TRY_OUT(msc_agent_tell(agent, &trial));
    }
    limit_left(out, o, agent, (double)n_done);
out:
    msc_agent_destroy(agent);
    msc_arena_finish(&arena);
    return status;
}

// ---- The agent's own time ----------------------------------------------------------------------

// The measurement ends after this time.
#define PROBE_S 0.2

struct probe {
    const struct msc_search_options *options;
    const struct msc_space *space;
    struct msc_agent *agent;
    struct msc_arena arena; // memory of the proposals
    struct msc_arena round; // memory of the outcomes
    struct msc_proposal *proposals;
    double begin_s;    // when the probe began
    double n, seconds; // proposals so far, and the agent's time for them
    double later_s;    // time for one proposal of the last round
    int64_t next_id;
};

static bool is_probed(const struct probe *p) {
    return msc_clock_seconds() - p->begin_s > PROBE_S;
}

// Makes up results: costs and losses increase with the index of a choice, with a different factor
// for each task. Losses grow faster than linearly in the sum over tasks.
static void make_up(struct msc_trial *trial, const struct probe *p) {
    const struct msc_space *space = p->space;
    double sum = 0.0;
    msc_trial_begin(trial, space);
    for (size_t t = 0; t < space->n_tasks; t++) {
        const struct msc_task *task = &space->tasks[t];
        uint32_t place = 0;
        while (task->most_expensive_first[place] != trial->proposal.choices[t]) {
            place++;
        }
        sum += (double)place * (double)(1 + t * 2654435761u % 1000);
    }
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!space->metrics[i].is_exact) {
            trial->outcome.metrics[i] = 1e-6 * sum * sqrt(sum);
        }
    }
    msc_goal_judge(p->options->goal, space, &trial->outcome);
}

static enum msc_status probe_tell(struct probe *p, const struct msc_proposal *proposal,
                                  bool is_baseline) {
    struct msc_trial trial = {.id = p->next_id++, .proposal = *proposal};
    MSC_TRY(msc_outcome_init(&trial.outcome, &p->round, p->space));
    make_up(&trial, p);
    double begin_s = msc_clock_seconds();
    MSC_TRY(msc_agent_tell(p->agent, &trial));
    p->seconds += is_baseline ? 0.0 : msc_clock_seconds() - begin_s;
    msc_arena_reset(&p->round);
    return MSC_OK;
}

static enum msc_status make_probe(struct probe *p) {
    p->space = msc_env_space(p->options->env);
    size_t n = p->options->parallel;
    p->proposals = msc_arena_array(&p->arena, n, sizeof *p->proposals);
    for (size_t i = 0; p->proposals && i < n; i++) {
        p->proposals[i].choices =
            msc_arena_array(&p->arena, p->space->n_tasks, sizeof *p->proposals[i].choices);
        if (!p->proposals[i].choices) {
            p->proposals = NULL;
        }
    }
    MSC_TRY(MSC_ALLOCATED(p->proposals));
    MSC_TRY(msc_estimate__open_agent(&p->agent, p->options));
    p->begin_s = msc_clock_seconds();
    for (size_t i = 0; i < p->space->n_baselines; i++) {
        struct msc_trial baseline;
        MSC_TRY(msc_estimate__baseline(&baseline, &p->round, p->space, i));
        MSC_TRY(probe_tell(p, &baseline.proposal, true));
    }
    return MSC_OK;
}

// Runs one round. Sets *n to the number of proposals.
static enum msc_status probe_round(struct probe *p, size_t *n) {
    double before_s = p->seconds;
    double begin_s = msc_clock_seconds();
    MSC_TRY(msc_agent_ask(p->agent, p->proposals, p->options->parallel, n));
    p->seconds += msc_clock_seconds() - begin_s;
    for (size_t i = 0; i < *n; i++) {
        MSC_TRY(probe_tell(p, &p->proposals[i], false));
    }
    p->n += (double)*n;
    p->later_s = *n > 0 ? (p->seconds - before_s) / (double)*n : p->later_s;
    return MSC_OK;
}

static enum msc_status time_plan(double *plan_s, struct probe *p) {
    *plan_s = 0.0;
    if (!msc_agent_can_assemble(p->agent) || msc_cancel_soon(p->options->cancel)) {
        return MSC_OK;
    }
    double begin_s = msc_clock_seconds();
    MSC_TRY(msc_agent_assemble(p->agent, &p->proposals[0]));
    *plan_s = msc_clock_seconds() - begin_s;
    return MSC_OK;
}

enum msc_status msc_estimate__probe(struct msc_estimate_agent *out,
                                    const struct msc_search_options *o, double n) {
    struct probe p = {.options = o};
    size_t n_asked = 1;
    *out = (struct msc_estimate_agent){.is_known = false};
    if (!find_agent(o)) {
        return MSC_OK;
    }
    enum msc_status status = make_probe(&p);
    while (status == MSC_OK && n_asked > 0 && p.n < n && !is_probed(&p) &&
           !msc_cancel_soon(o->cancel) && !msc_agent_is_done(p.agent)) {
        status = probe_round(&p, &n_asked);
    }
    out->is_known = true;
    out->n = p.n;
    out->seconds = p.seconds;
    out->later_s = p.later_s;
    if (status == MSC_OK) {
        status = time_plan(&out->plan_s, &p);
    }
    msc_agent_destroy(p.agent);
    msc_arena_finish(&p.arena);
    msc_arena_finish(&p.round);
    return status;
}
