// Every kind of edit, single and in chains, through the evaluator. Each joint's results under all
// edits in one call are compared with numpy's (make_edits.py). Results of integer joints must be
// equal in every bit.
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"

#include "tests/graph/graph_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/edits_expected.h"
#include "tests/kernels/vulkan_matrices.h"

enum { N_CASES = sizeof(cases) / sizeof(cases[0]), MOST = 128, CHANNELS = 16 };

struct joint {
    enum msc_op op;
    const char *layout; // layout of the weight
    const char *attrs[2];
    int n_dims;
    int64_t x[4], w[4];
    int out_axis;
    int64_t channels;
    int n; // number of output elements
    const uint32_t *expected;
};

static const struct joint joints[] = {
    {MSC_OP_CONV2D_BIAS,
     "OIHW",
     {"1,1,1,1", "1"},
     4,
     {1, 6, 4, 4},
     {4, 6, 3, 3},
     0,
     4,
     64,
     conv_expected[0]},
    {MSC_OP_CONV2D_BIAS,
     "OIHW",
     {"1,1,1,1", "8"},
     4,
     {1, 8, 3, 3},
     {8, 1, 3, 3},
     0,
     8,
     72,
     depthwise_expected[0]},
    {MSC_OP_CONV2D_BIAS,
     "OIHW",
     {"0,0,0,0", "2"},
     4,
     {1, 8, 3, 3},
     {4, 4, 2, 2},
     0,
     4,
     16,
     grouped_expected[0]},
    {MSC_OP_CONV2D_TRANSPOSE,
     "IOHW",
     {"0,0,0,0", "1"},
     4,
     {1, 5, 3, 3},
     {5, 3, 2, 2},
     1,
     3,
     48,
     transposed_expected[0]},
    {MSC_OP_LINEAR_BIAS, "OI", {NULL, NULL}, 2, {3, 9}, {5, 9}, 0, 5, 15, linear_expected[0]},
};

static const float x_scale = 0.053f;
static const int32_t x_zero = 117;
static const float coarse_step = 0.03f, bias_shift = 0.37f;

static struct msc_array *numbers(int n_dims, const int64_t dims[], int factor, int modulus,
                                 float divisor) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        int64_t number = i * factor % modulus - modulus / 2;
        ((float *)msc_array_data(a))[i] = (float)number / divisor;
    }
    return a;
}

// ---- Edits ------------------------------------------------------------------------------------

// Parameters and elements that the edits of a joint point to.
struct pool {
    float w_scales[CHANNELS], steps[CHANNELS];
    int32_t w_zeros[CHANNELS];
    bool x_kept[CHANNELS], o_kept[CHANNELS];
    // The joint's own bias and another bias, each multiplied by 1, 1e4 and 1e9.
    struct msc_array *other_w, *biases[2][3];
    struct msc_edit edits[N_CASES][8];
    const struct msc_edit *slots[N_CASES][3]; // edits of x, w and b
};

static bool has(const char *text, char letter) {
    return strchr(text, letter) != NULL;
}

static void fill_pool(struct pool *p, const struct joint *j) {
    static const float factors[3] = {1, 1e4f, 1e9f};
    memset(p, 0, sizeof(*p));
    for (int c = 0; c < CHANNELS; c++) {
        p->w_scales[c] = 0.006f + 0.001f * (float)c;
        p->steps[c] = x_scale * p->w_scales[c];
        p->x_kept[c] = c % 3 != 2;
        p->o_kept[c] = c % 2 != 1;
    }
    p->other_w = numbers(j->n_dims, j->w, 41, 89, 32);
    for (int i = 0; i < 6; i++) {
        bool is_own = i < 3;
        struct msc_array *b =
            numbers(1, &j->channels, is_own ? 29 : 13, is_own ? 31 : 17, is_own ? 8 : 4);
        for (int64_t c = 0; c < j->channels; c++) {
            ((float *)msc_array_data(b))[c] *= factors[i % 3];
        }
        p->biases[i / 3][i % 3] = b;
    }
}

static void empty_pool(struct pool *p) {
    msc_array_release(p->other_w);
    for (int i = 0; i < 6; i++) {
        msc_array_release(p->biases[i / 3][i % 3]);
    }
}

static struct msc_quant quant_of(const struct pool *p, const struct joint *j, bool is_weight) {
    return (struct msc_quant){.bits = 8,
                              .low = is_weight ? -127 : 0,
                              .high = is_weight ? 127 : 255,
                              .axis = is_weight ? j->out_axis : -1,
                              .n = is_weight ? (int32_t)j->w[j->out_axis] : 1,
                              .scales = is_weight ? p->w_scales : &x_scale,
                              .zero_points = is_weight ? p->w_zeros : &x_zero};
}

// A chain built from its end: each new edit is put before the others.
struct chain {
    struct msc_edit *free;
    const struct msc_edit *first;
};

static void put(struct chain *c, struct msc_edit edit) {
    edit.next = c->first;
    msc_edit_seal(&edit);
    *c->free = edit;
    c->first = c->free++;
}

static void put_mask(struct chain *c, int axis, int64_t n, const bool is_kept[]) {
    put(c, (struct msc_edit){.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {axis, (int32_t)n, is_kept}});
}

static void put_rounding(struct chain *c, int32_t n, const float steps[], bool has_shift) {
    put(c, (struct msc_edit){.kind = MSC_EDIT_ROUND_BIAS,
                             .rounding = {n, steps, has_shift ? bias_shift : 0}});
}

static void put_elements(struct chain *c, const struct msc_array *a) {
    put(c, (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = a});
}

static void make_edits(struct pool *p, const struct joint *j, int index) {
    const char *text = cases[index];
    int size = has(text, 'L') ? 1 : has(text, 'H') ? 2 : 0;
    struct chain x = {.free = p->edits[index]};
    if (has(text, 'q')) {
        put(&x, msc_edit_quantize(quant_of(p, j, false)));
    }
    if (has(text, 'X')) {
        put_mask(&x, 1, j->x[1], p->x_kept);
    }
    struct chain w = {.free = x.free};
    if (has(text, 'q')) {
        put(&w, msc_edit_quantize(quant_of(p, j, true)));
    }
    if (has(text, 'W')) {
        put_mask(&w, j->out_axis, j->w[j->out_axis], p->o_kept);
    }
    if (has(text, 'w')) {
        put_elements(&w, p->other_w);
    }
    struct chain b = {.free = w.free};
    if (has(text, 'j')) {
        put_rounding(&b, (int32_t)j->channels, p->steps, has(text, 's'));
    }
    if (has(text, 'r')) {
        put_rounding(&b, 1, &coarse_step, has(text, 's'));
    }
    if (has(text, 'B')) {
        put_mask(&b, 0, j->channels, p->o_kept);
    }
    if (has(text, 'b') || size > 0) {
        put_elements(&b, p->biases[has(text, 'b')][size]);
    }
    p->slots[index][0] = x.first;
    p->slots[index][1] = w.first;
    p->slots[index][2] = b.first;
}

// ---- Running ----------------------------------------------------------------------------------

static struct msc_graph *make_graph(const struct joint *j) {
    struct msc_graph *g;
    int32_t w, b;
    struct msc_array *weight = numbers(j->n_dims, j->w, 53, 97, 64);
    struct msc_array *bias = numbers(1, &j->channels, 29, 31, 8);
    assert_ok(msc_graph_create(&g, "edits"));
    assert_ok(msc_graph_add_weight(&w, g, "w", NULL, j->layout, weight));
    assert_ok(msc_graph_add_weight(&b, g, "b", NULL, "O", bias));
    const struct msc_weight_spec weights[2] = {{"weight", w}, {"bias", b}};
    const struct msc_attr attrs[2] = {{"groups", j->attrs[1]}, {"padding", j->attrs[0]}};
    int32_t y = add_joint(
        g, &(struct msc_joint_spec){
               .op = j->op,
               .name = "joint",
               .n_inputs = 1,
               .inputs = IDS(add_input(g, "x", j->n_dims == 4 ? "NCHW" : "NC", j->n_dims, j->x)),
               .n_weights = 2,
               .weights = weights,
               .n_attrs = j->attrs[0] ? 2 : 0,
               .attrs = attrs,
           });
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    msc_array_release(weight);
    msc_array_release(bias);
    return g;
}

struct found {
    float values[N_CASES][MOST];
    int n;
};

static enum msc_status keep(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    struct found *f = payload;
    (void)batch;
    assert_int_equal(msc_view_n_elements(&values[0]), f->n);
    memcpy(f->values[trial], values[0].data, (size_t)f->n * sizeof(float));
    return MSC_OK;
}

static void check(const struct joint *j, int index, const float values[]) {
    float expected[MOST], most = 0;
    memcpy(expected, j->expected + (ptrdiff_t)index * j->n, (size_t)j->n * sizeof(float));
    for (int i = 0; i < j->n; i++) {
        most = fmaxf(most, fabsf(expected[i]));
    }
    for (int i = 0; i < j->n; i++) {
        float allowed = has(cases[index], 'q') ? 0.0f : most * 1e-6f;
        if (!(fabsf(values[i] - expected[i]) <= allowed)) {
            print_error("joint %d, edits \"%s\", element %d: %.9g, expected %.9g\n",
                        (int)(j - joints), cases[index], i, (double)values[i], (double)expected[i]);
            fail();
        }
    }
}

// Evaluates a replaced weight whose integers are given instead of computed by the evaluator. The
// results must be the same.
static void run_chosen(struct pool *p, const struct joint *j, struct msc_evaluator *ev,
                       const struct msc_sink *sink, const struct found *f) {
    struct msc_quant quant = quant_of(p, j, true);
    struct msc_array *rounded, *integers;
    assert_ok(msc_quantize_array(&rounded, p->other_w, &quant));
    assert_ok(msc_array_convert(&integers, rounded, MSC_DTYPE_I8));
    quant.integers = integers;
    msc_quant_seal(&quant);
    const struct msc_edit chosen = msc_edit_quantize(quant);
    for (int i = 0; i < N_CASES; i++) {
        if (has(cases[i], 'w') && has(cases[i], 'q') && !has(cases[i], 'W')) {
            const struct msc_edit *edits[3] = {p->slots[i][0], &chosen, p->slots[i][2]};
            struct msc_eval_trial trial = {.edits = edits};
            assert_ok(msc_evaluator_run(ev, &trial, 1, sink, 0));
            assert_int_equal(trial.status, MSC_OK);
            check(j, i, f->values[0]);
        }
    }
    msc_array_release(rounded);
    msc_array_release(integers);
}

static void run_joint(const struct joint *j, struct msc_backend *b) {
    static struct pool p;
    static struct found f;
    struct msc_graph *g = make_graph(j);
    struct msc_array *x = numbers(j->n_dims, j->x, 37, 101, 16);
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = j->n_dims};
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_eval_trial trials[N_CASES] = {{.edits = NULL}};
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    int32_t wanted = msc_graph_output(g, 0);
    memcpy(spec.dims, j->x, sizeof(j->x));
    fill_pool(&p, j);
    for (int i = 0; i < N_CASES; i++) {
        make_edits(&p, j, i);
        trials[i].edits = p.slots[i];
    }
    options.backend = b;
    assert_ok(msc_dataset_create(&data, &spec, &x, 1, NULL, 1));
    assert_ok(msc_evaluator_create(&ev, g, data, &wanted, 1, &options));
    assert_int_equal(msc_evaluator_sites(ev)->n_slots, 3);
    f.n = j->n;
    const struct msc_sink sink = {.batch = keep, .payload = &f};
    // Runs all trials together, then each trial by itself, with and without the cache.
    assert_ok(msc_evaluator_run(ev, trials, N_CASES, &sink, 0));
    for (int i = 0; i < N_CASES; i++) {
        assert_int_equal(trials[i].status, MSC_OK);
        check(j, i, f.values[i]);
    }
    for (int i = N_CASES - 1; i >= 0; i--) {
        assert_ok(msc_evaluator_run(ev, &trials[i], 1, &sink, i % 2 ? MSC_EVAL_FRESH : 0));
        check(j, i, f.values[0]);
    }
    run_chosen(&p, j, ev, &sink, &f);
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    msc_graph_destroy(g);
    msc_array_release(x);
    empty_pool(&p);
}

// Devices stay open, because drivers leak memory when they are unloaded.
static struct msc_backend *devices[2];

static void run_all(bool allow_int8) {
    const char *device = getenv("MSC_TEST_DEVICE");
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend **b = &devices[allow_int8];
    options.allow_int8 = allow_int8;
    assert_ok(msc_backend_open(b, device ? device : "cpu", &options));
    if (device) {
        skip_without_matrices(*b);
    }
    for (size_t i = 0; i < sizeof(joints) / sizeof(joints[0]); i++) {
        run_joint(&joints[i], *b);
    }
    if (!device) {
        msc_backend_close(*b);
    }
}

static void test_kernels_edits__integer_units(void **state) {
    (void)state;
    run_all(true);
}

static void test_kernels_edits__float_units(void **state) {
    (void)state;
    run_all(false);
}

// An edit that does not fit its slot is reported, and nothing runs.
static void test_kernels_edits__refused(void **state) {
    (void)state;
    static const bool kept[2] = {true, false};
    const struct joint *j = &joints[0];
    struct msc_graph *g = make_graph(j);
    struct msc_array *x = numbers(j->n_dims, j->x, 37, 101, 16);
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = j->n_dims};
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_backend_options backend = MSC_BACKEND_OPTIONS_INIT;
    struct msc_edit mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 2, kept}};
    const struct msc_edit *edits[3] = {&mask, NULL, NULL};
    struct msc_eval_trial trial = {.edits = edits};
    const struct msc_sink none = {.batch = NULL};
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    int32_t wanted = msc_graph_output(g, 0);
    memcpy(spec.dims, j->x, sizeof(j->x));
    assert_ok(msc_backend_open(&options.backend, "cpu", &backend));
    assert_ok(msc_dataset_create(&data, &spec, &x, 1, NULL, 1));
    assert_ok(msc_evaluator_create(&ev, g, data, &wanted, 1, &options));
    msc_edit_seal(&mask);
    assert_int_equal(msc_evaluator_run(ev, &trial, 1, &none, 0), MSC_E_INVALID);
    assert_message("tensor x:0: a mask of 2 channels along axis 1 does not fit shape [1,6,4,4]");
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    msc_backend_close(options.backend);
    msc_graph_destroy(g);
    msc_array_release(x);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_edits__integer_units),
        cmocka_unit_test(test_kernels_edits__float_units),
        cmocka_unit_test(test_kernels_edits__refused),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
