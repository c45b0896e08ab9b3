// Rewriting by rules: which joints match, what replaces them, which rules are refused.
#include "tests/graph/graph_samples.h"

#include "base/alloc.h"
#include "graph/rules/rules.h"

#include <stdio.h>

#define RULE(match, rest) "rule r {\n match {\n" match "\n }\n" rest "\n}\n"
#define RELU_TWICE                                                                                 \
    RULE("ID a IN: x OPTYPE: nn.relu ID y IN: a OPTYPE: nn.relu",                                  \
         "replace { ID y IN: x OPTYPE: nn.relu }")

static struct msc_graph *read_graph(const char *joints, const char *outputs) {
    struct msc_graph *g;
    char text[2048];
    snprintf(text, sizeof text, "g <OUTPUTS: %s> ID x OUT: x<N,4|float32> OPTYPE: input\n%s",
             outputs, joints);
    assert_ok(msc_graph_read_text(&g, text, strlen(text), "g.msc", NULL, NULL));
    return g;
}

static enum msc_status apply(struct msc_graph *g, const char *text, int64_t *n, int64_t most,
                             struct msc_array_list *example) {
    struct msc_rules *rules;
    int64_t counts[8] = {0};
    assert_ok(msc_rules_read(&rules, text, strlen(text), "r.msc"));
    enum msc_status status = msc_rules_apply(
        g, counts, rules, &(struct msc_rules_options){.most = most, .counterexample = example});
    for (size_t i = 0; n != NULL && i < msc_rules_count(rules); i++) {
        *n = i == 0 ? counts[0] : *n + counts[i];
    }
    msc_rules_destroy(rules);
    return status;
}

// Applies the rules and compares the number of rewrites and the operators of the joints that are
// left, such as "input nn.relu".
static void check_rewrites(const char *joints, const char *outputs, const char *rules, int64_t n,
                           const char *left) {
    struct msc_graph *g = read_graph(joints, outputs);
    struct msc_str ops = {0};
    int64_t found;
    assert_ok(apply(g, rules, &found, 0, NULL));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        msc_str_append(&ops, i > 0 ? " " : "");
        msc_str_append(&ops, msc_op_info(msc_graph_joint(g, i)->op)->name);
    }
    if (found != n) {
        print_error("%s", rules);
    }
    assert_int_equal(found, n);
    assert_string_equal(msc_str_text(&ops), left);
    msc_str_finish(&ops);
    msc_graph_destroy(g);
}

// ---- Matching ---------------------------------------------------------------------------------

static void test_graph_rules__commutative(void **state) {
    (void)state;
    static const char gate[] = RULE("ID s IN: x OPTYPE: tanh ID y IN: x,s OPTYPE: multiply",
                                    "replace { ID t IN: x OPTYPE: tanh\n"
                                    "ID n IN: x OPTYPE: negative\n"
                                    "ID m IN: n,t OPTYPE: multiply\n"
                                    "ID y IN: m OPTYPE: negative }");
    const char *after = "input tanh negative multiply negative";
    check_rewrites("ID t IN: x OPTYPE: tanh ID y IN: x,t OPTYPE: multiply", "y", gate, 1, after);
    check_rewrites("ID t IN: x OPTYPE: tanh ID y IN: t,x OPTYPE: multiply", "y", gate, 1, after);
    // subtract is not commutative.
    static const char less[] =
        RULE("ID s IN: x OPTYPE: tanh ID y IN: x,s OPTYPE: subtract", "replace { y = x }");
    check_rewrites("ID t IN: x OPTYPE: tanh ID y IN: t,x OPTYPE: subtract", "y", less, 0,
                   "input tanh subtract");
}

// The first order of the operands of y fits y alone, but then the operands of b do not fit.
static void test_graph_rules__backtracks(void **state) {
    (void)state;
    static const char pick[] = RULE("ID s IN: p,q OPTYPE: add\n"
                                    "ID t IN: q OPTYPE: tanh\n"
                                    "ID y IN: s,t OPTYPE: multiply",
                                    "replace { ID d IN: p OPTYPE: negative\n"
                                    "ID e IN: q,d OPTYPE: subtract\n"
                                    "ID y IN: e,t OPTYPE: multiply }");
    const char *inner = "ID n IN: x OPTYPE: abs ID m IN: x OPTYPE: exp\n";
    char joints[512];
    for (int turn = 0; turn < 2; turn++) {
        snprintf(joints, sizeof joints,
                 "%sID s IN: %s OPTYPE: add ID t IN: m OPTYPE: tanh ID y IN: t,s OPTYPE: multiply",
                 inner, turn ? "n,m" : "m,n");
        check_rewrites(joints, "y", pick, 1, "input abs exp tanh negative subtract multiply");
    }
}

static void test_graph_rules__fixed_point(void **state) {
    (void)state;
    check_rewrites("ID a IN: x OPTYPE: nn.relu ID b IN: a OPTYPE: nn.relu\n"
                   "ID c IN: b OPTYPE: nn.relu ID d IN: c OPTYPE: nn.relu",
                   "d", RELU_TWICE, 3, "input nn.relu");
}

// Joints that others read remain only if the rule keeps them.
static void test_graph_rules__other_readers(void **state) {
    (void)state;
    const char *joints = "ID a IN: x OPTYPE: nn.relu ID b IN: a OPTYPE: nn.relu\n"
                         "ID c IN: a OPTYPE: tanh";
    check_rewrites(joints, "b,c", RELU_TWICE, 0, "input nn.relu nn.relu tanh");
    check_rewrites(joints, "b,c",
                   RULE("ID a IN: x OPTYPE: nn.relu ID y IN: a OPTYPE: nn.relu",
                        "keep a replace { ID y IN: x,0 OPTYPE: maximum }"),
                   1, "input nn.relu tanh constant maximum");
    // A joint whose output the replacement reads is kept.
    check_rewrites(
        joints, "b,c",
        RULE("ID a IN: x OPTYPE: nn.relu ID y IN: a OPTYPE: nn.relu", "replace { y = a }"), 1,
        "input nn.relu tanh");
    // A kept joint needs the joints that it reads, even if another of their outputs is replaced.
    check_rewrites("ID s IN: x OUT: s:0,s:1 OPTYPE: split ATTRS: axis=1 indices_or_sections=2\n"
                   "ID t IN: s:0 OPTYPE: tanh ID r IN: s:1 OPTYPE: nn.relu",
                   "t,r",
                   RULE("ID s IN: x OPTYPE: split ATTRS: axis=1 indices_or_sections=2\n"
                        "ID t IN: s:0 OPTYPE: tanh",
                        "keep t replace { ID c IN: x OPTYPE: strided_slice ATTRS: axes=1 begin=2 "
                        "end=4 s:1 = c }"),
                   1, "input split tanh strided_slice nn.relu");
    // An inner output of the graph has a reader, too.
    check_rewrites("ID a IN: x OPTYPE: nn.relu ID b IN: a OPTYPE: nn.relu", "a,b", RELU_TWICE, 0,
                   "input nn.relu nn.relu");
}

static void test_graph_rules__several_results(void **state) {
    (void)state;
    static const char rule[] =
        RULE("ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: exp",
             "replace { ID e IN: x OPTYPE: exp\n"
             "ID b IN: e OPTYPE: reciprocal\n"
             "ID z IN: x,x OPTYPE: subtract ID a IN: z,x OPTYPE: subtract }");
    check_rewrites("ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: exp ID c IN: a OPTYPE: tanh",
                   "b,c", rule, 1, "input subtract subtract tanh exp reciprocal");
    // Outputs of one joint, one of which has no reader.
    static const char halves[] =
        RULE("ID s IN: x OUT: s:0,s:1 OPTYPE: split ATTRS: axis=1 indices_or_sections=2\n"
             "ID y IN: s:1 OPTYPE: nn.relu",
             "replace { ID r IN: x OPTYPE: nn.relu\n"
             "ID t IN: r OUT: t:0,t:1 OPTYPE: split ATTRS: axis=1 indices_or_sections=2\n"
             "y = t:1 }");
    check_rewrites("ID s IN: x OUT: s:0,s:1 OPTYPE: split ATTRS: axis=1 indices_or_sections=2\n"
                   "ID y IN: s:1 OPTYPE: nn.relu",
                   "y", halves, 1, "input nn.relu split");
}

// If one of two parallel joints depends on the other, the replacement would be part of a cycle.
static void test_graph_rules__no_cycle(void **state) {
    (void)state;
    static const char rule[] =
        RULE("ID a IN: c,p OPTYPE: subtract ID b IN: c,q OPTYPE: subtract",
             "where { shape(p) == shape(q) }\n"
             "replace { ID s IN: p,q OPTYPE: add\n"
             "ID d IN: s,q OPTYPE: subtract ID a IN: c,d OPTYPE: subtract\n"
             "ID e IN: s,p OPTYPE: subtract ID b IN: c,e OPTYPE: subtract }");
    static const char apart[] = "ID p IN: x OPTYPE: tanh ID q IN: x OPTYPE: nn.relu\n"
                                "ID a IN: x,p OPTYPE: subtract ID b IN: x,q OPTYPE: subtract";
    static const char chained[] = "ID p IN: x OPTYPE: tanh ID a IN: x,p OPTYPE: subtract\n"
                                  "ID q IN: a OPTYPE: nn.relu ID b IN: x,q OPTYPE: subtract";
    struct msc_graph *g = read_graph(apart, "a,b");
    // Each new pair of subtractions matches again, so the rule reaches its limit.
    assert_int_equal(apply(g, rule, NULL, 2, NULL), MSC_E_INVALID);
    assert_message("r.msc:1:6: rule r still matches after 2 rewrites, which is the limit");
    msc_graph_destroy(g);
    check_rewrites(chained, "a,b", rule, 0, "input tanh subtract nn.relu subtract");
}

static void test_graph_rules__names(void **state) {
    (void)state;
    int64_t n;
    struct msc_graph *g = read_graph(
        "ID first IN: x OPTYPE: nn.relu ID last IN: first OPTYPE: nn.relu SCOPE: a.b", "last");
    assert_ok(apply(g,
                    RULE("ID a IN: x OPTYPE: nn.relu ID y IN: a OPTYPE: nn.relu SCOPE: a.*",
                         "replace { ID m IN: x OPTYPE: negative\n"
                         "ID w IN: m OPTYPE: negative SCOPE: other ID y IN: w,0 OPTYPE: maximum }"),
                    &n, 0, NULL));
    assert_int_equal(n, 1);
    const struct msc_joint *y = msc_graph_joint(g, msc_graph_find_joint(g, "last"));
    const struct msc_joint *m = msc_graph_joint(g, msc_graph_find_joint(g, "last_m"));
    assert_string_equal(y->scope, "a.b");
    assert_string_equal(m->scope, "a.b");
    assert_string_equal(msc_graph_joint(g, msc_graph_find_joint(g, "last_w"))->scope, "other");
    assert_string_equal(msc_graph_tensor(g, msc_graph_output(g, 0))->alias, "last");
    msc_graph_destroy(g);
    // An output of the graph is not replaced by an input, whose name it would take.
    static const char twice[] =
        RULE("ID a IN: x OPTYPE: negative ID y IN: a OPTYPE: negative", "replace { y = x }");
    check_rewrites("ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: negative", "b", twice, 0,
                   "input negative negative");
    check_rewrites("ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: negative\n"
                   "ID c IN: b OPTYPE: tanh",
                   "c", twice, 1, "input tanh");
}

// ---- Conditions -------------------------------------------------------------------------------

static void test_graph_rules__conditions(void **state) {
    (void)state;
    static const struct {
        const char *condition;
        bool is_true;
    } cases[] = {
        {"rank(x) == 2", true},
        {"rank(x) != 2", false},
        {"rank(x) > 1, rank(x) >= 2, rank(x) < 3, rank(x) <= 2", true},
        {"rank(x) > 2", false},
        {"dim(x, 1) == 4, dim(x, -1) == 4", true},
        {"dim(x, 2) == 4", false},
        {"dim(x, 2) != 4", false}, // there is no axis 2
        {"dim(x, 0) == dim(y, 1)", true},
        {"dim(x, 0) == dim(x, 1)", false},
        {"dim(x, 0) > 0", false}, // a symbol
        {"shape(x) == shape(x)", true},
        {"shape(x) == shape(y)", false},
        {"dtype(x) == \"float32\"", true},
        {"dtype(x) == \"float16\"", false},
        {"is_constant(x)", false},
        {"value(x) == 1", false},
        {"$axes == \"1,0\"", true},
        {"$axes == \"0,1\"", false},
        {"$axes[0] == 1, $axes[-1] == 0", true},
        {"$axes[2] == 0", false},
        {"$axes[$axes] == \"0,1\"", true},
        {"length($axes) == 2", true},
        {"axes(x, $axes) == \"1,0\"", true},
        {"axes(x, -1) == 1", true},
        {"near(0.5, 0.50001, 1e-4)", true},
        {"near(0.5, 0.51, 1e-4)", false},
        {"1 + 2 * 3 - 4 / 2 == 5", true},
        {"(1 + 2) * 3 == 9", true},
        {"sqrt(16) == rank(x) * 2", true},
        {"sqrt(0 - 1) == 0", false},
        {"1 / 0 > 1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rule[512];
        snprintf(rule, sizeof rule,
                 RULE("ID y IN: x OPTYPE: permute_dims ATTRS: axes=$axes",
                      "where { %s } replace { ID r IN: x OPTYPE: identity\n"
                      "ID y IN: r OPTYPE: permute_dims ATTRS: axes=$axes }"),
                 cases[i].condition);
        struct msc_graph *g = read_graph("ID p IN: x OPTYPE: permute_dims ATTRS: axes=1,0", "p");
        enum msc_status status = apply(g, rule, NULL, 1, NULL);
        if ((status == MSC_E_INVALID) != cases[i].is_true) {
            print_error("%s\n", cases[i].condition);
        }
        // The new joint matches again, so a rule that matches reaches its limit.
        assert_int_equal(status, cases[i].is_true ? MSC_E_INVALID : MSC_OK);
        msc_graph_destroy(g);
    }
}

// ---- Checks -----------------------------------------------------------------------------------

static void test_graph_rules__wrong_rule(void **state) {
    (void)state;
    struct msc_array_list example = {0};
    struct msc_graph *g = read_graph("ID a IN: x OPTYPE: tanh", "a");
    const char *rule = "# y is not x beyond small numbers\n" RULE(
        "ID y IN: x OPTYPE: tanh", "replace { ID y IN: x OPTYPE: sigmoid }");
    assert_int_equal(apply(g, rule, NULL, 0, &example), MSC_E_INVALID);
    assert_message("r.msc:2:6: rule r is refused: at joint 'a': element ");
    assert_message("of 'y' is ");
    assert_message("on random inputs of seed 1 (difference ");
    const struct msc_array *x = msc_array_list_find(&example, "x");
    const struct msc_array *left = msc_array_list_find(&example, "match.y");
    const struct msc_array *right = msc_array_list_find(&example, "replace.y");
    assert_non_null(x);
    assert_int_equal(msc_array_n_dims(x), 2);
    assert_int_equal(msc_array_dim(x, 1), 4);
    double largest = 0;
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        double difference = msc_array_get_double(left, i) - msc_array_get_double(right, i);
        largest = difference > largest ? difference : -difference > largest ? -difference : largest;
    }
    assert_true(largest > 0.5);
    msc_array_list_finish(&example);
    msc_graph_destroy(g);
}

// The check binds N to 4, so only the shapes in the graph show that these rules are wrong.
static void test_graph_rules__fixed_length(void **state) {
    static const char network[] = "ID a IN: x OPTYPE: nn.relu\n"
                                  "ID b IN: a OPTYPE: reshape ATTRS: shape=-1,%d";
    static const char pattern[] = "ID a IN: x OPTYPE: nn.relu\n"
                                  "ID y IN: a OPTYPE: reshape ATTRS: shape=-1,%d";
    static const char replacement[] = "replace { ID q IN: x OPTYPE: reshape ATTRS: shape=%s\n"
                                      "ID r IN: q OPTYPE: nn.relu y = r }";
    static const struct {
        int width;
        const char *shape, *message;
    } cases[] = {
        {4, "4,4", "4 in place of 7"},  // N is 4
        {2, "8,2", "8 in place of 14"}, // 2N is 8
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char joints[200], match[200], replace[200], rule[800];
        snprintf(joints, sizeof joints, network, cases[i].width);
        snprintf(match, sizeof match, pattern, cases[i].width);
        snprintf(replace, sizeof replace, replacement, cases[i].shape);
        snprintf(rule, sizeof rule, RULE("%s", "%s"), match, replace);
        struct msc_graph *g = read_graph(joints, "b");
        assert_int_equal(apply(g, rule, NULL, 0, NULL), MSC_E_INVALID);
        assert_message("rule r is refused: at joint 'b': it makes length 0 of 'b'");
        assert_message(cases[i].message);
        msc_graph_destroy(g);
    }
}

// A rule that is right only for small inputs is refused; its own tolerance can allow it.
static void test_graph_rules__tolerance(void **state) {
    (void)state;
    static const char saturated[] = RULE("ID y IN: x OPTYPE: clip ATTRS: min=-3 max=3",
                                         "replace { ID y IN: x OPTYPE: identity }");
    struct msc_graph *g = read_graph("ID a IN: x OPTYPE: clip ATTRS: min=-3 max=3", "a");
    assert_int_equal(apply(g, saturated, NULL, 0, NULL), MSC_E_INVALID);
    assert_message("on random inputs of seed 2");
    msc_graph_destroy(g);
    static const char *const gelu = RULE("ID y IN: x OPTYPE: nn.gelu ATTRS: approximate=none",
                                         "%s replace { ID y IN: x OPTYPE: nn.gelu ATTRS: "
                                         "approximate=tanh }");
    for (int allowed = 0; allowed < 2; allowed++) {
        char rule[512];
        snprintf(rule, sizeof rule, gelu, allowed ? "tolerance 1e-3" : "");
        g = read_graph("ID a IN: x OPTYPE: nn.gelu", "a");
        assert_int_equal(apply(g, rule, NULL, 0, NULL), allowed ? MSC_OK : MSC_E_INVALID);
        msc_graph_destroy(g);
    }
}

static void test_graph_rules__other_type(void **state) {
    (void)state;
    static const char rule[] = RULE("ID y IN: x OPTYPE: sum ATTRS: axis=1 keepdims=1",
                                    "replace { ID y IN: x OPTYPE: sum ATTRS: axis=1 keepdims=0 }");
    struct msc_graph *g = read_graph("ID a IN: x OPTYPE: sum ATTRS: axis=1, keepdims=1", "a");
    assert_int_equal(apply(g, rule, NULL, 0, NULL), MSC_E_INVALID);
    assert_message("r.msc:1:6: rule r is refused: at joint 'a': tensor 'a:0' cannot replace 'a:0'");
    msc_graph_destroy(g);
}

// Nothing is compared if all results are NaN.
static void test_graph_rules__not_finite(void **state) {
    (void)state;
    static const char rule[] = RULE("ID a IN: x OPTYPE: abs ID b IN: a OPTYPE: negative\n"
                                    "ID y IN: b OPTYPE: log",
                                    "replace { ID y IN: b OPTYPE: sqrt }");
    struct msc_graph *g = read_graph("ID a IN: x OPTYPE: abs ID b IN: a OPTYPE: negative\n"
                                     "ID y IN: b OPTYPE: log",
                                     "y");
    assert_int_equal(apply(g, rule, NULL, 0, NULL), MSC_E_INVALID);
    assert_message("it cannot be checked, because no result is finite on random inputs");
    msc_graph_destroy(g);
}

// ---- Errors in texts --------------------------------------------------------------------------

static void test_graph_rules__errors(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"rules", "r.msc:1:1: expected rule NAME { ... }, found 'rules'"},
        {"rule", "r.msc:1:5: expected the name of a rule, but the text ends here"},
        {"rule a {", "r.msc:1:9: expected match { ... }, but the text ends here"},
        {"rule a { match { } replace { } }", "r.msc:1:18: expected a joint of the pattern"},
        {"rule a { match { ID y IN: x } }", "'y': expected OPTYPE: and an operator"},
        {"rule a { match { ID y IN: x OPTYPE: nn.rely } }", "an operator, found nn.rely"},
        {"rule a { match { ID y OPTYPE: input } }", "'y': a rule has no inputs"},
        {"rule a { match { ID y IN: x OPTYPE: nn.relu ATTRS: slope=1 } }",
         "r.msc:1:52: nn.relu has no attribute 'slope'"},
        {"rule a { match { ID y IN: x OPTYPE: clip ATTRS: min=a } }", "'min' is 'a', expected"},
        {"rule a { match { ID y IN: x OPTYPE: clip ATTRS: min=$(1) } }",
         "a pattern binds an attribute to a name, such as $min"},
        {"rule a { match { ID y IN: x<4|float32> OPTYPE: nn.relu } }",
         "an operand of a rule has no type"},
        {"rule a { match { ID y IN: x,z,w OPTYPE: add } }", "add takes no further operand"},
        {"rule a { match { ID y IN: x,$z OPTYPE: add } }",
         "an operand of a pattern is a tensor or a number, found '$z'"},
        {"rule a { match { ID y IN: x OPTYPE: nn.relu ID y IN: x OPTYPE: nn.relu } }",
         "the name 'y' is already used"},
        {"rule a { match { ID y IN: x OPTYPE: nn.relu ID x IN: z OPTYPE: nn.relu } }",
         "the name 'x' is already used"},
        {"rule a { match { ID y IN: x OPTYPE: nn.relu ID z IN: w OPTYPE: nn.relu } }",
         "rule a: the joints of the pattern are not connected"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace { ID z IN: x OPTYPE: tanh }"),
         "rule r: the replacement replaces no joint of the pattern"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace { ID y IN: w OPTYPE: tanh }"),
         "no joint above and no tensor of the pattern is called 'w'"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace { ID t IN: y OPTYPE: tanh y = t }"),
         "the replacement reads 'y', which it replaces"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace { y = x y = x }"), "'y' is replaced twice"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace { z = x }"), "the pattern has no joint 'z'"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "keep z"), "the pattern has no joint 'z'"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "tolerance 2"), "expected a number above 0"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "when"), "expected where, keep, tolerance or replace"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "where { rank(z) }"), "the pattern has no tensor 'z'"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "where { rang(x) }"), "rank(x), dim(x, i)"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "where { $a == 1 }"),
         "the pattern binds no attribute to $a"},
        {RULE("ID y IN: x OPTYPE: clip ATTRS: min=$a", "where { $a[b] == 1 }"),
         "an index is a number or $NAME, found '$a[b]'"},
        {RULE("ID y IN: x OPTYPE: clip ATTRS: min=$a", "where { $a[ == 1 }"),
         "expected $NAME[INDEX], found '$a['"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "where { rank(x) == 1 rank(x) == 1 }"),
         "expected ',' and a condition, or '}', found 'rank'"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "where { ((((((((((((((((((((((((((((((((((1))) }"),
         "nested more than 32 levels deep"},
        {RULE("ID y IN: x OPTYPE: nn.relu", "replace holding { ID y IN: x OPTYPE: tanh y = x }"),
         "is replaced twice"},
        {RULE("ID a IN: x OPTYPE: nn.relu ID y IN: a OPTYPE: nn.relu",
              "replace holding { ID a IN: x OPTYPE: tanh }"),
         "replace holding needs one joint, with the name of the last joint of the pattern"},
        {RELU_TWICE RELU_TWICE, "r.msc:7:6: a rule above has the name 'r', too"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msc_rules *rules;
        enum msc_status status =
            msc_rules_read(&rules, cases[i].text, strlen(cases[i].text), "r.msc");
        if (status != MSC_E_FORMAT) {
            print_error("%s: %s\n", cases[i].text, msc_status_name(status));
        }
        assert_int_equal(status, MSC_E_FORMAT);
        assert_message(cases[i].message);
        assert_message("r.msc:");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_rules__commutative),
        cmocka_unit_test(test_graph_rules__backtracks),
        cmocka_unit_test(test_graph_rules__fixed_point),
        cmocka_unit_test(test_graph_rules__other_readers),
        cmocka_unit_test(test_graph_rules__several_results),
        cmocka_unit_test(test_graph_rules__no_cycle),
        cmocka_unit_test(test_graph_rules__names),
        cmocka_unit_test(test_graph_rules__conditions),
        cmocka_unit_test(test_graph_rules__wrong_rule),
        cmocka_unit_test(test_graph_rules__fixed_length),
        cmocka_unit_test(test_graph_rules__tolerance),
        cmocka_unit_test(test_graph_rules__other_type),
        cmocka_unit_test(test_graph_rules__not_finite),
        cmocka_unit_test(test_graph_rules__errors),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
