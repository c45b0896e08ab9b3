// Joints over constants: which of them are computed when a model is read, and up to which size.
// Expected values are numpy's.
#include "graph/passes/constant.h"

#include "graph/passes/constant_internal.h"
#include "tests/msc_test.h"

#include <string.h>

struct made {
    struct msc_graph *g;
    int32_t joint;
    struct msc_array *out[2];
    bool is_done;
};

static struct msc_array *floats(int n_dims, const int64_t dims[], const float values[]) {
    struct msc_array *a;
    assert_ok(values ? msc_array_create_from(&a, MSC_DTYPE_F32, n_dims, dims, values)
                     : msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    return a;
}

static int32_t add_constant(struct msc_graph *g, const char *name, const struct msc_array *array) {
    struct msc_weight_spec weight = {.role = "const"};
    struct msc_joint_spec spec = {
        .op = MSC_OP_CONSTANT, .name = name, .n_weights = 1, .weights = &weight};
    int32_t joint;
    assert_ok(msc_graph_add_weight(&weight.tensor, g, name, name, "", array));
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// Makes a joint over one or two constants and computes the joint. Releases the arrays.
static struct made compute(enum msc_op op, struct msc_array *a, struct msc_array *b, int n_outputs,
                           struct msc_attr attr) {
    struct made m = {.is_done = false};
    int32_t inputs[2];
    assert_ok(msc_graph_create(&m.g, "constants"));
    inputs[0] = add_constant(m.g, "a", a);
    inputs[1] = b ? add_constant(m.g, "b", b) : MSC_NO_ID;
    struct msc_joint_spec spec = {.op = op,
                                  .name = "y",
                                  .n_inputs = b ? 2 : 1,
                                  .inputs = inputs,
                                  .n_attrs = attr.key ? 1 : 0,
                                  .attrs = &attr,
                                  .n_outputs = n_outputs};
    assert_ok(msc_graph_add_joint(&m.joint, m.g, &spec));
    assert_ok(msc_constant_evaluate_all(m.out, &m.is_done, m.g, m.joint));
    msc_array_release(a);
    msc_array_release(b);
    return m;
}

static void made_finish(struct made *m) {
    for (int i = 0; i < 2; i++) {
        msc_array_release(m->out[i]);
    }
    msc_graph_destroy(m->g);
}

static void test_graph_constant__once(void **state) {
    (void)state;
    static const float x[] = {-1, 2}, expected[] = {0, 2};
    struct msc_array *out;
    bool is_done;
    struct made m =
        compute(MSC_OP_RELU, floats(1, &(int64_t){2}, x), NULL, 1, (struct msc_attr){0});
    assert_true(m.is_done);
    assert_memory_equal(msc_array_data(m.out[0]), expected, sizeof(expected));
    assert_ok(msc_constant_evaluate(&out, &is_done, m.g, m.joint));
    assert_false(is_done); // binding folds only shape arithmetic
    made_finish(&m);
}

static void test_graph_constant__several_outputs(void **state) {
    (void)state;
    static const float x[] = {1, 7, 5}, values[] = {7, 5};
    static const int64_t places[] = {1, 2};
    struct made m =
        compute(MSC_OP_TOPK, floats(1, &(int64_t){3}, x), NULL, 2, (struct msc_attr){"k", "2"});
    assert_true(m.is_done);
    assert_memory_equal(msc_array_data(m.out[0]), values, sizeof(values));
    assert_memory_equal(msc_array_data(m.out[1]), places, sizeof(places));
    made_finish(&m);
}

// The output's length is known only after the kernel has run.
static void test_graph_constant__late(void **state) {
    (void)state;
    static const float x[] = {0, 3, 0, 5};
    static const int64_t places[] = {1, 3};
    struct made m =
        compute(MSC_OP_NONZERO, floats(1, &(int64_t){4}, x), NULL, 1, (struct msc_attr){0});
    assert_true(m.is_done);
    assert_int_equal(msc_array_n_dims(m.out[0]), 2);
    assert_int_equal(msc_array_dim(m.out[0], 1), 2);
    assert_memory_equal(msc_array_data(m.out[0]), places, sizeof(places));
    made_finish(&m);
}

static void test_graph_constant__random(void **state) {
    (void)state;
    struct made m = compute(MSC_OP_MULTINOMIAL, floats(2, (int64_t[]){1, 3}, (float[]){1, 2, 3}),
                            NULL, 1, (struct msc_attr){0});
    assert_false(m.is_done);
    made_finish(&m);
}

static void count_line(void *payload, enum msc_log_level level, const char *line) {
    (void)level;
    assert_non_null(strstr(
        line, "model.onnx: joint y (matmul) has constant operands, but its 16785409 elements"));
    ++*(int *)payload;
}

static void test_graph_constant__limit(void **state) {
    (void)state;
    static const int64_t sides[] = {64, 4097};
    for (int i = 0; i < 2; i++) {
        int n_lines = 0;
        const struct msc_log log = {MSC_LOG_WARNING, count_line, &n_lines};
        struct msc_array *a = floats(2, (int64_t[]){sides[i], 1}, NULL);
        struct msc_array *b = floats(2, (int64_t[]){1, sides[i]}, NULL);
        struct made m = compute(MSC_OP_MATMUL, a, b, 1, (struct msc_attr){0});
        assert_int_equal(m.is_done, i == 0);
        assert_ok(msc_graph_tell_unfolded(m.g, "model.onnx", &log));
        assert_int_equal(n_lines, i);
        made_finish(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_constant__once),
        cmocka_unit_test(test_graph_constant__several_outputs),
        cmocka_unit_test(test_graph_constant__late),
        cmocka_unit_test(test_graph_constant__random),
        cmocka_unit_test(test_graph_constant__limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
