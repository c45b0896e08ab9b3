// Replaces the joints of a match by the joints of the rule's replacement.
#include "graph/rules/rules_internal.h"

#include "base/str.h"
#include "graph/builder_internal.h"
#include "graph/infer.h"
#include "graph/op_attrs.h"
#include "graph/passes/fuse_internal.h"

#include <math.h>
#include <string.h>

struct rewrite {
    const struct rule_match *match;
    struct msc_builder builder;
    struct msc_value *values[MSC_RULE_MOST_TENSORS]; // of the rule's tensors; NULL: not made yet
    const struct msc_graph *body;                    // of the replacement's joint; NULL: none
};

static const struct msc_joint *matched_joint(const struct rule_match *m, int joint) {
    return &m->graph->joints[m->joints[joint]]->joint;
}

// ---- Attributes -------------------------------------------------------------------------------

// Numbers that an attribute of a whole number or a list of them can have.
#define MOST_WHOLE 9007199254740992.0

static bool write_list(struct msc_str *out, enum msc_attr_type type, const double list[], int n) {
    int64_t whole[MSC_RULE_MOST_NUMBERS];
    float real[MSC_RULE_MOST_NUMBERS];
    bool is_whole = type == MSC_ATTR_INTS;
    for (int i = 0; i < n; i++) {
        if (is_whole && !(list[i] == floor(list[i]) && fabs(list[i]) <= MOST_WHOLE)) {
            return false;
        }
        whole[i] = is_whole ? (int64_t)list[i] : 0;
        real[i] = (float)list[i];
    }
    if (is_whole) {
        msc_attr_write_ints(out, whole, (size_t)n);
    } else {
        msc_attr_write_floats(out, real, (size_t)n);
    }
    return true;
}

static bool write_value(struct msc_str *out, enum msc_attr_type type, const struct rule_value *v) {
    bool is_list = type == MSC_ATTR_INTS || type == MSC_ATTR_FLOATS;
    if (v->kind == RULE_TEXT) {
        msc_str_append(out, v->text);
        return msc_attr_is_valid(type, v->text);
    }
    if (is_list) {
        return write_list(out, type, v->kind == RULE_LIST ? v->list : &v->number,
                          v->kind == RULE_LIST ? v->n : 1);
    }
    if (v->kind == RULE_LIST) {
        return false;
    }
    if (type == MSC_ATTR_FLOAT) {
        msc_str_float(out, (float)v->number);
    } else {
        msc_str_double(out, v->number);
    }
    return msc_attr_is_valid(type, msc_str_text(out));
}

static enum msc_status make_attr(struct msc_attr *out, struct rewrite *w,
                                 const struct rule_joint *j, const struct rule_attr *a) {
    struct rule_value v;
    struct msc_str text = {0};
    *out = (struct msc_attr){a->key, a->text};
    if (a->text != NULL) {
        return MSC_OK;
    }
    bool fits = msc_rule__evaluate(&v, a->value, w->match) &&
                write_value(&text, msc_op_attr_find(j->op, a->key)->type, &v);
    out->value = msc_str_keep(&text, &w->builder.arena);
    MSC_TRY(MSC_ALLOCATED(out->value));
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID, "attribute '%s' of '%s' has no value of its type here",
                           a->key, j->name.text);
}

static enum msc_status make_attrs(struct msc_attr **out, struct rewrite *w,
                                  const struct rule_joint *j) {
    *out = msc_arena_array(&w->builder.arena, (size_t)j->n_attrs + 1, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (int i = 0; i < j->n_attrs; i++) {
        MSC_TRY(make_attr(&(*out)[i], w, j, &j->attrs[i]));
    }
    return MSC_OK;
}

// ---- Operands ---------------------------------------------------------------------------------

static enum msc_status make_tensor(struct msc_value **out, struct rewrite *w, int32_t id) {
    const struct msc_graph *g = w->builder.graph;
    int32_t weight;
    const struct msc_array *data = msc_match_constant(&weight, g, id);
    const struct msc_tensor *t = &g->tensors[id]->tensor;
    if (data == NULL) {
        return msc_builder_activation(out, &w->builder, t->alias, id);
    }
    MSC_TRY(msc_builder_constant(out, &w->builder, g->tensors[weight]->tensor.name, data));
    (*out)->layout = g->tensors[weight]->tensor.layout;
    (*out)->weight = weight;
    (*out)->tensor = t->producer == MSC_NO_ID ? MSC_NO_ID : id;
    return MSC_OK;
}

static enum msc_status value_of(struct msc_value **out, struct rewrite *w, int tensor) {
    if (w->values[tensor] == NULL) {
        MSC_TRY(make_tensor(&w->values[tensor], w, w->match->tensors[tensor]));
    }
    *out = w->values[tensor];
    return MSC_OK;
}

static enum msc_dtype dtype_of(const struct rewrite *w, const struct msc_value *v) {
    return v->constant != NULL ? msc_array_dtype(v->constant)
                               : w->builder.graph->tensors[v->tensor]->tensor.dtype;
}

// The type of a joint's scalar constants: that of its first operand that is not bool.
static enum msc_status scalar_dtype(enum msc_dtype *out, struct rewrite *w,
                                    const struct rule_joint *j) {
    *out = MSC_DTYPE_F32;
    for (int i = 0; i < j->n_operands; i++) {
        struct msc_value *v;
        if (j->operands[i].kind == RULE_TENSOR) {
            MSC_TRY(value_of(&v, w, j->operands[i].tensor));
            if (dtype_of(w, v) != MSC_DTYPE_BOOL) {
                *out = dtype_of(w, v);
                return MSC_OK;
            }
        }
    }
    return MSC_OK;
}

static enum msc_status make_scalar(struct msc_value **out, struct rewrite *w,
                                   const struct rule_joint *j, const struct rule_expr *value) {
    double number;
    enum msc_dtype dtype;
    struct msc_array *wide, *scalar;
    if (!msc_rule__number(&number, value, w->match)) {
        return MSC_FAIL(MSC_E_INVALID, "a constant of '%s' has no value here", j->name.text);
    }
    MSC_TRY(scalar_dtype(&dtype, w, j));
    MSC_TRY(msc_array_create_from(&wide, MSC_DTYPE_F64, 0, NULL, &number));
    enum msc_status status = msc_array_convert(&scalar, wide, dtype);
    msc_array_release(wide);
    MSC_TRY(status);
    status = msc_builder_constant(out, &w->builder, "", scalar);
    msc_array_release(scalar);
    return status;
}

static enum msc_status make_operands(struct msc_value ***out, struct rewrite *w,
                                     const struct rule_joint *j) {
    *out = msc_arena_array(&w->builder.arena, (size_t)j->n_operands + 1, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    for (int i = 0; i < j->n_operands; i++) {
        const struct rule_operand *o = &j->operands[i];
        (*out)[i] = NULL;
        if (o->kind != RULE_ABSENT) {
            MSC_TRY(o->kind == RULE_TENSOR ? value_of(&(*out)[i], w, o->tensor)
                                           : make_scalar(&(*out)[i], w, j, o->value));
        }
    }
    return MSC_OK;
}

// ---- Joints -----------------------------------------------------------------------------------

// The joint of the graph whose name and scope a joint of the replacement takes.
static const struct msc_joint *place_of(const struct rewrite *w, const struct rule_joint *j) {
    const struct rule *rule = w->match->rule;
    int joint =
        j->replaced_joint >= 0 ? j->replaced_joint : rule->tensors[rule->results[0].from].joint;
    return matched_joint(w->match, joint);
}

static enum msc_status name_joint(struct msc_builder_joint *joint, const char **aliases,
                                  struct rewrite *w, const struct rule_joint *j) {
    const struct msc_joint *place = place_of(w, j);
    bool is_same = j->replaced_joint >= 0;
    bool is_gone = is_same && !w->match->rule->match.items[j->replaced_joint].is_kept;
    joint->scope = j->scope != NULL ? j->scope : place->scope;
    joint->name = is_same ? place->name
                          : msc_arena_printf(&w->builder.arena, "%s_%s", place->name, j->name.text);
    for (int i = 0; i < joint->n_outputs; i++) {
        aliases[i] = is_gone && i < place->n_outputs
                         ? w->match->graph->tensors[place->outputs[i]]->tensor.alias
                         : "";
    }
    return MSC_ALLOCATED(joint->name);
}

static enum msc_status add_joint(struct rewrite *w, int number) {
    const struct rule *rule = w->match->rule;
    const struct rule_joint *j = &rule->replace.items[number];
    const char *aliases[8];
    struct msc_value *outputs[8], **operands;
    struct msc_attr *attrs;
    MSC_TRY(make_attrs(&attrs, w, j));
    MSC_TRY(make_operands(&operands, w, j));
    struct msc_builder_joint joint = {
        .op = j->op,
        .n_operands = j->n_operands,
        .operands = operands,
        .n_attrs = j->n_attrs,
        .attrs = attrs,
        .n_outputs = j->n_outputs > 0 ? j->n_outputs : 1,
        .aliases = aliases,
        .n_graphs = w->body != NULL,
        .graphs = &w->body,
    };
    MSC_TRY(name_joint(&joint, aliases, w, j));
    MSC_TRY(msc_builder_add(outputs, &w->builder, &joint));
    for (int i = 0; i < rule->n_tensors; i++) {
        const struct rule_tensor *t = &rule->tensors[i];
        if (t->is_new && t->joint == number) {
            if (t->output >= joint.n_outputs) {
                return MSC_FAIL(MSC_E_INVALID,
                                "'%s' has no output '%s'; name its outputs with OUT:", j->name.text,
                                t->name);
            }
            w->values[i] = outputs[t->output];
        }
    }
    return MSC_OK;
}

// Both sides have equal shapes, but inference may know less about the new tensor. It then takes the
// lengths and axis letters of the old.
static void take_type(struct msc_graph *g, int32_t from, int32_t to) {
    const struct msc_tensor *old = &g->tensors[from]->tensor;
    struct msc_tensor *t = &g->tensors[to]->tensor;
    for (int i = 0; t->n_dims == old->n_dims && i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            t->dims[i] = old->dims[i];
            t->prims[i] = old->prims[i];
        }
    }
    if (t->layout[0] == '\0' && t->n_dims == old->n_dims) {
        t->layout = old->layout;
    }
}

// Lengths that the symbols of the graph's inputs are bound to: symbol n is first + n * step.
static const struct { int64_t first, step; } bindings[] = {{4, 2}, {7, 5}, {1000, 33}};

// Sets the symbols [n_prims] to the lengths of a binding, and others to -1.
static void bind_symbols(int64_t symbols[], const struct msc_graph *g, size_t binding) {
    int64_t length = bindings[binding].first;
    for (int32_t i = 0; i < g->n_prims; i++) {
        const struct msc_prim *p = g->prims[i];
        bool is_symbol =
            p->n_parents == 0 && msc_graph__find_attr(p->attrs, p->n_attrs, "producer", 8) != NULL;
        symbols[i] = is_symbol ? length : -1;
        length += is_symbol ? bindings[binding].step : 0;
    }
}

// Fails if a length of the new tensor differs from that of the old for some lengths of the graph's
// inputs, as after "reshape ATTRS: shape=4,2". The check binds each symbol to one number only.
static enum msc_status check_lengths(struct rewrite *w, int32_t from, int32_t to) {
    const struct msc_graph *g = w->builder.graph;
    const struct msc_tensor *old = &g->tensors[from]->tensor, *t = &g->tensors[to]->tensor;
    int64_t *symbols =
        msc_arena_array(&w->builder.arena, (size_t)g->n_prims + 1, sizeof(symbols[0]));
    MSC_TRY(MSC_ALLOCATED(symbols));
    for (size_t k = 0; k < sizeof(bindings) / sizeof(bindings[0]); k++) {
        bind_symbols(symbols, g, k);
        for (int i = 0; t->n_dims == old->n_dims && i < t->n_dims; i++) {
            const struct msc_dim was = {old->dims[i], old->prims[i]},
                                 is = {t->dims[i], t->prims[i]};
            int64_t expected = msc_dim_evaluate(g, was, symbols);
            int64_t found = msc_dim_evaluate(g, is, symbols);
            if (expected >= 0 && found >= 0 && expected != found) {
                return MSC_FAIL(MSC_E_INVALID,
                                "it makes length %d of '%s', which depends on the inputs' lengths, "
                                "%lld in place of %lld for some of them",
                                i, msc_tensor_label(old), (long long)found, (long long)expected);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status connect_result(struct rewrite *w, const struct rule_result *result) {
    struct msc_value *v;
    int32_t to, from = w->match->tensors[result->from];
    MSC_TRY(value_of(&v, w, result->to));
    MSC_TRY(msc_builder_tensor(&to, &w->builder, v));
    MSC_TRY(check_lengths(w, from, to));
    if (w->match->rule->tensors[result->to].is_new) {
        take_type(w->builder.graph, from, to);
    }
    return msc_graph_replace_tensor(w->builder.graph, from, to);
}

// New joints take the names of the joints that they replace, so these are removed first. All others
// are removed when the graph is finalized, unless something still reads them.
static enum msc_status build_replacement(struct rewrite *w) {
    const struct rule *rule = w->match->rule;
    for (int i = 0; i < rule->match.n; i++) {
        const struct rule_joint *j = &rule->match.items[i];
        if (j->is_replaced && !j->is_kept) {
            MSC_TRY(msc_graph_remove_joint(w->builder.graph, w->match->joints[i]));
        }
    }
    for (int i = 0; i < rule->replace.n; i++) {
        MSC_TRY(add_joint(w, i));
    }
    for (int i = 0; i < rule->n_results; i++) {
        MSC_TRY(connect_result(w, &rule->results[i]));
    }
    return msc_graph_finalize(w->builder.graph);
}

// ---- Joints with a body -----------------------------------------------------------------------

static enum msc_status hold_match(bool *done, struct rewrite *w) {
    const struct rule_match *m = w->match;
    const struct rule_joint *j = &m->rule->replace.items[0];
    struct msc_fuse fuse = {.graph = w->builder.graph, .n_old = m->graph->n_joints};
    struct msc_match match = {.graph = m->graph, .n_old = m->graph->n_joints};
    struct msc_fuse_input *inputs =
        msc_arena_array(&w->builder.arena, (size_t)j->n_operands + 1, sizeof(inputs[0]));
    struct msc_joint_spec spec = {.op = j->op, .n_attrs = j->n_attrs};
    struct msc_attr *attrs;
    MSC_TRY(MSC_ALLOCATED(inputs));
    MSC_TRY(make_attrs(&attrs, w, j));
    spec.attrs = attrs;
    for (int i = 0; i < m->rule->match.n; i++) { // the last joint is the first of the match
        match.joints[match.n_joints++] = m->joints[m->rule->order[i]];
    }
    for (int i = 0; i < j->n_operands; i++) {
        if (j->operands[i].kind != RULE_TENSOR) {
            return MSC_FAIL(MSC_E_INVALID, "operands of '%s' must be tensors of the pattern",
                            j->name.text);
        }
        int tensor = j->operands[i].tensor;
        inputs[i] = (struct msc_fuse_input){m->rule->tensors[tensor].name, m->tensors[tensor]};
    }
    MSC_TRY(msc_fuse__hold(done, &fuse, &match, inputs, j->n_operands, &spec));
    return *done ? msc_graph_finalize(w->builder.graph) : MSC_OK;
}

// An external joint may also hold joints that have weights; these become its operands.
static enum msc_status mark_match(struct rewrite *w) {
    const struct rule_joint *j = &w->match->rule->replace.items[0];
    int n_names = 0;
    for (int i = 0; i < j->n_attrs; i++) {
        bool is_name = strcmp(j->attrs[i].key, "domain") == 0 || strcmp(j->attrs[i].key, "op") == 0;
        n_names += is_name && (j->attrs[i].text == NULL || j->attrs[i].text[0] != '\0');
    }
    if (n_names < 2) {
        return MSC_FAIL(MSC_E_INVALID, "'%s' needs the attributes domain and op", j->name.text);
    }
    struct rule_lone lone = {.match = w->match};
    enum msc_status status = msc_rule__build_body(&lone);
    w->body = lone.builder.graph;
    status = status == MSC_OK ? build_replacement(w) : status;
    msc_rule__finish_lone(&lone);
    return status;
}

enum msc_status msc_rule__replace(bool *done, struct msc_graph *g, const struct rule_match *m) {
    struct rewrite w = {.match = m, .builder.graph = g};
    const struct rule *rule = m->rule;
    bool is_marked = rule->holds && rule->replace.items[0].op == MSC_OP_EXTERNAL;
    *done = !rule->holds || is_marked;
    enum msc_status status = is_marked     ? mark_match(&w)
                             : rule->holds ? hold_match(done, &w)
                                           : build_replacement(&w);
    msc_builder_finish(&w.builder);
    return status;
}
