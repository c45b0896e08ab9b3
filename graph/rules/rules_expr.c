// Expressions of rules: conditions after where, and attributes and constants of replacements.
#include "graph/rules/rules_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"
#include "graph/passes/match_internal.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_DEPTH 32  // of parentheses and calls
#define MOST_TERMS 64 // of a sum or product

enum rule_relation { RELATION_EQ = 'e', RELATION_NE = 'n', RELATION_LE = 'l', RELATION_GE = 'g' };

// ---- Functions --------------------------------------------------------------------------------

static const struct msc_tensor *tensor_of(const struct rule_expr *e, const struct rule_match *m) {
    int32_t id = m->tensors[e->index];
    return id == MSC_NO_ID ? NULL : &m->graph->tensors[id]->tensor;
}

// A symbolic length is a number below 0, which is equal only for the same symbol.
static double length_of(const struct msc_tensor *t, int axis) {
    return t->dims[axis] >= 0 ? (double)t->dims[axis] : -2.0 - t->prims[axis];
}

static bool call_rank(struct rule_value *out, const struct rule_expr *e,
                      const struct rule_match *m) {
    out->number = tensor_of(e->args[0], m)->n_dims;
    return true;
}

static bool call_dim(struct rule_value *out, const struct rule_expr *e,
                     const struct rule_match *m) {
    const struct msc_tensor *t = tensor_of(e->args[0], m);
    double axis;
    if (!msc_rule__number(&axis, e->args[1], m) || axis != floor(axis) || axis < -t->n_dims ||
        axis >= t->n_dims) {
        return false;
    }
    out->number = length_of(t, (int)axis < 0 ? t->n_dims + (int)axis : (int)axis);
    return true;
}

static bool call_shape(struct rule_value *out, const struct rule_expr *e,
                       const struct rule_match *m) {
    const struct msc_tensor *t = tensor_of(e->args[0], m);
    out->kind = RULE_LIST;
    out->n = t->n_dims;
    for (int i = 0; i < t->n_dims; i++) {
        out->list[i] = length_of(t, i);
    }
    return true;
}

static bool call_dtype(struct rule_value *out, const struct rule_expr *e,
                       const struct rule_match *m) {
    out->kind = RULE_TEXT;
    out->text = msc_dtype_name(tensor_of(e->args[0], m)->dtype);
    return true;
}

static bool call_name(struct rule_value *out, const struct rule_expr *e,
                      const struct rule_match *m) {
    out->kind = RULE_TEXT;
    out->text = tensor_of(e->args[0], m)->name;
    return true;
}

static bool call_value(struct rule_value *out, const struct rule_expr *e,
                       const struct rule_match *m) {
    return msc_match_number(&out->number, m->graph, m->tensors[e->args[0]->index]);
}

static bool call_is_constant(struct rule_value *out, const struct rule_expr *e,
                             const struct rule_match *m) {
    out->number = msc_graph_weight_of(m->graph, m->tensors[e->args[0]->index]) != MSC_NO_ID;
    return true;
}

static bool to_list(struct rule_value *v) {
    int64_t whole[MSC_RULE_MOST_NUMBERS];
    float real[MSC_RULE_MOST_NUMBERS];
    if (v->kind != RULE_TEXT) {
        v->n = v->kind == RULE_LIST ? v->n : 1;
        v->list[0] = v->kind == RULE_LIST ? v->list[0] : v->number;
        v->kind = RULE_LIST;
        return true;
    }
    int n = msc_attr_read_ints(whole, MSC_RULE_MOST_NUMBERS, v->text);
    bool is_whole = n >= 0;
    n = is_whole ? n : msc_attr_read_floats(real, MSC_RULE_MOST_NUMBERS, v->text);
    for (int i = 0; i < n && i < MSC_RULE_MOST_NUMBERS; i++) {
        v->list[i] = is_whole ? (double)whole[i] : (double)real[i];
    }
    v->n = n;
    v->kind = RULE_LIST;
    return n >= 0 && n <= MSC_RULE_MOST_NUMBERS;
}

static bool list_of(struct rule_value *out, const struct rule_expr *e, const struct rule_match *m) {
    return msc_rule__evaluate(out, e, m) && to_list(out);
}

static bool call_length(struct rule_value *out, const struct rule_expr *e,
                        const struct rule_match *m) {
    struct rule_value list;
    bool fits = list_of(&list, e->args[0], m);
    out->number = list.n;
    return fits;
}

// The axes of the list, counted from the first.
static bool call_axes(struct rule_value *out, const struct rule_expr *e,
                      const struct rule_match *m) {
    int rank = tensor_of(e->args[0], m)->n_dims;
    bool fits = list_of(out, e->args[1], m);
    for (int i = 0; fits && i < out->n; i++) {
        out->list[i] += out->list[i] < 0 ? rank : 0;
        fits = out->list[i] >= 0 && out->list[i] < rank;
    }
    return fits;
}

static bool call_near(struct rule_value *out, const struct rule_expr *e,
                      const struct rule_match *m) {
    double a, b, tolerance;
    if (!msc_rule__number(&a, e->args[0], m) || !msc_rule__number(&b, e->args[1], m) ||
        !msc_rule__number(&tolerance, e->args[2], m)) {
        return false;
    }
    out->number = msc_rule__is_near(a, b, tolerance);
    return true;
}

static bool call_sqrt(struct rule_value *out, const struct rule_expr *e,
                      const struct rule_match *m) {
    double x;
    bool fits = msc_rule__number(&x, e->args[0], m) && x >= 0;
    out->number = fits ? sqrt(x) : 0;
    return fits;
}

static const struct function {
    const char *name;
    int n_tensors, n_args; // the first arguments are tensors, the others expressions
    bool (*call)(struct rule_value *out, const struct rule_expr *e, const struct rule_match *m);
} functions[] = {
    {"rank", 1, 1, call_rank},
    {"dim", 1, 2, call_dim},
    {"shape", 1, 1, call_shape},
    {"dtype", 1, 1, call_dtype},
    {"name", 1, 1, call_name},
    {"value", 1, 1, call_value},
    {"is_constant", 1, 1, call_is_constant},
    {"axes", 1, 2, call_axes},
    {"length", 0, 1, call_length},
    {"near", 0, 3, call_near},
    {"sqrt", 0, 1, call_sqrt},
};

// ---- Parsing ----------------------------------------------------------------------------------

static enum msc_status parse_comparison(struct rule_expr **out, struct msc_text_reader *r,
                                        const struct rule *rule);

static enum msc_status new_expr(struct rule_expr **out, struct msc_text_reader *r, int kind) {
    *out = msc_arena_alloc(r->arena, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    memset(*out, 0, sizeof(**out));
    (*out)->kind = kind;
    return MSC_OK;
}

// Makes an attribute variable, with the rest of its word as an index: "$a", "$a[0]", "$a[$b]".
static enum msc_status parse_attr(struct rule_expr **out, struct msc_text_reader *r,
                                  const struct msc_text_token *place, const char *text, size_t n,
                                  const struct rule *rule) {
    size_t length = 1;
    while (length < n && text[length] != '[') {
        length++;
    }
    const char *name = msc_arena_strndup(r->arena, text + 1, length - 1);
    struct rule_expr *attr, *element;
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(new_expr(&attr, r, RULE_EXPR_ATTR));
    attr->index = msc_rule__find_attr(rule, name);
    if (attr->index < 0) {
        return MSC_TEXT_FAIL(r, place, "the pattern binds no attribute to $%s", name);
    }
    *out = attr;
    if (length == n) {
        return MSC_OK;
    }
    const char *index = text + length + 1;
    size_t n_index = n - length - 2;
    if (text[n - 1] != ']' || n < length + 3) {
        return MSC_TEXT_FAIL(r, place, "expected $NAME[INDEX], found '%s'", text);
    }
    MSC_TRY(new_expr(&element, r, RULE_EXPR_ELEMENT));
    element->n_args = 2;
    element->args[0] = attr;
    *out = element;
    if (index[0] == '$') {
        return memchr(index, '[', n_index) != NULL
                   ? MSC_TEXT_FAIL(r, place, "an index is a number or $NAME, found '%s'", text)
                   : parse_attr(&element->args[1], r, place, index, n_index, rule);
    }
    MSC_TRY(new_expr(&element->args[1], r, RULE_EXPR_LITERAL));
    const char *number = msc_arena_strndup(r->arena, index, n_index);
    MSC_TRY(MSC_ALLOCATED(number));
    return msc_parse_double(&element->args[1]->literal.number, number)
               ? MSC_OK
               : MSC_TEXT_FAIL(r, place, "an index is a number or $NAME, found '%s'", text);
}

static enum msc_status parse_tensor(struct rule_expr **out, struct msc_text_reader *r,
                                    const struct rule *rule) {
    struct msc_text_token token;
    MSC_TRY(new_expr(out, r, RULE_EXPR_TENSOR));
    MSC_TRY(msc_text_take(&token, r, "a tensor of the pattern"));
    (*out)->index = msc_rule__find_tensor(rule, token.text);
    return (*out)->index >= 0
               ? MSC_OK
               : MSC_TEXT_FAIL(r, &token, "the pattern has no tensor '%s'", token.text);
}

static enum msc_status parse_function(struct rule_expr **out, struct msc_text_reader *r,
                                      const struct rule *rule) {
    size_t i = 0;
    while (i < COUNT(functions) && !msc_text_is_word(r, functions[i].name)) {
        i++;
    }
    if (i == COUNT(functions)) {
        return msc_text_unexpected(
            r, "a number, $NAME, or rank(x), dim(x, i), shape(x), dtype(x), name(x), value(x), "
               "is_constant(x), axes(x, a), length(a), near(a, b, tolerance) or sqrt(a)");
    }
    MSC_TRY(new_expr(out, r, RULE_EXPR_FUNCTION));
    (*out)->index = (int)i;
    MSC_TRY(msc_text_next(r));
    MSC_TRY(msc_text_expect(r, '('));
    for (int k = 0; k < functions[i].n_args; k++) {
        MSC_TRY(k > 0 ? msc_text_expect(r, ',') : MSC_OK);
        MSC_TRY(k < functions[i].n_tensors ? parse_tensor(&(*out)->args[k], r, rule)
                                           : parse_comparison(&(*out)->args[k], r, rule));
        (*out)->n_args++;
    }
    return msc_text_expect(r, ')');
}

static enum msc_status parse_parentheses(struct rule_expr **out, struct msc_text_reader *r,
                                         const struct rule *rule) {
    MSC_TRY(msc_text_expect(r, '('));
    MSC_TRY(parse_comparison(out, r, rule));
    return msc_text_expect(r, ')');
}

static enum msc_status parse_primary(struct rule_expr **out, struct msc_text_reader *r,
                                     const struct rule *rule) {
    double number = 0;
    struct msc_text_token token = r->token;
    bool is_number = token.kind == MSC_TEXT_WORD && msc_parse_double(&number, token.text);
    if (is_number || token.kind == MSC_TEXT_QUOTED) {
        MSC_TRY(new_expr(out, r, RULE_EXPR_LITERAL));
        (*out)->literal = (struct rule_value){
            .kind = is_number ? RULE_NUMBER : RULE_TEXT, .number = number, .text = token.text};
        return msc_text_next(r);
    }
    if (msc_text_is_word(r, "$") || msc_text_is(r, '(')) {
        MSC_TRY(msc_text_is_word(r, "$") ? msc_text_next(r) : MSC_OK);
        return parse_parentheses(out, r, rule);
    }
    if (token.kind == MSC_TEXT_WORD && token.text[0] == '$') {
        MSC_TRY(msc_text_next(r));
        return parse_attr(out, r, &token, token.text, strlen(token.text), rule);
    }
    return parse_function(out, r, rule);
}

// Makes a binary expression; the caller sets args[1].
static enum msc_status join(struct rule_expr **out, struct msc_text_reader *r, int operation,
                            struct rule_expr *left) {
    MSC_TRY(new_expr(out, r, RULE_EXPR_BINARY));
    (*out)->index = operation;
    (*out)->n_args = 2;
    (*out)->args[0] = left;
    return MSC_OK;
}

// Reads operands joined by the operators of this level: 0 is + and -, 1 is * and /.
static enum msc_status parse_binary(struct rule_expr **out, struct msc_text_reader *r,
                                    const struct rule *rule, int level) {
    static const char *const operators[] = {"+-", "*/"};
    MSC_TRY(level == 0 ? parse_binary(out, r, rule, 1) : parse_primary(out, r, rule));
    for (int n = 1; r->token.kind == MSC_TEXT_WORD && r->token.text[1] == '\0' &&
                    strchr(operators[level], r->token.text[0]) != NULL;
         n++) {
        struct rule_expr *e;
        if (n == MOST_TERMS) {
            return MSC_TEXT_FAIL(r, &r->token, "a sum or product has at most %d terms", MOST_TERMS);
        }
        MSC_TRY(join(&e, r, r->token.text[0], *out));
        MSC_TRY(msc_text_next(r));
        MSC_TRY(level == 0 ? parse_binary(&e->args[1], r, rule, 1)
                           : parse_primary(&e->args[1], r, rule));
        *out = e;
    }
    return MSC_OK;
}

// Reads ==, !=, <, <=, > or >=. 0: the next token is none of them.
static enum msc_status parse_relation(int *out, struct msc_text_reader *r) {
    bool is_not = msc_text_is_word(r, "!");
    int mark = is_not ? '!'
               : msc_text_is(r, '=') || msc_text_is(r, '<') || msc_text_is(r, '>')
                   ? r->token.text[0]
                   : 0;
    *out = mark;
    if (mark == 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_text_next(r));
    if (mark == '<' || mark == '>') {
        if (!msc_text_is(r, '=')) {
            return MSC_OK;
        }
        *out = mark == '<' ? RELATION_LE : RELATION_GE;
        return msc_text_next(r);
    }
    *out = is_not ? RELATION_NE : RELATION_EQ;
    return msc_text_expect(r, '=');
}

static enum msc_status parse_comparison(struct rule_expr **out, struct msc_text_reader *r,
                                        const struct rule *rule) {
    struct rule_expr *e;
    int relation;
    if (r->depth == MAX_DEPTH) {
        return MSC_TEXT_FAIL(r, &r->token, "the expression is nested more than %d levels deep",
                             MAX_DEPTH);
    }
    r->depth++;
    MSC_TRY(parse_binary(out, r, rule, 0));
    MSC_TRY(parse_relation(&relation, r));
    if (relation != 0) {
        MSC_TRY(join(&e, r, relation, *out));
        MSC_TRY(parse_binary(&e->args[1], r, rule, 0));
        *out = e;
    }
    r->depth--;
    return MSC_OK;
}

enum msc_status msc_rule__parse_expr(const struct rule_expr **out, struct msc_text_reader *r,
                                     const struct rule *rule) {
    struct rule_expr *e;
    MSC_TRY(parse_comparison(&e, r, rule));
    *out = e;
    return MSC_OK;
}

enum msc_status msc_rule__parse_value(const struct rule_expr **out, struct msc_text_reader *r,
                                      const struct msc_text_token *token, const struct rule *rule) {
    struct msc_text_reader inner = {
        .name = r->name,
        .arena = r->arena,
        .at = token->text,
        .end = token->text + strlen(token->text),
        .line = token->line,
        .column = token->column + (token->kind == MSC_TEXT_QUOTED),
    };
    MSC_TRY(msc_text_next(&inner));
    MSC_TRY(msc_rule__parse_expr(out, &inner, rule));
    return inner.token.kind == MSC_TEXT_END
               ? MSC_OK
               : msc_text_unexpected(&inner, "an operator between spaces, such as ' * '");
}

// ---- Evaluation -------------------------------------------------------------------------------

bool msc_rule__is_near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

bool msc_rule__number(double *out, const struct rule_expr *e, const struct rule_match *m) {
    struct rule_value v;
    if (!msc_rule__evaluate(&v, e, m)) {
        return false;
    }
    *out = v.number;
    return v.kind == RULE_NUMBER || (v.kind == RULE_TEXT && msc_parse_double(out, v.text)) ||
           (to_list(&v) && v.n == 1 && (*out = v.list[0], true));
}

// An element of a list; if the index is a list, the list of these elements. Negative indices count
// from the end.
static bool evaluate_element(struct rule_value *out, const struct rule_expr *e,
                             const struct rule_match *m) {
    struct rule_value list, index;
    bool is_list = e->args[1]->kind == RULE_EXPR_ATTR;
    if (!list_of(&list, e->args[0], m) || !list_of(&index, e->args[1], m)) {
        return false;
    }
    out->kind = is_list ? RULE_LIST : RULE_NUMBER;
    out->n = index.n;
    for (int i = 0; i < index.n; i++) {
        double at = index.list[i] < 0 ? index.list[i] + list.n : index.list[i];
        if (!(at >= 0 && at < list.n) || at != floor(at)) {
            return false;
        }
        out->list[i] = list.list[(int)at];
    }
    out->number = is_list ? 0 : out->list[0];
    return true;
}

static bool are_equal(struct rule_value *a, struct rule_value *b) {
    if (a->kind == RULE_TEXT && b->kind == RULE_TEXT && strcmp(a->text, b->text) == 0) {
        return true;
    }
    bool fits = to_list(a) && to_list(b) && a->n == b->n;
    for (int i = 0; fits && i < a->n; i++) {
        fits = a->list[i] == b->list[i];
    }
    return fits;
}

bool msc_rule__are_near(const char *a, const char *b, double tolerance) {
    struct rule_value x = {.kind = RULE_TEXT, .text = a}, y = {.kind = RULE_TEXT, .text = b};
    if (strcmp(a, b) == 0) {
        return true;
    }
    bool fits = to_list(&x) && to_list(&y) && x.n == y.n;
    for (int i = 0; fits && i < x.n; i++) {
        fits = msc_rule__is_near(x.list[i], y.list[i], tolerance);
    }
    return fits;
}

static bool evaluate_binary(struct rule_value *out, const struct rule_expr *e,
                            const struct rule_match *m) {
    struct rule_value u, v;
    double a, b;
    if (e->index == RELATION_EQ || e->index == RELATION_NE) {
        bool fits = msc_rule__evaluate(&u, e->args[0], m) && msc_rule__evaluate(&v, e->args[1], m);
        out->number = fits && are_equal(&u, &v) == (e->index == RELATION_EQ);
        return fits;
    }
    if (!msc_rule__number(&a, e->args[0], m) || !msc_rule__number(&b, e->args[1], m)) {
        return false;
    }
    out->number = e->index == '+'           ? a + b
                  : e->index == '-'         ? a - b
                  : e->index == '*'         ? a * b
                  : e->index == '/'         ? a / b
                  : e->index == '<'         ? a < b
                  : e->index == '>'         ? a > b
                  : e->index == RELATION_LE ? a <= b
                                            : a >= b;
    return isfinite(out->number);
}

bool msc_rule__evaluate(struct rule_value *out, const struct rule_expr *e,
                        const struct rule_match *m) {
    *out = (struct rule_value){.kind = RULE_NUMBER};
    switch (e->kind) {
    case RULE_EXPR_LITERAL:
        *out = e->literal;
        return true;
    case RULE_EXPR_ATTR:
        *out = (struct rule_value){.kind = RULE_TEXT, .text = m->attrs[e->index]};
        return out->text != NULL;
    case RULE_EXPR_ELEMENT:
        return evaluate_element(out, e, m);
    case RULE_EXPR_FUNCTION:
        for (int i = 0; i < functions[e->index].n_tensors; i++) {
            if (tensor_of(e->args[i], m) == NULL) {
                return false;
            }
        }
        return functions[e->index].call(out, e, m);
    case RULE_EXPR_BINARY:
        return evaluate_binary(out, e, m);
    case RULE_EXPR_TENSOR:
        break;
    }
    return false;
}

bool msc_rule__is_true(const struct rule_expr *e, const struct rule_match *m) {
    double number;
    return msc_rule__number(&number, e, m) && number != 0;
}
