// Loops that would not end in reasonable time are stopped by a limit on time, number of iterations
// or memory. Expected results follow from the loops' formulas.
#include "kernels/engine/evaluator.h"

#include "base/machine.h"
#include "graph/onnx/onnx.h"
#include "graph/reference/reference.h"
#include "kernels/engine/backends.h"
#include "tests/kernels/eval_case.h"

#include <pthread.h>
#include <time.h>

#define FILES MSC_TESTS_FOLDER "/graph/files/"

static struct msc_graph *load(const char *path) {
    struct msc_graph *g = NULL;
    assert_ok(msc_onnx_load(&g, path, NULL));
    return g;
}

// Runs the model on x = [1,1,1] and `count`, if it has that input, and returns y.
static enum msc_status run(struct msc_array **out, const char *path, int64_t count,
                           const struct msc_reference_limits *limits) {
    struct msc_graph *g = load(path);
    struct msc_array *x, *n;
    const float ones[3] = {1, 1, 1};
    int32_t y = msc_graph_output(g, 0);
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 1, (const int64_t[]){3}, ones));
    assert_ok(msc_array_create_from(&n, MSC_DTYPE_I64, 0, NULL, &count));
    enum msc_status status =
        msc_reference_run_graph(out, g, (const struct msc_array *const[]){x, n}, &y, 1, limits);
    msc_array_release(x);
    msc_array_release(n);
    msc_graph_destroy(g);
    return status;
}

static void test_kernels_reference_limits__turns(void **state) {
    (void)state;
    const struct msc_reference_limits limits = {.max_turns = 1000};
    struct msc_array *y = NULL;
    assert_int_equal(run(&y, FILES "loop_endless.onnx", 0, &limits), MSC_E_UNSUPPORTED);
    assert_message("joint loop: still running after 1000 iterations");
    assert_null(y);
    // Exporters write INT64_MAX as the count of loops without a count.
    assert_int_equal(run(&y, FILES "loop_counted.onnx", INT64_MAX, &limits), MSC_E_UNSUPPORTED);
    assert_int_equal(run(&y, FILES "loop_counted.onnx", INT32_MAX, &limits), MSC_E_UNSUPPORTED);
    assert_null(y);
}

// After n iterations the value is 2^n.
static void test_kernels_reference_limits__counted(void **state) {
    (void)state;
    const struct msc_reference_limits limits = {.max_turns = 3};
    const int64_t counts[] = {INT64_MIN, -1, 0, 1, 3, 4, 20};
    const float expected[] = {1, 1, 1, 2, 8, 16, 1048576};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct msc_array *y;
        assert_ok(run(&y, FILES "loop_counted.onnx", counts[i], &limits));
        assert_float_equal(((const float *)msc_array_data(y))[2], expected[i], 0);
        msc_array_release(y);
    }
}

// Runs a model whose last inputs decide what runs; `lengths` are the lengths of the inputs.
static enum msc_status run_lengths(struct msc_array **out, const char *path, int n_inputs,
                                   const enum msc_dtype dtypes[], const int64_t lengths[]) {
    struct msc_graph *g = load(path);
    struct msc_array *inputs[4];
    const int64_t ones[2] = {1, 1};
    int32_t y = msc_graph_output(g, 0);
    for (int i = 0; i < n_inputs; i++) {
        struct msc_array *whole;
        assert_ok(msc_array_create_from(&whole, MSC_DTYPE_I64, 1, &lengths[i], ones));
        assert_ok(msc_array_convert(&inputs[i], whole, dtypes[i]));
        msc_array_release(whole);
    }
    enum msc_status status =
        msc_reference_run_graph(out, g, (const struct msc_array *const *)inputs, &y, 1, NULL);
    for (int i = 0; i < n_inputs; i++) {
        msc_array_release(inputs[i]);
    }
    msc_graph_destroy(g);
    return status;
}

// The condition is an empty tensor.
static void test_kernels_reference_limits__no_condition(void **state) {
    static const enum msc_dtype dtypes[] = {MSC_DTYPE_F32, MSC_DTYPE_I64, MSC_DTYPE_BOOL,
                                            MSC_DTYPE_F32};
    static const struct {
        // Lengths of x, of the count, of the condition before the loop, and of the tensor that
        // gives the condition after an iteration.
        int64_t lengths[4];
        const char *message;
    } rows[] = {
        {{1, 0, 1, 1}, "joint loop: its number of iterations is empty, expected one element"},
        {{1, 1, 0, 1}, "joint loop: its condition is empty, expected one element"},
        {{1, 1, 1, 0}, "joint loop: its condition is empty, expected one element"},
    };
    struct msc_array *y = NULL;
    (void)state;
    assert_ok(run_lengths(&y, FILES "loop_lengths.onnx", 4, dtypes, (const int64_t[]){1, 1, 1, 1}));
    assert_float_equal(((const float *)msc_array_data(y))[0], 2, 0);
    msc_array_release(y);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(run_lengths(&y, FILES "loop_lengths.onnx", 4, dtypes, rows[i].lengths),
                         MSC_E_INVALID);
        assert_message(rows[i].message);
        assert_null(y);
    }
    static const enum msc_dtype of_branch[] = {MSC_DTYPE_BOOL, MSC_DTYPE_F32};
    assert_int_equal(run_lengths(&y, FILES "branch_lengths.onnx", 2, of_branch, (int64_t[]){0, 2}),
                     MSC_E_INVALID);
    assert_message("joint if: its condition is empty, expected one element");
    assert_null(y);
}

static void *raise_soon(void *payload) {
    const struct timespec time = {.tv_nsec = 20000000};
    nanosleep(&time, NULL);
    msc_cancel_raise(payload, 2);
    return NULL;
}

// Only the request to cancel ends the loop.
static void test_kernels_reference_limits__cancel(void **state) {
    (void)state;
    struct msc_cancel cancel = {0};
    const struct msc_reference_limits limits = {.cancel = &cancel, .max_turns = INT64_MAX};
    struct msc_array *y = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, raise_soon, &cancel), 0);
    assert_int_equal(run(&y, FILES "loop_endless.onnx", 0, &limits), MSC_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(y);
}

static uint64_t limit(void) {
    return msc_machine_resident_bytes() + (UINT64_C(96) << 20);
}

static void test_kernels_reference_limits__memory(void **state) {
    (void)state;
    struct msc_array_meter meter = {.limit_bytes = limit()};
    struct msc_array *y = NULL;
    struct msc_array_meter *before = msc_array_measure(&meter);
    assert_int_equal(run(&y, FILES "loop_doubles.onnx", 0, NULL), MSC_E_NOMEM);
    assert_message("joint again: an array [");
    assert_message("would exceed the memory limit");
    msc_array_measure(before);
    assert_null(y);
    assert_true(meter.peak_bytes <= (int64_t)(UINT64_C(96) << 20));
    assert_int_equal(meter.held_bytes, 0);
}

static enum msc_status ignore(void *payload, size_t trial, size_t batch,
                              const struct msc_view values[]) {
    (void)payload;
    (void)trial;
    (void)batch;
    (void)values;
    return MSC_OK;
}

struct bench {
    struct msc_graph *g;
    struct msc_backend *backend;
    struct msc_dataset *data;
    struct msc_evaluator *ev;
};

static void open_bench(struct bench *b, const char *path, const struct msc_cancel *cancel) {
    struct msc_backend_options backend_options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {3}};
    const float ones[3] = {1, 1, 1};
    struct msc_array *x;
    b->g = load(path);
    int32_t y = msc_graph_output(b->g, 0);
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 2, (const int64_t[]){1, 3}, ones));
    assert_ok(msc_dataset_create(&b->data, &spec, &x, 1, NULL, 1));
    assert_ok(msc_backend_open(&b->backend, "cpu", &backend_options));
    o.backend = b->backend;
    o.host_bytes = limit();
    o.cancel = cancel;
    assert_ok(msc_evaluator_create(&b->ev, b->g, b->data, &y, 1, &o));
    msc_array_release(x);
}

static void close_bench(struct bench *b) {
    msc_evaluator_destroy(b->ev);
    msc_backend_close(b->backend);
    msc_dataset_destroy(b->data);
    msc_graph_destroy(b->g);
}

// A trial that exceeds the limits fails; the evaluation continues. In one model the loop is the
// dynamic-shape tail of the network. In the other model a step of known length contains a loop.
static void test_kernels_reference_limits__trial(void **state) {
    (void)state;
    static const char *const paths[] = {FILES "loop_doubles.onnx", FILES "loop_nested.onnx"};
    const struct msc_sink sink = {.batch = ignore};
    for (int i = 0; i < 2; i++) {
        struct bench b;
        open_bench(&b, paths[i], NULL);
        assert_int_equal(msc_evaluator_plan(b.ev, 0)->n_steps, i);
        for (int k = 0; k < 2; k++) {
            struct msc_eval_trial trial = {.edits = NULL};
            assert_ok(msc_evaluator_run(b.ev, &trial, 1, &sink, 0));
            assert_int_equal(trial.status, MSC_E_NOMEM);
            assert_non_null(strstr(trial.message, "would exceed the memory limit"));
        }
        close_bench(&b);
    }
}

static void test_kernels_reference_limits__cancelled_trial(void **state) {
    (void)state;
    struct msc_cancel cancel = {0};
    const struct msc_sink sink = {.batch = ignore};
    struct msc_eval_trial trial = {.edits = NULL};
    struct bench b;
    pthread_t thread;
    open_bench(&b, FILES "loop_long.onnx", &cancel);
    assert_int_equal(msc_evaluator_plan(b.ev, 0)->n_steps, 1);
    assert_int_equal(pthread_create(&thread, NULL, raise_soon, &cancel), 0);
    assert_int_equal(msc_evaluator_run(b.ev, &trial, 1, &sink, 0), MSC_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_reference_limits__turns),
        cmocka_unit_test(test_kernels_reference_limits__counted),
        cmocka_unit_test(test_kernels_reference_limits__no_condition),
        cmocka_unit_test(test_kernels_reference_limits__cancel),
        cmocka_unit_test(test_kernels_reference_limits__memory),
        cmocka_unit_test(test_kernels_reference_limits__trial),
        cmocka_unit_test(test_kernels_reference_limits__cancelled_trial),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
