// Operators that the cpu backend leaves to its reference kernels and other backends do not: beyond
// the shapes of ONNX's own test data, which runs them in all types.
#include "tests/kernels/cpu_case.h"

struct rare {
    enum msc_op op;
    const char *attributes;
    int n_dims;
    int64_t dims[5];
    int n_more; // operands behind the input, constants of one dim of that length
    int64_t length;
};

static void check(const struct rare *r, int32_t (*add)(struct cpu_case *c, const struct rare *r)) {
    struct cpu_case c;
    cpu_case_init(&c, 7);
    cpu_case_finish_graph(&c, add(&c, r));
    cpu_check_close(&c, 1e-10);
    cpu_case_finish(&c);
}

#define CHECK(rows, add)                                                                           \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++) {                                \
        check(&(rows)[i], add);                                                                    \
    }

static int32_t add_unary(struct cpu_case *c, const struct rare *r) {
    int32_t x = cpu_input(c, "", r->n_dims, r->dims);
    return cpu_joint(c, r->op, 1, &x, r->attributes, MSC_NO_ID, MSC_NO_ID);
}

static void test_kernels_cpu_rare__functions(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_SELU, "", 3, {2, 70, 9}, 0, 0},
        {MSC_OP_CELU, "alpha=1.5", 2, {3, 900}, 0, 0},
        {MSC_OP_SOFTPLUS, "", 1, {5000}, 0, 0},
        {MSC_OP_SOFTSIGN, "", 1, {500}, 0, 0},
        {MSC_OP_SHRINK, "lambd=0.5;bias=0.1", 1, {500}, 0, 0},
        {MSC_OP_MISH, "", 2, {30, 41}, 0, 0},
        {MSC_OP_SIN, "", 1, {5000}, 0, 0},
        {MSC_OP_COS, "", 1, {5000}, 0, 0},
        {MSC_OP_TAN, "", 1, {77}, 0, 0},
        {MSC_OP_ATAN, "", 1, {5000}, 0, 0},
        {MSC_OP_SINH, "", 1, {500}, 0, 0},
        {MSC_OP_COSH, "", 1, {500}, 0, 0},
        {MSC_OP_ASINH, "", 1, {500}, 0, 0},
        {MSC_OP_SIGN, "", 1, {500}, 0, 0},
        {MSC_OP_THRESHOLDED_RELU, "alpha=0.5", 1, {99}, 0, 0},
    };
    (void)state;
    CHECK(rows, add_unary)
}

static void test_kernels_cpu_rare__lines(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_PROD, "axis=1;keepdims=1", 3, {3, 6, 50}, 0, 0},
        {MSC_OP_PROD, "axis=0,2", 3, {3, 70, 2}, 0, 0},
        {MSC_OP_CUMSUM, "axis=1", 3, {3, 200, 5}, 0, 0},
        {MSC_OP_CUMSUM, "axis=-1;exclusive=1;reverse=1", 2, {70, 33}, 0, 0},
        {MSC_OP_HARDMAX, "axis=1", 3, {4, 30, 7}, 0, 0},
        {MSC_OP_SUM, "axis=2,3", 4, {1, 2, 240, 230}, 0, 0},
        {MSC_OP_GLOBAL_AVG_POOL, "", 4, {1, 2, 240, 240}, 0, 0},
        {MSC_OP_MEAN, "axis=0,2", 3, {300, 3, 400}, 0, 0}, // more than some drivers' loops take
    };
    (void)state;
    CHECK(rows, add_unary)
}

static void test_kernels_cpu_rare__places(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_TILE, "repeats=2,1,3", 3, {2, 5, 7}, 0, 0},
        {MSC_OP_BROADCAST_TO, "shape=4,3,70", 2, {3, 1}, 0, 0},
        {MSC_OP_PAD, "pad_mode=reflect;pad_width=0,0,2,3,0,0,1,2", 4, {2, 3, 6, 7}, 0, 0},
        {MSC_OP_PAD, "pad_mode=edge;pad_width=1,2,0,3", 2, {30, 40}, 0, 0},
        {MSC_OP_PAD, "pad_mode=wrap;pad_width=4,2,0,3", 2, {3, 40}, 0, 0},
        {MSC_OP_PAD, "pad_mode=constant;pad_value=1.5;pad_width=-1,2,0,-3", 2, {30, 40}, 0, 0},
    };
    (void)state;
    CHECK(rows, add_unary)
}

static void test_kernels_cpu_rare__pools(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_MAX_POOL3D,
         "pool_size=2,3,2;strides=2,1,2;padding=0,1,1,1,1,0",
         5,
         {2, 3, 5, 9, 8},
         0,
         0},
        {MSC_OP_AVG_POOL3D,
         "pool_size=3,2,2;count_include_pad=1;padding=1,0,1,1,1,0",
         5,
         {1, 5, 6, 7, 8},
         0,
         0},
        {MSC_OP_AVG_POOL3D,
         "pool_size=3,2,2;padding=1,0,1,1,1,0;strides=1,2,3",
         5,
         {1, 5, 6, 7, 8},
         0,
         0},
        {MSC_OP_LP_POOL,
         "pool_size=3,3;p=2;strides=2,2;padding=1,1,1,1;dilation=1,1",
         4,
         {2, 3, 20, 21},
         0,
         0},
        {MSC_OP_MAX_POOL_INDICES,
         "pool_size=2,2;strides=2,2;dilation=1,1;padding=0,0,0,0",
         4,
         {2, 3, 20, 21},
         0,
         0},
        {MSC_OP_MAX_POOL2D, "pool_size=60,80;strides=10,10", 4, {1, 1, 300, 300}, 0, 0},
    };
    (void)state;
    CHECK(rows, add_unary)
}

static void test_kernels_cpu_rare__fourier(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_DFT, "axis=1", 3, {3, 50, 1}, 0, 0},
        {MSC_OP_DFT, "axis=2;inverse=1", 4, {2, 3, 33, 2}, 0, 0},
        {MSC_OP_DFT, "axis=1;dft_length=64;onesided=1", 3, {2, 40, 1}, 0, 0},
        {MSC_OP_STFT, "frame_step=10;frame_length=32", 3, {2, 200, 1}, 0, 0},
        {MSC_OP_STFT, "frame_step=7;frame_length=20;onesided=0", 3, {1, 90, 2}, 0, 0},
    };
    (void)state;
    CHECK(rows, add_unary)
}

// Elements of one, two and eight bytes that are moved.
static void test_kernels_cpu_rare__small_elements(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_PERMUTE_DIMS, "axes=2,0,1", 3, {3, 6, 7}, 0, 0},
        {MSC_OP_PERMUTE_DIMS, "axes=0,2,3,1", 4, {2, 5, 6, 7}, 0, 0},
        {MSC_OP_STRIDED_SLICE, "axes=1,2;begin=1,6;end=5,0;strides=2,-1", 3, {3, 6, 7}, 0, 0},
        {MSC_OP_SPLIT, "axis=1;indices_or_sections=1,4", 3, {3, 6, 7}, 0, 0},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=2;mode=DCR", 4, {2, 12, 5, 7}, 0, 0},
        {MSC_OP_SPACE_TO_DEPTH, "blocksize=3", 4, {2, 2, 6, 9}, 0, 0},
    };
    static const char *const types[] = {"uint8", "float16", "int64"};
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    (void)state;
    for (int i = 0; i < 3 * N; i++) {
        const struct rare *r = &rows[i % N];
        struct cpu_case c;
        cpu_case_init(&c, 13);
        int32_t x = cpu_whole_input(&c, types[i / N], 0, 200, r->n_dims, r->dims);
        cpu_case_finish_graph(&c, cpu_joint(&c, r->op, 1, &x, r->attributes, MSC_NO_ID, MSC_NO_ID));
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

// Dividends and divisors from the least of all floats on.
static void test_kernels_cpu_rare__remainders(void **state) {
    static const float divisors[] = {1e-45f, 3e-43f, 1e-40f, 1.17e-38f, 1.2e-38f, 2e-30f,
                                     0.001f, 0.7f,   1.0f,   3.3e7f,    3e38f,    -0.3f};
    static const float most[] = {1e-39f, 1e-37f, 1e-20f, 9.0f, 1e30f};
    (void)state;
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 11);
        c.low = -most[i];
        c.high = most[i];
        int32_t x = cpu_input(&c, "", 2, DIMS(40, 12));
        int32_t y = cpu_constant(&c, 1, DIMS(12), divisors);
        cpu_case_finish_graph(&c,
                              cpu_joint(&c, MSC_OP_MOD, 2, IDS(x, y), "", MSC_NO_ID, MSC_NO_ID));
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

// Limits and a value around the edges that are inputs.
static void test_kernels_cpu_rare__computed_parameters(void **state) {
    struct cpu_case c;
    (void)state;
    for (int i = 0; i < 4; i++) {
        cpu_case_init(&c, 12);
        int32_t x = i < 2 ? cpu_input(&c, "", 2, DIMS(30, 41))
                          : cpu_whole_input(&c, "int32", -50, 50, 2, DIMS(30, 41));
        int32_t low =
            i < 2 ? cpu_input(&c, "", 0, NULL) : cpu_whole_input(&c, "int32", -30, -1, 0, NULL);
        int32_t high =
            i < 2 ? cpu_input(&c, "", 0, NULL) : cpu_whole_input(&c, "int32", 1, 30, 0, NULL);
        cpu_case_finish_graph(
            &c, i % 2 == 0
                    ? cpu_joint(&c, MSC_OP_CLIP, 3, IDS(x, low, high), "", MSC_NO_ID, MSC_NO_ID)
                    : cpu_joint(&c, MSC_OP_PAD, 2, IDS(x, high),
                                "pad_mode=constant;pad_width=1,2,3,-1", MSC_NO_ID, MSC_NO_ID));
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

// ---- With weights -----------------------------------------------------------------------------

static int32_t add_norm(struct cpu_case *c, const struct rare *r) {
    static const char *const roles[] = {"gamma", "beta"};
    struct msc_weight_spec weights[2];
    int32_t x = cpu_input(c, "", r->n_dims, r->dims);
    for (int i = 0; i < r->n_more; i++) {
        weights[i] = (struct msc_weight_spec){roles[i], cpu_weight(c, "O", 1, DIMS(r->length))};
    }
    return cpu_joint_weights(c, r->op, 1, &x, r->attributes, r->n_more, weights);
}

static void test_kernels_cpu_rare__normalisation(void **state) {
    static const struct rare rows[] = {
        {MSC_OP_LRN, "size=5;alpha=0.5;beta=0.75;bias=2", 4, {2, 9, 6, 7}, 0, 0},
    };
    (void)state;
    CHECK(rows, add_norm)
}

// What is left of equal numbers less their mean is 0, however little they are divided by.
static void test_kernels_cpu_rare__equal_numbers(void **state) {
    static const float numbers[] = {2.3379076f, -1e-3f, 3e4f / 7};
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 8);
        float low = c.low, high = c.high;
        c.low = c.high = numbers[i];
        int32_t x = cpu_input(&c, "", 4, DIMS(2, 3, 5, 3));
        c.low = low;
        c.high = high;
        struct msc_weight_spec weights[] = {{"gamma", cpu_weight(&c, "O", 1, DIMS(3))},
                                            {"beta", cpu_weight(&c, "O", 1, DIMS(3))}};
        cpu_case_finish_graph(
            &c, cpu_joint_weights(&c, MSC_OP_INSTANCE_NORM, 1, &x, "epsilon=1e-05", 2, weights));
        cpu_check_close(&c, 1e-10);
        cpu_case_finish(&c);
    }
}

static void check_conv(enum msc_op op, const char *attributes, int n_dims, const int64_t x_dims[],
                       const char *layout, const int64_t w_dims[], int64_t channels) {
    struct cpu_case c;
    cpu_case_init(&c, 8);
    int32_t x = cpu_input(&c, "", n_dims, x_dims);
    int32_t w = cpu_weight(&c, layout, n_dims, w_dims);
    int32_t bias = channels > 0 ? cpu_weight(&c, "O", 1, &channels) : MSC_NO_ID;
    cpu_case_finish_graph(&c, cpu_joint(&c, op, 1, &x, attributes, w, bias));
    cpu_check_close(&c, 1e-10);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_rare__convolutions(void **state) {
    (void)state;
    check_conv(MSC_OP_CONV3D_BIAS, "padding=1,1,1,1,1,1;strides=1,2,1", 5, DIMS(2, 6, 5, 6, 7),
               "OIDHW", DIMS(8, 6, 3, 3, 3), 8);
    check_conv(MSC_OP_CONV3D, "dilation=1,2,1", 5, DIMS(1, 3, 5, 9, 7), "OIDHW",
               DIMS(5, 3, 3, 3, 1), 0);
    check_conv(MSC_OP_CONV1D_TRANSPOSE, "strides=3;output_padding=1", 3, DIMS(2, 8, 30), "IOW",
               DIMS(8, 5, 4), 5);
    check_conv(MSC_OP_CONV2D_TRANSPOSE, "strides=2,2;groups=2;padding=1,1,1,1", 4, DIMS(1, 6, 9, 8),
               "IOHW", DIMS(6, 4, 3, 3), 8);
    check_conv(MSC_OP_CONV3D_TRANSPOSE, "strides=2,1,2;dilation=1,2,1", 5, DIMS(1, 4, 3, 5, 4),
               "IODHW", DIMS(4, 3, 2, 3, 2), 0);
}

static void check_einsum(const char *equation, int n_a, const int64_t a[], int n_b,
                         const int64_t b[]) {
    struct cpu_case c;
    cpu_case_init(&c, 9);
    int32_t inputs[2] = {cpu_input(&c, "", n_a, a)};
    if (n_b > 0) {
        inputs[1] = cpu_input(&c, "", n_b, b);
    }
    cpu_case_finish_graph(
        &c, cpu_joint(&c, MSC_OP_EINSUM, n_b > 0 ? 2 : 1, inputs, equation, MSC_NO_ID, MSC_NO_ID));
    cpu_check_close(&c, 1e-10);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_rare__einsum(void **state) {
    (void)state;
    check_einsum("equation=bhqd,bhkd->bhqk", 4, DIMS(2, 3, 9, 16), 4, DIMS(2, 3, 11, 16));
    check_einsum("equation=ij,kj->ki", 2, DIMS(30, 17), 2, DIMS(21, 17));
    check_einsum("equation=...ii->...i", 3, DIMS(3, 8, 8), 0, NULL);
}

// Weights of a recurrent layer of 10 inputs and 14 units.
static void check_recurrent(enum msc_op op, int64_t gates, int64_t directions,
                            const char *attributes) {
    struct cpu_case c;
    cpu_case_init(&c, 10);
    c.low = -0.5f;
    c.high = 0.5f;
    int32_t x = cpu_input(&c, "", 3, DIMS(7, 3, 10));
    struct msc_weight_spec weights[3] = {
        {"weight", cpu_weight(&c, "", 3, DIMS(directions, gates * 14, 10))},
        {"recurrence", cpu_weight(&c, "", 3, DIMS(directions, gates * 14, 14))},
        {"bias", cpu_weight(&c, "", 2, DIMS(directions, 2 * gates * 14))},
    };
    cpu_case_finish_graph(&c, cpu_joint_weights(&c, op, 1, &x, attributes, 3, weights));
    cpu_check_close(&c, 1e-10);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_rare__recurrent(void **state) {
    (void)state;
    check_recurrent(MSC_OP_LSTM, 4, 2, "direction=bidirectional;hidden_size=14");
    check_recurrent(MSC_OP_LSTM, 4, 1, "direction=reverse;hidden_size=14;clip=0.4;input_forget=1");
    check_recurrent(MSC_OP_GRU, 3, 1, "hidden_size=14;linear_before_reset=1");
    check_recurrent(MSC_OP_GRU, 3, 2, "direction=bidirectional;hidden_size=14");
    check_recurrent(MSC_OP_RNN, 1, 1, "hidden_size=14;activations=Relu");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_rare__functions),
        cmocka_unit_test(test_kernels_cpu_rare__lines),
        cmocka_unit_test(test_kernels_cpu_rare__places),
        cmocka_unit_test(test_kernels_cpu_rare__pools),
        cmocka_unit_test(test_kernels_cpu_rare__fourier),
        cmocka_unit_test(test_kernels_cpu_rare__small_elements),
        cmocka_unit_test(test_kernels_cpu_rare__remainders),
        cmocka_unit_test(test_kernels_cpu_rare__computed_parameters),
        cmocka_unit_test(test_kernels_cpu_rare__normalisation),
        cmocka_unit_test(test_kernels_cpu_rare__equal_numbers),
        cmocka_unit_test(test_kernels_cpu_rare__convolutions),
        cmocka_unit_test(test_kernels_cpu_rare__einsum),
        cmocka_unit_test(test_kernels_cpu_rare__recurrent),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
