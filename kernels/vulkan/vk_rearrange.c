// Joints that only move elements: transposes and changes of layout, depth to space and back,
// concatenations, splits, slices, padding. A joint is one strided copy (movement); a concatenation
// or split has one movement per part.
#include "base/alloc.h"
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_movement.h"

#include <string.h>

struct part {
    struct msc_vk_movement move;
    struct msc_vk_block *constant; // an input that is constant
    int32_t input, output;         // indices of the step's input and output
};

struct kernel {
    int32_t n_parts;
    struct part parts[];
};

static void vk_rearrange_release(void *memory, struct msc_vk_backend *b) {
    struct kernel *k = memory;
    if (k) {
        for (int32_t i = 0; i < k->n_parts; i++) {
            msc_vk_movement_finish(&k->parts[i].move, b);
            msc_vk_free(b->vk, k->parts[i].constant);
        }
        msc_free(k);
    }
}

static enum msc_status vk_rearrange_create(struct kernel **out, int32_t n_parts) {
    *out = msc_alloc_zero(1, sizeof(**out) + (size_t)n_parts * sizeof((*out)->parts[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    (*out)->n_parts = n_parts;
    return MSC_OK;
}

// Returns the kernel in *out; if `status` is a failure, releases the kernel instead.
static enum msc_status vk_rearrange_settle(void **out, struct msc_vk_backend *b, struct kernel *k,
                                           enum msc_status status) {
    if (status != MSC_OK) {
        vk_rearrange_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status vk_rearrange_run(void *kernel, struct msc_vk_backend *b,
                                        const struct msc_call calls[], int n) {
    const struct kernel *k = kernel;
    const struct msc_vk_block *in[MSC_VK_MAX_CALLS], *out[MSC_VK_MAX_CALLS];
    for (int32_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        for (int c = 0; c < n; c++) {
            in[c] = p->constant ? p->constant : msc_vk_block_of(&calls[c].inputs[p->input]);
            out[c] = msc_vk_block_of(&calls[c].outputs[p->output]);
        }
        MSC_TRY(msc_vk_movement_run(&p->move, b, out, in, n));
    }
    return MSC_OK;
}

static const struct msc_value *input_value(const struct msc_plan *plan,
                                           const struct msc_step *step) {
    return &plan->values[step->inputs[step->n_joints > 0 ? step->joints[0].operands[0].index : 0]];
}

// ---- Permuting --------------------------------------------------------------------------------

static enum msc_status permute_prepare(void **out, struct msc_vk_backend *b,
                                       const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_value *x = input_value(plan, step);
    const struct msc_value *y = &plan->values[step->outputs[0]];
    const struct msc_joint *joint = step->n_joints > 0 ? step->joints[0].joint : NULL;
    struct msc_movement m;
    struct kernel *k;
    msc_movement_set_permute(&m, joint, x, y);
    MSC_TRY(vk_rearrange_create(&k, 1));
    return vk_rearrange_settle(out, b, k,
                               msc_vk_movement_init_from(&k->parts[0].move, b, &m, 0, 0));
}

const struct msc_vk_family msc_vk_permute = {.name = "permute",
                                             .prepare = permute_prepare,
                                             .release = vk_rearrange_release,
                                             .run = vk_rearrange_run};

static enum msc_status depth_space_prepare(void **out, struct msc_vk_backend *b,
                                           const struct msc_plan *plan,
                                           const struct msc_step *step) {
    const struct msc_joint *joint = step->joints[0].joint;
    struct kernel *k;
    struct msc_movement m;
    if (!msc_movement_set_depth_space(&m, joint, input_value(plan, step),
                                      &plan->values[step->outputs[0]])) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: blocksize is missing or not positive",
                        joint->name);
    }
    MSC_TRY(vk_rearrange_create(&k, 1));
    return vk_rearrange_settle(out, b, k,
                               msc_vk_movement_init_from(&k->parts[0].move, b, &m, 0, 0));
}

const struct msc_vk_family msc_vk_depth_space = {.name = "depth to space",
                                                 .prepare = depth_space_prepare,
                                                 .release = vk_rearrange_release,
                                                 .run = vk_rearrange_run};

// ---- Joining and splitting --------------------------------------------------------------------

// Makes the movement of one part of a joined tensor. The part begins at index `at` of `axis`.
// `is_to`: the part is copied into the joined tensor, otherwise out of it.
static enum msc_status init_part(struct part *p, struct msc_vk_backend *b,
                                 const struct msc_value *whole, const struct msc_value *part,
                                 int axis, int64_t at, bool is_to) {
    struct msc_movement m;
    int64_t base = msc_movement_set_part(&m, whole, part, axis, at, is_to);
    return msc_vk_movement_init_from(&p->move, b, &m, is_to ? 0 : base, is_to ? base : 0);
}

static enum msc_status vk_rearrange_join(struct kernel *k, struct msc_vk_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    int axis = msc_lowering_axis(j->joint, "axis", y->n_dims);
    int64_t at = 0;
    for (int32_t i = 0; i < j->n_operands; i++) {
        struct msc_value part = {.layout = MSC_LAYOUT_NCHW};
        if (j->operands[i].kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *t = msc_graph_tensor(plan->graph, j->operands[i].index);
            part.n_dims = t->n_dims;
            memcpy(part.dims, t->dims, sizeof(part.dims));
            MSC_TRY(msc_vk_upload_new(b->vk, &k->parts[i].constant, msc_array_data(t->data),
                                      msc_array_n_bytes(t->data)));
        } else {
            k->parts[i].input = j->operands[i].index;
            part = plan->values[step->inputs[j->operands[i].index]];
        }
        MSC_TRY(init_part(&k->parts[i], b, y, &part, axis, at, true));
        at += part.dims[axis];
    }
    return MSC_OK;
}

static enum msc_status concat_prepare(void **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    struct kernel *k;
    const struct msc_step_joint *j = &step->joints[0];
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i].kind != MSC_OPERAND_WEIGHT && j->operands[i].kind != MSC_OPERAND_INPUT) {
            return MSC_FAIL(MSC_E_UNSUPPORTED, "vulkan: no shader for a join with an absent part");
        }
    }
    MSC_TRY(vk_rearrange_create(&k, j->n_operands));
    return vk_rearrange_settle(out, b, k, vk_rearrange_join(k, b, plan, step));
}

const struct msc_vk_family msc_vk_concat = {.name = "concat",
                                            .prepare = concat_prepare,
                                            .release = vk_rearrange_release,
                                            .run = vk_rearrange_run};

static enum msc_status vk_rearrange_split(struct kernel *k, struct msc_vk_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    const struct msc_value *x = input_value(plan, step);
    int axis = msc_lowering_axis(step->joints[0].joint, "axis", x->n_dims);
    int64_t at = 0;
    for (int32_t i = 0; i < step->n_outputs; i++) {
        const struct msc_value *y = &plan->values[step->outputs[i]];
        k->parts[i].output = i;
        MSC_TRY(init_part(&k->parts[i], b, x, y, axis, at, false));
        at += y->dims[axis];
    }
    return MSC_OK;
}

static enum msc_status split_prepare(void **out, struct msc_vk_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step) {
    struct kernel *k;
    MSC_TRY(vk_rearrange_create(&k, step->n_outputs));
    return vk_rearrange_settle(out, b, k, vk_rearrange_split(k, b, plan, step));
}

const struct msc_vk_family msc_vk_split = {.name = "split",
                                           .prepare = split_prepare,
                                           .release = vk_rearrange_release,
                                           .run = vk_rearrange_run};

// ---- Slicing ----------------------------------------------------------------------------------

static enum msc_status vk_rearrange_slice(struct kernel *k, struct msc_vk_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    struct msc_movement m;
    int64_t first = msc_movement_set_slice(&m, step->joints[0].joint, input_value(plan, step),
                                           &plan->values[step->outputs[0]]);
    return msc_vk_movement_init_from(&k->parts[0].move, b, &m, first, 0);
}

static enum msc_status slice_prepare(void **out, struct msc_vk_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step) {
    struct kernel *k;
    if (step->n_inputs != 1) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "vulkan: no shader for a slice with computed parameters");
    }
    MSC_TRY(vk_rearrange_create(&k, 1));
    return vk_rearrange_settle(out, b, k, vk_rearrange_slice(k, b, plan, step));
}

const struct msc_vk_family msc_vk_slice = {.name = "slice",
                                           .prepare = slice_prepare,
                                           .release = vk_rearrange_release,
                                           .run = vk_rearrange_run};

// ---- Padding ----------------------------------------------------------------------------------

static enum msc_status vk_rearrange_pad(struct kernel *k, struct msc_vk_backend *b,
                                        const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = input_value(plan, step);
    struct msc_view y = msc_plan_view(plan, step->outputs[0], NULL);
    int64_t widths[2 * MSC_MAX_DIMS], in[MSC_MAX_DIMS], dims[MSC_MAX_DIMS], to = 1;
    int axes[MSC_MAX_DIMS];
    float value;
    struct msc_vk_movement_dim moved[MSC_MAX_DIMS];
    if (x->n_dims < 1 || !msc_movement_read_pad(widths, &value, joint, x->n_dims)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader for this kind of padding",
                        joint->name);
    }
    msc_lowering_strides(in, x->n_dims, x->dims, x->layout);
    msc_view_physical(&y, dims, axes);
    for (int d = y.n_dims - 1; d >= 0; d--) {
        moved[d] = (struct msc_vk_movement_dim){.length = (int32_t)dims[d],
                                                .in = (int32_t)in[axes[d]],
                                                .out = (int32_t)to,
                                                .shift = (int32_t)-widths[axes[d]],
                                                .in_length = (int32_t)x->dims[axes[d]]};
        to *= dims[d];
    }
    MSC_TRY(msc_vk_movement_init(&k->parts[0].move, b, moved, y.n_dims));
    k->parts[0].move.fill = value;
    return MSC_OK;
}

static enum msc_status pad_prepare(void **out, struct msc_vk_backend *b,
                                   const struct msc_plan *plan, const struct msc_step *step) {
    struct kernel *k;
    if (step->n_inputs != 1) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "vulkan: no shader for padding with computed widths");
    }
    MSC_TRY(vk_rearrange_create(&k, 1));
    return vk_rearrange_settle(out, b, k, vk_rearrange_pad(k, b, plan, step));
}

const struct msc_vk_family msc_vk_pad = {.name = "pad",
                                         .prepare = pad_prepare,
                                         .release = vk_rearrange_release,
                                         .run = vk_rearrange_run};
