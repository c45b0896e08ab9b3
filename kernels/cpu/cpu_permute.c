// Transposes, changes of layout, and depth to space and back.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/movement_run.h"

static void cpu_permute_release(void *kernel) {
    msc_free(kernel);
}

// Prepares a step. A step without joints is a reorder: the axes are the same, but the layout
// changes.
static enum msc_status cpu_permute_prepare(void **out, struct msc_cpu_backend *b,
                                           const struct msc_plan *plan,
                                           const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->n_joints > 0 ? step->joints[0].joint : NULL;
    struct msc_movement *m = msc_alloc(sizeof(*m));
    MSC_TRY(MSC_ALLOCATED(m));
    msc_movement_set_permute(m, joint, &plan->values[step->inputs[0]],
                             &plan->values[step->outputs[0]]);
    *out = m;
    return MSC_OK;
}

static enum msc_status cpu_permute_run(void *kernel, struct msc_cpu_backend *b,
                                       const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    struct msc_movement move = *(const struct msc_movement *)kernel;
    move.bytes = msc_dtype_bytes(call->outputs[0].dtype);
    msc_cpu_movement_run(&move, call->outputs[0].data, call->inputs[0].data);
    return MSC_OK;
}

static bool cpu_permute_is_movement(const void *kernel) {
    (void)kernel;
    return true;
}

const struct msc_cpu_family msc_cpu_permute = {
    .prepare = cpu_permute_prepare,
    .release = cpu_permute_release,
    .run = cpu_permute_run,
    .is_movement = cpu_permute_is_movement,
    .copies = true,
};

// ---- Depth to space and back ------------------------------------------------------------------

static enum msc_status cpu_depth_space_prepare(void **out, struct msc_cpu_backend *b,
                                               const struct msc_plan *plan,
                                               const struct msc_step *step) {
    (void)b;
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    struct msc_movement *m = msc_alloc(sizeof(*m));
    MSC_TRY(MSC_ALLOCATED(m));
    msc_movement_set_depth_space(m, joint, x, &plan->values[step->outputs[0]]);
    *out = m;
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_depth_space = {
    .prepare = cpu_depth_space_prepare,
    .release = cpu_permute_release,
    .run = cpu_permute_run,
    .is_movement = cpu_permute_is_movement,
    .copies = true,
};
