// Graphs as JSON: round trips, and damaged texts that must be refused. The graph read from a text
// is compared with the graph that was written.
#include "tests/graph/graph_samples.h"

#include "base/alloc.h"

// Writes the graph, reads it with and without weights, and compares. Destroys the graph.
static void check_round_trip(struct msc_graph *g) {
    struct msc_str text = {0}, again = {0};
    struct msc_array_list weights = {0};
    struct msc_graph *read;
    list_weights(&weights, g);
    msc_graph_write_json(g, &text);
    assert_ok(msc_str_status(&text));
    assert_ok(msc_graph_read_json(&read, text.data, text.length, "g.json", &weights, NULL));
    assert_true(msc_graph_equal(g, read, true));
    assert_true(msc_hash_equal(msc_graph_hash(g), msc_graph_hash(read)));
    assert_true(msc_hash_equal(msc_graph_weights_hash(g), msc_graph_weights_hash(read)));
    msc_graph_write_json(read, &again);
    assert_string_equal(msc_str_text(&again), msc_str_text(&text));
    msc_graph_destroy(read);
    assert_ok(msc_graph_read_json(&read, text.data, text.length, "g.json", NULL, NULL));
    assert_true(msc_graph_equal(g, read, false));
    msc_graph_destroy(read);
    msc_array_list_finish(&weights);
    msc_str_finish(&text);
    msc_str_finish(&again);
    msc_graph_destroy(g);
}

static void test_graph_json__round_trips(void **state) {
    (void)state;
    check_round_trip(make_conv_relu());
    check_round_trip(make_branches());
}

// Inputs out of order, unusual names, a default alias removed, an operand absent between two that
// are given, an empty scope, and floats.
static void test_graph_json__odd_graphs(void **state) {
    (void)state;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "od\"d\n\xc3\xa9"));
    int32_t x = add_input(g, "serving:0", "", 1, DIMS(3));
    int32_t most = add_input(g, "most", "", 0, NULL);
    int32_t clip = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CLIP,
                                                         .name = "a/\\b",
                                                         .scope = "",
                                                         .n_inputs = 3,
                                                         .inputs = IDS(x, MSC_NO_ID, most)});
    int32_t y =
        add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_LEAKY_RELU,
                                              .n_inputs = 1,
                                              .inputs = &clip,
                                              .n_attrs = 2,
                                              .attrs = (const struct msc_attr[]){
                                                  {"alpha", "1e-12"}, {"Zextra", "any \"text\""}}});
    assert_ok(msc_graph_set_outputs(g, 2, IDS(y, y)));
    assert_ok(msc_graph_set_alias(g, y, ""));
    assert_ok(msc_graph_finalize(g));
    check_round_trip(g);
}

// A symbol, and the expressions over it that shape inference makes for the tensors of the network.
static void test_graph_json__expressions(void **state) {
    (void)state;
    struct msc_graph *g;
    int32_t batch, x;
    assert_ok(msc_graph_create(&g, "symbols"));
    assert_ok(msc_graph_add_symbol(&batch, g, "batch"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", NULL, MSC_DTYPE_F32, "NCHW", 4,
                                           DIMS(-1, 3, 4, 4), IDS(batch, -1, -1, -1)));
    int32_t twice =
        add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_CONCAT,
                                              .n_inputs = 2,
                                              .inputs = IDS(x, x),
                                              .n_attrs = 1,
                                              .attrs = &(struct msc_attr){"axis", "0"}});
    assert_int_equal(msc_graph_tensor(g, twice)->dims[0], -1);
    assert_int_not_equal(msc_graph_tensor(g, twice)->prims[0], batch);
    assert_ok(msc_graph_set_outputs(g, 1, &twice));
    assert_ok(msc_graph_finalize(g));
    assert_true(msc_graph_n_prims(g) >= 2);
    check_round_trip(g);
}

// Every proper prefix of a valid file gives a one-line error that names the file.
static void test_graph_json__truncated(void **state) {
    (void)state;
    struct msc_graph *g = make_branches(), *read;
    struct msc_str text = {0};
    struct msc_array_list weights = {0};
    list_weights(&weights, g);
    msc_graph_write_json(g, &text);
    for (size_t n = 0; n < text.length; n++) {
        // The copy has the exact length, so a sanitizer sees reads past its end.
        char *part = msc_alloc(n > 0 ? n : 1);
        memcpy(part, text.data, n);
        assert_int_equal(msc_graph_read_json(&read, part, n, "cut.json", &weights, NULL),
                         MSC_E_FORMAT);
        assert_message("cut.json");
        msc_free(part);
    }
    msc_array_list_finish(&weights);
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// Keys in different letter case are unknown, and unknown keys are ignored.
static void test_graph_json__unknown_keys(void **state) {
    (void)state;
    struct msc_graph *g = make_branches(), *read = NULL;
    struct msc_str text = {0}, more = {0};
    struct msc_array_list weights = {0};
    list_weights(&weights, g);
    msc_graph_write_json(g, &text);
    const char *at = strstr(text.data, "\"optype\": \"split\"");
    assert_non_null(at);
    msc_str_append_n(&more, text.data, (size_t)(at - text.data));
    msc_str_append(&more, "\"Scope\": 1, \"Weights\": 2, \"ATTRS\": 3, \"Graphs\": 4, ");
    msc_str_append(&more, at);
    assert_ok(msc_graph_read_json(&read, more.data, more.length, "more.json", &weights, NULL));
    assert_true(msc_graph_equal(g, read, true));
    msc_graph_destroy(read);
    msc_array_list_finish(&weights);
    msc_str_finish(&text);
    msc_str_finish(&more);
    msc_graph_destroy(g);
}

// Replaces the first `old` in the text of make_branches() and expects a failure whose message
// contains `message`.
static void check_damage(const char *old, const char *new, enum msc_status status,
                         const char *message) {
    struct msc_graph *g = make_branches(), *read;
    struct msc_str text = {0}, damaged = {0};
    struct msc_array_list weights = {0};
    list_weights(&weights, g);
    msc_graph_write_json(g, &text);
    const char *at = strstr(text.data, old);
    assert_non_null(at);
    msc_str_append_n(&damaged, text.data, (size_t)(at - text.data));
    msc_str_append(&damaged, new);
    msc_str_append(&damaged, at + strlen(old));
    enum msc_status found =
        msc_graph_read_json(&read, damaged.data, damaged.length, "bad.json", &weights, NULL);
    if (found != status) {
        print_error("%s for %s: found %s\n", new, old, msc_status_message());
    }
    assert_int_equal(found, status);
    assert_message(message);
    assert_message("bad.json");
    msc_array_list_finish(&weights);
    msc_str_finish(&text);
    msc_str_finish(&damaged);
    msc_graph_destroy(g);
}

static void test_graph_json__damaged(void **state) {
    (void)state;
    check_damage("\"name\"", "\"nome\"", MSC_E_FORMAT, "\"name\" is missing");
    check_damage("\"optype\": \"split\"", "\"optype\": \"splat\"", MSC_E_UNSUPPORTED,
                 "unknown operator 'splat'");
    check_damage("\"x:0\"", "\"y:0\"", MSC_E_FORMAT, "'y:0'");
    check_damage("\"split:1\"", "\"split:7\"", MSC_E_FORMAT, "nodes[3]: output 1 is called");
    check_damage("\"conv_a\"\n      ]", "\"conv_z\"\n      ]", MSC_E_FORMAT,
                 "cannot find parent 'conv_z'");
    check_damage("\"conv_a:0\"\n      ]", "\"tanh:0\"\n      ]", MSC_E_FORMAT,
                 "input 'tanh:0' must come before");
    check_damage("[-1, 2, 5, 5]", "[-1, 3, 5, 5]", MSC_E_FORMAT, "according to its inputs");
    check_damage("[-1, 4, 5, 5]", "[-1, 4, 5.5, 5]", MSC_E_FORMAT, "not a dimension");
    check_damage("[-1, 4, 5, 5]", "[-1, 4, -7, 5]", MSC_E_FORMAT, "not a dimension");
    check_damage("[-1, 4, 5, 5]", "[-1, 4, 5, 5, 1, 1, 1, 1, 1]", MSC_E_FORMAT, "9 dimensions");
    check_damage("\"batch\"", "\"botch\"", MSC_E_FORMAT, "unknown prim 'botch'");
    check_damage("\"optype\": \"shape\"", "\"optype\": \"Add\"", MSC_E_FORMAT,
                 "Add expects 2 parents, found 0");
    check_damage("\"dtype\": \"float32\"", "\"dtype\": \"float33\"", MSC_E_FORMAT,
                 "unknown type 'float33'");
    check_damage("\"NCHW\"", "\"NCH\"", MSC_E_FORMAT, "layout 'NCH'");
    check_damage("\"NCHW\"", "\"NCHWNCHWNCHWNCHW\"", MSC_E_FORMAT, "too long");
    check_damage("\"strides\": \"1,1\"", "\"strides\": \"one\"", MSC_E_FORMAT,
                 "nodes[1]: joint 'conv_a': attribute strides");
    check_damage("\"strides\": \"1,1\"", "\"strides\": 1", MSC_E_FORMAT, "not a string");
    check_damage("\"weight\": {", "\"bias\": {", MSC_E_FORMAT, "nodes[1]: joint 'conv_a'");
    check_damage("\"shared.weight\"", "\"lost.weight\"", MSC_E_NOT_FOUND,
                 "no elements for weight 'lost.weight'");
    check_damage("[4, 4, 1, 1]", "[4, 4, 1]", MSC_E_FORMAT, "shared.weight");
    check_damage("\"data\"", "5", MSC_E_FORMAT, "\"alias\"");
    check_damage("\"name\": \"conv_b\"", "\"name\": \"conv_a\"", MSC_E_FORMAT, "occurs twice");
    check_damage("\"scope\": \"body.0\"", "\"scope\": []", MSC_E_FORMAT, "\"scope\"");
    check_damage("\"add:0\", \n    \"tanh:0\"", "", MSC_E_FORMAT, "no outputs");
    check_damage("\"inputs\": [\n    \"x:0\"", "\"inputs\": [\n", MSC_E_FORMAT,
                 "must list each of the 1 input nodes");
}

static void test_graph_json__not_a_graph(void **state) {
    (void)state;
    struct msc_graph *read;
    const char *const texts[] = {"",
                                 "[]",
                                 "3",
                                 "null",
                                 "{}",
                                 "{\"name\": \"g\"}",
                                 "{\"name\": \"g\", \"nodes\": {}}",
                                 "{\"name\": \"g\", \"nodes\": [3]}",
                                 "{\"name\": \"g\", \"nodes\": [[]]}",
                                 "{\"name\": \"g\", \"nodes\": [], \"prims\": [1]}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(msc_graph_read_json(&read, texts[i], strlen(texts[i]), "f", NULL, NULL),
                         MSC_E_FORMAT);
        assert_message("f:");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_json__round_trips),
        cmocka_unit_test(test_graph_json__odd_graphs),
        cmocka_unit_test(test_graph_json__expressions),
        cmocka_unit_test(test_graph_json__truncated),
        cmocka_unit_test(test_graph_json__unknown_keys),
        cmocka_unit_test(test_graph_json__damaged),
        cmocka_unit_test(test_graph_json__not_a_graph),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
