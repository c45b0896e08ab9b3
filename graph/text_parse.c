// Reads the syntax tree of the text form. Line breaks and indents have no meaning, because every
// part of a graph begins with a word or label of its own.
#include "graph/text.h"

#include "base/alloc.h"

#include <string.h>

#define MAX_DEPTH 16 // for nested bodies; ONNX import allows fewer

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// ---- Lists ------------------------------------------------------------------------------------

static enum msc_status read_words(struct msc_text_words *words, struct msc_text_reader *r) {
    bool is_more = r->token.kind == MSC_TEXT_WORD || r->token.kind == MSC_TEXT_QUOTED;
    while (is_more) {
        MSC_TRY(msc_text_grow(&words->items, words->n, sizeof(words->items[0]), r));
        MSC_TRY(msc_text_take(&words->items[words->n], r, "a name"));
        words->n++;
        is_more = msc_text_is(r, ',');
        MSC_TRY(is_more ? msc_text_next(r) : MSC_OK);
    }
    return MSC_OK;
}

// Lists between '<' and '>': "<INPUTS: a:0| OUTPUTS: b:0>".
struct section {
    const char *label;
    struct msc_text_token *place; // receives the label; may be NULL
    struct msc_text_words *words;
};

static enum msc_status read_sections(const struct section sections[], size_t n,
                                     const char *expected, struct msc_text_reader *r) {
    unsigned seen = 0;
    MSC_TRY(msc_text_expect(r, '<'));
    while (!msc_text_is(r, '>')) {
        size_t i = 0;
        while (i < n && (((seen >> i) & 1) != 0 || !msc_text_is_label(r, sections[i].label))) {
            i++;
        }
        if (i == n) {
            return msc_text_unexpected(r, expected);
        }
        if (sections[i].place != NULL) {
            *sections[i].place = r->token;
        }
        MSC_TRY(msc_text_next(r));
        MSC_TRY(read_words(sections[i].words, r));
        seen |= 1u << i;
        if (!msc_text_is(r, '>')) {
            MSC_TRY(msc_text_is(r, '|') ? msc_text_next(r)
                                        : msc_text_unexpected(r, "',', '|' or '>'"));
        }
    }
    return msc_text_next(r);
}

// Reads "<PARENTS: a,b| CHILDERN: c>", which may be left out. `parents` may be NULL.
static enum msc_status read_relations(struct msc_text_words *parents, struct msc_text_reader *r) {
    struct msc_text_words dropped[2] = {{0}};
    const struct section sections[] = {
        {"PARENTS", NULL, parents == NULL ? &dropped[0] : parents},
        {"CHILDERN", NULL, &dropped[1]},
    };
    return msc_text_is(r, '<')
               ? read_sections(sections, COUNT(sections), "PARENTS:, CHILDERN: or '>'", r)
               : MSC_OK;
}

enum msc_status msc_text_read_attrs(struct msc_text_attrs *attrs, struct msc_text_reader *r) {
    while ((r->token.kind == MSC_TEXT_WORD || r->token.kind == MSC_TEXT_QUOTED) && r->at < r->end &&
           *r->at == '=') {
        MSC_TRY(msc_text_grow(&attrs->items, attrs->n, sizeof(attrs->items[0]), r));
        struct msc_text_attr *attr = &attrs->items[attrs->n];
        MSC_TRY(msc_text_take(&attr->key, r, "the key of an attribute"));
        MSC_TRY(msc_text_take_value(&attr->value, r));
        attrs->n++;
    }
    return MSC_OK;
}

// ---- Tensors ----------------------------------------------------------------------------------

// Reads "<1,3,N|float32|NCW>". The last part is missing if the layout is unknown, and the first if
// the tensor is a scalar: "<float32>".
static enum msc_status read_type(struct msc_text_tensor *t, struct msc_text_reader *r) {
    MSC_TRY(msc_text_expect(r, '<'));
    bool is_more = true;
    while (is_more) {
        if (t->n_dims == MSC_MAX_DIMS) {
            return MSC_TEXT_FAIL(r, &r->token, "'%s' has more than %d dimensions", t->name.text,
                                 MSC_MAX_DIMS);
        }
        MSC_TRY(msc_text_take(&t->dims[t->n_dims++], r, "a length, a symbol or an element type"));
        is_more = msc_text_is(r, ',');
        MSC_TRY(is_more ? msc_text_next(r) : MSC_OK);
    }
    if (t->n_dims == 1 && msc_text_is(r, '>')) {
        t->dtype = t->dims[--t->n_dims];
        return msc_text_next(r);
    }
    MSC_TRY(msc_text_is(r, '|') ? msc_text_next(r) : msc_text_unexpected(r, "',' or '|'"));
    MSC_TRY(msc_text_take(&t->dtype, r, "an element type, such as float32"));
    if (msc_text_is(r, '|')) {
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_take(&t->layout, r, "a layout, such as NCHW"));
    }
    return msc_text_expect(r, '>');
}

enum msc_status msc_text_read_tensor(struct msc_text_tensor *out, struct msc_text_reader *r) {
    *out = (struct msc_text_tensor){0};
    MSC_TRY(msc_text_take(&out->name, r, "the name of a tensor"));
    if (msc_text_is(r, '(')) {
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_take(&out->alias, r, "an alias"));
        MSC_TRY(msc_text_expect(r, ')'));
    }
    return msc_text_is(r, '<') ? read_type(out, r) : MSC_OK;
}

static enum msc_status read_tensors(struct msc_text_tensors *list, struct msc_text_reader *r) {
    bool is_more = true;
    while (is_more) {
        MSC_TRY(msc_text_grow(&list->items, list->n, sizeof(list->items[0]), r));
        MSC_TRY(msc_text_read_tensor(&list->items[list->n], r));
        list->n++;
        is_more = msc_text_is(r, ',');
        MSC_TRY(is_more ? msc_text_next(r) : MSC_OK);
    }
    return MSC_OK;
}

// ---- Joints and prims -------------------------------------------------------------------------

// True if the next token is "ID", or "ID_" and a number.
static bool is_numbered(const struct msc_text_reader *r, const char *word) {
    size_t n = strlen(word);
    const char *text = r->token.text;
    if (r->token.kind != MSC_TEXT_WORD || strncmp(text, word, n) != 0) {
        return false;
    }
    return text[n] == '\0' || (text[n] == '_' && text[n + 1] != '\0' &&
                               text[n + 1 + strspn(text + n + 1, "0123456789")] == '\0');
}

enum field {
    FIELD_IN,
    FIELD_OUT,
    FIELD_OPTYPE,
    FIELD_SCOPE,
    FIELD_ATTRS,
    FIELD_WEIGHTS,
    FIELD_GRAPH
};

static const char *const field_labels[] = {
    [FIELD_IN] = "IN",       [FIELD_OUT] = "OUT",     [FIELD_OPTYPE] = "OPTYPE",
    [FIELD_SCOPE] = "SCOPE", [FIELD_ATTRS] = "ATTRS", [FIELD_WEIGHTS] = "WEIGHTS",
    [FIELD_GRAPH] = "GRAPH",
};

// The field that the next token begins; COUNT(field_labels) if there is none.
static size_t find_field(const struct msc_text_reader *r) {
    size_t i = 0;
    while (i < COUNT(field_labels) && !msc_text_is_label(r, field_labels[i])) {
        i++;
    }
    return i;
}

// Labels in capitals belong to the language, all others are roles.
static bool is_role(const struct msc_text_reader *r) {
    return r->token.kind == MSC_TEXT_LABEL && !(r->token.text[0] >= 'A' && r->token.text[0] <= 'Z');
}

static enum msc_status read_weights(struct msc_text_weights *list, struct msc_text_reader *r) {
    while (is_role(r)) {
        MSC_TRY(msc_text_grow(&list->items, list->n, sizeof(list->items[0]), r));
        list->items[list->n].role = r->token;
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_read_tensor(&list->items[list->n].tensor, r));
        list->n++;
    }
    return MSC_OK;
}

static enum msc_status read_body(struct msc_text_joint *joint, struct msc_text_reader *r) {
    if (r->depth == MAX_DEPTH) {
        return MSC_TEXT_FAIL(r, &r->token, "graphs are nested more than %d levels deep", MAX_DEPTH);
    }
    struct msc_text_graph *body = msc_arena_alloc(r->arena, sizeof(*body));
    MSC_TRY(MSC_ALLOCATED(body));
    MSC_TRY(msc_text_grow(&joint->graphs, joint->n_graphs, sizeof(joint->graphs[0]), r));
    MSC_TRY(msc_text_expect(r, '{'));
    r->depth++;
    MSC_TRY(msc_text_read_graph(body, r));
    r->depth--;
    joint->graphs[joint->n_graphs++] = body;
    return msc_text_is(r, '}') ? msc_text_next(r)
                               : msc_text_unexpected(r, "a joint (ID_1 NAME), one of its labels "
                                                        "(IN:, OUT:, ...) or '}'");
}

static enum msc_status read_field(struct msc_text_joint *joint, enum field field,
                                  struct msc_text_reader *r) {
    switch (field) {
    case FIELD_IN:
        return read_tensors(&joint->inputs, r);
    case FIELD_OUT:
        return read_tensors(&joint->outputs, r);
    case FIELD_OPTYPE:
        return msc_text_take(&joint->optype, r, "an operator, such as nn.conv2d");
    case FIELD_SCOPE:
        return msc_text_take(&joint->scope, r, "a scope");
    case FIELD_ATTRS:
        return msc_text_read_attrs(&joint->attrs, r);
    case FIELD_WEIGHTS:
        return read_weights(&joint->weights, r);
    case FIELD_GRAPH:
        return read_body(joint, r);
    }
    return MSC_OK;
}

// Reads the rest of a joint, after "ID".
static enum msc_status read_joint(struct msc_text_joint *joint, struct msc_text_reader *r) {
    unsigned seen = 0;
    MSC_TRY(msc_text_take(&joint->name, r, "the name of a joint"));
    if (msc_text_is(r, '(')) { // (M: the joint that shares a weight)
        struct msc_text_token dropped;
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_is_label(r, "M") ? msc_text_next(r) : msc_text_unexpected(r, "M:"));
        MSC_TRY(msc_text_take(&dropped, r, "the name of a joint"));
        MSC_TRY(msc_text_expect(r, ')'));
    }
    MSC_TRY(read_relations(NULL, r));
    for (size_t field = find_field(r); field < COUNT(field_labels); field = find_field(r)) {
        if (((seen >> field) & 1) != 0 && field != FIELD_GRAPH) {
            return MSC_TEXT_FAIL(r, &r->token, "'%s' has a second %s:", joint->name.text,
                                 field_labels[field]);
        }
        seen |= 1u << field;
        MSC_TRY(msc_text_next(r));
        MSC_TRY(read_field(joint, (enum field)field, r));
    }
    return MSC_OK;
}

enum msc_status msc_text_read_joints(struct msc_text_joints *joints, struct msc_text_reader *r) {
    while (is_numbered(r, "ID")) {
        MSC_TRY(msc_text_grow(&joints->items, joints->n, sizeof(joints->items[0]), r));
        struct msc_text_joint *joint = &joints->items[joints->n];
        *joint = (struct msc_text_joint){0};
        MSC_TRY(msc_text_next(r));
        MSC_TRY(read_joint(joint, r));
        joints->n++;
    }
    return MSC_OK;
}

static enum msc_status read_prims(struct msc_text_prims *prims, struct msc_text_reader *r) {
    while (is_numbered(r, "P")) {
        MSC_TRY(msc_text_grow(&prims->items, prims->n, sizeof(prims->items[0]), r));
        struct msc_text_prim *prim = &prims->items[prims->n];
        *prim = (struct msc_text_prim){0};
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_take(&prim->name, r, "the name of a symbol"));
        MSC_TRY(read_relations(&prim->parents, r));
        if (!msc_text_is_label(r, field_labels[FIELD_OPTYPE])) {
            return msc_text_unexpected(r, "OPTYPE: of the symbol");
        }
        MSC_TRY(msc_text_next(r));
        MSC_TRY(msc_text_take(&prim->optype, r, "an operator of symbols, such as Mul"));
        if (msc_text_is_label(r, field_labels[FIELD_ATTRS])) {
            MSC_TRY(msc_text_next(r));
            MSC_TRY(msc_text_read_attrs(&prim->attrs, r));
        }
        prims->n++;
    }
    return MSC_OK;
}

// ---- Graphs -----------------------------------------------------------------------------------

static enum msc_status read_notes(struct msc_text_graph *g, struct msc_text_reader *r) {
    const struct {
        const char *label;
        struct msc_text_attrs *pairs;
    } lists[] = {
        {"NOTES", &g->notes},
        {"METADATA", &g->metadata},
        {"INPUT_DOCS", &g->input_docs},
        {"OUTPUT_DOCS", &g->output_docs},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        if (msc_text_is_label(r, lists[i].label)) {
            g->notes_label = r->token;
            MSC_TRY(msc_text_next(r));
            MSC_TRY(msc_text_read_attrs(lists[i].pairs, r));
        }
    }
    return MSC_OK;
}

enum msc_status msc_text_read_graph(struct msc_text_graph *out, struct msc_text_reader *r) {
    *out = (struct msc_text_graph){0};
    struct msc_text_token outputs_label = {0};
    const struct section sections[] = {
        {"INPUTS", &out->inputs_label, &out->inputs},
        {"OUTPUTS", &outputs_label, &out->outputs},
    };
    MSC_TRY(msc_text_take(&out->name, r, "the name of a graph"));
    MSC_TRY(read_sections(sections, COUNT(sections), "INPUTS: or OUTPUTS:", r));
    while (is_numbered(r, "P") || is_numbered(r, "ID")) {
        MSC_TRY(read_prims(&out->prims, r));
        MSC_TRY(msc_text_read_joints(&out->joints, r));
    }
    return read_notes(out, r);
}
