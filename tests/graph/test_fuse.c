// Passes that fuse joints: which operators a model has before and after, and how many.
// tests/kernels runs the same models and checks that results do not change. Expected counts are
// written by hand.
#include "tests/graph/onnx_files.h"

#include "graph/passes/fuse_internal.h"

#define CASE(name) MSC_TESTS_FOLDER "/kernels/cases/test_fused_" name "/model.onnx"

// Printed graphs can be read back, so fused joints need a printed form, too.
static void check_forms(const struct msc_graph *g) {
    struct msc_str text = {0};
    struct msc_graph *copy;
    msc_graph_write_json(g, &text);
    assert_ok(msc_graph_read_json(&copy, text.data, text.length, "fused.json", NULL, NULL));
    assert_true(msc_graph_equal(g, copy, false));
    msc_graph_destroy(copy);
    msc_str_finish(&text);
}

static void test_graph_fuse__gelu(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("gelu"));
    assert_int_equal(count_of(g, MSC_OP_GELU), 6);
    assert_int_equal(msc_graph_n_joints(g), 7);
    int n_exact = 0;
    for (int i = 0; i < 6; i++) {
        const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, i));
        const struct msc_joint *j = msc_graph_joint(g, y->producer);
        assert_string_equal(j->name, y->alias); // the fused joint has the name of its last part
        n_exact += strcmp(msc_joint_attr(j, "approximate"), "none") == 0;
    }
    assert_int_equal(n_exact, 2);
    check_forms(g);
    msc_graph_destroy(g);
}

static void test_graph_fuse__hard_swish(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("hard_swish"));
    assert_int_equal(count_of(g, MSC_OP_HARD_SWISH), 5);
    assert_int_equal(msc_graph_n_joints(g), 6);
    check_forms(g);
    msc_graph_destroy(g);
}

static void test_graph_fuse__hard_swish_limits(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("hard_swish_limits"));
    assert_int_equal(count_of(g, MSC_OP_HARD_SWISH), 3);
    assert_int_equal(msc_graph_n_joints(g), 4);
    check_forms(g);
    msc_graph_destroy(g);
}

static void test_graph_fuse__bias(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("bias"));
    assert_int_equal(msc_graph_n_joints(g), 6);
    assert_int_equal(count_of(g, MSC_OP_LINEAR_BIAS), 1);
    // one of the two convolutions is followed by a normalisation
    assert_int_equal(count_of(g, MSC_OP_CONV2D_BIAS), 2);
    assert_int_equal(count_of(g, MSC_OP_CONV2D_TRANSPOSE), 1);
    const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, 0));
    const struct msc_joint *line = msc_graph_joint(g, y->producer);
    // The joint has the layer's name. Its output has the alias of the sum.
    assert_memory_equal(line->name, "matmul", 6);
    assert_memory_equal(y->alias, "add", 3);
    assert_string_equal(weight_of(g, line->name, "bias")->layout, "O");
    y = msc_graph_tensor(g, msc_graph_output(g, 1));
    check_dims(weight_of(g, msc_graph_joint(g, y->producer)->name, "bias"), "[7]");
    check_forms(g);
    msc_graph_destroy(g);
}

static void test_graph_fuse__pad(void **state) {
    static const char *const paddings[] = {"1,1,1,1", "1,1,1,1", "2,0"};
    (void)state;
    struct msc_graph *g = load_file(CASE("pad"));
    assert_int_equal(msc_graph_n_joints(g), 5);
    assert_int_equal(count_of(g, MSC_OP_PAD), 0);
    for (int i = 0; i < 3; i++) {
        const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, i));
        const struct msc_joint *conv = msc_graph_joint(g, y->producer);
        assert_string_equal(msc_joint_attr(conv, "padding"), paddings[i]);
        assert_string_equal(conv->name, y->alias);
    }
    check_forms(g);
    msc_graph_destroy(g);
    g = load_file(CASE("no_pad"));
    assert_int_equal(count_of(g, MSC_OP_PAD), 8);
    msc_graph_destroy(g);
}

// Padding with -infinity becomes the padding of a following max pool, unless the pool is dilated.
static void test_graph_fuse__infinite_pad(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MORE("pad_infinite"));
    assert_int_equal(msc_graph_n_joints(g), 2);
    const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, 0));
    assert_string_equal(msc_joint_attr(msc_graph_joint(g, y->producer), "padding"), "0,0,1,1");
    msc_graph_destroy(g);
    g = load_file(MSC_TESTS_MORE("pad_infinite_dilated"));
    assert_int_equal(count_of(g, MSC_OP_PAD), 1);
    check_forms(g);
    msc_graph_destroy(g);
}

static void test_graph_fuse__einsum(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("einsum"));
    assert_int_equal(count_of(g, MSC_OP_EINSUM), 0);
    assert_int_equal(count_of(g, MSC_OP_MATMUL) + count_of(g, MSC_OP_LINEAR), 9);
    for (int i = 0; i < 9; i++) {
        const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, i));
        assert_string_equal(msc_graph_joint(g, y->producer)->name, y->alias);
    }
    check_forms(g);
    msc_graph_destroy(g);
    g = load_file(CASE("no_einsum"));
    assert_int_equal(count_of(g, MSC_OP_EINSUM), 4);
    // only the Einsum that sums over two axes of a constant becomes a linear layer
    assert_int_equal(count_of(g, MSC_OP_LINEAR), 1);
    msc_graph_destroy(g);
}

// Constant operands of Einsum become weights, whatever the order of their axes. Each is a matrix
// with its own name and output channels, except the last, which is one matrix per head.
static void test_graph_fuse__einsum_weights(void **state) {
    static const struct {
        const char *dims, *layout;
    } rows[] = {
        {"[4,5]", "IO"},  {"[5,4]", "OI"},  {"[5,4]", "OI"},  {"[5,4]", "OI"},
        {"[3,5]", "IO"},  {"[4,6]", "IO"},  {"[6,4]", "OI"},  {"[4,6]", "IO"},
        {"[20,3]", "IO"}, {"[20,3]", "IO"}, {"[20,6]", "IO"}, {"[3,5,7]", ""},
    };
    (void)state;
    struct msc_graph *g = load_file(CASE("einsum_weights"));
    struct msc_sites sites;
    assert_int_equal(count_of(g, MSC_OP_EINSUM), 0);
    assert_int_equal(count_of(g, MSC_OP_LINEAR), 11);
    assert_int_equal(count_of(g, MSC_OP_MATMUL), 1);
    assert_ok(msc_sites_find(&sites, g, NULL));
    for (int i = 0; i < 12; i++) {
        char name[8];
        snprintf(name, sizeof(name), "c%d", i);
        int32_t site = msc_sites_find_name(&sites, name);
        assert_int_not_equal(site, MSC_NO_ID);
        const struct msc_tensor *w = msc_graph_tensor(g, sites.sites[site].tensor);
        assert_int_equal(sites.sites[site].kind, MSC_SITE_WEIGHT);
        assert_string_equal(w->layout, rows[i].layout);
        check_dims(w, rows[i].dims);
        assert_int_equal(sites.sites[site].channel_axis, msc_tensor_axis(w, 'O'));
        const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, i));
        assert_string_equal(msc_graph_joint(g, y->producer)->name, y->alias);
    }
    for (int32_t i = 0; i < sites.n_sites; i++) { // no site treats a constant as an activation
        const struct msc_site *site = &sites.sites[i];
        assert_true((site->kind == MSC_SITE_WEIGHT) ==
                    (msc_graph_weight_of(g, site->tensor) != MSC_NO_ID));
    }
    check_forms(g);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

static void test_graph_fuse__layer_norm(void **state) {
    static const char *const axes[] = {"-1,", "-1,", "-1,", "-2,-1", "-1,", "-3,-2,-1"};
    static const char *const epsilons[] = {"1e-05", "0.001", "1e-05", "1e-05", "0.01", "1e-05"};
    (void)state;
    struct msc_graph *g = load_file(CASE("layer_norm"));
    assert_int_equal(count_of(g, MSC_OP_LAYER_NORM), 6);
    assert_int_equal(msc_graph_n_joints(g), 8);
    for (int i = 0; i < 6; i++) {
        const struct msc_tensor *y = msc_graph_tensor(g, msc_graph_output(g, i));
        const struct msc_joint *j = msc_graph_joint(g, y->producer);
        assert_string_equal(msc_joint_attr(j, "axes"), axes[i]);
        assert_string_equal(msc_joint_attr(j, "epsilon"), epsilons[i]);
        assert_string_equal(msc_joint_attr(j, "center"), i % 2 == 1 && i > 1 ? "0" : "1");
    }
    check_forms(g);
    msc_graph_destroy(g);
    g = load_file(CASE("no_layer_norm"));
    assert_int_equal(count_of(g, MSC_OP_LAYER_NORM), 0);
    assert_int_equal(count_of(g, MSC_OP_SQRT), 5);
    msc_graph_destroy(g);
}

// Nothing is fused if constants differ, if a tensor has another consumer, if inputs differ or if
// a broadcast is needed.
static void test_graph_fuse__not(void **state) {
    (void)state;
    struct msc_graph *g = load_file(CASE("not"));
    assert_int_equal(count_of(g, MSC_OP_ERF), 4);
    assert_int_equal(count_of(g, MSC_OP_CLIP), 4);
    assert_int_equal(count_of(g, MSC_OP_HARD_SIGMOID), 1);
    assert_int_equal(count_of(g, MSC_OP_LINEAR), 2);
    assert_int_equal(count_of(g, MSC_OP_GELU) + count_of(g, MSC_OP_HARD_SWISH), 0);
    msc_graph_destroy(g);
}

// relu(x) * 2 + x. If `is_shared`, the relu has another consumer.
static struct msc_graph *make_sum(int32_t *sum, bool is_shared) {
    struct msc_graph *g;
    const float two = 2;
    struct msc_array *data;
    assert_ok(msc_graph_create(&g, "sum"));
    int32_t x = add_input(g, "x", "", 1, DIMS(3)), number;
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 0, NULL, &two));
    assert_ok(msc_graph_add_weight(&number, g, "two", NULL, "", data));
    msc_array_release(data);
    struct msc_weight_spec held = {"const", number};
    int32_t constant = add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT, .n_weights = 1, .weights = &held});
    int32_t relu = add_unary(g, MSC_OP_RELU, NULL, x);
    int32_t product =
        add_joint(g, &(struct msc_joint_spec){
                         .op = MSC_OP_MULTIPLY, .n_inputs = 2, .inputs = IDS(constant, relu)});
    *sum = add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_ADD, .n_inputs = 2, .inputs = IDS(product, x)});
    assert_ok(msc_graph_set_outputs(g, is_shared ? 2 : 1, IDS(*sum, relu)));
    assert_ok(msc_graph_finalize(g));
    *sum = msc_graph_output(g, 0);
    return g;
}

static void test_graph_fuse__patterns(void **state) {
    static const struct {
        const char *pattern;
        bool fits, fits_shared;
    } rows[] = {
        {"y", true, true},
        {"add(a, b)", true, true},
        {"add(x, multiply(nn.relu(x), 2))", true, false},
        {"add(multiply(2, r:nn.relu(x)), x)", true, false},
        {"add(multiply(r, $two), x)", true, true},
        {"add(multiply($two, $other), x)", false, false},
        {"add(multiply(r, 2.001), x)", false, false},
        {"add(x, x)", false, false},
        {"subtract(a, b)", false, false},
        {"add(a)", false, false},
        {"add(a, b, c)", false, false},
        {"add(multiply(nn.relu[alpha=1](x), 2), x)", false, false},
    };
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        int32_t sum;
        struct msc_graph *g = make_sum(&sum, is_shared);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct msc_match m;
            bool expected = is_shared ? rows[i].fits_shared : rows[i].fits;
            if (msc_match(&m, g, msc_graph_n_joints(g), rows[i].pattern, sum) != expected) {
                fail_msg("%s", rows[i].pattern);
            }
            assert_int_equal(msc_match_tensor(&m, "nothing"), MSC_NO_ID);
        }
        struct msc_match m;
        assert_true(msc_match(&m, g, msc_graph_n_joints(g), "add(p:multiply(r, $two), x)", sum));
        assert_int_equal(msc_match_joint(&m, "p")->op, MSC_OP_MULTIPLY);
        assert_int_equal(msc_match_tensor(&m, "x"), msc_graph_input(g, 0));
        double two;
        assert_true(msc_match_number(&two, g, msc_match_tensor(&m, "two")));
        assert_float_equal(two, 2, 0);
        msc_graph_destroy(g);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_fuse__gelu),
        cmocka_unit_test(test_graph_fuse__hard_swish),
        cmocka_unit_test(test_graph_fuse__hard_swish_limits),
        cmocka_unit_test(test_graph_fuse__bias),
        cmocka_unit_test(test_graph_fuse__not),
        cmocka_unit_test(test_graph_fuse__einsum),
        cmocka_unit_test(test_graph_fuse__einsum_weights),
        cmocka_unit_test(test_graph_fuse__pad),
        cmocka_unit_test(test_graph_fuse__infinite_pad),
        cmocka_unit_test(test_graph_fuse__layer_norm),
        cmocka_unit_test(test_graph_fuse__patterns),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
