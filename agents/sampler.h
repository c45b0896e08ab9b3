// Draws random feasible points, each at most once, and remembers points seen elsewhere.
//
// Points are taken along a seeded permutation of the whole space, so that none is drawn twice.
// Small spaces (up to 2^20 points) are enumerated completely. In larger spaces, a point is repaired
// after some infeasible draws, and seen points are remembered in a hash table of fixed size. A
// point is therefore unlikely to be drawn twice; if it is, the search answers it from the record.
// Only init allocates.
#ifndef MSC_AGENTS_SAMPLER_H
#define MSC_AGENTS_SAMPLER_H

#include "agents/agent.h"
#include "agents/exact_bounds.h"
#include "agents/exact_moves.h"

#define MSC_SAMPLER_ROUNDS 6

struct msc_sampler {
    struct msc_exact_bounds bounds;
    struct msc_exact_moves moves; // scratch; owners may use it to change a point
    struct msc_rng *rng;
    uint64_t n_points; // 0: too many to count
    bool is_small;
    unsigned half_bits; // bits of each half of the permutation's numbers
    uint64_t keys[MSC_SAMPLER_ROUNDS];
    uint64_t cursor; // position in the permutation
    uint64_t *seen;  // small space: one bit per point; else a table of hashes
    uint64_t n_seen; // small space: points remembered
};

// `rng` is the agent's generator, borrowed.
enum msc_status msc_sampler_init(struct msc_sampler *sampler, struct msc_arena *arena,
                                 const struct msc_space *space, const struct msc_goal *goal,
                                 struct msc_rng *rng);
// Remembers a point; false if it was remembered before.
bool msc_sampler_note(struct msc_sampler *sampler, const uint32_t choices[]);
// Whether the point is remembered.
bool msc_sampler_has(const struct msc_sampler *sampler, const uint32_t choices[]);
// Draws and notes a feasible point not seen before. False if none is left, or none was found in
// many attempts. If no feasible point is known, infeasible ones are drawn.
bool msc_sampler_draw(struct msc_sampler *sampler, uint32_t choices[]);
// The number of points that can still be drawn; +inf in a large space.
struct msc_agent_left msc_sampler_left(const struct msc_sampler *sampler);

#endif
