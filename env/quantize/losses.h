// The distill losses of points, and nothing else of them: for who compares many plans on few samples.
//
//     double losses[2];
//     const uint32_t *points[] = {one, other};
//     struct msc_quantize_losses_of of = {.samples = MSC_QUANTIZE_VALIDATION};
//     MSC_TRY(msc_quantize_measure_losses(losses, env, &of, points, 2));
#ifndef MSC_ENV_QUANTIZE_LOSSES_H
#define MSC_ENV_QUANTIZE_LOSSES_H

#include "env/env.h"
#include "env/quantize/definition.h"

enum msc_quantize_samples {
    MSC_QUANTIZE_CALIBRATION, // those of the search
    MSC_QUANTIZE_VALIDATION,  // those held out
};

struct msc_quantize_losses_of {
    enum msc_quantize_samples samples; // where there are none for validation, those of the search
    int64_t n_most;                    // of the samples of the search the first ones; 0: all
    // Optional: called for each point whose loss is there, one call at a time.
    void (*done)(void *payload, size_t n_done, size_t n);
    void *payload;
};

// losses [n] of points [n][n_tasks], computed together, so that what they have in common is computed
// once; +inf for a point that fails. Of sequences (docs/quantize.md) whole ones count, at least one.
// The failure of the first point where all fail; MSC_E_UNSUPPORTED: the environment is another one.
enum msc_status msc_quantize_measure_losses(double losses[], struct msc_env *env,
                                            const struct msc_quantize_losses_of *of,
                                            const uint32_t *const points[], size_t n);

#endif
