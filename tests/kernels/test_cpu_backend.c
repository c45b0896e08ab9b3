// The registry of backends, quantisation on the cpu backend, and calls from several threads at
// once. Expected values come from numpy and graph/quant.h.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/planner.h"
#include "tests/kernels/cpu_case.h"

#include <math.h>
#include <pthread.h>

static void test_kernels_cpu_backend__registry(void **state) {
    (void)state;
    const struct msc_backend_def *const *list = msc_backend_list();
    int n = 0;
    for (; list[n]; n++) {
        assert_ptr_equal(msc_backend_find(list[n]->name), list[n]);
    }
    assert_true(n >= 1);
    assert_ptr_equal(msc_backend_find("cpu"), &msc_backend_cpu);
    assert_null(msc_backend_find("cp"));
    assert_null(msc_backend_find("cpu2"));
}

static void test_kernels_cpu_backend__open(void **state) {
    (void)state;
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    assert_ok(msc_backend_open(&b, "cpu", &o));
    assert_ptr_equal(b->def, &msc_backend_cpu);
    assert_int_equal(strncmp(b->def->numerics(b), "cpu/", 4), 0);
    msc_backend_close(b);
    assert_ok(msc_backend_open(&b, "cpu:0", &o));
    assert_int_equal(b->options.device, 0);
    msc_backend_close(b);
    assert_int_equal(msc_backend_open(&b, "tpu", &o), MSC_E_NOT_FOUND);
    assert_message("tpu");
    assert_int_equal(msc_backend_open(&b, "cpu:x", &o), MSC_E_INVALID);
    assert_message("number");
    o.n_threads = 0;
    assert_int_equal(msc_backend_open(&b, "cpu", &o), MSC_E_INVALID);
    msc_backend_close(NULL);
}

// The numerics name, which identifies cached results, tells whether integer units may be used.
static void test_kernels_cpu_backend__numerics(void **state) {
    (void)state;
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *a, *b;
    assert_ok(msc_backend_open(&a, "cpu", &o));
    o.kernel_threads = 2;
    assert_ok(msc_backend_open(&b, "cpu", &o));
    assert_string_not_equal(a->def->numerics(a), b->def->numerics(b));
    msc_backend_close(a);
    msc_backend_close(b);
}

// The bytes of the packed weights of the graph's convolution.
static size_t weight_bytes(const struct cpu_case *c, int kernel_threads) {
    struct msc_backend_options o = c->options;
    struct msc_backend *b;
    struct msc_graph *g; // owned by the plan
    struct msc_plan *plan;
    int32_t wanted = msc_graph_output(c->g, 0);
    size_t n_bytes = 0;
    o.kernel_threads = kernel_threads;
    assert_ok(msc_backend_open(&b, "cpu", &o));
    assert_ok(msc_graph_clone(&g, c->g));
    assert_ok(msc_plan_create(&plan, g, b, &wanted, 1));
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *s = &plan->steps[i];
        void *weights = NULL;
        if (s->n_weight_slots > 0) {
            assert_ok(b->def->weights(b, s, &c->edits[s->weight_slots[0]], &weights, &n_bytes));
            b->def->release_weights(b, s, weights);
        }
    }
    msc_plan_destroy(plan);
    msc_backend_close(b);
    return n_bytes;
}

// Products of our own, such as Winograd's algorithm, run within one thread. Several threads of one
// kernel use routines, whose weights take no more memory than floats.
static void test_kernels_cpu_backend__threads_use_routines(void **state) {
    (void)state;
    struct cpu_case c;
    cpu_case_init(&c, 3);
    int32_t x = cpu_input(&c, "NCHW", 4, DIMS(1, 64, 16, 16));
    int32_t w = cpu_weight(&c, "OIHW", 4, DIMS(64, 64, 3, 3));
    cpu_case_finish_graph(&c, cpu_joint(&c, MSC_OP_CONV2D, 1, &x, "padding=1,1,1,1", w, MSC_NO_ID));
    cpu_case_edit(&c, (struct cpu_edit_kind){8, false, false},
                  (struct cpu_edit_kind){8, true, true});
    size_t of_floats = (size_t)64 * 64 * 9 * sizeof(float);
    assert_in_range(weight_bytes(&c, 1), of_floats, 2 * of_floats);
    assert_int_equal(weight_bytes(&c, 2), of_floats);
    cpu_case_finish(&c);
}

static void test_kernels_cpu_backend__stored_as(void **state) {
    static const struct {
        int bits, low, high;
        enum msc_dtype dtype;
        bool is_integer;
    } cases[] = {
        {8, 0, 255, MSC_DTYPE_U8, true},   {8, -128, 127, MSC_DTYPE_I8, true},
        {4, 0, 15, MSC_DTYPE_U8, true},    {4, -7, 7, MSC_DTYPE_I8, true},
        {9, 0, 511, MSC_DTYPE_F32, false}, {16, -32768, 32767, MSC_DTYPE_F32, false},
        {16, 0, 200, MSC_DTYPE_U8, false}, {8, -1, 254, MSC_DTYPE_F32, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct msc_quant q = {.bits = cases[i].bits, .low = cases[i].low, .high = cases[i].high};
        assert_int_equal(msc_quant_dtype(&q), cases[i].dtype);
        assert_int_equal(msc_quant_is_integer(&q), cases[i].is_integer);
    }
    struct msc_quant half = msc_quant_of_float(MSC_DTYPE_F16);
    assert_int_equal(msc_quant_dtype(&half), MSC_DTYPE_F32);
    assert_false(msc_quant_is_integer(&half));
}

// Expected: numpy.clip(numpy.rint(x / numpy.float32(0.25)) + 3, 0, 15). The values include ties
// and both ends; NaN becomes the lowest integer.
static void test_kernels_cpu_backend__quantize(void **state) {
    static const float x[] = {0.0f, 0.125f, 0.375f, -0.125f, -0.375f,   2.9f, 3.0f,
                              3.1f, -0.7f,  -0.9f,  1e30f,   -INFINITY, NAN,  0.6249f};
    static const uint8_t expected[] = {3, 3, 5, 3, 1, 15, 15, 15, 0, 0, 15, 0, 0, 5};
    enum { N = sizeof(x) / sizeof(x[0]) };
    (void)state;
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    const float scale = 0.25f;
    const int32_t zero_point = 3;
    struct msc_quant q = {
        .bits = 4, .high = 15, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero_point};
    uint8_t integers[N];
    float floats[N];
    struct msc_view in = {.data = (void *)x, .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {N}};
    struct msc_view out = in;
    assert_ok(msc_backend_open(&b, "cpu", &o));
    out.data = integers;
    out.dtype = MSC_DTYPE_U8;
    out.quant = &q;
    assert_ok(b->def->quantize(b, &in, &out, &q, 0));
    assert_memory_equal(integers, expected, sizeof(expected));
    out.data = floats;
    out.dtype = MSC_DTYPE_F32;
    out.quant = NULL;
    assert_ok(b->def->quantize(b, &in, &out, &q, 0));
    for (int i = 0; i < N; i++) {
        float value = (float)(expected[i] - 3) * 0.25f;
        assert_true(isnan(x[i]) ? isnan(floats[i]) : floats[i] == value);
    }
    msc_backend_close(b);
}

// Checks the formula of graph/quant.h for every kind of integer.
static void test_kernels_cpu_backend__quantize_runs(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        struct cpu_case c;
        struct msc_backend *b;
        cpu_case_init(&c, 8);
        struct msc_array *x = cpu_random(&c, 1, DIMS(1003));
        const float scale = 0.0123f;
        const int32_t zero_point = is_signed ? -5 : 99;
        struct msc_quant q = {.bits = 8,
                              .low = is_signed ? -128 : 0,
                              .high = is_signed ? 127 : 255,
                              .axis = -1,
                              .n = 1,
                              .scales = &scale,
                              .zero_points = &zero_point};
        uint8_t out[1003];
        struct msc_view in = msc_view_of_array(x), to = in;
        to.data = out;
        to.dtype = msc_quant_dtype(&q);
        to.quant = &q;
        assert_ok(msc_backend_open(&b, "cpu", &c.options));
        assert_ok(b->def->quantize(b, &in, &to, &q, 0));
        for (int i = 0; i < 1003; i++) {
            int32_t expected = msc_quantize_value(((float *)msc_array_data(x))[i], scale,
                                                  zero_point, q.low, q.high);
            assert_int_equal(is_signed ? (int8_t)out[i] : out[i], expected);
        }
        msc_backend_close(b);
        msc_array_release(x);
        cpu_case_finish(&c);
    }
}

enum { THREADS = 4, ROUNDS = 5 };

// Data that the threads of the next case share, and data of a single thread.
struct shared {
    struct msc_backend *b;
    const struct msc_plan *plan;
    const struct msc_step *conv, *reorder;
    struct msc_view integers;
    void *weights;
    const struct msc_array *expected;
};

struct worker {
    const struct shared *shared;
    int thread;
    int n_wrong;
    pthread_t id;
};

// Runs a convolution and a reorder to plain layout.
static void *work(void *payload) {
    struct worker *w = payload;
    const struct shared *s = w->shared;
    struct msc_view out = msc_plan_view(s->plan, s->conv->outputs[0], NULL);
    struct msc_view plain = msc_plan_view(s->plan, s->plan->live_out[0], NULL);
    out.data = s->b->def->allocate(s->b, msc_view_n_bytes(&out));
    plain.data = s->b->def->allocate(s->b, msc_view_n_bytes(&out));
    struct msc_call call = {.inputs = &s->integers, .outputs = &out, .weights = s->weights};
    w->n_wrong += s->b->def->run(s->b, s->conv, &call, 1, w->thread) != MSC_OK;
    call = (struct msc_call){.inputs = &out, .outputs = &plain, .weights = NULL};
    w->n_wrong += s->b->def->run(s->b, s->reorder, &call, 1, w->thread) != MSC_OK;
    w->n_wrong +=
        memcmp(plain.data, msc_array_data(s->expected), msc_array_n_bytes(s->expected)) != 0;
    s->b->def->release_memory(s->b, out.data, 0);
    s->b->def->release_memory(s->b, plain.data, 0);
    return NULL;
}

// Four threads run a step with the same edited weights. The first thread packs the weights.
static void run_threads(struct shared *s, const struct msc_edit *edit) {
    struct worker workers[THREADS];
    size_t n_bytes;
    assert_ok(s->b->def->weights(s->b, s->conv, &edit, &s->weights, &n_bytes));
    assert_true(n_bytes > 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = s, .thread = i};
        assert_int_equal(pthread_create(&workers[i].id, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].id, NULL), 0);
        assert_int_equal(workers[i].n_wrong, 0);
    }
    s->b->def->release_weights(s->b, s->conv, s->weights);
}

static void test_kernels_cpu_backend__threads(void **state) {
    (void)state;
    struct cpu_case c;
    struct shared s;
    struct msc_graph *g;
    struct msc_plan *plan;
    struct msc_array *expected;
    cpu_case_init(&c, 12);
    c.options.n_threads = THREADS;
    int32_t x = cpu_input(&c, "NCHW", 4, DIMS(1, 160, 9, 9));
    int32_t w = cpu_weight(&c, "OIHW", 4, DIMS(24, 160, 3, 3));
    cpu_case_finish_graph(&c, cpu_joint(&c, MSC_OP_CONV2D, 1, &x, "padding=1,1,1,1", w, MSC_NO_ID));
    cpu_case_edit(&c, (struct cpu_edit_kind){8, true, false},
                  (struct cpu_edit_kind){8, true, true});
    cpu_run(&expected, &c, 0);
    assert_ok(msc_graph_clone(&g, c.g));
    assert_ok(msc_backend_open(&s.b, "cpu", &c.options));
    int32_t wanted = msc_graph_output(c.g, 0);
    assert_ok(msc_plan_create(&plan, g, s.b, &wanted, 1));
    assert_int_equal(plan->n_steps, 3); // reorder, convolution, reorder
    s.plan = plan;
    s.conv = &plan->steps[1];
    s.reorder = &plan->steps[2];
    s.expected = expected;
    struct msc_view nchw =
        msc_plan_view(plan, plan->steps[0].inputs[0], msc_array_data(c.inputs[0]));
    struct msc_view last = msc_plan_view(plan, s.conv->inputs[0], NULL);
    last.data = s.b->def->allocate(s.b, msc_view_n_bytes(&last));
    assert_ok(s.b->def->run(s.b, &plan->steps[0],
                            &(struct msc_call){.inputs = &nchw, .outputs = &last, .weights = NULL},
                            1, 0));
    s.integers = last;
    s.integers.dtype = MSC_DTYPE_I8;
    s.integers.quant = msc_edit_quant(c.edits[s.conv->slots[0]]);
    s.integers.data = s.b->def->allocate(s.b, msc_view_n_bytes(&last));
    assert_ok(s.b->def->quantize(s.b, &last, &s.integers, s.integers.quant, 0));
    for (int round = 0; round < ROUNDS; round++) {
        run_threads(&s, c.edits[s.conv->weight_slots[0]]);
    }
    s.b->def->release_memory(s.b, last.data, 0);
    s.b->def->release_memory(s.b, s.integers.data, 0);
    msc_array_release(expected);
    msc_plan_destroy(plan);
    msc_backend_close(s.b);
    cpu_case_finish(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_backend__registry),
        cmocka_unit_test(test_kernels_cpu_backend__open),
        cmocka_unit_test(test_kernels_cpu_backend__numerics),
        cmocka_unit_test(test_kernels_cpu_backend__threads_use_routines),
        cmocka_unit_test(test_kernels_cpu_backend__stored_as),
        cmocka_unit_test(test_kernels_cpu_backend__quantize),
        cmocka_unit_test(test_kernels_cpu_backend__quantize_runs),
        cmocka_unit_test(test_kernels_cpu_backend__threads),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
