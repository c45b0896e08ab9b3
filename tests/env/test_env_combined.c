// The environment that prunes channels and chooses bit widths together: losses, costs, features,
// strategies, threads, and searches one after another. Losses come from
// make_combined_expected.py.
#include "env/env.h"

#include "env/distill.h"
#include "env/trial_runs.h"
#include "graph/passes/prune.h"
#include "tests/env/quantize_bench.h"

#include <math.h>
#include <stdio.h>

// Tasks: the channels of conv1 and conv2, then the bits of these sites.
enum { X, CONV1, RELU, CONV2, FLAT, HEAD, N_SITES };
static const char *const sites[N_SITES] = {"x:0",     "conv1.w", "relu:0",
                                           "conv2.w", "flat:0",  "head.w"};
enum { N_TASKS = 2 + N_SITES };

// Printed by make_combined_expected.py: the number of kept channels (of 4 in conv1 and 3 in conv2),
// and the bits in the order of the enum above.
static const struct plan {
    bool repairs;
    int kept[2], bits[N_SITES];
    double loss;
} plans[] = {
    {true, {2, 2}, {8, 8, 8, 8, 8, 8}, 0.0171208847},
    {true, {2, 2}, {4, 4, 4, 4, 4, 4}, 0.0156478084},
    {true, {4, 2}, {8, 4, 8, 4, 8, 8}, 0.0200995765},
    {true, {2, 3}, {8, 4, 4, 8, 8, 4}, 0.030923471},
    {true, {1, 1}, {8, 8, 8, 4, 8, 4}, 0.0552817162},
    {true, {4, 3}, {4, 4, 4, 4, 4, 4}, 0.0282789196},
    {false, {2, 2}, {8, 8, 8, 8, 8, 8}, 0.621483688},
    {false, {2, 2}, {4, 4, 4, 4, 4, 4}, 0.643317114},
    {false, {4, 2}, {8, 4, 8, 4, 8, 8}, 0.549810622},
    {false, {2, 3}, {8, 4, 4, 8, 8, 4}, 0.365603314},
    {false, {1, 1}, {8, 8, 8, 4, 8, 4}, 0.880657808},
    {false, {4, 3}, {4, 4, 4, 4, 4, 4}, 0.0282789196},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

// The densities keep all channels, half of them, and one channel.
static void write_config(char out[768], bool repairs, const char *choices) {
    snprintf(out, 768,
             "{\"type\":\"joint\",\"prune\":{\"repair\":%s,\"choices\":[{\"density\":1},"
             "{\"density\":0.6},{\"density\":0.3}]},\"target\":\"generic\",\"sites\":\"inputs\","
             "\"choices\":[%s]}",
             repairs ? "true" : "false", choices);
}

static const char plain[] = "{\"bits\":8},{\"bits\":4},{\"float\":true}";
static const char rounded[] =
    "{\"bits\":8},{\"bits\":4,\"rounding\":\"descent\",\"observer\":\"hessian\"},"
    "{\"bits\":3,\"rounding\":\"gptq\",\"correct\":\"affine\"}";

static void choices_of(uint32_t choices[N_TASKS], const struct bench *b, const struct plan *p) {
    const struct msc_space *space = msc_env_space(b->env);
    assert_int_equal(space->n_tasks, N_TASKS);
    choices[0] = p->kept[0] == 4 ? 0 : p->kept[0] == 2 ? 1 : 2;
    choices[1] = p->kept[1] == 3 ? 0 : p->kept[1] == 2 ? 1 : 2;
    for (size_t t = 2; t < N_TASKS; t++) {
        size_t i = 0;
        while (strcmp(space->tasks[t].name, sites[i]) != 0) {
            i++;
            assert_true(i < N_SITES);
        }
        choices[t] = p->bits[i] == 8 ? 0 : 1;
    }
}

// ---- Losses -----------------------------------------------------------------------------------

static void test_env_combined__losses(void **state) {
    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        char config[768];
        struct bench b;
        write_config(config, repairs, plain);
        open_bench(&b, config);
        for (int i = 0; i < N_PLANS; i++) {
            uint32_t choices[N_TASKS];
            choices_of(choices, &b, &plans[i]);
            if (plans[i].repairs == (bool)repairs) {
                struct msc_outcome o = evaluate(&b, choices);
                assert_near(metric(&b, &o, "distill_loss"), plans[i].loss, 2e-4);
            }
        }
        close_bench(&b);
    }
}

// If all channels are kept, the losses equal the losses of `quantize`. If nothing is quantised,
// they equal the losses of `prune`.
static void test_env_combined__parts(void **state) {
    (void)state;
    char config[768];
    struct bench b, q, p;
    write_config(config, true, rounded);
    open_bench(&b, config);
    snprintf(config, sizeof config,
             "{\"type\":\"quantize\",\"target\":\"generic\",\"sites\":\"inputs\",\"choices\":[%s]}",
             rounded);
    open_bench(&q, config);
    const uint32_t bits[] = {0, 0, 1, 2, 0, 1, 0, 2};
    struct msc_outcome one = evaluate(&b, bits), other = evaluate(&q, bits + 2);
    assert_true(metric(&b, &one, "distill_loss") == metric(&q, &other, "distill_loss"));
    static const char *const names[] = {"size_bytes", "size_ratio", "bit_ops", "bit_ops_ratio",
                                        "macs"};
    for (int i = 0; i < 5; i++) {
        assert_near(metric(&b, &one, names[i]), metric(&q, &other, names[i]), 1e-12);
    }
    close_bench(&q);
    close_bench(&b);
    write_config(config, true, plain);
    open_bench(&b, config);
    open_bench(&p, "{\"type\":\"prune\",\"choices\":[{\"density\":1},{\"density\":0.6},"
                   "{\"density\":0.3}]}");
    const uint32_t floats[] = {1, 2, 2, 2, 2, 2, 2, 2};
    one = evaluate(&b, floats), other = evaluate(&p, floats);
    assert_true(metric(&b, &one, "distill_loss") == metric(&p, &other, "distill_loss"));
    assert_near(metric(&b, &one, "size_bytes"), metric(&p, &other, "size_bytes"), 1e-12);
    assert_near(metric(&b, &one, "macs_ratio"), metric(&p, &other, "macs_ratio"), 1e-12);
    close_bench(&p);
    close_bench(&b);
}

// ---- Costs ------------------------------------------------------------------------------------

// Worked out by hand for `a` kept channels of conv1 and `c` of conv2. The weights have 18 a, 9 a c
// and 5 c elements, rounded up to bytes. Each of their a, c and 5 rows has a 4-byte scale. MACs are
// 36 * 18 a, 36 * 9 a c and 5 c.
static void test_env_combined__costs(void **state) {
    (void)state;
    char config[768];
    struct bench b;
    write_config(config, true, plain);
    open_bench(&b, config);
    const struct msc_space *space = msc_env_space(b.env);
    const struct msc_cost *size = msc_space_find_cost(space, "size_bytes");
    const struct msc_cost *bit_ops = msc_space_find_cost(space, "bit_ops");
    const struct msc_cost *ratio = msc_space_find_cost(space, "bit_ops_ratio");
    assert_string_equal(space->tasks[0].name, "conv1.w channels");
    for (int i = 0; i < N_PLANS; i++) {
        const struct plan *p = &plans[i];
        uint32_t choices[N_TASKS];
        choices_of(choices, &b, p);
        double a = p->kept[0], c = p->kept[1];
        double bytes = ceil(18 * a * p->bits[CONV1] / 8) + ceil(9 * a * c * p->bits[CONV2] / 8) +
                       ceil(5 * c * p->bits[HEAD] / 8) + 4 * (a + c + 5);
        double ops = 36 * 18 * a * p->bits[X] * p->bits[CONV1] +
                     36 * 9 * a * c * p->bits[RELU] * p->bits[CONV2] +
                     5 * c * p->bits[FLAT] * p->bits[HEAD];
        assert_near(msc_cost_value(size, choices), bytes, 1e-12);
        assert_near(msc_cost_value(bit_ops, choices), ops, 1e-12);
        assert_near(msc_cost_value(ratio, choices), ops / 1024 / (36 * 18 * 4 + 36 * 9 * 12 + 15),
                    1e-12);
    }
    close_bench(&b);
}

// Channel tasks have the feature density; bit tasks have the others.
static void test_env_combined__features_of_choices(void **state) {
    (void)state;
    char config[768];
    struct bench b;
    write_config(config, true, plain);
    open_bench(&b, config);
    const struct msc_space *space = msc_env_space(b.env);
    assert_int_equal(space->n_choice_features, 5);
    assert_int_equal(space->n_neighbours, 11); // of the tasks of bits, which follow two of channels
    assert_true(space->neighbours[0][0] == 2 && space->neighbours[0][1] == 3);
    assert_true(space->neighbours[10][0] == 6 && space->neighbours[10][1] == 7);
    assert_string_equal(space->choice_feature_names[0], "bits");
    assert_string_equal(space->choice_feature_names[4], "density");
    const double *f = space->tasks[1].choice_features; // conv2: 3, 2 and 1 of 3 channels
    assert_true(isnan(f[0]) && isnan(f[3]) && f[4] == 1);
    assert_true(f[5 + 4] == 2.0 / 3 && f[10 + 4] == 1.0 / 3);
    f = space->tasks[2 + CONV1].choice_features; // the choices are 8 bits, 4 bits and float
    assert_true(f[0] == 8 && f[5] == 4 && f[10] == 32);
    assert_true(f[3] > 0 && f[5 + 3] > f[3] && f[10 + 3] == 0);
    assert_true(isnan(f[4]));
    close_bench(&b);
}

// ---- Strategies -------------------------------------------------------------------------------

// The pruned and quantised graph that a strategy makes has the loss of the trial.
static void check_strategy(struct bench *b, const uint32_t choices[]) {
    struct msc_strategy *s = strategy_of(b, choices);
    struct msc_trial_runs *r = msc_trial_runs_of(b->env);
    struct msc_outcome o = evaluate(b, choices);
    struct msc_graph *small;
    struct msc_distill *d;
    struct msc_sites found;
    const struct msc_edit *edits[16] = {NULL};
    struct msc_array_list reference = {0};
    assert_ok(msc_strategy_prune(&small, s, b->c.g));
    struct msc_env_host host = b->host;
    host.graph = small;
    const struct msc_distill_options options = {.kind = MSC_LOSS_MSE};
    assert_ok(msc_distill_create(&d, &host, b->c.data, &options));
    assert_ok(msc_distill_save_reference(r->distill, &reference));
    assert_ok(msc_distill_load_reference(d, &reference));
    assert_ok(msc_sites_find(&found, small, NULL));
    assert_in_range(found.n_slots, 1, 16);
    assert_ok(msc_strategy_apply_to_any(s, small, &found, edits));
    struct msc_distill_run run = {.edits = edits};
    assert_ok(msc_distill_run(d, &run, 1, NULL, NULL));
    assert_ok(run.status);
    assert_near(run.loss, metric(b, &o, "distill_loss"), 1e-5);
    msc_sites_finish(&found);
    msc_array_list_finish(&reference);
    msc_distill_destroy(d);
    msc_graph_destroy(small);
    msc_strategy_destroy(s);
}

static void test_env_combined__strategies(void **state) {
    (void)state;
    static const uint32_t points[][N_TASKS] = {{1, 1, 0, 1, 0, 1, 0, 1},
                                               {2, 0, 1, 2, 1, 2, 0, 1},
                                               {0, 2, 0, 1, 1, 2, 1, 2},
                                               {1, 2, 2, 0, 0, 1, 2, 0}};
    for (int i = 0; i < 4; i++) {
        char config[768];
        struct bench b;
        write_config(config, i % 2 == 0, i < 2 ? rounded : plain);
        open_bench(&b, config);
        for (size_t k = 0; k < sizeof points / sizeof points[0]; k++) {
            check_strategy(&b, points[k]);
        }
        close_bench(&b);
    }
}

// ---- Threads and memory -----------------------------------------------------------------------

// The losses are equal bit by bit with any number of threads, evaluated together or one by one, and
// with little memory.
static void test_env_combined__threads(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 4};
    double losses[3][2][N_PLANS];
    for (int i = 0; i < 3; i++) {
        char config[768];
        struct bench b;
        struct msc_trial *trials[N_PLANS];
        prepare_bench(&b, threads[i], 4);
        b.host.memory_bytes = i == 1 ? (uint64_t)1 << 18 : b.host.memory_bytes;
        write_config(config, true, rounded);
        assert_ok(create(&b, config));
        for (int k = 0; k < N_PLANS; k++) {
            uint32_t choices[N_TASKS];
            choices_of(choices, &b, &plans[k]);
            trials[k] = make_trial(&b, k, choices);
        }
        const struct msc_evaluation e = {.trials = trials, .n = N_PLANS};
        assert_ok(msc_env_evaluate(b.env, &b.goal, &e));
        for (int k = 0; k < N_PLANS; k++) {
            uint32_t choices[N_TASKS];
            choices_of(choices, &b, &plans[k]);
            struct msc_outcome o = evaluate(&b, choices);
            losses[i][0][k] = metric(&b, &trials[k]->outcome, "distill_loss");
            losses[i][1][k] = metric(&b, &o, "distill_loss");
            assert_true(losses[i][0][k] == losses[0][0][k] && losses[i][1][k] == losses[0][0][k]);
        }
        close_bench(&b);
    }
}

// ---- Searches one after another ---------------------------------------------------------------

// Searches bits for a pruned strategy. The search covers the remaining channels, and compares
// outputs with the outputs of the unpruned model.
static void test_env_combined__in_turn(void **state) {
    (void)state;
    char config[512];
    struct bench b;
    open_bench(&b, "{\"type\":\"prune\",\"choices\":[{\"density\":1},{\"density\":0.6},"
                   "{\"density\":0.3}]}");
    const uint32_t half[] = {1, 1};
    struct msc_outcome o = evaluate(&b, half);
    double loss = metric(&b, &o, "distill_loss");
    struct msc_strategy *base = strategy_of(&b, half);
    close_env(&b);
    b.host.base = base;
    snprintf(config, sizeof config,
             "{\"type\":\"quantize\",\"target\":\"generic\",\"sites\":\"inputs\",\"choices\":[%s]}",
             plain);
    assert_ok(create(&b, config));
    const uint32_t floats[] = {2, 2, 2, 2, 2, 2}, bytes[] = {0, 0, 0, 0, 0, 0};
    o = evaluate(&b, floats);
    assert_near(metric(&b, &o, "distill_loss"), loss, 1e-5);
    assert_near(metric(&b, &o, "size_ratio"), (18 * 2 + 9 * 4 + 5 * 2) / 195.0, 1e-12);
    o = evaluate(&b, bytes);
    assert_near(metric(&b, &o, "bit_ops_ratio"),
                (36 * 18 * 2 + 36 * 9 * 4 + 10) / 16.0 / (36 * 18 * 4 + 36 * 9 * 12 + 15), 1e-12);
    struct msc_strategy *both = strategy_of(&b, bytes);
    assert_int_equal(msc_strategy_n_edits(both), 6);
    close_env(&b);
    // A quantised strategy cannot be the base of pruning; a pruned one can.
    b.host.base = both;
    assert_int_equal(create(&b, "{\"type\":\"prune\"}"), MSC_E_UNSUPPORTED);
    assert_int_equal(create(&b, "{\"type\":\"joint\"}"), MSC_E_UNSUPPORTED);
    b.host.base = base;
    assert_ok(create(&b, "{\"type\":\"prune\",\"choices\":[{\"density\":1},{\"density\":0.5}]}"));
    const uint32_t once_more[] = {1, 1};
    o = evaluate(&b, once_more);
    assert_near(metric(&b, &o, "size_ratio"), (18 + 9 + 5) / 195.0, 1e-12);
    loss = metric(&b, &o, "distill_loss");
    struct msc_strategy *twice = strategy_of(&b, once_more);
    close_env(&b);
    b.host.base = twice; // `twice` is a strategy of the whole model
    assert_ok(create(&b, config));
    o = evaluate(&b, floats);
    assert_near(metric(&b, &o, "distill_loss"), loss, 1e-5);
    close_env(&b);
    b.host.base = NULL;
    msc_strategy_destroy(twice);
    msc_strategy_destroy(both);
    msc_strategy_destroy(base);
    close_bench(&b);
}

// Channels of compared tensors cannot be pruned, because the loss compares them.
static void test_env_combined__compared(void **state) {
    (void)state;
    struct bench b;
    open_bench(&b, "{\"type\":\"joint\",\"loss_tensors\":[\"relu:0\"],\"choices\":[{\"bits\":8}]}");
    assert_string_equal(msc_env_space(b.env)->tasks[0].name, "conv2.w channels");
    assert_string_equal(msc_env_space(b.env)->tasks[1].name, "x:0");
    close_env(&b);
    assert_ok(create(&b, "{\"type\":\"prune\",\"loss_tensors\":[\"conv2:0\"]}"));
    assert_int_equal(msc_env_space(b.env)->n_tasks, 1);
    assert_string_equal(msc_env_space(b.env)->tasks[0].name, "conv1.w");
    close_env(&b);
    assert_int_equal(create(&b, "{\"type\":\"prune\",\"loss_tensors\":[\"relu:0\",\"conv2:0\"]}"),
                     MSC_E_INVALID);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_combined__losses),
        cmocka_unit_test(test_env_combined__parts),
        cmocka_unit_test(test_env_combined__costs),
        cmocka_unit_test(test_env_combined__features_of_choices),
        cmocka_unit_test(test_env_combined__strategies),
        cmocka_unit_test(test_env_combined__threads),
        cmocka_unit_test(test_env_combined__in_turn),
        cmocka_unit_test(test_env_combined__compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
