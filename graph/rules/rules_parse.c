// Reads a rule: docs/rewrite.md has the grammar.
#include "graph/rules/rules_internal.h"

#include "base/str.h"
#include "graph/external.h"
#include "graph/op_attrs.h"
#include "graph/passes/match_internal.h"

#include <stdio.h>
#include <string.h>

// A rule while it is read.
struct rule_parser {
    struct msc_text_reader *r;
    struct rule *rule;
    struct rule_joints *joints; // of the part that is read: the pattern or the replacement
    bool is_new;                // this part is the replacement
};

static enum msc_status make_room(const struct msc_text_reader *r,
                                 const struct msc_text_token *token, int n, int most,
                                 const char *what) {
    return n < most ? MSC_OK : MSC_TEXT_FAIL(r, token, "a rule has at most %d %s", most, what);
}

// ---- Names ------------------------------------------------------------------------------------

int msc_rule__find_tensor(const struct rule *rule, const char *name) {
    for (int i = 0; i < rule->n_tensors; i++) {
        if (!rule->tensors[i].is_new && strcmp(rule->tensors[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int msc_rule__find_attr(const struct rule *rule, const char *name) {
    for (int i = 0; i < rule->n_attrs; i++) {
        if (strcmp(rule->attrs[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_joint(const struct rule_joints *joints, const char *name, size_t length) {
    for (int i = 0; i < joints->n; i++) {
        const char *text = joints->items[i].name.text;
        if (strncmp(text, name, length) == 0 && text[length] == '\0') {
            return i;
        }
    }
    return -1;
}

// Splits "split:1" into the length of the joint's name and the number of the output.
static size_t split_name(int *output, const char *name) {
    const char *colon = strrchr(name, ':');
    int64_t number;
    *output = 0;
    if (colon == NULL || !msc_parse_i64(&number, colon + 1) || number < 0 || number > 7) {
        return strlen(name);
    }
    *output = (int)number;
    return (size_t)(colon - name);
}

static enum msc_status add_tensor(int *out, const struct rule_parser *p,
                                  const struct msc_text_token *token, struct rule_tensor tensor) {
    struct rule *rule = p->rule;
    for (int i = 0; i < rule->n_tensors; i++) {
        const struct rule_tensor *t = &rule->tensors[i];
        bool is_same = tensor.joint < 0 ? t->joint < 0 && strcmp(t->name, tensor.name) == 0
                                        : t->joint == tensor.joint && t->output == tensor.output;
        if (is_same && t->is_new == tensor.is_new) {
            *out = i;
            return MSC_OK;
        }
    }
    MSC_TRY(make_room(p->r, token, rule->n_tensors, MSC_RULE_MOST_TENSORS, "tensors"));
    *out = rule->n_tensors;
    rule->tensors[rule->n_tensors++] = tensor;
    return MSC_OK;
}

// Finds the tensor that a word names: an output of a joint above, or a variable. A name that is new
// in a pattern becomes a variable.
static enum msc_status read_name(int *out, const struct rule_parser *p,
                                 const struct msc_text_token *token) {
    struct rule_tensor t = {.name = token->text, .joint = -1, .is_new = p->is_new};
    size_t length = split_name(&t.output, token->text);
    t.joint = find_joint(p->joints, token->text, length);
    if (t.joint < 0 && p->is_new) {
        t.is_new = false;
        t.joint = find_joint(&p->rule->match, token->text, length);
    }
    if (t.joint < 0 && p->is_new && msc_rule__find_tensor(p->rule, token->text) < 0) {
        return MSC_TEXT_FAIL(
            p->r, token, "no joint above and no tensor of the pattern is called '%s'", token->text);
    }
    t.is_new = t.is_new && t.joint >= 0;
    return add_tensor(out, p, token, t);
}

// ---- Joints -----------------------------------------------------------------------------------

static enum msc_status read_operand(struct rule_operand *out, const struct rule_parser *p,
                                    const struct msc_text_tensor *from) {
    const struct msc_text_token *token = &from->name;
    double number;
    if (from->dtype.kind != MSC_TEXT_NONE || from->alias.kind != MSC_TEXT_NONE) {
        return MSC_TEXT_FAIL(p->r, token,
                             "an operand of a rule has no type and no alias; write conditions such "
                             "as rank(%s) == 4 after where",
                             token->text);
    }
    if (token->text[0] == '\0') {
        out->kind = RULE_ABSENT;
        return MSC_OK;
    }
    if (token->text[0] == '$' || msc_parse_double(&number, token->text)) {
        out->kind = RULE_SCALAR;
        if (!p->is_new && token->text[0] == '$') {
            return MSC_TEXT_FAIL(
                p->r, token,
                "an operand of a pattern is a tensor or a number, found '%s'; name "
                "the tensor and write near(value(NAME), ...) after where",
                token->text);
        }
        return msc_rule__parse_value(&out->value, p->r, token, p->rule);
    }
    out->kind = RULE_TENSOR;
    return read_name(&out->tensor, p, token);
}

static const struct msc_text_weight *find_weight(const struct msc_text_weights *weights,
                                                 const struct msc_op_role *role) {
    for (size_t i = 0; i < weights->n; i++) {
        const char *text = weights->items[i].role.text;
        if (strlen(text) == (size_t)role->length &&
            strncmp(text, role->name, (size_t)role->length) == 0) {
            return &weights->items[i];
        }
    }
    return NULL;
}

static bool is_given_as_attr(const struct rule_joint *j, const struct msc_op_role *role) {
    for (int i = 0; i < j->n_attrs && role->is_attribute; i++) {
        if (strlen(j->attrs[i].key) == (size_t)role->length &&
            strncmp(j->attrs[i].key, role->name, (size_t)role->length) == 0) {
            return true;
        }
    }
    return false;
}

// Gives the operands of IN: to the roles that neither WEIGHTS: nor ATTRS: gives.
static enum msc_status read_operands(struct rule_joint *j, const struct rule_parser *p,
                                     const struct msc_text_joint *from) {
    size_t n_left = from->inputs.n + from->weights.n, next = 0;
    j->operands =
        msc_arena_array(p->r->arena, n_left + (size_t)j->n_attrs + 1, sizeof(j->operands[0]));
    MSC_TRY(MSC_ALLOCATED(j->operands));
    for (struct msc_op_role role; n_left > 0; j->n_operands++) {
        struct rule_operand *o = &j->operands[j->n_operands];
        *o = (struct rule_operand){.kind = RULE_ABSENT};
        if (!msc_op_role(j->op, j->n_operands, &role)) {
            return MSC_TEXT_FAIL(p->r, &j->name, "'%s': %s takes no further operand", j->name.text,
                                 msc_op_info(j->op)->name);
        }
        if (is_given_as_attr(j, &role)) {
            continue;
        }
        const struct msc_text_weight *weight = find_weight(&from->weights, &role);
        if (weight == NULL && next == from->inputs.n) {
            if (role.is_optional) {
                continue;
            }
            return MSC_TEXT_FAIL(p->r, &j->name,
                                 "'%s': WEIGHTS: needs an operand before it in IN:", j->name.text);
        }
        MSC_TRY(read_operand(o, p, weight ? &weight->tensor : &from->inputs.items[next]));
        next += weight == NULL;
        n_left--;
    }
    return MSC_OK;
}

static enum msc_status read_attr(struct rule_attr *out, const struct rule_parser *p,
                                 const struct rule_joint *j, const struct msc_text_attr *from) {
    const char *text = from->value.text;
    *out = (struct rule_attr){.key = from->key.text, .variable = -1};
    const struct msc_op_attr *row = msc_op_attr_find(j->op, out->key);
    if (j->op == MSC_OP_EXTERNAL &&
        strncmp(out->key, MSC_EXTERNAL_ATTR, strlen(MSC_EXTERNAL_ATTR)) == 0) {
        out->text = text; // an attribute of the node, with its type
        return MSC_OK;
    }
    if (row == NULL) {
        return MSC_TEXT_FAIL(p->r, &from->key, "%s has no attribute '%s'", msc_op_info(j->op)->name,
                             out->key);
    }
    if (text[0] != '$') {
        out->text = text;
        return msc_attr_is_valid(row->type, text)
                   ? MSC_OK
                   : MSC_TEXT_FAIL(p->r, &from->value, "'%s' is '%s', expected %s", out->key, text,
                                   msc_attr_type_name(row->type));
    }
    if (p->is_new) {
        return msc_rule__parse_value(&out->value, p->r, &from->value, p->rule);
    }
    if (text[1] == '\0' || strpbrk(text, "([ ") != NULL) {
        return MSC_TEXT_FAIL(p->r, &from->value,
                             "a pattern binds an attribute to a name, such as $%s, found '%s'",
                             out->key, text);
    }
    out->variable = msc_rule__find_attr(p->rule, text + 1);
    if (out->variable < 0) {
        MSC_TRY(make_room(p->r, &from->value, p->rule->n_attrs, MSC_RULE_MOST_ATTRS,
                          "names of attributes"));
        out->variable = p->rule->n_attrs;
        p->rule->attrs[p->rule->n_attrs++] = text + 1;
    }
    return MSC_OK;
}

static enum msc_status read_attr_list(struct rule_joint *j, const struct rule_parser *p,
                                      const struct msc_text_attrs *from) {
    j->attrs = msc_arena_array(p->r->arena, from->n + 1, sizeof(j->attrs[0]));
    MSC_TRY(MSC_ALLOCATED(j->attrs));
    for (size_t i = 0; i < from->n; i++) {
        MSC_TRY(read_attr(&j->attrs[i], p, j, &from->items[i]));
        j->n_attrs++;
    }
    return MSC_OK;
}

// Joints are numbered before their outputs are read.
static enum msc_status read_outputs(struct rule_joint *j, const struct rule_parser *p,
                                    const struct msc_text_joint *from) {
    if (from->outputs.n > 8) {
        return MSC_TEXT_FAIL(p->r, &j->name, "'%s' has more than 8 outputs", j->name.text);
    }
    j->n_outputs = (int)from->outputs.n;
    for (size_t i = 0; i < from->outputs.n; i++) {
        const struct msc_text_token *name = &from->outputs.items[i].name;
        int output;
        size_t length = split_name(&output, name->text);
        if (find_joint(p->joints, name->text, length) != p->joints->n - 1 || output != (int)i) {
            return MSC_TEXT_FAIL(p->r, name, "output %d of '%s' is called %s:%d, found '%s'",
                                 (int)i, j->name.text, j->name.text, (int)i, name->text);
        }
    }
    return MSC_OK;
}

static enum msc_status parse_joint(const struct rule_parser *p, const struct msc_text_joint *from) {
    struct rule_joints *joints = p->joints;
    MSC_TRY(make_room(p->r, &from->name, joints->n, MSC_RULE_MOST_JOINTS, "joints on a side"));
    struct rule_joint *j = &joints->items[joints->n];
    *j = (struct rule_joint){.name = from->name, .replaced_joint = -1, .scope = from->scope.text};
    if (from->optype.kind == MSC_TEXT_NONE || !msc_op_find(&j->op, from->optype.text)) {
        return MSC_TEXT_FAIL(p->r, &from->name, "'%s': expected OPTYPE: and an operator%s%s",
                             from->name.text, from->optype.text ? ", found " : "",
                             from->optype.text ? from->optype.text : "");
    }
    if (j->op == MSC_OP_INPUT || from->n_graphs > 0) {
        return MSC_TEXT_FAIL(p->r, &from->name, "'%s': a rule has no %s", from->name.text,
                             from->n_graphs > 0 ? "GRAPH:"
                                                : "inputs; a name that no joint has "
                                                  "matches any tensor");
    }
    if (find_joint(joints, from->name.text, strlen(from->name.text)) >= 0 ||
        (!p->is_new && msc_rule__find_tensor(p->rule, from->name.text) >= 0)) {
        return MSC_TEXT_FAIL(p->r, &from->name, "the name '%s' is already used", from->name.text);
    }
    MSC_TRY(read_attr_list(j, p, &from->attrs));
    MSC_TRY(read_operands(j, p, from));
    joints->n++;
    return read_outputs(j, p, from);
}

static enum msc_status parse_joints(const struct rule_parser *p) {
    struct msc_text_joints list = {0};
    MSC_TRY(msc_text_read_joints(&list, p->r));
    for (size_t i = 0; i < list.n; i++) {
        MSC_TRY(parse_joint(p, &list.items[i]));
    }
    return MSC_OK;
}

// ---- The pattern ------------------------------------------------------------------------------

// True if joint `a` of the pattern reads an output of joint `b`.
static bool reads_output(const struct rule *rule, int a, int b) {
    const struct rule_joint *j = &rule->match.items[a];
    for (int i = 0; i < j->n_operands; i++) {
        if (j->operands[i].kind == RULE_TENSOR && rule->tensors[j->operands[i].tensor].joint == b) {
            return true;
        }
    }
    return false;
}

static bool share_operand(const struct rule *rule, int a, int b) {
    const struct rule_joint *x = &rule->match.items[a], *y = &rule->match.items[b];
    for (int i = 0; i < x->n_operands; i++) {
        for (int k = 0; k < y->n_operands; k++) {
            if (x->operands[i].kind == RULE_TENSOR && y->operands[k].kind == RULE_TENSOR &&
                x->operands[i].tensor == y->operands[k].tensor) {
                return true;
            }
        }
    }
    return false;
}

// The next joint to match: one whose output a joint in `order` reads, else one that shares a tensor
// with these joints. -1: there is none.
static int next_joint(const struct rule *rule, int n, const bool is_done[]) {
    for (int pass = 0; pass < 3; pass++) {
        for (int a = 0; a < n; a++) {
            for (int b = 0; b < rule->match.n; b++) {
                int from = rule->order[a];
                bool fits = pass == 0   ? reads_output(rule, from, b)
                            : pass == 1 ? reads_output(rule, b, from)
                                        : share_operand(rule, from, b);
                if (!is_done[b] && fits) {
                    return b;
                }
            }
        }
    }
    return -1;
}

static enum msc_status order_joints(const struct rule_parser *p) {
    struct rule *rule = p->rule;
    bool is_done[MSC_RULE_MOST_JOINTS] = {false};
    if (rule->match.n == 0) {
        return msc_text_unexpected(p->r, "a joint of the pattern: ID NAME ...");
    }
    for (int i = 0; i < rule->match.n; i++) {
        int joint = i == 0 ? rule->match.n - 1 : next_joint(rule, i, is_done);
        if (joint < 0) {
            return MSC_TEXT_FAIL(p->r, &rule->place,
                                 "rule %s: the joints of the pattern are not connected",
                                 rule->name);
        }
        rule->order[i] = joint;
        is_done[joint] = true;
    }
    return MSC_OK;
}

static enum msc_status parse_match(struct rule_parser *p) {
    int tensor;
    MSC_TRY(msc_text_expect(p->r, '{'));
    MSC_TRY(parse_joints(p));
    MSC_TRY(order_joints(p));
    for (int i = 0; i < p->rule->match.n; i++) { // each joint's first output can be named
        MSC_TRY(read_name(&tensor, p, &p->rule->match.items[i].name));
    }
    return msc_text_expect(p->r, '}');
}

static enum msc_status parse_where(struct rule_parser *p) {
    struct rule *rule = p->rule;
    bool is_more = true;
    MSC_TRY(msc_text_expect(p->r, '{'));
    while (is_more) {
        MSC_TRY(msc_text_grow(&rule->conditions, (size_t)rule->n_conditions,
                              sizeof(rule->conditions[0]), p->r));
        MSC_TRY(msc_rule__parse_expr(&rule->conditions[rule->n_conditions], p->r, rule));
        rule->n_conditions++;
        is_more = msc_text_is(p->r, ',');
        MSC_TRY(is_more ? msc_text_next(p->r) : MSC_OK);
    }
    return msc_text_is(p->r, '}') ? msc_text_next(p->r)
                                  : msc_text_unexpected(p->r, "',' and a condition, or '}'");
}

static enum msc_status parse_keep(struct rule_parser *p) {
    bool is_more = true;
    while (is_more) {
        struct msc_text_token name;
        MSC_TRY(msc_text_take(&name, p->r, "the name of a joint of the pattern"));
        int joint = find_joint(&p->rule->match, name.text, strlen(name.text));
        if (joint < 0) {
            return MSC_TEXT_FAIL(p->r, &name, "the pattern has no joint '%s'", name.text);
        }
        p->rule->match.items[joint].is_kept = true;
        is_more = msc_text_is(p->r, ',');
        MSC_TRY(is_more ? msc_text_next(p->r) : MSC_OK);
    }
    return MSC_OK;
}

static enum msc_status parse_tolerance(struct rule_parser *p) {
    struct msc_text_token number;
    MSC_TRY(msc_text_take(&number, p->r, "a number above 0, such as 1e-4"));
    return msc_parse_double(&p->rule->tolerance, number.text) && p->rule->tolerance > 0 &&
                   p->rule->tolerance <= 1
               ? MSC_OK
               : MSC_TEXT_FAIL(p->r, &number, "expected a number above 0 and at most 1, found '%s'",
                               number.text);
}

// ---- The replacement --------------------------------------------------------------------------

static bool is_result(const struct rule *rule, int tensor) {
    for (int i = 0; i < rule->n_results; i++) {
        if (rule->results[i].from == tensor) {
            return true;
        }
    }
    return false;
}

static enum msc_status add_result(const struct rule_parser *p, const struct msc_text_token *place,
                                  int from, int to) {
    struct rule *rule = p->rule;
    if (is_result(rule, from)) {
        return MSC_TEXT_FAIL(p->r, place, "'%s' is replaced twice", rule->tensors[from].name);
    }
    MSC_TRY(make_room(p->r, place, rule->n_results, MSC_RULE_MOST_TENSORS, "results"));
    rule->results[rule->n_results++] = (struct rule_result){from, to};
    rule->match.items[rule->tensors[from].joint].is_replaced = true;
    return MSC_OK;
}

// A joint with the name of a joint of the pattern replaces it, output by output.
static enum msc_status add_replaced(const struct rule_parser *p) {
    struct rule *rule = p->rule;
    for (int i = 0; i < rule->replace.n; i++) {
        struct rule_joint *j = &rule->replace.items[i];
        j->replaced_joint = find_joint(&rule->match, j->name.text, strlen(j->name.text));
        for (int k = 0; j->replaced_joint >= 0 && k < (j->n_outputs > 0 ? j->n_outputs : 1); k++) {
            int from, to;
            const char *name =
                k == 0 ? j->name.text : msc_arena_printf(p->r->arena, "%s:%d", j->name.text, k);
            MSC_TRY(MSC_ALLOCATED(name));
            struct rule_tensor t = {.name = name, .joint = j->replaced_joint, .output = k};
            MSC_TRY(add_tensor(&from, p, &j->name, t));
            t.joint = i;
            t.is_new = true;
            MSC_TRY(add_tensor(&to, p, &j->name, t));
            MSC_TRY(add_result(p, &j->name, from, to));
        }
    }
    return MSC_OK;
}

// Reads "y = x": readers of y read x instead.
static enum msc_status parse_results(struct rule_parser *p) {
    while (!msc_text_is(p->r, '}')) {
        struct msc_text_token from, to;
        int from_tensor, to_tensor, output;
        MSC_TRY(msc_text_take(&from, p->r, "a joint (ID NAME ...), NAME = NAME, or '}'"));
        MSC_TRY(msc_text_expect(p->r, '='));
        MSC_TRY(msc_text_take(&to, p->r, "the name of a tensor"));
        size_t length = split_name(&output, from.text);
        int joint = find_joint(&p->rule->match, from.text, length);
        if (joint < 0) {
            return MSC_TEXT_FAIL(p->r, &from, "the pattern has no joint '%s'", from.text);
        }
        MSC_TRY(read_name(&to_tensor, p, &to));
        struct rule_tensor t = {.name = from.text, .joint = joint, .output = output};
        MSC_TRY(add_tensor(&from_tensor, p, &from, t));
        MSC_TRY(add_result(p, &from, from_tensor, to_tensor));
    }
    return msc_text_next(p->r);
}

// The replacement must not read tensors that it replaces. Joints whose outputs it reads remain.
static enum msc_status check_read(const struct rule_parser *p, int tensor,
                                  const struct msc_text_token *place) {
    struct rule *rule = p->rule;
    const struct rule_tensor *t = &rule->tensors[tensor];
    if (t->joint >= 0 && !t->is_new) {
        rule->match.items[t->joint].is_kept = true;
    }
    return is_result(rule, tensor)
               ? MSC_TEXT_FAIL(p->r, place, "the replacement reads '%s', which it replaces",
                               t->name)
               : MSC_OK;
}

// A joint that is kept needs the joints that it reads.
static void keep_producers(struct rule *rule) {
    for (int i = rule->match.n - 1; i >= 0; i--) {
        const struct rule_joint *j = &rule->match.items[i];
        for (int k = 0; j->is_kept && k < j->n_operands; k++) {
            int tensor = j->operands[k].tensor;
            if (j->operands[k].kind == RULE_TENSOR && rule->tensors[tensor].joint >= 0 &&
                !is_result(rule, tensor)) {
                rule->match.items[rule->tensors[tensor].joint].is_kept = true;
            }
        }
    }
}

static enum msc_status check_replacement(const struct rule_parser *p) {
    const struct rule *rule = p->rule;
    for (int i = 0; i < rule->replace.n; i++) {
        const struct rule_joint *j = &rule->replace.items[i];
        if (j->op == MSC_OP_EXTERNAL && !rule->holds) {
            return MSC_TEXT_FAIL(p->r, &j->name, "'%s': msc.external needs 'replace holding'",
                                 j->name.text);
        }
        for (int k = 0; k < j->n_operands; k++) {
            MSC_TRY(j->operands[k].kind == RULE_TENSOR
                        ? check_read(p, j->operands[k].tensor, &j->name)
                        : MSC_OK);
        }
    }
    for (int i = 0; i < rule->n_results; i++) {
        MSC_TRY(check_read(p, rule->results[i].to, &rule->place));
    }
    keep_producers(p->rule);
    MSC_TRY(rule->holds ? make_room(p->r, &rule->place, rule->match.n - 1, MSC_MATCH_MOST,
                                    "joints that a joint can hold")
                        : MSC_OK);
    if (rule->holds && (rule->replace.n != 1 || rule->n_results != 1 ||
                        rule->replace.items[0].replaced_joint != rule->match.n - 1)) {
        return MSC_TEXT_FAIL(p->r, &rule->place,
                             "rule %s: replace holding needs one joint, with the name of the last "
                             "joint of the pattern",
                             rule->name);
    }
    return MSC_OK;
}

static enum msc_status parse_replace(struct rule_parser *p) {
    p->joints = &p->rule->replace;
    p->is_new = true;
    p->rule->holds = msc_text_is_word(p->r, "holding");
    MSC_TRY(p->rule->holds ? msc_text_next(p->r) : MSC_OK);
    MSC_TRY(msc_text_expect(p->r, '{'));
    MSC_TRY(parse_joints(p));
    MSC_TRY(add_replaced(p));
    MSC_TRY(parse_results(p));
    if (p->rule->n_results == 0) {
        return MSC_TEXT_FAIL(p->r, &p->rule->place,
                             "rule %s: the replacement replaces no joint of the pattern; give a "
                             "joint the name of the joint that it replaces, or write NAME = NAME",
                             p->rule->name);
    }
    return check_replacement(p);
}

// ---- Rules ------------------------------------------------------------------------------------

static enum msc_status parse_parts(struct rule_parser *p) {
    static const struct {
        const char *word;
        enum msc_status (*parse)(struct rule_parser *p);
    } parts[] = {{"where", parse_where}, {"keep", parse_keep}, {"tolerance", parse_tolerance}};
    if (!msc_text_is_word(p->r, "match")) {
        return msc_text_unexpected(p->r, "match { ... }");
    }
    MSC_TRY(msc_text_next(p->r));
    MSC_TRY(parse_match(p));
    while (!msc_text_is_word(p->r, "replace")) {
        size_t i = 0, n = sizeof(parts) / sizeof(parts[0]);
        while (i < n && !msc_text_is_word(p->r, parts[i].word)) {
            i++;
        }
        if (i == n) {
            return msc_text_unexpected(p->r, "where, keep, tolerance or replace");
        }
        MSC_TRY(msc_text_next(p->r));
        MSC_TRY(parts[i].parse(p));
    }
    MSC_TRY(msc_text_next(p->r));
    return parse_replace(p);
}

enum msc_status msc_rule__parse(struct rule *rule, struct msc_text_reader *r) {
    struct rule_parser p = {.r = r, .rule = rule, .joints = &rule->match};
    MSC_TRY(msc_text_is_word(r, "rule") ? msc_text_next(r)
                                        : msc_text_unexpected(r, "rule NAME { ... }"));
    MSC_TRY(msc_text_take(&rule->place, r, "the name of a rule"));
    rule->name = rule->place.text;
    MSC_TRY(msc_text_expect(r, '{'));
    MSC_TRY(parse_parts(&p));
    return msc_text_expect(r, '}');
}
