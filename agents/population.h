// The best points told, and children of them: crossover of two tournament winners, mutated task by
// task, repaired until the exact costs meet the bounds, and half the time made more expensive as far
// as these allow. The order is that of NSGA-II, which for one objective is simply the order of that
// objective. Nothing allocates after init.
#ifndef MSC_AGENTS_POPULATION_H
#define MSC_AGENTS_POPULATION_H

#include "agents/agent.h"
#include "agents/sampler.h"

struct msc_population {
    const struct msc_space *space; // borrowed, as all three
    const struct msc_goal *goal;
    struct msc_sampler *sampler;
    size_t size;        // members kept
    double crossover;   // probability that a child has two parents
    double mutation;    // probability that a task's choice changes
    bool spends;        // no objective is a cost: what the bounds leave may be spent
    size_t sorted_from; // up to so many members stay as told: `size`, unless its owner says less
    // Members stand in slots; the first n_members of `order` name those in use.
    size_t n_members;
    size_t n_slots;               // 2 * size
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

enum msc_status msc_population_init(struct msc_population *p, struct msc_agent *agent,
                                    struct msc_sampler *sampler, size_t size, double crossover,
                                    double mutation);
// A complete or infeasible trial becomes a member, unless its point is one; true when it does.
bool msc_population_tell(struct msc_population *p, const struct msc_trial *trial);
// Ranks all members and keeps the best `size` of them, in order once there are more than
// `sorted_from`.
void msc_population_select(struct msc_population *p);
// An unseen child of the members selected, with its parent, and notes it; else a random point. False
// when no point is left.
bool msc_population_child(struct msc_population *p, struct msc_proposal *child);
const uint32_t *msc_population_point(const struct msc_population *p, size_t member);
const struct msc_outcome *msc_population_outcome(const struct msc_population *p, size_t member);

#endif
