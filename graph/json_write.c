// Writes a graph's JSON form. Line breaks are those of MSC's writer: each member and element is on
// its own line, and ", " comes before the line break. Lists of numbers and maps of at most one
// entry are on one line.
#include "graph/graph_internal.h"

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <string.h>

#define MAX_DEPTH 64 // for nested bodies of control flow

struct writer {
    struct msc_str *out;
    int depth;
    struct {
        bool is_multi_line;
        int n;
    } scopes[MAX_DEPTH];
};

static void break_line(struct writer *w) {
    if (w->depth == 0 || w->scopes[w->depth - 1].is_multi_line) {
        msc_str_char(w->out, '\n');
        for (int i = 0; i < w->depth; i++) {
            msc_str_append(w->out, "  ");
        }
    }
}

static void json_write_begin(struct writer *w, char bracket, bool is_multi_line) {
    msc_str_char(w->out, bracket);
    w->scopes[w->depth].is_multi_line = is_multi_line;
    w->scopes[w->depth].n = 0;
    w->depth++;
}

static void json_write_end(struct writer *w, char bracket) {
    w->depth--;
    if (w->scopes[w->depth].is_multi_line && w->scopes[w->depth].n > 0) {
        break_line(w);
    }
    msc_str_char(w->out, bracket);
}

static void json_write_next(struct writer *w) {
    if (w->scopes[w->depth - 1].n++ > 0) {
        msc_str_append(w->out, ", ");
    }
    break_line(w);
}

static void json_write_key(struct writer *w, const char *name) {
    json_write_next(w);
    msc_json_write_text(w->out, name);
    msc_str_append(w->out, ": ");
}

static void text_member(struct writer *w, const char *name, const char *value) {
    json_write_key(w, name);
    msc_json_write_text(w->out, value);
}

static void int_member(struct writer *w, const char *name, int64_t value) {
    json_write_key(w, name);
    msc_str_i64(w->out, value);
}

static void json_write_element(struct writer *w, const char *value) {
    json_write_next(w);
    msc_json_write_text(w->out, value);
}

static void attrs_member(struct writer *w, const struct msc_attr attrs[], int32_t n) {
    json_write_key(w, "attrs");
    json_write_begin(w, '{', n > 1);
    for (int32_t i = 0; i < n; i++) {
        text_member(w, attrs[i].key, attrs[i].value);
    }
    json_write_end(w, '}');
}

static void prims_member(struct writer *w, const struct msc_graph *g, const struct msc_tensor *t) {
    bool is_symbolic = false;
    for (int i = 0; i < t->n_dims; i++) {
        is_symbolic |= t->prims[i] != MSC_NO_ID;
    }
    if (!is_symbolic) {
        return;
    }
    json_write_key(w, "prims");
    json_write_begin(w, '[', true);
    for (int i = 0; i < t->n_dims; i++) {
        if (t->prims[i] != MSC_NO_ID) {
            json_write_element(w, g->prims[t->prims[i]]->name);
        } else {
            json_write_next(w);
            msc_str_char(w->out, '"');
            msc_str_i64(w->out, t->dims[i]);
            msc_str_char(w->out, '"');
        }
    }
    json_write_end(w, ']');
}

static void write_tensor(struct writer *w, const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    json_write_begin(w, '{', true);
    text_member(w, "name", t->name);
    text_member(w, "alias", t->alias);
    text_member(w, "dtype", msc_dtype_name(t->dtype));
    text_member(w, "layout", t->layout);
    json_write_key(w, "shape");
    json_write_begin(w, '[', false);
    for (int i = 0; i < t->n_dims; i++) {
        json_write_next(w);
        msc_str_i64(w->out, t->dims[i]);
    }
    json_write_end(w, ']');
    prims_member(w, g, t);
    json_write_end(w, '}');
}

// What the visit of a joint's inputs needs.
struct inputs {
    struct writer *w;
    const struct msc_graph *g;
};

// An absent operand is written as an empty name.
static void write_input(void *payload, int32_t tensor) {
    const struct inputs *i = payload;
    json_write_element(i->w, tensor == MSC_NO_ID ? "" : i->g->tensors[tensor]->tensor.name);
}

static void inputs_member(struct writer *w, const struct msc_graph *g, const struct msc_joint *j) {
    json_write_key(w, "inputs");
    json_write_begin(w, '[', true);
    msc_graph_visit_inputs(g, j, write_input, &(struct inputs){w, g});
    json_write_end(w, ']');
}

static void write_graph(struct writer *w, const struct msc_graph *g, bool is_outermost);

static void json_write_joint(struct writer *w, const struct msc_graph *g,
                             const struct msc_joint *j) {
    json_write_begin(w, '{', true);
    int_member(w, "index", j->id);
    text_member(w, "name", j->name);
    text_member(w, "shared_ref", j->shared_ref);
    text_member(w, "optype", msc_op_info(j->op)->name);
    json_write_key(w, "parents");
    json_write_begin(w, '[', true);
    for (int32_t i = 0; i < j->n_parents; i++) {
        json_write_element(w, g->joints[j->parents[i]]->joint.name);
    }
    json_write_end(w, ']');
    inputs_member(w, g, j);
    json_write_key(w, "outputs");
    json_write_begin(w, '[', true);
    for (int32_t i = 0; i < j->n_outputs; i++) {
        json_write_next(w);
        write_tensor(w, g, j->outputs[i]);
    }
    json_write_end(w, ']');
    attrs_member(w, j->attrs, j->n_attrs);
    json_write_key(w, "weights");
    json_write_begin(w, '{', j->n_weights > 1);
    for (int32_t i = 0; i < j->n_weights; i++) {
        json_write_key(w, j->weights[i].role);
        write_tensor(w, g, j->weights[i].tensor);
    }
    json_write_end(w, '}');
    if (strcmp(j->scope, msc_graph__default_scope(j->op)) != 0) {
        text_member(w, "scope", j->scope);
    }
    if (j->n_graphs > 0) {
        json_write_key(w, "graphs");
        json_write_begin(w, '[', true);
        for (int32_t i = 0; i < j->n_graphs; i++) {
            json_write_next(w);
            write_graph(w, j->graphs[i], false);
        }
        json_write_end(w, ']');
    }
    json_write_end(w, '}');
}

static void write_prim(struct writer *w, const struct msc_graph *g, int32_t prim) {
    const struct msc_prim *p = g->prims[prim];
    json_write_begin(w, '{', true);
    int_member(w, "index", prim);
    text_member(w, "name", p->name);
    text_member(w, "optype", p->optype);
    json_write_key(w, "parents");
    json_write_begin(w, '[', true);
    for (int32_t i = 0; i < p->n_parents; i++) {
        json_write_element(w, g->prims[p->parents[i]]->name);
    }
    json_write_end(w, ']');
    attrs_member(w, p->attrs, p->n_attrs);
    json_write_end(w, '}');
}

static void tensor_names_member(struct writer *w, const char *name, const struct msc_graph *g,
                                const int32_t tensors[], int32_t n) {
    json_write_key(w, name);
    json_write_begin(w, '[', true);
    for (int32_t i = 0; i < n; i++) {
        json_write_element(w, g->tensors[tensors[i]]->tensor.name);
    }
    json_write_end(w, ']');
}

// JSON is UTF-8; strings that are not valid UTF-8 are omitted.
static bool is_utf8(const char *text) {
    return msc_utf8_length(text, strlen(text)) == strlen(text);
}

static void note_member(struct writer *w, const char *name, const char *text) {
    if (text[0] != '\0' && is_utf8(text)) {
        text_member(w, name, text);
    }
}

static void pairs_member(struct writer *w, const char *name, const struct msc_attr pairs[],
                         size_t n) {
    bool has_begun = false;
    for (size_t i = 0; i < n; i++) {
        if (is_utf8(pairs[i].key) && is_utf8(pairs[i].value)) {
            if (!has_begun) {
                json_write_key(w, name);
                json_write_begin(w, '{', true);
                has_begun = true;
            }
            text_member(w, pairs[i].key, pairs[i].value);
        }
    }
    if (has_begun) {
        json_write_end(w, '}');
    }
}

// Writes the notes. They are an extension: MSC does not write them, and its reader ignores them.
static void write_notes(struct writer *w, const struct msc_graph *g) {
    const struct msc_graph_notes *notes = &g->notes;
    json_write_key(w, "notes");
    json_write_begin(w, '{', true);
    if (notes->opset != 0) {
        int_member(w, "opset", notes->opset);
    }
    note_member(w, "doc", notes->doc);
    note_member(w, "graph_doc", notes->graph_doc);
    note_member(w, "domain", notes->domain);
    if (notes->model_version != 0) {
        json_write_key(w, "model_version");
        msc_str_printf(w->out, "\"%lld\"", (long long)notes->model_version);
    }
    pairs_member(w, "metadata", notes->metadata, notes->n_metadata);
    pairs_member(w, "input_docs", notes->input_docs, notes->n_input_docs);
    pairs_member(w, "output_docs", notes->output_docs, notes->n_output_docs);
    json_write_end(w, '}');
}

static void write_graph(struct writer *w, const struct msc_graph *g, bool is_outermost) {
    json_write_begin(w, '{', true);
    text_member(w, "name", g->name);
    tensor_names_member(w, "inputs", g, g->inputs, g->n_inputs);
    tensor_names_member(w, "outputs", g, g->outputs, g->n_outputs);
    json_write_key(w, "nodes");
    json_write_begin(w, '[', true);
    for (int32_t i = 0; i < g->n_joints; i++) {
        json_write_next(w);
        json_write_joint(w, g, &g->joints[i]->joint);
    }
    json_write_end(w, ']');
    if (g->n_prims > 0) {
        json_write_key(w, "prims");
        json_write_begin(w, '[', true);
        for (int32_t i = 0; i < g->n_prims; i++) {
            json_write_next(w);
            write_prim(w, g, i);
        }
        json_write_end(w, ']');
    }
    if (is_outermost && msc_graph_has_notes(g)) {
        write_notes(w, g);
    }
    json_write_end(w, '}');
}

void msc_graph_write_json(const struct msc_graph *g, struct msc_str *out) {
    struct writer w = {.out = out};
    write_graph(&w, g, true);
}
