// Queries of a record: best, top, front and baselines. Expected results follow the definitions in
// env/api/trial.h, computed by brute force over random trials.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "records/record_query.h"
#include "records_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define N_TRIALS 400

// The values are few and coarse, so that ties are common.
static struct msc_record *make_record(const struct fixture *f, uint64_t seed) {
    struct msc_record *record = NULL;
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 0);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int64_t i = 0; i < N_TRIALS; i++) {
        struct msc_record_line line = fixture_trial(i);
        struct msc_outcome *outcome = &line.trial.outcome;
        double metrics[FIXTURE_METRICS];
        metrics[0] = (double)msc_rng_below(&rng, 30);
        metrics[1] = 1.0;
        metrics[2] = (double)msc_rng_below(&rng, 30);
        outcome->metrics = metrics;
        outcome->state = (enum msc_trial_state)msc_rng_below(&rng, MSC_TRIAL_STATE_COUNT);
        outcome->violation = outcome->state == MSC_TRIAL_INFEASIBLE ? metrics[0] + 1.0 : 0.0;
        line.trial.proposal.parent = -1;
        if (i > 10 && msc_rng_below(&rng, 4) == 0) {
            struct msc_record_line first =
                msc_record_trial(record, (size_t)msc_rng_below(&rng, (uint64_t)i));
            line.repeat_of = first.repeat_of >= 0 ? first.repeat_of : first.trial.id;
            first = msc_record_trial(record, (size_t)line.repeat_of);
            line.trial.proposal.choices = first.trial.proposal.choices;
            *outcome = first.trial.outcome;
        }
        assert_ok(msc_record_append_trial(record, &line));
    }
    return record;
}

static struct msc_trial trial_of(const struct msc_record *record, size_t id) {
    return msc_record_trial(record, id).trial;
}

static int64_t best_id(const struct msc_record *record) {
    struct msc_record_line best;
    return msc_record_best(&best, record) ? best.trial.id : -1;
}

static int64_t baseline_id(const struct msc_record *record, size_t index) {
    struct msc_record_line line;
    return msc_record_baseline(&line, record, index) ? line.trial.id : -1;
}

static bool can_win(struct msc_trial trial) {
    return trial.outcome.state == MSC_TRIAL_COMPLETE || trial.outcome.state == MSC_TRIAL_INFEASIBLE;
}

static void test_records_record_query__best_and_top(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f, 1);
    int64_t ids[N_TRIALS];
    size_t n = 0;
    msc_record_top(ids, &n, N_TRIALS, record);
    for (size_t i = 0; i + 1 < n; i++) {
        const struct msc_trial a = trial_of(record, (size_t)ids[i]);
        const struct msc_trial b = trial_of(record, (size_t)ids[i + 1]);
        assert_true(msc_trial_compare(&a, &b) < 0);
    }
    size_t n_able = 0;
    for (size_t i = 0; i < N_TRIALS; i++) {
        n_able += can_win(trial_of(record, i)) && msc_record_trial(record, i).repeat_of < 0;
    }
    assert_int_equal(n, n_able);
    assert_int_equal(best_id(record), ids[0]);
    int64_t few[7];
    msc_record_top(few, &n, 7, record);
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
        const struct msc_outcome a = trial_of(record, i).outcome;
        bool is_on_front =
            a.state == MSC_TRIAL_COMPLETE && msc_record_trial(record, i).repeat_of < 0;
        for (size_t k = 0; k < N_TRIALS && is_on_front; k++) {
            const struct msc_outcome b = trial_of(record, k).outcome;
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

// A record opened with only its best trials answers queries like a complete record. If one of the
// best trials is left out, the next best takes its place.
static void test_records_record_query__open_best(void **state) {
    const struct fixture *f = *state;
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct msc_record *whole = make_record(f, seed);
        struct msc_record *best = NULL;
        int64_t ids[2][12], *fronts[2];
        size_t n[2], n_front[2];
        struct msc_record_counts counts[2];
        assert_ok(msc_record_commit(whole));
        assert_ok(msc_record_open_best(&best, f->path, 12, NULL));
        for (int i = 0; i < 4; i++) {
            assert_int_equal(best_id(best), best_id(whole));
            msc_record_top(ids[0], &n[0], 8, whole);
            msc_record_top(ids[1], &n[1], 8, best);
            assert_int_equal(n[0], n[1]);
            assert_memory_equal(ids[0], ids[1], n[0] * sizeof ids[0][0]);
            msc_record_leave_out(whole, ids[0][0]);
            msc_record_leave_out(best, ids[0][0]);
        }
        msc_record_close(best);
        assert_ok(msc_record_open_best(&best, f->path, 1, NULL));
        msc_record_close(whole);
        assert_ok(msc_record_open(&whole, f->path, MSC_RECORD_READ, NULL));
        assert_ok(msc_record_front(&fronts[0], &n_front[0], whole));
        assert_ok(msc_record_front(&fronts[1], &n_front[1], best));
        assert_int_equal(n_front[0], n_front[1]);
        assert_memory_equal(fronts[0], fronts[1], n_front[0] * sizeof fronts[0][0]);
        for (size_t i = 0; i < n_front[0]; i++) {
            const struct msc_record_line a = msc_record_trial(whole, (size_t)fronts[0][i]);
            const struct msc_record_line b = msc_record_trial(best, (size_t)fronts[0][i]);
            fixture_assert_same(&a, &b);
        }
        msc_record_count(&counts[0], whole);
        msc_record_count(&counts[1], best);
        assert_memory_equal(&counts[0], &counts[1], sizeof counts[0]);
        assert_int_equal(baseline_id(best, 1), baseline_id(whole, 1));
        assert_false(msc_record_holds(best, N_TRIALS));
        assert_false(msc_record_holds(best, -1));
        msc_free(fronts[0]);
        msc_free(fronts[1]);
        msc_record_close(best);
        msc_record_close(whole);
        unlink(f->path);
    }
}

static void test_records_record_query__baselines(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    assert_int_equal(baseline_id(record, 0), -1);
    assert_int_equal(best_id(record), -1);
    for (int64_t i = 0; i < 5; i++) {
        struct msc_record_line line = fixture_trial(i);
        line.baseline = i < 2 ? i : i >= 3 ? 1 : -1;
        line.retry_of = i >= 3 ? 1 : -1;
        if (i == 1 || i == 3) {
            line.trial.outcome.state = MSC_TRIAL_FAILED;
            line.trial.outcome.cause = MSC_CAUSE_ENVIRONMENT;
        }
        assert_ok(msc_record_append_trial(record, &line));
    }
    assert_int_equal(baseline_id(record, 0), 0);
    assert_int_equal(baseline_id(record, 1), 4);
    assert_int_equal(baseline_id(record, 2), -1);
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
        CASE(open_best),
        CASE(baselines),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
