// Evolutionary search: (mu + lambda) with the order of NSGA-II, which for one objective is simply
// the order of that objective.
//
// The population begins with the baselines told and random feasible points. A child is a uniform
// crossover of two tournament winners, mutated task by task, repaired until its exact costs meet
// the bounds, half the time made more expensive as far as these allow, and never proposed twice.
// Whatever was told since the last ask joins the population, which is then cut back to its size.
//
// Bounded, a proposal says above which loss it will not survive: the worst of a full population's,
// all of it feasible. A trial that is stopped there would have been cut at the next ask, so that
// but for ties of equal losses the search goes the same way.
#include "agents/agent.h"
#include "agents/nsga.h"
#include "agents/sampler.h"

#include <math.h>
#include <string.h>

// Attempts at an unseen child before a random point is taken; each mutates more than the last.
#define CHILD_TRIES 16

struct evolution {
    int64_t population;
    double crossover;
    double mutation;
    bool bounded;

    struct msc_sampler sampler;
    bool is_done;
    bool spends;      // no objective is a cost: what the bounds leave may be spent
    uint64_t n_begun; // members told before, and random points proposed, for the first population
    // Members stand in slots; the first n_members of `order` name those in use.
    size_t n_members;
    size_t n_slots;               // 2 * population
    size_t *order;                // [n_slots]
    uint32_t *points;             // [n_slots, n_tasks]
    struct msc_outcome *outcomes; // [n_slots], without metrics and reason
    int64_t *ids;                 // [n_slots]
    bool is_ranked;
    // By place in `order`:
    const struct msc_outcome **ranked; // [n_slots]
    size_t *ranks;
    double *crowding;
    size_t *scratch; // [4 * n_slots]
};

static const struct msc_param evolutionary_params[] = {
    {.name = "population",
     .help = "points kept",
     .offset = offsetof(struct evolution, population),
     .type = MSC_PARAM_I64,
     .number = 32,
     .min = 2,
     .max = 4096},
    {.name = "crossover",
     .help = "probability that a child has two parents",
     .offset = offsetof(struct evolution, crossover),
     .type = MSC_PARAM_F64,
     .number = 0.9,
     .min = 0,
     .max = 1},
    {.name = "mutation",
     .help = "probability that a task's choice changes (0: one task on average)",
     .offset = offsetof(struct evolution, mutation),
     .type = MSC_PARAM_F64,
     .number = 0,
     .min = 0,
     .max = 1},
    {.name = "bounded",
     .help = "stop a trial once its loss exceeds that of every point kept",
     .offset = offsetof(struct evolution, bounded),
     .type = MSC_PARAM_BOOL},
    {0},
};

static enum msc_status evolutionary_init(struct msc_agent *agent) {
    struct evolution *e = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    MSC_TRY(
        msc_sampler_init(&e->sampler, arena, space, msc_agent_goal(agent), msc_agent_rng(agent)));
    if (e->mutation == 0.0) {
        e->mutation = 1.0 / (double)space->n_tasks;
    }
    const struct msc_goal *goal = msc_agent_goal(agent);
    e->spends = e->sampler.bounds.n_items > 0;
    for (size_t i = 0; i < goal->n_objectives; i++) {
        e->spends = e->spends && !space->metrics[goal->objectives[i].metric].is_exact;
    }
    e->n_slots = 2 * (size_t)e->population;
    e->order = msc_arena_array(arena, e->n_slots, sizeof *e->order);
    e->points = msc_arena_array(arena, e->n_slots * space->n_tasks, sizeof *e->points);
    e->outcomes = msc_arena_array(arena, e->n_slots, sizeof *e->outcomes);
    e->ids = msc_arena_array(arena, e->n_slots, sizeof *e->ids);
    e->ranked = msc_arena_array(arena, e->n_slots, sizeof *e->ranked);
    e->ranks = msc_arena_array(arena, e->n_slots, sizeof *e->ranks);
    e->crowding = msc_arena_array(arena, e->n_slots, sizeof *e->crowding);
    e->scratch = msc_arena_array(arena, 4 * e->n_slots, sizeof *e->scratch);
    if (!e->order || !e->points || !e->outcomes || !e->ids || !e->ranked || !e->ranks ||
        !e->crowding || !e->scratch) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a population of %lld",
                        (long long)e->population);
    }
    for (size_t i = 0; i < e->n_slots; i++) {
        e->order[i] = i;
    }
    return MSC_OK;
}

static uint32_t *member_point(const struct msc_agent *agent, const struct evolution *e,
                              size_t member) {
    return e->points + e->order[member] * msc_agent_space(agent)->n_tasks;
}

static void rank_members(const struct msc_agent *agent, struct evolution *e) {
    for (size_t i = 0; i < e->n_members; i++) {
        e->ranked[i] = &e->outcomes[e->order[i]];
    }
    msc_nsga_rank(e->ranks, e->crowding, e->scratch, e->ranked, e->n_members,
                  msc_agent_goal(agent)->n_objectives);
    e->is_ranked = true;
}

static void swap_members(struct evolution *e, size_t a, size_t b) {
    size_t slot = e->order[a];
    size_t rank = e->ranks[a];
    double crowding = e->crowding[a];
    e->order[a] = e->order[b];
    e->ranks[a] = e->ranks[b];
    e->crowding[a] = e->crowding[b];
    e->order[b] = slot;
    e->ranks[b] = rank;
    e->crowding[b] = crowding;
}

// Ranks all members and keeps the best `population` of them.
static void select_members(const struct msc_agent *agent, struct evolution *e) {
    size_t n_kept = (size_t)e->population;
    if (!e->is_ranked) {
        rank_members(agent, e);
    }
    if (e->n_members <= n_kept) {
        return;
    }
    for (size_t i = 0; i < n_kept; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < e->n_members; j++) {
            best = msc_nsga_before(e->ranks, e->crowding, j, best) ? j : best;
        }
        swap_members(e, i, best);
    }
    e->n_members = n_kept;
    rank_members(agent, e);
}

static size_t pick_parent(const struct evolution *e, struct msc_rng *rng) {
    size_t a = (size_t)msc_rng_below(rng, e->n_members);
    size_t b = (size_t)msc_rng_below(rng, e->n_members);
    return msc_nsga_before(e->ranks, e->crowding, b, a) ? b : a;
}

// Half the time to the next more expensive or cheaper choice, else to any other.
static uint32_t mutated_choice(const struct msc_exact_bounds *bounds, struct msc_rng *rng, size_t t,
                               uint32_t choice) {
    const struct msc_task *task = &bounds->space->tasks[t];
    if (task->n_choices < 2) {
        return choice;
    }
    if (msc_rng_below(rng, 2) == 0) {
        uint32_t other = (uint32_t)msc_rng_below(rng, task->n_choices - 1);
        return other + (other >= choice);
    }
    uint32_t position = bounds->positions[msc_exact_bounds_entry(bounds, t, choice)];
    bool goes_up = msc_rng_below(rng, 2) == 0;
    if (position == 0 || (goes_up && position + 1 < task->n_choices)) {
        return task->most_expensive_first[position + 1];
    }
    return task->most_expensive_first[position - 1];
}

// Spends what the bounds leave: more expensive choices of random tasks, as long as they fit.
static void spend_what_is_left(struct msc_exact_bounds *bounds, struct msc_rng *rng,
                               uint32_t choices[]) {
    for (size_t i = 0; i < bounds->space->n_tasks; i++) {
        size_t t = (size_t)msc_rng_below(rng, bounds->space->n_tasks);
        uint32_t before = choices[t];
        uint32_t position = bounds->positions[msc_exact_bounds_entry(bounds, t, before)];
        if (position > 0) {
            choices[t] = bounds->space->tasks[t].most_expensive_first[position - 1];
            choices[t] = msc_exact_bounds_hold(bounds, choices) ? choices[t] : before;
        }
    }
}

static void make_child(struct msc_agent *agent, struct evolution *e, struct msc_proposal *child,
                       double mutation) {
    struct msc_rng *rng = msc_agent_rng(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    size_t first = pick_parent(e, rng);
    size_t second = pick_parent(e, rng);
    const uint32_t *a = member_point(agent, e, first);
    const uint32_t *b = member_point(agent, e, second);
    bool is_crossed = msc_rng_double(rng) < e->crossover;
    for (size_t t = 0; t < n_tasks; t++) {
        child->choices[t] = is_crossed && msc_rng_below(rng, 2) == 0 ? b[t] : a[t];
        if (msc_rng_double(rng) < mutation) {
            child->choices[t] = mutated_choice(&e->sampler.bounds, rng, t, child->choices[t]);
        }
    }
    child->parent = e->ids[e->order[first]];
    msc_exact_bounds_repair(&e->sampler.bounds, rng, child->choices);
    if (e->spends && msc_rng_below(rng, 2) == 0) {
        spend_what_is_left(&e->sampler.bounds, rng, child->choices);
    }
}

static bool propose_child(struct msc_agent *agent, struct evolution *e,
                          struct msc_proposal *child) {
    double mutation = e->mutation;
    for (int i = 0; i < CHILD_TRIES && e->n_members > 0; i++) {
        make_child(agent, e, child, mutation);
        if (msc_sampler_note(&e->sampler, child->choices)) {
            return true;
        }
        mutation = mutation * 1.5 < 0.5 ? mutation * 1.5 : 0.5;
    }
    child->parent = -1;
    return msc_sampler_draw(&e->sampler, child->choices);
}

// The greatest loss that survives; +inf when the population is not full of feasible points.
static double worst_loss(const struct msc_agent *agent, const struct evolution *e) {
    double worst = -INFINITY;
    if (e->n_members < (size_t)e->population ||
        !msc_goal_takes_bound(msc_agent_goal(agent), msc_agent_space(agent))) {
        return INFINITY;
    }
    for (size_t i = 0; i < e->n_members; i++) {
        const struct msc_outcome *outcome = &e->outcomes[e->order[i]];
        worst =
            fmax(worst, outcome->state == MSC_TRIAL_COMPLETE ? outcome->objectives[0] : INFINITY);
    }
    return worst;
}

static enum msc_status evolutionary_ask(struct msc_agent *agent, struct msc_proposal out[],
                                        size_t max, size_t *n) {
    struct evolution *e = msc_agent_state(agent);
    select_members(agent, e);
    double bound = e->bounded ? worst_loss(agent, e) : INFINITY;
    while (*n < max && !e->is_done) {
        bool is_found;
        out[*n].bound = bound;
        if (e->n_begun < (uint64_t)e->population) {
            e->n_begun++;
            is_found = msc_sampler_draw(&e->sampler, out[*n].choices);
        } else {
            is_found = propose_child(agent, e, &out[*n]);
        }
        e->is_done = !is_found;
        *n += is_found;
    }
    return MSC_OK;
}

static bool is_member(const struct msc_agent *agent, const struct evolution *e,
                      const uint32_t choices[]) {
    size_t n_bytes = msc_agent_space(agent)->n_tasks * sizeof *choices;
    for (size_t i = 0; i < e->n_members; i++) {
        if (memcmp(member_point(agent, e, i), choices, n_bytes) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status evolutionary_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct evolution *e = msc_agent_state(agent);
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome *outcome = &trial->outcome;
    bool is_new = msc_sampler_note(&e->sampler, choices);
    bool is_usable = outcome->state == MSC_TRIAL_COMPLETE || outcome->state == MSC_TRIAL_INFEASIBLE;
    if (!is_usable || is_member(agent, e, choices)) {
        return MSC_OK;
    }
    if (e->n_members == e->n_slots) {
        select_members(agent, e);
    }
    size_t member = e->n_members++;
    size_t slot = e->order[member];
    memcpy(member_point(agent, e, member), choices,
           msc_agent_space(agent)->n_tasks * sizeof *choices);
    e->outcomes[slot] = *outcome;
    e->outcomes[slot].metrics = NULL; // only lent
    e->outcomes[slot].reason = NULL;
    e->ids[slot] = trial->id;
    e->is_ranked = false;
    e->n_begun += is_new;
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
