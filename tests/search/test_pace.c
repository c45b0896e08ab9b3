// Number of trials in a part of a round, on simulated machines whose trial times are known.
#include "../msc_test.h"
#include "search/pace.h"

#include <math.h>

// A machine that runs n_threads trials in parallel. The first evaluation takes first_s longer.
struct machine {
    double trial_s;
    size_t n_threads;
    double first_s;
};

// Runs n trials in parts of 60 s each. Stores the sizes of the parts and returns their number.
static size_t run_parts(size_t sizes[], struct msc_pace *pace, const struct machine *m, size_t n) {
    size_t n_parts = 0;
    while (n > 0) {
        size_t part = msc_pace_part(pace, 60.0);
        part = part < n ? part : n;
        size_t n_turns = (part + m->n_threads - 1) / m->n_threads;
        msc_pace_note(pace, part,
                      (double)n_turns * m->trial_s + (pace->trials.n_notes == 0 ? m->first_s : 0));
        sizes[n_parts++] = part;
        n -= part;
    }
    return n_parts;
}

static void test_search_pace__rate(void **state) {
    (void)state;
    struct msc_rate rate = {0};
    assert_true(isnan(msc_rate_seconds(&rate)));
    msc_rate_note(&rate, 2, 20.0);
    assert_true(msc_rate_seconds(&rate) == 10.0);
    msc_rate_note(&rate, 0, 5.0);
    msc_rate_note(&rate, 4, 4.0); // the first note no longer counts
    assert_true(msc_rate_seconds(&rate) == 1.0);
    for (int i = 0; i < 40; i++) {
        msc_rate_note(&rate, 8, 16.0); // after 320 more trials the old times have faded
    }
    assert_true(fabs(msc_rate_seconds(&rate) - 2.0) < 0.01);
}

// While caches warm up, each part is faster than the one before. The estimate after 20 trials must
// be within a factor of 1.5 of the final pace, 1 s.
static void test_search_pace__warms_up(void **state) {
    (void)state;
    struct msc_rate rate = {0};
    msc_rate_note(&rate, 1, 10.0);
    msc_rate_note(&rate, 4, 16.0);
    msc_rate_note(&rate, 16, 32.0);
    msc_rate_note(&rate, 11, 11.0);
    assert_true(msc_rate_seconds(&rate) < 1.5);
    assert_true(msc_rate_seconds(&rate) > 1.0); // a single part does not determine the estimate
}

static void test_search_pace__short_trials(void **state) {
    (void)state;
    struct msc_pace pace = MSC_PACE_INIT;
    size_t sizes[64];
    const struct machine m = {.trial_s = 0.001, .n_threads = 1, .first_s = 0.5};
    assert_int_equal(run_parts(sizes, &pace, &m, 32), 4); // parts of 1, 4, 20 and 7 trials
    assert_int_equal(sizes[0], 1);
    assert_int_equal(run_parts(sizes, &pace, &m, 32), 1);
    assert_int_equal(run_parts(sizes, &pace, &m, 300), 2);
}

// Each trial takes a minute. After two trials have taken twice as long as one, each part is a
// single trial.
static void test_search_pace__long_trials(void **state) {
    (void)state;
    struct msc_pace pace = MSC_PACE_INIT;
    size_t sizes[64];
    const struct machine m = {.trial_s = 60, .n_threads = 1, .first_s = 100};
    size_t n = run_parts(sizes, &pace, &m, 32);
    assert_in_range(n, 31, 32);
    assert_int_equal(run_parts(sizes, &pace, &m, 32), 32);
    struct msc_pace other = MSC_PACE_INIT;
    const struct machine quicker = {.trial_s = 4.9, .n_threads = 1, .first_s = 20};
    run_parts(sizes, &other, &quicker, 32);
    assert_int_equal(run_parts(sizes, &other, &quicker, 36), 3);
    assert_int_equal(sizes[0], 12);
}

// A part has at least as many trials as there are threads, even if it then exceeds its 60 s.
static void test_search_pace__many_threads(void **state) {
    (void)state;
    struct msc_pace pace = MSC_PACE_INIT;
    size_t sizes[64];
    const struct machine m = {.trial_s = 100, .n_threads = 16, .first_s = 100};
    run_parts(sizes, &pace, &m, 96);
    run_parts(sizes, &pace, &m, 32);
    assert_int_equal(sizes[0], 16);
}

static void test_search_pace__fit(void **state) {
    (void)state;
    struct msc_pace pace = MSC_PACE_INIT;
    assert_int_equal(msc_pace_fit(&pace, 1000.0), 1);
    msc_pace_note(&pace, 1, 9.0);
    msc_pace_note(&pace, 10, 20.0);
    assert_int_equal(msc_pace_fit(&pace, 13.0), 6);
    assert_int_equal(msc_pace_fit(&pace, 1.0), 1);
    assert_int_equal(msc_pace_fit(&pace, -1.0), 1);
    // If a trial took no measurable time, any number fits.
    struct msc_pace free_of_charge = MSC_PACE_INIT;
    msc_pace_note(&free_of_charge, 1, 0.0);
    assert_true(msc_pace_fit(&free_of_charge, 1.0) > 1000);
    assert_int_equal(msc_pace_part(&free_of_charge, 1.0), 4);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_pace__rate),
        cmocka_unit_test(test_search_pace__warms_up),
        cmocka_unit_test(test_search_pace__short_trials),
        cmocka_unit_test(test_search_pace__long_trials),
        cmocka_unit_test(test_search_pace__many_threads),
        cmocka_unit_test(test_search_pace__fit),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
