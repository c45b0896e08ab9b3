// Integers that models make themselves: quantisation with scales, products of bytes. On the cpu
// backend they run on the reference kernels, on others by kernels of their own.
#include "tests/kernels/cpu_case.h"

#include <stdio.h>
#include <string.h>

static void finish(struct cpu_case *c, int32_t output) {
    cpu_case_finish_graph(c, output);
    cpu_check_equal(c);
    cpu_case_finish(c);
}

static int32_t scales(struct cpu_case *c, int n_dims, const int64_t dims[]) {
    c->low = 0.005f;
    c->high = 0.02f;
    int32_t x = cpu_input(c, "", n_dims, dims);
    c->low = -1.0f;
    c->high = 1.0f;
    return x;
}

// ---- Scales -----------------------------------------------------------------------------------

struct linear {
    const char *attributes, *code; // type of the integers
    int n_scale_dims;
    int64_t scale_dims[3];
    bool has_zero;
};

// Over a tensor [4, 6, 35].
static const struct linear linears[] = {
    {"", "uint8", 0, {0}, true},
    {"", "int8", 0, {0}, false},
    {"axis=1", "int8", 1, {6}, true},
    {"axis=-1", "uint8", 1, {35}, true},
    {"axis=1;block_size=4", "int8", 3, {4, 2, 35}, true},
    {"axis=2;block_size=8", "uint8", 3, {4, 6, 5}, true},
    {"axis=2;block_size=9223372036854775807", "uint8", 3, {4, 6, 1}, true},
    {"", "int16", 0, {0}, true},
};

static int32_t zero_points(struct cpu_case *c, const struct linear *l) {
    int half = strcmp(l->code, "int16") == 0 ? 3000 : 100;
    bool is_signed = l->code[0] == 'i';
    return cpu_whole_input(c, l->code, is_signed ? -half : 0, half, l->n_scale_dims, l->scale_dims);
}

static void test_kernels_cpu_codes__quantize(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(linears) / sizeof(linears[0]); i++) {
        const struct linear *l = &linears[i];
        struct cpu_case c;
        char attributes[96];
        cpu_case_init(&c, 31);
        c.low = -4.0f;
        c.high = 4.0f;
        int32_t x[3] = {cpu_input(&c, "", 3, DIMS(4, 6, 35))};
        x[1] = scales(&c, l->n_scale_dims, l->scale_dims);
        x[2] = l->has_zero ? zero_points(&c, l) : MSC_NO_ID;
        snprintf(attributes, sizeof(attributes), "%s%sdtype=%s", l->attributes,
                 l->attributes[0] ? ";" : "", l->code);
        finish(&c, cpu_joint(&c, MSC_OP_QUANTIZE, 2 + l->has_zero, x, attributes, MSC_NO_ID,
                             MSC_NO_ID));
    }
}

static void test_kernels_cpu_codes__dequantize(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(linears) / sizeof(linears[0]); i++) {
        const struct linear *l = &linears[i];
        struct cpu_case c;
        cpu_case_init(&c, 32);
        int low = l->code[0] == 'i' ? -128 : 0;
        int32_t x[3] = {cpu_whole_input(&c, l->code, low, low + 255, 3, DIMS(4, 6, 35))};
        x[1] = scales(&c, l->n_scale_dims, l->scale_dims);
        x[2] = l->has_zero ? zero_points(&c, l) : MSC_NO_ID;
        finish(&c, cpu_joint(&c, MSC_OP_DEQUANTIZE, 2 + l->has_zero, x, l->attributes, MSC_NO_ID,
                             MSC_NO_ID));
    }
}

static void check_dynamic(float low, float high, bool is_constant) {
    struct cpu_case c;
    int32_t outputs[3];
    cpu_case_init(&c, 33);
    c.low = low;
    c.high = high;
    int32_t x =
        is_constant ? cpu_constant(&c, 2, DIMS(30, 70), NULL) : cpu_input(&c, "", 2, DIMS(30, 70));
    int32_t y = cpu_joint(&c, MSC_OP_DYNAMIC_QUANTIZE, 1, &x, "", MSC_NO_ID, MSC_NO_ID);
    const struct msc_joint *joint = msc_graph_joint(c.g, msc_graph_tensor(c.g, y)->producer);
    assert_int_equal(joint->n_outputs, 3);
    memcpy(outputs, joint->outputs, sizeof(outputs));
    cpu_case_finish_outputs(&c, 3, outputs);
    for (int i = 0; i < 3; i++) {
        struct msc_array *actual, *expected;
        cpu_run(&actual, &c, i);
        cpu_expect(&expected, &c, i);
        assert_true(cpu_is_equal(actual, expected));
        msc_array_release(actual);
        msc_array_release(expected);
    }
    cpu_case_finish(&c);
}

static void test_kernels_cpu_codes__dynamic(void **state) {
    (void)state;
    check_dynamic(-1.0f, 3.0f, false);
    check_dynamic(0.5f, 3.0f, false);
    check_dynamic(-7.0f, -2.0f, false);
    check_dynamic(0.0f, 0.0f, false);
    check_dynamic(-1.0f, 3.0f, true);
}

// ---- Products ---------------------------------------------------------------------------------

struct product {
    const char *a_type, *b_type;
    int n_a;
    int64_t a[4];
    int n_b;
    int64_t b[4];
    int64_t n_zeros; // of b; 0: no zero points, where these are optional
    const char *attributes;
};

// Whole numbers that are computed or, like most models', constant.
static int32_t numbers(struct cpu_case *c, bool is_constant, const char *dtype, int low, int high,
                       int n_dims, const int64_t dims[]) {
    enum msc_dtype type = strcmp(dtype, "int8") == 0    ? MSC_DTYPE_I8
                          : strcmp(dtype, "uint8") == 0 ? MSC_DTYPE_U8
                                                        : MSC_DTYPE_I32;
    return is_constant ? cpu_whole_constant(c, type, low, high, n_dims, dims)
                       : cpu_whole_input(c, dtype, low, high, n_dims, dims);
}

static int32_t bytes(struct cpu_case *c, bool is_constant, const char *dtype, int n_dims,
                     const int64_t dims[]) {
    int low = dtype[0] == 'i' ? -128 : 0;
    return numbers(c, is_constant, dtype, low, low + 255, n_dims, dims);
}

// One number for all when n is 1.
static int32_t zeros(struct cpu_case *c, bool is_constant, const char *dtype, int64_t n) {
    int low = dtype[0] == 'i' ? -20 : 100;
    return numbers(c, is_constant, dtype, low, low + 40, n == 1 ? 0 : 1, &n);
}

static int32_t some_scales(struct cpu_case *c, bool is_constant, float low, int64_t n) {
    c->low = low;
    c->high = low * 4;
    int32_t x = is_constant ? cpu_constant(c, n == 1 ? 0 : 1, &n, NULL)
                            : cpu_input(c, "", n == 1 ? 0 : 1, &n);
    c->low = -1.0f;
    c->high = 1.0f;
    return x;
}

static void check_integers(enum msc_op op, const struct product *p, bool is_constant) {
    struct cpu_case c;
    cpu_case_init(&c, 34);
    int32_t x[4] = {bytes(&c, false, p->a_type, p->n_a, p->a),
                    bytes(&c, is_constant, p->b_type, p->n_b, p->b)};
    int n = 2;
    if (p->n_zeros > 0) {
        x[n++] = zeros(&c, is_constant, p->a_type, 1);
        x[n++] = zeros(&c, is_constant, p->b_type, p->n_zeros);
    }
    finish(&c, cpu_joint(&c, op, n, x, p->attributes, MSC_NO_ID, MSC_NO_ID));
}

// With scales, to the type of a.
static void check_scaled(enum msc_op op, const struct product *p, int64_t n_bias,
                         bool is_constant) {
    struct cpu_case c;
    int64_t n_zeros = p->n_zeros > 0 ? p->n_zeros : 1;
    cpu_case_init(&c, 35);
    int32_t x[9] = {bytes(&c, false, p->a_type, p->n_a, p->a)};
    x[1] = some_scales(&c, is_constant, 0.005f, 1);
    x[2] = zeros(&c, is_constant, p->a_type, 1);
    x[3] = bytes(&c, is_constant, p->b_type, p->n_b, p->b);
    x[4] = some_scales(&c, is_constant, 0.005f, n_zeros);
    x[5] = zeros(&c, is_constant, p->b_type, n_zeros);
    x[6] = some_scales(&c, is_constant, 0.3f, 1);
    x[7] = zeros(&c, is_constant, p->a_type, 1);
    if (n_bias > 0) {
        x[8] = numbers(&c, is_constant, "int32", -9000, 9000, 1, &n_bias);
    }
    finish(&c, cpu_joint(&c, op, n_bias > 0 ? 9 : 8, x, p->attributes, MSC_NO_ID, MSC_NO_ID));
}

// Channels may come last behind a pooling, and the scales go with them.
static void test_kernels_cpu_codes__channels_last(void **state) {
    struct cpu_case c;
    (void)state;
    cpu_case_init(&c, 39);
    int32_t x = cpu_input(&c, "NCHW", 4, DIMS(2, 5, 9, 8));
    int32_t y = cpu_joint(&c, MSC_OP_MAX_POOL2D, 1, &x, "pool_size=2,2", MSC_NO_ID, MSC_NO_ID);
    int32_t scale = some_scales(&c, true, 0.02f, 5), zero = zeros(&c, true, "uint8", 5);
    int32_t q = cpu_joint(&c, MSC_OP_QUANTIZE, 3, IDS(y, scale, zero), "axis=1;dtype=uint8",
                          MSC_NO_ID, MSC_NO_ID);
    y = cpu_joint(&c, MSC_OP_DEQUANTIZE, 3, IDS(q, scale, zero), "axis=1", MSC_NO_ID, MSC_NO_ID);
    finish(&c, y);
}

// Nothing that they read is computed.
static void test_kernels_cpu_codes__constants(void **state) {
    static const enum msc_op ops[] = {MSC_OP_QUANTIZE, MSC_OP_DEQUANTIZE};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct cpu_case c;
        cpu_case_init(&c, 41);
        int32_t x = i == 0 ? cpu_constant(&c, 2, DIMS(4, 9), NULL)
                           : bytes(&c, true, "uint8", 2, DIMS(4, 9));
        int32_t scale = some_scales(&c, true, 0.02f, 9), zero = zeros(&c, true, "uint8", 9);
        finish(&c, cpu_joint(&c, ops[i], 3, IDS(x, scale, zero),
                             i == 0 ? "axis=1;dtype=uint8" : "axis=1", MSC_NO_ID, MSC_NO_ID));
    }
}

#define WINDOW "dilation=1,1;padding=1,1,1,1;strides=1,1"

static void test_kernels_cpu_codes__convolutions(void **state) {
    static const struct product rows[] = {
        {"uint8", "int8", 4, {2, 6, 9, 11}, 4, {8, 6, 3, 3}, 8, WINDOW},
        {"uint8", "uint8", 4, {1, 6, 9, 11}, 4, {9, 2, 3, 3}, 1, WINDOW ";groups=3"},
        {"int8",
         "int8",
         4,
         {1, 5, 12, 10},
         4,
         {7, 5, 2, 3},
         0,
         "dilation=2,1;padding=0,1,2,0;strides=2,3"},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct product *p = &rows[i / 2];
        check_integers(MSC_OP_CONV_INTEGER, p, i % 2 == 1);
        check_scaled(MSC_OP_QLINEAR_CONV, p, i / 2 == 1 ? 0 : p->b[0], i % 2 == 1);
    }
}

static void test_kernels_cpu_codes__matrices(void **state) {
    static const struct product rows[] = {
        {"uint8", "int8", 2, {17, 40}, 2, {40, 23}, 23, ""},
        {"uint8", "uint8", 3, {3, 9, 20}, 2, {20, 6}, 1, ""},
        {"int8", "int8", 4, {2, 1, 8, 70}, 3, {3, 70, 5}, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct product *p = &rows[i / 2];
        check_integers(MSC_OP_MATMUL_INTEGER, p, i % 2 == 1);
        check_scaled(MSC_OP_QLINEAR_MATMUL, p, 0, i % 2 == 1);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_codes__quantize),
        cmocka_unit_test(test_kernels_cpu_codes__dequantize),
        cmocka_unit_test(test_kernels_cpu_codes__dynamic),
        cmocka_unit_test(test_kernels_cpu_codes__channels_last),
        cmocka_unit_test(test_kernels_cpu_codes__constants),
        cmocka_unit_test(test_kernels_cpu_codes__convolutions),
        cmocka_unit_test(test_kernels_cpu_codes__matrices),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
