// Makes a graph of the text form's syntax tree.
#include "graph/graph_reader.h"
#include "graph/operators_internal.h"
#include "graph/text.h"

#include "base/str.h"

#include <string.h>

#define MAX_BODIES 2

// The place of a token for messages: "file.msc:12:5".
static enum msc_status place_of(const char **out, struct msc_graph_reader *r,
                                const struct msc_text_token *token) {
    *out = msc_arena_printf(&r->scratch, "%s:%d:%d", r->name, token->line, token->column);
    return MSC_ALLOCATED(*out);
}

static const char *text_of(const struct msc_text_token *token) {
    return token->text == NULL ? "" : token->text;
}

static enum msc_status make_attrs(const struct msc_attr **out, int32_t *n,
                                  struct msc_graph_reader *r, const struct msc_text_attrs *from) {
    struct msc_attr *attrs = msc_arena_array(&r->scratch, from->n + 1, sizeof(attrs[0]));
    MSC_TRY(MSC_ALLOCATED(attrs));
    for (size_t i = 0; i < from->n; i++) {
        attrs[i] = (struct msc_attr){from->items[i].key.text, from->items[i].value.text};
    }
    *out = attrs;
    *n = (int32_t)from->n;
    return MSC_OK;
}

// ---- Tensors ----------------------------------------------------------------------------------

// A number is a length; all other words, and quoted texts, are symbols.
static enum msc_status read_dim(struct msc_read_tensor *t, const struct msc_graph_reader *r,
                                int dim, const struct msc_text_token *token) {
    int64_t length;
    if (token->kind != MSC_TEXT_WORD || !msc_parse_i64(&length, token->text)) {
        return msc_graph__read_symbol(t, r, dim, token->text);
    }
    if (length < 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: dimension %d of '%s' is %s, expected 0 or more, or the name of a "
                        "symbol, such as N",
                        t->where, dim, t->name, token->text);
    }
    t->type.dims[dim] = (struct msc_dim){length, MSC_NO_ID};
    return MSC_OK;
}

// The tensor's name in the graph is `name`, because a text may leave out ":0".
static enum msc_status read_tensor(struct msc_read_tensor *t, struct msc_graph_reader *r,
                                   const struct msc_text_tensor *from, const char *name) {
    *t =
        (struct msc_read_tensor){.name = name, .alias = text_of(&from->alias), .type.n_values = -1};
    MSC_TRY(place_of(&t->where, r, &from->name));
    t->has_type = t->has_layout = from->dtype.kind != MSC_TEXT_NONE;
    if (!t->has_type) {
        return MSC_OK;
    }
    MSC_TRY(msc_graph__read_dtype(t, from->dtype.text));
    MSC_TRY(msc_graph__read_layout(t, text_of(&from->layout)));
    t->type.n_dims = from->n_dims;
    for (int i = 0; i < from->n_dims; i++) {
        MSC_TRY(read_dim(t, r, i, &from->dims[i]));
    }
    return MSC_OK;
}

// Finds the output of a joint by its name; output 0 also has the name of the joint, even if a
// weight has that name, too.
static enum msc_status find_tensor(int32_t *out, struct msc_graph_reader *r, const char *name) {
    *out = msc_graph__live_tensor(r->g, name);
    if (*out == MSC_NO_ID || r->g->tensors[*out]->tensor.producer == MSC_NO_ID) {
        const char *full = msc_arena_printf(&r->scratch, "%s:0", name);
        MSC_TRY(MSC_ALLOCATED(full));
        int32_t output = msc_graph__live_tensor(r->g, full);
        *out = output == MSC_NO_ID ? *out : output;
    }
    return MSC_OK;
}

// ---- Joints -----------------------------------------------------------------------------------

static enum msc_status read_input(int32_t *out, struct msc_graph_reader *r,
                                  const struct msc_text_tensor *from) {
    struct msc_read_tensor t;
    *out = MSC_NO_ID;
    if (from->name.text[0] == '\0') {
        return MSC_OK;
    }
    MSC_TRY(read_tensor(&t, r, from, from->name.text));
    MSC_TRY(find_tensor(out, r, t.name));
    if (*out == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: no earlier joint has the output '%s'", t.where, t.name);
    }
    return msc_graph__check_read_type(r, &t, *out, "producer");
}

static enum msc_status read_inputs(struct msc_read_joint *j, struct msc_graph_reader *r,
                                   const struct msc_text_tensors *from) {
    int32_t *inputs = msc_arena_array(&r->scratch, from->n + 1, sizeof(inputs[0]));
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (size_t i = 0; i < from->n; i++) {
        MSC_TRY(read_input(&inputs[i], r, &from->items[i]));
    }
    j->spec.inputs = inputs;
    j->spec.n_inputs = (int32_t)from->n;
    return MSC_OK;
}

static enum msc_status read_weights(struct msc_read_joint *j, struct msc_graph_reader *r,
                                    const struct msc_text_weights *from) {
    struct msc_weight_spec *weights = msc_arena_array(&r->scratch, from->n + 1, sizeof(weights[0]));
    MSC_TRY(MSC_ALLOCATED(weights));
    for (size_t i = 0; i < from->n; i++) {
        struct msc_read_tensor t;
        const struct msc_text_weight *weight = &from->items[i];
        weights[i].role = weight->role.text;
        MSC_TRY(read_tensor(&t, r, &weight->tensor, weight->tensor.name.text));
        MSC_TRY(msc_graph__read_weight(&weights[i].tensor, r, &t, weights[i].role, &j->spec));
    }
    j->spec.weights = weights;
    j->spec.n_weights = (int32_t)from->n;
    return MSC_OK;
}

// Symbols in the type of an input need no line of their own.
static enum msc_status add_symbols(struct msc_graph_reader *r, const struct msc_text_tensor *t) {
    for (int i = 0; i < t->n_dims; i++) {
        int64_t number;
        int32_t prim;
        const struct msc_text_token *dim = &t->dims[i];
        bool is_number = dim->kind == MSC_TEXT_WORD && msc_parse_i64(&number, dim->text);
        if (!is_number && msc_graph_find_prim(r->g, dim->text) == MSC_NO_ID) {
            MSC_TRY(msc_graph_add_symbol(&prim, r->g, dim->text));
        }
    }
    return MSC_OK;
}

// A joint without OUT: has one output. By default, an input's alias is its name.
static enum msc_status read_outputs(struct msc_read_joint *j, struct msc_graph_reader *r,
                                    const struct msc_text_joint *from) {
    const struct msc_text_tensor plain = {.name = from->name};
    size_t n = from->outputs.n > 0 ? from->outputs.n : 1;
    struct msc_read_tensor *outputs = msc_arena_array(&r->scratch, n, sizeof(outputs[0]));
    const char **aliases = msc_arena_array(&r->scratch, n, sizeof(aliases[0]));
    MSC_TRY(MSC_ALLOCATED(outputs && aliases));
    for (size_t i = 0; i < n; i++) {
        const struct msc_text_tensor *t = from->outputs.n > 0 ? &from->outputs.items[i] : &plain;
        const char *name = msc_arena_printf(&r->scratch, "%s:%d", j->spec.name, (int)i);
        MSC_TRY(MSC_ALLOCATED(name));
        MSC_TRY(j->spec.op == MSC_OP_INPUT ? add_symbols(r, t) : MSC_OK);
        MSC_TRY(read_tensor(&outputs[i], r, t, name));
        bool is_short = i == 0 && strcmp(t->name.text, j->spec.name) == 0;
        MSC_TRY(is_short ? MSC_OK
                         : msc_graph__check_output_name(r, j->spec.name, (int32_t)i, t->name.text,
                                                        outputs[i].where));
        if (j->spec.op == MSC_OP_INPUT && t->alias.kind == MSC_TEXT_NONE) {
            outputs[i].alias = j->spec.name;
        }
        aliases[i] = outputs[i].alias;
    }
    j->outputs = outputs;
    j->spec.n_outputs = (int32_t)n;
    j->spec.aliases = aliases;
    return MSC_OK;
}

static enum msc_status read_body(struct msc_graph **out, struct msc_graph_reader *around,
                                 const struct msc_text_graph *from,
                                 const struct msc_joint_spec *joint, int32_t which);

static enum msc_status read_bodies(struct msc_read_joint *j, struct msc_graph_reader *r,
                                   const struct msc_text_joint *from,
                                   struct msc_graph *bodies[MAX_BODIES]) {
    if (from->n_graphs > MAX_BODIES) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has more than %d graphs", j->where, j->spec.name,
                        MAX_BODIES);
    }
    for (size_t i = 0; i < from->n_graphs; i++) {
        MSC_TRY(read_body(&bodies[i], r, from->graphs[i], &j->spec, (int32_t)i));
    }
    j->spec.n_graphs = (int32_t)from->n_graphs;
    j->spec.graphs = (const struct msc_graph *const *)bodies;
    return MSC_OK;
}

static enum msc_status read_parts(struct msc_read_joint *j, struct msc_graph_reader *r,
                                  const struct msc_text_joint *from,
                                  struct msc_graph *bodies[MAX_BODIES]) {
    if (from->optype.kind == MSC_TEXT_NONE) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: '%s' has no OPTYPE:", j->where, j->spec.name);
    }
    MSC_TRY(msc_graph__read_op(&j->spec.op, r, j->spec.name, from->optype.text, j->where));
    MSC_TRY(make_attrs(&j->spec.attrs, &j->spec.n_attrs, r, &from->attrs));
    MSC_TRY(read_inputs(j, r, &from->inputs));
    MSC_TRY(read_weights(j, r, &from->weights));
    MSC_TRY(read_outputs(j, r, from));
    return read_bodies(j, r, from, bodies);
}

static enum msc_status read_joint(struct msc_graph_reader *r, const struct msc_text_joint *from) {
    struct msc_read_joint j = {.spec.name = from->name.text, .spec.scope = from->scope.text};
    struct msc_graph *bodies[MAX_BODIES] = {NULL};
    int32_t joint;
    MSC_TRY(place_of(&j.where, r, &from->name));
    enum msc_status status = read_parts(&j, r, from, bodies);
    status = status == MSC_OK ? msc_graph__read_joint(&joint, r, &j) : status;
    for (int i = 0; i < MAX_BODIES; i++) {
        msc_graph_destroy(bodies[i]);
    }
    return status == MSC_E_INVALID ? msc_status_prefix(MSC_E_FORMAT, "%s", j.where) : status;
}

// ---- Graphs -----------------------------------------------------------------------------------

static enum msc_status read_prim(struct msc_graph_reader *r, const struct msc_text_prim *from) {
    struct msc_read_prim prim = {
        .name = from->name.text, .optype = from->optype.text, .n_parents = (int)from->parents.n};
    const char **parents = msc_arena_array(&r->scratch, from->parents.n + 1, sizeof(parents[0]));
    MSC_TRY(MSC_ALLOCATED(parents));
    for (size_t i = 0; i < from->parents.n; i++) {
        parents[i] = from->parents.items[i].text;
    }
    prim.parents = parents;
    MSC_TRY(place_of(&prim.where, r, &from->name));
    MSC_TRY(make_attrs(&prim.attrs, &prim.n_attrs, r, &from->attrs));
    return msc_graph__read_prim(r, &prim);
}

// Finds the tensors of a list of the graph, and returns their names in the graph.
static enum msc_status find_names(const char ***out, struct msc_graph_reader *r,
                                  const struct msc_text_words *words) {
    *out = msc_arena_array(&r->scratch, words->n + 1, sizeof((*out)[0]));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (size_t i = 0; i < words->n; i++) {
        const struct msc_text_token *word = &words->items[i];
        int32_t tensor;
        MSC_TRY(find_tensor(&tensor, r, word->text));
        if (tensor == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_FORMAT, "%s:%d:%d: no joint has the output '%s'", r->name,
                            word->line, word->column, word->text);
        }
        (*out)[i] = r->g->tensors[tensor]->tensor.name;
    }
    return MSC_OK;
}

static enum msc_status read_ends(struct msc_graph_reader *r, const struct msc_text_graph *from) {
    const char *where, **inputs, **outputs;
    size_t n_inputs = from->inputs.n;
    MSC_TRY(place_of(&where, r, &from->name));
    MSC_TRY(find_names(&inputs, r, &from->inputs));
    MSC_TRY(find_names(&outputs, r, &from->outputs));
    if (from->inputs_label.kind == MSC_TEXT_NONE) {
        n_inputs = (size_t)r->g->n_inputs;
        inputs = msc_arena_array(&r->scratch, n_inputs + 1, sizeof(inputs[0]));
        MSC_TRY(MSC_ALLOCATED(inputs));
        for (size_t i = 0; i < n_inputs; i++) {
            inputs[i] = r->g->tensors[r->g->inputs[i]]->tensor.name;
        }
    }
    enum msc_status status =
        msc_graph__read_ends(r, where, inputs, n_inputs, outputs, from->outputs.n);
    return status == MSC_E_INVALID ? msc_status_prefix(MSC_E_FORMAT, "%s", where) : status;
}

// Gives the graph's outputs their default aliases, unless the text says that they have none.
static enum msc_status set_aliases(struct msc_graph_reader *r, const struct msc_text_graph *from) {
    struct msc_graph_names without = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < from->joints.n; i++) {
        const struct msc_text_tensors *outputs = &from->joints.items[i].outputs;
        for (size_t k = 0; k < outputs->n; k++) {
            const struct msc_text_tensor *t = &outputs->items[k];
            if (t->alias.kind != MSC_TEXT_NONE && t->alias.text[0] == '\0') {
                int32_t tensor;
                MSC_TRY_OUT(find_tensor(&tensor, r, t->name.text));
                if (tensor != MSC_NO_ID) {
                    const char *name = r->g->tensors[tensor]->tensor.name;
                    MSC_TRY_OUT(msc_graph__names_put(&without, name, tensor));
                }
            }
        }
    }
    for (int32_t i = 0; i < r->g->n_outputs; i++) {
        int32_t tensor = r->g->outputs[i];
        if (msc_graph__names_find(&without, r->g->tensors[tensor]->tensor.name) == MSC_NO_ID) {
            MSC_TRY_OUT(msc_graph__default_alias(r->g, tensor));
        }
    }
out:
    msc_graph__names_finish(&without);
    return status;
}

static bool has_given_order(const struct msc_text_graph *from) {
    for (size_t i = 0; i < from->joints.n; i++) {
        const struct msc_text_attrs *attrs = &from->joints.items[i].attrs;
        for (size_t k = 1; k < attrs->n; k++) {
            if (strcmp(attrs->items[k - 1].key.text, attrs->items[k].key.text) > 0) {
                return true;
            }
        }
    }
    return false;
}

static enum msc_status read_graph(struct msc_graph_reader *r, const struct msc_text_graph *from) {
    MSC_TRY(msc_graph_create(&r->g, from->name.text));
    r->g->operators = msc_operators_retain(r->operators);
    r->g->notes.keeps_attr_order = has_given_order(from);
    for (size_t i = 0; i < from->prims.n; i++) {
        MSC_TRY(read_prim(r, &from->prims.items[i]));
    }
    for (size_t i = 0; i < from->joints.n; i++) {
        MSC_TRY(read_joint(r, &from->joints.items[i]));
    }
    MSC_TRY(read_ends(r, from));
    return set_aliases(r, from);
}

static enum msc_status read_body(struct msc_graph **out, struct msc_graph_reader *around,
                                 const struct msc_text_graph *from,
                                 const struct msc_joint_spec *joint, int32_t which) {
    struct msc_graph_reader r = {
        .name = around->name, .weights = around->weights, .operators = around->operators};
    enum msc_status status = MSC_OK;
    r.prefix =
        msc_graph_body_prefix(&around->scratch, around->prefix, joint->op, joint->name, which);
    MSC_TRY(MSC_ALLOCATED(r.prefix));
    if (from->notes_label.kind != MSC_TEXT_NONE) {
        return MSC_FAIL(
            MSC_E_FORMAT, "%s:%d:%d: %s: must be at the end of the text, outside of GRAPH: { }",
            r.name, from->notes_label.line, from->notes_label.column, from->notes_label.text);
    }
    MSC_TRY_OUT(read_graph(&r, from));
    *out = r.g;
    r.g = NULL;
out:
    msc_graph_destroy(r.g);
    msc_arena_finish(&r.scratch);
    return status;
}

static enum msc_status read_note(struct msc_graph_notes *notes, struct msc_graph_reader *r,
                                 const struct msc_text_attr *pair) {
    const struct {
        const char *key;
        const char **text;
        int64_t *number;
    } rows[] = {
        {"opset", NULL, &notes->opset},   {"model_version", NULL, &notes->model_version},
        {"doc", &notes->doc, NULL},       {"graph_doc", &notes->graph_doc, NULL},
        {"domain", &notes->domain, NULL},
    };
    const char *where;
    MSC_TRY(place_of(&where, r, &pair->key));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].key, pair->key.text) != 0) {
            continue;
        }
        if (rows[i].text != NULL) {
            *rows[i].text = pair->value.text;
        } else if (!msc_parse_i64(rows[i].number, pair->value.text)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: %s is '%s', expected a whole number", where,
                            pair->key.text, pair->value.text);
        }
        return rows[i].number == &notes->opset ? msc_graph__check_opset(notes->opset, where)
                                               : MSC_OK;
    }
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: unknown note '%s', expected opset, model_version, doc, graph_doc or "
                    "domain; other keys belong to METADATA:",
                    where, pair->key.text);
}

static enum msc_status read_notes(struct msc_graph_reader *r, const struct msc_text_graph *from) {
    struct msc_graph_notes notes = {.keeps_attr_order = r->g->notes.keeps_attr_order};
    const struct {
        const struct msc_text_attrs *from;
        const struct msc_attr **to;
        size_t *n;
    } lists[] = {
        {&from->metadata, &notes.metadata, &notes.n_metadata},
        {&from->input_docs, &notes.input_docs, &notes.n_input_docs},
        {&from->output_docs, &notes.output_docs, &notes.n_output_docs},
    };
    for (size_t i = 0; i < from->notes.n; i++) {
        MSC_TRY(read_note(&notes, r, &from->notes.items[i]));
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        int32_t n;
        MSC_TRY(make_attrs(lists[i].to, &n, r, lists[i].from));
        *lists[i].n = (size_t)n;
    }
    return msc_graph_set_notes(r->g, &notes);
}

// Reads the tree of a whole text.
static enum msc_status read_tree(struct msc_text_graph *out, struct msc_arena *arena,
                                 const char *text, size_t length, const char *name) {
    struct msc_text_reader t;
    MSC_TRY(msc_text_open(&t, arena, text, length, name));
    MSC_TRY(msc_text_read_graph(out, &t));
    return t.token.kind == MSC_TEXT_END
               ? MSC_OK
               : msc_text_unexpected(&t, "a joint (ID_1 NAME), one of its labels (IN:, OUT:, "
                                         "OPTYPE:, SCOPE:, ATTRS:, WEIGHTS:, GRAPH:), NOTES: or "
                                         "the end");
}

enum msc_status msc_graph_read_text(struct msc_graph **out, const char *text, size_t length,
                                    const char *name, const struct msc_array_list *weights,
                                    struct msc_operators *operators) {
    struct msc_graph_reader r = {
        .name = name, .weights = weights, .prefix = "", .operators = operators};
    struct msc_text_graph tree;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(read_tree(&tree, &r.scratch, text, length, name));
    MSC_TRY_OUT(read_graph(&r, &tree));
    MSC_TRY_OUT(read_notes(&r, &tree));
    *out = r.g;
    r.g = NULL;
out:
    msc_graph_destroy(r.g);
    msc_arena_finish(&r.scratch);
    return status;
}
