// Internals of rules, shared by graph/rules/*.c.
#ifndef MSC_GRAPH_RULES_RULES_INTERNAL_H
#define MSC_GRAPH_RULES_RULES_INTERNAL_H

#include "base/alloc.h"
#include "graph/builder_internal.h"
#include "graph/graph_internal.h"
#include "graph/rules/rules.h"
#include "graph/text.h"

enum {
    MSC_RULE_MOST_JOINTS = 32,  // in a pattern
    MSC_RULE_MOST_TENSORS = 64, // variables and outputs of joints in a pattern
    MSC_RULE_MOST_ATTRS = 64,   // attribute variables
    MSC_RULE_MOST_NUMBERS = 16, // elements of a list in an expression
};

// ---- Expressions (rules_expr.c) ---------------------------------------------------------------

enum rule_kind { RULE_NUMBER, RULE_LIST, RULE_TEXT };

// The text of an attribute that encodes a number or a list is converted where it is needed.
struct rule_value {
    enum rule_kind kind;
    double number;
    int n;
    double list[MSC_RULE_MOST_NUMBERS];
    const char *text;
};

struct rule_expr {
    enum {
        RULE_EXPR_LITERAL,
        RULE_EXPR_ATTR,     // `index`: attribute variable
        RULE_EXPR_TENSOR,   // `index`: tensor; only as an argument of a function
        RULE_EXPR_ELEMENT,  // args[0][args[1]]
        RULE_EXPR_FUNCTION, // `index`: row of the table of functions
        RULE_EXPR_BINARY,   // `index`: '+', '-', '*', '/', or enum rule_relation
    } kind;
    int index;
    struct rule_value literal;
    int n_args;
    struct rule_expr *args[3];
};

// ---- Rules (rules_parse.c) --------------------------------------------------------------------

// An operand of a joint in a pattern or a replacement.
struct rule_operand {
    enum { RULE_ABSENT, RULE_TENSOR, RULE_SCALAR } kind;
    int tensor;                    // number of the tensor in the rule
    const struct rule_expr *value; // of a scalar constant
};

struct rule_attr {
    const char *key;
    const char *text;              // NULL: `variable` or `value`
    int variable;                  // of a pattern: attribute variable
    const struct rule_expr *value; // of a replacement
};

struct rule_joint {
    struct msc_text_token name;
    enum msc_op op;
    int n_operands; // in the order of the operator's roles
    struct rule_operand *operands;
    int n_attrs;
    struct rule_attr *attrs;
    int n_outputs;  // 0: not given
    int outputs[8]; // numbers of tensors; -1: not named in the rule
    const char *scope;
    bool is_kept;       // of a pattern: remains if it has other readers
    bool is_replaced;   // of a pattern: a joint of the replacement has the same name
    int replaced_joint; // of a replacement: joint of the pattern with the same name, or -1
};

struct rule_joints {
    int n;
    struct rule_joint items[MSC_RULE_MOST_JOINTS];
};

// A tensor of the rule: a variable, or output `output` of a joint of the pattern or replacement.
struct rule_tensor {
    const char *name; // "x", "split:1"
    int joint;        // -1: a variable
    int output;
    bool is_new; // `joint` belongs to the replacement
};

struct rule_result {
    int from; // tensor of the pattern
    int to;   // tensor of the pattern or the replacement
};

struct rule {
    const char *name;
    struct msc_text_token place;
    double tolerance; // 0: by element type
    struct rule_joints match, replace;
    int order[MSC_RULE_MOST_JOINTS]; // in which the joints of the pattern are matched
    int n_tensors;
    struct rule_tensor tensors[MSC_RULE_MOST_TENSORS];
    int n_attrs;
    const char *attrs[MSC_RULE_MOST_ATTRS]; // names of attribute variables, without '$'
    int n_conditions;
    const struct rule_expr **conditions;
    bool holds; // the joints of the match become the body of the only joint of the replacement
    int n_results;
    struct rule_result results[MSC_RULE_MOST_TENSORS];
};

struct msc_rules {
    struct msc_arena arena;
    const char *name; // of the text
    size_t n;
    struct rule **items;
};

// Reads "rule NAME { ... }". *rule is zero; its texts are in the reader's arena.
enum msc_status msc_rule__parse(struct rule *rule, struct msc_text_reader *r);

// ---- Matches (rules_match.c) ------------------------------------------------------------------

struct rule_match {
    const struct rule *rule;
    const struct msc_graph *graph;
    int32_t joints[MSC_RULE_MOST_JOINTS];
    int32_t tensors[MSC_RULE_MOST_TENSORS]; // MSC_NO_ID: not bound (yet)
    const char *attrs[MSC_RULE_MOST_ATTRS]; // NULL: not bound (yet)
    int64_t n_steps;
};

// Finds the match whose last joint is `joint`. MSC_E_INVALID if there are too many ways to match.
enum msc_status msc_rule__match(bool *found, struct rule_match *m, const struct rule *rule,
                                const struct msc_graph *g, int32_t joint);

// Parses an expression up to a token that does not continue it. The names of tensors and attributes
// must be known.
enum msc_status msc_rule__parse_expr(const struct rule_expr **out, struct msc_text_reader *r,
                                     const struct rule *rule);
// Like msc_rule__parse_expr, but the expression is the whole text of a token.
enum msc_status msc_rule__parse_value(const struct rule_expr **out, struct msc_text_reader *r,
                                      const struct msc_text_token *token, const struct rule *rule);
// False if the expression has no value for this match.
bool msc_rule__evaluate(struct rule_value *out, const struct rule_expr *e,
                        const struct rule_match *m);
bool msc_rule__number(double *out, const struct rule_expr *e, const struct rule_match *m);
bool msc_rule__is_true(const struct rule_expr *e, const struct rule_match *m);
bool msc_rule__is_near(double a, double b, double tolerance);
// True if two attributes are the same text, or lists of numbers that are near each other. "2" and
// "2," are the same list.
bool msc_rule__are_near(const char *a, const char *b, double tolerance);
// Finds a tensor or an attribute variable of the rule by name; -1 if there is none.
int msc_rule__find_tensor(const struct rule *rule, const char *name);
int msc_rule__find_attr(const struct rule *rule, const char *name);

// ---- The joints of a match alone (rules_lone.c) -----------------------------------------------

// A graph with copies of the joints of a match. To make one, set only `match`. The graph is
// builder.graph; finish the struct afterwards, even if a call failed.
struct rule_lone {
    const struct rule_match *match;
    bool is_body;
    struct msc_builder builder;
    int64_t *symbols; // [n_prims] lengths that symbols are bound to
    size_t n;
    struct rule_lone_value {
        int32_t tensor; // in the graph of the match
        struct msc_value *value;
    } * values;
    const char *joints[MSC_RULE_MOST_JOINTS];   // names of the copies
    const char *tensors[MSC_RULE_MOST_TENSORS]; // NULL: not bound
};

// Symbols are bound to numbers. The inputs are the activations that the match reads. The outputs
// are the results, then those of joints that are kept.
enum msc_status msc_rule__build_lone(struct rule_lone *s);
// Symbols remain. The inputs are the operands of the replacement's only joint, and its result is
// the only output. MSC_E_INVALID if the match reads another activation.
enum msc_status msc_rule__build_body(struct rule_lone *s);
void msc_rule__finish_lone(struct rule_lone *s);

// ---- Rewriting (rules_replace.c, rules_check.c) -----------------------------------------------

// Replaces a match and finalizes the graph; ids change. *done is false, and nothing changes, if the
// joint of the replacement cannot hold the joints of the match. m->graph is `g`.
enum msc_status msc_rule__replace(bool *done, struct msc_graph *g, const struct rule_match *m);
// Computes both sides of a match and compares them. The message of MSC_E_INVALID tells the
// difference. `seen` holds hashes of matches that were compared before.
struct rule_checks {
    struct msc_hash *seen;
    size_t n, capacity;
    struct msc_array_list *counterexample; // may be NULL
};
enum msc_status msc_rule__check(struct rule_checks *checks, const struct rule_match *m);

#endif
