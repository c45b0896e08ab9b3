// Pools, resizes, softmax, normalisations, reductions and operators that only move elements, in
// both layouts. Results are compared with the reference kernels.
#include "tests/kernels/cpu_case.h"

#include <stdio.h>

static int32_t unary(struct cpu_case *c, enum msc_op op, int32_t x, const char *attributes) {
    return cpu_joint(c, op, 1, &x, attributes, MSC_NO_ID, MSC_NO_ID);
}

// Returns x, which has 4 dims, in channels-last layout. A pool with windows of one element prefers
// this layout and does not change the elements.
static int32_t make_last(struct cpu_case *c, int32_t x) {
    return unary(c, MSC_OP_MAX_POOL2D, x, "pool_size=1,1");
}

static void test_kernels_cpu_layers__pools(void **state) {
    (void)state;
    cpu_check_layouts("pools");
}

static void test_kernels_cpu_layers__resizes(void **state) {
    (void)state;
    cpu_check_layouts("resizes");
}

static void test_kernels_cpu_layers__softmax(void **state) {
    (void)state;
    cpu_check_layouts("softmax");
}

static void test_kernels_cpu_layers__layer_norm(void **state) {
    (void)state;
    cpu_check_layouts("layer_norm");
}

// Few and many channels, and numbers of positions that are not multiples of a block.
static void test_kernels_cpu_layers__group_norm(void **state) {
    const struct kernel_case *row = NULL;
    struct kernel_operand operands[KERNEL_MAX_OPERANDS];
    (void)state;
    while ((row = kernel_case_next(row, "group_norm"))) {
        kernel_case_operands(operands, row);
        for (int is_last = 0; is_last <= (operands[0].n_dims == 4); is_last++) {
            struct cpu_case c;
            cpu_case_init(&c, 34);
            c.is_last = is_last == 1;
            int32_t y = cpu_case_add(&c, row);
            cpu_case_finish_graph(&c, is_last ? make_last(&c, y) : y);
            cpu_check_row(&c);
            assert_true(c.n_steps <= 5); // at most the input and the output are reordered
            cpu_case_finish(&c);
        }
    }
}

static void test_kernels_cpu_layers__reductions(void **state) {
    static const enum msc_op ops[] = {MSC_OP_MEAN, MSC_OP_SUM, MSC_OP_MAX, MSC_OP_MIN};
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "reductions"))) {
        for (int i = 0; i < 16; i++) {
            char attributes[64];
            struct kernel_case k = *row;
            struct cpu_case c;
            snprintf(attributes, sizeof(attributes), "%s;keepdims=%d", row->attributes, i & 1);
            k.attributes = attributes;
            k.op = ops[i / 4];
            k.bound = i < 8 ? row->bound : 0; // maximum and minimum are exact
            cpu_case_init(&c, 31);
            c.is_last = (i & 2) != 0;
            cpu_case_finish_graph(&c, cpu_case_add(&c, &k));
            cpu_check_row(&c);
            cpu_case_finish(&c);
        }
    }
}

static void test_kernels_cpu_layers__permutes(void **state) {
    (void)state;
    cpu_check_layouts("permutes");
}

static void test_kernels_cpu_layers__depth_space(void **state) {
    (void)state;
    cpu_check_layouts("depth_space");
}

static void test_kernels_cpu_layers__renames(void **state) {
    (void)state;
    cpu_check_layouts("renames");
}

// A permute that only reinterprets a value stored channels-last must not copy it. Each copy is a
// step, so the number of steps shows whether there was one.
static void test_kernels_cpu_layers__aliases(void **state) {
    static const struct {
        enum msc_op op;
        const char *attributes;
        int n_steps;
    } cases[] = {
        // A permute from NHWC gives NCHW stored channels-last, so only the pool is a step.
        {MSC_OP_PERMUTE_DIMS, "axes=0,3,1,2", 1},
        {MSC_OP_RELU, "", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cpu_case c;
        struct msc_array *out;
        cpu_case_init(&c, 5);
        int32_t x = cpu_input(&c, "", 4, DIMS(1, 6, 5, 4));
        x = unary(&c, cases[i].op, x, cases[i].attributes);
        x = unary(&c, MSC_OP_MAX_POOL2D, x, "pool_size=2,2");
        cpu_case_finish_graph(&c, unary(&c, MSC_OP_PERMUTE_DIMS, x, "axes=0,2,3,1"));
        cpu_run(&out, &c, 0);
        assert_int_equal(c.n_steps, cases[i].n_steps);
        msc_array_release(out);
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

static void test_kernels_cpu_layers__slices(void **state) {
    (void)state;
    cpu_check_layouts("slices");
}

static void test_kernels_cpu_layers__splits(void **state) {
    const struct kernel_case *row = NULL;
    (void)state;
    while ((row = kernel_case_next(row, "splits"))) {
        for (int i = 0; i < 6; i++) {
            struct cpu_case c;
            cpu_case_init(&c, 31);
            c.is_last = i >= 3;
            int32_t y = cpu_case_add(&c, row);
            const struct msc_joint *j = msc_graph_joint(c.g, msc_graph_tensor(c.g, y)->producer);
            cpu_case_finish_graph(&c, j->outputs[i % 3]);
            cpu_check_row(&c);
            cpu_case_finish(&c);
        }
    }
}

static void test_kernels_cpu_layers__concats(void **state) {
    (void)state;
    for (int axis = 0; axis < 4; axis++) {
        // The bits of `last` say which inputs are channels-last. No input is constant.
        for (int last = 0; last < 8; last++) {
            struct cpu_case c;
            char attributes[16];
            int64_t dims[] = {2, 5, 4, 3}, other[] = {2, 5, 4, 3}, third[] = {2, 5, 4, 3};
            other[axis] = 7;
            third[axis] = 1;
            snprintf(attributes, sizeof(attributes), "axis=%d", axis);
            cpu_case_init(&c, 6);
            int32_t a = cpu_input(&c, "", 4, dims), b = cpu_input(&c, "", 4, other);
            a = (last & 1) != 0 ? make_last(&c, a) : a;
            b = (last & 2) != 0 ? make_last(&c, b) : b;
            int32_t n = (last & 4) != 0 ? 3 : 4;
            int32_t parts[4] = {a, b, a, n == 4 ? cpu_constant(&c, 4, third, NULL) : MSC_NO_ID};
            cpu_case_finish_graph(
                &c, cpu_joint(&c, MSC_OP_CONCAT, n, parts, attributes, MSC_NO_ID, MSC_NO_ID));
            cpu_check_equal(&c);
            cpu_case_finish(&c);
        }
    }
}

// Edits of both weights, of one of them, and of the input. The expected result uses weights that
// were rounded beforehand.
static void test_kernels_cpu_layers__recurrent(void **state) {
    (void)state;
    for (int left_float = 0; left_float < 4; left_float++) {
        struct cpu_case c;
        cpu_case_init(&c, 9);
        int32_t x = cpu_input(&c, "", 3, DIMS(5, 2, 6));
        const struct msc_weight_spec weights[2] = {
            {"weight", cpu_weight(&c, "", 3, DIMS(2, 12, 6))},
            {"recurrence", cpu_weight(&c, "", 3, DIMS(2, 12, 3))}};
        cpu_case_finish_graph(&c, cpu_joint_weights(&c, MSC_OP_LSTM, 1, &x,
                                                    "direction=bidirectional;hidden_size=3", 2,
                                                    weights));
        assert_int_equal(c.sites.n_slots, 3);
        cpu_case_edit(&c, (struct cpu_edit_kind){9, false, false},
                      (struct cpu_edit_kind){9, true, true});
        if (left_float < 3) {
            c.edits[left_float] = NULL;
        }
        cpu_check_close(&c, 1e-12); // other devices add in float32
        cpu_case_finish(&c);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_layers__pools),
        cmocka_unit_test(test_kernels_cpu_layers__resizes),
        cmocka_unit_test(test_kernels_cpu_layers__softmax),
        cmocka_unit_test(test_kernels_cpu_layers__layer_norm),
        cmocka_unit_test(test_kernels_cpu_layers__group_norm),
        cmocka_unit_test(test_kernels_cpu_layers__reductions),
        cmocka_unit_test(test_kernels_cpu_layers__permutes),
        cmocka_unit_test(test_kernels_cpu_layers__depth_space),
        cmocka_unit_test(test_kernels_cpu_layers__renames),
        cmocka_unit_test(test_kernels_cpu_layers__aliases),
        cmocka_unit_test(test_kernels_cpu_layers__slices),
        cmocka_unit_test(test_kernels_cpu_layers__splits),
        cmocka_unit_test(test_kernels_cpu_layers__concats),
        cmocka_unit_test(test_kernels_cpu_layers__recurrent),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
