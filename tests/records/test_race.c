// Races: what a configuration says of them, who goes on, and what they take.
#include "records/race.h"

#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

static enum msc_status read_text(struct msc_race *out, const char *text, size_t n_batches) {
    cJSON *value = cJSON_Parse(text);
    assert_non_null(value);
    enum msc_status status = msc_race_read(out, value, n_batches, "gym[0].race");
    cJSON_Delete(value);
    return status;
}

static void assert_rungs(const char *text, size_t n_batches, size_t n, const uint32_t rungs[]) {
    struct msc_race race;
    assert_ok(read_text(&race, text, n_batches));
    assert_int_equal(race.n_rungs, n);
    assert_memory_equal(race.rungs, rungs, n * sizeof(rungs[0]));
}

static void test_records_race__rungs(void **state) {
    (void)state;
    // 4 N / (4 + N), rounded up, at most half of N; and twice as many each time.
    assert_rungs("true", 1000, 7, (uint32_t[]){4, 8, 16, 32, 64, 128, 256});
    assert_rungs("true", 64, 4, (uint32_t[]){4, 8, 16, 32});
    assert_rungs("true", 32, 3, (uint32_t[]){4, 8, 16});
    assert_rungs("{\"keep\":0.25}", 12, 2, (uint32_t[]){3, 6});
    assert_rungs("true", 8, 1, (uint32_t[]){3});
    assert_rungs("true", 4, 1, (uint32_t[]){2});
    assert_rungs("true", 3, 1, (uint32_t[]){1});
    assert_rungs("true", 2, 1, (uint32_t[]){1});
    assert_rungs("{\"rungs\":[1,7]}", 8, 2, (uint32_t[]){1, 7});
}

static void test_records_race__what_is_refused(void **state) {
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"3",
         "gym[0].race: expected true, or an object such as {\"rungs\": [1, 4], \"keep\": 0.5}"},
        {"false", "gym[0].race: expected true"},
        {"{\"rung\":[1]}", "gym[0].race: there is no key \"rung\""},
        {"{\"keep\":0}", "gym[0].race: keep is the share"},
        {"{\"keep\":1}", "gym[0].race: keep is the share"},
        {"{\"keep\":\"half\"}", "gym[0].race: keep is the share"},
        {"{\"rungs\":[]}", "gym[0].race: rungs are at most 8 numbers"},
        {"{\"rungs\":4}", "gym[0].race: rungs are at most 8 numbers"},
        {"{\"rungs\":[0,1]}", "gym[0].race: rungs are at most 8 numbers"},
        {"{\"rungs\":[2,2]}", "gym[0].race: rungs are at most 8 numbers"},
        {"{\"rungs\":[1.5]}", "gym[0].race: rungs are at most 8 numbers"},
        {"{\"rungs\":[1,16]}", "in rising order, less than the 16 that there are"},
        {"{\"rungs\":[1,2,3,4,5,6,7,8,9]}", "gym[0].race: rungs are at most 8 numbers"},
    };
    struct msc_race race;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_text(&race, bad[i].text, 16), MSC_E_INVALID);
        assert_non_null(strstr(msc_status_message(), bad[i].message));
    }
    assert_int_equal(read_text(&race, "true", 1), MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "the samples are one batch"));
}

static void test_records_race__comes_back(void **state) {
    struct msc_race race, again;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,3,9],\"keep\":0.3}", 27));
    cJSON *value = msc_race_write(&race);
    assert_non_null(value);
    assert_ok(msc_race_read(&again, value, 27, ""));
    assert_memory_equal(again.rungs, race.rungs, sizeof race.rungs);
    assert_true(again.n_rungs == 3 && again.keep == 0.3);
    cJSON_Delete(value);
}

// Of 8: 8 on 1 batch, 4 on 3 more, 2 on 12 more: 44 of 128.
static void test_records_race__effort(void **state) {
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4]}", 16));
    assert_int_equal(msc_race_kept(&race, 8), 4);
    assert_int_equal(msc_race_kept(&race, 7), 4);
    assert_int_equal(msc_race_kept(&race, 1), 1);
    assert_true(msc_race_effort(&race, 8, 16) == 44.0 / 128.0);
    assert_true(msc_race_effort(&race, 1, 16) == 1.0);
}

// Losses of 6 and 2 that had come to 2 and 1 at the first rung: 2.5 times as much on average.
static void test_records_race__what_agents_are_told(void **state) {
    const struct msc_goal goal = {.n_objectives = 1};
    struct msc_race_ratios ratios = {0};
    double loss;
    struct msc_record_line line = {.trial.proposal.bound = INFINITY,
                                   .trial.outcome = {.metrics = &loss},
                                   .repeat_of = -1,
                                   .n_rungs = 1};
    (void)state;
    for (int i = 0; i < 2; i++) {
        loss = i == 0 ? 6 : 2;
        line.rungs[0] = i == 0 ? 2 : 1;
        line.trial.outcome.objectives[0] = loss;
        line.trial.outcome.state = i == 0 ? MSC_TRIAL_COMPLETE : MSC_TRIAL_INFEASIBLE;
        msc_race_note(&ratios, &goal, &line);
        assert_true(msc_race_told(&ratios, &goal, &line).outcome.objectives[0] == loss);
    }
    loss = line.rungs[0] = line.trial.outcome.objectives[0] = 4;
    line.trial.outcome.state = MSC_TRIAL_PRUNED;
    msc_race_note(&ratios, &goal, &line);
    assert_true(msc_race_told(&ratios, &goal, &line).outcome.objectives[0] == 10);
    line.trial.proposal.bound = 3; // which has stopped it
    assert_true(msc_race_told(&ratios, &goal, &line).outcome.objectives[0] == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_race__rungs),
        cmocka_unit_test(test_records_race__what_is_refused),
        cmocka_unit_test(test_records_race__comes_back),
        cmocka_unit_test(test_records_race__effort),
        cmocka_unit_test(test_records_race__what_agents_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
