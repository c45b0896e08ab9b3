// Convolutions compared with the reference kernels: close in float32, equal in every bit in
// integer arithmetic.
#include "tests/kernels/cpu_case.h"

// Adds an epilogue: 1 is a limit that the routine applies itself, 2 a longer chain with operands
// of every kind, 3 a limit and a residual applied after blocks, 4 a chain that stays in
// registers.
static int32_t add_epilogue(struct cpu_case *c, int32_t y, int kind) {
    const struct msc_tensor *t = msc_graph_tensor(c->g, y);
    int64_t dims[MSC_MAX_DIMS], channels[MSC_MAX_DIMS];
    int n = t->n_dims;
    memcpy(dims, t->dims, sizeof(dims));
    for (int i = 0; i < n; i++) {
        channels[i] = i == 1 ? dims[1] : 1;
    }
    if (kind == 1) {
        return cpu_joint(c, MSC_OP_RELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 2) {
        int32_t other = cpu_input(c, "", n, dims);
        int32_t scale = cpu_constant(c, n, channels, NULL);
        int32_t gate = cpu_joint(c, MSC_OP_SIGMOID, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, gate), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_ADD, 2, IDS(other, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, scale), "", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_CLIP, 1, &y, "min=-20;max=25", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 3) {
        int32_t other = cpu_input(c, "", n, dims);
        y = cpu_joint(c, MSC_OP_CLIP, 1, &y, "min=-2;max=6", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_ADD, 2, IDS(y, other), "", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 4) {
        int32_t factor = cpu_input(c, "", n, dims), term = cpu_input(c, "", n, dims);
        int32_t number = cpu_constant(c, 0, NULL, (const float[]){0.3f});
        y = cpu_joint(c, MSC_OP_ADD, 2, IDS(number, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_HARD_SWISH, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(factor, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_SUBTRACT, 2, IDS(y, term), "", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_RELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    }
    return y;
}

struct edits {
    struct cpu_edit_kind activations, weights;
};

static void check_shape(const struct kernel_case *row, int epilogue, const struct edits *edits,
                        bool is_exact) {
    struct cpu_case c;
    struct kernel_plain plain;
    cpu_case_init(&c, 7);
    int32_t y = cpu_case_add(&c, epilogue == 1 ? kernel_case_drop_bias(&plain, row) : row);
    cpu_case_finish_graph(&c, add_epilogue(&c, y, epilogue));
    cpu_case_edit(&c, edits->activations, edits->weights);
    if (is_exact) {
        cpu_check_equal(&c);
    } else {
        cpu_check_close(&c, 1e-11);
    }
    cpu_case_finish(&c);
}

static void check_all(const struct edits *edits, bool is_exact) {
    const struct kernel_case *row = NULL;
    while ((row = kernel_case_next(row, "conv"))) {
        for (int epilogue = 0; epilogue < 3; epilogue++) {
            check_shape(row, epilogue, edits, is_exact);
        }
    }
}

static void test_kernels_cpu_conv__float(void **state) {
    (void)state;
    check_all(&(struct edits){{0, false, false}, {0, false, false}}, false);
}

// If the input or the weight is float or has more than 8 bits, everything is computed in float.
static void test_kernels_cpu_conv__fake_quantised(void **state) {
    (void)state;
    check_all(&(struct edits){{0, false, false}, {4, true, true}}, false);
    check_all(&(struct edits){{8, false, false}, {0, false, false}}, false);
    check_all(&(struct edits){{12, false, false}, {8, true, true}}, false);
    check_all(&(struct edits){{8, false, false}, {10, true, true}}, false);
}

static void test_kernels_cpu_conv__integers_asymmetric(void **state) {
    (void)state;
    check_all(&(struct edits){{8, false, false}, {8, true, true}}, true);
}

static void test_kernels_cpu_conv__integers_symmetric(void **state) {
    (void)state;
    check_all(&(struct edits){{8, true, false}, {8, true, true}}, true);
}

static void test_kernels_cpu_conv__integers_few_bits(void **state) {
    (void)state;
    check_all(&(struct edits){{5, false, false}, {4, true, false}}, true);
    check_all(&(struct edits){{3, true, false}, {2, true, true}}, true);
}

// Weights whose q - zero point does not fit int8.
static void test_kernels_cpu_conv__integers_asymmetric_weights(void **state) {
    (void)state;
    check_all(&(struct edits){{8, false, false}, {8, false, true}}, true);
    check_all(&(struct edits){{8, true, false}, {8, false, false}}, true);
}

// No tap of the kernel reaches the last output positions.
static void test_kernels_cpu_conv__unreached(void **state) {
    static const struct edits edits[] = {{{0, false, false}, {0, false, false}},
                                         {{8, false, false}, {8, true, true}}};
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "unreached"))) {
        for (size_t e = 0; e < sizeof(edits) / sizeof(edits[0]); e++) {
            check_shape(row, 0, &edits[e], false);
            check_shape(row, 2, &edits[e], false);
        }
    }
}

// Sums above 2^24, which float32 cannot represent exactly.
static void test_kernels_cpu_conv__integers_beyond_float(void **state) {
    static const struct edits edits[] = {
        {{8, false, false}, {8, true, true}},
        {{8, true, false}, {8, true, true}},
        {{8, false, false}, {8, false, true}},
    };
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "large_sums"))) {
        for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
            check_shape(row, 0, &edits[i], true);
        }
    }
}

// Machines without integer units compute the same bits.
static void test_kernels_cpu_conv__integers_without_int8(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "conv"))) {
        struct cpu_case c;
        cpu_case_init(&c, 7);
        c.options.allow_int8 = false;
        cpu_case_finish_graph(&c, add_epilogue(&c, cpu_case_add(&c, row), 2));
        for (int by_channel = 0; by_channel < 2; by_channel++) {
            cpu_case_edit(&c, (struct cpu_edit_kind){8, false, by_channel},
                          (struct cpu_edit_kind){8, true, true});
            cpu_check_equal(&c);
        }
        cpu_case_finish(&c);
    }
}

// Images larger than the cache are computed in bands of rows.
static void test_kernels_cpu_conv__bands(void **state) {
    static const struct edits floats = {{0, 0, 0}, {0, 0, 0}}, wide = {{8, 0, 0}, {12, 1, 1}};
    static const struct edits integers[] = {{{8, 0, 0}, {8, 1, 1}}, {{8, 1, 0}, {8, 0, 1}}};
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "bands"))) {
        for (int epilogue = 0; epilogue < 3; epilogue += 2) {
            check_shape(row, epilogue, &floats, false);
            check_shape(row, epilogue, &integers[0], true);
            check_shape(row, epilogue, &integers[1], true);
            check_shape(row, epilogue, &wide, false);
        }
    }
}

// The step includes all joints after the convolution. The only other steps reorder inputs and
// output.
static void test_kernels_cpu_conv__fuses(void **state) {
    (void)state;
    struct cpu_case c;
    struct msc_array *out;
    cpu_case_init(&c, 3);
    cpu_case_finish_graph(&c,
                          add_epilogue(&c, cpu_case_add(&c, kernel_case_next(NULL, "fuses")), 2));
    cpu_run(&out, &c, 0);
    assert_int_equal(c.n_steps, 4); // reorders of input, residual and output, and the convolution
    msc_array_release(out);
    cpu_case_finish(&c);
}

// Runs a reader's rows with every epilogue and under each of n edits.
static void check_in_all_ways(const char *reader, const struct edits edits[], size_t n,
                              size_t n_exact) {
    const struct kernel_case *row = NULL;
    while ((row = kernel_case_next(row, reader))) {
        for (int epilogue = 0; epilogue < 5; epilogue++) {
            for (size_t e = 0; e < n; e++) {
                check_shape(row, epilogue, &edits[e], e < n_exact);
            }
        }
    }
}

static void test_kernels_cpu_conv__windows(void **state) {
    static const struct edits edits[] = {
        {{8, false, false}, {8, true, true}},
        {{8, true, false}, {8, true, false}},
        {{6, false, false}, {4, true, true}},
    };
    (void)state;
    check_in_all_ways("windows", edits, 3, 3);
}

static void test_kernels_cpu_conv__columns(void **state) {
    static const struct edits edits[] = {
        {{8, true, false}, {8, true, false}},
        {{8, false, false}, {8, true, true}},
    };
    (void)state;
    check_in_all_ways("columns", edits, 2, 2);
    check_in_all_ways("wide_columns", edits, 1, 1); // more channels than an edit can have scales
}

// Depthwise convolutions of integer inputs with a scale per channel. The cases cover every integer
// unit, windows computed by columns and in other ways, several outputs per channel, weights that do
// not fit a byte or stay float, and inputs of more than 8 bits. Sums too large for float32 are
// computed as floats.
static void test_kernels_cpu_conv__by_channel(void **state) {
    static const struct edits edits[] = {
        {{8, false, true}, {8, true, true}},   {{8, true, true}, {8, true, false}},
        {{4, false, true}, {4, true, true}},   {{8, false, true}, {8, false, true}},
        {{8, false, true}, {0, false, false}}, {{12, false, true}, {8, true, true}},
    };
    (void)state;
    check_in_all_ways("by_channel", edits, 6, 4);
    check_shape(kernel_case_next(NULL, "large_sums_by_channel"), 0, &edits[0], false);
}

// Results do not depend on the number of threads.
static void test_kernels_cpu_conv__threads(void **state) {
    (void)state;
    struct cpu_case c;
    struct msc_array *one, *four;
    const struct kernel_case *row = kernel_case_next(NULL, "threads");
    cpu_case_init(&c, 5);
    cpu_case_finish_graph(&c, add_epilogue(&c, cpu_case_add(&c, row), 2));
    cpu_run(&one, &c, 0);
    c.options.n_threads = 4;
    cpu_run(&four, &c, 0);
    assert_true(cpu_is_equal(one, four));
    msc_array_release(one);
    msc_array_release(four);
    c.options.kernel_threads = 2;
    cpu_check_close(&c, 1e-11);
    cpu_case_finish(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_conv__float),
        cmocka_unit_test(test_kernels_cpu_conv__fake_quantised),
        cmocka_unit_test(test_kernels_cpu_conv__integers_asymmetric),
        cmocka_unit_test(test_kernels_cpu_conv__integers_symmetric),
        cmocka_unit_test(test_kernels_cpu_conv__integers_few_bits),
        cmocka_unit_test(test_kernels_cpu_conv__integers_asymmetric_weights),
        cmocka_unit_test(test_kernels_cpu_conv__unreached),
        cmocka_unit_test(test_kernels_cpu_conv__integers_beyond_float),
        cmocka_unit_test(test_kernels_cpu_conv__integers_without_int8),
        cmocka_unit_test(test_kernels_cpu_conv__bands),
        cmocka_unit_test(test_kernels_cpu_conv__windows),
        cmocka_unit_test(test_kernels_cpu_conv__columns),
        cmocka_unit_test(test_kernels_cpu_conv__by_channel),
        cmocka_unit_test(test_kernels_cpu_conv__fuses),
        cmocka_unit_test(test_kernels_cpu_conv__threads),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
