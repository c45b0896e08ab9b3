// Normalisation over the last axes, row by row.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/moments.h"

#include <math.h>

struct kernel {
    int64_t n_rows, n; // n: elements per row
    float epsilon;
    const float *gamma, *beta; // [n]; borrowed from the graph; beta may be NULL
};

static void cpu_layer_norm_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_layer_norm_prepare(void **out, struct msc_cpu_backend *b,
                                              const struct msc_plan *plan,
                                              const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_tensor *x = msc_lowering_operand(plan->graph, joint, 0);
    const struct msc_array *gamma = msc_lowering_constant(plan->graph, joint, 1);
    const struct msc_array *beta = msc_lowering_constant(plan->graph, joint, 2);
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->n = msc_array_n_elements(gamma);
    k->n_rows = msc_dims_product(x->n_dims, x->dims) / k->n;
    k->gamma = msc_array_data(gamma);
    k->beta = beta ? msc_array_data(beta) : NULL;
    msc_joint_attr_float(joint, "epsilon", &k->epsilon);
    *out = k;
    return MSC_OK;
}

MSC_SIMD static void cpu_layer_norm_scale_row(float *restrict out, const float *restrict x,
                                              const struct kernel *k, float mean, float factor) {
    const float *restrict gamma = k->gamma, *restrict beta = k->beta;
    if (beta) {
        for (int64_t i = 0; i < k->n; i++) {
            out[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
        }
        return;
    }
    for (int64_t i = 0; i < k->n; i++) {
        out[i] = (x[i] - mean) * factor * gamma[i];
    }
}

static enum msc_status cpu_layer_norm_run(void *kernel, struct msc_cpu_backend *b,
                                          const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    const float *x = call->inputs[0].data;
    float *out = call->outputs[0].data;
    (void)b;
    (void)thread;
    for (int64_t r = 0; r < k->n_rows; r++, x += k->n, out += k->n) {
        struct msc_moments m = {0};
        msc_moments_add_row(&m, x, k->n);
        float factor = 1.0f / sqrtf((float)msc_moments_variance(&m) + k->epsilon);
        cpu_layer_norm_scale_row(out, x, k, (float)m.mean, factor);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_layer_norm = {
    .prepare = cpu_layer_norm_prepare,
    .release = cpu_layer_norm_release,
    .run = cpu_layer_norm_run,
};
