// The best value as a function of trials and of seconds, and series reduced to a few parts.
#include "../msc_test.h"
#include "results/history.h"

#include <math.h>

static const struct msc_goal least = {.n_objectives = 1, .objectives = {{.metric = 0}}};
static const struct msc_goal most = {.n_objectives = 1,
                                     .objectives = {{.metric = 0, .is_maximised = true}}};

static bool add(struct msc_history *h, int64_t id, double elapsed_s, double value,
                enum msc_trial_state state) {
    double sign = h->goal->objectives[0].is_maximised ? -1.0 : 1.0;
    const struct msc_record_line line = {
        .trial = {.id = id, .outcome = {.state = state, .objectives = {sign * value}}},
        .repeat_of = -1,
        .elapsed_s = elapsed_s,
    };
    return msc_history_add(h, &line);
}

static void assert_is(double a, double b) {
    if (isnan(b)) {
        assert_true(isnan(a));
    } else {
        assert_memory_equal(&a, &b, sizeof a);
    }
}

// The expected answers were worked out by hand from these values.
static void test_search_history__best(void **state) {
    (void)state;
    static const double values[] = {0.01, 5, NAN, 3, 4, 3, 2, 0.001, 9, 1.5, 8};
    struct msc_history h;
    assert_ok(msc_history_init(&h, &least, 4));
    for (int i = 0; i < 11; i++) {
        enum msc_trial_state s = i == 0   ? MSC_TRIAL_INFEASIBLE
                                 : i == 2 ? MSC_TRIAL_FAILED
                                 : i == 7 ? MSC_TRIAL_PRUNED
                                          : MSC_TRIAL_COMPLETE;
        bool is_better = i == 1 || i == 3 || i == 6 || i == 9;
        assert_int_equal(add(&h, i, 0.5 * i, values[i], s), is_better);
    }
    assert_int_equal(h.n_trials, 11);
    assert_int_equal(h.n_improvements, 4);
    assert_int_equal(h.n_steps, 4);
    assert_int_equal(h.n_last, 4);
    assert_int_equal(h.last[0].trial, 9);
    assert_int_equal(h.last[3].trial, 1);
    assert_is(msc_history_at(&h, MSC_HISTORY_TRIALS, 1), NAN);
    assert_is(msc_history_at(&h, MSC_HISTORY_TRIALS, 2), 5);
    assert_is(msc_history_at(&h, MSC_HISTORY_TRIALS, 3), 5);
    assert_is(msc_history_at(&h, MSC_HISTORY_TRIALS, 9), 2);
    assert_is(msc_history_at(&h, MSC_HISTORY_SECONDS, 0.4), NAN);
    assert_is(msc_history_at(&h, MSC_HISTORY_SECONDS, 3.0), 2);
    assert_is(msc_history_at(&h, MSC_HISTORY_SECONDS, 99), 1.5);
    assert_int_equal(h.n_marks, 1);
    assert_is(h.marks[0], 1.5);
    double sampled[5];
    // Samples the best value after 2.2, 4.4, 6.6, 8.8 and 11 trials.
    msc_history_sample(sampled, 5, &h, MSC_HISTORY_TRIALS);
    static const double expected[] = {5, 3, 3, 2, 1.5};
    for (size_t i = 0; i < 5; i++) {
        assert_is(sampled[i], expected[i]);
    }
    msc_history_finish(&h);
}

// Every trial improves the best value. At most 16 steps are kept, and the first, the last and all
// marks are exact.
static void test_search_history__many(void **state) {
    (void)state;
    struct msc_history h;
    assert_ok(msc_history_init(&h, &most, 16));
    for (int i = 0; i < 5000; i++) {
        assert_true(add(&h, i, i, i, MSC_TRIAL_COMPLETE));
        assert_true(h.n_steps <= 16);
        assert_int_equal(h.steps[0].trial, 0);
        assert_int_equal(h.steps[h.n_steps - 1].trial, i);
    }
    assert_int_equal(h.n_improvements, 5000);
    assert_int_equal(h.n_marks, 6);
    for (size_t i = 0; i < h.n_marks; i++) {
        assert_is(h.marks[i], (double)msc_history_mark(i) - 1);
    }
    assert_int_equal(msc_history_mark(0), 10);
    assert_int_equal(msc_history_mark(5), 3000);
    assert_int_equal(h.last[7].trial, 4992);
    for (size_t i = 1; i < h.n_steps; i++) {
        assert_true(h.steps[i].trial > h.steps[i - 1].trial);
    }
    msc_history_finish(&h);
}

static void test_search_history__series(void **state) {
    (void)state;
    struct msc_series s;
    assert_ok(msc_series_init(&s, 4, 1.0));
    for (int i = 0; i < 1000; i++) {
        msc_series_add(&s, i, i == 700 ? -5 : i == 333 ? 77 : i % 3);
    }
    msc_series_add(&s, NAN, 1);
    msc_series_add(&s, 1, NAN);
    msc_series_add(&s, -1, 1);
    assert_is(s.width, 256);
    assert_int_equal(s.n_parts, 4);
    size_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        n += s.parts[i].n;
        assert_is(s.parts[i].first_x, (double)i * 256);
        assert_is(s.parts[i].least_y, i == 2 ? -5 : 0);
        assert_is(s.parts[i].greatest_y, i == 1 ? 77 : 2);
    }
    assert_int_equal(n, 1000);
    assert_is(s.parts[2].least_x, 700);
    assert_is(s.parts[1].greatest_x, 333);
    assert_is(s.parts[3].last_x, 999);
    assert_is(s.parts[3].last_y, 0);
    assert_is(s.parts[0].sum_y, 255); // 85 times (0 + 1 + 2); element 255 is 0
    msc_series_finish(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_history__best),
        cmocka_unit_test(test_search_history__many),
        cmocka_unit_test(test_search_history__series),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
