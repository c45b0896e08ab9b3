// Measures only the distill losses of points, to compare many plans on few samples.
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
    MSC_QUANTIZE_CALIBRATION, // the samples of the search
    MSC_QUANTIZE_VALIDATION,  // held-out samples
};

struct msc_quantize_losses_of {
    enum msc_quantize_samples samples; // without validation samples, those of the search are used
    int64_t n_most;                    // use only the first n_most samples of the search; 0: all
    // [n], or NULL: of point i only the choice of task alone[i] is applied to the float model
    const size_t *alone;
    // Optional: called when a point's loss is known, one call at a time.
    void (*done)(void *payload, size_t n_done, size_t n);
    void *payload;
};

// Fills losses [n] of points [n][n_tasks]; +inf for a point that fails. Points are evaluated
// together, so work that they share is done once. Sequences (docs/quantize.md) are not divided, and
// at least one is used. If all points fail, the first failure is returned. MSC_E_UNSUPPORTED: not a
// `quantize` environment.
enum msc_status msc_quantize_measure_losses(double losses[], struct msc_env *env,
                                            const struct msc_quantize_losses_of *of,
                                            const uint32_t *const points[], size_t n);

#endif
