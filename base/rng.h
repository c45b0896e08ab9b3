// PCG random numbers, written from M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
// Statistically Good Algorithms for Random Number Generation", HMC-CS-2014-0905.
//
// msc_pcg32 is PCG-XSH-RR 64/32, msc_pcg64 is PCG-XSL-RR 128/64 (the generator of numpy's PCG64).
// Agents and environments draw from `struct msc_rng`: a msc_pcg64 seeded from a seed and a stream
// number, so that two users of the same seed never share a sequence. All state is plain data.
#ifndef MSC_BASE_RNG_H
#define MSC_BASE_RNG_H

#include "base/public.h"

#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_pcg32 {
    uint64_t state;
    uint64_t increment; // must be odd
};

// Like pcg32_srandom of the reference implementation: accepts any state and any stream.
void msc_pcg32_seed(struct msc_pcg32 *rng, uint64_t state, uint64_t stream);
uint32_t msc_pcg32_next(struct msc_pcg32 *rng);
// Uniform in [0, bound) without bias, with rejection as in the reference implementation. bound > 0.
uint32_t msc_pcg32_below(struct msc_pcg32 *rng, uint32_t bound);

struct msc_pcg64 {
    uint64_t state_high, state_low;
    uint64_t increment_high, increment_low; // the low half must be odd
};

void msc_pcg64_seed(struct msc_pcg64 *rng, uint64_t state_high, uint64_t state_low,
                    uint64_t stream_high, uint64_t stream_low);
uint64_t msc_pcg64_next(struct msc_pcg64 *rng);

struct msc_rng {
    struct msc_pcg64 pcg;
};

void msc_rng_seed(struct msc_rng *rng, uint64_t seed, uint64_t stream);
uint64_t msc_rng_u64(struct msc_rng *rng);
uint64_t msc_rng_below(struct msc_rng *rng, uint64_t bound); // [0, bound), unbiased; bound > 0
double msc_rng_double(struct msc_rng *rng);                  // [0, 1), 53 bits
void msc_rng_shuffle(struct msc_rng *rng, uint32_t *items, size_t n); // Fisher-Yates

MSC_PUBLIC_END

#endif
