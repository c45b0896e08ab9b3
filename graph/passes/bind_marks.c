// Finds how consumers read each tensor, for binding a graph to the elements of its inputs. Some
// joints need the elements of a tensor in advance, for a length or to select a branch; other joints
// read the tensor as data. A tensor that is read in both ways exists twice in the new graph: as a
// constant, and as the result of its joint.
#include "graph/passes/bind_internal.h"

#include "graph/op_attrs.h"
#include "graph/passes/constant_internal.h"

#include <string.h>

// Inputs with more elements are always data.
#define MSC_BIND_MAX_ELEMENTS 4096

// True if the elements of this operand may determine a length. For an operand that can also be an
// attribute, this is true unless the attribute is a float.
static bool is_shaping(const struct msc_joint *j, int32_t operand) {
    struct msc_op_role role;
    if (!msc_op_role(j->op, operand, &role) || !role.is_attribute) {
        return msc_op_role(j->op, operand, &role) && role.is_shaping;
    }
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(j->op, &n_rows);
    for (int i = 0; i < n_rows; i++) {
        bool is_row = strncmp(rows[i].key, role.name, (size_t)role.length) == 0 &&
                      rows[i].key[role.length] == '\0';
        if (is_row && rows[i].type == MSC_ATTR_FLOAT) {
            return false;
        }
    }
    return true;
}

bool msc_bind__needs_contents(const struct msc_bind *b, const struct msc_joint *j,
                              int32_t operand) {
    return b->takes_branches ? j->op == MSC_OP_IF && operand == 0 : is_shaping(j, operand);
}

struct marks {
    bool *is_parameter, *is_data; // [n_tensors]
};

static enum msc_status bind_marks_make(struct marks *out, const struct msc_bind *b,
                                       const struct msc_graph *g);

// Marks the tensors of the enclosing graph that the bodies of an If read.
static enum msc_status mark_bodies(struct marks *m, const struct msc_bind *b,
                                   const struct msc_joint *j) {
    for (int32_t k = 0; k < j->n_graphs; k++) {
        struct marks inner;
        MSC_TRY(bind_marks_make(&inner, b, j->graphs[k]));
        for (int32_t i = 0; i < j->graphs[k]->n_inputs && i + 1 < j->n_operands; i++) {
            int32_t outer = j->operands[i + 1], input = j->graphs[k]->inputs[i];
            if (outer != MSC_NO_ID) {
                m->is_parameter[outer] = m->is_parameter[outer] || inner.is_parameter[input];
                m->is_data[outer] = m->is_data[outer] || inner.is_data[input];
            }
        }
    }
    return MSC_OK;
}

// Marks how a joint reads its operands. If a consumer needs the elements of the joint's output in
// advance and the joint can be folded, the elements of its operands are also needed in advance.
// Such a joint reads its operands as data only if another consumer reads its output as data.
static void mark_operands(struct marks *m, const struct msc_bind *b, const struct msc_joint *j) {
    bool passes = false, is_read = false;
    for (int32_t k = 0; k < j->n_outputs; k++) {
        passes = passes || (msc_constant_is_folded(j->op) && m->is_parameter[j->outputs[k]]);
        is_read = is_read || m->is_data[j->outputs[k]];
    }
    for (int32_t k = 0; k < j->n_operands; k++) {
        int32_t tensor = j->operands[k];
        if (tensor == MSC_NO_ID) {
            continue;
        }
        bool needs_contents = msc_bind__needs_contents(b, j, k);
        m->is_parameter[tensor] = m->is_parameter[tensor] || passes || needs_contents;
        m->is_data[tensor] = m->is_data[tensor] || (!needs_contents && (is_read || !passes));
    }
}

// Marks all tensors of a graph. Visits the joints in reverse order, so that consumers come first.
static enum msc_status bind_marks_make(struct marks *out, const struct msc_bind *b,
                                       const struct msc_graph *g) {
    struct msc_arena *arena = &b->builder->arena;
    size_t n_tensors = (size_t)g->n_tensors + 1;
    out->is_parameter = msc_arena_array(arena, n_tensors, sizeof(bool));
    out->is_data = msc_arena_array(arena, n_tensors, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(out->is_parameter && out->is_data));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        out->is_data[g->outputs[i]] = true;
    }
    for (int32_t i = g->n_joints - 1; i >= 0; i--) {
        const struct msc_joint *j = &g->joints[i]->joint;
        if (b->takes_branches && j->op == MSC_OP_IF) {
            out->is_parameter[j->operands[0]] = true;
            MSC_TRY(mark_bodies(out, b, j));
        } else {
            mark_operands(out, b, j);
        }
    }
    return MSC_OK;
}

static bool is_too_long(const struct msc_bind *b, const struct msc_array *array) {
    return !b->takes_branches && msc_array_n_elements(array) > MSC_BIND_MAX_ELEMENTS;
}

enum msc_status msc_bind__mark(struct msc_bind *b) {
    const struct msc_graph *g = b->from;
    struct marks marks;
    MSC_TRY(bind_marks_make(&marks, b, g));
    b->is_parameter = marks.is_parameter;
    b->is_data = marks.is_data;
    b->known = msc_arena_array(&b->builder->arena, (size_t)g->n_tensors + 1, sizeof(b->known[0]));
    MSC_TRY(MSC_ALLOCATED(b->known));
    for (int32_t i = 0; b->arrays != NULL && i < g->n_inputs; i++) {
        if (b->arrays[i] == NULL || is_too_long(b, b->arrays[i])) {
            b->is_parameter[g->inputs[i]] = false;
        }
    }
    return MSC_OK;
}
