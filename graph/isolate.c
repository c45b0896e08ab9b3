// Makes a graph that contains only one joint, whose operands are given arrays. The shapes of the
// joint's outputs can then be read from the graph.
#include "graph/builder_internal.h"

struct isolate {
    const struct msc_graph *from;
    struct msc_builder builder;
};

// Weights, parameters and operands that determine the shape become constants. Other operands become
// inputs of the graph.
static enum msc_status make_operand(struct msc_value **out, struct isolate *s,
                                    const struct msc_joint *j, int32_t i,
                                    const struct msc_array *array) {
    struct msc_builder *b = &s->builder;
    const struct msc_tensor *t = &s->from->tensors[j->operands[i]]->tensor;
    struct msc_op_role role;
    bool is_known = msc_op_role(j->op, i, &role) && (role.is_attribute || role.is_shaping);
    if (t->producer == MSC_NO_ID || is_known) {
        MSC_TRY(msc_builder_constant(out, b, t->name, array));
        (*out)->layout = t->producer == MSC_NO_ID ? t->layout : "";
        return MSC_OK;
    }
    const char *name = msc_arena_printf(&b->arena, "%s/%d", j->name, (int)i);
    MSC_TRY(MSC_ALLOCATED(name));
    int32_t tensor;
    MSC_TRY(msc_graph_add_input(&tensor, b->graph, name, "", msc_array_dtype(array), t->layout,
                                msc_array_n_dims(array), msc_array_dims(array)));
    return msc_builder_activation(out, b, "", tensor);
}

static enum msc_status isolate_build(struct isolate *s, const struct msc_joint *j,
                                     const struct msc_array *const arrays[]) {
    struct msc_builder_copy copy;
    MSC_TRY(msc_builder_copy_joint(&copy, &s->builder, j));
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(make_operand(&copy.operands[i], s, j, i, arrays[i]));
        }
    }
    MSC_TRY(msc_builder_add(copy.outputs, &s->builder, &copy.joint));
    int32_t *ids = msc_arena_array(&s->builder.arena, (size_t)j->n_outputs, sizeof(*ids));
    MSC_TRY(MSC_ALLOCATED(ids));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        ids[i] = copy.outputs[i]->tensor;
    }
    MSC_TRY(msc_graph__set_outputs(s->builder.graph, j->n_outputs, ids));
    return msc_graph_finalize(s->builder.graph);
}

enum msc_status msc_graph_isolate(struct msc_graph **out, const struct msc_graph *g, int32_t joint,
                                  const struct msc_array *const arrays[]) {
    struct isolate s = {.from = g};
    const struct msc_joint *j = &g->joints[joint]->joint;
    enum msc_status status = msc_graph__create_like(&s.builder.graph, j->name, g);
    if (status == MSC_OK) {
        status = isolate_build(&s, j, arrays);
    }
    if (status == MSC_OK) {
        *out = s.builder.graph;
    } else {
        msc_graph_destroy(s.builder.graph);
    }
    msc_builder_finish(&s.builder);
    return status;
}
