// Where results jump, and what comes before them.
#include "graph/discontinuity.h"

#include "tests/graph/graph_samples.h"
#include "tests/joint_attrs.h"

// A joint of one or two inputs; its first output.
static int32_t add_one(struct msc_graph *g, enum msc_op op, const char *name, int32_t n_outputs,
                       int32_t a, int32_t b, const char *text) {
    struct joint_attrs attrs;
    joint_attrs_read(&attrs, text ? text : "");
    return add_joint(g, &(struct msc_joint_spec){.op = op,
                                                 .name = name,
                                                 .n_inputs = b == MSC_NO_ID ? 1 : 2,
                                                 .inputs = IDS(a, b),
                                                 .n_attrs = attrs.n,
                                                 .attrs = attrs.rows,
                                                 .n_outputs = n_outputs});
}

// A network with every way to jump, and some that are none.
static struct msc_graph *make_jumping(int32_t outputs[6]) {
    static const int64_t dims[] = {4, 6};
    struct msc_graph *g;
    int32_t x, y, part, top, rows;
    assert_ok(msc_graph_create(&g, "jumping"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    y = add_one(g, MSC_OP_SQRT, "steady", 1, x, MSC_NO_ID, NULL);
    part = add_one(g, MSC_OP_STRIDED_SLICE, "part", 1, y, MSC_NO_ID, "begin=0,;end=3,");
    top = add_one(g, MSC_OP_TOPK, "top", 2, part, MSC_NO_ID, "k=2");
    const int32_t *of_top = msc_graph_joint(g, msc_graph_tensor(g, top)->producer)->outputs;
    outputs[0] = add_one(g, MSC_OP_SQRT, "values", 1, of_top[0], MSC_NO_ID, NULL);
    outputs[1] = add_one(g, MSC_OP_CAST, "places", 1, of_top[1], MSC_NO_ID, "dtype=float32");
    outputs[2] = add_one(g, MSC_OP_NONZERO, "found", 1, y, MSC_NO_ID, NULL);
    outputs[3] = add_one(g, MSC_OP_ARGMAX, "class", 1, x, MSC_NO_ID, "axis=1");
    // Arithmetic on lengths, and a product with it.
    rows = add_one(g, MSC_OP_SHAPE_OF, "shape", 1, y, MSC_NO_ID, NULL);
    rows = add_one(g, MSC_OP_CAST, "lengths", 1, rows, MSC_NO_ID, "dtype=float32");
    rows = add_one(g, MSC_OP_CEIL, "ceil", 1, rows, MSC_NO_ID, NULL);
    rows = add_one(g, MSC_OP_MEAN, "mean", 1, rows, MSC_NO_ID, NULL);
    outputs[4] = add_one(g, MSC_OP_MULTIPLY, "scaled", 1, y, rows, NULL);
    outputs[5] = add_one(g, MSC_OP_ROUND, "rounded", 1, outputs[4], MSC_NO_ID, NULL);
    assert_ok(msc_graph_set_outputs(g, 6, outputs));
    assert_ok(msc_graph_finalize(g));
    for (int i = 0; i < 6; i++) {
        outputs[i] = msc_graph_output(g, i);
    }
    return g;
}

// "" for no joint.
static void check_above(const struct msc_discontinuity *jumps, int32_t tensor,
                        const char *expected) {
    int32_t joint = msc_discontinuity_above(jumps, tensor);
    assert_string_equal(joint == MSC_NO_ID ? "" : msc_graph_joint(jumps->g, joint)->name, expected);
}

static void check_found(struct msc_discontinuity *jumps, int32_t tensor, const char *expected) {
    struct msc_str names = {0};
    msc_discontinuity_collect(jumps, tensor);
    for (size_t i = 0; i < jumps->n_found; i++) {
        msc_str_item(&names, msc_discontinuity_name(jumps, jumps->found[i]));
    }
    assert_string_equal(msc_str_text(&names), expected);
    msc_str_finish(&names);
}

static void test_graph_discontinuity__above(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *jumps;
    struct msc_graph *g = make_jumping(outputs);
    assert_ok(msc_discontinuity_create(&jumps, g, g));
    check_above(jumps, outputs[0], "");
    check_above(jumps, outputs[1], "top");
    check_above(jumps, outputs[2], "found");
    check_above(jumps, outputs[3], "class");
    check_above(jumps, outputs[4], "");
    check_above(jumps, outputs[5], "rounded");
    msc_discontinuity_destroy(jumps);
    msc_graph_destroy(g);
}

static void test_graph_discontinuity__before(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *jumps;
    struct msc_graph *g = make_jumping(outputs);
    assert_ok(msc_discontinuity_create(&jumps, g, g));
    // Nothing lies between an input and what it decides.
    check_found(jumps, outputs[3], "");
    // The whole of what the greatest are taken from, once.
    check_found(jumps, outputs[1], "steady:0");
    check_found(jumps, outputs[2], "steady:0");
    check_found(jumps, outputs[5], "steady:0, scaled");
    check_found(jumps, outputs[0], "steady:0, scaled, values");
    msc_discontinuity_destroy(jumps);
    msc_graph_destroy(g);
}

// Tensors that the network asked about does not have are passed by.
static void test_graph_discontinuity__names(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *jumps;
    struct msc_graph *g = make_jumping(outputs), *other = make_branches();
    assert_ok(msc_discontinuity_create(&jumps, other, g));
    check_found(jumps, outputs[5], "");
    assert_null(msc_discontinuity_name(jumps, outputs[5]));
    msc_discontinuity_destroy(jumps);
    msc_graph_destroy(other);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_discontinuity__above),
        cmocka_unit_test(test_graph_discontinuity__before),
        cmocka_unit_test(test_graph_discontinuity__names),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
