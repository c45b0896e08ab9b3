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

static void check_dynamic(float low, float high) {
    struct cpu_case c;
    int32_t outputs[3];
    cpu_case_init(&c, 33);
    c.low = low;
    c.high = high;
    int32_t x = cpu_input(&c, "", 2, DIMS(30, 70));
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
    check_dynamic(-1.0f, 3.0f);
    check_dynamic(0.5f, 3.0f);
    check_dynamic(-7.0f, -2.0f);
    check_dynamic(0.0f, 0.0f);
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

static int32_t bytes(struct cpu_case *c, const char *dtype, int n_dims, const int64_t dims[]) {
    int low = dtype[0] == 'i' ? -128 : 0;
    return cpu_whole_input(c, dtype, low, low + 255, n_dims, dims);
}

// One number for all when n is 1.
static int32_t zeros(struct cpu_case *c, const char *dtype, int64_t n) {
    int low = dtype[0] == 'i' ? -20 : 100;
    return cpu_whole_input(c, dtype, low, low + 40, n == 1 ? 0 : 1, &n);
}

static void check_integers(enum msc_op op, const struct product *p) {
    struct cpu_case c;
    cpu_case_init(&c, 34);
    int32_t x[4] = {bytes(&c, p->a_type, p->n_a, p->a), bytes(&c, p->b_type, p->n_b, p->b)};
    int n = 2;
    if (p->n_zeros > 0) {
        x[n++] = zeros(&c, p->a_type, 1);
        x[n++] = zeros(&c, p->b_type, p->n_zeros);
    }
    finish(&c, cpu_joint(&c, op, n, x, p->attributes, MSC_NO_ID, MSC_NO_ID));
}

// With scales, to the type of a.
static void check_scaled(enum msc_op op, const struct product *p, int64_t n_bias) {
    struct cpu_case c;
    int64_t n_zeros = p->n_zeros > 0 ? p->n_zeros : 1;
    cpu_case_init(&c, 35);
    int32_t x[9] = {bytes(&c, p->a_type, p->n_a, p->a)};
    x[1] = scales(&c, 0, NULL);
    x[2] = zeros(&c, p->a_type, 1);
    x[3] = bytes(&c, p->b_type, p->n_b, p->b);
    x[4] = scales(&c, n_zeros == 1 ? 0 : 1, &n_zeros);
    x[5] = zeros(&c, p->b_type, n_zeros);
    c.low = 0.5f;
    c.high = 0.6f;
    x[6] = cpu_input(&c, "", 0, NULL);
    x[7] = zeros(&c, p->a_type, 1);
    if (n_bias > 0) {
        x[8] = cpu_whole_input(&c, "int32", -9000, 9000, 1, &n_bias);
    }
    finish(&c, cpu_joint(&c, op, n_bias > 0 ? 9 : 8, x, p->attributes, MSC_NO_ID, MSC_NO_ID));
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
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_integers(MSC_OP_CONV_INTEGER, &rows[i]);
        check_scaled(MSC_OP_QLINEAR_CONV, &rows[i], i == 1 ? 0 : rows[i].b[0]);
    }
}

static void test_kernels_cpu_codes__matrices(void **state) {
    static const struct product rows[] = {
        {"uint8", "int8", 2, {17, 40}, 2, {40, 23}, 23, ""},
        {"uint8", "uint8", 3, {3, 9, 20}, 2, {20, 6}, 1, ""},
        {"int8", "int8", 4, {2, 1, 8, 70}, 3, {3, 70, 5}, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_integers(MSC_OP_MATMUL_INTEGER, &rows[i]);
        check_scaled(MSC_OP_QLINEAR_MATMUL, &rows[i], 0);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_codes__quantize),
        cmocka_unit_test(test_kernels_cpu_codes__dequantize),
        cmocka_unit_test(test_kernels_cpu_codes__dynamic),
        cmocka_unit_test(test_kernels_cpu_codes__convolutions),
        cmocka_unit_test(test_kernels_cpu_codes__matrices),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
