// The distillation loss: samples of several shapes, stops at a bound, metrics, reference files.
// Expected losses are plain sums over recorded outputs.
#include "env/distill_internal.h"

#include "tests/env/distill_bench.h"

#include <math.h>

static double loss_of(struct distill_bench *b, const struct msc_distill_options *o,
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

static void record_both(struct distill_bench *b, struct eval_results *r,
                        const struct eval_edits edits[2]) {
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
    struct distill_bench b = {0};
    (void)state;
    eval_open_widths(&b.c, widths, 6);
    distill_bench_open(&b);
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
    // The loss is the same with reference outputs that were computed elsewhere and joined sample by
    // sample.
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
    distill_bench_close(&b);
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
// trials that run together with it do not change a bit of its loss. A bound equal to the loss stops
// nothing.
static void test_env_distill__stops_at_its_bound(void **state) {
    static const int64_t widths[N_STOPS] = {6, 4, 7, 4, 5, 6, 6, 4};
    static struct eval_results results;
    static struct msc_distill_run alone[N_STOPS + 2], together[N_COMPANY];
    struct eval_edits edits[2];
    struct distill_bench b = {0};
    double partials[N_STOPS];
    (void)state;
    eval_open_widths(&b.c, widths, N_STOPS);
    distill_bench_open(&b);
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
    distill_bench_close(&b);
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
    struct distill_bench b = {0};
    double sum = 0;
    (void)state;
    eval_open_widths(&b.c, widths, 6);
    distill_bench_open(&b);
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
    distill_bench_close(&b);
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
    struct distill_bench b = {0};
    (void)state;
    eval_open_net(&b.c, 6, 3);
    distill_bench_open(&b);
    eval_draw_edits(&b.c, 8, &edits);
    struct msc_distill_run run = {.edits = edits.edits};
    loss_of(&b, &o, &edits);
    assert_ok(msc_distill_run(b.d, &run, 1, NULL, NULL));
    assert_true(run.metrics[0] == 0);
    distill_bench_close(&b);
}

// kl along a channel axis in the middle of a tensor, compared with the definition of kl. The
// tensor's width differs between samples.
static void test_env_distill__kl_axis(void **state) {
    static const int64_t widths[] = {6, 4};
    static struct eval_results results;
    const char *name = "plus_three:0"; // its shape is [1,8,6,width]
    struct msc_distill_options o = {
        .kind = MSC_LOSS_KL, .kl_axis = 1, .kl_is_logits = true, .tensors = &name, .n_tensors = 1};
    struct eval_edits edits[2];
    struct distill_bench b = {0};
    double expected = 0;
    (void)state;
    eval_open_widths(&b.c, widths, 2);
    distill_bench_open(&b);
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
    distill_bench_close(&b);
}

// ---- Reference outputs ------------------------------------------------------------------------

static void test_env_distill__reference_lists(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct msc_array_list list = {0}, empty = {0};
    struct eval_edits edits;
    struct distill_bench b = {0};
    (void)state;
    eval_open_net(&b.c, 5, 2);
    distill_bench_open(&b);
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
    distill_bench_close(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_distill__samples_of_several_shapes),
        cmocka_unit_test(test_env_distill__stops_at_its_bound),
        cmocka_unit_test(test_env_distill__metrics_of_samples),
        cmocka_unit_test(test_env_distill__order_of_sums),
        cmocka_unit_test(test_env_distill__kl_axis),
        cmocka_unit_test(test_env_distill__reference_lists),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
