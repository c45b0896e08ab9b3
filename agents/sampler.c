#include "agents/sampler.h"

#include <math.h>
#include <string.h>

#define SMALL_POINTS (UINT64_C(1) << 20)
#define COUNTED_POINTS (UINT64_C(1) << 62)
#define TABLE_BITS 17
// Greatest numbers of attempts for one draw in a large space: first without repair, then with
// repair.
#define PLAIN_TRIES 32
#define REPAIR_TRIES 32

static uint64_t count_points(const struct msc_space *space) {
    uint64_t n = 1;
    for (size_t t = 0; t < space->n_tasks; t++) {
        if (n > COUNTED_POINTS / space->tasks[t].n_choices) {
            return 0;
        }
        n *= space->tasks[t].n_choices;
    }
    return n;
}

enum msc_status msc_sampler_init(struct msc_sampler *sampler, struct msc_arena *arena,
                                 const struct msc_space *space, const struct msc_goal *goal,
                                 struct msc_rng *rng) {
    memset(sampler, 0, sizeof *sampler);
    MSC_TRY(msc_exact_bounds_init(&sampler->bounds, arena, space, goal));
    MSC_TRY(msc_exact_moves_init(&sampler->moves, arena, &sampler->bounds));
    sampler->rng = rng;
    sampler->n_points = count_points(space);
    sampler->is_small = sampler->n_points > 0 && sampler->n_points <= SMALL_POINTS;
    while (sampler->half_bits < 31 &&
           (UINT64_C(1) << (2 * sampler->half_bits)) < sampler->n_points) {
        sampler->half_bits++;
    }
    for (size_t i = 0; i < MSC_SAMPLER_ROUNDS; i++) {
        sampler->keys[i] = msc_rng_u64(rng);
    }
    size_t n_words =
        sampler->is_small ? (size_t)(sampler->n_points / 64 + 1) : (size_t)1 << TABLE_BITS;
    sampler->seen = msc_arena_array(arena, n_words, sizeof *sampler->seen);
    return MSC_ALLOCATED(sampler->seen);
}

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t sampler_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// Permutes the points of the space. A Feistel network permutes the numbers of 2 * half_bits bits;
// it is applied again until the result is inside the space (cycle walking).
static uint64_t permute_points(const struct msc_sampler *sampler, uint64_t index) {
    uint64_t mask = (UINT64_C(1) << sampler->half_bits) - 1;
    do {
        uint64_t left = index >> sampler->half_bits;
        uint64_t right = index & mask;
        for (size_t i = 0; i < MSC_SAMPLER_ROUNDS; i++) {
            uint64_t next = left ^ (sampler_mix(right ^ sampler->keys[i]) & mask);
            left = right;
            right = next;
        }
        index = left << sampler->half_bits | right;
    } while (index >= sampler->n_points);
    return index;
}

static void decode_point(const struct msc_space *space, uint64_t index, uint32_t choices[]) {
    for (size_t t = space->n_tasks; t-- > 0;) {
        choices[t] = (uint32_t)(index % space->tasks[t].n_choices);
        index /= space->tasks[t].n_choices;
    }
}

static uint64_t encode_point(const struct msc_space *space, const uint32_t choices[]) {
    uint64_t index = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        index = index * space->tasks[t].n_choices + choices[t];
    }
    return index;
}

// The word of `seen` that remembers the point. *mark is the mark of a remembered point: one bit in
// a small space, otherwise the whole word.
static uint64_t *word_of(const struct msc_sampler *sampler, const uint32_t choices[],
                         uint64_t *mark) {
    const struct msc_space *space = sampler->bounds.space;
    if (sampler->is_small) {
        uint64_t index = encode_point(space, choices);
        *mark = UINT64_C(1) << (index % 64);
        return &sampler->seen[index / 64];
    }
    *mark = msc_hash_bytes(choices, space->n_tasks * sizeof *choices).low | 1;
    return &sampler->seen[*mark >> (64 - TABLE_BITS)];
}

bool msc_sampler_has(const struct msc_sampler *sampler, const uint32_t choices[]) {
    uint64_t mark;
    const uint64_t *word = word_of(sampler, choices, &mark);
    return sampler->is_small ? (*word & mark) != 0 : *word == mark;
}

bool msc_sampler_note(struct msc_sampler *sampler, const uint32_t choices[]) {
    uint64_t mark;
    uint64_t *word = word_of(sampler, choices, &mark);
    bool is_new = !msc_sampler_has(sampler, choices);
    *word = sampler->is_small ? *word | mark : mark;
    sampler->n_seen += sampler->is_small && is_new;
    return is_new;
}

static void draw_uniform(struct msc_sampler *sampler, uint32_t choices[]) {
    const struct msc_space *space = sampler->bounds.space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        choices[t] = (uint32_t)msc_rng_below(sampler->rng, space->tasks[t].n_choices);
    }
}

// The next point of the permutation; false at its end.
static bool draw_next(struct msc_sampler *sampler, uint32_t choices[]) {
    if (sampler->n_points == 0) {
        draw_uniform(sampler, choices);
        return true;
    }
    if (sampler->cursor == sampler->n_points) {
        return false;
    }
    decode_point(sampler->bounds.space, permute_points(sampler, sampler->cursor++), choices);
    return true;
}

static bool sampler_accept(struct msc_sampler *sampler, const uint32_t choices[]) {
    bool is_wanted = !sampler->bounds.anchor || msc_exact_bounds_hold(&sampler->bounds, choices);
    return is_wanted && msc_sampler_note(sampler, choices);
}

bool msc_sampler_draw(struct msc_sampler *sampler, uint32_t choices[]) {
    uint64_t n_tries = sampler->is_small ? sampler->n_points : PLAIN_TRIES;
    for (uint64_t i = 0; i < n_tries; i++) {
        if (!draw_next(sampler, choices)) {
            return false;
        }
        if (sampler_accept(sampler, choices)) {
            return true;
        }
    }
    for (int i = 0; i < REPAIR_TRIES; i++) {
        draw_uniform(sampler, choices);
        msc_exact_moves_repair(&sampler->moves, sampler->rng, choices);
        if (sampler_accept(sampler, choices)) {
            return true;
        }
    }
    return false;
}

struct msc_agent_left msc_sampler_left(const struct msc_sampler *sampler) {
    if (!sampler->is_small) {
        return (struct msc_agent_left){.n = INFINITY, .is_exact = true};
    }
    return (struct msc_agent_left){.n = (double)(sampler->n_points - sampler->n_seen),
                                   .is_exact = sampler->bounds.n_items == 0};
}
