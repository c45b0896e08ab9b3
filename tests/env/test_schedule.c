// The environment schedule and what it measures with, on a backend whose steps have made-up
// variants: each product waits as long as its variant says, which is far longer than it computes.
#include "tests/env/quantize_bench.h"

#include "base/alloc.h"
#include "base/file.h"
#include "env/schedule/bench.h"
#include "env/schedule/rows.h"
#include "kernels/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOW, FAST, SLOWER, N_VARIANTS, MOST_STEPS = 64 };

static const char *const names[N_VARIANTS] = {"slow", "fast", "slower"};
static const long waits_ms[N_VARIANTS] = {15, 0, 30};

// What the backend is told, by step. The tests run one after another.
static struct {
    const struct msc_backend_def *def; // of the cpu backend
    const struct msc_step *steps[MOST_STEPS];
    int variants[MOST_STEPS];
    int n;
    int kept; // variant kept for every step; -1: none
} waiting;

static int *variant_of(const struct msc_step *step) {
    int i = 0;
    while (i < waiting.n && waiting.steps[i] != step) {
        i++;
    }
    if (i == waiting.n) {
        assert_true(i < MOST_STEPS);
        waiting.steps[waiting.n++] = step;
        waiting.variants[i] = SLOW;
    }
    return &waiting.variants[i];
}

static bool variants(const struct msc_backend *b, const struct msc_step *step,
                     struct msc_variants *out) {
    (void)b;
    if (step->macs == 0) {
        return false;
    }
    *out = (struct msc_variants){.work = {.kind = "made up", .rows = 1, .cols = 1},
                                 .n = N_VARIANTS,
                                 .by_rule = SLOW,
                                 .kept = waiting.kept};
    out->work.depth = (uint64_t)step->macs;
    for (int i = 0; i < N_VARIANTS; i++) {
        snprintf(out->names[i], sizeof out->names[i], "%s", names[i]);
    }
    return true;
}

static void choose(struct msc_backend *b, const struct msc_step *step, int variant) {
    (void)b;
    *variant_of(step) = variant < 0 ? SLOW : variant;
}

static enum msc_status run(struct msc_backend *b, const struct msc_step *step,
                           const struct msc_call calls[], size_t n, int thread) {
    if (step->macs > 0) {
        const struct timespec wait = {.tv_nsec = waits_ms[*variant_of(step)] * 1000000L};
        nanosleep(&wait, NULL);
    }
    return waiting.def->run(b, step, calls, n, thread);
}

// The network has two convolutions and a linear layer, of different work.
static void prepare(struct bench *b, struct msc_backend_def *def) {
    prepare_bench(b, 1, 4);
    waiting.def = b->c.backend->def;
    waiting.n = 0;
    waiting.kept = -1;
    *def = *waiting.def;
    def->variants = variants;
    def->choose = choose;
    def->run = run;
    b->c.backend->def = def;
}

static void finish(struct bench *b) {
    close_env(b);
    b->c.backend->def = waiting.def;
    close_bench(b);
}

static struct msc_schedule_bench *open_schedule(struct bench *b) {
    struct msc_schedule_bench *bench = NULL;
    const struct msc_schedule_options o = {
        .graph = b->c.g, .dataset = b->c.data, .backend = b->c.backend, .memory_bytes = 1 << 26};
    assert_ok(msc_schedule_bench_open(&bench, &o));
    return bench;
}

// Every class has the fast variant for its best, and the rows are in the order of the waits.
static void test_env_schedule__rows(void **state) {
    struct msc_backend_def def;
    struct msc_schedule_row rows[3];
    struct bench b;
    size_t i;
    (void)state;
    prepare(&b, &def);
    struct msc_schedule_bench *bench = open_schedule(&b);
    assert_int_equal(msc_schedule_bench_n(bench), 3);
    assert_string_equal(msc_schedule_bench_class(bench, 0)->joint, "conv1");
    assert_ok(msc_schedule_rows(rows, bench, MSC_SCHEDULE_ALL, 2));
    for (i = 0; i < 3; i++) {
        assert_int_equal(rows[i].best, FAST);
        assert_true(rows[i].us[FAST] < rows[i].us[SLOW] && rows[i].us[SLOW] < rows[i].us[SLOWER]);
        assert_true(rows[i].us[SLOW] >= 15000.0);
    }
    assert_ok(msc_schedule_bench_find(&i, bench, "relu")); // of conv1's step
    assert_int_equal(i, 0);
    assert_ok(msc_schedule_bench_find(&i, bench, "head"));
    assert_int_equal(i, 2);
    assert_int_equal(msc_schedule_bench_find(&i, bench, "pool"), MSC_E_NOT_FOUND);
    assert_int_equal(msc_schedule_bench_find(&i, bench, "none"), MSC_E_NOT_FOUND);
    assert_ok(msc_schedule_rows(rows, bench, 1, 1));
    assert_true(rows[1].us[SLOWER] >= 25000.0 && isnan(rows[0].us[SLOW]));
    msc_schedule_bench_close(bench);
    finish(&b);
}

// A step that the point does not change counts the same on both sides, so equal points take exactly
// the same time.
static void test_env_schedule__environment(void **state) {
    static const uint32_t by_rule[] = {SLOW, SLOW, SLOW}, one[] = {SLOW, FAST, SLOW},
                          worst[] = {SLOWER, SLOWER, SLOWER};
    struct msc_backend_def def;
    struct bench b;
    (void)state;
    prepare(&b, &def);
    assert_ok(create(&b, "{\"type\":\"schedule\",\"objectives\":[\"relative_latency\"],"
                         "\"rounds\":2}"));
    const struct msc_space *space = msc_env_space(b.env);
    assert_int_equal(space->n_tasks, 3);
    assert_string_equal(space->tasks[2].name, "head");
    assert_string_equal(space->tasks[2].labels[SLOWER], "slower");
    assert_int_equal(space->n_baselines, 3);
    assert_string_equal(space->baselines[0].label, "by rule");
    assert_string_equal(space->baselines[1].label, "fast");
    struct msc_outcome o = evaluate(&b, by_rule);
    assert_true(o.metrics[0] == 1.0 && o.metrics[1] >= 45000.0);
    o = evaluate(&b, one);
    assert_true(o.metrics[0] > 0.5 && o.metrics[0] < 0.9);
    o = evaluate(&b, worst);
    assert_true(o.metrics[0] > 1.3);
    finish(&b);
}

// What was kept when a search began is read from its parameters later, whatever is kept then.
static void test_env_schedule__kept(void **state) {
    static const char config[] = "{\"type\":\"schedule\",\"objectives\":[\"relative_latency\"]}";
    char folder[] = "/tmp/msc_schedule_XXXXXX", path[64];
    struct msc_backend_def def;
    struct bench b;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/params", folder);
    prepare(&b, &def);
    waiting.kept = SLOWER;
    b.host.parameters_path = path;
    assert_ok(create(&b, config));
    struct msc_hash before, after;
    assert_ok(msc_env_identity(&before, b.env));
    assert_string_equal(msc_env_space(b.env)->baselines[1].label, "kept for similar work");
    assert_int_equal(msc_env_space(b.env)->baselines[1].choices[0], SLOWER);
    close_env(&b);
    waiting.kept = FAST;
    assert_ok(create(&b, config));
    assert_int_equal(msc_env_space(b.env)->baselines[1].choices[2], SLOWER);
    assert_ok(msc_env_identity(&after, b.env));
    assert_true(msc_hash_equal(before, after));
    close_env(&b);
    static const char *const damaged[] = {"{\"kept\":[\"slow\",\"slow\"]}", "{}",
                                          "{\"kept\":[\"slow\",\"slow\",\"other\"]}"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        assert_ok(msc_file_write(path, damaged[i], strlen(damaged[i])));
        assert_int_equal(create(&b, config), MSC_E_FORMAT);
    }
    assert_ok(msc_file_remove(path));
    b.host.parameters_required = true;
    assert_int_equal(create(&b, config), MSC_E_STATE);
    b.host.parameters_path = NULL;
    b.host.parameters_required = false;
    finish(&b);
    assert_int_equal(remove(folder), 0);
}

// A network whose steps have no choice is refused.
static void test_env_schedule__nothing_to_choose(void **state) {
    struct msc_backend_def def;
    struct bench b;
    (void)state;
    prepare(&b, &def);
    def.variants = NULL;
    assert_int_equal(create(&b, "{\"type\":\"schedule\",\"objectives\":[\"latency_us\"]}"),
                     MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "no step of this network has a choice on cpu"));
    finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_schedule__rows),
        cmocka_unit_test(test_env_schedule__environment),
        cmocka_unit_test(test_env_schedule__kept),
        cmocka_unit_test(test_env_schedule__nothing_to_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
