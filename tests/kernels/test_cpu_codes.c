// Integer joints that the model itself contains: quantisation with scales, and products of bytes.
// The cpu backend runs them on the reference kernels, other backends on kernels of their own.
// Results are compared with the reference kernels.
#include "tests/kernels/cpu_case.h"

#include <string.h>

static void finish(struct cpu_case *c, int32_t output) {
    cpu_case_finish_graph(c, output);
    cpu_check_equal(c);
    cpu_case_finish(c);
}

static void test_kernels_cpu_codes__quantize(void **state) {
    (void)state;
    cpu_check_cases("quantize");
}

static void test_kernels_cpu_codes__dequantize(void **state) {
    (void)state;
    cpu_check_cases("dequantize");
}

static void test_kernels_cpu_codes__dynamic(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "dynamic"))) {
        struct cpu_case c;
        int32_t outputs[3];
        cpu_case_init(&c, 33);
        int32_t y = cpu_case_add(&c, row);
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
}

// Integer operands that are computed or, as in most models, constant.
static void test_kernels_cpu_codes__products(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "integers"))) {
        for (int is_constant = 0; is_constant < 2; is_constant++) {
            struct cpu_case c;
            cpu_case_init(&c, 34);
            c.is_constant = is_constant == 1;
            finish(&c, cpu_case_add(&c, row));
        }
    }
}

static int32_t scales(struct cpu_case *c, int64_t n) {
    c->low = 0.02f;
    c->high = 0.08f;
    int32_t x = cpu_constant(c, 1, &n, NULL);
    c->low = -1.0f;
    c->high = 1.0f;
    return x;
}

// After a pooling the layout may be channels-last, and the scales must follow it.
static void test_kernels_cpu_codes__channels_last(void **state) {
    struct cpu_case c;
    (void)state;
    cpu_case_init(&c, 39);
    int32_t x = cpu_input(&c, "NCHW", 4, DIMS(2, 5, 9, 8));
    int32_t y = cpu_joint(&c, MSC_OP_MAX_POOL2D, 1, &x, "pool_size=2,2", MSC_NO_ID, MSC_NO_ID);
    int32_t scale = scales(&c, 5);
    int32_t zero = cpu_whole_constant(&c, MSC_DTYPE_U8, 100, 140, 1, DIMS(5));
    int32_t q = cpu_joint(&c, MSC_OP_QUANTIZE, 3, IDS(y, scale, zero), "axis=1;dtype=uint8",
                          MSC_NO_ID, MSC_NO_ID);
    y = cpu_joint(&c, MSC_OP_DEQUANTIZE, 3, IDS(q, scale, zero), "axis=1", MSC_NO_ID, MSC_NO_ID);
    finish(&c, y);
}

// All inputs are constants.
static void test_kernels_cpu_codes__constants(void **state) {
    static const enum msc_op ops[] = {MSC_OP_QUANTIZE, MSC_OP_DEQUANTIZE};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct cpu_case c;
        cpu_case_init(&c, 41);
        int32_t x = i == 0 ? cpu_constant(&c, 2, DIMS(4, 9), NULL)
                           : cpu_whole_constant(&c, MSC_DTYPE_U8, 0, 255, 2, DIMS(4, 9));
        int32_t scale = scales(&c, 9);
        int32_t zero = cpu_whole_constant(&c, MSC_DTYPE_U8, 100, 140, 1, DIMS(9));
        finish(&c, cpu_joint(&c, ops[i], 3, IDS(x, scale, zero),
                             i == 0 ? "axis=1;dtype=uint8" : "axis=1", MSC_NO_ID, MSC_NO_ID));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_codes__quantize),
        cmocka_unit_test(test_kernels_cpu_codes__dequantize),
        cmocka_unit_test(test_kernels_cpu_codes__dynamic),
        cmocka_unit_test(test_kernels_cpu_codes__channels_last),
        cmocka_unit_test(test_kernels_cpu_codes__constants),
        cmocka_unit_test(test_kernels_cpu_codes__products),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
