// The evaluator's memory: what the cache keeps and releases, with and without a budget in bytes.
// Expected step counts follow from what trials share.
#include "eval_bench.h"

#include "base/alloc.h"

// A small budget only causes more work, and the memory held stays within the budget.
static void test_kernels_evaluator_budget__budget(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_net(&b.c, 8, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, 1 << 16);
    eval_run_and_check(&b, b.ev, 0, N_TRIALS);
    struct msc_evaluator_stats tight = eval_stats_of(b.ev);
    msc_evaluator_destroy(b.ev);
    assert_true(tight.bytes_held <= 1 << 16);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    eval_run_and_check(&b, b.ev, 0, N_TRIALS);
    struct msc_evaluator_stats roomy = eval_stats_of(b.ev);
    // Within one call everything is shared, whatever the budget.
    assert_int_equal(tight.steps_run, roomy.steps_run);
    assert_true((long long)roomy.bytes_peak >= b.fake.peak_bytes);
    // With few trials per call everything is kept.
    for (size_t t = 0; t < N_TRIALS; t += 4) {
        eval_run_and_check(&b, b.ev, t, 4);
    }
    assert_true(tight.bytes_peak < eval_stats_of(b.ev).bytes_peak / 4);
    eval_close_bench(&b);
}

// With many trials, results that several trials need are kept for the next call, and results of a
// single trial are not.
static void test_kernels_evaluator_budget__keeps_what_is_shared(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    eval_results_init(&b.results, &b.c);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    for (size_t t = 0; t < 8; t++) {
        eval_edit_slot(&b, t, "conv3", 1, (int)(t % 3));
        eval_edit_slot(&b, t, "conv3", 0, (int)(t / 3));
    }
    // Two convolutions run once for all trials and the third once for each trial. In the second
    // call only the third runs.
    eval_run_edits(&b, 8);
    assert_int_equal(b.fake.n_runs, 2 + 8);
    b.fake.n_runs = 0;
    eval_run_edits(&b, 8);
    assert_int_equal(b.fake.n_runs, 8);
    b.fake.n_runs = 0;
    // With few trials everything is kept.
    eval_run_edits(&b, 3);
    assert_int_equal(b.fake.n_runs, 3);
    eval_run_edits(&b, 3);
    assert_int_equal(b.fake.n_runs, 3);
    eval_close_bench(&b);
}

static uint64_t peak_after_two_calls(int64_t n_samples) {
    struct eval_bench b;
    eval_open_bench(&b);
    eval_open_net(&b.c, n_samples, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, 1 << 16);
    eval_run_and_check(&b, b.ev, 0, EVAL_MAX_TRIALS);
    eval_run_and_check(&b, b.ev, 0, EVAL_MAX_TRIALS);
    uint64_t peak = eval_stats_of(b.ev).bytes_peak;
    eval_close_bench(&b);
    return peak;
}

// Cached results are held for a few batches at a time, so a longer dataset needs no more memory.
static void test_kernels_evaluator_budget__windows(void **state) {
    (void)state;
    assert_true(EVAL_MAX_TRIALS >= 32);
    assert_true(peak_after_two_calls(8) <= peak_after_two_calls(2) * 5 / 4);
}

// The peak memory of trials if memory is not limited.
static long long peak_of_trials(void) {
    struct eval_bench b;
    eval_open_bench(&b);
    fake_run_together(&b.fake);
    eval_open_net(&b.c, 8, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    for (size_t t = 0; t < N_TRIALS; t += 6) {
        eval_run_and_check(&b, b.ev, t, 6);
    }
    long long peak = b.fake.peak_bytes;
    eval_close_bench(&b);
    return peak;
}

// Runs trials on a device with this capacity, on which each step needs some extra memory. Free
// blocks of other sizes are released first, then the cache. No trial has to restart.
static void run_within(long long capacity_bytes, long long besides_bytes, bool is_told) {
    struct eval_bench b;
    eval_open_bench(&b);
    fake_run_together(&b.fake);
    b.fake.tells_memory = is_told;
    b.fake.capacity_bytes = capacity_bytes;
    b.fake.besides_bytes = besides_bytes;
    eval_open_net(&b.c, 8, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    for (size_t t = 0; t < N_TRIALS; t += 6) {
        assert_ok(eval_run(b.ev, &b.results, b.edits + t, b.trials, 6));
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(b.results.begins[i], 1);
        }
        eval_check_all(&b, t, 6);
    }
    // Once the available memory is known, few allocations are refused.
    assert_true(!is_told || b.fake.n_refused == 0);
    int n_before = b.fake.n_refused;
    for (size_t t = 0; t < N_TRIALS; t += 6) {
        eval_run_and_check(&b, b.ev, t, 6);
    }
    assert_true(b.fake.n_refused - n_before < 20);
    eval_close_bench(&b);
}

static void test_kernels_evaluator_budget__device_has_less(void **state) {
    long long peak = peak_of_trials();
    (void)state;
    run_within(peak / 2, 0, false);
    run_within(peak / 2, 0, true);
}

static void test_kernels_evaluator_budget__device_needs_some_besides(void **state) {
    long long peak = peak_of_trials();
    (void)state;
    run_within(peak / 2, peak / 50, false);
    run_within(peak / 2, peak / 50, true);
    run_within(peak / 2, peak / 8, false); // each call runs one trial
}

// The least memory is more than the memory of one step and less than the memory of a call without
// limits. The least memory does not depend on the cache.
static void test_kernels_evaluator_budget__least_memory(void **state) {
    struct eval_bench b;
    uint64_t least, again;
    (void)state;
    eval_open_bench(&b);
    fake_hide_memory(&b.fake); // measures the backend's memory, not the process's
    eval_open_net(&b.c, 6, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    assert_ok(msc_evaluator_measure_memory(b.ev, b.edits[4].edits, &least));
    eval_run_and_check(&b, b.ev, 0, 6);
    assert_ok(msc_evaluator_measure_memory(b.ev, b.edits[4].edits, &again));
    assert_int_equal(least, again);
    // The image with 3 channels and the first result with 4, of 6 x 6 pixels.
    assert_true(least >= (3 + 4) * 36 * sizeof(float));
    assert_true(least < eval_stats_of(b.ev).bytes_peak / 2);
    eval_close_bench(&b);
}

static bool count_window(void *payload, size_t trial) {
    (void)trial;
    ++*(int *)payload;
    return false;
}

static enum msc_status ignore_batch(void *payload, size_t trial, size_t batch,
                                    const struct msc_view values[]) {
    (void)payload;
    (void)trial;
    (void)batch;
    (void)values;
    return MSC_OK;
}

// With enough memory, one trial runs six batches at once, even after its least memory has been
// measured.
static void test_kernels_evaluator_budget__windows_after_measuring(void **state) {
    struct eval_bench b;
    uint64_t least;
    int n_windows = 0;
    (void)state;
    const struct msc_sink sink = {
        .batch = ignore_batch, .is_over = count_window, .payload = &n_windows};
    eval_open_bench(&b);
    eval_open_net(&b.c, 6, 1);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    b.trials[0].edits = b.edits[4].edits;
    assert_ok(msc_evaluator_measure_memory(b.ev, b.edits[4].edits, &least));
    for (int i = 1; i <= 2; i++) {
        assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &sink, 0));
        assert_int_equal(n_windows, i);
    }
    eval_close_bench(&b);
}

// Latency runs compute everything and keep nothing.
static void test_kernels_evaluator_budget__fresh(void **state) {
    struct eval_bench b;
    (void)state;
    eval_open_bench(&b);
    eval_open_chain(&b.c, 2, 2);
    eval_draw_all(&b);
    b.ev = eval_create(&b, 1, (uint64_t)1 << 30);
    b.trials[0].edits = b.edits[5].edits;
    for (int i = 0; i < 3; i++) {
        b.fake.n_runs = 0;
        assert_ok(msc_evaluator_run(b.ev, b.trials, 1, &b.results.sink, MSC_EVAL_FRESH));
        assert_int_equal(b.fake.n_runs, 3);
        eval_check_all(&b, 5, 1);
    }
    eval_close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_budget__budget),
        cmocka_unit_test(test_kernels_evaluator_budget__keeps_what_is_shared),
        cmocka_unit_test(test_kernels_evaluator_budget__windows),
        cmocka_unit_test(test_kernels_evaluator_budget__device_has_less),
        cmocka_unit_test(test_kernels_evaluator_budget__device_needs_some_besides),
        cmocka_unit_test(test_kernels_evaluator_budget__least_memory),
        cmocka_unit_test(test_kernels_evaluator_budget__windows_after_measuring),
        cmocka_unit_test(test_kernels_evaluator_budget__fresh),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
