// Graphs as text: round trips, texts written by hand, and damaged texts that must be refused.
#include "tests/graph/graph_samples.h"

#include "base/alloc.h"
#include "base/file.h"
#include "graph/notes.h"
#include "graph/text.h"

#include <stdio.h>

static struct msc_graph *read_text(const char *text) {
    struct msc_graph *g;
    assert_ok(msc_graph_read_text(&g, text, strlen(text), "g.msc", NULL, NULL));
    return g;
}

static void check_printed(const struct msc_graph *g, const char *expected) {
    struct msc_str text = {0};
    msc_graph_print(g, &text);
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void check_fails(const char *text, enum msc_status status, const char *message) {
    struct msc_graph *g;
    enum msc_status found = msc_graph_read_text(&g, text, strlen(text), "bad.msc", NULL, NULL);
    if (found != status || strstr(msc_status_message(), message) == NULL) {
        print_error("expected %s, found %s\n", message, msc_status_message());
    }
    assert_int_equal(found, status);
    assert_message(message);
    assert_message("bad.msc:");
}

// ---- Round trips ------------------------------------------------------------------------------

// Prints the graph, reads it with and without weights, and compares. Destroys the graph.
static void check_round_trip(struct msc_graph *g) {
    struct msc_str text = {0};
    struct msc_array_list weights = {0};
    struct msc_graph *read;
    list_weights(&weights, g);
    msc_graph_print(g, &text);
    assert_ok(msc_str_status(&text));
    for (int with_weights = 0; with_weights < 2; with_weights++) {
        if (with_weights && weights.n == 0) {
            continue;
        }
        assert_ok(msc_graph_read_text(&read, text.data, text.length, "g.msc",
                                      with_weights ? &weights : NULL, NULL));
        assert_true(msc_graph_equal(g, read, with_weights));
        assert_true(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(read)));
        check_printed(read, text.data);
        msc_graph_destroy(read);
    }
    msc_array_list_finish(&weights);
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

static void test_graph_text__round_trips(void **state) {
    (void)state;
    check_round_trip(make_conv_relu());
    check_round_trip(make_branches());
}

// Names with every mark, an absent operand between two that are given, an empty scope, an output
// without alias, and attributes of all kinds.
static void test_graph_text__odd_graphs(void **state) {
    (void)state;
    struct msc_graph *g;
    int32_t symbol, x;
    assert_ok(msc_graph_create(&g, "od\"d\n\xc3\xa9"));
    assert_ok(msc_graph_add_symbol(&symbol, g, "12"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "serving:0", "", MSC_DTYPE_F32, "N", 1, DIMS(-1),
                                           IDS(symbol)));
    int32_t most = add_input(g, "a,b|c<d>(e){f}=g h#", "", 0, NULL);
    int32_t clip = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CLIP,
                                                         .name = "a/\\b:",
                                                         .scope = "",
                                                         .n_inputs = 3,
                                                         .inputs = IDS(x, MSC_NO_ID, most)});
    int32_t y = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_LEAKY_RELU,
                                                      .n_inputs = 1,
                                                      .inputs = &clip,
                                                      .n_attrs = 5,
                                                      .attrs = (const struct msc_attr[]){
                                                          {"alpha", "1e-12"},
                                                          {"Zextra", "any \"text\"\t\x1b[2J\xff"},
                                                          {"equation", "ij,jk->(ik)={}|"},
                                                          {"empty", ""},
                                                          {"a key=b", "# no comment"}}});
    assert_ok(msc_graph_set_outputs(g, 2, IDS(y, y)));
    assert_ok(msc_graph_set_alias(g, y, ""));
    assert_ok(msc_graph_finalize(g));
    check_round_trip(g);
}

// All bytes, alone and inside of other text, as names and as values.
static void test_graph_text__words(void **state) {
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        const char texts[][4] = {{(char)byte}, {'a', (char)byte, 'b'}, {'a', (char)byte}};
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            struct msc_arena arena = {0};
            struct msc_str text = {0};
            struct msc_text_reader r;
            struct msc_text_token name;
            struct msc_text_attrs attrs = {0};
            msc_text_write_name(&text, texts[i]);
            msc_str_char(&text, ' ');
            msc_text_write_name(&text, texts[i]);
            msc_str_char(&text, '=');
            msc_text_write_value(&text, texts[i]);
            assert_ok(msc_text_open(&r, &arena, text.data, text.length, "words"));
            assert_ok(msc_text_take(&name, &r, "a name"));
            assert_string_equal(name.text, texts[i]);
            assert_ok(msc_text_read_attrs(&attrs, &r));
            assert_int_equal(attrs.n, 1);
            assert_string_equal(attrs.items[0].key.text, texts[i]);
            assert_string_equal(attrs.items[0].value.text, texts[i]);
            assert_int_equal(r.token.kind, MSC_TEXT_END);
            msc_str_finish(&text);
            msc_arena_finish(&arena);
        }
    }
}

// ---- Order of attributes ----------------------------------------------------------------------

// The MSC tutorial's text, letter by letter.
static const char tutorial[] =
    "main <INPUTS: inp_0:0| OUTPUTS: relu:0>\n"
    "ID_0 inp_0 <PARENTS: | CHILDERN: conv2d>\n"
    "  OUT: inp_0:0(inp_0)<1,3,4,4|float32|NCHW>\n"
    "  OPTYPE: input\n"
    "\n"
    "ID_1 conv2d <PARENTS: inp_0| CHILDERN: relu>\n"
    "  IN: inp_0:0(inp_0)<1,3,4,4|float32|NCHW>\n"
    "  OUT: conv2d:0<1,6,4,4|float32|NCHW>\n"
    "  OPTYPE: nn.conv2d\n"
    "  SCOPE: block\n"
    "  ATTRS: out_dtype=float32 strides=1,1 kernel_layout=OIHW groups=1 padding=0,0,0,0 "
    "data_layout=NCHW dilation=1,1 out_layout=NCHW \n"
    "  WEIGHTS: \n"
    "    weight: const<6,3,1,1|float32|OIHW>\n"
    "\n"
    "ID_2 relu <PARENTS: conv2d| CHILDERN: >\n"
    "  IN: conv2d:0<1,6,4,4|float32|NCHW>\n"
    "  OUT: relu:0(relu)<1,6,4,4|float32|NCHW>\n"
    "  OPTYPE: nn.relu\n"
    "  SCOPE: block\n"
    "\n";

// Attributes that are not sorted keep their order in every form and in copies. The hash does not
// depend on it.
static void test_graph_text__tutorial_order(void **state) {
    (void)state;
    struct msc_graph *g = read_text(tutorial), *sorted = make_conv_relu(), *read, *clone;
    struct msc_str json = {0};
    check_printed(g, tutorial);
    msc_graph_write_json(g, &json);
    assert_ok(msc_graph_read_json(&read, json.data, json.length, "g.json", NULL, NULL));
    assert_true(msc_graph_equal(g, read, true));
    check_printed(read, tutorial);
    assert_ok(msc_graph_clone(&clone, read));
    check_printed(clone, tutorial);
    assert_true(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(sorted)));
    msc_graph_destroy(clone);
    msc_graph_destroy(read);
    msc_graph_destroy(sorted);
    msc_graph_destroy(g);
    msc_str_finish(&json);
}

// ---- By hand ----------------------------------------------------------------------------------

// Types, parents, numbers, defaults and the order of inputs follow from the rest.
static void test_graph_text__by_hand(void **state) {
    (void)state;
    struct msc_graph *g = read_text("# A comment.\n"
                                    "small <OUTPUTS: sum>\n"
                                    "ID x OUT: x<N,3,8,8|float32|NCHW> OPTYPE: input\n"
                                    "ID conv IN: x OPTYPE: nn.conv2d\n"
                                    "  ATTRS: strides=2,2 # two\n"
                                    "  WEIGHTS: weight: w<4,3,1,1|float32|OIHW>\n"
                                    "ID cut IN: conv OUT: cut:0,cut:1 OPTYPE: split\n"
                                    "  ATTRS: indices_or_sections=2 axis=1\n"
                                    "ID sum IN: cut:0,cut:1 OPTYPE: add\n");
    int32_t y = msc_graph_output(g, 0);
    const struct msc_tensor *t = msc_graph_tensor(g, y);
    assert_string_equal(t->name, "sum:0");
    assert_string_equal(t->alias, "sum");
    assert_string_equal(msc_graph_tensor(g, msc_graph_input(g, 0))->alias, "x");
    assert_int_equal(t->n_dims, 4);
    assert_int_equal(t->dims[0], -1);
    assert_string_equal(msc_graph_prim(g, t->prims[0])->name, "N");
    assert_int_equal(t->dims[1], 2);
    assert_int_equal(t->dims[2], 4);
    assert_string_equal(t->layout, "NCHW");
    check_round_trip(g);
}

// A type without layout says that there is none, even if inference would find one.
static void test_graph_text__no_layout(void **state) {
    (void)state;
    struct msc_graph *g = read_text("net <OUTPUTS: y,z>\n"
                                    "ID x OUT: x<1,2,3,3|float32|NCHW> OPTYPE: input\n"
                                    "ID y IN: x OUT: y<1,2,3,3|float32> OPTYPE: nn.relu\n"
                                    "ID z IN: x OPTYPE: nn.relu\n");
    assert_string_equal(msc_graph_tensor(g, msc_graph_output(g, 0))->layout, "");
    assert_string_equal(msc_graph_tensor(g, msc_graph_output(g, 1))->layout, "NCHW");
    check_round_trip(g);
}

// Notes may follow weights directly, and hold any text.
// Weights that the text gives no layout have that of their role.
static void test_graph_text__no_layout_of_weights(void **state) {
    (void)state;
    struct msc_graph *g = read_text(
        "g <OUTPUTS: y> ID x OUT: x<2,3,4,4|float32> OPTYPE: input "
        "ID c IN: x OPTYPE: nn.conv2d WEIGHTS: weight: k<4,3,1,1|float32> "
        "ID m IN: c OPTYPE: msc.linear WEIGHTS: weight: w<5,4|float32> "
        "ID b IN: m OPTYPE: msc.linear_bias WEIGHTS: weight: v<5,6|float32|IO> bias: o<6|float32> "
        "ID t OPTYPE: constant WEIGHTS: const: u<6|float32> ID y IN: b,t OPTYPE: add");
    static const char *const layouts[][2] = {
        {"k", "OIHW"}, {"w", "OI"}, {"v", "IO"}, {"o", ""}, {"u", ""}};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        int32_t t = msc_graph_find_tensor(g, layouts[i][0]);
        assert_string_equal(msc_graph_tensor(g, t)->layout, layouts[i][1]);
    }
    check_round_trip(g);
}

static void test_graph_text__notes(void **state) {
    (void)state;
    struct msc_graph *g = read_text("net <OUTPUTS: y>\n"
                                    "ID x OUT: x<1,2|float32> OPTYPE: input\n"
                                    "ID y IN: x OPTYPE: msc.linear\n"
                                    "  WEIGHTS: weight: w<2,2|float32|OI>\n"
                                    "NOTES: opset=17 doc=\"two\\nlines\" domain=a.b\n"
                                    "  METADATA: \"class names\"=cat,dog empty= \n"
                                    "  OUTPUT_DOCS: y=out\n");
    const struct msc_graph_notes *notes = msc_graph_notes(g);
    assert_int_equal(notes->opset, 17);
    assert_string_equal(notes->doc, "two\nlines");
    assert_string_equal(notes->domain, "a.b");
    assert_int_equal(notes->n_metadata, 2);
    assert_string_equal(notes->metadata[0].key, "class names");
    assert_string_equal(notes->metadata[0].value, "cat,dog");
    assert_string_equal(notes->metadata[1].value, "");
    assert_int_equal(notes->n_output_docs, 1);
    check_round_trip(g);
}

// A body reads a tensor of its own and returns another.
static void test_graph_text__bodies(void **state) {
    (void)state;
    struct msc_graph *g = read_text("branches <OUTPUTS: if>\n"
                                    "ID c OUT: c<bool> OPTYPE: input\n"
                                    "ID x OUT: x<2|float32> OPTYPE: input\n"
                                    "ID if IN: c,x OPTYPE: if\n"
                                    "  GRAPH: { then <OUTPUTS: a>\n"
                                    "    ID x OUT: x<2|float32> OPTYPE: input\n"
                                    "    ID a IN: x OPTYPE: nn.relu }\n"
                                    "  GRAPH: { else <OUTPUTS: b>\n"
                                    "    ID x OUT: x<2|float32> OPTYPE: input\n"
                                    "    ID b IN: x OPTYPE: tanh }\n");
    const struct msc_joint *j = msc_graph_joint(g, find(g, "if"));
    assert_int_equal(j->n_graphs, 2);
    assert_int_equal(msc_graph_tensor(g, j->outputs[0])->dims[0], 2);
    assert_string_equal(msc_graph_name(j->graphs[1]), "else");
    check_round_trip(g);
}

// ---- Damage -----------------------------------------------------------------------------------

#define INPUT "ID x OUT: x<2|float32> OPTYPE: input\n"

static void test_graph_text__damaged(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum msc_status status;
        const char *message;
    } rows[] = {
        {"", MSC_E_FORMAT, "1:1: expected the name of a graph, but the text ends here"},
        {"\xff", MSC_E_FORMAT, "1:1: byte 0xff is not UTF-8"},
        {"g\x01", MSC_E_FORMAT, "1:2: the character \\x01 needs quotes"},
        {"g <OUTPUTS: \"a", MSC_E_FORMAT, "1:13: the quotes are not closed"},
        {"g <OUTPUTS: \"a\\q\">", MSC_E_FORMAT, "1:15: unknown escape"},
        {"g <OUTPUTS: \"\\x00\">", MSC_E_FORMAT, "1:14: unknown escape"},
        {"g <INS: a>", MSC_E_FORMAT, "1:4: expected INPUTS: or OUTPUTS:, found 'INS:'"},
        {"g <OUTPUTS: y>\n", MSC_E_FORMAT, "1:13: no joint has the output 'y'"},
        {"g <OUTPUTS: >\n" INPUT, MSC_E_FORMAT, "no outputs"},
        {"g <OUTPUTS: x>\n" INPUT "ID x OPTYPE: nn.relu", MSC_E_FORMAT, "3:4: the name 'x' is"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: z OPTYPE: nn.relu", MSC_E_FORMAT,
         "3:10: no earlier joint has the output 'z'"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x OPTYPE: nn.rely", MSC_E_UNSUPPORTED,
         "3:4: 'y' has the unknown operator 'nn.rely'"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x", MSC_E_FORMAT, "3:4: 'y' has no OPTYPE:"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x IN: x", MSC_E_FORMAT, "3:12: 'y' has a second IN:"},
        {"g <OUTPUTS: x>\n" INPUT "ID y FROM: x", MSC_E_FORMAT, "found 'FROM:'"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x<3|float32> OPTYPE: nn.relu", MSC_E_FORMAT,
         "3:10: 'x' is float32[3], but float32[2] according to its producer"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x OUT: y:1 OPTYPE: nn.relu", MSC_E_FORMAT,
         "3:17: output 0 is called 'y:1', expected 'y:0'"},
        {"g <OUTPUTS: x>\n" INPUT "ID y IN: x OUT: y<M|float32> OPTYPE: nn.relu", MSC_E_FORMAT,
         "3:17: dimension 0 of 'y:0' names the unknown prim 'M'"},
        {"g <OUTPUTS: x>\nID x OUT: x<-2|float32> OPTYPE: input", MSC_E_FORMAT,
         "2:11: dimension 0 of 'x:0' is -2"},
        {"g <OUTPUTS: x>\nID x OUT: x<2|float> OPTYPE: input", MSC_E_FORMAT,
         "2:11: 'x:0' has the unknown type 'float'"},
        {"g <OUTPUTS: x>\nID x OPTYPE: input", MSC_E_FORMAT, "2:4: input 'x' needs a type"},
        {"g <OUTPUTS: x>\nID x OUT: x<1,1,1,1,1,1,1,1,1|float32> OPTYPE: input", MSC_E_FORMAT,
         "'x' has more than 8 dimensions"},
        {"g <OUTPUTS: y>\n" INPUT "ID y IN: x OPTYPE: msc.linear WEIGHTS: weight: w", MSC_E_FORMAT,
         "3:48: weight 'w' has neither a type nor elements"},
        {"g <OUTPUTS: y>\n" INPUT "ID y IN: x OPTYPE: nn.leaky_relu ATTRS: alpha=no", MSC_E_FORMAT,
         "3:4: joint 'y': attribute alpha is 'no'"},
        {"g <OUTPUTS: y>\n" INPUT "ID y IN: x OPTYPE: tanh ATTRS: a=1\"2\"", MSC_E_FORMAT,
         "3:35: the character \" needs quotes"},
        {"g <OUTPUTS: l>\n" INPUT
         "ID l IN: \"\",\"\",x OUT: l:0,l:1 OPTYPE: loop ATTRS: n_states=2\n"
         "GRAPH: { b <OUTPUTS: go,s,s> ID i OUT: i<int64> OPTYPE: input\n"
         "ID go OUT: go<bool> OPTYPE: input ID s OUT: s<2|float32> OPTYPE: input }",
         MSC_E_FORMAT, "n_states is 2, but the joint has 3 operands"},
        {"g <OUTPUTS: x>\n" INPUT "NOTES: color=red", MSC_E_FORMAT, "3:8: unknown note 'color'"},
        {"g <OUTPUTS: x>\n" INPUT "NOTES: opset=99", MSC_E_FORMAT, "3:8: \"opset\" is 99"},
        {"g <OUTPUTS: x>\n" INPUT "NOTES: opset=1 x", MSC_E_FORMAT, "3:16: expected a joint"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_fails(rows[i].text, rows[i].status, rows[i].message);
    }
}

// Nesting without end is refused before the stack is full.
static void test_graph_text__deep(void **state) {
    (void)state;
    struct msc_str text = {0};
    for (int i = 0; i < 10000; i++) {
        msc_str_append(&text, "g <> ID a GRAPH: { ");
    }
    check_fails(text.data, MSC_E_FORMAT, "nested more than 16 levels deep");
    msc_str_finish(&text);
}

// Every prefix of a text is read or refused in one line; nothing past its end is read.
static void test_graph_text__truncated(void **state) {
    (void)state;
    size_t length = strlen(tutorial);
    for (size_t n = 0; n < length; n++) {
        struct msc_graph *g;
        char *part = msc_alloc(n > 0 ? n : 1);
        memcpy(part, tutorial, n);
        if (msc_graph_read_text(&g, part, n, "cut.msc", NULL, NULL) == MSC_OK) {
            msc_graph_destroy(g);
            assert_true(n > length - 30);
        } else {
            assert_message("cut.msc:");
        }
        msc_free(part);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_text__round_trips),
        cmocka_unit_test(test_graph_text__odd_graphs),
        cmocka_unit_test(test_graph_text__words),
        cmocka_unit_test(test_graph_text__tutorial_order),
        cmocka_unit_test(test_graph_text__by_hand),
        cmocka_unit_test(test_graph_text__no_layout),
        cmocka_unit_test(test_graph_text__no_layout_of_weights),
        cmocka_unit_test(test_graph_text__notes),
        cmocka_unit_test(test_graph_text__bodies),
        cmocka_unit_test(test_graph_text__damaged),
        cmocka_unit_test(test_graph_text__deep),
        cmocka_unit_test(test_graph_text__truncated),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
