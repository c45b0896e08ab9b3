// Sums, means, maxima and minima over any axes, global pools, softmax, nn.layer_norm.
#include "base/alloc.h"
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_kernels.h"

#include <string.h>

struct kernel {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *dims; // dims of a reduction, or gamma and beta of nn.layer_norm; otherwise
                               // NULL
    int32_t input;
    uint64_t n;          // number of outputs or rows
    bool is_by_group;    // each workgroup computes one row
    uint32_t numbers[2]; // further parameters of the shader
};

static void vk_reduce_release(void *memory, struct msc_vk_backend *b) {
    struct kernel *k = memory;
    if (k) {
        msc_vk_free(b->vk, k->dims);
        msc_free(k);
    }
}

// ---- Reductions -------------------------------------------------------------------------------

// The loop iterations for n_elements. Loops over dims are unrolled and do not count.
static uint64_t turns_of(uint64_t n_elements) {
    return n_elements + 16;
}

// Lists the kept dims in the output's memory order, then the reduced dims in the order of axes, so
// that elements are added in the same order as in the reference kernel.
static enum msc_status vk_reduce_init(struct kernel *k, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[k->input]];
    struct msc_view y = msc_plan_view(plan, step->outputs[0], NULL);
    struct msc_reduction r;
    int64_t strides[MSC_MAX_DIMS], physical[MSC_MAX_DIMS], count = 1;
    int axes[MSC_MAX_DIMS], from[MSC_MAX_DIMS], n_out = 0, n = 0;
    int32_t dims[MSC_MAX_DIMS][2] = {{0}};
    if (x->dtype != MSC_DTYPE_F32 || step->n_inputs != 1 ||
        msc_dims_product(x->n_dims, x->dims) < 1 ||
        !msc_lowering_describe_reduction(&r, joint, x->n_dims)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", joint->name);
    }
    bool keeps = y.n_dims == x->n_dims;
    for (int i = 0; i < x->n_dims; i++) {
        if (keeps || !r.is_reduced[i]) {
            from[n_out++] = i;
        }
    }
    msc_lowering_strides(strides, x->n_dims, x->dims, x->layout);
    msc_view_physical(&y, physical, axes);
    for (int i = 0; i < y.n_dims; i++) {
        if (!r.is_reduced[from[axes[i]]]) {
            dims[n][0] = (int32_t)physical[i];
            dims[n++][1] = (int32_t)strides[from[axes[i]]];
        }
    }
    uint32_t n_kept = (uint32_t)n;
    for (int i = 0; i < x->n_dims; i++) {
        if (r.is_reduced[i]) {
            count *= x->dims[i];
            dims[n][0] = (int32_t)x->dims[i];
            dims[n++][1] = (int32_t)strides[i];
        }
    }
    k->n = (uint64_t)msc_view_n_elements(&y);
    if (!msc_vk_can_spread(b->vk, k->n, turns_of((uint64_t)count))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: too many elements for the loops of a shader",
                        joint->name);
    }
    float divisor = r.is_mean ? (float)count : 1.0f;
    k->numbers[0] = (uint32_t)count;
    memcpy(&k->numbers[1], &divisor, sizeof(divisor));
    uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly, (uint32_t)r.kind, n_kept,
                            (uint32_t)n - n_kept};
    MSC_TRY(msc_vk_upload_new(b->vk, &k->dims, dims, sizeof(dims)));
    MSC_VK_CHECK_CONSTANTS(MSC_VK_REDUCE, constants);
    return msc_vk_pipeline(&k->pipeline, b->vk, MSC_VK_REDUCE, constants);
}

static enum msc_status
vk_reduce_create(void **out, struct msc_vk_backend *b, const struct msc_plan *plan,
                 const struct msc_step *step,
                 enum msc_status (*initialise)(struct kernel *, struct msc_vk_backend *,
                                               const struct msc_plan *, const struct msc_step *)) {
    const struct msc_step_joint *j = &step->joints[0];
    if (j->operands[0].kind != MSC_OPERAND_INPUT) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader for a constant operand",
                        j->joint->name);
    }
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->input = j->operands[0].index;
    enum msc_status status = initialise(k, b, plan, step);
    if (status != MSC_OK) {
        vk_reduce_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status vk_reduce_prepare(void **out, struct msc_vk_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    return vk_reduce_create(out, b, plan, step, vk_reduce_init);
}

static enum msc_status vk_reduce_run(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_call calls[], int n) {
    const struct kernel *k = kernel;
    uint32_t push[4] = {(uint32_t)k->n, 0, k->numbers[0], k->numbers[1]};
    MSC_VK_CHECK_PUSH(MSC_VK_REDUCE, push);
    uint64_t turns = turns_of(k->numbers[0]);
    uint32_t groups = msc_vk_spread(b->vk, k->n, turns, &push[1]);
    struct msc_vk_simple simple = {k->pipeline, k->input, k->dims, push, sizeof(push), groups, 0};
    simple.turns = (double)k->n * (double)turns;
    return msc_vk_simple_run(&simple, b, calls, n);
}

const struct msc_vk_family msc_vk_reduce = {.name = "reduction",
                                            .prepare = vk_reduce_prepare,
                                            .release = vk_reduce_release,
                                            .run = vk_reduce_run};

// ---- Softmax ----------------------------------------------------------------------------------

// Rows per invocation: one, or more if the device does not allow so many workgroups.
static uint32_t rows_per_lane(const struct msc_vk *vk, uint64_t n) {
    uint64_t most = (uint64_t)vk->tuning.lanes * vk->properties.limits.maxComputeWorkGroupCount[0];
    return n > most ? (uint32_t)((n + most - 1) / most) : 1;
}

// True if an invocation may run three loops over the n numbers of each of its rows.
static bool can_take_rows(const struct msc_vk *vk, uint64_t n_rows, uint64_t n) {
    return msc_vk_can_turn(vk, (3 * (n + 1) + 1) * rows_per_lane(vk, n_rows));
}

static enum msc_status softmax_init(struct kernel *k, struct msc_vk_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_joint *joint = step->joints[0].joint;
    struct msc_view x = msc_plan_view(plan, step->inputs[k->input], NULL);
    int axis = msc_lowering_axis(joint, "axis", x.n_dims);
    int64_t dims[MSC_MAX_DIMS], outer = 1, inner = 1;
    int axes[MSC_MAX_DIMS];
    bool is_behind = false;
    if (x.dtype != MSC_DTYPE_F32 || axis < 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", joint->name);
    }
    msc_view_physical(&x, dims, axes);
    for (int i = 0; i < x.n_dims; i++) {
        if (axes[i] == axis) {
            is_behind = true;
        } else {
            *(is_behind ? &inner : &outer) *= dims[i];
        }
    }
    k->n = (uint64_t)(outer * inner);
    if (!can_take_rows(b->vk, k->n, (uint64_t)x.dims[axis])) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: rows too long for the loops of a shader",
                        joint->name);
    }
    k->numbers[0] = (uint32_t)x.dims[axis];
    k->numbers[1] = (uint32_t)inner;
    uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly,
                            joint->op == MSC_OP_LOG_SOFTMAX};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_SOFTMAX, constants);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_SOFTMAX_BY_GROUP, constants);
    k->is_by_group = inner == 1 && k->numbers[0] >= 64 && !b->vk->tuning.is_family_u &&
                     outer <= b->vk->properties.limits.maxComputeWorkGroupCount[0];
    return msc_vk_pipeline(&k->pipeline, b->vk,
                           k->is_by_group ? MSC_VK_SOFTMAX_BY_GROUP : MSC_VK_SOFTMAX, constants);
}

static enum msc_status softmax_prepare(void **out, struct msc_vk_backend *b,
                                       const struct msc_plan *plan, const struct msc_step *step) {
    return vk_reduce_create(out, b, plan, step, softmax_init);
}

// Runs a kernel over rows: each invocation computes some rows, or each workgroup computes one.
static enum msc_status run_rows(void *kernel, struct msc_vk_backend *b,
                                const struct msc_call calls[], int n) {
    const struct kernel *k = kernel;
    uint32_t per_lane = rows_per_lane(b->vk, k->n);
    uint32_t push[4] = {(uint32_t)k->n, k->numbers[0], k->numbers[1], per_lane};
    MSC_VK_CHECK_PUSH(MSC_VK_SOFTMAX, push);
    MSC_VK_CHECK_PUSH(MSC_VK_LAYER_NORM, push);
    uint32_t groups = msc_vk_groups(k->n, k->is_by_group ? 1 : b->vk->tuning.lanes * per_lane);
    struct msc_vk_simple simple = {k->pipeline, k->input, k->dims, push, sizeof(push), groups, 0};
    simple.turns = 3.0 * (double)k->n * k->numbers[0];
    return msc_vk_simple_run(&simple, b, calls, n);
}

const struct msc_vk_family msc_vk_softmax = {
    .name = "softmax", .prepare = softmax_prepare, .release = vk_reduce_release, .run = run_rows};

// ---- Layer normalisation ----------------------------------------------------------------------

static enum msc_status layer_norm_init(struct kernel *k, struct msc_vk_backend *b,
                                       const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[k->input]];
    const struct msc_array *gamma = msc_lowering_constant(plan->graph, joint, 1);
    const struct msc_array *beta = msc_lowering_constant(plan->graph, joint, 2);
    float epsilon = 0.0f;
    size_t n = (size_t)msc_array_n_elements(gamma);
    msc_joint_attr_float(joint, "epsilon", &epsilon);
    k->n = (uint64_t)msc_dims_product(x->n_dims, x->dims) / n;
    if (!can_take_rows(b->vk, k->n, n)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", joint->name);
    }
    k->numbers[0] = (uint32_t)n;
    memcpy(&k->numbers[1], &epsilon, sizeof(epsilon));
    float *scale = msc_alloc_zero(2 * n, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(scale));
    memcpy(scale, msc_array_data(gamma), n * sizeof(float));
    if (beta) {
        memcpy(scale + n, msc_array_data(beta), n * sizeof(float));
    }
    enum msc_status status = msc_vk_upload_new(b->vk, &k->dims, scale, 2 * n * sizeof(float));
    msc_free(scale);
    MSC_TRY(status);
    uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_LAYER_NORM, constants);
    return msc_vk_pipeline(&k->pipeline, b->vk, MSC_VK_LAYER_NORM, constants);
}

static enum msc_status layer_norm_prepare(void **out, struct msc_vk_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    return vk_reduce_create(out, b, plan, step, layer_norm_init);
}

const struct msc_vk_family msc_vk_layer_norm = {.name = "layer_norm",
                                                .prepare = layer_norm_prepare,
                                                .release = vk_reduce_release,
                                                .run = run_rows};
