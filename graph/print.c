// Writes the printed form, which is also the text form: graph/text_read.c reads it back.
// docs/text-form.md describes it. Lines that MSC does not print are written only if the graph
// could not be read back without them.
#include "graph/graph_internal.h"
#include "graph/text.h"

#include "base/str.h"

#include <string.h>

// Prints one dimension: the name of its prim, or the number.
static void print_dim(const struct msc_graph *g, const struct msc_tensor *t, int i,
                      struct msc_str *out) {
    if (t->prims[i] != MSC_NO_ID) {
        msc_text_write_symbol(out, g->prims[t->prims[i]]->name);
    } else {
        msc_str_i64(out, t->dims[i]);
    }
}

// Inputs and outputs of a graph have an alias by default, so the empty alias is printed.
static bool has_default_alias(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    return t->producer != MSC_NO_ID &&
           (g->joints[t->producer]->joint.op == MSC_OP_INPUT || msc_graph_is_output(g, tensor));
}

void msc_tensor_print(const struct msc_graph *g, int32_t tensor, struct msc_str *out) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    msc_text_write_name(out, t->name);
    if (t->alias[0] != '\0' || has_default_alias(g, tensor)) {
        msc_str_char(out, '(');
        msc_text_write_name(out, t->alias);
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
        msc_text_write_name(out, t->layout);
    }
    msc_str_char(out, '>');
}

static void print_joint_names(const struct msc_graph *g, const int32_t joints[], int32_t n,
                              struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_text_write_name(out, g->joints[joints[i]]->joint.name);
    }
}

static void print_tensor_names(const struct msc_graph *g, const int32_t tensors[], int32_t n,
                               struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_text_write_name(out, g->tensors[tensors[i]]->tensor.name);
    }
}

// A list of tensors while it is printed.
struct tensors {
    const struct msc_graph *g;
    struct msc_str *out;
    bool has_begun;
};

// An absent operand is printed as "".
static void print_tensor(void *payload, int32_t tensor) {
    struct tensors *list = payload;
    msc_str_append(list->out, list->has_begun ? "," : "");
    list->has_begun = true;
    if (tensor == MSC_NO_ID) {
        msc_text_write_name(list->out, "");
    } else {
        msc_tensor_print(list->g, tensor, list->out);
    }
}

// The format has a space after each attribute, including the last.
static void print_pairs(const char *label, const struct msc_attr pairs[], size_t n,
                        struct msc_str *out) {
    if (n == 0) {
        return;
    }
    msc_str_append(out, label);
    for (size_t i = 0; i < n; i++) {
        msc_text_write_name(out, pairs[i].key);
        msc_str_char(out, '=');
        msc_text_write_value(out, pairs[i].value);
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
        msc_str_append(out, j->weights[i].role);
        msc_str_append(out, ": ");
        msc_tensor_print(g, j->weights[i].tensor, out);
    }
    msc_str_char(out, '\n');
}

static void print_graph(const struct msc_graph *g, bool is_outermost, struct msc_str *out);

// Prints the bodies of control flow and of fused joints, with more indent.
static void print_bodies(const struct msc_joint *j, struct msc_str *out) {
    for (int32_t i = 0; i < j->n_graphs; i++) {
        struct msc_str body = {0};
        print_graph(j->graphs[i], false, &body);
        msc_str_append(out, "  GRAPH: {\n");
        const char *line = msc_str_text(&body), *end;
        for (; (end = strchr(line, '\n')) != NULL && end[1] != '\0'; line = end + 1) {
            msc_str_append(out, end > line ? "    " : "");
            msc_str_append_n(out, line, (size_t)(end - line) + 1);
        }
        msc_str_append(out, "  }\n");
        out->failed |= body.failed;
        msc_str_finish(&body);
    }
}

void msc_joint_print(const struct msc_graph *g, int32_t joint, struct msc_str *out) {
    const struct msc_joint *j = msc_graph_joint(g, joint);
    msc_str_printf(out, "ID_%d ", (int)j->id);
    msc_text_write_name(out, j->name);
    if (j->shared_ref[0] != '\0') {
        msc_str_append(out, "(M: ");
        msc_text_write_name(out, j->shared_ref);
        msc_str_char(out, ')');
    }
    msc_str_append(out, " <PARENTS: ");
    print_joint_names(g, j->parents, j->n_parents, out);
    msc_str_append(out, "| CHILDERN: ");
    print_joint_names(g, j->children, j->n_children, out);
    msc_str_append(out, ">\n");
    if (j->n_inputs > 0) {
        msc_str_append(out, "  IN: ");
        msc_graph_visit_inputs(g, j, print_tensor, &(struct tensors){.g = g, .out = out});
        msc_str_char(out, '\n');
    }
    msc_str_append(out, "  OUT: ");
    struct tensors outputs = {.g = g, .out = out};
    for (int32_t i = 0; i < j->n_outputs; i++) {
        print_tensor(&outputs, j->outputs[i]);
    }
    msc_str_append(out, "\n  OPTYPE: ");
    msc_str_append(out, msc_op_info(j->op)->name);
    msc_str_char(out, '\n');
    if (j->scope[0] != '\0' || msc_graph__default_scope(j->op)[0] != '\0') {
        msc_str_append(out, "  SCOPE: ");
        msc_text_write_name(out, j->scope);
        msc_str_char(out, '\n');
    }
    print_pairs("  ATTRS: ", j->attrs, (size_t)j->n_attrs, out);
    print_weights(g, j, out);
    print_bodies(j, out);
}

// Prints "P_2 MUL_2 <PARENTS: a,b| CHILDERN: c>" and the operator.
static void print_prim(const struct msc_graph *g, int32_t prim, struct msc_str *out) {
    const struct msc_prim *p = g->prims[prim];
    msc_str_printf(out, "P_%d ", (int)prim);
    msc_text_write_name(out, p->name);
    msc_str_append(out, " <PARENTS: ");
    for (int32_t i = 0; i < p->n_parents; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_text_write_name(out, g->prims[p->parents[i]]->name);
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
            msc_text_write_name(out, child->name);
            is_first = false;
        }
    }
    msc_str_append(out, ">\n  OPTYPE: ");
    msc_text_write_name(out, p->optype);
    msc_str_char(out, '\n');
    print_pairs("  ATTRS: ", p->attrs, (size_t)p->n_attrs, out);
}

static void print_note(const char *key, const char *value, struct msc_str *out) {
    if (value[0] != '\0') {
        msc_str_printf(out, "%s=", key);
        msc_text_write_value(out, value);
        msc_str_char(out, ' ');
    }
}

static void print_notes(const struct msc_graph_notes *n, struct msc_str *out) {
    msc_str_append(out, "NOTES: ");
    if (n->opset != 0) {
        msc_str_printf(out, "opset=%lld ", (long long)n->opset);
    }
    if (n->model_version != 0) {
        msc_str_printf(out, "model_version=%lld ", (long long)n->model_version);
    }
    print_note("doc", n->doc, out);
    print_note("graph_doc", n->graph_doc, out);
    print_note("domain", n->domain, out);
    msc_str_char(out, '\n');
    print_pairs("  METADATA: ", n->metadata, n->n_metadata, out);
    print_pairs("  INPUT_DOCS: ", n->input_docs, n->n_input_docs, out);
    print_pairs("  OUTPUT_DOCS: ", n->output_docs, n->n_output_docs, out);
    msc_str_char(out, '\n');
}

static void print_graph(const struct msc_graph *g, bool is_outermost, struct msc_str *out) {
    msc_text_write_name(out, g->name);
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
    if (is_outermost && msc_graph_has_notes(g)) {
        print_notes(&g->notes, out);
    }
}

void msc_graph_print(const struct msc_graph *g, struct msc_str *out) {
    print_graph(g, true, out);
}
