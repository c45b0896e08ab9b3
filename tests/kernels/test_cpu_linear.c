// Linear layers and matrix products against the reference kernels.
#include "tests/kernels/cpu_case.h"

struct linear {
    int n_dims;
    int64_t x[4];
    int64_t out;
    bool is_input_first;
};

static const struct linear linears[] = {
    {2, {1, 64}, 10, false},    {2, {7, 33}, 17, false},      {2, {16, 120}, 250, true},
    {3, {2, 40, 24}, 48, true}, {4, {2, 3, 5, 16}, 1, false}, {3, {3, 5, 1}, 6, false},
    {1, {12}, 5, false},        {2, {20, 37}, 81, false},     {2, {5, 16}, 200, true},
};

struct product {
    int n_a, n_b;
    int64_t a[4], b[4];
};

static const struct product products[] = {
    {2, 2, {5, 7}, {7, 9}},
    {3, 3, {4, 16, 32}, {4, 32, 16}},
    {4, 4, {2, 3, 20, 15}, {2, 3, 15, 20}},
    {4, 2, {2, 3, 4, 5}, {5, 6}},
    {3, 3, {3, 4, 5}, {1, 5, 6}},
    {4, 3, {2, 1, 4, 5}, {3, 5, 6}},
    {2, 3, {4, 5}, {6, 5, 2}},
    {3, 3, {1, 1, 40}, {1, 40, 1}},
    {2, 2, {3, 300}, {300, 4}}, // sums beyond 2^24
};

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

static void check_linear(const struct linear *l, const struct edits *edits, bool is_exact,
                         bool has_epilogue) {
    struct cpu_case c;
    cpu_case_init(&c, 21);
    int64_t in = l->x[l->n_dims - 1];
    int32_t x = cpu_input(&c, "", l->n_dims, l->x);
    int32_t w = l->is_input_first ? cpu_weight(&c, "IO", 2, DIMS(in, l->out))
                                  : cpu_weight(&c, "OI", 2, DIMS(l->out, in));
    int32_t y = has_epilogue ? cpu_joint(&c, MSC_OP_LINEAR, 1, &x, "", w, MSC_NO_ID)
                             : cpu_joint(&c, MSC_OP_LINEAR_BIAS, 1, &x, "", w,
                                         cpu_weight(&c, "O", 1, DIMS(l->out)));
    check(&c, has_epilogue ? add_epilogue(&c, y) : y, edits, is_exact);
}

static void check_product(const struct product *p, const struct edits *edits, bool is_exact,
                          bool has_epilogue) {
    struct cpu_case c;
    cpu_case_init(&c, 22);
    int32_t a = cpu_input(&c, "", p->n_a, p->a), b = cpu_input(&c, "", p->n_b, p->b);
    int32_t y = cpu_joint(&c, MSC_OP_MATMUL, 2, IDS(a, b), "", MSC_NO_ID, MSC_NO_ID);
    check(&c, has_epilogue ? add_epilogue(&c, y) : y, edits, is_exact);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_kernels_cpu_linear__float(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(linears); i++) {
        check_linear(&linears[i], &none, false, false);
        check_linear(&linears[i], &none, false, true);
        for (size_t k = 0; k < COUNT(mixed); k++) {
            check_linear(&linears[i], &mixed[k], false, true);
        }
    }
}

static void test_kernels_cpu_linear__integers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(linears); i++) {
        for (size_t k = 0; k < COUNT(integers) && linears[i].n_dims > 1; k++) {
            check_linear(&linears[i], &integers[k], true, false);
            check_linear(&linears[i], &integers[k], true, true);
        }
    }
}

static void test_kernels_cpu_linear__matmul(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(products); i++) {
        check_product(&products[i], &none, false, false);
        check_product(&products[i], &none, false, true);
        check_product(&products[i], &mixed[2], false, true);
    }
}

static void test_kernels_cpu_linear__matmul_integers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(products); i++) {
        for (size_t k = 0; k < COUNT(integers); k++) {
            check_product(&products[i], &integers[k], true, false);
            check_product(&products[i], &integers[k], true, true);
        }
    }
}

// One factor is constant, of either side.
static void test_kernels_cpu_linear__matmul_constant(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++) {
        for (size_t k = 0; k <= COUNT(integers); k++) {
            struct cpu_case c;
            cpu_case_init(&c, 23);
            int32_t x = cpu_input(&c, "", 3, DIMS(2, 6, 6));
            int32_t w = cpu_constant(&c, 3, DIMS(2, 6, 6), NULL);
            int32_t y = cpu_joint(&c, MSC_OP_MATMUL, 2, side ? IDS(w, x) : IDS(x, w), "", MSC_NO_ID,
                                  MSC_NO_ID);
            check(&c, y, k == 0 ? &none : &integers[k - 1], k > 0);
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
