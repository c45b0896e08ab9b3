// Concatenation and splitting along one axis, in either layout.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/movement_run.h"

#include <string.h>

// One part of the joined tensor. It is copied into or out of the joined tensor at `offset`.
struct part {
    struct msc_movement move;
    const void *constant; // a constant part, in NCHW
    int32_t index;        // index of a step input or output
    int64_t offset;       // elements from the start of the joined tensor
};

struct kernel {
    int32_t n_parts;
    struct part parts[];
};

static void cpu_join_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_join_create(struct kernel **out, int32_t n_parts) {
    *out = msc_alloc_zero(1, sizeof(**out) + (size_t)n_parts * sizeof((*out)->parts[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    (*out)->n_parts = n_parts;
    return MSC_OK;
}

// ---- Concat -----------------------------------------------------------------------------------

static enum msc_status cpu_concat_prepare(void **out, struct msc_cpu_backend *b,
                                          const struct msc_plan *plan,
                                          const struct msc_step *step) {
    (void)b;
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    int axis = msc_lowering_axis(j->joint, "axis", y->n_dims);
    int64_t at = 0;
    struct kernel *k = NULL;
    MSC_TRY(cpu_join_create(&k, j->n_operands));
    for (int32_t i = 0; i < j->n_operands; i++) {
        struct part *p = &k->parts[i];
        const struct msc_operand *o = &j->operands[i];
        struct msc_value part = {.layout = MSC_LAYOUT_NCHW};
        if (o->kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *t = msc_graph_tensor(plan->graph, o->index);
            p->constant = msc_array_data(t->data);
            part.n_dims = t->n_dims;
            memcpy(part.dims, t->dims, sizeof(part.dims));
        } else {
            part = plan->values[step->inputs[o->index]];
            p->index = o->index;
        }
        p->offset = msc_movement_set_part(&p->move, y, &part, axis, at, true);
        at += part.dims[axis];
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status cpu_concat_run(void *kernel, struct msc_cpu_backend *b,
                                      const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    size_t bytes = msc_dtype_bytes(call->outputs[0].dtype);
    for (int32_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        struct msc_movement move = p->move;
        move.bytes = bytes;
        msc_cpu_movement_run(&move, (char *)call->outputs[0].data + (size_t)p->offset * bytes,
                             p->constant ? p->constant : call->inputs[p->index].data);
    }
    return MSC_OK;
}

static bool cpu_concat_is_movement(const void *kernel) {
    const struct kernel *k = kernel;
    for (int32_t i = 0; i < k->n_parts; i++) {
        if (k->parts[i].constant) {
            return false;
        }
    }
    return true;
}

const struct msc_cpu_family msc_cpu_concat = {
    .prepare = cpu_concat_prepare,
    .release = cpu_join_release,
    .run = cpu_concat_run,
    .is_movement = cpu_concat_is_movement,
    .copies = true,
};

// ---- Split ------------------------------------------------------------------------------------

static enum msc_status cpu_split_prepare(void **out, struct msc_cpu_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    int axis = msc_lowering_axis(step->joints[0].joint, "axis", x->n_dims);
    int64_t at = 0;
    struct kernel *k = NULL;
    MSC_TRY(cpu_join_create(&k, step->n_outputs));
    for (int32_t i = 0; i < step->n_outputs; i++) {
        const struct msc_value *y = &plan->values[step->outputs[i]];
        struct part *p = &k->parts[i];
        p->index = i;
        p->offset = msc_movement_set_part(&p->move, x, y, axis, at, false);
        at += y->dims[axis];
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status cpu_split_run(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    for (int32_t i = 0; i < k->n_parts; i++) {
        const struct part *p = &k->parts[i];
        msc_cpu_movement_run(&p->move, call->outputs[p->index].data,
                             (const char *)call->inputs[0].data +
                                 (size_t)p->offset * p->move.bytes);
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_split = {
    .prepare = cpu_split_prepare,
    .release = cpu_join_release,
    .run = cpu_split_run,
};
