// The text of network.c: expected lines are written by hand.
#include "codegen/codegen_internal.h"

#include "base/str.h"
#include "tests/msc_test.h"

#include <string.h>

static struct msc_array *ones(int n_dims, const int64_t dims[]) {
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        ((float *)msc_array_data(array))[i] = 1;
    }
    return array;
}

static int32_t add(struct msc_graph *g, struct msc_joint_spec spec) {
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_joint_output(msc_graph_joint(g, joint), 0);
}

static void finish(struct msc_graph *g, int32_t output) {
    assert_ok(msc_graph_set_outputs(g, 1, &output));
    assert_ok(msc_graph_finalize(g));
}

static void write(struct msc_str *text, const struct msc_graph *g, const char *strategy) {
    const struct msc_codegen_network network = {.graph = g,
                                                .model = "small.onnx",
                                                .name = "run_small",
                                                .strategy = strategy,
                                                .numerics = "cpu",
                                                .tolerance = 1e-5};
    assert_ok(msc_codegen__network(text, &network));
}

static void assert_has(const struct msc_str *text, const char *part) {
    if (strstr(msc_str_text(text), part) == NULL) {
        fail_msg("expected %s in\n%s", part, msc_str_text(text));
    }
}

static void assert_lacks(const struct msc_str *text, const char *part) {
    if (strstr(msc_str_text(text), part) != NULL) {
        fail_msg("unexpected %s in\n%s", part, msc_str_text(text));
    }
}

// x [n,3,4,4] -> conv -> clip without a minimum
static void test_codegen_network__joints(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_str text = {0};
    int32_t n, x, w;
    assert_ok(msc_graph_create(&g, "small"));
    assert_ok(msc_graph_add_symbol(&n, g, "n"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", "image", MSC_DTYPE_F32, "NCHW", 4,
                                           (const int64_t[]){-1, 3, 4, 4},
                                           (const int32_t[]){n, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID}));
    struct msc_array *kernel = ones(4, (const int64_t[]){6, 3, 1, 1});
    assert_ok(msc_graph_add_weight(&w, g, "conv.weight", NULL, "OIHW", kernel));
    int32_t y = add(g, (struct msc_joint_spec){.op = MSC_OP_CONV2D,
                                               .name = "conv",
                                               .n_inputs = 1,
                                               .inputs = &x,
                                               .n_weights = 1,
                                               .weights = &(struct msc_weight_spec){"weight", w},
                                               .n_attrs = 1,
                                               .attrs = &(struct msc_attr){"strides", "2,2"}});
    finish(g, add(g, (struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &y}));
    write(&text, g, NULL);
    assert_has(&text, "    begin_input(b, \"x\", MSC_DTYPE_F32, \"NCHW\");\n"
                      "    open_length(b, \"n\");\n"
                      "    length(b, 3);\n    length(b, 4);\n    length(b, 4);\n"
                      "    alias(b, 0, \"image\");\n");
    assert_has(&text, "    // [n, 6, 2, 2] float32\n"
                      "    begin_joint(b, MSC_OP_CONV2D, \"conv\");\n"
                      "    reads(b, \"x:0\");\n"
                      "    weight(b, \"weight\", \"conv.weight\", \"OIHW\");\n"
                      "    attribute(b, \"strides\", \"2,2\");\n");
    assert_has(&text, "    result(b, \"relu:0\");\n}\n");
    assert_has(&text, "    .strategy = NULL,\n");
    assert_lacks(&text, "dilation"); // a default
    msc_str_finish(&text);
    msc_array_release(kernel);
    msc_graph_destroy(g);
}

// Names become string literals that mean the same bytes, and comments that end with their line.
static void test_codegen_network__odd_names(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_str text = {0};
    int32_t n, x;
    assert_ok(msc_graph_create(&g, "odd"));
    assert_ok(msc_graph_add_symbol(&n, g, "n\\"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "a\"b\\c?\?/d\n1\xc3\xa9", NULL, MSC_DTYPE_I64,
                                           "", 1, (const int64_t[]){-1}, (const int32_t[]){n}));
    finish(g, add(g, (struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &x}));
    write(&text, g, "strategy.json");
    assert_has(&text,
               "begin_input(b, \"a\\\"b\\\\c?\\?/d\\0121\\303\\251\", MSC_DTYPE_I64, \"\");");
    assert_has(&text, "open_length(b, \"n\\\\\");");
    assert_has(&text, "// [n?] int64\n");
    assert_has(&text, "    .strategy = \"strategy.json\",\n");
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

// Forty joints share a function.
static void test_codegen_network__parts(void **state) {
    (void)state;
    struct msc_graph *g;
    struct msc_str text = {0};
    int32_t x;
    assert_ok(msc_graph_create(&g, "long"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 1, (const int64_t[]){2}));
    for (int i = 0; i < 81; i++) {
        x = add(g, (struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &x});
    }
    finish(g, x);
    write(&text, g, NULL);
    assert_has(&text, "static void build_network_3(struct builder *b) {\n"
                      "    // [2] float32\n"
                      "    begin_joint(b, MSC_OP_RELU, \"relu_80\");\n"
                      "    reads(b, \"relu_79:0\");\n"
                      "    alias(b, 0, \"relu_80\");\n"
                      "}\n\n"
                      "static void build_network(struct builder *b) {\n"
                      "    build_network_1(b);\n    build_network_2(b);\n    build_network_3(b);\n"
                      "    result(b, \"relu_80:0\");\n}\n");
    assert_lacks(&text, "build_network_4");
    msc_str_finish(&text);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codegen_network__joints),
        cmocka_unit_test(test_codegen_network__odd_names),
        cmocka_unit_test(test_codegen_network__parts),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
