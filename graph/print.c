#include "graph/graph_internal.h"

#include "base/shown.h"
#include "base/str.h"

// Prints one dimension: the name of its prim, or the number.
static void print_dim(const struct msc_graph *g, const struct msc_tensor *t, int i,
                      struct msc_str *out) {
    if (t->prims[i] != MSC_NO_ID) {
        msc_shown_append(out, g->prims[t->prims[i]]->name);
    } else {
        msc_str_i64(out, t->dims[i]);
    }
}

void msc_tensor_print(const struct msc_graph *g, int32_t tensor, struct msc_str *out) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    msc_shown_append(out, t->name);
    if (t->alias[0] != '\0') {
        msc_str_char(out, '(');
        msc_shown_append(out, t->alias);
        msc_str_char(out, ')');
    }
    msc_str_char(out, '<');
    for (int i = 0; i < t->n_dims; i++) {
        print_dim(g, t, i, out);
        msc_str_char(out, i + 1 < t->n_dims ? ',' : '|');
    }
    msc_str_append(out, msc_dtype_name(t->dtype));
    if (t->layout[0] != '\0') {
        msc_str_char(out, '|');
        msc_shown_append(out, t->layout);
    }
    msc_str_char(out, '>');
}

static void print_joint_names(const struct msc_graph *g, const int32_t joints[], int32_t n,
                              struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_shown_append(out, g->joints[joints[i]]->joint.name);
    }
}

static void print_tensor_names(const struct msc_graph *g, const int32_t tensors[], int32_t n,
                               struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_shown_append(out, g->tensors[tensors[i]]->tensor.name);
    }
}

static void print_tensors(const struct msc_graph *g, const int32_t tensors[], int32_t n,
                          struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_tensor_print(g, tensors[i], out);
    }
}

// The format has a space after each attribute, including the last.
static void print_attrs(const struct msc_attr attrs[], int32_t n, struct msc_str *out) {
    if (n == 0) {
        return;
    }
    msc_str_append(out, "  ATTRS: ");
    for (int32_t i = 0; i < n; i++) {
        msc_shown_append(out, attrs[i].key);
        msc_str_char(out, '=');
        msc_shown_append(out, attrs[i].value);
        msc_str_char(out, ' ');
    }
    msc_str_char(out, '\n');
}

static void print_weights(const struct msc_graph *g, const struct msc_joint *j,
                          struct msc_str *out) {
    if (j->n_weights == 0) {
        return;
    }
    msc_str_append(out, "  WEIGHTS: ");
    for (int32_t i = 0; i < j->n_weights; i++) {
        msc_str_append(out, "\n    ");
        msc_shown_append(out, j->weights[i].role);
        msc_str_append(out, ": ");
        msc_tensor_print(g, j->weights[i].tensor, out);
    }
    msc_str_char(out, '\n');
}

void msc_joint_print(const struct msc_graph *g, int32_t joint, struct msc_str *out) {
    const struct msc_joint *j = msc_graph_joint(g, joint);
    msc_str_printf(out, "ID_%d ", (int)j->id);
    msc_shown_append(out, j->name);
    if (j->shared_ref[0] != '\0') {
        msc_str_append(out, "(M: ");
        msc_shown_append(out, j->shared_ref);
        msc_str_char(out, ')');
    }
    msc_str_append(out, " <PARENTS: ");
    print_joint_names(g, j->parents, j->n_parents, out);
    msc_str_append(out, "| CHILDERN: ");
    print_joint_names(g, j->children, j->n_children, out);
    msc_str_append(out, ">\n");
    if (j->n_inputs > 0) {
        msc_str_append(out, "  IN: ");
        print_tensors(g, j->inputs, j->n_inputs, out);
        msc_str_char(out, '\n');
    }
    msc_str_append(out, "  OUT: ");
    print_tensors(g, j->outputs, j->n_outputs, out);
    msc_str_append(out, "\n  OPTYPE: ");
    msc_str_append(out, msc_op_info(j->op)->name);
    msc_str_char(out, '\n');
    if (j->scope[0] != '\0') {
        msc_str_append(out, "  SCOPE: ");
        msc_shown_append(out, j->scope);
        msc_str_char(out, '\n');
    }
    print_attrs(j->attrs, j->n_attrs, out);
    print_weights(g, j, out);
}

// Prints "P_2 MUL_2 <PARENTS: a,b| CHILDERN: c>" and the operator.
static void print_prim(const struct msc_graph *g, int32_t prim, struct msc_str *out) {
    const struct msc_prim *p = g->prims[prim];
    msc_str_printf(out, "P_%d ", (int)prim);
    msc_shown_append(out, p->name);
    msc_str_append(out, " <PARENTS: ");
    for (int32_t i = 0; i < p->n_parents; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_shown_append(out, g->prims[p->parents[i]]->name);
    }
    msc_str_append(out, "| CHILDERN: ");
    bool is_first = true;
    for (int32_t i = prim + 1; i < g->n_prims; i++) {
        const struct msc_prim *child = g->prims[i];
        bool is_child = false;
        for (int32_t k = 0; k < child->n_parents; k++) {
            is_child |= child->parents[k] == prim;
        }
        if (is_child) {
            msc_str_append(out, is_first ? "" : ",");
            msc_shown_append(out, child->name);
            is_first = false;
        }
    }
    msc_str_append(out, ">\n  OPTYPE: ");
    msc_shown_append(out, p->optype);
    msc_str_char(out, '\n');
    print_attrs(p->attrs, p->n_attrs, out);
}

void msc_graph_print(const struct msc_graph *g, struct msc_str *out) {
    msc_shown_append(out, g->name);
    msc_str_append(out, " <INPUTS: ");
    print_tensor_names(g, g->inputs, g->n_inputs, out);
    msc_str_append(out, "| OUTPUTS: ");
    print_tensor_names(g, g->outputs, g->n_outputs, out);
    msc_str_append(out, ">\n");
    for (int32_t i = 0; i < g->n_prims; i++) {
        print_prim(g, i, out);
        msc_str_char(out, '\n');
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        msc_joint_print(g, i, out);
        msc_str_char(out, '\n');
    }
}
