// Limits behind a layer keep NaN, whichever kernel takes them along and by how many threads it works.
// All other numbers are small and whole, so that sums are exact and must agree bit by bit.
#include "tests/kernels/cpu_case.h"

#include <math.h>

struct layer {
    enum msc_op op;
    const char *x_layout, *w_layout, *attributes;
    int n_x, n_w;
    int64_t x[5], w[5];
    int64_t n_bias;
};

static const struct layer layers[] = {
    {MSC_OP_CONV2D, "NCHW", "OIHW", "padding=1,1,1,1", 4, 4, {2, 8, 9, 9}, {16, 8, 3, 3}, 0},
    {MSC_OP_CONV2D_BIAS, "NCHW", "OIHW", "strides=2,2", 4, 4, {1, 8, 9, 9}, {5, 8, 3, 3}, 5},
    {MSC_OP_CONV2D, "NCHW", "OIHW", "", 4, 4, {1, 8, 9, 9}, {16, 8, 1, 1}, 0},
    {MSC_OP_CONV2D, "NCHW", "OIHW", "", 4, 4, {1, 24, 30, 9}, {48, 24, 1, 1}, 0},
    {MSC_OP_CONV2D_BIAS,
     "NCHW",
     "OIHW",
     "padding=1,1,1,1;groups=32",
     4,
     4,
     {1, 32, 9, 9},
     {32, 1, 3, 3},
     32},
    {MSC_OP_CONV2D, "NCHW", "OIHW", "groups=2", 4, 4, {1, 6, 5, 9}, {8, 3, 3, 3}, 0},
    {MSC_OP_CONV1D, "NCW", "OIW", "padding=1,1", 3, 3, {2, 8, 9}, {16, 8, 3}, 0},
    {MSC_OP_CONV3D, "NCDHW", "OIDHW", "", 5, 5, {1, 3, 4, 5, 6}, {5, 3, 3, 2, 3}, 0},
    {MSC_OP_CONV2D_TRANSPOSE, "NCHW", "IOHW", "", 4, 4, {1, 4, 5, 5}, {4, 6, 2, 2}, 6},
    {MSC_OP_LINEAR, "", "OI", "", 2, 2, {6, 40}, {17, 40}, 0},
    {MSC_OP_LINEAR_BIAS, "", "OI", "", 2, 2, {40, 64}, {64, 64}, 64},
};

static void make_whole(struct msc_array *a) {
    float *x = msc_array_data(a);
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        x[i] = rintf(x[i]);
    }
}

static int32_t whole_weight(struct cpu_case *c, const char *name, const char *layout, int n_dims,
                            const int64_t dims[], bool is_spoilt) {
    int32_t tensor;
    struct msc_array *data = cpu_random(c, n_dims, dims);
    make_whole(data);
    // All taps of the last channels: padding times NaN is NaN in the reference kernel alone.
    for (int64_t i = 1; is_spoilt && i <= msc_dims_product(n_dims - 2, dims + 2); i++) {
        ((float *)msc_array_data(data))[msc_array_n_elements(data) - i] = NAN;
    }
    assert_ok(msc_graph_add_weight(&tensor, c->g, name, NULL, layout, data));
    msc_array_release(data);
    return tensor;
}

// NaN itself, and what becomes NaN within the layer.
static void spoil(struct msc_array *x) {
    float *elements = msc_array_data(x);
    int64_t n = msc_array_n_elements(x);
    make_whole(x);
    elements[0] = NAN;
    elements[n / 2] = INFINITY;
    elements[n / 2 + 1] = -INFINITY;
}

static int64_t count_nan(const struct msc_array *a) {
    int64_t n = 0;
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        n += isnan(msc_array_get_double(a, i)) ? 1 : 0;
    }
    return n;
}

// The layer's result with its limit as cpu_run and the reference have it. NaN is in its input, or in
// weights of the last channel.
static void check(const struct layer *l, enum msc_op limit, const char *limits, int kernel_threads,
                  bool is_in_weight) {
    struct cpu_case c;
    struct msc_array *actual, *expected;
    cpu_case_init(&c, 51);
    c.low = -3.0f;
    c.high = 3.0f;
    c.options.kernel_threads = kernel_threads;
    int32_t x = cpu_input(&c, l->x_layout, l->n_x, l->x);
    int32_t w = whole_weight(&c, "w", l->w_layout, l->n_w, l->w, is_in_weight);
    int32_t b = l->n_bias > 0 ? whole_weight(&c, "b", "O", 1, &l->n_bias, false) : MSC_NO_ID;
    int32_t y = cpu_joint(&c, l->op, 1, &x, l->attributes, w, b);
    cpu_case_finish_graph(&c, cpu_joint(&c, limit, 1, &y, limits, MSC_NO_ID, MSC_NO_ID));
    if (is_in_weight) {
        make_whole(c.inputs[0]);
    } else {
        spoil(c.inputs[0]);
    }
    cpu_run(&actual, &c, 0);
    cpu_expect(&expected, &c, 0);
    assert_true(count_nan(expected) > 0);
    assert_int_equal(count_nan(actual), count_nan(expected));
    assert_true(cpu_is_equal(actual, expected));
    msc_array_release(actual);
    msc_array_release(expected);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_nan__limits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        for (int k = 0; k < 4; k++) {
            check(&layers[i], MSC_OP_RELU, "", 1 + k / 2, k % 2 == 1);
            check(&layers[i], MSC_OP_CLIP, "min=-4;max=6", 1 + k / 2, k % 2 == 1);
            check(&layers[i], MSC_OP_CLIP, "max=6", 1 + k / 2, k % 2 == 1);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_nan__limits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
