// The environment `quantize`: losses, evaluation in parts and by other environments, bounds,
// bitwise reproducibility, strategies, file sizes and the report. Losses come from
// make_quantize_expected.py.
#include "env/env.h"

#include "base/clock.h"
#include "base/rng.h"
#include "graph/onnx/onnx.h"
#include "tests/env/quantize_bench.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_TASKS = 6, N_TRIALS = 24 };

// ---- Losses -----------------------------------------------------------------------------------

// Printed by make_quantize_expected.py, in the order of the tasks: x:0, conv1.w, relu:0, conv2.w,
// flat:0, head.w.
static const struct {
    uint32_t choices[N_TASKS];
    double losses[3]; // with mse, kl and cosine
    double accuracy;
} plans[] = {
    {{0, 0, 0, 0, 0, 0}, {0.000185368015, 0.000109562545, 7.31665981e-05}, 0.8},
    {{1, 1, 1, 1, 1, 1}, {0.0282789196, 0.0109313804, 0.00585734712}, 0.7},
    {{2, 2, 2, 2, 2, 2}, {0.0644433859, 0.397357659, 0.0290230588}, 0.5},
    {{0, 1, 0, 2, 0, 1}, {0.040303348, 0.0394035215, 0.0141535168}, 0.6},
    {{1, 3, 2, 0, 3, 3}, {0.0025792576, 0.0016933909, 0.00106423926}, 0.8},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

static void test_env_quantize__losses(void **state) {
    static const char *const configs[] = {"{" CHOICES "}", "{\"loss\":\"kl\"," CHOICES "}",
                                          "{\"loss\":\"cosine\"," CHOICES "}"};
    (void)state;
    for (int loss = 0; loss < 3; loss++) {
        struct bench b;
        open_bench(&b, configs[loss]);
        for (int i = 0; i < N_PLANS; i++) {
            struct msc_outcome o = evaluate(&b, plans[i].choices);
            assert_int_equal(o.state, MSC_TRIAL_COMPLETE);
            assert_near(metric(&b, &o, "distill_loss"), plans[i].losses[loss], 1e-4);
            assert_near(metric(&b, &o, "accuracy"), plans[i].accuracy, 1e-12);
        }
        // With all sites float the loss is 0.
        const uint32_t none[N_TASKS] = {3, 3, 3, 3, 3, 3};
        struct msc_outcome o = evaluate(&b, none);
        assert_true(metric(&b, &o, "distill_loss") == 0);
        assert_near(metric(&b, &o, "size_ratio"), 1, 1e-12);
        close_bench(&b);
    }
}

static void test_env_quantize__reference(void **state) {
    double metrics[MSC_MAX_METRICS];
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    assert_ok(msc_env_reference(b.env, metrics));
    const struct msc_space *space = msc_env_space(b.env);
    assert_true(metrics[msc_space_find_metric(space, "distill_loss")] == 0);
    assert_near(metrics[msc_space_find_metric(space, "accuracy")], 0.8, 1e-12);
    assert_true(metrics[msc_space_find_metric(space, "size_bytes")] == 780);
    assert_true(metrics[msc_space_find_metric(space, "size_ratio")] == 1);
    assert_true(metrics[msc_space_find_metric(space, "macs")] == 6495);
    close_bench(&b);
}

// 10 samples in batches of 4, evaluated batch by batch, give the same loss, bit by bit, as one
// evaluation of all batches. The loss after each batch equals the loss of a trial that a bound
// stops after this batch.
static void test_env_quantize__parts(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    struct msc_trial *trials[N_PLANS];
    double *terms[N_PLANS];
    assert_int_equal(msc_env_n_batches(b.env), 3);
    for (int i = 0; i < N_PLANS; i++) {
        trials[i] = make_trial(&b, i, plans[i].choices);
        terms[i] = msc_arena_array(&b.arena, msc_env_n_terms(b.env), sizeof(double));
        assert_non_null(terms[i]);
    }
    const struct msc_evaluation e = {.trials = trials, .n = N_PLANS};
    for (size_t batch = 0; batch < 3; batch++) {
        const struct msc_env_part part = {.first = batch, .end = batch + 1, .terms = terms};
        assert_ok(msc_env_evaluate_part(b.env, &b.goal, &e, &part));
        for (int i = 0; i < N_PLANS && batch < 2; i++) {
            assert_int_equal(trials[i]->outcome.state, MSC_TRIAL_PRUNED);
            assert_true(msc_goal_is_estimate(&b.goal, trials[i]));
            assert_true(isnan(metric(&b, &trials[i]->outcome, "accuracy")));
            assert_true(metric(&b, &trials[i]->outcome, "distill_loss") ==
                        msc_env_partial_loss(b.env, terms[i], batch + 1));
        }
    }
    struct msc_trial *stopped = make_trial(&b, N_PLANS, plans[2].choices);
    stopped->proposal.bound = 0;
    assert_ok(
        msc_env_evaluate(b.env, &b.goal, &(struct msc_evaluation){.trials = &stopped, .n = 1}));
    assert_true(stopped->outcome.metrics[0] == msc_env_partial_loss(b.env, terms[2], 1));
    for (int i = 0; i < N_PLANS; i++) {
        struct msc_outcome whole = evaluate(&b, plans[i].choices);
        assert_int_equal(trials[i]->outcome.state, whole.state);
        assert_string_equal(trials[i]->outcome.reason, "");
        assert_memory_equal(trials[i]->outcome.metrics, whole.metrics,
                            msc_env_space(b.env)->n_metrics * sizeof(double));
    }
    close_bench(&b);
}

// Evaluates batches one by one, last batch first, in another environment with the same
// configuration. The environment under test then adds up the results.
static enum msc_status measure_elsewhere(void *payload, const struct msc_evaluation *e,
                                         const struct msc_env_part *part) {
    struct bench *b = payload, other;
    size_t n_batches = msc_env_n_batches(b->env);
    assert_null(part);
    open_bench(&other, "{" CHOICES "}");
    struct msc_part_found *found = msc_arena_array(&b->arena, e->n, sizeof(struct msc_part_found));
    double **terms = msc_arena_array(&b->arena, e->n, sizeof(double *));
    assert_non_null(found);
    assert_non_null(terms);
    for (size_t i = 0; i < e->n; i++) {
        terms[i] = msc_arena_array(&b->arena, msc_env_n_terms(b->env), sizeof(double));
        assert_non_null(terms[i]);
        found[i].reason = "";
    }
    for (size_t first = n_batches; first-- > 0;) {
        for (size_t i = 0; i < e->n; i++) {
            double *own = msc_arena_array(&other.arena, msc_env_n_terms(b->env), sizeof(double));
            struct msc_trial *trial = make_trial(&other, (int)i, e->trials[i]->proposal.choices);
            const struct msc_env_part alone = {
                .first = first, .end = first + 1, .terms = &own, .kind = MSC_PART_ALONE};
            const struct msc_evaluation one = {.trials = &trial, .n = 1, .bounds = &e->bounds[i]};
            assert_ok(msc_env_measure(other.env, &one, &alone));
            for (size_t sum = 0; sum < msc_env_batches(b->env).n_sums; sum++) {
                terms[i][sum * n_batches + first] = own[sum * n_batches + first];
            }
            found[i].n_batches++;
        }
    }
    close_bench(&other);
    const struct msc_env_part fold = {
        .end = n_batches, .terms = terms, .kind = MSC_PART_FOLD, .found = found};
    return msc_env_fold(b->env, e, &fold);
}

// Batches measured by another environment give the same outcomes, bit by bit, as batches measured
// here. This includes trials that a bound stops and trials that break bounds of the search.
static void test_env_quantize__elsewhere(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    const struct msc_env_elsewhere elsewhere = {.measure = measure_elsewhere, .payload = &b};
    for (int i = 0; i < N_PLANS; i++) {
        for (int bounded = 0; bounded < 2; bounded++) {
            struct msc_trial *here = make_trial(&b, 0, plans[i].choices);
            struct msc_trial *there = make_trial(&b, 0, plans[i].choices);
            here->proposal.bound = bounded ? plans[i].losses[0] * 0.6 : INFINITY;
            there->proposal.bound = here->proposal.bound;
            msc_env_set_elsewhere(b.env, NULL);
            assert_ok(msc_env_evaluate(b.env, &b.goal,
                                       &(struct msc_evaluation){.trials = &here, .n = 1}));
            msc_env_set_elsewhere(b.env, &elsewhere);
            assert_ok(msc_env_evaluate(b.env, &b.goal,
                                       &(struct msc_evaluation){.trials = &there, .n = 1}));
            assert_int_equal(here->outcome.state, there->outcome.state);
            assert_string_equal(here->outcome.reason, there->outcome.reason);
            assert_memory_equal(here->outcome.metrics, there->outcome.metrics,
                                msc_env_space(b.env)->n_metrics * sizeof(double));
        }
    }
    close_bench(&b);
}

// If a trial is evaluated in parts, a bound stops it after the same batch as in an evaluation of
// all batches.
static void test_env_quantize__parts_and_bounds(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    struct msc_trial *trial = make_trial(&b, 0, plans[2].choices);
    struct msc_trial *whole = make_trial(&b, 1, plans[2].choices);
    double *terms = msc_arena_array(&b.arena, msc_env_n_terms(b.env), sizeof(double));
    trial->proposal.bound = whole->proposal.bound = plans[2].losses[0] * 0.999;
    const struct msc_evaluation parts = {.trials = &trial, .n = 1},
                                all = {.trials = &whole, .n = 1};
    assert_ok(msc_env_evaluate(b.env, &b.goal, &all));
    assert_non_null(terms);
    for (size_t first = 0; first < 3; first += 2) {
        const struct msc_env_part part = {
            .first = first, .end = first == 0 ? 2 : 3, .terms = &terms};
        assert_ok(msc_env_evaluate_part(b.env, &b.goal, &parts, &part));
        assert_int_equal(trial->outcome.state, MSC_TRIAL_PRUNED);
        assert_true(msc_goal_is_estimate(&b.goal, trial) == (first == 0));
    }
    assert_string_equal(trial->outcome.reason, whole->outcome.reason);
    assert_memory_equal(trial->outcome.metrics, whole->outcome.metrics,
                        msc_env_space(b.env)->n_metrics * sizeof(double));
    close_bench(&b);
}

// 10 samples in batches of 4. A bound of 0 stops the trial after the first batch, and a bound just
// below the loss after the last. A bound equal to the loss does not stop it.
static void test_env_quantize__stops_at_its_bound(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    double loss = plans[2].losses[0];
    struct msc_trial *trial = make_trial(&b, 0, plans[2].choices);
    const struct msc_outcome *outcome = &trial->outcome;
    struct msc_outcome whole = evaluate(&b, plans[2].choices);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    static const char *const reasons[] = {"over its bound after 4 samples",
                                          "over its bound after 10 samples"};
    for (int i = 0; i < 2; i++) {
        trial->proposal.bound = i == 0 ? 0 : loss * 0.999;
        assert_ok(msc_env_evaluate(b.env, &b.goal, &e));
        assert_int_equal(outcome->state, MSC_TRIAL_PRUNED);
        assert_string_equal(outcome->reason, reasons[i]);
        double found = metric(&b, outcome, "distill_loss");
        assert_true(i == 0 ? found > 0 && found < loss : found == whole.metrics[0]);
        assert_true(isnan(metric(&b, outcome, "accuracy")));
        assert_true(metric(&b, outcome, "size_bytes") == metric(&b, &whole, "size_bytes"));
    }
    trial->proposal.bound = whole.metrics[0];
    assert_ok(msc_env_evaluate(b.env, &b.goal, &e));
    assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
    // With a second objective no trial is stopped.
    trial->proposal.bound = 0;
    b.goal.n_objectives = 2;
    b.goal.objectives[1].metric = msc_space_find_metric(msc_env_space(b.env), "size_bytes");
    assert_ok(msc_env_evaluate(b.env, &b.goal, &e));
    assert_int_equal(outcome->state, MSC_TRIAL_COMPLETE);
    close_bench(&b);
}

// ---- Same bits --------------------------------------------------------------------------------

struct round {
    struct trial_room rooms[N_TRIALS];
    struct msc_trial *trials[N_TRIALS];
    int n_finished;
};

static void draw(struct round *r, const uint32_t order[]) {
    struct msc_rng rng;
    uint32_t drawn[N_TRIALS][N_TASKS];
    msc_rng_seed(&rng, 5, 5);
    for (int t = 0; t < N_TRIALS; t++) {
        for (int k = 0; k < N_TASKS; k++) {
            drawn[t][k] = (uint32_t)msc_rng_below(&rng, 4);
        }
    }
    r->n_finished = 0;
    for (int t = 0; t < N_TRIALS; t++) {
        r->trials[t] = trial_make(&r->rooms[t], t, drawn[order[t]], N_TASKS);
    }
}

static void count_finished(void *payload, size_t index) {
    struct round *r = payload;
    (void)index;
    r->n_finished++;
}

// Evaluates a round in groups of `size`.
static void run_round(struct bench *b, struct round *r, size_t size) {
    for (size_t first = 0; first < N_TRIALS; first += size) {
        size_t n = first + size <= N_TRIALS ? size : N_TRIALS - first;
        const struct msc_evaluation e = {
            .trials = r->trials + first, .n = n, .finished = count_finished, .payload = r};
        double began_s = msc_clock_seconds();
        uint64_t told_us = 0;
        assert_ok(msc_env_evaluate(b->env, &b->goal, &e));
        for (size_t i = 0; i < n; i++) {
            told_us += r->trials[first + i]->outcome.time_us;
        }
        // The trials' times are shares of the elapsed time.
        assert_true(told_us > 0);
        assert_true((double)told_us <= (msc_clock_seconds() - began_s) * 1e6);
    }
    assert_int_equal(r->n_finished, N_TRIALS);
}

// Outcomes are the same with any number of threads, any memory limit, and any order and grouping of
// trials.
static void test_env_quantize__same_bits(void **state) {
    static const struct {
        int n_threads;
        uint64_t memory_bytes;
        size_t size;
    } rows[] = {{1, (uint64_t)1 << 30, N_TRIALS},
                {2, (uint64_t)1 << 30, 7},
                {4, 1 << 16, N_TRIALS},
                {1, 1 << 16, 1},
                {3, 0, 5}};
    static struct round first, other;
    uint32_t order[N_TRIALS];
    struct msc_rng rng;
    (void)state;
    msc_rng_seed(&rng, 1, 1);
    for (uint32_t t = 0; t < N_TRIALS; t++) {
        order[t] = t;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench b;
        struct round *r = i == 0 ? &first : &other;
        prepare_bench(&b, rows[i].n_threads, 4);
        b.host.memory_bytes = rows[i].memory_bytes;
        assert_ok(create(&b, "{" CHOICES "}"));
        draw(r, order);
        run_round(&b, r, rows[i].size);
        for (int t = 0; t < N_TRIALS && i > 0; t++) {
            assert_memory_equal(r->rooms[t].metrics, first.rooms[order[t]].metrics,
                                7 * sizeof(double));
        }
        close_bench(&b);
        msc_rng_shuffle(&rng, order, N_TRIALS);
    }
}

// ---- Strategies -------------------------------------------------------------------------------

// Measured metrics must be equal in every bit. Costs may differ by rounding, because they are added
// in another order if some sites are not tasks.
static void assert_same_outcome(const struct msc_outcome *a, const struct msc_outcome *b) {
    assert_memory_equal(a->metrics, b->metrics, sizeof(a->metrics[0]) * 2);
    for (int i = 2; i < 7; i++) {
        assert_near(a->metrics[i], b->metrics[i], 1e-12);
    }
}

// If a plan is the base of a search over one remaining site, the loss equals the loss of the plan's
// trial, bit by bit.
static void test_env_quantize__edits_reproduce_the_trial(void **state) {
    struct bench b, later;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    for (int i = 0; i < N_PLANS; i++) {
        struct msc_strategy *s = strategy_of(&b, plans[i].choices);
        struct msc_outcome o = evaluate(&b, plans[i].choices);
        size_t n_edits = 0;
        for (int t = 0; t < N_TASKS; t++) {
            n_edits += plans[i].choices[t] != 3;
        }
        assert_int_equal(msc_strategy_n_edits(s), n_edits);
        prepare_bench(&later, 1, 4);
        later.host.base = s;
        assert_ok(create(&later, "{\"include\":[\"relu:0\"]," CHOICES "}"));
        struct msc_outcome again = evaluate(&later, &plans[i].choices[2]);
        assert_same_outcome(&o, &again);
        close_bench(&later);
        msc_strategy_destroy(s);
    }
    close_bench(&b);
}

// Later choices, including float, override the base, both in the trial and in its strategy.
static void test_env_quantize__base_gives_way(void **state) {
    static const uint32_t fours[N_TASKS] = {1, 1, 1, 1, 1, 1};
    static const uint32_t mixed[N_TASKS] = {1, 1, 1, 3, 1, 3};
    static const uint32_t last = 3;
    struct bench b, later;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    struct msc_strategy *base = strategy_of(&b, fours);
    struct msc_outcome o = evaluate(&b, mixed);
    prepare_bench(&later, 1, 4);
    later.host.base = base;
    assert_ok(create(&later,
                     "{\"include\":[\"conv2.w\",\"head.w\"],\"fix\":{\"head.w\":\"float\"}," CHOICES
                     "}"));
    struct msc_outcome found = evaluate(&later, &last);
    assert_same_outcome(&o, &found);
    struct msc_strategy *s = strategy_of(&later, &last);
    assert_int_equal(msc_strategy_n_edits(s), 4);
    msc_strategy_destroy(s);
    close_env(&later);
    // A site fixed to float although no choice is float.
    assert_ok(create(&later, "{\"include\":[\"conv2.w\",\"head.w\"],\"fix\":{\"conv2.w\":\"float\"}"
                             ",\"choices\":[{\"bits\":4}]}"));
    const uint32_t zero = 0;
    const uint32_t without[N_TASKS] = {1, 1, 1, 3, 1, 1};
    o = evaluate(&b, without);
    found = evaluate(&later, &zero);
    assert_same_outcome(&o, &found);
    s = strategy_of(&later, &zero);
    assert_int_equal(msc_strategy_n_edits(s), 5);
    msc_strategy_destroy(s);
    msc_strategy_destroy(base);
    close_bench(&later);
    close_bench(&b);
}

// ---- Files ------------------------------------------------------------------------------------

static double file_bytes(const struct bench *b, const struct msc_onnx_export_options *options) {
    char folder[] = "/tmp/msc_quantize_XXXXXX";
    char path[64];
    struct stat found;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    assert_ok(msc_onnx_save(b->c.g, path, options));
    assert_int_equal(stat(path, &found), 0);
    unlink(path);
    rmdir(folder);
    return (double)found.st_size;
}

// file_bytes is the size of the exported model on disk.
static void test_env_quantize__file_bytes(void **state) {
    double metrics[MSC_MAX_METRICS];
    struct msc_sites sites;
    struct bench b;
    (void)state;
    open_bench(&b, "{\"objectives\":[\"distill_loss\",\"file_bytes\"]," CHOICES "}");
    assert_ok(msc_sites_find(&sites, b.c.g, NULL));
    assert_int_equal(sites.n_slots, N_TASKS);
    int metric_index = msc_space_find_metric(msc_env_space(b.env), "file_bytes");
    assert_ok(msc_env_reference(b.env, metrics));
    assert_true(metrics[metric_index] == file_bytes(&b, NULL));
    for (int i = 0; i < N_PLANS; i++) {
        const struct msc_edit *edits[N_TASKS] = {NULL};
        struct msc_strategy *s = strategy_of(&b, plans[i].choices);
        assert_ok(msc_strategy_apply(s, b.c.g, &sites, edits));
        struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
        struct msc_outcome o = evaluate(&b, plans[i].choices);
        assert_true(metric(&b, &o, "file_bytes") == file_bytes(&b, &options));
        msc_strategy_destroy(s);
    }
    msc_sites_finish(&sites);
    close_bench(&b);
}

// Exporting takes time, so the metric file_bytes exists only if a goal names it.
static void test_env_quantize__file_bytes_when_asked_for(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, "{" CHOICES "}");
    assert_true(msc_space_find_metric(msc_env_space(b.env), "file_bytes") < 0);
    close_env(&b);
    assert_ok(create(&b, "{\"bounds\":{\"file_bytes\":{\"max\":1}}," CHOICES "}"));
    struct msc_outcome o = evaluate(&b, plans[0].choices);
    assert_int_equal(o.state, MSC_TRIAL_INFEASIBLE);
    // file_bytes is measured, so the trial is evaluated before the bound on file_bytes is checked.
    assert_near(metric(&b, &o, "distill_loss"), plans[0].losses[0], 1e-4);
    close_bench(&b);
}

// ---- Report of the best trial -----------------------------------------------------------------

static double number(const cJSON *object, const char *key) {
    double value;
    assert_ok(msc_json_get_double(&value, object, key, "report"));
    return value;
}

static void test_env_quantize__reevaluate(void **state) {
    const cJSON *validation;
    struct bench b;
    cJSON *first, *second;
    (void)state;
    prepare_bench(&b, 2, 4);
    b.host.validation = b.c.data;
    assert_ok(create(&b, "{" CHOICES "}"));
    assert_ok(msc_env_reevaluate(b.env, plans[1].choices, MSC_REEVALUATE_ALL, &first));
    assert_ok(msc_env_reevaluate(b.env, plans[1].choices, MSC_REEVALUATE_ALL, &second));
    assert_true(cJSON_Compare(first, second, true));
    assert_near(number(first, "distill_loss"), plans[1].losses[0], 1e-4);
    assert_near(number(first, "accuracy"), 0.7, 1e-12);
    assert_near(number(first, "isolated_loss_sum"), 0.0213016525, 1e-4);
    // Rounding noise is small: here it moves a value or two that are near a tie.
    assert_true(number(first, "noise") >= 0 && number(first, "noise") < 0.1);
    // Validation on the calibration samples gives the same numbers.
    assert_ok(msc_json_get_object(&validation, first, "validation", "report"));
    assert_true(number(validation, "distill_loss") == number(first, "distill_loss"));
    assert_near(number(validation, "float_accuracy"), 0.8, 1e-12);
    assert_true(number(validation, "samples") == QUANTIZE_SAMPLES);
    cJSON_Delete(first);
    cJSON_Delete(second);
    close_bench(&b);
}

// ---- Bounds -----------------------------------------------------------------------------------

static void test_env_quantize__bounds(void **state) {
    struct bench b;
    (void)state;
    prepare_bench(&b, 1, 4);
    assert_ok(create(&b, "{\"bounds\":{\"size_bytes\":{\"max\":200}}," CHOICES "}"));
    struct msc_outcome o = evaluate(&b, plans[0].choices);
    assert_int_equal(o.state, MSC_TRIAL_INFEASIBLE);
    assert_true(isnan(metric(&b, &o, "distill_loss")));
    assert_near(metric(&b, &o, "size_bytes"), 243, 1e-12);
    assert_near(o.violation, 43.0 / 200, 1e-12);
    o = evaluate(&b, plans[1].choices);
    assert_int_equal(o.state, MSC_TRIAL_COMPLETE);
    close_env(&b);
    assert_int_equal(create(&b, "{\"bounds\":{\"size_bytes\":{\"max\":100}}," CHOICES "}"),
                     MSC_E_INVALID);
    assert_message("122");
    close_bench(&b);
}

// Sizes in a target's file. Weights take whole bytes if the nodes that unpack them would cost more
// than packing saves. A zero point takes one byte, or two for more than 8 bits. With groups, only
// asymmetric weights have zero points, of 4 bytes each.
static void test_env_quantize__target_sizes(void **state) {
    (void)state;
    static const struct {
        const char *config;
        // 72, 108 and 15 integers with 4, 3 and 5 scales. In groups of 32 they have 4, 6 and 5
        // scales.
        double size;
    } rows[] = {
        {"{\"bits\":8}]", 72 + 108 + 15 + 12 * 5},
        {"{\"bits\":6}]", 72 + 108 + 15 + 12 * 5},
        {"{\"bits\":3}]", 36 + 54 + 8 + 12 * 5},
        {"{\"bits\":12}]", 144 + 216 + 30 + 12 * 6},
        {"{\"bits\":3,\"group_size\":32}]", 36 + 54 + 8 + 15 * 4},
        {"{\"bits\":3,\"group_size\":32}],\"weights\":{\"symmetric\":false}", 36 + 54 + 8 + 15 * 8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const uint32_t zeros[16];
        char config[256];
        struct bench b;
        snprintf(config, sizeof(config),
                 "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[%s}", rows[i].config);
        open_bench(&b, config);
        struct msc_outcome o = evaluate(&b, zeros);
        assert_near(metric(&b, &o, "size_bytes"), rows[i].size, 1e-12);
        close_bench(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize__losses),
        cmocka_unit_test(test_env_quantize__reference),
        cmocka_unit_test(test_env_quantize__parts),
        cmocka_unit_test(test_env_quantize__parts_and_bounds),
        cmocka_unit_test(test_env_quantize__stops_at_its_bound),
        cmocka_unit_test(test_env_quantize__same_bits),
        cmocka_unit_test(test_env_quantize__target_sizes),
        cmocka_unit_test(test_env_quantize__edits_reproduce_the_trial),
        cmocka_unit_test(test_env_quantize__elsewhere),
        cmocka_unit_test(test_env_quantize__base_gives_way),
        cmocka_unit_test(test_env_quantize__file_bytes),
        cmocka_unit_test(test_env_quantize__file_bytes_when_asked_for),
        cmocka_unit_test(test_env_quantize__reevaluate),
        cmocka_unit_test(test_env_quantize__bounds),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
