// Random feasible points, each at most once: what `random` proposes and `evolutionary` begins with.
//
// Points are taken along a seeded permutation of the whole space, so that none comes twice and
// small spaces (up to 2^20 points) are gone through to the end. In larger ones an infeasible point
// is repaired after some tries, and points seen are remembered in a table of fixed size: a repeat
// is unlikely, and answered from the record. Nothing allocates after init.
#ifndef MSC_AGENTS_SAMPLER_H
#define MSC_AGENTS_SAMPLER_H

#include "agents/agent.h"
#include "agents/exact_bounds.h"
#include "agents/exact_moves.h"

#define MSC_SAMPLER_ROUNDS 6

struct msc_sampler {
    struct msc_exact_bounds bounds;
    struct msc_exact_moves moves; // for whoever changes a point
    struct msc_rng *rng;
    uint64_t n_points; // 0: too many to count
    bool is_small;
    unsigned half_bits; // of the permutation's two halves
    uint64_t keys[MSC_SAMPLER_ROUNDS];
    uint64_t cursor; // place in the permutation
    uint64_t *seen;  // small: one bit a point; else a table of hashes
    uint64_t n_seen; // small: points remembered
};

// `rng` is borrowed: the agent's own.
enum msc_status msc_sampler_init(struct msc_sampler *sampler, struct msc_arena *arena,
                                 const struct msc_space *space, const struct msc_goal *goal,
                                 struct msc_rng *rng);
// Remembers a point; false when it was remembered before.
bool msc_sampler_note(struct msc_sampler *sampler, const uint32_t choices[]);
// Was it remembered?
bool msc_sampler_has(const struct msc_sampler *sampler, const uint32_t choices[]);
// A feasible point not seen before, and notes it. False when none is left, or none was found in
// many tries. When no point at all is feasible, infeasible ones are given.
bool msc_sampler_draw(struct msc_sampler *sampler, uint32_t choices[]);
// How many points it can still give: in a large space no end is in sight.
struct msc_agent_left msc_sampler_left(const struct msc_sampler *sampler);

#endif
