// One joint as a graph of its own, with given operands: what inference says of it when everything
// it reads is there.
#include "graph/builder_internal.h"

#include <string.h>

struct isolate {
    const struct msc_graph *from;
    struct msc_builder builder;
};

// A parameter or shaping operand is a constant; others are inputs of the graph.
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
    if (name == NULL) {
        return msc_graph__no_memory(s->from);
    }
    int32_t tensor;
    MSC_TRY(msc_graph_add_input(&tensor, b->graph, name, "", msc_array_dtype(array), t->layout,
                                msc_array_n_dims(array), msc_array_dims(array)));
    return msc_builder_activation(out, b, "", tensor);
}

static enum msc_status build(struct isolate *s, const struct msc_joint *j,
                             const struct msc_array *const arrays[]) {
    struct msc_arena *arena = &s->builder.arena;
    size_t n_outputs = (size_t)j->n_outputs;
    struct msc_value **operands = msc_arena_array(arena, (size_t)j->n_operands, sizeof(*operands));
    struct msc_value **outputs = msc_arena_array(arena, n_outputs, sizeof(*outputs));
    const char **aliases = msc_arena_array(arena, n_outputs, sizeof(*aliases));
    int32_t *ids = msc_arena_array(arena, n_outputs, sizeof(*ids));
    if (operands == NULL || outputs == NULL || aliases == NULL || ids == NULL) {
        return msc_graph__no_memory(s->from);
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            MSC_TRY(make_operand(&operands[i], s, j, i, arrays[i]));
        }
    }
    for (size_t i = 0; i < n_outputs; i++) {
        aliases[i] = "";
    }
    struct msc_builder_joint joint = {
        .op = j->op,
        .name = j->name,
        .scope = j->scope,
        .n_operands = j->n_operands,
        .operands = operands,
        .n_attrs = j->n_attrs,
        .attrs = j->attrs,
        .n_outputs = j->n_outputs,
        .aliases = aliases,
        .n_graphs = j->n_graphs,
        .graphs = j->graphs,
        .stays = true,
    };
    MSC_TRY(msc_builder_add(outputs, &s->builder, &joint));
    for (size_t i = 0; i < n_outputs; i++) {
        ids[i] = outputs[i]->tensor;
    }
    MSC_TRY(msc_graph__set_outputs(s->builder.graph, j->n_outputs, ids));
    return msc_graph_finalize(s->builder.graph);
}

enum msc_status msc_graph_isolate(struct msc_graph **out, const struct msc_graph *g, int32_t joint,
                                  const struct msc_array *const arrays[]) {
    struct isolate s = {.from = g};
    const struct msc_joint *j = &g->joints[joint]->joint;
    enum msc_status status = msc_graph_create(&s.builder.graph, j->name);
    if (status == MSC_OK) {
        status = build(&s, j, arrays);
    }
    if (status == MSC_OK) {
        *out = s.builder.graph;
    } else {
        msc_graph_destroy(s.builder.graph);
    }
    msc_builder_finish(&s.builder);
    return status;
}
