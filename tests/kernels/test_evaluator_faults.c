// The evaluator when steps, sinks or memory fail, and when it is stopped. The linker redirects
// allocation functions to this file, so that each call can be refused in turn. Expected results are
// calculated joint by joint (eval_case.h).
#include "eval_case.h"
#include "fake_backend.h"
#include "tests/short_memory.h"

#include <limits.h>
#include <stdio.h>

enum { N_TRIALS = 12 };

// ---- A bench ----------------------------------------------------------------------------------

struct bench {
    struct fake_backend fake;
    struct eval_case c;
    struct eval_edits edits[EVAL_MAX_TRIALS];
    struct msc_eval_trial trials[EVAL_MAX_TRIALS];
    struct eval_results results;
    struct msc_cancel cancel;
    struct msc_evaluator *ev;
};

// All tests run with a backend that takes one call at a time, and with one that takes several.
static bool runs_together;

static enum msc_status create(struct bench *b, int n_threads) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    o.backend = &b->fake.base;
    o.n_threads = n_threads;
    o.cancel = &b->cancel;
    return msc_evaluator_create(&b->ev, b->c.g, b->c.data, b->c.wanted, b->c.n_wanted, &o);
}

static void open_bench(struct bench *b, int n_threads) {
    memset(b, 0, sizeof(*b));
    fake_open(&b->fake, 4);
    b->fake.quantizes = n_threads > 1;
    if (runs_together) {
        fake_run_together(&b->fake);
    }
    eval_open_net(&b->c, 5, 2);
    for (uint64_t t = 0; t < EVAL_MAX_TRIALS; t++) {
        eval_draw_edits(&b->c, t, &b->edits[t]);
    }
    eval_results_init(&b->results, &b->c);
    if (n_threads > 0) {
        assert_ok(create(b, n_threads));
    }
}

static void close_bench(struct bench *b) {
    eval_results_finish(&b->results);
    msc_evaluator_destroy(b->ev);
    eval_close(&b->c);
    fake_close(&b->fake);
}

// Checks that nothing is in use: the cache can be emptied, and the next call gives the expected
// results.
static void check_recovery(struct bench *b) {
    struct msc_evaluator_stats stats;
    msc_evaluator_drop_cache(b->ev);
    msc_evaluator_get_stats(b->ev, &stats);
    assert_int_equal(stats.bytes_held, 0);
    assert_int_equal(b->fake.live_buffers, 0);
    assert_int_equal(b->fake.live_weights, 0);
    eval_results_finish(&b->results);
    assert_ok(eval_run(b->ev, &b->results, b->edits, b->trials, N_TRIALS));
    for (size_t t = 0; t < N_TRIALS; t++) {
        assert_int_equal(b->trials[t].status, MSC_OK);
        assert_string_equal(b->trials[t].message, "");
        assert_int_equal(b->results.ends[t], 1);
        eval_check(&b->c, &b->results, t, &b->edits[t]);
    }
    eval_results_finish(&b->results);
}

// ---- Steps and sinks --------------------------------------------------------------------------

// Only trials that use the failing step fail. Other trials succeed, even if they share steps with a
// failing one.
static void test_kernels_evaluator_faults__step(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct bench b;
        int n_failed = 0;
        open_bench(&b, n_threads);
        int32_t slot = eval_slot(&b.c, "conv2", 1);
        b.fake.failing_joint = "conv2";
        b.fake.failing_bits = 4;
        assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
        for (size_t t = 0; t < N_TRIALS; t++) {
            const struct msc_quant *edit = msc_edit_quant(b.edits[t].edits[slot]);
            assert_int_equal(b.results.ends[t], 1);
            if (edit && edit->bits == 4) {
                assert_int_equal(b.trials[t].status, MSC_E_DEVICE);
                assert_string_equal(b.trials[t].message, "joint conv2 failed on purpose");
                n_failed++;
            } else {
                assert_int_equal(b.trials[t].status, MSC_OK);
                eval_check(&b.c, &b.results, t, &b.edits[t]);
            }
        }
        assert_true(n_failed > 0 && n_failed < N_TRIALS);
        b.fake.failing_joint = NULL;
        check_recovery(&b);
        close_bench(&b);
    }
}

static void test_kernels_evaluator_faults__every_step(void **state) {
    static const char *const joints[] = {"stem", "conv1", "split", "pool", "softmax", "product"};
    (void)state;
    for (size_t i = 0; i < sizeof(joints) / sizeof(joints[0]); i++) {
        struct bench b;
        open_bench(&b, 2);
        b.fake.failing_joint = joints[i];
        assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
        for (size_t t = 0; t < N_TRIALS; t++) {
            assert_int_equal(b.trials[t].status, MSC_E_DEVICE);
            assert_int_equal(b.results.ends[t], 1);
        }
        b.fake.failing_joint = NULL;
        check_recovery(&b);
        close_bench(&b);
    }
}

static void test_kernels_evaluator_faults__sink(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, 2);
    b.results.failing_trial = 3;
    assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
    for (size_t t = 0; t < N_TRIALS; t++) {
        assert_int_equal(b.trials[t].status, t == 3 ? MSC_E_INVALID : MSC_OK);
        assert_int_equal(b.results.ends[t], 1);
    }
    assert_string_equal(b.trials[3].message, "the sink wants none of it");
    b.results.failing_trial = -1;
    check_recovery(&b);
    close_bench(&b);
}

static enum msc_status refuse(void *payload, size_t trial, size_t batch,
                              const struct msc_view values[]) {
    (void)payload;
    (void)values;
    return MSC_FAIL(MSC_E_INVALID, "trial %zu, batch %zu", trial, batch);
}

// If several batches fail, the failure of the lowest batch is reported, whichever came first.
static void test_kernels_evaluator_faults__lowest_batch(void **state) {
    struct msc_sink sink = {.batch = refuse};
    struct bench b;
    (void)state;
    open_bench(&b, 4);
    assert_ok(msc_evaluator_run(b.ev, b.trials, N_TRIALS, &sink, 0));
    for (int t = 0; t < N_TRIALS; t++) {
        char expected[40];
        snprintf(expected, sizeof(expected), "trial %d, batch 0", t);
        assert_string_equal(b.trials[t].message, expected);
    }
    check_recovery(&b);
    close_bench(&b);
}

static enum msc_status refuse_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                   int32_t slot, const struct msc_view *value) {
    (void)part;
    (void)payload;
    (void)value;
    return MSC_FAIL(MSC_E_INVALID, "trial %zu, batch %zu, slot %d", trial, batch, (int)slot);
}

// Slot values exist before the wanted values and at different times. The sink refuses the slot
// values. If it refuses the wanted values too, the message is about the wanted values; otherwise it
// is about the first slot.
static void test_kernels_evaluator_faults__first_of_batch(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        for (int takes_all = 0; takes_all <= 1; takes_all++) {
            struct msc_sink sink = {.batch = takes_all ? NULL : refuse, .slot = refuse_slot};
            struct bench b;
            open_bench(&b, n_threads);
            assert_ok(msc_evaluator_run(b.ev, b.trials, N_TRIALS, &sink, 0));
            for (int t = 0; t < N_TRIALS; t++) {
                char expected[40];
                snprintf(expected, sizeof(expected), "trial %d, batch 0%s", t,
                         takes_all ? ", slot 0" : "");
                assert_string_equal(b.trials[t].message, expected);
            }
            check_recovery(&b);
            close_bench(&b);
        }
    }
}

// ---- Memory -----------------------------------------------------------------------------------

// One allocation of the backend fails: the affected trial is run again by itself.
static void test_kernels_evaluator_faults__one_buffer(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        struct bench b;
        open_bench(&b, n_threads);
        assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
        int n_takes = b.fake.n_taken;
        assert_true(n_takes > 20);
        for (int n = 1; n <= n_takes; n += 1 + n / 8) {
            msc_evaluator_drop_cache(b.ev);
            eval_results_finish(&b.results);
            b.fake.n_taken = 0;
            b.fake.first_failing_take = n;
            b.fake.n_failing_takes = 1;
            assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
            for (size_t t = 0; t < N_TRIALS; t++) {
                assert_int_equal(b.trials[t].status, MSC_OK);
                assert_int_equal(b.results.ends[t], 1);
                assert_in_range(b.results.begins[t], 1, 2);
                eval_check(&b.c, &b.results, t, &b.edits[t]);
            }
        }
        close_bench(&b);
    }
}

// No memory is left: trials fail one by one, each with a message.
static void test_kernels_evaluator_faults__no_buffers(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, 2);
    b.fake.first_failing_take = 6;
    b.fake.n_failing_takes = INT_MAX / 2;
    assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
    for (size_t t = 0; t < N_TRIALS; t++) {
        assert_int_equal(b.trials[t].status, MSC_E_NOMEM);
        assert_non_null(strstr(b.trials[t].message, "not enough memory"));
        assert_int_equal(b.results.ends[t], 1);
    }
    b.fake.first_failing_take = 0;
    check_recovery(&b);
    close_bench(&b);
}

// Creates and runs the evaluator again and again. Each time, n_refused consecutive allocations
// fail, and they begin one allocation later than the time before.
static void fail_allocations(int n_refused, int n_threads) {
    struct bench b;
    int n_again = 0;
    open_bench(&b, 0);
    b.fake.does_nothing = true;
    for (int n = 1; n < 20000; n++) {
        int before = n_live;
        b.ev = NULL;
        memset(b.results.ends, 0, sizeof(b.results.ends));
        memset(b.results.begins, 0, sizeof(b.results.begins));
        n_failing = n_refused;
        n_until_failure = n;
        enum msc_status status = create(&b, n_threads);
        if (status == MSC_OK) {
            status = eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS);
        } else {
            assert_int_equal(status, MSC_E_NOMEM);
            assert_null(b.ev);
        }
        bool was_refused = n_until_failure <= 0;
        n_until_failure = INT_MAX;
        if (b.ev) {
            assert_ok(status);
            for (size_t t = 0; t < N_TRIALS; t++) {
                assert_int_equal(b.results.ends[t], 1);
                assert_in_range(b.results.begins[t], 1, 2);
                n_again += b.results.begins[t] == 2;
                assert_true(b.trials[t].status == MSC_OK ||
                            (n_refused > 1 && b.trials[t].status == MSC_E_NOMEM));
            }
        }
        eval_results_finish(&b.results);
        msc_evaluator_destroy(b.ev);
        b.ev = NULL;
        assert_int_equal(n_live, before);
        assert_int_equal(b.fake.live_buffers, 0);
        if (!was_refused) {
            assert_true(n_again > 0);
            close_bench(&b);
            return;
        }
    }
    fail_msg("it never got through");
}

static void test_kernels_evaluator_faults__one_allocation(void **state) {
    (void)state;
    fail_allocations(1, 1);
}

static void test_kernels_evaluator_faults__many_allocations(void **state) {
    (void)state;
    fail_allocations(40, 1);
}

// ---- Stopping ---------------------------------------------------------------------------------

static void test_kernels_evaluator_faults__cancel(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        struct bench b;
        open_bench(&b, n_threads);
        b.fake.cancel = &b.cancel;
        assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
        int n_runs = b.fake.n_runs;
        for (int after = 1; after < n_runs; after += 1 + after / 4) {
            msc_evaluator_drop_cache(b.ev);
            eval_results_finish(&b.results);
            b.fake.n_runs = 0;
            b.fake.cancel_after = after;
            assert_int_equal(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS),
                             MSC_E_CANCELLED);
            for (size_t t = 0; t < N_TRIALS; t++) {
                // Trials that ended before the stop have complete results.
                assert_int_equal(b.trials[t].status, b.results.ends[t] ? MSC_OK : MSC_E_CANCELLED);
                if (b.results.ends[t]) {
                    eval_check(&b.c, &b.results, t, &b.edits[t]);
                }
            }
            b.cancel.level = 0;
            b.fake.cancel_after = 0;
            check_recovery(&b);
        }
        // A request to stop soon concerns the search; the evaluator finishes the round.
        b.cancel.level = 1;
        check_recovery(&b);
        close_bench(&b);
    }
}

// ---- Losing the device ------------------------------------------------------------------------

// The call ends at once, and no trial counts as failed.
static void test_kernels_evaluator_faults__lost(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct bench b;
        open_bench(&b, n_threads);
        assert_ok(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS));
        int n_runs = b.fake.n_runs;
        for (int after = 1; after < n_runs; after += 1 + after / 4) {
            msc_evaluator_drop_cache(b.ev);
            eval_results_finish(&b.results);
            b.fake.n_runs = 0;
            b.fake.lost_after = after;
            assert_int_equal(eval_run(b.ev, &b.results, b.edits, b.trials, N_TRIALS), MSC_E_LOST);
            assert_message("the device is lost on purpose");
            for (size_t t = 0; t < N_TRIALS; t++) {
                assert_int_equal(b.trials[t].status, b.results.ends[t] ? MSC_OK : MSC_E_LOST);
                if (b.results.ends[t]) {
                    eval_check(&b.c, &b.results, t, &b.edits[t]);
                }
            }
            // Most of the remaining steps are not attempted.
            assert_true(b.fake.n_runs <= after + 8 * n_threads + 8);
            b.fake.lost_after = 0;
            check_recovery(&b);
        }
        close_bench(&b);
    }
}

// ---- Creation ---------------------------------------------------------------------------------

static void test_kernels_evaluator_faults__creation(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b, 0);
    assert_int_equal(create(&b, 5), MSC_E_INVALID);
    assert_message("5 threads");
    assert_int_equal(create(&b, 0), MSC_E_INVALID);
    b.ev = NULL;
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_faults__step),
        cmocka_unit_test(test_kernels_evaluator_faults__every_step),
        cmocka_unit_test(test_kernels_evaluator_faults__sink),
        cmocka_unit_test(test_kernels_evaluator_faults__lowest_batch),
        cmocka_unit_test(test_kernels_evaluator_faults__first_of_batch),
        cmocka_unit_test(test_kernels_evaluator_faults__one_buffer),
        cmocka_unit_test(test_kernels_evaluator_faults__no_buffers),
        cmocka_unit_test(test_kernels_evaluator_faults__one_allocation),
        cmocka_unit_test(test_kernels_evaluator_faults__many_allocations),
        cmocka_unit_test(test_kernels_evaluator_faults__cancel),
        cmocka_unit_test(test_kernels_evaluator_faults__lost),
        cmocka_unit_test(test_kernels_evaluator_faults__creation),
    };
    msc_test_select(argc, argv);
    int n_failed = cmocka_run_group_tests_name("one call at a time", tests, NULL, NULL);
    runs_together = true;
    return n_failed + cmocka_run_group_tests_name("several calls", tests, NULL, NULL);
}
