// Hashes steps. The hash covers everything in a step that affects the bits of its outputs.
#include "kernels/engine/planner_internal.h"

static struct msc_hash hash_value(struct msc_hash h, const struct msc_value *v) {
    h = msc_hash_add_u64(h,
                         (uint64_t)v->dtype << 16 | (uint64_t)v->layout << 8 | (uint64_t)v->n_dims);
    return msc_hash_add_bytes(h, v->dims, sizeof(v->dims[0]) * (size_t)v->n_dims);
}

static struct msc_hash hash_joint(const struct msc_plan *plan, struct msc_hash h,
                                  const struct msc_step_joint *j) {
    h = msc_hash_add_text(h, msc_op_info(j->joint->op)->name);
    for (int32_t i = 0; i < j->joint->n_attrs; i++) {
        h = msc_hash_add_text(h, j->joint->attrs[i].key);
        h = msc_hash_add_text(h, j->joint->attrs[i].value);
    }
    for (int32_t i = 0; i < j->joint->n_graphs; i++) {
        h = msc_hash_combine(h, msc_graph_hash(j->joint->graphs[i]));
        h = msc_hash_combine(h, msc_graph_weights_hash(j->joint->graphs[i]));
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        h = msc_hash_add_u64(h, (uint64_t)j->operands[i].kind);
        if (j->operands[i].kind == MSC_OPERAND_WEIGHT) {
            const struct msc_tensor *w = msc_graph_tensor(plan->graph, j->operands[i].index);
            h = msc_hash_add_text(h, w->layout);
            h = msc_hash_combine(h, msc_array_hash(w->data));
        } else {
            h = msc_hash_add_u64(h, (uint64_t)(uint32_t)j->operands[i].index);
        }
    }
    return h;
}

void msc_planner__hash_steps(struct msc_plan *plan) {
    for (int32_t i = 0; i < plan->n_steps; i++) {
        struct msc_step *s = &plan->steps[i];
        struct msc_hash h = msc_hash_bytes(&s->kind, sizeof(s->kind));
        for (int32_t k = 0; k < s->n_inputs; k++) {
            h = hash_value(h, &plan->values[s->inputs[k]]);
        }
        for (int32_t k = 0; k < s->n_outputs; k++) {
            h = hash_value(h, &plan->values[s->outputs[k]]);
        }
        for (int32_t k = 0; k < s->n_joints; k++) {
            h = hash_joint(plan, h, &s->joints[k]);
        }
        s->hash = h;
    }
}
