// Networks whose lengths, parameters or outputs depend on the content of inputs are run by the
// evaluator. Expected results are computed here by the formulas of the operators.
#include "base/alloc.h"
#include "base/machine.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "tests/msc_test.h"

#include <math.h>

enum { ROWS = 6, WIDTH = 4, OUT = 3, BATCHES = 3 };

static float number(int i) {
    return (float)((37 * i + 11) % 64) * 0.03f - 0.9f;
}

static struct msc_array *numbers(int n_dims, const int64_t dims[]) {
    struct msc_array *array;
    assert_ok(msc_array_create(&array, MSC_DTYPE_F32, n_dims, dims));
    for (int i = 0; i < msc_array_n_elements(array); i++) {
        ((float *)msc_array_data(array))[i] = number(i);
    }
    return array;
}

static int32_t add_joint(struct msc_graph *g, enum msc_op op, const char *name, int32_t n,
                         const int32_t inputs[], const char *key, const char *value) {
    int32_t joint;
    struct msc_attr attr = {key, value};
    struct msc_joint_spec spec = {.op = op,
                                  .name = name,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .n_attrs = key ? 1 : 0,
                                  .attrs = &attr};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// Adds the product of x and a weight [WIDTH, columns].
static int32_t add_linear(struct msc_graph *g, const char *name, int32_t x, const char *weight,
                          int64_t columns) {
    struct msc_array *w = numbers(2, (const int64_t[]){WIDTH, columns});
    struct msc_weight_spec role = {.role = "weight"};
    int32_t joint;
    assert_ok(msc_graph_add_weight(&role.tensor, g, weight, weight, "IO", w));
    struct msc_joint_spec spec = {.op = MSC_OP_LINEAR,
                                  .name = name,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &role};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    msc_array_release(w);
    return msc_graph_joint(g, joint)->outputs[0];
}

static int32_t add_input(struct msc_graph *g, const char *name, enum msc_dtype dtype, int n_dims,
                         const int64_t dims[]) {
    int32_t tensor;
    assert_ok(msc_graph_add_input(&tensor, g, name, name, dtype, "", n_dims, dims));
    return tensor;
}

static struct msc_evaluator *open_evaluator(const struct msc_graph *g,
                                            const struct msc_dataset *data, const int32_t wanted[],
                                            size_t n_wanted, struct msc_backend **backend) {
    struct msc_backend_options b = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    b.n_threads = 2;
    assert_ok(msc_backend_open(backend, "cpu", &b));
    o.backend = *backend;
    o.n_threads = 2;
    assert_ok(msc_evaluator_create(&ev, g, data, wanted, n_wanted, &o));
    return ev;
}

// ---- Rows selected by a condition -------------------------------------------------------------

// h = relu(x w1); kept = the rows of h that `keep` selects; y = kept w2.
struct rows {
    struct msc_graph *g;
    int32_t wanted[3]; // the tensors `h`, `kept` and `y`
    struct msc_dataset *data;
    bool keep[BATCHES][ROWS];
};

static void open_rows(struct rows *r) {
    static const bool keep[BATCHES][ROWS] = {
        {true, false, false, true, true, false}, {false}, {true, true, true, true, true, true}};
    memcpy(r->keep, keep, sizeof(keep));
    assert_ok(msc_graph_create(&r->g, "rows"));
    int32_t x = add_input(r->g, "x", MSC_DTYPE_F32, 2, (const int64_t[]){ROWS, WIDTH});
    int32_t c = add_input(r->g, "keep", MSC_DTYPE_BOOL, 1, (const int64_t[]){ROWS});
    int32_t p = add_linear(r->g, "first", x, "w1", WIDTH);
    int32_t h = add_joint(r->g, MSC_OP_RELU, "relu", 1, &p, NULL, NULL);
    int32_t kept =
        add_joint(r->g, MSC_OP_COMPRESS, "compress", 2, (const int32_t[]){h, c}, "axis", "0");
    int32_t y = add_linear(r->g, "second", kept, "w2", OUT);
    assert_ok(msc_graph_set_outputs(r->g, 1, &y));
    assert_ok(msc_graph_finalize(r->g));
    static const char *const names[3] = {"relu:0", "compress:0", "second:0"};
    for (int i = 0; i < 3; i++) {
        r->wanted[i] = msc_graph_find_tensor(r->g, names[i]);
    }
    struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {ROWS, WIDTH}},
        {.name = "keep", .dtype = MSC_DTYPE_BOOL, .n_dims = 1, .dims = {ROWS}}};
    struct msc_array *arrays[2] = {numbers(3, (const int64_t[]){BATCHES, ROWS, WIDTH}), NULL};
    assert_ok(msc_array_create_from(&arrays[1], MSC_DTYPE_BOOL, 2, (const int64_t[]){BATCHES, ROWS},
                                    r->keep));
    assert_ok(msc_dataset_create(&r->data, specs, arrays, 2, NULL, 1));
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
}

static void close_rows(struct rows *r) {
    msc_dataset_destroy(r->data);
    msc_graph_destroy(r->g);
}

enum { TRIALS = 3 };

// The edits of each trial for the four operands `x`, `w1`, `kept` and `w2`.
struct expected {
    const struct rows *r;
    const struct msc_edit *const *edits[TRIALS];
    int32_t slots[4];
    // number of calls of the sink; number of rows of `kept` that the sink's slot function received
    int n_batches, n_kept;
};

static float quantised(const struct msc_quant *q, float x) {
    float rounded = rintf(x / q->scales[0]) + (float)q->zero_points[0];
    rounded = fminf(fmaxf(rounded, (float)q->low), (float)q->high);
    return (rounded - (float)q->zero_points[0]) * q->scales[0];
}

// The value of an operand's i-th element, given as x, after the operand's edit. k is the element's
// channel in the sum.
static float edited(const struct expected *e, size_t trial, int operand, float x, int i, int k) {
    const struct msc_edit *edit = e->edits[trial][e->slots[operand]];
    for (; edit; edit = edit->next) {
        if (edit->kind == MSC_EDIT_REPLACE) {
            x = ((const float *)msc_array_data(edit->elements))[i];
        } else if (edit->kind == MSC_EDIT_KEEP_CHANNELS) {
            x = edit->mask.is_kept[k] ? x : 0;
        } else {
            x = quantised(&edit->quant, x);
        }
    }
    return x;
}

// y [n][columns] = x [n][WIDTH] w, both under the trial's edits.
static void multiply(const struct expected *e, size_t trial, int operand, const float x[], int n,
                     int columns, float y[]) {
    for (int i = 0; i < n * columns; i++) {
        float sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            int at = i / columns * WIDTH + k, weight_at = k * columns + i % columns;
            sum += edited(e, trial, operand, x[at], at, k) *
                   edited(e, trial, operand + 1, number(weight_at), weight_at, k);
        }
        y[i] = sum;
    }
}

static void check_close(const struct msc_view *v, const float expected[], int n) {
    assert_int_equal(msc_view_n_elements(v), n);
    for (int i = 0; i < n; i++) {
        assert_true(fabsf(((const float *)v->data)[i] - expected[i]) <= 1e-5f);
    }
}

static enum msc_status check_rows(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    struct expected *e = payload;
    float x[ROWS * WIDTH], h[ROWS * WIDTH], kept[ROWS * WIDTH], y[ROWS * OUT];
    int n = 0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = number((int)batch * ROWS * WIDTH + i);
    }
    multiply(e, trial, 0, x, ROWS, WIDTH, h);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        h[i] = h[i] > 0 ? h[i] : 0;
    }
    check_close(&values[0], h, ROWS * WIDTH);
    for (int i = 0; i < ROWS; i++) {
        if (e->r->keep[batch][i]) {
            memcpy(kept + n++ * WIDTH, (const float *)values[0].data + i * WIDTH,
                   WIDTH * sizeof(kept[0]));
        }
    }
    assert_int_equal(values[1].n_dims, 2);
    assert_int_equal(values[1].dims[0], n);
    check_close(&values[1], kept, n * WIDTH);
    multiply(e, trial, 2, kept, n, OUT, y);
    check_close(&values[2], y, n * OUT);
#pragma omp atomic
    e->n_batches++;
    return MSC_OK;
}

static enum msc_status count_rows(void *payload, size_t trial, size_t batch, int32_t part,
                                  int32_t slot, const struct msc_view *value) {
    assert_int_equal(part, 0);
    struct expected *e = payload;
    (void)trial;
    if (slot == e->slots[2]) {
        assert_int_equal(value->dims[0], batch == 0 ? 3 : ROWS);
#pragma omp atomic
        e->n_kept += (int)value->dims[0];
    }
    return MSC_OK;
}

static bool wants_x(void *payload, int32_t slot) {
    return slot == ((const struct expected *)payload)->slots[0];
}

// A sink that wants none of the remainder's slots gets none of their values.
static void test_kernels_remainder__wanted_slots(void **state) {
    (void)state;
    struct rows r;
    struct msc_backend *backend;
    open_rows(&r);
    struct msc_evaluator *ev = open_evaluator(r.g, r.data, r.wanted, 3, &backend);
    const struct msc_edit *none[4] = {NULL};
    struct expected e = {.r = &r, .edits = {none}, .slots = {0, 1, 2, 3}};
    struct msc_eval_trial trial = {.edits = none};
    const struct msc_sink sink = {.slot = count_rows, .wants_slot = wants_x, .payload = &e};
    assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
    assert_int_equal(e.n_kept, 0);
    msc_evaluator_destroy(ev);
    msc_backend_close(backend);
    close_rows(&r);
}

static void test_kernels_remainder__edits(void **state) {
    (void)state;
    struct rows r;
    struct msc_backend *backend;
    open_rows(&r);
    struct msc_evaluator *ev = open_evaluator(r.g, r.data, r.wanted, 3, &backend);
    const struct msc_sites *sites = msc_evaluator_sites(ev);
    assert_int_equal(sites->n_slots, 4);
    static const float scale = 0.02f;
    static const int32_t zero = 3;
    struct msc_edit edit = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                                .low = -100,
                                                                .high = 100,
                                                                .axis = -1,
                                                                .n = 1,
                                                                .scales = &scale,
                                                                .zero_points = &zero});
    // Further edits: masks before the quantisation, and a replacement of w2.
    static const bool kept[2][WIDTH] = {{true, false, true, true}, {true, true, true, false}};
    struct msc_array *other = numbers(2, (const int64_t[]){WIDTH, OUT});
    for (int i = 0; i < WIDTH * OUT; i++) {
        ((float *)msc_array_data(other))[i] = number(i + 5);
    }
    struct msc_edit x_mask = {
        .kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, WIDTH, kept[0]}, .next = &edit};
    struct msc_edit w_mask = {
        .kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, WIDTH, kept[1]}, .next = &edit};
    msc_edit_seal(&x_mask);
    msc_edit_seal(&w_mask);
    struct msc_edit replace = {.kind = MSC_EDIT_REPLACE, .elements = other, .next = &w_mask};
    msc_edit_seal(&replace);
    const struct msc_edit *none[4] = {NULL}, *all[4] = {&edit, &edit, &edit, &edit};
    const struct msc_edit *chains[4] = {&x_mask, &w_mask, &x_mask, &replace};
    struct expected e = {.r = &r, .edits = {none, all, chains}, .slots = {0, 1, 2, 3}};
    struct msc_eval_trial trials[TRIALS] = {{.edits = none}, {.edits = all}, {.edits = chains}};
    const struct msc_sink sink = {.batch = check_rows, .slot = count_rows, .payload = &e};
    // All batches share a plan, because `keep` is not one of its parameters.
    assert_ptr_equal(msc_evaluator_plan(ev, 0), msc_evaluator_plan(ev, 2));
    assert_ok(msc_evaluator_run(ev, trials, TRIALS, &sink, 0));
    for (int t = 0; t < TRIALS; t++) {
        assert_int_equal(trials[t].status, MSC_OK);
    }
    assert_int_equal(e.n_batches, TRIALS * BATCHES);
    assert_int_equal(e.n_kept, TRIALS * (3 + ROWS));
    // w2 is edited for the first batch that needs the edit, and reused by all later batches and
    // trials.
    assert_ok(msc_evaluator_run(ev, trials, TRIALS, &sink, 0));
    struct msc_evaluator_stats stats;
    msc_evaluator_get_stats(ev, &stats);
    assert_int_equal(stats.remainder_weights_made, 2);
    msc_evaluator_destroy(ev);
    msc_array_release(other);
    msc_backend_close(backend);
    close_rows(&r);
}

// ---- Memory -----------------------------------------------------------------------------------

// The memory that a search reports includes the dynamic-shape tail's results: here y [ROWS, 2^18]
// for each of two threads.
static void test_kernels_remainder__memory(void **state) {
    enum { WIDE = 1 << 18 };
    (void)state;
    static const bool keep[ROWS] = {true, true, true, true, true, true};
    struct rows r;
    struct msc_backend *backend;
    memset(&r, 0, sizeof(r));
    assert_ok(msc_graph_create(&r.g, "wide"));
    int32_t x = add_input(r.g, "x", MSC_DTYPE_F32, 2, (const int64_t[]){ROWS, WIDTH});
    int32_t c = add_input(r.g, "keep", MSC_DTYPE_BOOL, 1, (const int64_t[]){ROWS});
    int32_t kept =
        add_joint(r.g, MSC_OP_COMPRESS, "compress", 2, (const int32_t[]){x, c}, "axis", "0");
    int32_t y = add_linear(r.g, "wide", kept, "w", WIDE);
    assert_ok(msc_graph_set_outputs(r.g, 1, &y));
    assert_ok(msc_graph_finalize(r.g));
    const struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {ROWS, WIDTH}},
        {.name = "keep", .dtype = MSC_DTYPE_BOOL, .n_dims = 1, .dims = {ROWS}}};
    struct msc_array *arrays[2] = {numbers(3, (const int64_t[]){1, ROWS, WIDTH}), NULL};
    assert_ok(
        msc_array_create_from(&arrays[1], MSC_DTYPE_BOOL, 2, (const int64_t[]){1, ROWS}, keep));
    assert_ok(msc_dataset_create(&r.data, specs, arrays, 2, NULL, 1));
    int32_t wanted = msc_graph_output(r.g, 0);
    struct msc_evaluator *ev = open_evaluator(r.g, r.data, &wanted, 1, &backend);
    const struct msc_edit *none[2] = {NULL};
    uint64_t least;
    assert_ok(msc_evaluator_measure_memory(ev, none, &least));
    // The system's count of resident pages lags by up to a megabyte.
    uint64_t made = (uint64_t)2 * ROWS * WIDE * sizeof(float);
    assert_true(least + (1 << 20) >= msc_machine_resident_bytes() + made);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    msc_evaluator_destroy(ev);
    msc_backend_close(backend);
    close_rows(&r);
}

// ---- Parameters from inputs -------------------------------------------------------------------

static enum msc_status check_reshaped(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    static const int64_t dims[3][3] = {{2, 4, 3}, {2, 4, 3}, {4, 6, 1}};
    (void)payload;
    (void)trial;
    assert_int_equal(values[0].n_dims, 3);
    assert_memory_equal(values[0].dims, dims[batch], sizeof(dims[batch]));
    for (int i = 0; i < 24; i++) {
        float x = number((int)batch * 24 + i);
        assert_true(((const float *)values[0].data)[i] == (x > 0 ? x : 0));
    }
    return MSC_OK;
}

// Batches with the same parameters share a plan.
static void test_kernels_remainder__signature(void **state) {
    static const int64_t shapes[3][3] = {{2, -1, 3}, {2, -1, 3}, {4, 6, 1}};
    (void)state;
    struct msc_graph *g;
    struct msc_dataset *data;
    struct msc_backend *backend;
    assert_ok(msc_graph_create(&g, "reshape"));
    int32_t x = add_input(g, "x", MSC_DTYPE_F32, 2, (const int64_t[]){4, 6});
    int32_t s = add_input(g, "shape", MSC_DTYPE_I64, 1, (const int64_t[]){3});
    int32_t relu = add_joint(g, MSC_OP_RELU, "relu", 1, &x, NULL, NULL);
    int32_t y = add_joint(g, MSC_OP_RESHAPE, "reshape", 2, (const int32_t[]){relu, s}, NULL, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {4, 6}},
        {.name = "shape", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {3}}};
    struct msc_array *arrays[2] = {numbers(3, (const int64_t[]){3, 4, 6}), NULL};
    assert_ok(msc_array_create_from(&arrays[1], MSC_DTYPE_I64, 2, (const int64_t[]){3, 3}, shapes));
    assert_ok(msc_dataset_create(&data, specs, arrays, 2, NULL, 1));
    int32_t wanted = msc_graph_output(g, 0);
    struct msc_evaluator *ev = open_evaluator(g, data, &wanted, 1, &backend);
    assert_ptr_equal(msc_evaluator_plan(ev, 0), msc_evaluator_plan(ev, 1));
    assert_ptr_not_equal(msc_evaluator_plan(ev, 0), msc_evaluator_plan(ev, 2));
    assert_false(msc_evaluator_plan(ev, 0)->wants_remainder);
    struct msc_eval_trial trial = {.edits = NULL};
    const struct msc_sink sink = {.batch = check_reshaped};
    assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
    assert_int_equal(trial.status, MSC_OK);
    msc_evaluator_destroy(ev);
    msc_backend_close(backend);
    msc_dataset_destroy(data);
    msc_graph_destroy(g);
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
}

// ---- Constants, empty inputs, NaN -------------------------------------------------------------

struct seen {
    int n;
    bool is_empty;
};

static enum msc_status check_constant(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    struct seen *seen = payload;
    (void)trial;
    (void)batch;
    assert_int_equal(values[0].dtype, MSC_DTYPE_I64);
    assert_int_equal(((const int64_t *)values[0].data)[0], seen->is_empty ? 0 : 2);
    assert_int_equal(msc_view_n_elements(&values[1]), seen->is_empty ? 0 : 2);
    if (!seen->is_empty) {
        assert_true(isnan(((const float *)values[1].data)[0]));
        assert_true(((const float *)values[1].data)[1] == 1);
    }
    seen->n++;
    return MSC_OK;
}

// The outputs are |x| and the shape of x. x is NaN and -1, or empty.
static void test_kernels_remainder__whole(void **state) {
    static const float values[2] = {NAN, -1};
    (void)state;
    struct msc_graph *g;
    int32_t x, n, outputs[2];
    assert_ok(msc_graph_create(&g, "shape"));
    assert_ok(msc_graph_add_symbol(&n, g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", "x", MSC_DTYPE_F32, "", 1,
                                           (const int64_t[]){-1}, &n));
    outputs[0] = add_joint(g, MSC_OP_SHAPE_OF, "shape", 1, &x, NULL, NULL);
    outputs[1] = add_joint(g, MSC_OP_ABS, "abs", 1, &x, NULL, NULL);
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    const struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {-1}};
    for (int64_t length = 0; length <= 2; length += 2) {
        struct seen seen = {.is_empty = length == 0};
        struct msc_array *array;
        struct msc_dataset *data;
        struct msc_backend *backend;
        assert_ok(msc_array_create_from(&array, MSC_DTYPE_F32, 1, &length, values));
        const struct msc_array *arrays[1] = {array};
        assert_ok(msc_dataset_create_whole(&data, &spec, arrays, 1));
        const int32_t wanted[2] = {msc_graph_output(g, 0), msc_graph_output(g, 1)};
        struct msc_evaluator *ev = open_evaluator(g, data, wanted, 2, &backend);
        struct msc_eval_trial trial = {.edits = NULL};
        const struct msc_sink sink = {.batch = check_constant, .payload = &seen};
        assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
        assert_int_equal(trial.status, MSC_OK);
        assert_int_equal(seen.n, 1);
        msc_evaluator_destroy(ev);
        msc_backend_close(backend);
        msc_dataset_destroy(data);
        msc_array_release(array);
    }
    msc_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_remainder__wanted_slots),
        cmocka_unit_test(test_kernels_remainder__edits),
        cmocka_unit_test(test_kernels_remainder__memory),
        cmocka_unit_test(test_kernels_remainder__signature),
        cmocka_unit_test(test_kernels_remainder__whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
