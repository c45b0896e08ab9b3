// Evolutionary search: (mu + lambda) selection in the order of NSGA-II, which for one objective is
// the order of that objective.
//
// The first population consists of the baselines, one plan, and random feasible points until it is
// full. The plan is the one of least summed isolated losses (a knapsack). It is proposed only if
// the isolated loss of every choice was observed before the first ask, for example from another
// record. A population for one objective is small: with 8 points losses fall faster than with 32,
// within 50, 150 and 500 trials, in rounds of 8 and of 32.
//
// A child is a uniform crossover of two tournament winners. It is mutated task by task and repaired
// until its exact costs meet the bounds. Half of the children are then made more expensive as far
// as the bounds allow. No point is proposed twice. All trials observed since the last ask join the
// population, which is then cut back to its size.
//
// With `bounded`, a proposal's bound is the worst loss of a full population whose points are all
// feasible. A trial that is stopped at this bound would have been cut at the next ask. The search
// therefore takes the same course, except for ties of equal losses.
#include "agents/agent.h"
#include "agents/knapsack.h"
#include "agents/population.h"
#include "agents/sampler.h"
#include "agents/sensitivity.h"

#include <math.h>

struct evolution {
    int64_t population;
    double crossover;
    double mutation;
    bool bounded;

    struct msc_sampler sampler;
    struct msc_population members;
    struct msc_sensitivity sensitivity;
    struct msc_knapsack knapsack;
    bool has_begun; // the plan of the knapsack was proposed, or none could be made
    bool is_done;
    uint64_t n_begun; // points of the first population: members so far, and random points proposed
};

#define SMALL_POPULATION 8
#define FRONT_POPULATION 32

static const struct msc_param evolutionary_params[] = {
    {.name = "population",
     .help = "best points kept as parents, at least 2; a larger number explores more and converges "
             "later (0: 8, or 32 with several objectives)",
     .offset = offsetof(struct evolution, population),
     .type = MSC_PARAM_I64,
     .max = 4096},
    {.name = "crossover",
     .help = "probability that a child combines two parents instead of copying one",
     .offset = offsetof(struct evolution, crossover),
     .type = MSC_PARAM_F64,
     .number = 0.9,
     .min = 0,
     .max = 1},
    {.name = "mutation",
     .help = "probability that a child's choice for a task changes; larger values explore more "
             "(0: one task on average)",
     .offset = offsetof(struct evolution, mutation),
     .type = MSC_PARAM_F64,
     .number = 0,
     .min = 0,
     .max = 1},
    {.name = "bounded",
     .help = "stop a trial once its loss exceeds the loss of every point kept; saves time",
     .offset = offsetof(struct evolution, bounded),
     .type = MSC_PARAM_BOOL},
    {0},
};

static enum msc_status set_population(struct msc_agent *agent, struct evolution *e) {
    bool is_large = msc_agent_goal(agent)->n_objectives > 1;
    if (e->population == 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "agent evolutionary: population is 1, expected 2 to 4096, or 0 (default)");
    }
    if (e->population == 0) {
        e->population = is_large ? FRONT_POPULATION : SMALL_POPULATION;
    }
    return MSC_OK;
}

static enum msc_status evolutionary_init(struct msc_agent *agent) {
    struct evolution *e = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    MSC_TRY(set_population(agent, e));
    MSC_TRY(msc_sampler_init(&e->sampler, arena, msc_agent_space(agent), msc_agent_goal(agent),
                             msc_agent_rng(agent)));
    if (e->mutation == 0.0) {
        e->mutation = 1.0 / (double)msc_agent_space(agent)->n_tasks;
    }
    e->has_begun = msc_agent_goal(agent)->n_objectives > 1;
    if (!e->has_begun) {
        MSC_TRY(msc_sensitivity_init(&e->sensitivity, arena, &e->sampler.bounds));
        MSC_TRY(msc_knapsack_init(&e->knapsack, arena, &e->sampler.bounds));
    }
    return msc_population_init(&e->members, agent, &e->sampler, (size_t)e->population, e->crossover,
                               e->mutation);
}

// Proposes the plan of least summed isolated losses if all of them were observed before the first
// ask.
static bool propose_plan(struct evolution *e, uint32_t choices[]) {
    bool is_known = !e->has_begun && msc_sensitivity_is_complete(&e->sensitivity) &&
                    msc_sensitivity_guess(&e->sensitivity);
    e->has_begun = true;
    if (!is_known) {
        return false;
    }
    const struct msc_isolated isolated = {.losses = e->sensitivity.guesses};
    msc_knapsack_solve(&e->knapsack, &isolated, choices, NULL);
    return msc_sampler_note(&e->sampler, choices);
}

// The greatest loss that survives selection; +inf unless the population is full of feasible points.
static double worst_loss(const struct evolution *e) {
    const struct msc_population *p = &e->members;
    double worst = -INFINITY;
    if (p->n_members < p->size || !msc_goal_takes_bound(p->goal, p->space)) {
        return INFINITY;
    }
    for (size_t i = 0; i < p->n_members; i++) {
        const struct msc_outcome *outcome = msc_population_outcome(p, i);
        worst =
            fmax(worst, outcome->state == MSC_TRIAL_COMPLETE ? outcome->objectives[0] : INFINITY);
    }
    return worst;
}

static enum msc_status evolutionary_ask(struct msc_agent *agent, struct msc_proposal out[],
                                        size_t max, size_t *n) {
    struct evolution *e = msc_agent_state(agent);
    msc_population_select(&e->members);
    e->n_begun = e->members.n_members; // points that failed are replaced by others
    double bound = e->bounded ? worst_loss(e) : INFINITY;
    if (max > 0 && propose_plan(e, out[0].choices)) {
        out[0].origin = "plan";
        *n = 1;
    }
    while (*n < max && !e->is_done) {
        bool is_found;
        out[*n].bound = bound;
        if (e->n_begun < (uint64_t)e->population) {
            e->n_begun++;
            out[*n].origin = "random";
            is_found = msc_sampler_draw(&e->sampler, out[*n].choices);
        } else {
            out[*n].origin = "child";
            is_found = msc_population_child(&e->members, &out[*n]);
        }
        e->is_done = !is_found;
        *n += is_found;
    }
    return MSC_OK;
}

static double usable_loss(const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    bool is_usable = msc_trial_state_is_result(outcome->state);
    return is_usable ? outcome->objectives[0] : NAN;
}

static enum msc_status evolutionary_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct evolution *e = msc_agent_state(agent);
    if (!e->has_begun) {
        (void)msc_sensitivity_tell(&e->sensitivity, trial->proposal.choices, usable_loss(trial));
    }
    bool is_new = msc_sampler_note(&e->sampler, trial->proposal.choices);
    bool is_member = msc_population_tell(&e->members, trial);
    e->n_begun += is_new && is_member;
    return MSC_OK;
}

static bool evolutionary_done(const struct msc_agent *agent) {
    const struct evolution *e = msc_agent_state(agent);
    return e->is_done;
}

static struct msc_agent_left evolutionary_left(const struct msc_agent *agent) {
    const struct evolution *e = msc_agent_state(agent);
    return msc_sampler_left(&e->sampler);
}

const struct msc_agent_def msc_agent_evolutionary = {
    .abi = MSC_AGENT_ABI,
    .name = "evolutionary",
    .summary = "crossover and mutation of the best points; several objectives by NSGA-II",
    .version = 1,
    .state_size = sizeof(struct evolution),
    .params = evolutionary_params,
    .init = evolutionary_init,
    .ask = evolutionary_ask,
    .tell = evolutionary_tell,
    .done = evolutionary_done,
    .left = evolutionary_left,
};
