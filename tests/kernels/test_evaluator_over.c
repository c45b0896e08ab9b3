// Trials that the sink ends early: how much work is saved, and that other trials are not affected.
// Results are compared with those calculated joint by joint (eval_case.h).
#include "eval_case.h"
#include "fake_backend.h"

#include <stdio.h>

enum { N_TRIALS = 32, N_BATCHES = 8 };

struct bench {
    struct fake_backend fake;
    struct eval_case c;
    struct eval_edits edits[N_TRIALS];
    struct msc_eval_trial trials[N_TRIALS];
    struct eval_results results;
    struct msc_sink sink;
    int last_batch[N_TRIALS]; // the trial ends after this batch
    bool is_given[N_TRIALS][N_BATCHES];
};

static enum msc_status take_batch(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    struct bench *b = payload;
    assert_false(b->is_given[trial][batch]);
    b->is_given[trial][batch] = true;
    return b->results.sink.batch(b->results.sink.payload, trial, batch, values);
}

static void end_trial(void *payload, size_t trial) {
    struct bench *b = payload;
    b->results.sink.end(b->results.sink.payload, trial);
}

static bool is_over(void *payload, size_t trial) {
    const struct bench *b = payload;
    return b->is_given[trial][b->last_batch[trial]];
}

static void open_bench(struct bench *b) {
    memset(b, 0, sizeof(*b));
    fake_open(&b->fake, 4);
    eval_open_chain(&b->c, N_BATCHES, 1);
    eval_results_init(&b->results, &b->c);
    for (uint64_t t = 0; t < N_TRIALS; t++) {
        eval_draw_edits(&b->c, t, &b->edits[t]);
        b->trials[t].edits = b->edits[t].edits;
    }
    b->sink =
        (struct msc_sink){.batch = take_batch, .end = end_trial, .is_over = is_over, .payload = b};
}

static void run(struct bench *b, struct msc_evaluator *ev, size_t n) {
    eval_results_finish(&b->results);
    memset(b->is_given, 0, sizeof(b->is_given));
    b->fake.n_runs = 0;
    assert_ok(msc_evaluator_run(ev, b->trials, n, &b->sink, 0));
    for (size_t t = 0; t < n; t++) {
        assert_int_equal(b->results.ends[t], 1);
    }
}

static struct msc_evaluator *create(struct bench *b, int n_threads) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    o.backend = &b->fake.base;
    o.n_threads = n_threads;
    assert_ok(msc_evaluator_create(&ev, b->c.g, b->c.data, b->c.wanted, b->c.n_wanted, &o));
    return ev;
}

static void close_bench(struct bench *b, struct msc_evaluator *ev) {
    eval_results_finish(&b->results);
    msc_evaluator_destroy(ev);
    eval_close(&b->c);
    fake_close(&b->fake);
}

// The number of batches that the sink received. The sink must have received the first batches,
// without gaps, up to at least the last wanted batch.
static int count_given(const struct bench *b, size_t trial) {
    int n = 0;
    while (n < N_BATCHES && b->is_given[trial][n]) {
        n++;
    }
    for (int k = n; k < N_BATCHES; k++) {
        assert_false(b->is_given[trial][k]);
    }
    assert_true(n > b->last_batch[trial]);
    return n;
}

// Half of the trials end early and get few of their batches. All others get all batches. All values
// are the expected ones.
static void test_kernels_evaluator_over__early_and_late(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        struct bench b;
        int n_runs[2];
        int n_given = 0;
        open_bench(&b);
        for (int has_over = 0; has_over < 2; has_over++) {
            struct msc_evaluator *ev = create(&b, n_threads);
            for (int t = 0; t < N_TRIALS; t++) {
                b.last_batch[t] = has_over && t % 2 == 1 ? t / 2 % 3 : N_BATCHES - 1;
            }
            run(&b, ev, N_TRIALS);
            n_runs[has_over] = b.fake.n_runs;
            for (size_t t = 0; t < N_TRIALS; t++) {
                assert_int_equal(b.trials[t].status, MSC_OK);
                int n = count_given(&b, t);
                n_given += has_over && t % 2 == 1 ? n : 0;
                if (n == N_BATCHES) {
                    eval_check(&b.c, &b.results, t, &b.edits[t]);
                }
            }
            msc_evaluator_destroy(ev);
        }
        // The trials that end early needed two of eight batches each on average. They get at most
        // twice as many.
        assert_true(n_given <= N_TRIALS / 2 * 4);
        assert_true(n_runs[1] < n_runs[0] * 9 / 10);
        close_bench(&b, NULL);
    }
}

// If all trials end at once, nothing remains to run.
static void test_kernels_evaluator_over__all(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    struct msc_evaluator *ev = create(&b, 2);
    run(&b, ev, N_TRIALS);
    for (size_t t = 0; t < N_TRIALS; t++) {
        assert_int_equal(b.trials[t].status, MSC_OK);
        assert_true(count_given(&b, t) <= 4);
    }
    close_bench(&b, ev);
}

// A failed trial is reported once, whether it fails before or after the batch at which it ends.
// Other trials are not affected.
static void test_kernels_evaluator_over__failures(void **state) {
    struct bench b;
    (void)state;
    open_bench(&b);
    struct msc_evaluator *ev = create(&b, 3);
    b.results.failing_trial = 3; // the sink refuses the second batch of this trial
    for (int last = 0; last < 3; last++) {
        b.last_batch[3] = last;
        run(&b, ev, N_TRIALS);
        for (size_t t = 0; t < N_TRIALS; t++) {
            assert_true(t == 3 || b.trials[t].status == MSC_OK);
            assert_true(t == 3 || count_given(&b, t) > 0);
        }
    }
    close_bench(&b, ev);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_over__early_and_late),
        cmocka_unit_test(test_kernels_evaluator_over__all),
        cmocka_unit_test(test_kernels_evaluator_over__failures),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
