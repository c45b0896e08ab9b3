// Linear layers and matrix products, compared with the reference kernels.
#include "tests/kernels/cpu_case.h"

struct edits {
    struct cpu_edit_kind activations, weights;
};
static const struct edits none = {{0, false, false}, {0, false, false}};
static const struct edits integers[] = {
    {{8, false, false}, {8, true, true}},
    {{8, true, false}, {8, false, false}},
    {{4, false, false}, {3, true, true}},
};
static const struct edits mixed[] = {
    {{0, false, false}, {8, true, true}},
    {{8, false, false}, {0, false, false}},
    {{16, true, false}, {8, true, true}},
};

static void check(struct cpu_case *c, int32_t output, const struct edits *edits, bool is_exact) {
    cpu_case_finish_graph(c, output);
    cpu_case_edit(c, edits->activations, edits->weights);
    if (is_exact) {
        cpu_check_equal(c);
    } else {
        cpu_check_close(c, 1e-11);
    }
    cpu_case_finish(c);
}

static int32_t add_epilogue(struct cpu_case *c, int32_t y) {
    const struct msc_tensor *t = msc_graph_tensor(c->g, y);
    int32_t other = cpu_input(c, "", t->n_dims, t->dims);
    y = cpu_joint(c, MSC_OP_GELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    return cpu_joint(c, MSC_OP_ADD, 2, IDS(y, other), "", MSC_NO_ID, MSC_NO_ID);
}

static void check_row(const struct kernel_case *row, const struct edits *edits, bool is_exact,
                      bool has_epilogue) {
    struct cpu_case c;
    cpu_case_init(&c, 21);
    int32_t y = cpu_case_add(&c, row);
    check(&c, has_epilogue ? add_epilogue(&c, y) : y, edits, is_exact);
}

// With an epilogue the row's bias is dropped.
static void check_linear(const struct kernel_case *row, const struct edits *edits, bool is_exact,
                         bool has_epilogue) {
    struct kernel_plain plain;
    check_row(has_epilogue ? kernel_case_drop_bias(&plain, row) : row, edits, is_exact,
              has_epilogue);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_kernels_cpu_linear__float(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "linear"))) {
        check_linear(row, &none, false, false);
        check_linear(row, &none, false, true);
        for (size_t k = 0; k < COUNT(mixed); k++) {
            check_linear(row, &mixed[k], false, true);
        }
    }
}

static void test_kernels_cpu_linear__integers(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "linear_integers"))) {
        for (size_t k = 0; k < COUNT(integers); k++) {
            check_linear(row, &integers[k], true, false);
            check_linear(row, &integers[k], true, true);
        }
    }
}

static void test_kernels_cpu_linear__matmul(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "matmul"))) {
        check_row(row, &none, false, false);
        check_row(row, &none, false, true);
        check_row(row, &mixed[2], false, true);
    }
}

static void test_kernels_cpu_linear__matmul_integers(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "matmul"))) {
        for (size_t k = 0; k < COUNT(integers); k++) {
            check_row(row, &integers[k], true, false);
            check_row(row, &integers[k], true, true);
        }
    }
}

// One factor is constant, on either side.
static void test_kernels_cpu_linear__matmul_constant(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "matmul_constant"))) {
        check_row(row, &none, false, false);
        for (size_t k = 0; k < COUNT(integers); k++) {
            check_row(row, &integers[k], true, false);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_linear__float),
        cmocka_unit_test(test_kernels_cpu_linear__integers),
        cmocka_unit_test(test_kernels_cpu_linear__matmul),
        cmocka_unit_test(test_kernels_cpu_linear__matmul_integers),
        cmocka_unit_test(test_kernels_cpu_linear__matmul_constant),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
