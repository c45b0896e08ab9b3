// Steps that contain only element-wise joints.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ewise_run.h"

struct kernel {
    struct msc_cpu_ewise *program;
    int64_t n; // number of elements
};

static void cpu_ewise_release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_cpu_ewise_destroy(k->program);
        msc_free(k);
    }
}

static enum msc_status cpu_ewise_prepare(void **out, struct msc_cpu_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    const struct msc_value *v = &plan->values[step->outputs[0]];
    k->n = msc_dims_product(v->n_dims, v->dims);
    struct msc_ewise_options options = {.start = MSC_EWISE_CHAIN};
    enum msc_status status = msc_cpu_ewise_create(&k->program, plan, step, &options);
    if (status != MSC_OK) {
        msc_free(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status cpu_ewise_run(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    struct msc_cpu_ewise_call run = {.inputs = call->inputs,
                                     .out = call->outputs[0].data,
                                     .quantized = call->quantized,
                                     .n_quantized = call->n_quantized,
                                     .end = k->n};
    MSC_TRY(msc_cpu_get_scratch(&run.scratch, b, thread, msc_cpu_ewise_scratch_bytes(k->program)));
    msc_cpu_ewise_run(k->program, &run);
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_ewise = {
    .prepare = cpu_ewise_prepare,
    .release = cpu_ewise_release,
    .run = cpu_ewise_run,
    .reads_integers = true,
    .quantizes = true,
};
