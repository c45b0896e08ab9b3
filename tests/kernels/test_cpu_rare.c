// Operators that use reference kernels on the cpu and kernels of their own on other backends, with
// shapes that ONNX's test data lack. ONNX's test data cover all types.
#include "tests/kernels/cpu_case.h"

static void test_kernels_cpu_rare__functions(void **state) {
    (void)state;
    cpu_check_cases("functions");
}

static void test_kernels_cpu_rare__lines(void **state) {
    (void)state;
    cpu_check_cases("lines");
}

static void test_kernels_cpu_rare__places(void **state) {
    (void)state;
    cpu_check_cases("places");
}

static void test_kernels_cpu_rare__pools(void **state) {
    (void)state;
    cpu_check_cases("rare_pools");
}

static void test_kernels_cpu_rare__fourier(void **state) {
    (void)state;
    cpu_check_cases("fourier");
}

// Elements of one, two and eight bytes are moved.
static void test_kernels_cpu_rare__small_elements(void **state) {
    (void)state;
    cpu_check_cases("small_elements");
}

// Dividends and divisors from the smallest floats upwards.
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

// Computed inputs give the limits of a Clip and the value of a padding.
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

static void test_kernels_cpu_rare__normalisation(void **state) {
    (void)state;
    cpu_check_cases("normalisation");
}

// Equal numbers minus their mean must be exactly 0, because an instance norm divides the difference
// by a small number.
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

static void test_kernels_cpu_rare__convolutions(void **state) {
    (void)state;
    cpu_check_cases("convolutions");
}

static void test_kernels_cpu_rare__einsum(void **state) {
    (void)state;
    cpu_check_cases("einsum");
}

static void test_kernels_cpu_rare__recurrent(void **state) {
    (void)state;
    cpu_check_cases("recurrent");
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
