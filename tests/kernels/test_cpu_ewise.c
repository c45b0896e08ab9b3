// Element-wise programs: equal in every bit to the reference kernels for all broadcasts and both
// layouts, and a few values from numpy 1.24.
#include "tests/kernels/cpu_case.h"

#include <math.h>

static int32_t unary(struct cpu_case *c, enum msc_op op, int32_t x, const char *attributes) {
    return cpu_joint(c, op, 1, &x, attributes, MSC_NO_ID, MSC_NO_ID);
}

static int32_t binary(struct cpu_case *c, enum msc_op op, int32_t a, int32_t b) {
    return cpu_joint(c, op, 2, IDS(a, b), "", MSC_NO_ID, MSC_NO_ID);
}

// Returns x in channels-last layout: a pool with windows of one element prefers this layout and
// does not change the elements.
static int32_t make_last(struct cpu_case *c, int32_t x) {
    return unary(c, MSC_OP_MAX_POOL2D, x, "pool_size=1,1");
}

// Makes the first elements of the input special numbers.
static void make_special(const struct kernel_operand *o, float x[], int64_t n) {
    static const float special[] = {0.0f,   -0.0f,  INFINITY, -INFINITY, NAN,   1e30f,
                                    -1e30f, 1e-40f, 0.5f,     1.5f,      -2.5f, 16777216.0f};
    (void)o;
    assert_true(n >= (int64_t)(sizeof(special) / sizeof(special[0])));
    memcpy(x, special, sizeof(special));
}

static void test_kernels_cpu_ewise__unary(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "unary"))) {
        struct cpu_case c;
        cpu_case_init(&c, (uint64_t)(row - kernel_cases));
        c.adjust = make_special;
        cpu_case_finish_graph(&c, cpu_case_add(&c, row));
        cpu_check_row(&c);
        cpu_case_finish(&c);
    }
}

static void check_pair(const struct kernel_case *row, bool is_last, bool is_constant,
                       bool is_swapped) {
    struct kernel_operand o[KERNEL_MAX_OPERANDS];
    struct cpu_case c;
    cpu_case_init(&c, 17);
    c.row = row;
    assert_int_equal(kernel_case_operands(o, row), 2);
    int32_t a = cpu_input(&c, "", o[0].n_dims, o[0].dims);
    int32_t b = is_constant ? cpu_constant(&c, o[1].n_dims, o[1].dims, NULL)
                            : cpu_input(&c, "", o[1].n_dims, o[1].dims);
    if (is_last) {
        a = make_last(&c, unary(&c, MSC_OP_IDENTITY, a, ""));
    }
    int32_t y = is_swapped ? binary(&c, row->op, b, a) : binary(&c, row->op, a, b);
    cpu_case_finish_graph(&c, unary(&c, MSC_OP_NEGATIVE, y, ""));
    cpu_check_equal(&c);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_ewise__broadcast(void **state) {
    struct kernel_operand o[KERNEL_MAX_OPERANDS];
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "broadcast"))) {
        kernel_case_operands(o, row);
        for (int kind = 0; kind < 8; kind++) {
            bool is_last = (kind & 1) != 0;
            if (!is_last || o[0].n_dims == 4) {
                check_pair(row, is_last, (kind & 2) != 0, (kind & 4) != 0);
            }
        }
    }
}

static void test_kernels_cpu_ewise__binary(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "binary"))) {
        check_pair(row, true, false, false);
    }
    while ((row = kernel_case_next(row, "binary_constant"))) {
        check_pair(row, true, true, true);
    }
}

// Chains of one and two operations on lengths that are not multiples of a block or vector.
static void test_kernels_cpu_ewise__runs(void **state) {
    static const enum msc_op ops[] = {MSC_OP_ADD, MSC_OP_SUBTRACT, MSC_OP_MULTIPLY, MSC_OP_DIVIDE};
    static const struct {
        enum msc_op op;
        const char *attributes;
    } behind[] = {{MSC_OP_IDENTITY, ""},
                  {MSC_OP_RELU, ""},
                  {MSC_OP_CLIP, "min=-0.5;max=0.75"},
                  {MSC_OP_HARD_SWISH, ""}};
    static const int64_t lengths[] = {1, 15, 63, 64, 65, 1023, 1025, 5003};
    static const float number = 0.7f;
    // A device compiles a shader for each chain, so only some of each kind run there.
    int step = cpu_is_on_device() && !cpu_runs_all_variants() ? 9 : 1;
    (void)state;
    for (int i = 0; i < 8 * 4 * 4 * 4; i += step) {
        struct cpu_case c;
        cpu_case_init(&c, (uint64_t)i);
        int64_t n = lengths[i % 8];
        int kind = i / 8 % 4, last = i / 32 % 4;
        enum msc_op op = ops[i / 128];
        int32_t y, x = cpu_input(&c, "", 1, DIMS(n));
        ((float *)msc_array_data(c.inputs[0]))[n / 2] = NAN;
        if (kind == 0) {
            y = binary(&c, op, x, cpu_input(&c, "", 1, DIMS(n)));
        } else if (kind == 1) {
            y = binary(&c, op, x, cpu_constant(&c, 0, NULL, &number));
        } else if (kind == 3) {
            y = binary(&c, op, cpu_constant(&c, 0, NULL, &number), x);
        } else {
            y = x;
        }
        if (kind == 2 || last > 0) {
            y = unary(&c, behind[last].op, y, behind[last].attributes);
        }
        cpu_case_finish_graph(&c, y);
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

static void test_kernels_cpu_ewise__fixed_powers(void **state) {
    static const float exponents[] = {2.0f, 3.0f, 0.5f, 1.0f, -1.0f, 2.5f, 0.0f};
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -1.0f, 1e-40f};
    (void)state;
    for (size_t i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 2);
        int32_t x = cpu_input(&c, "", 1, DIMS(500));
        memcpy(msc_array_data(c.inputs[0]), special, sizeof(special));
        int32_t e = cpu_constant(&c, 0, NULL, &exponents[i]);
        cpu_case_finish_graph(&c, binary(&c, MSC_OP_POWER, x, e));
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

// Several later joints read an intermediate result; all joints are in one step.
static void test_kernels_cpu_ewise__chain(void **state) {
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct cpu_case c;
        struct msc_array *out;
        cpu_case_init(&c, 9);
        const int64_t *dims = DIMS(2, 20, 13, 11);
        int32_t x = cpu_input(&c, "NCHW", 4, dims), z = cpu_input(&c, "NCHW", 4, dims);
        int32_t channels = cpu_constant(&c, 4, DIMS(1, 20, 1, 1), NULL);
        int32_t gate = cpu_input(&c, "", 4, DIMS(2, 20, 1, 1));
        if (last) {
            x = make_last(&c, x);
        }
        int32_t a = binary(&c, MSC_OP_ADD, x, z);
        int32_t b = unary(&c, MSC_OP_TANH, a, "");
        int32_t d = binary(&c, MSC_OP_MULTIPLY, b, channels);
        int32_t e = binary(&c, MSC_OP_SUBTRACT, d, a);
        int32_t f = binary(&c, MSC_OP_MULTIPLY, gate, e);
        int32_t g = unary(&c, MSC_OP_ELU, f, "alpha=1");
        int32_t h = unary(&c, MSC_OP_GELU, binary(&c, MSC_OP_ADD, g, b), "");
        int32_t i = cpu_joint(&c, MSC_OP_MAXIMUM, 4, IDS(h, a, d, g), "", MSC_NO_ID, MSC_NO_ID);
        cpu_case_finish_graph(&c, binary(&c, MSC_OP_MULTIPLY, i, i));
        cpu_check_equal(&c);
        cpu_run(&out, &c, 0);
        // In channels-last layout: two reorders, the pool, the chain, and the reorder of the
        // output.
        assert_int_equal(c.n_steps, last ? 5 : 1);
        msc_array_release(out);
        cpu_case_finish(&c);
    }
}

// Rows in NCHW are parts of a block, a block, or several blocks.
static void test_kernels_cpu_ewise__batch_norm(void **state) {
    static const int64_t columns[] = {7, 25, 49};
    (void)state;
    for (int way = 0; way < 6; way++) {
        struct cpu_case c;
        bool last = way % 2 == 1;
        cpu_case_init(&c, 4);
        int32_t x = cpu_input(&c, "NCHW", 4, DIMS(2, 19, 33, columns[way / 2]));
        int32_t w[4];
        for (int i = 0; i < 4; i++) {
            c.low = i == 3 ? 0.1f : -2.0f;
            w[i] = cpu_weight(&c, "O", 1, DIMS(19));
        }
        int32_t y = last ? make_last(&c, x) : x;
        y = cpu_joint_weights(&c, MSC_OP_BATCH_NORM, 1, &y, "epsilon=0.001", 4,
                              (const struct msc_weight_spec[]){
                                  {"gamma", w[0]}, {"beta", w[1]}, {"mean", w[2]}, {"var", w[3]}});
        cpu_case_finish_graph(&c, unary(&c, MSC_OP_RELU, y, ""));
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

// Expected: numpy.multiply(numpy.arange(6).reshape(2, 3, 1) - 2, [[10, 20], [30, 40], [50, 60]])
// + 0.5
static void test_kernels_cpu_ewise__numpy(void **state) {
    static const float expected[] = {-19.5f, -39.5f, -29.5f, -39.5f, 0.5f,   0.5f,
                                     10.5f,  20.5f,  60.5f,  80.5f,  150.5f, 180.5f};
    static const float column[] = {10, 20, 30, 40, 50, 60}, half[] = {0.5f};
    (void)state;
    struct cpu_case c;
    struct msc_array *out;
    cpu_case_init(&c, 0);
    int32_t x = cpu_input(&c, "", 3, DIMS(2, 3, 1));
    for (int i = 0; i < 6; i++) {
        ((float *)msc_array_data(c.inputs[0]))[i] = (float)(i - 2);
    }
    int32_t y = binary(&c, MSC_OP_MULTIPLY, x, cpu_constant(&c, 2, DIMS(3, 2), column));
    cpu_case_finish_graph(&c, binary(&c, MSC_OP_ADD, y, cpu_constant(&c, 1, DIMS(1), half)));
    cpu_run(&out, &c, 0);
    assert_int_equal(msc_array_n_elements(out), 12);
    assert_memory_equal(msc_array_data(out), expected, sizeof(expected));
    msc_array_release(out);
    cpu_case_finish(&c);
}

// Inputs given as integers: all bytes, with scales that are not powers of two.
enum { INTEGERS = 2 * 5 * 231 };
static const float integer_scales[2] = {0.0173f, 0.3117f};
static const int32_t integer_zeros[2] = {97, -21};
static const struct msc_quant integer_quants[2] = {
    {.bits = 8,
     .high = 255,
     .axis = -1,
     .n = 1,
     .scales = &integer_scales[0],
     .zero_points = &integer_zeros[0]},
    {.bits = 8,
     .low = -128,
     .high = 127,
     .axis = -1,
     .n = 1,
     .scales = &integer_scales[1],
     .zero_points = &integer_zeros[1]},
};

// Adds the next integer input; *x is set to the floats that it represents.
static int32_t integer_input(struct cpu_case *c, const float **x, int n_dims,
                             const int64_t dims[]) {
    int k = c->n_inputs;
    const struct msc_quant *q = c->input_quants[k] = &integer_quants[k];
    int32_t tensor = cpu_input(c, n_dims == 4 ? "NCHW" : "", n_dims, dims);
    float *elements = msc_array_data(c->inputs[k]);
    for (int64_t i = 0; i < msc_array_n_elements(c->inputs[k]); i++) {
        int32_t byte = q->low + (int32_t)msc_rng_below(&c->rng, 256);
        elements[i] = (float)(byte - q->zero_points[0]) * q->scales[0];
    }
    *x = elements;
    return tensor;
}

static void check_integers(struct cpu_case *c, int32_t y, const float expected[]) {
    struct msc_array *out;
    cpu_case_finish_graph(c, y);
    cpu_run(&out, c, 0);
    assert_int_equal(c->n_steps, 1);
    assert_memory_equal(msc_array_data(out), expected, msc_array_n_bytes(out));
    msc_array_release(out);
    cpu_case_finish(c);
}

// max(a + b, 0), with b of the same shape or with one channel; then the same joints in a step that
// is not a chain. Rows are parts of a block, a block, or several blocks.
static void test_kernels_cpu_ewise__integers(void **state) {
    enum { MOST = 49 };
    static const int columns[] = {7, 25, MOST};
    static float expected[2 * 5 * 33 * MOST];
    (void)state;
    for (int way = 0; way < 12; way++) {
        struct cpu_case c;
        const float *a, *b;
        bool is_narrow = way % 2 == 1, is_chain = way / 2 % 2 == 0;
        int row = 33 * columns[way / 4];
        cpu_case_init(&c, 31);
        const int64_t *dims = DIMS(2, 5, 33, columns[way / 4]);
        int32_t x0 = integer_input(&c, &a, 4, dims);
        int32_t x1 = integer_input(&c, &b, 4, is_narrow ? DIMS(1, 5, 1, 1) : dims);
        int32_t y = binary(&c, is_chain ? MSC_OP_ADD : MSC_OP_MAXIMUM, x0, x1);
        for (int i = 0; i < 2 * 5 * row; i++) {
            float other = b[is_narrow ? i / row % 5 : i];
            float value = is_chain ? a[i] + other : a[i] > other ? a[i] : other;
            expected[i] = value < 0.0f ? 0.0f : value;
        }
        check_integers(&c, unary(&c, MSC_OP_RELU, y, ""), expected);
    }
}

// Two inputs with different quantisations become floats when they are concatenated.
static void test_kernels_cpu_ewise__joined_integers(void **state) {
    static float expected[2 * INTEGERS];
    (void)state;
    struct cpu_case c;
    const float *a, *b;
    cpu_case_init(&c, 32);
    int32_t x[2];
    x[0] = integer_input(&c, &a, 2, DIMS(10, 231));
    x[1] = integer_input(&c, &b, 2, DIMS(10, 231));
    for (int i = 0; i < INTEGERS; i++) {
        expected[i / 231 * 462 + i % 231] = a[i];
        expected[i / 231 * 462 + 231 + i % 231] = b[i];
    }
    check_integers(&c, cpu_joint(&c, MSC_OP_CONCAT, 2, x, "axis=1", MSC_NO_ID, MSC_NO_ID),
                   expected);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_ewise__unary),
        cmocka_unit_test(test_kernels_cpu_ewise__broadcast),
        cmocka_unit_test(test_kernels_cpu_ewise__binary),
        cmocka_unit_test(test_kernels_cpu_ewise__runs),
        cmocka_unit_test(test_kernels_cpu_ewise__fixed_powers),
        cmocka_unit_test(test_kernels_cpu_ewise__chain),
        cmocka_unit_test(test_kernels_cpu_ewise__batch_norm),
        cmocka_unit_test(test_kernels_cpu_ewise__numpy),
        cmocka_unit_test(test_kernels_cpu_ewise__integers),
        cmocka_unit_test(test_kernels_cpu_ewise__joined_integers),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
