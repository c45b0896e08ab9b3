// Finds joints whose output jumps on a small change of their input (rounding, comparisons, argmax),
// and the tensors before these joints. Which operators jump follows from ONNX's definitions.
#include "graph/discontinuity.h"

#include "tests/graph/graph_samples.h"
#include "tests/joint_attrs.h"

// Adds a joint with one or two inputs and n_outputs outputs, and returns its first output.
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

// A network with every kind of discontinuity and some similar joints without one.
static struct msc_graph *make_discontinuous(int32_t outputs[6]) {
    static const int64_t dims[] = {4, 6};
    struct msc_graph *g;
    int32_t x, y, part, top, rows;
    assert_ok(msc_graph_create(&g, "discontinuous"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    y = add_one(g, MSC_OP_SQRT, "steady", 1, x, MSC_NO_ID, NULL);
    part = add_one(g, MSC_OP_STRIDED_SLICE, "part", 1, y, MSC_NO_ID, "begin=0,;end=3,");
    top = add_one(g, MSC_OP_TOPK, "top", 2, part, MSC_NO_ID, "k=2");
    const int32_t *of_top = msc_graph_joint(g, msc_graph_tensor(g, top)->producer)->outputs;
    outputs[0] = add_one(g, MSC_OP_SQRT, "values", 1, of_top[0], MSC_NO_ID, NULL);
    outputs[1] = add_one(g, MSC_OP_CAST, "places", 1, of_top[1], MSC_NO_ID, "dtype=float32");
    outputs[2] = add_one(g, MSC_OP_NONZERO, "found", 1, y, MSC_NO_ID, NULL);
    outputs[3] = add_one(g, MSC_OP_ARGMAX, "class", 1, x, MSC_NO_ID, "axis=1");
    // Arithmetic on lengths is constant, so its rounding is not a discontinuity.
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

// `expected` is "" if no joint is found above the tensor.
static void check_above(const struct msc_discontinuity *d, int32_t tensor, const char *expected) {
    int32_t joint = msc_discontinuity_above(d, tensor);
    assert_string_equal(joint == MSC_NO_ID ? "" : msc_graph_joint(d->g, joint)->name, expected);
}

static void check_found(struct msc_discontinuity *d, int32_t tensor, const char *expected) {
    struct msc_str names = {0};
    msc_discontinuity_collect(d, tensor);
    for (size_t i = 0; i < d->n_found; i++) {
        msc_str_item(&names, msc_discontinuity_name(d, d->found[i]));
    }
    assert_string_equal(msc_str_text(&names), expected);
    msc_str_finish(&names);
}

static void test_graph_discontinuity__above(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *d;
    struct msc_graph *g = make_discontinuous(outputs);
    assert_ok(msc_discontinuity_create(&d, g, g));
    check_above(d, outputs[0], "");
    check_above(d, outputs[1], "top");
    check_above(d, outputs[2], "found");
    check_above(d, outputs[3], "class");
    check_above(d, outputs[4], "");
    check_above(d, outputs[5], "rounded");
    msc_discontinuity_destroy(d);
    msc_graph_destroy(g);
}

static void test_graph_discontinuity__before(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *d;
    struct msc_graph *g = make_discontinuous(outputs);
    assert_ok(msc_discontinuity_create(&d, g, g));
    // There is no tensor between the input and the argmax that reads it.
    check_found(d, outputs[3], "");
    // The tensor before the slice is listed, not the slice, and only once.
    check_found(d, outputs[1], "steady:0");
    check_found(d, outputs[2], "steady:0");
    check_found(d, outputs[5], "steady:0, scaled");
    check_found(d, outputs[0], "steady:0, scaled, values");
    msc_discontinuity_destroy(d);
    msc_graph_destroy(g);
}

// Tensors that the other network does not have are skipped.
static void test_graph_discontinuity__names(void **state) {
    (void)state;
    int32_t outputs[6];
    struct msc_discontinuity *d;
    struct msc_graph *g = make_discontinuous(outputs), *other = make_branches();
    assert_ok(msc_discontinuity_create(&d, other, g));
    check_found(d, outputs[5], "");
    assert_null(msc_discontinuity_name(d, outputs[5]));
    msc_discontinuity_destroy(d);
    msc_graph_destroy(other);
    msc_graph_destroy(g);
}

// Operators that have jumps by ONNX's definition, each next to a similar operator without jumps.
static void test_graph_discontinuity__operators(void **state) {
    (void)state;
    static const struct {
        enum msc_op op;
        const char *attrs;
        int32_t n_inputs, n_outputs, output;
        bool makes_steps;
    } rows[] = {
        {MSC_OP_EQUAL, NULL, 2, 1, 0, true},
        {MSC_OP_GREATER, NULL, 2, 1, 0, true},
        {MSC_OP_LESS, NULL, 2, 1, 0, true},
        {MSC_OP_GREATER_EQUAL, NULL, 2, 1, 0, true},
        {MSC_OP_LESS_EQUAL, NULL, 2, 1, 0, true},
        {MSC_OP_MAXIMUM, NULL, 2, 1, 0, false},
        {MSC_OP_ARGMAX, "axis=1", 1, 1, 0, true},
        {MSC_OP_ARGMIN, "axis=1", 1, 1, 0, true},
        {MSC_OP_MAX, "axis=1", 1, 1, 0, false},
        {MSC_OP_TOPK, "k=2", 1, 2, 0, false},
        {MSC_OP_TOPK, "k=2", 1, 2, 1, true},
        {MSC_OP_UNIQUE, NULL, 1, 4, 0, true},
        {MSC_OP_UNIQUE, NULL, 1, 4, 3, true},
        {MSC_OP_NONZERO, NULL, 1, 1, 0, true},
        {MSC_OP_HARDMAX, NULL, 1, 1, 0, true},
        {MSC_OP_SOFTMAX, NULL, 1, 1, 0, false},
        {MSC_OP_ROUND, NULL, 1, 1, 0, true},
        {MSC_OP_FLOOR, NULL, 1, 1, 0, true},
        {MSC_OP_CEIL, NULL, 1, 1, 0, true},
        {MSC_OP_SIGN, NULL, 1, 1, 0, true},
        {MSC_OP_ABS, NULL, 1, 1, 0, false},
        {MSC_OP_MOD, NULL, 2, 1, 0, true},
        {MSC_OP_FLOOR_MOD, NULL, 2, 1, 0, true},
        {MSC_OP_DIVIDE, NULL, 2, 1, 0, false},
        {MSC_OP_BIT_CAST, "dtype=int32", 1, 1, 0, true},
        {MSC_OP_CAST, "dtype=int32", 1, 1, 0, true},
        {MSC_OP_CAST, "dtype=bool", 1, 1, 0, true},
        {MSC_OP_CAST, "dtype=float16", 1, 1, 0, false},
        {MSC_OP_MULTINOMIAL, NULL, 1, 1, 0, true},
        {MSC_OP_THRESHOLDED_RELU, NULL, 1, 1, 0, true},
        {MSC_OP_THRESHOLDED_RELU, "alpha=0", 1, 1, 0, false}, // the same as relu
        {MSC_OP_SHRINK, NULL, 1, 1, 0, true},                 // hard: jumps from 0 to 0.5
        {MSC_OP_SHRINK, "bias=0.5", 1, 1, 0, false},          // soft: no jump
        {MSC_OP_ISNAN, NULL, 1, 1, 0, false},
        {MSC_OP_EYE_LIKE, NULL, 1, 1, 0, false},
        {MSC_OP_SHAPE_OF, NULL, 1, 1, 0, false},
        {MSC_OP_DYNAMIC_QUANTIZE, NULL, 1, 3, 0, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_graph *g;
        struct msc_discontinuity *d;
        int32_t x, y;
        assert_ok(msc_graph_create(&g, "one"));
        assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, DIMS(4, 6)));
        y = add_one(g, rows[i].op, "last", rows[i].n_outputs, x,
                    rows[i].n_inputs == 2 ? x : MSC_NO_ID, rows[i].attrs);
        int32_t joint = msc_graph_tensor(g, y)->producer;
        y = msc_graph_joint(g, joint)->outputs[rows[i].output];
        assert_ok(msc_graph_set_outputs(g, 1, &y));
        assert_ok(msc_graph_finalize(g));
        assert_ok(msc_discontinuity_create(&d, g, g));
        check_above(d, msc_graph_output(g, 0), rows[i].makes_steps ? "last" : "");
        msc_discontinuity_destroy(d);
        msc_graph_destroy(g);
    }
}

// Nearest sampling has jumps as a function of the grid; linear sampling does not.
static void test_graph_discontinuity__nearest(void **state) {
    (void)state;
    for (int is_nearest = 0; is_nearest < 2; is_nearest++) {
        struct msc_graph *g;
        struct msc_discontinuity *d;
        int32_t x, grid, y;
        assert_ok(msc_graph_create(&g, "sampled"));
        assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 4, DIMS(1, 2, 4, 4)));
        assert_ok(
            msc_graph_add_input(&grid, g, "grid", NULL, MSC_DTYPE_F32, "", 4, DIMS(1, 3, 3, 2)));
        y = add_one(g, MSC_OP_GRID_SAMPLE, "last", 1, x, grid,
                    is_nearest ? "mode=nearest" : "mode=bilinear");
        assert_ok(msc_graph_set_outputs(g, 1, &y));
        assert_ok(msc_graph_finalize(g));
        assert_ok(msc_discontinuity_create(&d, g, g));
        check_above(d, msc_graph_output(g, 0), is_nearest ? "last" : "");
        msc_discontinuity_destroy(d);
        msc_graph_destroy(g);
    }
}

static struct msc_graph *make_branch(const char *name, enum msc_op op) {
    struct msc_graph *g;
    int32_t x;
    assert_ok(msc_graph_create(&g, name));
    assert_ok(msc_graph_add_input(&x, g, "inner", NULL, MSC_DTYPE_F32, "", 2, DIMS(4, 6)));
    x = add_unary(g, op, NULL, x);
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// A rounding inside a branch makes the If itself a discontinuity.
static void test_graph_discontinuity__bodies(void **state) {
    (void)state;
    for (int rounds = 0; rounds < 2; rounds++) {
        struct msc_graph *g, *branches[2];
        struct msc_discontinuity *d;
        int32_t x, condition;
        branches[0] = make_branch("then", MSC_OP_SQRT);
        branches[1] = make_branch("else", rounds ? MSC_OP_ROUND : MSC_OP_TANH);
        assert_ok(msc_graph_create(&g, "outer"));
        assert_ok(msc_graph_add_input(&condition, g, "c", NULL, MSC_DTYPE_BOOL, "", 0, NULL));
        assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, DIMS(4, 6)));
        x = add_joint(
            g, &(struct msc_joint_spec){.op = MSC_OP_IF,
                                        .name = "if",
                                        .n_inputs = 2,
                                        .inputs = IDS(condition, x),
                                        .n_outputs = 1,
                                        .n_graphs = 2,
                                        .graphs = (const struct msc_graph *const *)branches});
        assert_ok(msc_graph_set_outputs(g, 1, &x));
        assert_ok(msc_graph_finalize(g));
        assert_ok(msc_discontinuity_create(&d, g, g));
        check_above(d, msc_graph_output(g, 0), rounds ? "if" : "");
        msc_discontinuity_destroy(d);
        msc_graph_destroy(g);
        msc_graph_destroy(branches[0]);
        msc_graph_destroy(branches[1]);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_discontinuity__above),
        cmocka_unit_test(test_graph_discontinuity__before),
        cmocka_unit_test(test_graph_discontinuity__names),
        cmocka_unit_test(test_graph_discontinuity__operators),
        cmocka_unit_test(test_graph_discontinuity__nearest),
        cmocka_unit_test(test_graph_discontinuity__bodies),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
