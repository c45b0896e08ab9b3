// Copies joints while a graph is bound: adds each joint to the new graph with the new values of its
// operands, or replaces it by its constant result.
#include "graph/passes/bind_internal.h"

#include "graph/passes/constant_internal.h"

#include <string.h>

// The joint's name in the new graph; NULL if out of memory.
static const char *joint_name(const struct msc_bind *b, const struct msc_joint *j) {
    return b->prefix == NULL ? j->name
                             : msc_arena_printf(&b->builder->arena, "%s%s", b->prefix, j->name);
}

// Copies a weight. If `joint` is not NULL, it is the `constant` joint that has the weight, and the
// copy takes its name and alias.
static enum msc_status copy_weight(struct msc_value **out, struct msc_bind *b,
                                   const struct msc_tensor *weight, const struct msc_joint *joint) {
    struct msc_builder *builder = b->builder;
    const char *alias = joint == NULL ? "" : b->from->tensors[joint->outputs[0]]->tensor.alias;
    if (weight->data != NULL) {
        MSC_TRY(msc_builder_constant(out, builder, weight->name, weight->data));
    } else {
        MSC_TRY(msc_builder_activation(out, builder, weight->name, MSC_NO_ID));
        MSC_TRY(msc_graph__add_empty_weight(&(*out)->weight, builder->graph, weight));
    }
    (*out)->alias = alias;
    (*out)->layout = weight->layout;
    (*out)->joint_name = joint == NULL ? NULL : joint_name(b, joint);
    return MSC_ALLOCATED(joint == NULL || (*out)->joint_name != NULL);
}

static enum msc_status copy_constant(struct msc_bind *b, const struct msc_joint *j) {
    int32_t weight = j->operands[0];
    if (weight == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s' is a constant without elements", j->name);
    }
    if (b->values[weight] != NULL) {
        // Another `constant` joint with the same weight is already copied. Share the weight, but
        // keep this joint's name.
        struct msc_value *shared = b->values[weight];
        struct msc_value *copy = msc_arena_alloc(&b->builder->arena, sizeof(*copy));
        MSC_TRY(MSC_ALLOCATED(copy));
        *copy = *shared;
        copy->alias = b->from->tensors[j->outputs[0]]->tensor.alias;
        copy->joint_name = joint_name(b, j);
        copy->tensor = MSC_NO_ID;
        b->values[j->outputs[0]] = copy;
        return MSC_OK;
    }
    const struct msc_tensor *t = &b->from->tensors[weight]->tensor;
    MSC_TRY(copy_weight(&b->values[weight], b, t, j));
    b->values[j->outputs[0]] = b->values[weight];
    return MSC_OK;
}

// Keeps a layout that was derived from consumers, because inference from operands cannot find it.
static enum msc_status keep_layout(struct msc_graph *g, int32_t tensor, const char *layout) {
    struct msc_tensor *t = &g->tensors[tensor]->tensor;
    if (t->layout[0] == '\0' && strlen(layout) == (size_t)t->n_dims) {
        t->layout = msc_arena_strdup(&g->arena, layout);
        MSC_TRY(MSC_ALLOCATED(t->layout));
    }
    return MSC_OK;
}

// The value that a joint reads for an operand: a constant if the joint needs the operand's elements
// in advance and they are known.
static enum msc_status bind_joints_find_operand(struct msc_value **out, struct msc_bind *b,
                                                int32_t tensor, bool needs_contents) {
    if (needs_contents && b->known != NULL && b->known[tensor] != NULL) {
        *out = b->known[tensor];
        return MSC_OK;
    }
    if (b->values[tensor] == NULL) {
        MSC_TRY(copy_weight(&b->values[tensor], b, &b->from->tensors[tensor]->tensor, NULL));
    }
    *out = b->values[tensor];
    return MSC_OK;
}

// Adds a copy of a joint. The copy reads an operand as a constant if the operand's elements are
// known and determine lengths, and as data otherwise. If `is_known` is set, the copy reads every
// operand with known elements as a constant.
static enum msc_status bind_joints_add_joint(struct msc_builder_copy *copy, struct msc_bind *b,
                                             const struct msc_joint *j, bool is_known) {
    MSC_TRY(msc_builder_copy_joint(copy, b->builder, j));
    copy->joint.name = joint_name(b, j);
    MSC_TRY(MSC_ALLOCATED(copy->joint.name));
    // An identity that produces an output of the graph remains a joint, even if its input becomes a
    // constant.
    copy->joint.stays = j->op == MSC_OP_IDENTITY && msc_graph_is_output(b->from, j->outputs[0]);
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            bool needs_contents = is_known || msc_bind__needs_contents(b, j, i);
            MSC_TRY(
                bind_joints_find_operand(&copy->operands[i], b, j->operands[i], needs_contents));
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        copy->aliases[i] = b->from->tensors[j->outputs[i]]->tensor.alias;
    }
    struct msc_graph *bodies[2] = {NULL, NULL};
    enum msc_status status = msc_bind__copy_bodies(bodies, b, j);
    if (status == MSC_OK) {
        copy->joint.graphs = (const struct msc_graph *const *)bodies;
        status = msc_builder_add(copy->outputs, b->builder, &copy->joint);
    }
    msc_graph_destroy(bodies[0]);
    msc_graph_destroy(bodies[1]);
    return status;
}

// True if a consumer needs elements that the joint can compute in advance.
static bool makes_contents(const struct msc_bind *b, const struct msc_joint *j) {
    bool is_asked = false, has_known = false;
    for (int32_t i = 0; b->known != NULL && msc_constant_is_folded(j->op) && i < j->n_outputs;
         i++) {
        is_asked = is_asked || b->is_parameter[j->outputs[i]];
    }
    for (int32_t i = 0; is_asked && i < j->n_operands; i++) {
        has_known = has_known || (j->operands[i] != MSC_NO_ID && b->known[j->operands[i]] != NULL);
    }
    return has_known;
}

static enum msc_status take_outputs(struct msc_bind *b, const struct msc_joint *j,
                                    const struct msc_builder_copy *copy) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        b->values[j->outputs[i]] = copy->outputs[i];
        if (copy->outputs[i]->tensor != MSC_NO_ID) {
            MSC_TRY(keep_layout(b->builder->graph, copy->outputs[i]->tensor,
                                b->from->tensors[j->outputs[i]]->tensor.layout));
        }
    }
    return MSC_OK;
}

// Computes the elements of all outputs if possible. If consumers also read the outputs as data,
// *is_done is false: the joint itself must be copied as well.
static enum msc_status copy_contents(bool *is_done, struct msc_bind *b, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    bool is_data = false, is_constant = true;
    MSC_TRY(bind_joints_add_joint(&copy, b, j, true));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        is_data = is_data || b->is_data[j->outputs[i]];
        is_constant = is_constant && copy.outputs[i]->constant != NULL;
    }
    *is_done = !is_data || !is_constant;
    for (int32_t i = 0; !*is_done && i < j->n_outputs; i++) {
        b->known[j->outputs[i]] = copy.outputs[i];
        copy.outputs[i]->alias = ""; // the alias is for the value that is read as data
        copy.outputs[i]->joint_name = NULL;
    }
    return *is_done ? take_outputs(b, j, &copy) : MSC_OK;
}

static enum msc_status copy_operator(struct msc_bind *b, const struct msc_joint *j) {
    struct msc_builder_copy copy;
    bool is_done = false;
    if (makes_contents(b, j)) {
        MSC_TRY(copy_contents(&is_done, b, j));
    }
    if (is_done) {
        return MSC_OK;
    }
    MSC_TRY(bind_joints_add_joint(&copy, b, j, false));
    return take_outputs(b, j, &copy);
}

enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j) {
    if (j->op == MSC_OP_INPUT) {
        return msc_bind__copy_input(b, j);
    }
    if (msc_bind__is_decided(b, j)) {
        return msc_bind__take_branch(b, j);
    }
    if (msc_bind__holds_joints(b, j)) {
        return msc_bind__split(b, j);
    }
    return j->op == MSC_OP_CONSTANT ? copy_constant(b, j) : copy_operator(b, j);
}
