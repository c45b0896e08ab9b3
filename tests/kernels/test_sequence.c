// Consecutive chunks of a sequence unrolled into one graph. Expected sums come from numpy.
#include "kernels/engine/sequence.h"

#include "graph/reference/reference.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "tests/msc_test.h"

static int32_t add(struct msc_graph *g, enum msc_op op, const char *name, int32_t a, int32_t b) {
    int32_t joint;
    const int32_t inputs[] = {a, b};
    const struct msc_joint_spec spec = {
        .op = op, .name = name, .n_inputs = b == MSC_NO_ID ? 1 : 2, .inputs = inputs};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// sum = s + x * scale, out = -sum; x [2], s [2], scale []. The sum is the next chunk's s.
struct sums {
    struct msc_graph *g;
    int32_t sum, out;
};

static void open_sums(struct sums *s) {
    static const int64_t two = 2;
    int32_t x, before, scale;
    assert_ok(msc_graph_create(&s->g, "sums"));
    assert_ok(msc_graph_add_input(&x, s->g, "x", "x", MSC_DTYPE_F32, "", 1, &two));
    assert_ok(msc_graph_add_input(&before, s->g, "s", "s", MSC_DTYPE_F32, "", 1, &two));
    assert_ok(msc_graph_add_input(&scale, s->g, "scale", "scale", MSC_DTYPE_F32, "", 0, NULL));
    int32_t product = add(s->g, MSC_OP_MULTIPLY, "product", x, scale);
    int32_t sum = add(s->g, MSC_OP_ADD, "sum", before, product);
    int32_t out = add(s->g, MSC_OP_NEGATIVE, "out", sum, MSC_NO_ID);
    assert_ok(msc_graph_set_outputs(s->g, 1, &out));
    assert_ok(msc_graph_finalize(s->g));
    s->sum = msc_graph_find_tensor(s->g, "sum:0");
    s->out = msc_graph_find_tensor(s->g, "out:0");
}

static struct msc_array *floats(int n_dims, const int64_t dims[], const float values[]) {
    struct msc_array *array;
    assert_ok(msc_array_create_from(&array, MSC_DTYPE_F32, n_dims, dims, values));
    return array;
}

static void run(const struct msc_graph *g, int32_t wanted, const struct msc_array *const inputs[],
                const float expected[], int n) {
    struct msc_array *out;
    assert_ok(msc_reference_run_graph(&out, g, inputs, &wanted, 1, NULL));
    assert_int_equal(msc_array_n_elements(out), n);
    assert_memory_equal(msc_array_data(out), expected, (size_t)n * sizeof(expected[0]));
    msc_array_release(out);
}

// x is 1 2, 3 4, 5 6; s starts at 10 20 and scale is 2. Expected: the negated numpy.cumsum.
static void test_kernels_sequence__running_sums(void **state) {
    static const float x[] = {1, 2, 3, 4, 5, 6}, first[] = {10, 20}, scale[] = {2};
    static const float expected[] = {-12, -24, -18, -32, -28, -44};
    static const int32_t chunk_of[] = {0, 1, 2};
    (void)state;
    for (int64_t n = 1; n <= 3; n++) {
        struct sums s;
        struct msc_unrolled u;
        open_sums(&s);
        const bool is_chunked[] = {true, false, false};
        const int32_t state_of[] = {MSC_NO_ID, s.sum, MSC_NO_ID};
        const struct msc_unroll unroll = {.n_chunks = n,
                                          .is_chunked = is_chunked,
                                          .state_of = state_of,
                                          .gathered = &s.out,
                                          .n_gathered = 1};
        assert_ok(msc_graph_unroll(&u, s.g, &unroll));
        assert_int_equal(msc_graph_n_inputs(u.graph), 3);
        const struct msc_tensor *t = msc_graph_tensor(u.graph, u.gathered[0]);
        assert_int_equal(t->n_dims, 2); // a row of 2 elements for each chunk
        assert_int_equal(t->dims[0], n);
        struct msc_array *arrays[] = {floats(2, (const int64_t[]){n, 2}, x),
                                      floats(1, (const int64_t[]){2}, first),
                                      floats(0, NULL, scale)};
        run(u.graph, u.gathered[0], (const struct msc_array *const *)arrays, expected,
            (int)(2 * n));
        // Each chunk has its own copies of the joints, mapped to the original joint and the
        // chunk.
        static const char *const names[] = {"sum", "chunk_1/sum", "chunk_2/sum"};
        for (int64_t c = 0; c < n; c++) {
            int32_t joint = msc_graph_find_joint(u.graph, names[c]);
            assert_int_not_equal(joint, MSC_NO_ID);
            assert_int_equal(u.joints[joint], msc_graph_find_joint(s.g, "sum"));
            assert_int_equal(u.chunks[joint], chunk_of[c]);
        }
        for (int i = 0; i < 3; i++) {
            msc_array_release(arrays[i]);
        }
        msc_unrolled_finish(&u);
        msc_graph_destroy(s.g);
    }
}

// More chunks than one joint can concatenate: y = -x for 100 chunks of one row.
static void test_kernels_sequence__many_chunks(void **state) {
    enum { N = 100 };
    static const int64_t dims[] = {1, 2};
    float x[2 * N], expected[2 * N];
    struct msc_graph *g;
    struct msc_unrolled u;
    int32_t input;
    (void)state;
    for (int i = 0; i < 2 * N; i++) {
        x[i] = (float)i + 1;
        expected[i] = -x[i];
    }
    assert_ok(msc_graph_create(&g, "rows"));
    assert_ok(msc_graph_add_input(&input, g, "x", "x", MSC_DTYPE_F32, "", 2, dims));
    int32_t out = add(g, MSC_OP_NEGATIVE, "out", input, MSC_NO_ID);
    assert_ok(msc_graph_set_outputs(g, 1, &out));
    assert_ok(msc_graph_finalize(g));
    const int32_t none = MSC_NO_ID, gathered = msc_graph_find_tensor(g, "out:0");
    const bool is_chunked = true;
    const struct msc_unroll unroll = {.n_chunks = N,
                                      .is_chunked = &is_chunked,
                                      .state_of = &none,
                                      .gathered = &gathered,
                                      .n_gathered = 1};
    assert_ok(msc_graph_unroll(&u, g, &unroll));
    const struct msc_tensor *t = msc_graph_tensor(u.graph, u.gathered[0]);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->dims[0], N);
    struct msc_array *array = floats(3, (const int64_t[]){N, 1, 2}, x);
    const struct msc_array *const arrays[] = {array};
    run(u.graph, u.gathered[0], arrays, expected, 2 * N);
    msc_array_release(array);
    msc_unrolled_finish(&u);
    msc_graph_destroy(g);
}

static void test_kernels_sequence__state_that_does_not_fit(void **state) {
    (void)state;
    struct sums s;
    struct msc_unrolled u;
    open_sums(&s);
    const bool is_chunked[] = {true, false, false};
    const int32_t state_of[] = {MSC_NO_ID, MSC_NO_ID, s.sum};
    const struct msc_unroll unroll = {
        .n_chunks = 2, .is_chunked = is_chunked, .state_of = state_of};
    assert_int_equal(msc_graph_unroll(&u, s.g, &unroll), MSC_E_INVALID);
    assert_message("input scale is [] float32, but sum:0, which feeds it, is [2] float32");
    msc_graph_destroy(s.g);
}

// ---- Through the evaluator --------------------------------------------------------------------

// Running sums of two sequences, of three chunks and of two.
static struct msc_dataset *make_data(const char *state) {
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, scale[] = {2};
    struct msc_input_spec specs[3] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {2}},
        {.name = "s", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {2}, .state = state},
        {.name = "scale", .dtype = MSC_DTYPE_F32, .n_dims = 0}};
    struct msc_array *arrays[3] = {floats(2, (const int64_t[]){5, 2}, x), NULL,
                                   floats(0, NULL, scale)};
    struct msc_dataset *data;
    assert_ok(msc_dataset_create(&data, specs, arrays, 3, NULL, 3));
    msc_array_release(arrays[0]);
    msc_array_release(arrays[2]);
    return data;
}

static enum msc_status check_sums(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    static const float expected[2][6] = {{-2, -4, -8, -12, -18, -24}, {-14, -16, -32, -36}};
    static const int64_t n[2] = {3, 2};
    (void)trial;
    assert_int_equal(values[0].n_dims, 2);
    assert_int_equal(values[0].dims[0], n[batch]);
    assert_memory_equal(values[0].data, expected[batch], (size_t)n[batch] * 2 * sizeof(float));
    ((bool *)payload)[batch] = true;
    return MSC_OK;
}

static void test_kernels_sequence__evaluator(void **state) {
    (void)state;
    struct sums s;
    struct msc_backend_options b = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    bool seen[2] = {false};
    const struct msc_sink sink = {.batch = check_sums, .payload = seen};
    struct msc_eval_trial trial = {.edits = NULL};
    open_sums(&s);
    assert_ok(msc_backend_open(&o.backend, "cpu", &b));
    struct msc_dataset *data = make_data("sum:0");
    assert_ok(msc_evaluator_create(&ev, s.g, data, &s.out, 1, &o));
    assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
    assert_int_equal(trial.status, MSC_OK);
    assert_true(seen[0] && seen[1]);
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    data = make_data("total");
    assert_int_equal(msc_evaluator_create(&ev, s.g, data, &s.out, 1, &o), MSC_E_INVALID);
    assert_message("s is fed by \"total\", a tensor that the model does not have");
    msc_dataset_destroy(data);
    msc_backend_close(o.backend);
    msc_graph_destroy(s.g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_sequence__running_sums),
        cmocka_unit_test(test_kernels_sequence__many_chunks),
        cmocka_unit_test(test_kernels_sequence__evaluator),
        cmocka_unit_test(test_kernels_sequence__state_that_does_not_fit),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
