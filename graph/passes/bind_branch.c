// Replaces joints by the joints of their bodies. An If whose branch is known is replaced by the
// joints of the branch, named as parts of the If ("if_1/then/conv"). A fused joint is replaced by
// its joints, which keep their names.
#include "graph/passes/bind_internal.h"

#include "graph/operators_internal.h"
#include "graph/passes/bind.h"
#include "graph/passes/constant_internal.h"

#include <assert.h>
#include <string.h>

// The value of an If's condition if it is known, else NULL.
static const struct msc_array *find_condition(const struct msc_bind *b, const struct msc_joint *j) {
    int32_t tensor = j->operands[0];
    bool is_known = b->known != NULL && b->known[tensor] != NULL;
    return (is_known ? b->known[tensor] : b->values[tensor])->constant;
}

bool msc_bind__is_decided(const struct msc_bind *b, const struct msc_joint *j) {
    if (!b->takes_branches || j->op != MSC_OP_IF) {
        return false;
    }
    const struct msc_array *condition = find_condition(b, j);
    return condition != NULL && msc_array_n_elements(condition) == 1;
}

// True if a tensor of the enclosing graph already has this value, for example an earlier output.
static bool is_known(const struct msc_bind *b, const struct msc_value *value) {
    for (int32_t i = 0; i < b->from->n_tensors; i++) {
        if (b->values[i] == value) {
            return true;
        }
    }
    return false;
}

// Gives an output of the graph its alias. If the value already has another name in the enclosing
// graph, an identity joint is added, whose output gets the alias. Outputs of bodies get no alias,
// because only the enclosing If reads them.
static enum msc_status name_output(struct msc_value **out, struct msc_bind *b,
                                   const struct msc_joint *j, int32_t output) {
    const struct msc_tensor *t = &b->from->tensors[j->outputs[output]]->tensor;
    if (b->prefix != NULL || !msc_graph_is_output(b->from, j->outputs[output])) {
        return MSC_OK;
    }
    if (!is_known(b, *out) && (*out)->tensor != MSC_NO_ID) {
        (*out)->alias = t->alias;
        return msc_graph_set_alias(b->builder->graph, (*out)->tensor, t->alias);
    }
    struct msc_value *from = *out;
    const struct msc_builder_joint joint = {.op = MSC_OP_IDENTITY,
                                            .name = j->name,
                                            .scope = j->scope,
                                            .n_operands = 1,
                                            .operands = &from,
                                            .n_outputs = 1,
                                            .aliases = &t->alias,
                                            .stays = true};
    return msc_builder_add(out, b->builder, &joint);
}

// Copies the joints of a body. The body's inputs are replaced by the joint's operands from `first`
// on.
static enum msc_status copy_body(struct msc_bind *inner, struct msc_bind *b,
                                 const struct msc_joint *j, int32_t first) {
    const struct msc_graph *body = inner->from;
    if (body->n_inputs > j->n_operands - first || body->n_outputs < j->n_outputs) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "joint '%s' has %d operands and %d outputs for its body, expected %d and %d", j->name,
            (int)(j->n_operands - first), (int)j->n_outputs, (int)body->n_inputs,
            (int)body->n_outputs);
    }
    for (int32_t i = 0; i < body->n_inputs; i++) {
        inner->values[body->inputs[i]] = b->values[j->operands[i + first]];
        if (b->known != NULL) {
            inner->known[body->inputs[i]] = b->known[j->operands[i + first]];
        }
    }
    for (int32_t i = 0; i < body->n_joints; i++) {
        if (body->joints[i]->joint.op != MSC_OP_INPUT) {
            MSC_TRY(msc_bind__copy_joint(inner, &body->joints[i]->joint));
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        struct msc_value *value = inner->values[body->outputs[i]];
        MSC_TRY(name_output(&value, b, j, i));
        b->values[j->outputs[i]] = value;
    }
    return MSC_OK;
}

static enum msc_status put_body(struct msc_bind *b, const struct msc_joint *j, int32_t which,
                                int32_t first, const char *prefix) {
    struct msc_bind inner = {.from = j->graphs[which],
                             .builder = b->builder,
                             .takes_branches = b->takes_branches,
                             .keeps_symbols = b->keeps_symbols,
                             .n_taken = b->n_taken,
                             .prefix = prefix};
    inner.values = msc_arena_array(&b->builder->arena, (size_t)inner.from->n_tensors + 1,
                                   sizeof(inner.values[0]));
    MSC_TRY(MSC_ALLOCATED(inner.values));
    if (b->known != NULL) {
        MSC_TRY(msc_bind__mark(&inner));
    }
    return copy_body(&inner, b, j, first);
}

enum msc_status msc_bind__take_branch(struct msc_bind *b, const struct msc_joint *j) {
    int32_t which = msc_array_get_i64(find_condition(b, j), 0) != 0 ? 0 : 1;
    const char *prefix = msc_graph_body_prefix(
        &b->builder->arena, b->prefix == NULL ? "" : b->prefix, j->op, j->name, which);
    MSC_TRY(MSC_ALLOCATED(prefix));
    (*b->n_taken)++;
    return put_body(b, j, which, 1, prefix);
}

bool msc_bind__holds_joints(const struct msc_bind *b, const struct msc_joint *j) {
    bool is_marked = j->op == MSC_OP_EXTERNAL && !b->keeps_symbols &&
                     msc_operators__find_joint(b->from->operators, j) == NULL;
    return (j->op == MSC_OP_ATTENTION || is_marked) && j->n_graphs == 1;
}

enum msc_status msc_bind__split(struct msc_bind *b, const struct msc_joint *j) {
    return put_body(b, j, 0, 0, b->prefix);
}

// ---- Bodies that remain -----------------------------------------------------------------------

// Reads the shape of a value in the new graph; false if a length is unknown.
static bool get_shape(struct msc_input_shape *out, const struct msc_bind *b,
                      const struct msc_value *v) {
    if (v->constant != NULL) {
        out->n_dims = msc_array_n_dims(v->constant);
        memcpy(out->dims, msc_array_dims(v->constant), (size_t)out->n_dims * sizeof(out->dims[0]));
        return true;
    }
    int32_t tensor = v->tensor != MSC_NO_ID ? v->tensor : v->weight;
    const struct msc_tensor *t = &b->builder->graph->tensors[tensor]->tensor;
    out->n_dims = t->n_dims;
    memcpy(out->dims, t->dims, (size_t)t->n_dims * sizeof(out->dims[0]));
    return msc_tensor_n_elements(t) >= 0;
}

// Binds both bodies of an If to the shapes of their inputs. Binds neither if a shape is unknown or
// does not fit.
static enum msc_status bind_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                   const struct msc_joint *j) {
    int32_t n = j->n_operands - 1;
    struct msc_input_shape *shapes =
        msc_arena_array(&b->builder->arena, (size_t)n + 1, sizeof(shapes[0]));
    MSC_TRY(MSC_ALLOCATED(shapes));
    for (int32_t i = 0; i < n; i++) {
        if (j->operands[i + 1] == MSC_NO_ID ||
            !get_shape(&shapes[i], b, b->values[j->operands[i + 1]])) {
            return MSC_OK;
        }
    }
    enum msc_status status = MSC_OK;
    for (int i = 0; status == MSC_OK && i < 2; i++) {
        status = msc_graph_bind_shapes(&bodies[i], j->graphs[i], shapes, (size_t)n);
    }
    if (status == MSC_OK) {
        return MSC_OK;
    }
    msc_graph_destroy(bodies[0]);
    bodies[0] = bodies[1] = NULL;
    // no error: a branch that is never taken may not fit
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

enum msc_status msc_bind__copy_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                      const struct msc_joint *j) {
    bodies[0] = bodies[1] = NULL;
    assert(j->n_graphs <= 2);
    if (j->op == MSC_OP_IF && !b->keeps_symbols) {
        MSC_TRY(bind_bodies(bodies, b, j));
    }
    for (int32_t i = 0; i < j->n_graphs && bodies[i] == NULL; i++) {
        MSC_TRY(msc_graph_split(&bodies[i], j->graphs[i]));
    }
    return MSC_OK;
}
