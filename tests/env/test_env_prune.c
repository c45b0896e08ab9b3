// The environment `prune`: channels and single weights, criteria, costs, strategies and parameter
// files. Losses come from make_prune_expected.py.
#include "env/env.h"

#include "data/npy.h"
#include "env/distill.h"
#include "env/trial_runs.h"
#include "graph/channels.h"
#include "graph/passes/prune.h"
#include "tests/env/quantize_bench.h"
#include "tests/graph/channels_case.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// ---- Losses -----------------------------------------------------------------------------------

// Printed by make_prune_expected.py: the number of kept channels (of 4 in conv1 and 3 in conv2),
// and the losses.
static const struct {
    const char *criterion;
    int kept[2];
    double repaired, masked;
} plans[] = {
    {"l1", {2, 3}, 0.0255364911, 0.252296938},      {"l1", {4, 2}, 0.0232567856, 0.201599848},
    {"l1", {2, 2}, 0.0485314426, 0.749860865},      {"l1", {1, 1}, 0.0657527025, 0.918535091},
    {"l2", {2, 3}, 0.0237011655, 0.374721477},      {"l2", {4, 2}, 0.00832466269, 0.481144977},
    {"l2", {2, 2}, 0.0172039206, 0.633748156},      {"l2", {1, 1}, 0.0657527025, 0.918535091},
    {"energy", {2, 3}, 0.0237011655, 0.374721477},  {"energy", {4, 2}, 0.0232567856, 0.201599848},
    {"energy", {2, 2}, 0.0288461754, 0.338067645},  {"energy", {1, 1}, 0.0828668737, 1.02433153},
    {"hessian", {2, 3}, 0.0237011655, 0.374721477}, {"hessian", {4, 2}, 0.00832466269, 0.481144977},
    {"hessian", {2, 2}, 0.0172039206, 0.633748156}, {"hessian", {1, 1}, 0.0657527025, 0.918535091},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

// Choices 0 to 2 keep all channels, half of them, and one.
static void write_config(char out[512], const char *criterion, bool repairs, const char *more) {
    snprintf(out, 512,
             "{\"type\":\"prune\",\"repair\":%s,\"choices\":[{\"density\":1},"
             "{\"density\":0.6,\"criterion\":\"%s\"},{\"density\":0.3,\"criterion\":\"%s\"}]%s}",
             repairs ? "true" : "false", criterion, criterion, more);
}

static void choices_of(uint32_t choices[2], const int kept[2]) {
    choices[0] = kept[0] == 4 ? 0 : kept[0] == 2 ? 1 : 2;
    choices[1] = kept[1] == 3 ? 0 : kept[1] == 2 ? 1 : 2;
}

static void test_env_prune__losses(void **state) {
    char config[512];
    (void)state;
    for (size_t i = 0; i < N_PLANS; i++) {
        for (int repairs = 0; repairs < 2; repairs++) {
            struct bench b;
            uint32_t choices[2];
            write_config(config, plans[i].criterion, repairs, "");
            open_bench(&b, config);
            assert_int_equal(msc_env_space(b.env)->n_tasks, 2);
            choices_of(choices, plans[i].kept);
            struct msc_outcome o = evaluate(&b, choices);
            assert_int_equal(o.state, MSC_TRIAL_COMPLETE);
            assert_near(metric(&b, &o, "distill_loss"),
                        repairs ? plans[i].repaired : plans[i].masked, 2e-4);
            close_bench(&b);
        }
    }
}

// An excluded group keeps all channels, although every choice prunes.
static void test_env_prune__left_out(void **state) {
    struct bench b;
    const uint32_t half[] = {0};
    (void)state;
    open_bench(&b, "{\"type\":\"prune\",\"exclude\":[\"conv2.w\"],"
                   "\"choices\":[{\"density\":0.6,\"criterion\":\"l1\"}]}");
    struct msc_outcome o = evaluate(&b, half);
    assert_near(metric(&b, &o, "distill_loss"), plans[0].repaired, 2e-4);
    assert_near(metric(&b, &o, "size_bytes"), 4 * (36 + 54 + 15), 1e-12);
    close_bench(&b);
}

// The criterion `loss` first prunes the channels whose removal by itself costs the least loss.
static void test_env_prune__by_loss(void **state) {
    char config[512];
    struct bench b;
    (void)state;
    write_config(config, "loss", false, "");
    open_bench(&b, config);
    const uint32_t whole[] = {0, 0};
    assert_true(metric(&b, &(struct msc_outcome){.metrics = evaluate(&b, whole).metrics},
                       "distill_loss") < 1e-10);
    // Two of conv1's four channels are pruned: those whose removal by itself costs the least loss.
    struct msc_sites sites;
    struct msc_channels channels;
    assert_ok(msc_sites_find(&sites, b.c.g, NULL));
    assert_ok(msc_channels_find(&channels, b.c.g, &sites));
    double alone[4];
    struct msc_trial_runs *r = msc_trial_runs_of(b.env);
    for (int u = 0; u < 4; u++) {
        bool is_gone[7] = {false};
        struct msc_channel_masks masks;
        is_gone[u] = true;
        assert_ok(msc_channels_mask(&masks, &channels, b.c.g, &sites, is_gone));
        struct msc_distill_run run = {.edits = masks.edits};
        assert_ok(msc_distill_run(r->distill, &run, 1, NULL, NULL));
        alone[u] = run.loss;
        msc_channel_masks_finish(&masks);
    }
    bool is_gone[7] = {false};
    for (int n = 0; n < 2; n++) {
        int least = -1;
        for (int u = 0; u < 4; u++) {
            least = !is_gone[u] && (least < 0 || alone[u] < alone[least]) ? u : least;
        }
        is_gone[least] = true;
    }
    struct msc_channel_masks masks;
    assert_ok(msc_channels_mask(&masks, &channels, b.c.g, &sites, is_gone));
    struct msc_distill_run run = {.edits = masks.edits};
    assert_ok(msc_distill_run(r->distill, &run, 1, NULL, NULL));
    const uint32_t half[] = {1, 0};
    struct msc_outcome o = evaluate(&b, half);
    assert_near(metric(&b, &o, "distill_loss"), run.loss, 1e-9);
    msc_channel_masks_finish(&masks);
    msc_channels_finish(&channels);
    msc_sites_finish(&sites);
    close_bench(&b);
}

// ---- Costs ------------------------------------------------------------------------------------

// Expected by hand for a and b kept channels: MACs are 36 * 2 * 9 * a for conv1, 36 * 9 * a * b
// for conv2 and 5 * b for the head; 18 a + 9 a b + 5 b weights have 4 bytes each.
static void test_env_prune__costs(void **state) {
    static const int kept[2][3] = {{4, 2, 1}, {3, 2, 1}};
    char config[512];
    struct bench b;
    (void)state;
    write_config(config, "l2", true, "");
    open_bench(&b, config);
    const struct msc_space *space = msc_env_space(b.env);
    assert_string_equal(space->tasks[0].name, "conv1.w");
    assert_string_equal(space->tasks[1].name, "conv2.w");
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t choices[] = {i / 3, i % 3};
        double a = kept[0][i / 3], c = kept[1][i % 3];
        double macs = 36 * 2 * 9 * a + 36 * 9 * a * c + 5 * c;
        double bytes = 4 * (18 * a + 9 * a * c + 5 * c);
        const double all_macs = 36 * 2 * 9 * 4 + 36 * 9 * 12 + 15, all_bytes = 4 * (72 + 108 + 15);
        const double expected[] = {macs, macs / all_macs, bytes, bytes / all_bytes};
        static const char *const names[] = {"macs", "macs_ratio", "size_bytes", "size_ratio"};
        for (int k = 0; k < 4; k++) {
            const struct msc_cost *cost = msc_space_find_cost(space, names[k]);
            assert_non_null(cost);
            assert_near(msc_cost_value(cost, choices), expected[k], 1e-12);
        }
    }
    close_bench(&b);
}

// Only the smallest plan meets the bound; the others are not run.
static void test_env_prune__bounds(void **state) {
    char config[512];
    struct bench b;
    (void)state;
    write_config(config, "l2", true, ",\"bounds\":{\"macs\":{\"max\":1000}}");
    open_bench(&b, config);
    const uint32_t smallest[] = {2, 2}, whole[] = {0, 0};
    assert_int_equal(evaluate(&b, smallest).state, MSC_TRIAL_COMPLETE);
    assert_int_equal(evaluate(&b, whole).state, MSC_TRIAL_INFEASIBLE);
    close_env(&b);
    write_config(config, "l2", true, ",\"bounds\":{\"macs\":{\"max\":900}}");
    assert_int_equal(create(&b, config), MSC_E_INVALID);
    close_bench(&b);
}

// ---- Strategies -------------------------------------------------------------------------------

// The loss of the pruned model that a strategy makes equals the trial's: masks, repaired weights
// and pruning agree.
static struct msc_graph *check_strategy(struct bench *b, const uint32_t choices[]) {
    struct msc_strategy *s = strategy_of(b, choices);
    struct msc_graph *small;
    struct msc_array_list outputs = {0};
    struct msc_distill *d;
    const struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    assert_true(msc_strategy_prunes(s));
    assert_ok(msc_strategy_prune(&small, s, b->c.g));
    struct msc_env_host host = b->host;
    host.graph = small;
    assert_ok(msc_distill_create(&d, &host, b->c.data, &o));
    assert_ok(msc_distill_outputs(d, NULL, &outputs));
    cJSON *object = cJSON_CreateObject();
    assert_ok(msc_env_judge(object, b->env, MSC_SAMPLES_CALIBRATION, &outputs));
    struct msc_outcome trial = evaluate(b, choices);
    assert_near(cJSON_GetObjectItem(object, "distill_loss")->valuedouble,
                metric(b, &trial, "distill_loss"), 1e-4);
    cJSON_Delete(object);
    msc_array_list_finish(&outputs);
    msc_distill_destroy(d);
    msc_strategy_destroy(s);
    return small;
}

static const struct msc_tensor *conv2_of(const struct msc_graph *g) {
    return msc_graph_tensor(g, msc_graph_find_tensor(g, "conv2.w"));
}

static void test_env_prune__strategies(void **state) {
    char config[512];
    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        struct bench b;
        write_config(config, "hessian", repairs, "");
        open_bench(&b, config);
        for (uint32_t i = 1; i <= 2; i++) {
            struct msc_graph *small = check_strategy(&b, (const uint32_t[]){i, 1});
            assert_int_equal(msc_tensor_n_elements(conv2_of(small)), 9 * (i == 1 ? 2 : 1) * 2);
            msc_graph_destroy(small);
        }
        close_bench(&b);
    }
}

// ---- Single weights ---------------------------------------------------------------------------

// Losses printed by make_prune_expected.py. `alone`: 60 % of conv2's weights are removed.
// `with_channels`: two of conv1's four channels are pruned, and 60 % of the weights that remain in
// conv2 are removed.
static const struct {
    const char *criterion;
    bool repairs;
    double alone, with_channels;
} sparse_plans[] = {
    {"l2", true, 0.0172252163, 0.0463710143},
    {"l2", false, 0.0350595808, 0.613081581},
    {"energy", true, 0.0169823609, 0.0369008001},
    {"energy", false, 0.0475319759, 0.490192714},
};

// Tasks: the channels of conv1 and conv2, of which choice 1 keeps half; then the weights of conv1
// and conv2, of which choice 1 removes 60 %.
static void open_sparse(struct bench *b, const char *criterion, bool repairs) {
    char config[512];
    snprintf(config, sizeof config,
             "{\"type\":\"prune\",\"repair\":%s,\"include\":[\"conv?.w\"],\"choices\":["
             "{\"density\":1},{\"density\":0.6,\"criterion\":\"l1\"},"
             "{\"sparsity\":0},{\"sparsity\":0.6,\"criterion\":\"%s\"}]}",
             repairs ? "true" : "false", criterion);
    open_bench(b, config);
    assert_int_equal(msc_env_space(b->env)->n_tasks, 4);
}

static int64_t count_zeros(const struct msc_tensor *t) {
    const float *x = msc_array_data(t->data);
    int64_t n = 0;
    for (int64_t i = 0; i < msc_array_n_elements(t->data); i++) {
        n += x[i] == 0;
    }
    return n;
}

static void test_env_prune__sparse_losses(void **state) {
    static const uint32_t alone[] = {0, 0, 0, 1}, both[] = {1, 0, 0, 1};
    (void)state;
    for (size_t i = 0; i < sizeof(sparse_plans) / sizeof(sparse_plans[0]); i++) {
        struct bench b;
        open_sparse(&b, sparse_plans[i].criterion, sparse_plans[i].repairs);
        struct msc_outcome o = evaluate(&b, alone);
        assert_near(metric(&b, &o, "distill_loss"), sparse_plans[i].alone, 2e-4);
        o = evaluate(&b, both);
        assert_near(metric(&b, &o, "distill_loss"), sparse_plans[i].with_channels, 2e-4);
        close_bench(&b);
    }
}

// Expected by hand: 43 of 108 weights are kept, plus a bit map of 108 bits. With half of the input
// channels, the same share of 54 weights is kept.
static void test_env_prune__sparse_costs(void **state) {
    static const uint32_t alone[] = {0, 0, 0, 1}, both[] = {1, 0, 0, 1};
    struct bench b;
    (void)state;
    open_sparse(&b, "l2", true);
    const struct msc_space *space = msc_env_space(b.env);
    assert_string_equal(space->tasks[3].name, "conv2.w sparsity");
    assert_string_equal(space->tasks[3].labels[1], "sparsity 0.6 l2");
    const struct msc_cost *size = msc_space_find_cost(space, "size_bytes");
    assert_near(msc_cost_value(size, alone), 4 * (72 + 15) + 43 * 4 + 14, 1e-12);
    assert_near(msc_cost_value(size, both), 4 * (36 + 15) + (43 * 4 + 14) / 2.0, 1e-12);
    const struct msc_cost *macs = msc_space_find_cost(space, "macs");
    assert_near(msc_cost_value(macs, alone), 36 * 2 * 9 * 4 + 36 * 9 * 12 + 15, 1e-12);
    // Features of choices: the kept share of 4 channels, and of 108 elements.
    assert_int_equal(space->n_choice_features, 1);
    assert_string_equal(space->choice_feature_names[0], "density");
    assert_true(space->tasks[0].choice_features[0] == 1);
    assert_true(space->tasks[0].choice_features[1] == 0.5);
    assert_true(space->tasks[3].choice_features[0] == 1);
    assert_true(space->tasks[3].choice_features[1] == 43.0 / 108);
    // A uniform baseline that prunes channels leaves single weights unchanged, and vice versa.
    assert_int_equal(space->n_baselines, 4);
    assert_memory_equal(space->baselines[1].choices, ((const uint32_t[]){1, 1, 0, 0}), 16);
    assert_memory_equal(space->baselines[3].choices, ((const uint32_t[]){0, 0, 1, 1}), 16);
    close_bench(&b);
}

// The zeros of the pruned model are exactly the zeros of its sparsity pattern. The loss is the same
// with any number of threads.
static void test_env_prune__sparse_strategies(void **state) {
    static const uint32_t both[] = {1, 0, 0, 1};
    double losses[2];
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct bench b;
        prepare_bench(&b, threads, 4);
        assert_ok(create(
            &b, "{\"type\":\"prune\",\"include\":[\"conv?.w\"],\"choices\":["
                "{\"density\":1},{\"density\":0.6},{\"sparsity\":0},{\"pattern\":\"1:2\"}]}"));
        struct msc_graph *small = check_strategy(&b, both);
        assert_int_equal(msc_tensor_n_elements(conv2_of(small)), 54);
        assert_int_equal(count_zeros(conv2_of(small)), 27);
        // In each pair of neighbouring input channels, exactly one of the two weights at the same
        // kernel position is zero.
        const float *x = msc_array_data(conv2_of(small)->data);
        for (int i = 0; i < 27; i++) {
            int at = i / 9 * 18 + i % 9;
            assert_true((x[at] == 0) != (x[at + 9] == 0));
        }
        struct msc_outcome o = evaluate(&b, both);
        losses[threads - 1] = metric(&b, &o, "distill_loss");
        msc_graph_destroy(small);
        close_bench(&b);
    }
    assert_true(losses[0] == losses[1]);
}

// A saved strategy loads with the same hash. It fits neither another graph nor the same graph with
// other weights.
static void test_env_prune__strategy_files(void **state) {
    char config[512], path[] = "/tmp/msc_prune_XXXXXX";
    struct bench b;
    struct msc_strategy *s, *again;
    struct msc_graph *small;
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    write_config(config, "hessian", true, "");
    open_bench(&b, config);
    s = strategy_of(&b, (const uint32_t[]){1, 2});
    assert_ok(msc_strategy_save(s, b.c.g, path));
    assert_ok(msc_strategy_load(&again, path));
    assert_true(msc_hash_equal(msc_strategy_hash(s), msc_strategy_hash(again)));
    assert_ok(msc_strategy_prune(&small, again, b.c.g));
    assert_int_equal(msc_strategy_prune(&(struct msc_graph *){NULL}, again, small), MSC_E_STATE);
    // A pruned strategy cannot be applied to the sites of the whole graph.
    const struct msc_edit *edits[16] = {NULL};
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, b.c.g, NULL));
    assert_int_equal(msc_strategy_apply(again, b.c.g, &sites, edits), MSC_E_STATE);
    msc_sites_finish(&sites);
    msc_graph_destroy(small);
    msc_strategy_destroy(again);
    msc_strategy_destroy(s);
    close_bench(&b);
    unlink(path);
}

// ---- Files and threads ------------------------------------------------------------------------

static void hash_of(char out[128], struct bench *b) {
    cJSON *object = cJSON_CreateObject();
    assert_ok(msc_env_describe(b->env, object));
    snprintf(out, 128, "%s", cJSON_GetObjectItem(object, "params_hash")->valuestring);
    cJSON_Delete(object);
}

// Parameters read from the file give the same identity and loss, bit by bit, with any number of
// threads.
static void test_env_prune__parameters(void **state) {
    char config[512], path[] = "/tmp/msc_prune_XXXXXX", first[128], now[128];
    double loss = 0;
    (void)state;
    assert_non_null(mkdtemp(path));
    char file[64];
    snprintf(file, sizeof file, "%s/params", path);
    write_config(config, "hessian", true, "");
    for (int i = 0; i < 4; i++) {
        struct bench b;
        const uint32_t choices[] = {1, 1};
        prepare_bench(&b, 1 + i % 2, 4);
        b.host.parameters_path = i < 3 ? file : NULL;
        assert_ok(create(&b, config));
        hash_of(i == 0 ? first : now, &b);
        struct msc_outcome o = evaluate(&b, choices);
        if (i == 0) {
            loss = metric(&b, &o, "distill_loss");
        } else {
            assert_string_equal(now, first);
            assert_true(metric(&b, &o, "distill_loss") == loss);
        }
        close_bench(&b);
    }
    unlink(file);
    rmdir(path);
}

// Trials evaluated together have the same losses as one by one.
static void test_env_prune__together(void **state) {
    char config[512];
    struct bench b;
    struct msc_trial *trials[9];
    (void)state;
    write_config(config, "hessian", true, "");
    open_bench(&b, config);
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t choices[] = {i / 3, i % 3};
        trials[i] = make_trial(&b, i, choices);
    }
    const struct msc_evaluation e = {.trials = trials, .n = 9};
    assert_ok(msc_env_evaluate(b.env, &b.goal, &e));
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t choices[] = {i / 3, i % 3};
        struct msc_outcome o = evaluate(&b, choices);
        assert_true(metric(&b, &o, "distill_loss") ==
                    metric(&b, &trials[i]->outcome, "distill_loss"));
    }
    close_bench(&b);
}

// ---- Few samples ------------------------------------------------------------------------------

// The graph has biases, so moments are taken around the means.
static struct msc_graph *biased_graph(void) {
    const int64_t dims[4] = {-1, 2, 6, 6};
    int32_t prims[4] = {0, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID}, x;
    struct net n = net_begin(5);
    assert_ok(msc_graph_add_symbol(&prims[0], n.g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, n.g, "x", "image", MSC_DTYPE_F32, "NCHW", 4, dims, prims));
    x = net_conv(&n, "first", x, 8, 1, 1);
    x = net_conv(&n, "second", x, 6, 1, 1);
    net_end(&n, 1, &x);
    for (int i = 0; i < 2; i++) {
        const struct msc_array *a =
            msc_graph_tensor(n.g,
                             msc_graph_find_tensor(n.g, i == 0 ? "first.weight" : "first.bias"))
                ->data;
        float *values = msc_array_data(a);
        for (int64_t k = 0; k < msc_array_n_elements(a); k++) {
            values[k] = i == 0 ? values[k] * 1e-4f : 1000.0f + values[k];
        }
    }
    return n.g;
}

// Inputs far from 0 that hardly differ: in float32 their moments around the means are little more
// than rounding noise and not positive definite. Repairing must succeed, and its loss must not
// exceed the loss of only masking.
static void test_env_prune__hardly_different(void **state) {
    double losses[2];
    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        struct bench b;
        char config[512];
        prepare_bench(&b, 1, 4);
        quantize_case_close(&b.c);
        quantize_case_open_graph(&b.c, biased_graph(), "generic");
        b.host.graph = b.c.g;
        b.host.dataset = b.c.data;
        b.host.backend = b.c.backend;
        write_config(config, "hessian", repairs, "");
        assert_ok(create(&b, config));
        const uint32_t choices[] = {1};
        struct msc_outcome o = evaluate(&b, choices);
        assert_int_equal(o.state, MSC_TRIAL_COMPLETE);
        losses[repairs] = metric(&b, &o, "distill_loss");
        close_bench(&b);
    }
    assert_true(losses[1] < 0.01 * losses[0]);
}

// ---- Refused configurations -------------------------------------------------------------------

static void test_env_prune__refused(void **state) {
    static const char *const configs[] = {
        "{\"type\":\"prune\",\"choices\":[]}",
        "{\"type\":\"prune\",\"choices\":[{\"density\":0}]}",
        "{\"type\":\"prune\",\"choices\":[{\"density\":1.5}]}",
        "{\"type\":\"prune\",\"choices\":[{\"criterion\":\"l1\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"density\":0.5,\"criterion\":\"l3\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"density\":0.5},{\"density\":0.5}]}",
        "{\"type\":\"prune\",\"choices\":[{\"density\":0.5,\"sparsity\":0.5}]}",
        "{\"type\":\"prune\",\"choices\":[{\"sparsity\":1}]}",
        "{\"type\":\"prune\",\"choices\":[{\"sparsity\":0.6,\"pattern\":\"2:4\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"pattern\":\"4:2\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"pattern\":\"2:4x\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"pattern\":\"2:4\",\"criterion\":\"loss\"}]}",
        "{\"type\":\"prune\",\"choices\":[{\"pattern\":\"2:4\"}],\"exclude\":[\"*\"]}",
        "{\"type\":\"prune\",\"include\":[\"nothing*\"]}",
        "{\"type\":\"prune\",\"exclude\":[\"*\"]}",
        "{\"type\":\"prune\",\"include\":[1]}",
    };
    struct bench b;
    (void)state;
    prepare_bench(&b, 1, 4);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        assert_int_not_equal(create(&b, configs[i]), MSC_OK);
    }
    assert_ok(create(&b, "{\"type\":\"prune\",\"exclude\":[\"conv1*\"]}"));
    assert_int_equal(msc_env_space(b.env)->n_tasks, 1);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_prune__losses),
        cmocka_unit_test(test_env_prune__left_out),
        cmocka_unit_test(test_env_prune__by_loss),
        cmocka_unit_test(test_env_prune__costs),
        cmocka_unit_test(test_env_prune__bounds),
        cmocka_unit_test(test_env_prune__strategies),
        cmocka_unit_test(test_env_prune__strategy_files),
        cmocka_unit_test(test_env_prune__sparse_losses),
        cmocka_unit_test(test_env_prune__sparse_costs),
        cmocka_unit_test(test_env_prune__sparse_strategies),
        cmocka_unit_test(test_env_prune__parameters),
        cmocka_unit_test(test_env_prune__together),
        cmocka_unit_test(test_env_prune__hardly_different),
        cmocka_unit_test(test_env_prune__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
