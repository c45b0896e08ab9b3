#include "base/rng.h"

#include <assert.h>

// The 128-bit generator needs an integer type that ISO C lacks; only this file uses it.
__extension__ typedef unsigned __int128 wide;

// Multipliers of O'Neill's reference implementation for 64 and 128 bits of state.
#define PCG32_MULTIPLIER 6364136223846793005u
#define PCG64_MULTIPLIER_HIGH 0x2360ed051fc65da4u
#define PCG64_MULTIPLIER_LOW 0x4385df649fccf645u

static wide rng_join(uint64_t high, uint64_t low) {
    return (wide)high << 64 | low;
}

void msc_pcg32_seed(struct msc_pcg32 *rng, uint64_t state, uint64_t stream) {
    rng->state = 0;
    rng->increment = stream << 1 | 1;
    msc_pcg32_next(rng);
    rng->state += state;
    msc_pcg32_next(rng);
}

uint32_t msc_pcg32_next(struct msc_pcg32 *rng) {
    uint64_t old = rng->state;
    rng->state = old * PCG32_MULTIPLIER + rng->increment;
    uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27);
    uint32_t rotation = (uint32_t)(old >> 59);
    return mixed >> rotation | mixed << (-rotation & 31);
}

uint32_t msc_pcg32_below(struct msc_pcg32 *rng, uint32_t bound) {
    assert(bound > 0);
    // Rejecting the lowest (2^32 mod bound) numbers leaves a count that is a multiple of `bound`.
    uint32_t threshold = -bound % bound;
    uint32_t draw = msc_pcg32_next(rng);
    while (draw < threshold) {
        draw = msc_pcg32_next(rng);
    }
    return draw % bound;
}

static wide pcg64_step(struct msc_pcg64 *rng) {
    wide state = rng_join(rng->state_high, rng->state_low);
    state = state * rng_join(PCG64_MULTIPLIER_HIGH, PCG64_MULTIPLIER_LOW) +
            rng_join(rng->increment_high, rng->increment_low);
    rng->state_high = (uint64_t)(state >> 64);
    rng->state_low = (uint64_t)state;
    return state;
}

void msc_pcg64_seed(struct msc_pcg64 *rng, uint64_t state_high, uint64_t state_low,
                    uint64_t stream_high, uint64_t stream_low) {
    wide increment = rng_join(stream_high, stream_low) << 1 | 1;
    *rng = (struct msc_pcg64){
        .increment_high = (uint64_t)(increment >> 64),
        .increment_low = (uint64_t)increment,
    };
    wide state = pcg64_step(rng) + rng_join(state_high, state_low);
    rng->state_high = (uint64_t)(state >> 64);
    rng->state_low = (uint64_t)state;
    pcg64_step(rng);
}

uint64_t msc_pcg64_next(struct msc_pcg64 *rng) {
    wide state = pcg64_step(rng);
    uint64_t mixed = (uint64_t)(state >> 64) ^ (uint64_t)state;
    unsigned rotation = (unsigned)(state >> 122);
    return mixed >> rotation | mixed << (-rotation & 63);
}

// SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every input bit flips
// about half of the output bits, so that seeds 0, 1, 2 give unrelated states.
static uint64_t split_mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

void msc_rng_seed(struct msc_rng *rng, uint64_t seed, uint64_t stream) {
    uint64_t state_low = split_mix(seed);
    uint64_t stream_low = split_mix(stream);
    uint64_t state_high = split_mix(state_low ^ stream_low);
    // The low half of the increment is a bijection of `stream`, so that for any seed two streams
    // give different sequences.
    uint64_t stream_high = split_mix(stream_low + state_low);
    msc_pcg64_seed(&rng->pcg, state_high, state_low, stream_high, stream_low);
}

uint64_t msc_rng_u64(struct msc_rng *rng) {
    return msc_pcg64_next(&rng->pcg);
}

// D. Lemire, "Fast Random Integer Generation in an Interval", 2019: the result is the high half
// of the product. A low half under 2^64 mod bound would be biased, so it is drawn again.
uint64_t msc_rng_below(struct msc_rng *rng, uint64_t bound) {
    assert(bound > 0);
    wide product = (wide)msc_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold) {
            product = (wide)msc_rng_u64(rng) * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

double msc_rng_double(struct msc_rng *rng) {
    return (double)(msc_rng_u64(rng) >> 11) * 0x1p-53;
}

void msc_rng_shuffle(struct msc_rng *rng, uint32_t *items, size_t n) {
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)msc_rng_below(rng, i);
        uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}
