// The distillation loss: samples of several shapes, stops at a bound, metrics, reference files,
// outputs that cannot be compared. Expected losses are plain sums over recorded outputs.
#include "env/distill_internal.h"

#include "base/str.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"
#include "tests/kernels/eval_case.h"

#include <math.h>

struct bench {
    struct eval_case c;
    struct msc_env_host host;
    struct msc_log log;
    struct msc_str lines; // warnings
    struct msc_distill *d;
};

static void note(void *payload, enum msc_log_level level, const char *line) {
    struct msc_str *lines = payload;
    if (level == MSC_LOG_WARNING) {
        msc_str_printf(lines, "%s\n", line);
    }
}

// Prepares the host, after the network in b->c exists.
static void open_host(struct bench *b) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    options.n_threads = 2;
    b->log = (struct msc_log){MSC_LOG_INFO, note, &b->lines};
    b->host = (struct msc_env_host){.abi = MSC_ENV_ABI,
                                    .graph = b->c.g,
                                    .n_threads = 2,
                                    .memory_bytes = (uint64_t)1 << 28,
                                    .log = &b->log};
    assert_ok(msc_backend_open(&b->host.backend, "cpu", &options));
}

static void close_bench(struct bench *b) {
    msc_distill_destroy(b->d);
    msc_backend_close(b->host.backend);
    msc_str_finish(&b->lines);
    eval_close(&b->c);
}

static double loss_of(struct bench *b, const struct msc_distill_options *o,
                      const struct eval_edits *edits) {
    struct msc_distill_run run = {.edits = edits->edits};
    msc_distill_destroy(b->d);
    assert_ok(msc_distill_create(&b->d, &b->host, b->c.data, o));
    assert_ok(msc_distill_compute_reference(b->d));
    assert_ok(msc_distill_run(b->d, &run, 1, NULL, NULL));
    assert_int_equal(run.status, MSC_OK);
    return run.loss;
}

static void assert_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)) || expected == 0) {
        print_error("%.17g, expected %.17g\n", found, expected);
        fail();
    }
}

// ---- Samples of several shapes ----------------------------------------------------------------

// The mse of tensor `index` computed by plain sums over recorded values.
static double plain_mse(const struct eval_results *r, int index, int64_t n_samples) {
    double squares = 0, n_elements = 0, sum = 0;
    for (int64_t s = 0; s < n_samples; s++) {
        const struct msc_array *y = r->values[0][s][index];
        for (int64_t i = 0; i < msc_array_n_elements(y); i++) {
            squares += pow(msc_array_get_double(y, i), 2);
            n_elements++;
        }
    }
    for (int64_t s = 0; s < n_samples; s++) {
        const struct msc_array *y = r->values[0][s][index];
        const struct msc_array *z = r->values[1][s][index];
        double error = 0;
        for (int64_t i = 0; i < msc_array_n_elements(y); i++) {
            error += pow(msc_array_get_double(y, i) - msc_array_get_double(z, i), 2);
        }
        sum += error / (double)msc_array_n_elements(y) / (squares / n_elements);
    }
    return sum / (double)n_samples;
}

// The second trial's values of tensor `index`, sample after sample.
static struct msc_array *join_values(const struct eval_results *r, int index, int64_t n_samples) {
    struct msc_array *joined = NULL;
    int64_t n = 0;
    for (int64_t s = 0; s < n_samples; s++) {
        n += msc_array_n_elements(r->values[1][s][index]);
    }
    assert_ok(msc_array_create(&joined, MSC_DTYPE_F32, 1, &n));
    char *to = msc_array_data(joined);
    for (int64_t s = 0; s < n_samples; s++) {
        const struct msc_array *part = r->values[1][s][index];
        memcpy(to, msc_array_data(part), msc_array_n_bytes(part));
        to += msc_array_n_bytes(part);
    }
    return joined;
}

static void record_both(struct bench *b, struct eval_results *r, const struct eval_edits edits[2]) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_eval_trial trials[2] = {{0}};
    struct msc_evaluator *ev;
    o.backend = b->host.backend;
    assert_ok(msc_evaluator_create(&ev, b->c.g, b->c.data, b->c.wanted, b->c.n_wanted, &o));
    eval_results_init(r, &b->c);
    assert_ok(eval_run(ev, r, edits, trials, 2));
    msc_evaluator_destroy(ev);
}

static void test_env_distill__samples_of_several_shapes(void **state) {
    static const int64_t widths[] = {6, 4, 7, 4, 5, 6};
    static struct eval_results results;
    struct eval_edits edits[2];
    struct bench b = {0};
    (void)state;
    eval_open_widths(&b.c, widths, 6);
    open_host(&b);
    eval_draw_edits(&b.c, 0, &edits[0]);
    eval_draw_edits(&b.c, 8, &edits[1]);
    record_both(&b, &results, edits);
    for (size_t i = 0; i < b.c.n_wanted; i++) {
        const char *name = msc_graph_tensor(b.c.g, b.c.wanted[i])->name;
        struct msc_distill_options o = {.kind = MSC_LOSS_MSE, .tensors = &name, .n_tensors = 1};
        assert_near(loss_of(&b, &o, &edits[1]), plain_mse(&results, (int)i, 6));
    }
    // Two tensors together, one with weight 2.
    const char *const names[] = {"softmax:0", "plus_three:0"};
    const double weights[] = {2, 1};
    struct msc_distill_options o = {
        .kind = MSC_LOSS_MSE, .tensors = names, .n_tensors = 2, .weights = weights};
    assert_near(loss_of(&b, &o, &edits[1]),
                (2 * plain_mse(&results, 0, 6) + plain_mse(&results, 2, 6)) / 3);
    // Gets the same loss from reference outputs computed elsewhere, sample after sample.
    struct msc_array *outputs[] = {join_values(&results, 0, 6), join_values(&results, 2, 6)};
    struct msc_distill_run run = {.edits = NULL};
    assert_int_equal(msc_distill_n_compared(b.d), 2);
    assert_string_equal(msc_distill_compared_name(b.d, 1), names[1]);
    assert_ok(msc_distill_judge(b.d, &run, (const struct msc_array *const *)outputs));
    assert_near(run.loss, (2 * plain_mse(&results, 0, 6) + plain_mse(&results, 2, 6)) / 3);
    const struct msc_array *const wrong[] = {outputs[0], results.values[1][0][2]};
    assert_int_equal(msc_distill_judge(b.d, &run, wrong), MSC_E_INVALID);
    assert_message("output plus_three:0 has ");
    msc_array_release(outputs[0]);
    msc_array_release(outputs[1]);
    eval_results_finish(&results);
    close_bench(&b);
}

// ---- Bounds -----------------------------------------------------------------------------------

enum { N_STOPS = 8, N_COMPANY = 32 };

// The partial mse of tensor 0 after each sample; each sample is a batch.
static void plain_partials(const struct eval_results *r, double partials[N_STOPS]) {
    double squares = 0, n_elements = 0, sum = 0;
    for (int s = 0; s < N_STOPS; s++) {
        const struct msc_array *y = r->values[0][s][0];
        for (int64_t i = 0; i < msc_array_n_elements(y); i++) {
            squares += pow(msc_array_get_double(y, i), 2);
            n_elements++;
        }
    }
    for (int s = 0; s < N_STOPS; s++) {
        const struct msc_array *y = r->values[0][s][0];
        const struct msc_array *z = r->values[1][s][0];
        for (int64_t i = 0; i < msc_array_n_elements(y); i++) {
            double error = msc_array_get_double(y, i) - msc_array_get_double(z, i);
            sum += error * error / (double)msc_array_n_elements(y) / (squares / n_elements);
        }
        partials[s] = sum / N_STOPS;
    }
}

static void check_stop(const struct msc_distill_run *run, const double partials[], int stop) {
    bool is_stopped = stop < N_STOPS;
    assert_int_equal(run->status, MSC_OK);
    assert_int_equal(run->was_stopped, is_stopped);
    assert_int_equal(run->n_samples, is_stopped ? stop + 1 : N_STOPS);
    assert_near(run->loss, partials[is_stopped ? stop : N_STOPS - 1]);
}

// A bound between the partial losses after one and two samples stops the run at the second. Other
// runs do not change a bit of the loss. A bound equal to the loss stops nothing.
static void test_env_distill__stops_at_its_bound(void **state) {
    static const int64_t widths[N_STOPS] = {6, 4, 7, 4, 5, 6, 6, 4};
    static struct eval_results results;
    static struct msc_distill_run alone[N_STOPS + 2], together[N_COMPANY];
    struct eval_edits edits[2];
    struct bench b = {0};
    double partials[N_STOPS];
    (void)state;
    eval_open_widths(&b.c, widths, N_STOPS);
    open_host(&b);
    eval_draw_edits(&b.c, 0, &edits[0]);
    eval_draw_edits(&b.c, 8, &edits[1]);
    record_both(&b, &results, edits);
    plain_partials(&results, partials);
    const char *name = msc_graph_tensor(b.c.g, b.c.wanted[0])->name;
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE, .tensors = &name, .n_tensors = 1};
    double loss = loss_of(&b, &o, &edits[1]);
    // Stopped at the first sample, at each later one, or never (bound equal to the loss, or none).
    for (int k = 0; k < N_STOPS + 2; k++) {
        double bound = k == 0 ? 0 : k < N_STOPS ? 0.5 * (partials[k - 1] + partials[k]) : loss;
        alone[k] = (struct msc_distill_run){
            .edits = edits[1].edits, .is_bounded = k <= N_STOPS, .bound = bound};
        assert_ok(msc_distill_run(b.d, &alone[k], 1, NULL, NULL));
        check_stop(&alone[k], partials, k);
    }
    assert_true(alone[N_STOPS].loss == loss && alone[N_STOPS + 1].loss == loss);
    for (int i = 0; i < N_COMPANY; i++) {
        const struct msc_distill_run *same = &alone[i % (N_STOPS + 2)];
        together[i] = (struct msc_distill_run){
            .edits = same->edits, .is_bounded = same->is_bounded, .bound = same->bound};
    }
    for (int round = 0; round < 4; round++) {
        assert_ok(msc_distill_run(b.d, together, N_COMPANY, NULL, NULL));
        for (int i = 0; i < N_COMPANY; i++) {
            check_stop(&together[i], partials, i % (N_STOPS + 2));
            assert_true(together[i].loss == alone[i % (N_STOPS + 2)].loss);
        }
        msc_evaluator_drop_cache(msc_distill_evaluator(b.d));
    }
    eval_results_finish(&results);
    close_bench(&b);
}

// ---- Other metrics ----------------------------------------------------------------------------

// The largest |y - z| of a sample over all compared tensors.
static double sample_error(const struct msc_sample *s) {
    double greatest = 0;
    for (size_t i = 0; i < msc_sample_n_tensors(s); i++) {
        struct msc_sample_tensor t = msc_sample_tensor(s, i);
        for (int64_t k = 0; k < t.n; k++) {
            double error = fabs((double)t.y[k] - (double)t.z[k]);
            greatest = error > greatest ? error : greatest;
        }
    }
    return greatest;
}

static double sample_label(const struct msc_sample *s) {
    return (double)msc_sample_label(s);
}

static double plain_error(const struct eval_results *r, int sample) {
    double greatest = 0;
    for (int tensor = 0; tensor < 3; tensor += 2) {
        const struct msc_array *y = r->values[0][sample][tensor];
        const struct msc_array *z = r->values[1][sample][tensor];
        for (int64_t i = 0; i < msc_array_n_elements(y); i++) {
            double error = fabs(msc_array_get_double(y, i) - msc_array_get_double(z, i));
            greatest = fmax(greatest, error);
        }
    }
    return greatest;
}

// The metric is the mean over samples. It is missing after a stopped run and without the labels.
static void test_env_distill__metrics_of_samples(void **state) {
    static const int64_t widths[] = {6, 4, 7, 4, 5, 6};
    static const struct msc_sample_metric metrics[] = {
        {.sample = sample_error},
        {.sample = sample_label, .needs_labels = true},
    };
    static struct eval_results results;
    const char *const names[] = {"softmax:0", "plus_three:0"};
    const struct msc_distill_options o = {
        .kind = MSC_LOSS_MSE, .tensors = names, .n_tensors = 2, .metrics = metrics, .n_metrics = 2};
    struct eval_edits edits[2];
    struct bench b = {0};
    double sum = 0;
    (void)state;
    eval_open_widths(&b.c, widths, 6);
    open_host(&b);
    eval_draw_edits(&b.c, 0, &edits[0]);
    eval_draw_edits(&b.c, 8, &edits[1]);
    record_both(&b, &results, edits);
    for (int s = 0; s < 6; s++) {
        sum += plain_error(&results, s);
    }
    loss_of(&b, &o, &edits[1]);
    struct msc_distill_run runs[2] = {{.edits = edits[1].edits},
                                      {.edits = edits[1].edits, .is_bounded = true}};
    assert_ok(msc_distill_run(b.d, runs, 2, NULL, NULL));
    assert_near(runs[0].metrics[0], sum / 6);
    assert_true(isnan(runs[0].metrics[1]));
    assert_true(runs[1].was_stopped);
    assert_true(isnan(runs[1].metrics[0]));
    eval_results_finish(&results);
    close_bench(&b);
}

// Adding 1 to 1e16 does not change it in double precision.
static double sample_of_order(const struct msc_sample *s) {
    static const double values[] = {1e16, 1, 1, -1e16, 1, 1};
    return values[s->sample];
}

// Sums are added batch by batch: (1e16 + 1 + 1) + (-1e16 + 1 + 1) is 0 in doubles. If they were
// added sample by sample, the last two samples would remain.
static void test_env_distill__order_of_sums(void **state) {
    static const struct msc_sample_metric metric = {.sample = sample_of_order};
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE, .metrics = &metric, .n_metrics = 1};
    struct eval_edits edits;
    struct bench b = {0};
    (void)state;
    eval_open_net(&b.c, 6, 3);
    open_host(&b);
    eval_draw_edits(&b.c, 8, &edits);
    struct msc_distill_run run = {.edits = edits.edits};
    loss_of(&b, &o, &edits);
    assert_ok(msc_distill_run(b.d, &run, 1, NULL, NULL));
    assert_true(run.metrics[0] == 0);
    close_bench(&b);
}

// kl along channels in the middle of a tensor whose width differs between samples, against its
// definition.
static void test_env_distill__kl_axis(void **state) {
    static const int64_t widths[] = {6, 4};
    static struct eval_results results;
    const char *name = "plus_three:0"; // [1,8,6,width]
    struct msc_distill_options o = {
        .kind = MSC_LOSS_KL, .kl_axis = 1, .kl_is_logits = true, .tensors = &name, .n_tensors = 1};
    struct eval_edits edits[2];
    struct bench b = {0};
    double expected = 0;
    (void)state;
    eval_open_widths(&b.c, widths, 2);
    open_host(&b);
    eval_draw_edits(&b.c, 0, &edits[0]);
    eval_draw_edits(&b.c, 8, &edits[1]);
    record_both(&b, &results, edits);
    for (int s = 0; s < 2; s++) {
        const struct msc_array *y = results.values[0][s][2];
        const struct msc_array *z = results.values[1][s][2];
        int64_t places = 6 * widths[s];
        for (int64_t at = 0; at < places; at++) {
            double sum_y = 0, sum_z = 0, d = 0;
            for (int64_t c = 0; c < 8; c++) {
                sum_y += exp(msc_array_get_double(y, c * places + at));
                sum_z += exp(msc_array_get_double(z, c * places + at));
            }
            for (int64_t c = 0; c < 8; c++) {
                double p = exp(msc_array_get_double(y, c * places + at)) / sum_y;
                d += p * log(p / (exp(msc_array_get_double(z, c * places + at)) / sum_z));
            }
            expected += d / (double)places / 2;
        }
    }
    double found = loss_of(&b, &o, &edits[1]);
    assert_true(fabs(found - expected) <= 1e-11 * expected);
    o.kl_axis = -3;
    assert_true(loss_of(&b, &o, &edits[1]) == found);
    eval_results_finish(&results);
    close_bench(&b);
}

// ---- Reference outputs ------------------------------------------------------------------------

static void test_env_distill__reference_lists(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct msc_array_list list = {0}, empty = {0};
    struct eval_edits edits;
    struct bench b = {0};
    (void)state;
    eval_open_net(&b.c, 5, 2);
    open_host(&b);
    eval_draw_edits(&b.c, 3, &edits);
    double loss = loss_of(&b, &o, &edits);
    assert_ok(msc_distill_save_reference(b.d, &list));
    assert_int_equal(list.n, 2);
    assert_non_null(msc_array_list_find(&list, "reference/softmax"));
    // The reference is loaded instead of computed.
    msc_distill_destroy(b.d);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    struct msc_distill_run run = {.edits = edits.edits};
    assert_int_equal(msc_distill_run(b.d, &run, 1, NULL, NULL), MSC_E_STATE);
    assert_int_equal(msc_distill_load_reference(b.d, &empty), MSC_E_STATE);
    assert_message("no reference output of softmax");
    assert_ok(msc_distill_load_reference(b.d, &list));
    assert_ok(msc_distill_load_reference(b.d, &list));
    assert_ok(msc_distill_run(b.d, &run, 1, NULL, NULL));
    assert_true(run.loss == loss);
    // A reference with NaN is refused.
    ((float *)msc_array_data(list.arrays[1]))[3] = NAN;
    assert_int_equal(msc_distill_load_reference(b.d, &list), MSC_E_INVALID);
    assert_message("contains NaN");
    msc_array_list_finish(&list);
    close_bench(&b);
}

// ---- Outputs that cannot be compared ----------------------------------------------------------

static int32_t add_unary(struct msc_graph *g, enum msc_op op, const char *name, int32_t x,
                         const char *key, const char *value) {
    int32_t joint;
    struct msc_attr attr = {key, value};
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = op,
                                                           .name = name,
                                                           .n_inputs = 1,
                                                           .inputs = &x,
                                                           .n_attrs = key != NULL,
                                                           .attrs = &attr}));
    return msc_graph_joint(g, joint)->outputs[0];
}

// Outputs: the square root of x; the argmax of -x; and a relu after the rounded -x.
static void open_odd(struct bench *b, bool with_floats) {
    static const int64_t dims[2] = {-1, 4};
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 4}, .is_batched = true};
    static const int64_t rows[2] = {3, 4};
    static const float elements[12] = {0.5f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int32_t prims[2] = {0, MSC_NO_ID};
    int32_t x, outputs[3];
    struct msc_array *a;
    memset(b, 0, sizeof(*b));
    assert_ok(msc_graph_create(&b->c.g, "odd"));
    assert_ok(msc_graph_add_symbol(&prims[0], b->c.g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, b->c.g, "x", NULL, MSC_DTYPE_F32, "", 2, dims, prims));
    int32_t before = add_unary(b->c.g, MSC_OP_NEGATIVE, "before", x, NULL, NULL);
    outputs[0] = add_unary(b->c.g, MSC_OP_ARGMAX, "class", before, "axis", "1");
    outputs[1] = add_unary(b->c.g, MSC_OP_SQRT, "root", x, NULL, NULL);
    outputs[2] = add_unary(b->c.g, MSC_OP_RELU, "behind",
                           add_unary(b->c.g, MSC_OP_ROUND, "jump", before, NULL, NULL), NULL, NULL);
    assert_ok(msc_graph_set_outputs(b->c.g, with_floats ? 3 : 1, outputs));
    assert_ok(msc_graph_finalize(b->c.g));
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, 2, rows, elements));
    assert_ok(msc_dataset_create(&b->c.data, &spec, &a, 1, NULL, 2));
    msc_array_release(a);
    open_host(b);
}

static void test_env_distill__outputs_left_out(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct bench b;
    (void)state;
    open_odd(&b, true);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_non_null(strstr(msc_str_text(&b.lines), "output class:0 is int64: left out"));
    assert_non_null(strstr(msc_str_text(&b.lines), "output behind follows joint jump"));
    assert_non_null(strstr(msc_str_text(&b.lines), "such as [\"before:0\"]"));
    assert_null(strstr(msc_str_text(&b.lines), "root"));
    close_bench(&b);
    open_odd(&b, false);
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.c.data, &o), MSC_E_INVALID);
    assert_message(
        "graph odd has no float32 output: name tensors to compare in env.loss_tensors, such "
        "as [\"before:0\"]");
    const char *name = "class:0";
    o.tensors = &name;
    o.n_tensors = 1;
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.c.data, &o), MSC_E_INVALID);
    assert_message("class:0 is not float32");
    b.d = NULL;
    close_bench(&b);
}

// The two largest values of x and their indices, each followed by a relu. Only the indices jump.
static void test_env_distill__greatest_values_are_continuous(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    static const int64_t dims[2] = {3, 4};
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {3, 4}};
    struct msc_array *a;
    struct bench b = {0};
    int32_t x, joint, outputs[2];
    (void)state;
    assert_ok(msc_graph_create(&b.c.g, "top"));
    assert_ok(msc_graph_add_input(&x, b.c.g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    struct msc_attr k = {"k", "2"};
    assert_ok(msc_graph_add_joint(&joint, b.c.g,
                                  &(struct msc_joint_spec){.op = MSC_OP_TOPK,
                                                           .name = "top",
                                                           .n_inputs = 1,
                                                           .inputs = &x,
                                                           .n_attrs = 1,
                                                           .attrs = &k,
                                                           .n_outputs = 2}));
    const int32_t *top = msc_graph_joint(b.c.g, joint)->outputs;
    int32_t places = add_unary(b.c.g, MSC_OP_CAST, "places", top[1], "dtype", "float32");
    outputs[0] = add_unary(b.c.g, MSC_OP_RELU, "values", top[0], NULL, NULL);
    outputs[1] = add_unary(b.c.g, MSC_OP_RELU, "where", places, NULL, NULL);
    assert_ok(msc_graph_set_outputs(b.c.g, 2, outputs));
    assert_ok(msc_graph_finalize(b.c.g));
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, 2, dims));
    assert_ok(msc_dataset_create(&b.c.data, &spec, &a, 1, NULL, 1));
    msc_array_release(a);
    open_host(&b);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_null(strstr(msc_str_text(&b.lines), "output values lies behind"));
    assert_non_null(strstr(msc_str_text(&b.lines), "output where follows joint top"));
    close_bench(&b);
}

// One sample of x [8] and v [n]. Lengths stay unknown if n is too large for a shape parameter.
static struct msc_dataset *slice_data(int64_t n) {
    struct msc_input_spec specs[2] = {
        {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 1, .dims = {8}},
        {.name = "v", .dtype = MSC_DTYPE_I64, .n_dims = 1, .dims = {-1}}};
    const int64_t dims[2][2] = {{1, 8}, {1, n}};
    struct msc_array *arrays[2];
    struct msc_dataset *data;
    assert_ok(msc_array_create(&arrays[0], MSC_DTYPE_F32, 2, dims[0]));
    assert_ok(msc_array_create(&arrays[1], MSC_DTYPE_I64, 2, dims[1]));
    for (int i = 0; i < 8; i++) {
        ((float *)msc_array_data(arrays[0]))[i] = (float)i + 1;
    }
    ((int64_t *)msc_array_data(arrays[1]))[0] = 3;
    assert_ok(msc_dataset_create(&data, specs, arrays, 2, NULL, 1));
    msc_array_release(arrays[0]);
    msc_array_release(arrays[1]);
    return data;
}

// root = sqrt(x) and part = relu(x[0 : v[0]]). The length of part is known if v is short.
static void open_slices(struct bench *b, int64_t n) {
    struct msc_graph *g;
    int32_t inputs[2], prim, joint, outputs[2];
    memset(b, 0, sizeof(*b));
    assert_ok(msc_graph_create(&g, "slices"));
    assert_ok(
        msc_graph_add_input(&inputs[0], g, "x", NULL, MSC_DTYPE_F32, "", 1, (const int64_t[]){8}));
    assert_ok(msc_graph_add_symbol(&prim, g, "n"));
    assert_ok(msc_graph_add_symbolic_input(&inputs[1], g, "v", NULL, MSC_DTYPE_I64, "", 1,
                                           (const int64_t[]){-1}, &prim));
    outputs[0] = add_unary(g, MSC_OP_SQRT, "root", inputs[0], NULL, NULL);
    const struct msc_attr first[] = {{"begin", "0"}, {"end", "1"}, {"axes", "0"}};
    struct msc_joint_spec spec = {.op = MSC_OP_STRIDED_SLICE,
                                  .name = "end",
                                  .n_inputs = 1,
                                  .inputs = &inputs[1],
                                  .n_attrs = 3,
                                  .attrs = first};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    int32_t operands[3] = {inputs[0], MSC_NO_ID, msc_graph_joint(g, joint)->outputs[0]};
    const struct msc_attr begin[] = {{"begin", "0"}, {"axes", "0"}};
    spec = (struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                   .name = "part",
                                   .n_inputs = 2,
                                   .inputs = (const int32_t[]){operands[0], operands[2]},
                                   .n_attrs = 2,
                                   .attrs = begin};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    outputs[1] =
        add_unary(g, MSC_OP_RELU, "relu", msc_graph_joint(g, joint)->outputs[0], NULL, NULL);
    assert_ok(msc_graph_set_outputs(g, 2, outputs));
    assert_ok(msc_graph_finalize(g));
    b->c.g = g;
    b->c.data = slice_data(n);
    open_host(b);
}

// The compared tensors are chosen on the calibration samples and used for other samples, too.
static void test_env_distill__same_tensors_on_other_samples(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct msc_array_list list = {0};
    struct msc_distill *other;
    struct bench b;
    (void)state;
    open_slices(&b, 5000);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    assert_non_null(
        strstr(msc_str_text(&b.lines), "output relu is of a length that depends on the data"));
    struct msc_dataset *data = slice_data(4);
    assert_ok(msc_distill_create_as(&other, b.d, data));
    assert_ok(msc_distill_compute_reference(other));
    assert_ok(msc_distill_save_reference(other, &list));
    assert_int_equal(list.n, 1);
    assert_non_null(msc_array_list_find(&list, "reference/root"));
    msc_array_list_finish(&list);
    msc_distill_destroy(other);
    msc_dataset_destroy(data);
    close_bench(&b);
    // If the calibration samples give a comparable output whose length is open on the other
    // samples, that is an error.
    open_slices(&b, 4);
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, &o));
    data = slice_data(5000);
    assert_int_equal(msc_distill_create_as(&other, b.d, data), MSC_E_INVALID);
    assert_message("on these samples tensor relu, which the loss compares, is of a length that "
                   "depends on the data");
    msc_dataset_destroy(data);
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_distill__samples_of_several_shapes),
        cmocka_unit_test(test_env_distill__stops_at_its_bound),
        cmocka_unit_test(test_env_distill__metrics_of_samples),
        cmocka_unit_test(test_env_distill__order_of_sums),
        cmocka_unit_test(test_env_distill__kl_axis),
        cmocka_unit_test(test_env_distill__reference_lists),
        cmocka_unit_test(test_env_distill__outputs_left_out),
        cmocka_unit_test(test_env_distill__greatest_values_are_continuous),
        cmocka_unit_test(test_env_distill__same_tensors_on_other_samples),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
