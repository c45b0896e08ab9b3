// `verify` evaluates lines of a record again: correct lines pass, forged lines do not.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/json.h"
#include "tests/search/fake_env.h"
#include "tests/search/search_fixture.h"
#include "checks/verify.h"
#include "tests/trial_room.h"

#include <math.h>
#include <unistd.h>

#define ENV "{\"tasks\":6,\"choices\":4,\"baselines\":2,\"bounds\":{\"size_bytes\":{\"max\":55}}}"

static void run_search(struct search_run *run, const struct fixture *f) {
    const struct launch one = {.path = f->path,
                               .env = ENV,
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"random\"}",
                               .options = LAUNCH_TRIALS(30)};
    fake_reset();
    run_launch(run, &one);
    assert_ok(run->status);
}

static void test_search_verify__all_lines(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_verify_result result;
    run_search(&run, f);
    struct msc_verify_options options = {
        .record = run.result.record, .env = run.env, .numerics = "test", .noise_ratio = -1};
    assert_ok(msc_verify_run(&result, &options));
    assert_int_equal(result.n_lines, 32);
    assert_int_equal(result.n_by_verdict[MSC_VERIFY_EQUAL], 32);
    assert_true(isnan(result.noise_ratio));
    msc_verify_result_finish(&result);
    options.n_sample = 5;
    assert_ok(msc_verify_run(&result, &options));
    assert_int_equal(result.n_lines, 5);
    for (size_t i = 0; i + 1 < 5; i++) {
        assert_true(result.lines[i].id < result.lines[i + 1].id);
    }
    msc_verify_result_finish(&result);
    const int64_t ids[] = {7, 3, 3};
    options.ids = ids;
    options.n_ids = 3;
    assert_ok(msc_verify_run(&result, &options));
    assert_int_equal(result.n_lines, 2);
    assert_int_equal(result.lines[0].id, 3);
    msc_verify_result_finish(&result);
    const int64_t absent[] = {32};
    options.ids = absent;
    options.n_ids = 1;
    assert_int_equal(msc_verify_run(&result, &options), MSC_E_INVALID);
    assert_message("trial 32 does not exist");
    run_finish(&run);
}

// A copy of the record with each loss scaled by `factor`, trial 4 marked as failed, and valid
// checksums.
static struct msc_record *forge(const struct fixture *f, const struct msc_record *record,
                                double factor) {
    char path[FIXTURE_PATH_BYTES];
    struct msc_record *forged = NULL;
    fixture_join(path, f, "forged.jsonl");
    unlink(path);
    cJSON *header = cJSON_Duplicate(msc_record_header(record), 1);
    cJSON_DeleteItemFromObject(header, "checksum");
    cJSON_DeleteItemFromObject(header, "measured");
    assert_ok(msc_record_create(&forged, path, header, NULL));
    cJSON_Delete(header);
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        struct msc_record_line line = msc_record_trial(record, i);
        struct msc_outcome *outcome = &line.trial.outcome;
        double metrics[2] = {outcome->metrics[0] * factor, outcome->metrics[1]};
        outcome->metrics = metrics;
        outcome->state = i == 4 ? MSC_TRIAL_FAILED : outcome->state;
        line.repeat_of = -1;
        assert_ok(msc_record_append_trial(forged, &line));
    }
    assert_ok(msc_record_commit(forged));
    return forged;
}

static void test_search_verify__changed_lines(void **state) {
    static const struct {
        double factor;
        const char *numerics;
        enum msc_verify_verdict verdict; // the expected verdict on lines with a loss
    } rows[] = {
        {1.0, "test", MSC_VERIFY_EQUAL},
        {1.0 + 1e-15, "test", MSC_VERIFY_DIFFERENT},
        {1.0 + 1e-15, "other", MSC_VERIFY_WITHIN_NOISE},
        {1.009, "other", MSC_VERIFY_WITHIN_NOISE}, // the fake environment's noise is 0.01
        {1.02, "other", MSC_VERIFY_DIFFERENT},
    };
    const struct fixture *f = *state;
    struct search_run run;
    run_search(&run, f);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct msc_verify_result result;
        struct msc_record *forged = forge(f, run.result.record, rows[r].factor);
        const struct msc_verify_options options = {
            .record = forged, .env = run.env, .numerics = rows[r].numerics, .noise_ratio = -1};
        assert_ok(msc_verify_run(&result, &options));
        for (size_t i = 0; i < result.n_lines; i++) {
            double loss = msc_record_trial(forged, i).trial.outcome.metrics[0];
            bool has_loss = loss > 0.0; // the loss is measured and not zero
            enum msc_verify_verdict expected = i == 4     ? MSC_VERIFY_SKIPPED
                                               : has_loss ? rows[r].verdict
                                                          : MSC_VERIFY_EQUAL;
            assert_int_equal(result.lines[i].verdict, expected);
            if (expected == MSC_VERIFY_DIFFERENT) {
                assert_string_equal(result.lines[i].metric, "distill_loss");
                assert_true(result.lines[i].recorded == loss);
            }
        }
        msc_verify_result_finish(&result);
        msc_record_close(forged);
    }
    run_finish(&run);
}

// Pruned trials are evaluated again under their own bounds, and repeats under the bound of the
// trial that they repeat.
static void test_search_verify__stopped_lines(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    struct msc_verify_result result;
    const struct launch one = {.path = f->path,
                               .env = "{\"tasks\":4,\"choices\":3,\"baselines\":3}",
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"grid_search\"}",
                               .options = LAUNCH_TRIALS(-1)};
    fake_reset();
    run_launch(&run, &one);
    assert_ok(run.status);
    size_t n_stopped = 0;
    for (size_t i = 0; i < msc_record_n_trials(run.result.record); i++) {
        n_stopped += msc_record_trial(run.result.record, i).trial.outcome.state == MSC_TRIAL_PRUNED;
    }
    assert_int_equal(n_stopped, 4 * 2);
    const struct msc_verify_options options = {
        .record = run.result.record, .env = run.env, .numerics = "test", .noise_ratio = -1};
    assert_ok(msc_verify_run(&result, &options));
    assert_int_equal(result.n_by_verdict[MSC_VERIFY_EQUAL], result.n_lines);
    msc_verify_result_finish(&result);
    run_finish(&run);
}

// Under other numerics a trial may or may not be pruned if its loss is within the noise (0.01) of
// its bound. The fake environment gives a loss of 1.
static void test_search_verify__stopped_elsewhere(void **state) {
    static const struct {
        double bound, recorded;
        enum msc_trial_state state;
        const char *numerics;
        enum msc_verify_verdict verdict;
    } rows[] = {
        {0.4, 0.403, MSC_TRIAL_PRUNED, "other", MSC_VERIFY_WITHIN_NOISE},
        {0.4, 0.403, MSC_TRIAL_PRUNED, "test", MSC_VERIFY_DIFFERENT},
        {0.4, 0.41, MSC_TRIAL_PRUNED, "other", MSC_VERIFY_DIFFERENT},
        {0.995, 2.0, MSC_TRIAL_PRUNED, "other", MSC_VERIFY_WITHIN_NOISE},
        {0.995, 0.994, MSC_TRIAL_COMPLETE, "other", MSC_VERIFY_WITHIN_NOISE},
        {0.9, 0.899, MSC_TRIAL_COMPLETE, "other", MSC_VERIFY_WITHIN_NOISE},
        {0.8, 0.7, MSC_TRIAL_COMPLETE, "other", MSC_VERIFY_DIFFERENT},
    };
    const struct fixture *f = *state;
    struct search_run run;
    char path[FIXTURE_PATH_BYTES];
    run_search(&run, f);
    fixture_join(path, f, "stopped.jsonl");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct msc_verify_result result;
        struct msc_record *record = NULL;
        const uint32_t choices[6] = {1};
        struct trial_room room;
        struct msc_record_line line = {.repeat_of = -1, .retry_of = -1, .baseline = -1};
        line.trial = *trial_make(&room, 0, choices, 6);
        line.trial.proposal.bound = rows[r].bound;
        line.trial.proposal.probe = true;
        line.trial.outcome.state = rows[r].state;
        room.metrics[0] = rows[r].recorded;
        room.metrics[1] = 59;
        unlink(path);
        cJSON *header = cJSON_Duplicate(msc_record_header(run.result.record), 1);
        cJSON_DeleteItemFromObject(header, "checksum");
        cJSON_DeleteItemFromObject(header, "measured");
        assert_ok(msc_record_create(&record, path, header, NULL));
        cJSON_Delete(header);
        assert_ok(msc_record_append_trial(record, &line));
        const struct msc_verify_options options = {
            .record = record, .env = run.env, .numerics = rows[r].numerics, .noise_ratio = 0.01};
        assert_ok(msc_verify_run(&result, &options));
        assert_int_equal(result.lines[0].verdict, rows[r].verdict);
        msc_verify_result_finish(&result);
        msc_record_close(record);
    }
    run_finish(&run);
}

static void test_search_verify__parse_ids(void **state) {
    (void)state;
    static const int64_t expected[] = {3, 7, 8, 9, 12};
    static const char *const bad[] = {"", ",", "3,", "a", "9-7", "-1", "1-", "1--2", "3;4"};
    int64_t *ids = NULL;
    size_t n = 0;
    assert_ok(msc_verify_parse_ids(&ids, &n, "12,3,7-9,8"));
    assert_int_equal(n, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    msc_free(ids);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(msc_verify_parse_ids(&ids, &n, bad[i]), MSC_E_INVALID);
        assert_null(ids);
    }
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_verify__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(all_lines),         CASE(changed_lines), CASE(stopped_lines),
        CASE(stopped_elsewhere), CASE(parse_ids),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
