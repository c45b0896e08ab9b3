// Concatenation and splitting along one axis, in either layout.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/lowering/movement.h"

// One part of the joined tensor: copied to or from where it begins there.
struct part {
    struct msc_movement move;
    const void *constant; // a part that is known beforehand, in plain layout
    int32_t index;        // of the step's inputs or outputs
    int64_t offset;       // elements, in the joined tensor
};

struct kernel {
    int32_t n_parts;
    struct part parts[];
};

static void release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status create(struct kernel **out, int32_t n_parts) {
    *out = msc_alloc_zero(1, sizeof(**out) + (size_t)n_parts * sizeof((*out)->parts[0]));
    if (!*out) {
        return MSC_FAIL(MSC_E_NOMEM, "cpu: out of memory");
    }
    (*out)->n_parts = n_parts;
    return MSC_OK;
}

// ---- Concat -----------------------------------------------------------------------------------

static bool concat_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *y = msc_lowering_output(g, joint);
    for (int i = 0; i < joint->n_operands; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, joint, i);
        if (!t || t->dtype != y->dtype || t->n_dims != y->n_dims) {
            return false;
        }
    }
    return joint->n_operands > 0 && joint->n_operands <= MSC_STEP_MAX_INPUTS &&
           msc_lowering_axis(joint, "axis", y->n_dims) >= 0;
}

static void concat_layouts(const struct msc_graph *g, const struct msc_step *step,
                           const enum msc_layout coming[], struct msc_step_layouts *out) {
    const struct msc_step_joint *j = &step->joints[0];
    enum msc_layout layout = MSC_LAYOUT_NCHW;
    for (int32_t i = 0; i < j->n_operands; i++) {
        const struct msc_tensor *t = msc_lowering_operand(g, j->joint, i);
        if (j->operands[i].kind == MSC_OPERAND_INPUT &&
            coming[j->operands[i].index] == MSC_LAYOUT_NHWC &&
            !msc_lowering_layouts_coincide(t->n_dims, t->dims)) {
            layout = MSC_LAYOUT_NHWC;
        }
    }
    msc_lowering_follow_layout(g, step, 0, layout, coming, out);
    out->outputs = layout;
}

static enum msc_status concat_prepare(void **out, struct msc_cpu_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    int axis = msc_lowering_axis(j->joint, "axis", y->n_dims);
    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS], at = 0;
    struct kernel *k = NULL;
    MSC_TRY(create(&k, j->n_operands));
    msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
    for (int32_t i = 0; i < j->n_operands; i++) {
        struct part *p = &k->parts[i];
        const struct msc_operand *o = &j->operands[i];
        const int64_t *dims;
        enum msc_layout layout = MSC_LAYOUT_NCHW;
        if (o->kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *t = msc_graph_tensor(plan->graph, o->index);
            p->constant = msc_array_data(t->data);
            dims = t->dims;
        } else {
            const struct msc_value *v = &plan->values[step->inputs[o->index]];
            p->index = o->index;
            dims = v->dims;
            layout = v->layout;
        }
        p->offset = at * to[axis];
        msc_lowering_strides(from, y->n_dims, dims, layout);
        msc_movement_set(&p->move, msc_dtype_bytes(y->dtype), y->n_dims, dims, y->layout, from, to);
        at += dims[axis];
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status concat_run(void *kernel, struct msc_cpu_backend *b,
                                  const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    size_t bytes = msc_dtype_bytes(call->outputs[0].dtype);
    for (int32_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        struct msc_movement move = p->move;
        move.bytes = bytes;
        msc_movement_run(&move, (char *)call->outputs[0].data + (size_t)p->offset * bytes,
                         p->constant ? p->constant : call->inputs[p->index].data);
    }
    return MSC_OK;
}

static bool concat_moves(const void *kernel) {
    const struct kernel *k = kernel;
    for (int32_t i = 0; i < k->n_parts; i++) {
        if (k->parts[i].constant) {
            return false;
        }
    }
    return true;
}

const struct msc_cpu_family msc_cpu_concat = {
    .name = "concat",
    .accepts = concat_accepts,
    .layouts = concat_layouts,
    .prepare = concat_prepare,
    .release = release,
    .run = concat_run,
    .moves = concat_moves,
    .copies = true,
};

// ---- Split ------------------------------------------------------------------------------------

static bool split_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct msc_tensor *x = msc_lowering_operand(g, joint, 0);
    return msc_lowering_is_computed(g, joint, 0) &&
           msc_lowering_axis(joint, "axis", x->n_dims) >= 0;
}

static enum msc_status split_prepare(void **out, struct msc_cpu_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    int axis = msc_lowering_axis(step->joints[0].joint, "axis", x->n_dims);
    int64_t to[MSC_MAX_DIMS], from[MSC_MAX_DIMS], at = 0;
    struct kernel *k = NULL;
    MSC_TRY(create(&k, step->n_outputs));
    msc_lowering_strides(from, x->n_dims, x->dims, x->layout);
    for (int32_t i = 0; i < step->n_outputs; i++) {
        const struct msc_value *y = &plan->values[step->outputs[i]];
        k->parts[i].index = i;
        k->parts[i].offset = at * from[axis];
        msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
        msc_movement_set(&k->parts[i].move, msc_dtype_bytes(y->dtype), y->n_dims, y->dims,
                         y->layout, from, to);
        at += y->dims[axis];
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status split_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    for (int32_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        msc_movement_run(&p->move, call->outputs[p->index].data,
                         (const char *)call->inputs[0].data + (size_t)p->offset * p->move.bytes);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_split = {
    .name = "split",
    .accepts = split_accepts,
    .layouts = msc_lowering_keep_layout,
    .prepare = split_prepare,
    .release = release,
    .run = split_run,
};
