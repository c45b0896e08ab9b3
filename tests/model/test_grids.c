// Comparison of two computations of a network with quantised tensors ("grids"): codes may differ by
// rounding, and wrong codes are found. Expected results follow from the formula in
// model/grids.h.
#include "model/grids.h"

#include "tests/graph/graph_samples.h"
#include "tests/joint_attrs.h"

#define N 4

static int32_t add_with(struct msc_graph *g, enum msc_op op, const char *name, int32_t n_outputs,
                        int32_t n_inputs, const int32_t inputs[], int32_t n_weights,
                        const struct msc_weight_spec weights[], const char *text) {
    struct joint_attrs attrs;
    joint_attrs_read(&attrs, text);
    return add_joint(g, &(struct msc_joint_spec){.op = op,
                                                 .name = name,
                                                 .n_inputs = n_inputs,
                                                 .inputs = inputs,
                                                 .n_weights = n_weights,
                                                 .weights = weights,
                                                 .n_attrs = attrs.n,
                                                 .attrs = attrs.rows,
                                                 .n_outputs = n_outputs});
}

static int32_t constant(struct msc_graph *g, const char *name, enum msc_dtype dtype, int n_dims,
                        const int64_t dims[], const void *elements) {
    struct msc_array *data;
    int32_t tensor;
    assert_ok(msc_array_create_from(&data, dtype, n_dims, dims, elements));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, "", data));
    msc_array_release(data);
    return tensor;
}

static struct msc_array *array(enum msc_dtype dtype, int n_dims, int64_t n, const void *elements) {
    struct msc_array *out;
    assert_ok(msc_array_create_from(&out, dtype, n_dims, &n, elements));
    return out;
}

// A network with one input and one output, and its grids.
struct network {
    struct msc_graph *g;
    struct msc_discontinuity *d;
    struct msc_grids *grids;
};

static void network_finish_building(struct network *n, int32_t output, size_t n_grids) {
    assert_ok(msc_graph_set_outputs(n->g, 1, &output));
    assert_ok(msc_graph_finalize(n->g));
    assert_ok(msc_discontinuity_create(&n->d, n->g, n->g));
    assert_ok(msc_grids_create(&n->grids, n->d));
    assert_int_equal(n->grids->n, n_grids);
    assert_true(msc_grids_above(n->grids, msc_graph_output(n->g, 0)));
    assert_false(msc_grids_above(n->grids, msc_graph_input(n->g, 0)));
}

static void network_destroy(struct network *n) {
    msc_grids_destroy(n->grids);
    msc_discontinuity_destroy(n->d);
    msc_graph_destroy(n->g);
}

// Computes the output from the codes `found`, or returns NULL with MSC_E_STATE if they are wrong.
// Releases `found` and `x`.
static struct msc_array *run_network(const struct network *n, struct msc_array *x,
                                     struct msc_array *found[], struct msc_grids_run *run) {
    const struct msc_array *inputs[] = {x};
    int32_t output = msc_graph_output(n->g, 0);
    struct msc_array *y = NULL;
    *run = (struct msc_grids_run){.inputs = inputs,
                                  .found = (const struct msc_array *const *)found,
                                  .numerics = "test",
                                  .limits = {1e-3, 1e-3, 0},
                                  .wanted = &output,
                                  .n_wanted = 1};
    enum msc_status status = msc_grids_run(&y, n->grids, run);
    assert_true(status == MSC_OK || status == MSC_E_STATE);
    assert_int_equal(y != NULL, status == MSC_OK);
    for (size_t i = 0; i < n->grids->n; i++) {
        msc_array_release(found[i]);
    }
    msc_array_release(x);
    return y;
}

// ---- QuantizeLinear ---------------------------------------------------------------------------

// QuantizeLinear and DequantizeLinear with scale 0.1, or with one scale per element.
static void make_quantised(struct network *n, const float scales[N]) {
    static const float tenth = 0.1f;
    static const int8_t zeros[N] = {0};
    assert_ok(msc_graph_create(&n->g, "quantised"));
    int32_t x = add_input(n->g, "x", "", 1, DIMS(N));
    int n_dims = scales ? 1 : 0;
    struct msc_weight_spec of[] = {
        {"scale", constant(n->g, "s", MSC_DTYPE_F32, n_dims, DIMS(N), scales ? scales : &tenth)},
        {"zero_point", constant(n->g, "z", MSC_DTYPE_I8, n_dims, DIMS(N), zeros)}};
    int32_t q = add_with(n->g, MSC_OP_QUANTIZE, "q", 1, 1, &x, 2, of, "axis=0;dtype=int8");
    int32_t y = add_with(n->g, MSC_OP_DEQUANTIZE, "y", 1, 1, &q, 2, of, "axis=0");
    network_finish_building(n, y, 1);
}

// The scale is 0.1; atol and rtol are 1e-3. If this library computes 0.2495, a runtime may have any
// float from 0.2482505 to 0.2507495, so its code (the integer) may be 2 or 3.
static void test_pipeline_grids__quantised(void **state) {
    static const float x[N] = {0.2495f, 0.2f, -0.3505f, 100};
    static const struct {
        int8_t found[N];
        int64_t n_steps; // number of elements that are one step apart; -1: the codes are wrong
    } rows[] = {
        {{2, 2, -4, 127}, 0},   {{3, 2, -4, 127}, 1},
        {{3, 2, -3, 127}, 2},   {{2, 3, -4, 127}, -1}, // no number close to 0.2 has code 3
        {{4, 2, -4, 127}, -1},                         // two steps apart
        {{2, 2, -4, -128}, -1},                        // a whole range apart
    };
    (void)state;
    struct network n;
    make_quantised(&n, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_grids_run run;
        struct msc_array *found[] = {array(MSC_DTYPE_I8, 1, N, rows[i].found)};
        struct msc_array *y = run_network(&n, array(MSC_DTYPE_F32, 1, N, x), found, &run);
        assert_int_equal(y != NULL, rows[i].n_steps >= 0);
        for (int64_t k = 0; y && k < N; k++) { // the output is computed from `found`
            assert_float_equal(msc_array_get_double(y, k), 0.1 * rows[i].found[k], 1e-5);
        }
        assert_true(!y || (run.n_steps == rows[i].n_steps && run.n_elements == N));
        msc_array_release(y);
    }
    struct msc_array *found[] = {array(MSC_DTYPE_I8, 1, N - 1, rows[0].found)};
    struct msc_grids_run run;
    assert_null(run_network(&n, array(MSC_DTYPE_F32, 1, N, x), found, &run));
    assert_message("has 3 elements");
    network_destroy(&n);
}

// If a float may differ by several steps, its code may differ by the same number of steps.
static void test_pipeline_grids__scales_of_an_axis(void **state) {
    static const float scales[N] = {0.1f, 1, 0.0005f, 0.001f}, x[N] = {1, 2, 0.01f, 0.05f};
    static const int8_t near[N] = {10, 2, 22, 50}, far[N] = {10, 2, 23, 50};
    (void)state;
    struct network n;
    struct msc_grids_run run;
    make_quantised(&n, scales);
    struct msc_array *found = array(MSC_DTYPE_I8, 1, N, near);
    struct msc_array *y = run_network(&n, array(MSC_DTYPE_F32, 1, N, x), &found, &run);
    assert_non_null(y);
    msc_array_release(y);
    assert_int_equal(run.n_steps, 1);
    found = array(MSC_DTYPE_I8, 1, N, far);
    assert_null(run_network(&n, array(MSC_DTYPE_F32, 1, N, x), &found, &run));
    assert_message(
        "baseline: q:0[2] is 23 on test but 20 with the reference kernels, quantised from "
        "0.00999999978; expected 18 to 22, from values within");
    network_destroy(&n);
}

// ---- DynamicQuantizeLinear --------------------------------------------------------------------

// The range -1 to 1.55 has 255 steps of 0.01; zero has code 100.
static void test_pipeline_grids__dynamic(void **state) {
    static const float x[N] = {-1, 1.55f, 0.0049f, 0.5f};
    static const struct {
        uint8_t found[N];
        float scale;
        uint8_t zero;
        int n_steps, n_ranges; // n_steps: -1 if the codes are wrong; n_ranges: -1 if not checked
    } rows[] = {
        {{0, 255, 100, 150}, 0.01f, 100, 0, -1},    {{0, 255, 101, 150}, 0.01f, 100, 1, -1},
        {{0, 255, 100, 150}, 0.010001f, 100, 0, 1}, // one end of the range moved by 2.6e-4
        {{0, 255, 100, 150}, 0.0101f, 100, -1, 0},  // one end moved by 0.026
        {{1, 255, 101, 151}, 0.01f, 101, -1, 0},    {{0, 255, 100, 151}, 0.01f, 100, -1, 0},
    };
    (void)state;
    struct network n;
    assert_ok(msc_graph_create(&n.g, "dynamic"));
    int32_t in = add_input(n.g, "x", "", 1, DIMS(N));
    int32_t q = add_with(n.g, MSC_OP_DYNAMIC_QUANTIZE, "q", 3, 1, &in, 0, NULL, "");
    const int32_t *of = msc_graph_joint(n.g, msc_graph_tensor(n.g, q)->producer)->outputs;
    int32_t read[] = {of[0], of[1], of[2]};
    network_finish_building(&n, add_with(n.g, MSC_OP_DEQUANTIZE, "y", 1, 3, read, 0, NULL, ""), 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_grids_run run;
        struct msc_array *found[] = {array(MSC_DTYPE_U8, 1, N, rows[i].found),
                                     array(MSC_DTYPE_F32, 0, 1, &rows[i].scale),
                                     array(MSC_DTYPE_U8, 0, 1, &rows[i].zero)};
        struct msc_array *y = run_network(&n, array(MSC_DTYPE_F32, 1, N, x), found, &run);
        assert_int_equal(y != NULL, rows[i].n_steps >= 0);
        assert_true(!y || run.n_steps == rows[i].n_steps);
        assert_true(!y || rows[i].n_ranges < 0 || run.n_ranges == rows[i].n_ranges);
        msc_array_release(y);
    }
    network_destroy(&n);
}

// ---- Codes computed from codes -----------------------------------------------------------------

// QLinearMatMul of codes 0 to 199 with 1, all scales 1: the output codes equal the input codes.
static void test_pipeline_grids__sums(void **state) {
    enum { ROWS = 200 };
    static const float one = 1;
    static const uint8_t zero = 0, unit = 1;
    (void)state;
    struct network n;
    assert_ok(msc_graph_create(&n.g, "sums"));
    int32_t x;
    assert_ok(msc_graph_add_input(&x, n.g, "x", NULL, MSC_DTYPE_U8, "", 2, DIMS(ROWS, 1)));
    struct msc_weight_spec w = {"const", constant(n.g, "w", MSC_DTYPE_U8, 2, DIMS(1, 1), &unit)};
    int32_t b = add_with(n.g, MSC_OP_CONSTANT, "b", 1, 0, NULL, 1, &w, "");
    struct msc_weight_spec of[] = {
        {"a_scale", constant(n.g, "as", MSC_DTYPE_F32, 0, NULL, &one)},
        {"a_zero", constant(n.g, "az", MSC_DTYPE_U8, 0, NULL, &zero)},
        {"b_scale", constant(n.g, "bs", MSC_DTYPE_F32, 0, NULL, &one)},
        {"b_zero", constant(n.g, "bz", MSC_DTYPE_U8, 0, NULL, &zero)},
        {"y_scale", constant(n.g, "ys", MSC_DTYPE_F32, 0, NULL, &one)},
        {"y_zero", constant(n.g, "yz", MSC_DTYPE_U8, 0, NULL, &zero)},
    };
    int32_t y = add_with(n.g, MSC_OP_QLINEAR_MATMUL, "y", 1, 2, IDS(x, b), 6, of, "");
    network_finish_building(&n, y, 1);
    // n_off of the 200 elements differ by `by`. Up to 2 + 1 elements may be one step apart.
    static const struct {
        int n_off, by;
        bool is_close;
    } rows[] = {{0, 0, true}, {3, 1, true}, {3, -1, true}, {4, 1, false}, {1, 2, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t codes[ROWS], found[ROWS];
        for (int k = 0; k < ROWS; k++) {
            codes[k] = (uint8_t)k;
            found[k] = (uint8_t)(k + (k >= 50 && k < 50 + rows[i].n_off ? rows[i].by : 0));
        }
        struct msc_array *in, *out, *result;
        struct msc_grids_run run;
        assert_ok(msc_array_create_from(&in, MSC_DTYPE_U8, 2, DIMS(ROWS, 1), codes));
        assert_ok(msc_array_create_from(&out, MSC_DTYPE_U8, 2, DIMS(ROWS, 1), found));
        result = run_network(&n, in, &out, &run);
        assert_int_equal(result != NULL, rows[i].is_close);
        assert_true(!result || run.n_steps == rows[i].n_off);
        msc_array_release(result);
    }
    network_destroy(&n);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_grids__quantised),
        cmocka_unit_test(test_pipeline_grids__scales_of_an_axis),
        cmocka_unit_test(test_pipeline_grids__dynamic),
        cmocka_unit_test(test_pipeline_grids__sums),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
