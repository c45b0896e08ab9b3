// Which batches share a plan, decided by the shapes and content of their inputs. Also tests an
// evaluator with more distinct batches than plans.
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "kernels/engine/signatures.h"
#include "tests/msc_test.h"

// y = x [1,1], repeated to the shape that the input `shape` [2] contains.
struct repeat {
    struct msc_graph *g;
    struct msc_dataset *data;
};

static struct msc_dataset *make_data(int64_t shapes[][2], int64_t n) {
    const struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {1, 1}},
        {.name = "shape", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {2}}};
    struct msc_array *arrays[2];
    struct msc_dataset *data;
    assert_ok(msc_array_create(&arrays[0], MSC_DTYPE_F32, 3, (const int64_t[]){n, 1, 1}));
    assert_ok(msc_array_create_from(&arrays[1], MSC_DTYPE_I64, 2, (const int64_t[]){n, 2}, shapes));
    assert_ok(msc_dataset_create(&data, specs, arrays, 2, NULL, 1));
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    return data;
}

static void open_repeat(struct repeat *r, int64_t shapes[][2], int64_t n) {
    int32_t inputs[2], joint;
    assert_ok(msc_graph_create(&r->g, "repeat"));
    assert_ok(msc_graph_add_input(&inputs[0], r->g, "x", "x", MSC_DTYPE_F32, "", 2,
                                  (const int64_t[]){1, 1}));
    assert_ok(msc_graph_add_input(&inputs[1], r->g, "shape", "shape", MSC_DTYPE_I64, "", 1,
                                  (const int64_t[]){2}));
    struct msc_joint_spec spec = {
        .op = MSC_OP_BROADCAST_TO, .name = "repeat", .n_inputs = 2, .inputs = inputs};
    assert_ok(msc_graph_add_joint(&joint, r->g, &spec));
    assert_ok(msc_graph_set_outputs(r->g, 1, &msc_graph_joint(r->g, joint)->outputs[0]));
    assert_ok(msc_graph_finalize(r->g));
    r->data = make_data(shapes, n);
}

static void close_repeat(struct repeat *r) {
    msc_dataset_destroy(r->data);
    msc_graph_destroy(r->g);
}

static void test_kernels_signatures__table(void **state) {
    enum { BATCHES = 600, PLANS = 200 };
    static int64_t shapes[BATCHES][2];
    static const bool none[2] = {false, false}, shape[2] = {false, true};
    (void)state;
    for (int64_t i = 0; i < BATCHES; i++) {
        shapes[i][0] = i % PLANS;
    }
    struct msc_dataset *data = make_data(shapes, BATCHES);
    struct msc_signatures s = {.dataset = data};
    for (int32_t b = 0; b < BATCHES; b++) {
        assert_int_equal(msc_signatures_find(&s, (size_t)b), b < PLANS ? MSC_NO_ID : b % PLANS);
        if (b < PLANS) {
            assert_ok(msc_signatures_add(&s, (size_t)b, b, shape));
        }
    }
    assert_int_equal(s.n_selections, 1);
    msc_signatures_finish(&s);
    // If the shape is not a parameter, all batches are equal.
    s = (struct msc_signatures){.dataset = data};
    assert_ok(msc_signatures_add(&s, 0, 7, none));
    assert_int_equal(msc_signatures_find(&s, 5), 7);
    assert_ok(msc_signatures_add(&s, 1, 8, shape));
    assert_int_equal(msc_signatures_find(&s, 1), 7);
    assert_int_equal(s.n_selections, 2);
    msc_signatures_finish(&s);
    msc_dataset_destroy(data);
}

static enum msc_status create(struct msc_evaluator **out, const struct repeat *r,
                              struct msc_backend *backend, uint64_t memory_bytes,
                              const struct msc_log *log) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    int32_t wanted = msc_graph_output(r->g, 0);
    o.backend = backend;
    o.memory_bytes = memory_bytes;
    o.log = log;
    return msc_evaluator_create(out, r->g, r->data, &wanted, 1, &o);
}

static void count_lines(void *payload, enum msc_log_level level, const char *line) {
    assert_int_equal(level, MSC_LOG_INFO);
    assert_non_null(strstr(line, "different plans for"));
    ++*(int *)payload;
}

enum { BATCHES = 10000 };

// Many batches share a few plans.
static void test_kernels_signatures__few(void **state) {
    static int64_t shapes[BATCHES][2];
    struct msc_backend_options b = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend;
    struct msc_evaluator *ev;
    struct repeat r;
    (void)state;
    for (int64_t i = 0; i < BATCHES; i++) {
        shapes[i][0] = 1 + i % 4;
        shapes[i][1] = 1;
    }
    open_repeat(&r, shapes, BATCHES);
    assert_ok(msc_backend_open(&backend, "cpu", &b));
    assert_ok(create(&ev, &r, backend, (uint64_t)1 << 40, NULL));
    for (size_t i = 0; i < BATCHES; i++) {
        assert_ptr_equal(msc_evaluator_plan(ev, i), msc_evaluator_plan(ev, i % 4));
    }
    assert_ptr_not_equal(msc_evaluator_plan(ev, 0), msc_evaluator_plan(ev, 1));
    msc_evaluator_destroy(ev);
    msc_backend_close(backend);
    close_repeat(&r);
}

// A dataset whose batches all need different plans is refused: the plans are too many or need too
// much memory.
static void test_kernels_signatures__too_many(void **state) {
    static int64_t shapes[BATCHES][2];
    struct msc_backend_options b = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend;
    struct msc_evaluator *ev = NULL;
    struct repeat r;
    int n_lines = 0;
    const struct msc_log log = {MSC_LOG_INFO, count_lines, &n_lines};
    (void)state;
    for (int64_t i = 0; i < BATCHES; i++) {
        shapes[i][0] = 1 + i % 100;
        shapes[i][1] = 1 + i / 100;
    }
    open_repeat(&r, shapes, BATCHES);
    assert_ok(msc_backend_open(&backend, "cpu", &b));
    assert_int_equal(create(&ev, &r, backend, (uint64_t)1 << 40, &log), MSC_E_UNSUPPORTED);
    assert_message("4096 different plans for the first 4096 of 10000 batches are more than can be "
                   "kept: samples differ in the shapes of inputs, or in the values of shape");
    assert_int_equal(n_lines, 4096 / 64 - 1);
    assert_int_equal(create(&ev, &r, backend, 1 << 20, NULL), MSC_E_UNSUPPORTED);
    assert_message("64 different plans for the first 64 of 10000 batches are more than there is "
                   "memory for");
    assert_null(ev);
    msc_backend_close(backend);
    close_repeat(&r);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_signatures__table),
        cmocka_unit_test(test_kernels_signatures__few),
        cmocka_unit_test(test_kernels_signatures__too_many),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
