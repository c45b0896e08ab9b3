// Steps of element-wise joints alone.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/lowering/ewise.h"

struct kernel {
    struct msc_ewise *program;
    int64_t n; // elements
};

// Channels last if any input of the output's shape comes so.
static void layouts(const struct msc_graph *g, const struct msc_step *step,
                    const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_tensor *y = msc_lowering_output(g, step->joints[step->n_joints - 1].joint);
    enum msc_layout layout = MSC_LAYOUT_NCHW;
    for (int32_t k = 0; k < step->n_joints; k++) {
        const struct msc_step_joint *j = &step->joints[k];
        for (int32_t i = 0; i < j->n_operands; i++) {
            if (j->operands[i].kind == MSC_OPERAND_INPUT &&
                coming[j->operands[i].index] == MSC_LAYOUT_NHWC &&
                msc_lowering_same_shape(y, msc_lowering_operand(g, j->joint, i)) &&
                !msc_lowering_layouts_coincide(y->n_dims, y->dims)) {
                layout = MSC_LAYOUT_NHWC;
            }
        }
    }
    out->outputs = layout;
    msc_lowering_follow_layout(g, step, 0, layout, coming, out);
}

static void release(void *kernel) {
    struct kernel *k = kernel;
    if (k) {
        msc_ewise_destroy(k->program);
        msc_free(k);
    }
}

static enum msc_status prepare(void **out, struct msc_cpu_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step) {
    (void)b;
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    if (!k) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", step->joints[0].joint->name);
    }
    const struct msc_value *v = &plan->values[step->outputs[0]];
    k->n = msc_dims_product(v->n_dims, v->dims);
    struct msc_ewise_options options = {.start = MSC_EWISE_CHAIN};
    enum msc_status status = msc_ewise_create(&k->program, plan, step, &options);
    if (status != MSC_OK) {
        msc_free(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status run(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread) {
    const struct kernel *k = kernel;
    struct msc_ewise_call run = {.inputs = call->inputs,
                                 .out = call->outputs[0].data,
                                 .quantized = call->quantized,
                                 .n_quantized = call->n_quantized,
                                 .end = k->n};
    MSC_TRY(msc_cpu_get_scratch(&run.scratch, b, thread, msc_ewise_scratch_bytes(k->program)));
    msc_ewise_run(k->program, &run);
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_ewise = {
    .name = "element-wise",
    .accepts = msc_ewise_accepts,
    .has_followers = true,
    .layouts = layouts,
    .prepare = prepare,
    .release = release,
    .run = run,
    .quantizes = true,
};
