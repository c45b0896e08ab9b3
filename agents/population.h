// The best observed points and their children. A child is a crossover of two tournament winners,
// mutated task by task and repaired until its exact costs meet the bounds; half of the children are
// then made more expensive as far as the bounds allow. Points are in the order of NSGA-II, which
// for one objective is the order of that objective. Only init allocates.
#ifndef MSC_AGENTS_POPULATION_H
#define MSC_AGENTS_POPULATION_H

#include "agents/agent.h"
#include "agents/sampler.h"

struct msc_population {
    const struct msc_space *space; // borrowed, like goal and sampler
    const struct msc_goal *goal;
    struct msc_sampler *sampler;
    size_t size;      // members kept
    double crossover; // probability that a child has two parents
    double mutation;  // probability that a task's choice changes
    // no objective is an exact cost, so children may be made more expensive within the bounds
    bool spends;
    size_t sorted_from; // members are sorted only if there are more than this; `size` unless set by
                        // the owner
    // Members are stored in slots; the first n_members of `order` are the slots in use.
    size_t n_members;
    size_t n_slots;               // 2 * size
    size_t *order;                // [n_slots]
    uint32_t *points;             // [n_slots, n_tasks]
    struct msc_outcome *outcomes; // [n_slots], without metrics and reason
    int64_t *ids;                 // [n_slots]
    bool is_ranked;
    // For each position in `order`:
    const struct msc_outcome **ranked; // [n_slots]
    size_t *ranks;
    double *crowding;
    size_t *scratch; // [4 * n_slots]
};

enum msc_status msc_population_init(struct msc_population *p, struct msc_agent *agent,
                                    struct msc_sampler *sampler, size_t size, double crossover,
                                    double mutation);
// Adds a complete or infeasible trial as a member, unless its point already is a member. True if
// added.
bool msc_population_tell(struct msc_population *p, const struct msc_trial *trial);
// Ranks all members and keeps the best `size` of them, sorted if there are more than `sorted_from`.
void msc_population_select(struct msc_population *p);
// Writes an unseen child of the selected members, with its parent, to *child, and notes it in the
// sampler. If no child is found, a random point takes its place. False if no point is left.
bool msc_population_child(struct msc_population *p, struct msc_proposal *child);
const uint32_t *msc_population_point(const struct msc_population *p, size_t member);
const struct msc_outcome *msc_population_outcome(const struct msc_population *p, size_t member);

#endif
