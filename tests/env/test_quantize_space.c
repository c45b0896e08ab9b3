// The space of the environment `quantize`: tasks, features, metrics, baselines and costs.
// Expected values are worked out by hand for the small network.
#include "tests/env/space_case.h"

#include "base/alloc.h"
#include "kernels/engine/backends.h"

#include <math.h>

static double reference(const struct bench *b, const char *metric) {
    int index = msc_space_find_metric(&b->space.space, metric);
    assert_true(index >= 0);
    return b->space.references[index];
}

static double cost(const struct bench *b, const char *metric, const uint32_t choices[]) {
    const struct msc_cost *c = msc_space_find_cost(&b->space.space, metric);
    assert_non_null(c);
    return msc_cost_value(c, choices);
}

static void assert_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected))) {
        print_error("%.17g, expected %.17g\n", found, expected);
        fail();
    }
}

// ---- Features of choices ----------------------------------------------------------------------

// The relative rounding error of a weight with channels along its first axis, by the formula of
// graph/quant.h in double. The quantisation is symmetric, with one range per channel.
static double rounding_error(const struct msc_array *w, int bits) {
    const float *x = msc_array_data(w);
    int64_t n_channels = msc_array_dims(w)[0], n = msc_array_n_elements(w) / n_channels;
    double most = pow(2, bits - 1) - 1, error = 0, all = 0;
    for (int64_t k = 0; k < n_channels; k++, x += n) {
        double greatest = 0;
        for (int64_t i = 0; i < n; i++) {
            double size = fabs(x[i]);
            greatest = size > greatest ? size : greatest;
        }
        double scale = greatest / most;
        for (int64_t i = 0; i < n; i++) {
            double d = x[i] - scale * nearbyint(x[i] / scale);
            error += d * d;
            all += (double)x[i] * x[i];
        }
    }
    return error / all;
}

static const double *features_of(const struct bench *b, size_t task, uint32_t choice) {
    const struct msc_space *s = &b->space.space;
    return s->tasks[task].choice_features + choice * s->n_choice_features;
}

static void test_env_quantize_space__features_of_choices(void **state) {
    static const char *const names[] = {"bits", "group_size", "size_bytes", "weight_error",
                                        "distill_loss"};
    struct bench b;
    (void)state;
    open_bench(&b,
               "{\"choices\":[{\"bits\":8},{\"bits\":4},{\"bits\":4,\"group_size\":32},"
               "{\"type\":\"float16\"},{\"float\":true}]}",
               4);
    assert_ok(build(&b));
    const struct msc_space *s = &b.space.space;
    assert_ok(msc_space_check(s));
    assert_int_equal(s->n_choice_features, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(s->choice_feature_names[i], names[i]);
    }
    static const double bits[] = {8, 4, 4, 16, 32}, groups[] = {0, 0, 32, 0, 0};
    uint32_t point[6] = {0};
    double whole = cost(&b, "size_bytes", point);
    const struct msc_array *w =
        msc_graph_tensor(b.c.g, msc_graph_find_tensor(b.c.g, "conv1.w"))->data;
    for (uint32_t c = 0; c < 5; c++) {
        const double *f = features_of(&b, 1, c); // features of conv1.w
        point[1] = c;
        assert_true(f[0] == bits[c] && f[1] == groups[c]);
        assert_near(f[2] - features_of(&b, 1, 0)[2] + whole, cost(&b, "size_bytes", point));
    }
    // Scales are float32, which makes the errors differ slightly.
    for (uint32_t c = 0; c < 2; c++) {
        double expected = rounding_error(w, c == 0 ? 8 : 4);
        assert_true(fabs(features_of(&b, 1, c)[3] - expected) <= 1e-4 * expected);
    }
    // smaller groups have at least as many scales, so their error is not larger
    assert_true(features_of(&b, 1, 2)[3] <= features_of(&b, 1, 1)[3]);
    assert_true(features_of(&b, 1, 3)[3] > 0 && features_of(&b, 1, 3)[3] < 1e-6);
    assert_true(features_of(&b, 1, 4)[3] == 0);
    // Activations have no groups and no weight error.
    assert_int_equal(s->tasks[0].n_choices, 4);
    assert_true(features_of(&b, 0, 1)[0] == 4 && features_of(&b, 0, 2)[0] == 16);
    assert_true(features_of(&b, 0, 1)[2] == 0 && isnan(features_of(&b, 0, 1)[3]));
    close_bench(&b);
}

// ---- Tasks ------------------------------------------------------------------------------------

static void assert_tasks(const struct bench *b, size_t n, const char *const names[]) {
    assert_int_equal(b->space.space.n_tasks, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(b->space.space.tasks[i].name, names[i]);
    }
    assert_ok(msc_space_check(&b->space.space));
}

static void test_env_quantize_space__tasks(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE "}", 4);
    assert_ok(build(&b));
    assert_tasks(&b, 6,
                 (const char *const[]){"x:0", "conv1.w", "relu:0", "conv2.w", "flat:0", "head.w"});
    const struct msc_task *t = b.space.space.tasks;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(t[i].n_choices, 3);
        assert_string_equal(t[i].labels[2], "3 mse");
        for (uint32_t c = 0; c < 3; c++) {
            assert_int_equal(t[i].most_expensive_first[c], c);
        }
        // Weights and activations alternate.
        assert_true(t[i].features[3] == i % 2);
    }
    // The feature log2_elements counts the elements of one sample, whatever the batch size. The
    // feature macs_share is a task's share of the 2592 + 3888 + 15 products of the network.
    assert_near(t[0].features[1], log2(72));
    assert_near(t[1].features[1], log2(72));
    assert_near(t[2].features[1], log2(144));
    assert_near(t[3].features[1], log2(108));
    assert_near(t[0].features[2], 2592.0 / 6495);
    assert_near(t[3].features[2], 3888.0 / 6495);
    assert_near(t[5].features[2], 15.0 / 6495);
    assert_true(t[0].features[0] < t[2].features[0] && t[2].features[0] < t[4].features[0]);
    static const char *const metrics[] = {
        "distill_loss", "accuracy", "size_bytes", "size_ratio", "bit_ops", "bit_ops_ratio", "macs"};
    assert_int_equal(b.space.space.n_metrics, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(b.space.space.metrics[i].name, metrics[i]);
        assert_true(b.space.space.metrics[i].is_maximised == (i == 1));
        assert_true(b.space.space.metrics[i].is_exact == (i > 1));
    }
    close_bench(&b);
}

static void test_env_quantize_space__without_labels(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE "}", 4);
    struct msc_dataset *data;
    struct msc_input_spec spec = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 4,
                                  .dims = {-1, 2, 6, 6},
                                  .is_batched = true};
    const int64_t dims[] = {QUANTIZE_SAMPLES, 2, 6, 6};
    struct msc_array *x = quantize_array(4, dims, 11);
    assert_ok(msc_dataset_create(&data, &spec, &x, 1, NULL, 4));
    assert_ok(build_on(&b, data));
    assert_int_equal(b.space.space.n_metrics, 6);
    assert_int_equal(msc_space_find_metric(&b.space.space, "accuracy"), -1);
    assert_ok(msc_space_check(&b.space.space));
    msc_array_release(x);
    msc_dataset_destroy(data);
    close_bench(&b);
}

static bool is_cost_before(const struct msc_env_metric list[], const struct msc_env_metric *end,
                           const char *name) {
    for (const struct msc_env_metric *m = list; m < end; m++) {
        if (m->cost && strcmp(m->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static const struct msc_metric_row *find_row(const char *name) {
    const struct msc_metric_row *row = msc_metric_table;
    while (row->metric.name && strcmp(row->metric.name, name) != 0) {
        row++;
    }
    assert_non_null(row->metric.name);
    return row;
}

// Each row has a unique name and at most one way of being measured.
static void test_env_quantize_space__rows_of_metrics(void **state) {
    const struct msc_metric_row *rows = msc_metric_table;
    (void)state;
    for (size_t i = 0; rows[i].metric.name; i++) {
        int n_ways =
            (rows[i].ratio_of != NULL) + (rows[i].of_run != NULL) + (rows[i].sample != NULL);
        assert_true(n_ways <= 1);
        assert_true(!rows[i].metric.is_exact || (!rows[i].of_run && !rows[i].sample));
        assert_true(rows[i].metric.unit && rows[i].metric.help);
        assert_ptr_equal(find_row(rows[i].metric.name), &rows[i]);
    }
}

// Each metric that an environment lists is computed in exactly one way: as a ratio, by a cost
// function or by a measuring function. The metric's row in msc_metric_table does not compute it
// from a run or a sample. A ratio refers to an exact metric that comes earlier.
static void test_env_quantize_space__lists_of_metrics(void **state) {
    const struct msc_env_metric *const lists[] = {msc_quantize_metrics, msc_prune_metrics,
                                                  msc_combined_metrics};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (const struct msc_env_metric *m = lists[i]; m->name; m++) {
            const struct msc_metric_row *row = find_row(m->name);
            int n_ways = (row->ratio_of != NULL) + (m->cost != NULL) + (m->measure != NULL);
            assert_true(!row->of_run && !row->sample);
            assert_int_equal(n_ways, 1);
            assert_true(row->metric.is_exact == (m->measure == NULL));
            assert_true(!row->ratio_of || is_cost_before(lists[i], m, row->ratio_of));
        }
    }
}

static void test_env_quantize_space__baselines(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE "}", 4);
    assert_ok(build(&b));
    assert_int_equal(b.space.space.n_baselines, 3);
    assert_string_equal(b.space.space.baselines[1].label, "4");
    for (uint32_t c = 0; c < 3; c++) {
        for (size_t t = 0; t < 6; t++) {
            assert_int_equal(b.space.space.baselines[c].choices[t], c);
        }
    }
    close_bench(&b);
}

// Choices from the most expensive: float first, then by bits, then by how near the range scale is
// to 1, then in the given order.
static void test_env_quantize_space__most_expensive_first(void **state) {
    static const uint32_t order[] = {3, 4, 1, 0, 2, 5};
    struct bench b;
    (void)state;
    open_bench(&b,
               "{\"choices\":[{\"bits\":8,\"scale\":0.5},{\"bits\":8},{\"bits\":4},{\"float\":true}"
               ",{\"bits\":16},{\"bits\":4,\"observer\":\"mse\"}]}",
               4);
    assert_ok(build(&b));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(b.space.space.tasks[0].most_expensive_first[i], order[i]);
    }
    close_bench(&b);
}

static void test_env_quantize_space__groups(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE ",\"group\":\"site\"}", 4);
    assert_ok(build(&b));
    assert_tasks(&b, 6,
                 (const char *const[]){"x:0-c-conv1", "conv1.w", "relu:0-c-conv2", "conv2.w",
                                       "flat:0-c-head", "head.w"});
    close_bench(&b);
    open_bench(&b, "{" THREE ",\"group\":\"joint\"}", 4);
    assert_ok(build(&b));
    assert_tasks(&b, 3, (const char *const[]){"conv1", "conv2", "head"});
    // Both operands of a joint share one decision.
    const uint32_t choices[3] = {0, 1, 2};
    assert_near(cost(&b, "bit_ops", choices), 2592.0 * 64 + 3888.0 * 16 + 15.0 * 9);
    assert_near(cost(&b, "size_bytes", choices), 88 + 66 + 26);
    close_bench(&b);
    // A site that is excluded or fixed does not restrict the joint's other operand.
    open_bench(&b,
               "{" THREE ",\"group\":\"joint\",\"exclude\":[\"conv1.w\"],\"fix\":{\"flat:0*\":"
               "\"4\"}}",
               4);
    assert_ok(build(&b));
    assert_tasks(&b, 3, (const char *const[]){"conv1", "conv2", "head"});
    assert_near(cost(&b, "bit_ops", choices), 2592.0 * 8 * 32 + 3888.0 * 16 + 15.0 * 3 * 4);
    close_bench(&b);
}

// ---- Costs ------------------------------------------------------------------------------------

// Expected by hand: weights of 72, 108 and 15 elements with 4, 3 and 5 scales of 4 bytes.
static void test_env_quantize_space__costs(void **state) {
    static const struct {
        uint32_t choices[6];
        double size, bit_ops;
    } rows[] = {
        {{0, 0, 0, 0, 0, 0}, 72 + 16 + 108 + 12 + 15 + 20, 6495.0 * 64},
        {{1, 1, 1, 1, 1, 1}, 36 + 16 + 54 + 12 + 8 + 20, 6495.0 * 16},
        {{2, 2, 2, 2, 2, 2}, 27 + 16 + 41 + 12 + 6 + 20, 6495.0 * 9},
        {{0, 1, 2, 0, 1, 2}, 36 + 16 + 108 + 12 + 6 + 20, 2592.0 * 32 + 3888.0 * 24 + 15.0 * 12},
        {{2, 0, 0, 1, 0, 0}, 72 + 16 + 54 + 12 + 15 + 20, 2592.0 * 24 + 3888.0 * 32 + 15.0 * 64},
    };
    (void)state;
    for (int64_t batch = 4; batch <= 10; batch += 6) {
        struct bench b;
        open_bench(&b, "{" THREE "}", batch);
        assert_ok(build(&b));
        assert_near(reference(&b, "size_bytes"), 780);
        assert_near(reference(&b, "macs"), 6495);
        assert_near(reference(&b, "size_ratio"), 1);
        assert_near(reference(&b, "bit_ops_ratio"), 1);
        assert_near(reference(&b, "bit_ops"), 6495.0 * 1024);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const uint32_t *choices = rows[i].choices;
            assert_near(cost(&b, "size_bytes", choices), rows[i].size);
            assert_near(cost(&b, "size_ratio", choices), rows[i].size / 780);
            assert_near(cost(&b, "bit_ops", choices), rows[i].bit_ops);
            assert_near(cost(&b, "bit_ops_ratio", choices), rows[i].bit_ops / (6495.0 * 1024));
            assert_near(cost(&b, "macs", choices), 6495);
        }
        close_bench(&b);
    }
}

static void test_env_quantize_space__costs_of_schemes(void **state) {
    static const uint32_t zeros[6] = {0};
    static const uint32_t ones[6] = {1, 1, 1, 1, 1, 1};
    struct bench b;
    (void)state;
    // Asymmetric weights have zero points, too; here one scale and one zero point for a whole
    // weight.
    open_bench(&b,
               "{\"choices\":[{\"bits\":8},{\"float\":true}],\"weights\":{\"per_channel\":false,"
               "\"symmetric\":false}}",
               4);
    assert_ok(build(&b));
    assert_near(cost(&b, "size_bytes", zeros), 195 + 3 * 8);
    assert_near(cost(&b, "size_bytes", ones), 780);
    assert_near(cost(&b, "bit_ops_ratio", ones), 1);
    close_bench(&b);
    // Float16 takes two bytes per element and has no scales.
    open_bench(&b, "{\"choices\":[{\"type\":\"float16\"},{\"type\":\"bfloat16\"}]}", 4);
    assert_ok(build(&b));
    assert_near(cost(&b, "size_bytes", zeros), 390);
    assert_near(cost(&b, "size_bytes", ones), 390);
    assert_near(cost(&b, "bit_ops_ratio", ones), 0.25);
    close_bench(&b);
    // Groups of 32 in rows of 18, 36 and 3 elements: one, two and one scale per channel.
    open_bench(&b, "{\"choices\":[{\"bits\":4,\"group_size\":32},{\"bits\":4}]}", 4);
    assert_ok(build(&b));
    assert_near(cost(&b, "size_bytes", zeros), 36 + 54 + 8 + 4 * (4 + 6 + 5));
    assert_near(cost(&b, "size_bytes", ones), 36 + 54 + 8 + 4 * (4 + 3 + 5));
    assert_int_equal(b.space.space.tasks[0].most_expensive_first[0], 0);
    close_bench(&b);
    // Excluded sites are float. The cost of fixed sites is known without a task.
    open_bench(&b,
               "{" THREE ",\"exclude\":[\"conv2.w\",\"x:0\"],\"fix\":{\"head.w\":\"4\","
               "\"conv1.w\":\"float\"}}",
               4);
    assert_ok(build(&b));
    assert_tasks(&b, 2, (const char *const[]){"relu:0", "flat:0"});
    assert_near(cost(&b, "size_bytes", zeros), 288 + 432 + 8 + 20);
    assert_near(cost(&b, "bit_ops", ones), 2592.0 * 1024 + 3888.0 * 4 * 32 + 15.0 * 4 * 4);
    close_bench(&b);
}

// Activations have no groups, so choices that differ only in groups are one choice for them.
static void test_env_quantize_space__groups_of_activations(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b,
               "{\"choices\":[{\"bits\":4,\"group_size\":32},{\"bits\":8},{\"bits\":4},"
               "{\"bits\":4,\"observer\":\"mse\"},{\"bits\":4,\"group_size\":64}]}",
               4);
    assert_ok(build(&b));
    const struct msc_space *space = &b.space.space;
    size_t n_weights = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        bool is_weight = space->tasks[t].features[3] == 1;
        n_weights += is_weight;
        assert_int_equal(space->tasks[t].n_choices, is_weight ? 5 : 3);
        assert_string_equal(space->tasks[t].labels[0], "4 g32");
        assert_string_equal(space->tasks[t].labels[1], "8");
        assert_string_equal(space->tasks[t].labels[2], is_weight ? "4" : "4 mse");
        assert_int_equal(b.space.choices_of_task[t][2], is_weight ? 2 : 3);
        // For the baselines "4" and "4 g64", activations take the choice "4 g32", which means the
        // same for them.
        assert_int_equal(space->baselines[2].choices[t], is_weight ? 2 : 0);
        assert_int_equal(space->baselines[3].choices[t], is_weight ? 3 : 2);
        assert_int_equal(space->baselines[4].choices[t], is_weight ? 4 : 0);
    }
    assert_int_equal(n_weights, 3);
    // 6495 products of 4 by 4 bits.
    assert_near(cost(&b, "bit_ops", space->baselines[4].choices), 6495.0 * 16);
    assert_near(cost(&b, "bit_ops", space->baselines[1].choices), 6495.0 * 64);
    close_bench(&b);
}

// Choices that differ only in the observer: weights and activations have different default
// observers.
static void test_env_quantize_space__observers_of_kinds(void **state) {
    struct bench b;
    (void)state;
    open_bench(
        &b,
        "{\"observers\":{\"weights\":\"minmax\",\"activations\":\"mse\"},\"choices\":["
        "{\"bits\":8},{\"bits\":8,\"observer\":\"minmax\"},{\"bits\":8,\"observer\":\"mse\"}]}",
        4);
    assert_ok(build(&b));
    const struct msc_space *space = &b.space.space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        bool is_weight = space->tasks[t].features[3] == 1;
        assert_int_equal(space->tasks[t].n_choices, 2);
        assert_string_equal(space->tasks[t].labels[0], "8");
        assert_string_equal(space->tasks[t].labels[1], is_weight ? "8 mse" : "8 minmax");
        assert_int_equal(space->baselines[1].choices[t], is_weight ? 0 : 1);
        assert_int_equal(space->baselines[2].choices[t], is_weight ? 1 : 0);
    }
    close_bench(&b);
}

static void test_env_quantize_space__nothing_left(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" THREE ",\"fix\":{\"*\":\"8\"}}", 4);
    assert_int_equal(build(&b), MSC_E_INVALID);
    assert_message("every site is fixed");
    close_bench(&b);
}

// ---- A weight and a tensor with several consumers ---------------------------------------------

static int32_t add_linear(struct msc_graph *g, const char *name, int32_t x, int32_t w) {
    int32_t joint;
    struct msc_joint_spec spec = {.op = MSC_OP_LINEAR,
                                  .name = name,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &(struct msc_weight_spec){"weight", w}};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

// x [1,4] -> first (w) -> second (w again) -> product of the result with itself.
static void open_shared(struct bench *b, const char *config) {
    static const int64_t dims[2] = {2, 4};
    static const int64_t square[2] = {4, 4};
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {2, 4}};
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_graph *g;
    int32_t x, w, joint;
    memset(b, 0, sizeof(*b));
    assert_ok(msc_graph_create(&g, "shared"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    struct msc_array *a = quantize_array(2, square, 5);
    assert_ok(msc_graph_add_weight(&w, g, "w", NULL, "OI", a));
    msc_array_release(a);
    x = add_linear(g, "second", add_linear(g, "first", x, w), w);
    int32_t turned;
    assert_ok(
        msc_graph_add_joint(&joint, g,
                            &(struct msc_joint_spec){.op = MSC_OP_PERMUTE_DIMS,
                                                     .name = "turned",
                                                     .n_inputs = 1,
                                                     .inputs = &x,
                                                     .n_attrs = 1,
                                                     .attrs = &(struct msc_attr){"axes", "1,0"}}));
    turned = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(
        msc_graph_add_joint(&joint, g,
                            &(struct msc_joint_spec){.op = MSC_OP_MATMUL,
                                                     .name = "product",
                                                     .n_inputs = 2,
                                                     .inputs = (const int32_t[]){x, turned}}));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    b->c.g = g;
    a = quantize_array(2, dims, 6);
    assert_ok(msc_dataset_create(&b->c.data, &spec, &a, 1, NULL, 1));
    msc_array_release(a);
    assert_ok(msc_backend_open(&b->c.backend, "cpu", &options));
    o.backend = b->c.backend;
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_evaluator_create(&b->c.ev, g, b->c.data, &wanted, 1, &o));
    assert_ok(quantize_create(&b->q, g, config));
    assert_ok(msc_quantizer_calibrate(b->q, b->c.ev, NULL, NULL));
    assert_ok(build(b));
}

static void test_env_quantize_space__shared(void **state) {
    struct bench b;
    (void)state;
    open_shared(&b, "{" THREE "}");
    assert_tasks(&b, 5, (const char *const[]){"x:0", "w", "first:0", "second:0", "turned:0"});
    // The weight is stored once and used twice: 2 rows * 4 * 4 products for each use, and 2 * 2 * 4
    // in the last product.
    const uint32_t choices[5] = {0, 1, 2, 0, 1};
    assert_near(reference(&b, "size_bytes"), 64);
    assert_near(cost(&b, "size_bytes", choices), 8 + 16);
    assert_near(cost(&b, "bit_ops", choices), 32.0 * 8 * 4 + 32.0 * 3 * 4 + 16.0 * 8 * 4);
    close_bench(&b);
    // Joints that share a weight share a decision; a joint without a weight has its own.
    open_shared(&b, "{" THREE ",\"group\":\"joint\"}");
    assert_tasks(&b, 2, (const char *const[]){"first", "product"});
    assert_near(cost(&b, "bit_ops", choices), 64.0 * 64 + 16.0 * 16);
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_space__tasks),
        cmocka_unit_test(test_env_quantize_space__features_of_choices),
        cmocka_unit_test(test_env_quantize_space__without_labels),
        cmocka_unit_test(test_env_quantize_space__rows_of_metrics),
        cmocka_unit_test(test_env_quantize_space__lists_of_metrics),
        cmocka_unit_test(test_env_quantize_space__baselines),
        cmocka_unit_test(test_env_quantize_space__most_expensive_first),
        cmocka_unit_test(test_env_quantize_space__groups),
        cmocka_unit_test(test_env_quantize_space__costs),
        cmocka_unit_test(test_env_quantize_space__costs_of_schemes),
        cmocka_unit_test(test_env_quantize_space__groups_of_activations),
        cmocka_unit_test(test_env_quantize_space__observers_of_kinds),
        cmocka_unit_test(test_env_quantize_space__nothing_left),
        cmocka_unit_test(test_env_quantize_space__shared),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
