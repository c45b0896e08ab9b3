// Random numbers, seeded with the joint's seed and name. They are equal in every run, so that
// trials and resumed searches agree. Their values may differ between versions.
#include "graph/reference/reference_internal.h"

#include "base/hash.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

static const double two_pi = 6.283185307179586476925286766559;

static enum msc_status reference_random_start(struct msc_rng *rng,
                                              const struct msc_reference_call *call) {
    float seed;
    MSC_TRY(msc_reference__get_float(&seed, call, "seed"));
    struct msc_hash h = msc_hash_bytes(&seed, sizeof(seed));
    h = msc_hash_add_text(h, call->joint->name);
    msc_rng_seed(rng, h.low, h.high);
    return MSC_OK;
}

enum msc_status msc_reference__random(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    struct msc_rng rng;
    float first, second;
    bool is_normal = strcmp(msc_reference__get_text(call, "distribution"), "normal") == 0;
    MSC_TRY(reference_random_start(&rng, call));
    MSC_TRY(msc_reference__get_float(&first, call, "first"));
    MSC_TRY(msc_reference__get_float(&second, call, "second"));
    int64_t n = msc_view_n_elements(out);
    for (int64_t i = 0; i < n; i++) {
        double u = msc_rng_double(&rng), value;
        if (is_normal) { // Box-Muller transform
            double v = msc_rng_double(&rng);
            value = (double)first + (double)second * sqrt(-2 * log(1 - u)) * cos(two_pi * v);
        } else {
            value = (double)first + u * ((double)second - (double)first);
        }
        msc_reference__set_double_at(out, i, value);
    }
    return MSC_OK;
}

// Draws classes according to unnormalised log-probabilities.
enum msc_status msc_reference__multinomial(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    struct msc_rng rng;
    MSC_TRY(reference_random_start(&rng, call));
    int64_t n = x->dims[1], samples = out->dims[1];
    for (int64_t i = 0; i < x->dims[0] * samples; i++) {
        int64_t row = i / samples * n, picked = 0;
        double total = 0, passed = 0;
        for (int64_t k = 0; k < n; k++) {
            total += exp(msc_reference__get_double_at(x, row + k));
        }
        double limit = msc_rng_double(&rng) * total;
        for (int64_t k = 0; k < n && passed <= limit; k++) {
            passed += exp(msc_reference__get_double_at(x, row + k));
            picked = k;
        }
        msc_reference__set_i64_at(out, i, picked);
    }
    return MSC_OK;
}
