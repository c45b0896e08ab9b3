#include "agents/population.h"

#include "agents/nsga.h"

#include <math.h>
#include <string.h>

// Attempts at an unseen child before a random point is used; each attempt mutates more than the
// last.
#define CHILD_TRIES 16

static bool has_exact_objective(const struct msc_population *p) {
    bool has_one = false;
    for (size_t i = 0; i < p->goal->n_objectives; i++) {
        has_one = has_one || p->space->metrics[p->goal->objectives[i].metric].is_exact;
    }
    return has_one;
}

enum msc_status msc_population_init(struct msc_population *p, struct msc_agent *agent,
                                    struct msc_sampler *sampler, size_t size, double crossover,
                                    double mutation) {
    struct msc_arena *arena = msc_agent_arena(agent);
    const struct msc_space *space = msc_agent_space(agent);
    *p = (struct msc_population){.space = space,
                                 .goal = msc_agent_goal(agent),
                                 .sampler = sampler,
                                 .size = size,
                                 .sorted_from = size,
                                 .crossover = crossover,
                                 .mutation = mutation,
                                 .n_slots = 2 * size};
    p->spends = sampler->bounds.n_items > 0 && !has_exact_objective(p);
    p->order = msc_arena_array(arena, p->n_slots, sizeof *p->order);
    p->points = msc_arena_array(arena, p->n_slots * space->n_tasks, sizeof *p->points);
    p->outcomes = msc_arena_array(arena, p->n_slots, sizeof *p->outcomes);
    p->ids = msc_arena_array(arena, p->n_slots, sizeof *p->ids);
    p->ranked = msc_arena_array(arena, p->n_slots, sizeof *p->ranked);
    p->ranks = msc_arena_array(arena, p->n_slots, sizeof *p->ranks);
    p->crowding = msc_arena_array(arena, p->n_slots, sizeof *p->crowding);
    p->scratch = msc_arena_array(arena, 4 * p->n_slots, sizeof *p->scratch);
    MSC_TRY(MSC_ALLOCATED(p->order && p->points && p->outcomes && p->ids && p->ranked && p->ranks &&
                          p->crowding && p->scratch));
    for (size_t i = 0; i < p->n_slots; i++) {
        p->order[i] = i;
    }
    return MSC_OK;
}

static uint32_t *member_point(const struct msc_population *p, size_t member) {
    return p->points + p->order[member] * p->space->n_tasks;
}

const uint32_t *msc_population_point(const struct msc_population *p, size_t member) {
    return member_point(p, member);
}

const struct msc_outcome *msc_population_outcome(const struct msc_population *p, size_t member) {
    return &p->outcomes[p->order[member]];
}

static void rank_members(struct msc_population *p) {
    for (size_t i = 0; i < p->n_members; i++) {
        p->ranked[i] = msc_population_outcome(p, i);
    }
    msc_nsga_rank(p->ranks, p->crowding, p->scratch, p->ranked, p->n_members,
                  p->goal->n_objectives);
    p->is_ranked = true;
}

static void swap_members(struct msc_population *p, size_t a, size_t b) {
    size_t slot = p->order[a];
    size_t rank = p->ranks[a];
    double crowding = p->crowding[a];
    p->order[a] = p->order[b];
    p->ranks[a] = p->ranks[b];
    p->crowding[a] = p->crowding[b];
    p->order[b] = slot;
    p->ranks[b] = rank;
    p->crowding[b] = crowding;
}

void msc_population_select(struct msc_population *p) {
    bool is_new = !p->is_ranked;
    if (is_new) {
        rank_members(p);
    }
    if (p->n_members <= p->sorted_from || (p->n_members <= p->size && !is_new)) {
        return;
    }
    size_t n_kept = p->n_members < p->size ? p->n_members : p->size;
    for (size_t i = 0; i < n_kept; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < p->n_members; j++) {
            best = msc_nsga_before(p->ranks, p->crowding, j, best) ? j : best;
        }
        swap_members(p, i, best);
    }
    p->n_members = n_kept;
    rank_members(p);
}

static size_t pick_parent(const struct msc_population *p, struct msc_rng *rng) {
    size_t a = (size_t)msc_rng_below(rng, p->n_members);
    size_t b = (size_t)msc_rng_below(rng, p->n_members);
    return msc_nsga_before(p->ranks, p->crowding, b, a) ? b : a;
}

// Returns the next more expensive or cheaper choice with probability 1/2, else any other choice.
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

// Makes random tasks more expensive as far as the bounds allow.
static void spend_what_is_left(struct msc_exact_moves *moves, struct msc_rng *rng,
                               uint32_t choices[]) {
    const struct msc_exact_bounds *bounds = moves->bounds;
    size_t n_tasks = bounds->space->n_tasks;
    msc_exact_moves_start(moves, choices);
    for (size_t i = 0; i < n_tasks; i++) {
        size_t t = (size_t)msc_rng_below(rng, n_tasks);
        uint32_t before = moves->point[t];
        uint32_t position = bounds->positions[msc_exact_bounds_entry(bounds, t, before)];
        if (position > 0) {
            uint32_t dearer = bounds->space->tasks[t].most_expensive_first[position - 1];
            msc_exact_moves_change(moves, t, dearer);
            if (!msc_exact_moves_hold(moves)) {
                msc_exact_moves_change(moves, t, before);
            }
        }
    }
    memcpy(choices, moves->point, n_tasks * sizeof *choices);
}

static void make_child(struct msc_population *p, struct msc_proposal *child, double mutation) {
    struct msc_rng *rng = p->sampler->rng;
    size_t first = pick_parent(p, rng);
    size_t second = pick_parent(p, rng);
    const uint32_t *a = member_point(p, first);
    const uint32_t *b = member_point(p, second);
    bool is_crossed = msc_rng_double(rng) < p->crossover;
    for (size_t t = 0; t < p->space->n_tasks; t++) {
        child->choices[t] = is_crossed && msc_rng_below(rng, 2) == 0 ? b[t] : a[t];
        if (msc_rng_double(rng) < mutation) {
            child->choices[t] = mutated_choice(&p->sampler->bounds, rng, t, child->choices[t]);
        }
    }
    child->parent = p->ids[p->order[first]];
    msc_exact_moves_repair(&p->sampler->moves, rng, child->choices);
    if (p->spends && msc_rng_below(rng, 2) == 0) {
        spend_what_is_left(&p->sampler->moves, rng, child->choices);
    }
}

bool msc_population_child(struct msc_population *p, struct msc_proposal *child) {
    double mutation = p->mutation;
    for (int i = 0; i < CHILD_TRIES && p->n_members > 0; i++) {
        make_child(p, child, mutation);
        if (msc_sampler_note(p->sampler, child->choices)) {
            return true;
        }
        mutation = mutation * 1.5 < 0.5 ? mutation * 1.5 : 0.5;
    }
    child->parent = -1;
    return msc_sampler_draw(p->sampler, child->choices);
}

static bool is_member(const struct msc_population *p, const uint32_t choices[]) {
    size_t n_bytes = p->space->n_tasks * sizeof *choices;
    for (size_t i = 0; i < p->n_members; i++) {
        if (memcmp(member_point(p, i), choices, n_bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool msc_population_tell(struct msc_population *p, const struct msc_trial *trial) {
    const uint32_t *choices = trial->proposal.choices;
    const struct msc_outcome learnt = msc_goal_learn(p->goal, trial);
    bool is_usable = msc_trial_state_is_result(learnt.state);
    if (!is_usable || is_member(p, choices)) {
        return false;
    }
    if (p->n_members == p->n_slots) {
        msc_population_select(p);
    }
    size_t member = p->n_members++;
    size_t slot = p->order[member];
    memcpy(member_point(p, member), choices, p->space->n_tasks * sizeof *choices);
    p->outcomes[slot] = learnt;
    p->outcomes[slot].metrics = NULL; // the trial's metrics are borrowed for the call only
    p->outcomes[slot].reason = NULL;
    p->ids[slot] = trial->id;
    p->is_ranked = false;
    return true;
}
