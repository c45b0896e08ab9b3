// Second moments of layer inputs, checked against the layer's outputs. They are also measured under
// a plan, from sampled rows, and with little memory. Expected moments are calculated from the
// evaluator's outputs.
#include "tools/second_moment.h"

#include "base/alloc.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"
#include "quantize_case.h"

#include <math.h>
#include <string.h>

// Expected values come from the evaluator's outputs. A joint without bias gives y = w x. So the
// mean of y is w times the column means, and the mean of y^2 is w' H w.

enum { SAMPLES = 5, BATCH = 2 };

struct layer {
    enum msc_op op;
    const char *data_layout, *layout; // layouts of the input and of the weight
    int n_dims;
    int64_t x[4]; // dims of one sample
    int n_weight_dims;
    int64_t w[5];
    const char *strides, *dilation, *padding, *groups;
};

static const struct layer layers[] = {
    {MSC_OP_CONV2D, "NCHW", "OIHW", 4, {4, 7, 9}, 4, {6, 2, 3, 2}, "2,1", "1,3", "1,2,0,1", "2"},
    {MSC_OP_CONV2D, "NCHW", "OIHW", 4, {6, 5, 5}, 4, {6, 1, 3, 3}, "1,1", "1,1", "1,1,1,1", "6"},
    {MSC_OP_CONV2D, "NCHW", "OIHW", 4, {5, 4, 3}, 4, {7, 5, 1, 1}, "1,1", "1,1", "0,0,0,0", "1"},
    {MSC_OP_CONV1D, "NCW", "OIW", 3, {4, 11}, 3, {3, 4, 5}, "2,", "1,", "2,2", "1"},
    {MSC_OP_CONV3D,
     "NCDHW",
     "OIDHW",
     5,
     {2, 4, 3, 5},
     5,
     {3, 2, 2, 3, 2},
     "1,1,2",
     "1,1,1",
     "0,1,1,1,1,0",
     "1"},
    {MSC_OP_LINEAR, NULL, "OI", 2, {9}, 2, {4, 9}, NULL, NULL, NULL, NULL},
    {MSC_OP_LINEAR, NULL, "IO", 3, {6, 9}, 2, {9, 4}, NULL, NULL, NULL, NULL},
};

struct layer_case {
    struct msc_graph *g;
    struct msc_dataset *data;
    struct msc_backend *backend;
    struct msc_evaluator *ev;
    struct msc_array *w;
};

static void build_layer(struct layer_case *c, const struct layer *l) {
    int64_t dims[MSC_MAX_DIMS] = {-1};
    int32_t prims[MSC_MAX_DIMS];
    int32_t x, weight, joint;
    for (int i = 0; i < l->n_dims; i++) {
        prims[i] = MSC_NO_ID;
        dims[i] = i > 0 ? l->x[i - 1] : -1;
    }
    assert_ok(msc_graph_create(&c->g, "main"));
    assert_ok(msc_graph_add_symbol(&prims[0], c->g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, c->g, "x", "x", MSC_DTYPE_F32, l->data_layout,
                                           l->n_dims, dims, prims));
    c->w = quantize_array(l->n_weight_dims, l->w, 3);
    assert_ok(msc_graph_add_weight(&weight, c->g, "w", NULL, l->layout, c->w));
    struct msc_weight_spec w = {"weight", weight};
    struct msc_attr attrs[] = {{"strides", l->strides},
                               {"dilation", l->dilation},
                               {"padding", l->padding},
                               {"groups", l->groups}};
    struct msc_joint_spec spec = {.op = l->op,
                                  .name = "layer",
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &w,
                                  .n_attrs = l->strides ? 4 : 0,
                                  .attrs = attrs};
    assert_ok(msc_graph_add_joint(&joint, c->g, &spec));
    assert_ok(msc_graph_set_outputs(c->g, 1, msc_graph_joint(c->g, joint)->outputs));
    assert_ok(msc_graph_finalize(c->g));
}

static void open_layer(struct layer_case *c, const struct layer *l, int n_threads, int64_t batch) {
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = l->n_dims, .is_batched = true};
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    int64_t dims[MSC_MAX_DIMS] = {SAMPLES};
    spec.dims[0] = -1;
    for (int i = 1; i < l->n_dims; i++) {
        spec.dims[i] = dims[i] = l->x[i - 1];
    }
    build_layer(c, l);
    struct msc_array *x = quantize_array(l->n_dims, dims, 7);
    assert_ok(msc_dataset_create(&c->data, &spec, &x, 1, NULL, batch));
    msc_array_release(x);
    options.n_threads = n_threads;
    assert_ok(msc_backend_open(&c->backend, "cpu", &options));
    o.backend = c->backend;
    o.n_threads = n_threads;
    int32_t wanted = msc_graph_output(c->g, 0);
    assert_ok(msc_evaluator_create(&c->ev, c->g, c->data, &wanted, 1, &o));
}

static void close_layer(struct layer_case *c) {
    msc_evaluator_destroy(c->ev);
    msc_backend_close(c->backend);
    msc_dataset_destroy(c->data);
    msc_graph_destroy(c->g);
    msc_array_release(c->w);
}

// ---- Moments from outputs ---------------------------------------------------------------------

struct output {
    int channel_axis;
    int64_t n_channels;
    double sums[8], squares[8];
    int64_t n;
};

static enum msc_status add_output(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    struct output *o = payload;
    const struct msc_view *y = &values[0];
    const float *data = y->data;
    (void)trial;
    (void)batch;
    int64_t inner =
        msc_dims_product(y->n_dims - o->channel_axis - 1, y->dims + o->channel_axis + 1);
    o->n_channels = y->dims[o->channel_axis];
    for (int64_t i = 0; i < msc_view_n_elements(y); i++) {
        int64_t channel = i / inner % o->n_channels;
        o->sums[channel] += data[i];
        o->squares[channel] += (double)data[i] * data[i];
    }
    o->n += msc_view_n_elements(y) / o->n_channels;
    return MSC_OK;
}

static void assert_near(double found, double expected, double scale) {
    if (!(fabs(found - expected) <= 1e-5 * scale)) {
        print_error("%.9g, expected %.9g\n", found, expected);
        fail();
    }
}

// Element k of an output channel's row of weights.
static double weight_of(const struct layer *l, const struct msc_array *w, int64_t channel,
                        int64_t k, int64_t n) {
    bool is_input_first = strcmp(l->layout, "IO") == 0;
    return msc_array_get_double(w, is_input_first ? k * l->w[1] + channel : channel * n + k);
}

static void check_layer(const struct layer *l) {
    struct layer_case c;
    struct msc_moment m = {0};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    struct output y = {.channel_axis = l->strides ? 1 : l->n_dims - 1};
    struct msc_sink sink = {.batch = add_output, .payload = &y};
    struct msc_eval_trial trial = {.edits = NULL};
    int32_t slot = 1;
    size_t n_done;
    open_layer(&c, l, 1, 2);
    assert_ok(msc_evaluator_run(c.ev, &trial, 1, &sink, 0));
    assert_ok(msc_moments_measure(&m, &n_done, &slot, 1, c.ev, &o));
    assert_int_equal(n_done, 1);
    assert_int_equal(m.n_rows, y.n);
    int64_t rows_of_group = y.n_channels / m.n_groups, n = m.n_columns;
    for (int64_t channel = 0; channel < y.n_channels; channel++) {
        const float *h = m.h + channel / rows_of_group * n * n;
        const double *means = m.means + channel / rows_of_group * n;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            double a = weight_of(l, c.w, channel, i, n);
            mean += a * means[i];
            for (int64_t k = 0; k < n; k++) {
                square += a * h[i * n + k] * weight_of(l, c.w, channel, k, n);
            }
        }
        double expected = y.squares[channel] / (double)y.n;
        assert_near(square, expected, expected);
        assert_near(mean, y.sums[channel] / (double)y.n, sqrt(expected));
    }
    msc_moment_finish(&m);
    close_layer(&c);
}

static void test_tools_second_moment__of_outputs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        print_message("layer %zu\n", i);
        check_layer(&layers[i]);
    }
}

// ---- Under a plan -----------------------------------------------------------------------------

// Outputs of the plan and of the float model, over the same samples.
struct both_outputs {
    struct output o[2]; // only the squares are used
    double products[8]; // by channel, the sum of the product of both outputs
    float *y[2];
    int64_t n; // elements of each output
};

static enum msc_status keep_output(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    struct both_outputs *b = payload;
    int64_t n = msc_view_n_elements(&values[0]), of_sample = n / values[0].dims[0];
    memcpy(b->y[trial] + (int64_t)batch * BATCH * of_sample, values[0].data,
           (size_t)n * sizeof(float));
    b->n += trial == 0 ? n : 0;
    return add_output(&b->o[trial], 0, batch, values);
}

// Inputs are quantised with step 0.25 from -1.75 upwards, so some values are rounded and some
// clipped. Zero stays zero.
static void check_under_plan(const struct layer *l) {
    static const float scale = 0.25f;
    static const int32_t zero = 7;
    struct layer_case c;
    struct msc_moment m = {0};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    const struct msc_edit *edits[4] = {NULL};
    struct both_outputs b = {.o = {{.channel_axis = 1}, {.channel_axis = 1}}};
    struct msc_eval_trial trials[2] = {{.edits = edits}};
    struct msc_sink sink = {.batch = keep_output, .payload = &b};
    int32_t slot = 1;
    size_t n_done;
    struct msc_edit edit = msc_edit_quantize((struct msc_quant){
        .bits = 4, .high = 15, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero});
    edits[0] = &edit;
    open_layer(&c, l, 1, BATCH);
    b.y[0] = msc_alloc_zero(1 << 16, sizeof(float));
    b.y[1] = msc_alloc_zero(1 << 16, sizeof(float));
    assert_ok(msc_evaluator_run(c.ev, trials, 2, &sink, 0));
    o.edits = edits;
    assert_ok(msc_moments_measure(&m, &n_done, &slot, 1, c.ev, &o));
    int64_t inner = b.n / SAMPLES / b.o[0].n_channels, n = m.n_columns;
    for (int64_t i = 0; i < b.n; i++) {
        b.products[i / inner % b.o[0].n_channels] += (double)b.y[0][i] * b.y[1][i];
    }
    int64_t rows_of_group = b.o[0].n_channels / m.n_groups;
    for (int64_t channel = 0; channel < b.o[0].n_channels; channel++) {
        const float *h = m.h + channel / rows_of_group * n * n;
        const float *cross = m.cross + channel / rows_of_group * n * n;
        double square = 0, product = 0;
        for (int64_t i = 0; i < n * n; i++) {
            double w = weight_of(l, c.w, channel, i / n, n) * weight_of(l, c.w, channel, i % n, n);
            square += w * h[i];
            product += w * cross[i];
        }
        double expected = b.o[0].squares[channel] / (double)b.o[0].n;
        assert_near(square, expected, expected);
        assert_near(product, b.products[channel] / (double)b.o[0].n, expected);
        assert_true(fabs(product - square) > 1e-3 * expected);
    }
    msc_free(b.y[0]);
    msc_free(b.y[1]);
    msc_moment_finish(&m);
    close_layer(&c);
}

static void test_tools_second_moment__under_a_plan(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        print_message("layer %zu\n", i);
        check_under_plan(&layers[i]);
    }
}

// ---- Sampled rows -----------------------------------------------------------------------------

static void measure_layer(struct msc_moment *m, const struct layer *l, int n_threads, int64_t batch,
                          int64_t n_rows, uint64_t seed) {
    struct layer_case c;
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    int32_t slot = 1;
    size_t n_done;
    *m = (struct msc_moment){0};
    o.n_rows = n_rows;
    o.seed = seed;
    o.n_threads = n_threads;
    open_layer(&c, l, n_threads, batch);
    assert_ok(msc_moments_measure(m, &n_done, &slot, 1, c.ev, &o));
    close_layer(&c);
}

static bool are_equal(const struct msc_moment *a, const struct msc_moment *b) {
    size_t n = (size_t)(a->n_groups * a->n_columns * a->n_columns);
    return a->n_rows == b->n_rows && memcmp(a->h, b->h, n * sizeof(a->h[0])) == 0;
}

// Results have the same bits for any number of threads. If fewer rows are wanted than exist, the
// seed selects them.
static void test_tools_second_moment__rows(void **state) {
    struct msc_moment all, other, few, again, elsewhere;
    const struct layer *l = &layers[0];
    (void)state;
    measure_layer(&all, l, 1, 2, 1 << 20, 0);
    measure_layer(&other, l, 2, 2, 1 << 20, 0);
    assert_true(are_equal(&all, &other));
    measure_layer(&few, l, 1, 2, 40, 0);
    measure_layer(&again, l, 2, 2, 40, 0);
    measure_layer(&elsewhere, l, 1, 2, 40, 1);
    assert_in_range(few.n_rows, 36, 40);
    assert_true(are_equal(&few, &again));
    assert_false(are_equal(&few, &elsewhere));
    msc_moment_finish(&all);
    msc_moment_finish(&other);
    msc_moment_finish(&few);
    msc_moment_finish(&again);
    msc_moment_finish(&elsewhere);
}

// With memory for one moment at a time, the others are left for the next call.
static void test_tools_second_moment__memory(void **state) {
    struct quantize_case c;
    struct msc_moment m[3] = {{0}};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    int32_t slots[3];
    size_t n = 0, n_done;
    (void)state;
    quantize_case_open(&c, 1, 4);
    const struct msc_sites *sites = msc_evaluator_sites(c.ev);
    for (int32_t i = 0; i < sites->n_slots && n < 3; i++) {
        if (sites->slots[i].kind == MSC_SITE_WEIGHT) {
            slots[n++] = i;
        }
    }
    assert_int_equal(n, 3);
    o.memory_bytes = 1;
    assert_ok(msc_moments_measure(m, &n_done, slots, 3, c.ev, &o));
    assert_int_equal(n_done, 1);
    assert_int_equal(m[0].n_columns, 18);
    assert_null(m[1].h);
    o.memory_bytes = 1 << 24;
    assert_ok(msc_moments_measure(m + 1, &n_done, slots + 1, 2, c.ev, &o));
    assert_int_equal(n_done, 2);
    assert_int_equal(m[2].n_columns, 3);
    for (int i = 0; i < 3; i++) {
        msc_moment_finish(&m[i]);
    }
    quantize_case_close(&c);
}

// Moments in blocks are the blocks of the whole moments; only means are the same means.
static void check_parts(const struct layer *l) {
    struct layer_case c;
    struct msc_moment whole = {0}, blocks = {0}, means = {0}, few = {0};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    size_t n_done;
    open_layer(&c, l, 1, BATCH);
    const int32_t slot = 1;
    assert_ok(msc_moments_measure(&whole, &n_done, &slot, 1, c.ev, &o));
    o.most_columns = 4;
    assert_ok(msc_moments_measure(&blocks, &n_done, &slot, 1, c.ev, &o));
    o.least_rows = 1e6;
    assert_ok(msc_moments_measure(&few, &n_done, &slot, 1, c.ev, &o));
    o = (struct msc_moment_options)MSC_MOMENT_OPTIONS_INIT;
    o.only_means = true;
    assert_ok(msc_moments_measure(&means, &n_done, &slot, 1, c.ev, &o));
    int64_t n = whole.n_columns, n_all = whole.n_groups * n, block = blocks.block_columns;
    const float *h = blocks.h;
    assert_true(block <= 4 && !means.h && !few.h);
    for (int64_t i = 0; i < n_all; i++) {
        assert_true(means.means[i] == whole.means[i] && few.means[i] == whole.means[i]);
        int64_t first = i % n / block * block;
        for (int64_t k = first; k < first + block && k < n; k++) {
            assert_near((double)*h++, (double)whole.h[i * n + k], 1);
        }
    }
    assert_int_equal(h - blocks.h, whole.n_groups * msc_moment_n_products(n, block));
    msc_moment_finish(&whole);
    msc_moment_finish(&blocks);
    msc_moment_finish(&means);
    msc_moment_finish(&few);
    close_layer(&c);
}

static void test_tools_second_moment__parts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        check_parts(&layers[i]);
    }
}

// A limit on rows per column is a limit on rows.
static void check_most_of_column(const struct layer *l) {
    struct layer_case c;
    struct msc_moment by_column = {0}, by_rows = {0};
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    size_t n_done;
    open_layer(&c, l, 1, BATCH);
    const int32_t slot = 1;
    o.most_of_column = 2;
    assert_ok(msc_moments_measure(&by_column, &n_done, &slot, 1, c.ev, &o));
    int64_t n = by_column.n_columns, n_products = by_column.n_groups * n * n;
    o = (struct msc_moment_options)MSC_MOMENT_OPTIONS_INIT;
    o.n_rows = 2 * n;
    assert_ok(msc_moments_measure(&by_rows, &n_done, &slot, 1, c.ev, &o));
    assert_int_equal(by_column.n_rows, by_rows.n_rows);
    assert_memory_equal(by_column.h, by_rows.h, (size_t)n_products * sizeof(float));
    msc_moment_finish(&by_column);
    msc_moment_finish(&by_rows);
    close_layer(&c);
}

static void test_tools_second_moment__most_of_column(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        check_most_of_column(&layers[i]);
    }
}

// Blocks of two columns and of one. The share of the first block is (2 (2 * 3 + 1 * 1) / n_rows) /
// (2 * 1 * 1).
static void test_tools_second_moment__shrinks(void **state) {
    const struct msc_moment m = {.n_groups = 1, .n_columns = 3, .block_columns = 2, .n_rows = 10};
    const struct msc_moment few = {.n_groups = 1, .n_columns = 3, .block_columns = 2, .n_rows = 4};
    float h[5] = {2, 1, 1, 3, 5}, g[5] = {2, 1, 1, 3, 5};
    (void)state;
    msc_moment_shrink(h, &m);
    assert_true(h[0] == 2 && h[3] == 3 && h[4] == 5);
    assert_true(fabsf(h[1] - 0.3F) < 1e-6F && h[2] == h[1]);
    msc_moment_shrink(g, &few); // a share above 1 counts as 1
    assert_true(g[0] == 2 && g[1] == 0 && g[2] == 0 && g[3] == 3 && g[4] == 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_second_moment__of_outputs),
        cmocka_unit_test(test_tools_second_moment__under_a_plan),
        cmocka_unit_test(test_tools_second_moment__rows),
        cmocka_unit_test(test_tools_second_moment__memory),
        cmocka_unit_test(test_tools_second_moment__most_of_column),
        cmocka_unit_test(test_tools_second_moment__parts),
        cmocka_unit_test(test_tools_second_moment__shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
