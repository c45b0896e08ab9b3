// Best, top, front and baselines against the definitions in env/api/trial.h, worked out the slow
// way over random trials.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "records/record_query.h"
#include "records_fixture.h"

#include <math.h>
#include <stdlib.h>

#define N_TRIALS 400

// Few distinct values, so that ties are common.
static struct msc_record *make_record(const struct fixture *f, uint64_t seed) {
    struct msc_record *record = NULL;
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 0);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int64_t i = 0; i < N_TRIALS; i++) {
        struct msc_record_trial trial = fixture_trial(i);
        double metrics[FIXTURE_METRICS];
        metrics[0] = (double)msc_rng_below(&rng, 30);
        metrics[1] = 1.0;
        metrics[2] = (double)msc_rng_below(&rng, 30);
        trial.metrics = metrics;
        trial.state = (enum msc_trial_state)msc_rng_below(&rng, MSC_TRIAL_STATE_COUNT);
        trial.violation = trial.state == MSC_TRIAL_INFEASIBLE ? metrics[0] + 1.0 : 0.0;
        trial.parent = -1;
        if (i > 10 && msc_rng_below(&rng, 4) == 0) {
            const struct msc_record_trial *first =
                msc_record_trial(record, (size_t)msc_rng_below(&rng, (uint64_t)i));
            trial.repeat_of = first->repeat_of >= 0 ? first->repeat_of : first->id;
            first = msc_record_trial(record, (size_t)trial.repeat_of);
            trial.choices = first->choices;
            trial.metrics = first->metrics;
            trial.state = first->state;
            trial.violation = first->violation;
        }
        assert_ok(msc_record_append_trial(record, &trial));
    }
    return record;
}

static struct msc_outcome outcome_of(const struct msc_record *record, size_t id) {
    struct msc_outcome outcome;
    msc_record_as_outcome(&outcome, record, msc_record_trial(record, id));
    return outcome;
}

static bool can_win(const struct msc_record_trial *trial) {
    return trial->state == MSC_TRIAL_COMPLETE || trial->state == MSC_TRIAL_INFEASIBLE;
}

static void test_records_record_query__best_and_top(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f, 1);
    int64_t ids[N_TRIALS];
    size_t n = 0;
    assert_ok(msc_record_top(ids, &n, N_TRIALS, record));
    for (size_t i = 0; i + 1 < n; i++) {
        struct msc_outcome a = outcome_of(record, (size_t)ids[i]);
        struct msc_outcome b = outcome_of(record, (size_t)ids[i + 1]);
        assert_true(msc_outcome_compare(&a, ids[i], &b, ids[i + 1]) < 0);
    }
    size_t n_able = 0;
    for (size_t i = 0; i < N_TRIALS; i++) {
        const struct msc_record_trial *trial = msc_record_trial(record, i);
        n_able += can_win(trial) && trial->repeat_of < 0;
    }
    assert_int_equal(n, n_able);
    assert_int_equal(msc_record_best(record)->id, ids[0]);
    int64_t few[7];
    assert_ok(msc_record_top(few, &n, 7, record));
    assert_int_equal(n, 7);
    assert_memory_equal(few, ids, sizeof few);
    msc_record_close(record);
}

static void test_records_record_query__front(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f, 2);
    int64_t *ids = NULL;
    size_t n = 0;
    assert_ok(msc_record_front(&ids, &n, record));
    size_t n_expected = 0;
    for (size_t i = 0; i < N_TRIALS; i++) {
        struct msc_outcome a = outcome_of(record, i);
        bool is_on_front =
            a.state == MSC_TRIAL_COMPLETE && msc_record_trial(record, i)->repeat_of < 0;
        for (size_t k = 0; k < N_TRIALS && is_on_front; k++) {
            struct msc_outcome b = outcome_of(record, k);
            bool is_twin = b.objectives[0] == a.objectives[0] && b.objectives[1] == a.objectives[1];
            is_on_front = b.state != MSC_TRIAL_COMPLETE ||
                          (!msc_outcome_dominates(&b, &a, 2) && !(is_twin && k < i));
        }
        if (is_on_front) {
            bool is_found = false;
            for (size_t k = 0; k < n; k++) {
                is_found = is_found || ids[k] == (int64_t)i;
            }
            assert_true(is_found);
            n_expected++;
        }
    }
    assert_true(n > 2);
    assert_int_equal(n, n_expected);
    msc_free(ids);
    msc_record_close(record);
}

static void test_records_record_query__baselines(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    assert_null(msc_record_baseline(record, 0));
    assert_null(msc_record_best(record));
    for (int64_t i = 0; i < 5; i++) {
        struct msc_record_trial trial = fixture_trial(i);
        trial.baseline = i < 2 ? i : i >= 3 ? 1 : -1;
        trial.retry_of = i >= 3 ? 1 : -1;
        if (i == 1 || i == 3) {
            trial.state = MSC_TRIAL_FAILED;
            trial.cause = MSC_CAUSE_ENVIRONMENT;
        }
        assert_ok(msc_record_append_trial(record, &trial));
    }
    assert_int_equal(msc_record_baseline(record, 0)->id, 0);
    assert_int_equal(msc_record_baseline(record, 1)->id, 4);
    assert_null(msc_record_baseline(record, 2));
    struct msc_record_counts counts;
    msc_record_count(&counts, record);
    assert_int_equal(counts.n_trials, 5);
    assert_int_equal(counts.n_baselines, 4);
    assert_int_equal(counts.n_retries, 2);
    assert_int_equal(counts.n_budgeted, 1);
    assert_int_equal(counts.n_by_state[MSC_TRIAL_FAILED], 2);
    assert_true(counts.elapsed_s == 1.0);
    msc_record_close(record);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_records_record_query__##name, fixture_setup,              \
                                    fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(best_and_top),
        CASE(front),
        CASE(baselines),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
