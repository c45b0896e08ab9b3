// Single joints that the backend `cpu` computes. Expected results are sums of products in double,
// computed here.
#include "kernels/engine/joint_runner.h"

#include "tests/msc_test.h"

#include <math.h>

enum { ROWS = 48, DEPTH = 320, COLUMNS = 300 };

static float number(int64_t i) {
    return (float)((37 * i + 11) % 64) * 0.03f - 0.9f;
}

static struct msc_array *numbers(int n_dims, const int64_t dims[]) {
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        ((float *)msc_array_data(array))[i] = number(i);
    }
    return array;
}

// A graph with one joint, which reads x and a weight or a second input.
struct one {
    struct msc_graph *g;
    struct msc_array *x, *w;
    int32_t joint;
};

static void open_one(struct one *o, enum msc_op op, const char *layout, bool has_weight) {
    int32_t inputs[2];
    struct msc_weight_spec role = {.role = "weight"};
    struct msc_attr attr = {"padding", "1,1,1,1"};
    assert_ok(msc_graph_create(&o->g, "one"));
    assert_ok(msc_graph_add_input(&inputs[0], o->g, "x", "x", MSC_DTYPE_F32,
                                  op == MSC_OP_CONV2D ? "NCHW" : "", msc_array_n_dims(o->x),
                                  msc_array_dims(o->x)));
    if (has_weight) {
        assert_ok(msc_graph_add_weight(&role.tensor, o->g, "w", "w", layout, o->w));
    } else {
        assert_ok(msc_graph_add_input(&inputs[1], o->g, "y", "y", MSC_DTYPE_F32, "",
                                      msc_array_n_dims(o->w), msc_array_dims(o->w)));
    }
    struct msc_joint_spec spec = {.op = op,
                                  .name = "joint",
                                  .n_inputs = has_weight ? 1 : 2,
                                  .inputs = inputs,
                                  .n_weights = has_weight ? 1 : 0,
                                  .weights = &role,
                                  .n_attrs = op == MSC_OP_CONV2D ? 1 : 0,
                                  .attrs = &attr};
    assert_ok(msc_graph_add_joint(&o->joint, o->g, &spec));
    assert_ok(msc_graph_set_outputs(o->g, 1, msc_graph_joint(o->g, o->joint)->outputs));
    assert_ok(msc_graph_finalize(o->g));
}

static void close_one(struct one *o) {
    msc_graph_destroy(o->g);
    msc_array_release(o->x);
    msc_array_release(o->w);
}

static struct msc_array *run_one(struct msc_joint_runner *runner, const struct one *o) {
    struct msc_array *out;
    const struct msc_array *operands[2] = {o->x, o->w};
    assert_ok(msc_joint_runner_run(runner, &out, o->g, o->joint, operands, NULL));
    return out;
}

static void check_product(const struct one *o, const struct msc_array *out, bool is_out_first) {
    const float *x = msc_array_data(o->x), *w = msc_array_data(o->w), *y = msc_array_data(out);
    assert_int_equal(msc_array_n_elements(out), ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double sum = 0;
        for (int k = 0; k < DEPTH; k++) {
            int at = is_out_first ? i % COLUMNS * DEPTH + k : k * COLUMNS + i % COLUMNS;
            sum += (double)x[i / COLUMNS * DEPTH + k] * (double)w[at];
        }
        assert_true(fabs(sum - (double)y[i]) <= 1e-4 * DEPTH);
    }
}

static void test_kernels_joint_runner__products(void **state) {
    (void)state;
    static const struct {
        enum msc_op op;
        const char *layout;
    } cases[] = {{MSC_OP_LINEAR, "OI"}, {MSC_OP_LINEAR, "IO"}, {MSC_OP_MATMUL, NULL}};
    struct msc_joint_runner runner = {0};
    for (int i = 0; i < 3; i++) {
        bool is_out_first = i == 0;
        struct one o = {.x = numbers(2, (const int64_t[]){ROWS, DEPTH}),
                        .w = numbers(2, is_out_first ? (const int64_t[]){COLUMNS, DEPTH}
                                                     : (const int64_t[]){DEPTH, COLUMNS})};
        open_one(&o, cases[i].op, cases[i].layout, cases[i].layout != NULL);
        struct msc_array *out = run_one(&runner, &o);
        assert_non_null(out);
        check_product(&o, out, is_out_first);
        msc_array_release(out);
        close_one(&o);
    }
    assert_true(runner.packed_bytes >= DEPTH * COLUMNS * sizeof(float));
    msc_joint_runner_finish(&runner);
}

// A convolution works in another layout, so the plan reorders its input and its output.
static void test_kernels_joint_runner__convolution(void **state) {
    (void)state;
    enum { IMAGES = 3, CHANNELS = 40, SIDE = 14, OUT = 24 };
    struct msc_joint_runner runner = {0};
    struct one o = {.x = numbers(4, (const int64_t[]){IMAGES, CHANNELS, SIDE, SIDE}),
                    .w = numbers(4, (const int64_t[]){OUT, CHANNELS, 3, 3})};
    open_one(&o, MSC_OP_CONV2D, "OIHW", true);
    struct msc_array *out = run_one(&runner, &o);
    assert_non_null(out);
    assert_int_equal(msc_array_n_elements(out), IMAGES * OUT * SIDE * SIDE);
    const float *x = msc_array_data(o.x), *w = msc_array_data(o.w), *y = msc_array_data(out);
    for (int i = 0; i < IMAGES * OUT * SIDE * SIDE; i++) {
        int column = i % SIDE, row = i / SIDE % SIDE, c = i / (SIDE * SIDE) % OUT;
        int image = i / (SIDE * SIDE * OUT);
        double sum = 0;
        for (int k = 0; k < CHANNELS * 9; k++) {
            int at_row = row + k % 9 / 3 - 1, at_column = column + k % 3 - 1;
            if (at_row >= 0 && at_row < SIDE && at_column >= 0 && at_column < SIDE) {
                int at = ((image * CHANNELS + k / 9) * SIDE + at_row) * SIDE + at_column;
                sum += (double)x[at] * (double)w[c * CHANNELS * 9 + k];
            }
        }
        assert_true(fabs(sum - (double)y[i]) <= 1e-3);
    }
    msc_array_release(out);
    close_one(&o);
    msc_joint_runner_finish(&runner);
}

// The reference kernel computes small products, and products in which each weight is used a few
// times only.
static void test_kernels_joint_runner__leaves_light(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{4, 16, 16}, {4, 1500, 1500}, {0, DEPTH, COLUMNS}};
    struct msc_joint_runner runner = {0};
    for (int i = 0; i < 3; i++) {
        struct one o = {.x = numbers(2, (const int64_t[]){sizes[i][0], sizes[i][1]}),
                        .w = numbers(2, (const int64_t[]){sizes[i][1], sizes[i][2]})};
        open_one(&o, MSC_OP_LINEAR, "IO", true);
        assert_null(run_one(&runner, &o));
        close_one(&o);
    }
    assert_null(runner.backend);
    msc_joint_runner_finish(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_joint_runner__products),
        cmocka_unit_test(test_kernels_joint_runner__convolution),
        cmocka_unit_test(test_kernels_joint_runner__leaves_light),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
