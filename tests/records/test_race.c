// Races: how their configuration is read, which trials go on to the next rung, and how much a race
// evaluates. Expected values are worked out by hand in the comments.
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
    // Each rung is half of the next one. The last rung is at most N / 2 batches, and there are at
    // most 8 rungs.
    assert_rungs("true", 1000, 8, (uint32_t[]){3, 6, 12, 24, 48, 96, 192, 384});
    assert_rungs("true", 64, 6, (uint32_t[]){1, 2, 4, 8, 16, 32});
    assert_rungs("{\"keep\":0.25}", 12, 3, (uint32_t[]){1, 2, 4});
    assert_rungs("true", 5, 2, (uint32_t[]){1, 2});
    assert_rungs("true", 3, 1, (uint32_t[]){1});
    assert_rungs("true", 2, 1, (uint32_t[]){1});
    // Without a margin the first rung is 4 N / (4 + N) batches, rounded up, and the last is at most
    // N / 2.
    assert_rungs("{\"margin\":false}", 1000, 7, (uint32_t[]){4, 8, 16, 32, 64, 128, 256});
    assert_rungs("{\"margin\":false}", 64, 4, (uint32_t[]){4, 8, 16, 32});
    assert_rungs("{\"margin\":false}", 32, 3, (uint32_t[]){4, 8, 16});
    assert_rungs("{\"keep\":0.25,\"margin\":false}", 12, 2, (uint32_t[]){3, 6});
    assert_rungs("{\"margin\":false}", 8, 1, (uint32_t[]){3});
    assert_rungs("{\"margin\":false}", 4, 1, (uint32_t[]){2});
    assert_rungs("{\"margin\":false}", 3, 1, (uint32_t[]){1});
    assert_rungs("{\"margin\":false}", 2, 1, (uint32_t[]){1});
    assert_rungs("{\"rungs\":[1,7]}", 8, 2, (uint32_t[]){1, 7});
}

static void test_records_race__what_is_refused(void **state) {
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"3",
         "gym[0].race: expected true, or an object such as {\"rungs\": [1, 4], \"keep\": 0.5}"},
        {"false", "gym[0].race: expected true"},
        {"{\"rung\":[1]}", "gym[0].race: unknown key \"rung\""},
        {"{\"batches\":16}", "gym[0].race: unknown key \"batches\""},
        {"{\"version\":2}", "gym[0].race: unknown key \"version\""},
        {"{\"margin\":0}", "gym[0].race: margin must be a number of standard errors"},
        {"{\"margin\":true}", "gym[0].race: margin must be a number of standard errors"},
        {"{\"margin\":1e9}", "gym[0].race: margin must be a number of standard errors"},
        {"{\"keep\":0}", "gym[0].race: keep must be more than 0"},
        {"{\"keep\":1}", "gym[0].race: keep must be more than 0"},
        {"{\"keep\":\"half\"}", "gym[0].race: keep must be more than 0"},
        {"{\"rungs\":[]}", "gym[0].race: rungs must list at most 8 numbers"},
        {"{\"rungs\":4}", "gym[0].race: rungs must list at most 8 numbers"},
        {"{\"rungs\":[0,1]}", "gym[0].race: rungs must list at most 8 numbers"},
        {"{\"rungs\":[2,2]}", "gym[0].race: rungs must list at most 8 numbers"},
        {"{\"rungs\":[1.5]}", "gym[0].race: rungs must list at most 8 numbers"},
        {"{\"rungs\":[1,16]}", "in increasing order, fewer than all 16 batches"},
        {"{\"rungs\":[1,2,3,4,5,6,7,8,9]}", "gym[0].race: rungs must list at most 8 numbers"},
    };
    struct msc_race race;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_text(&race, bad[i].text, 16), MSC_E_INVALID);
        assert_non_null(strstr(msc_status_message(), bad[i].message));
    }
    assert_int_equal(read_text(&race, "true", 1), MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "a race needs several batches"));
}

static void write_and_read(struct msc_race *again, const struct msc_race *race) {
    cJSON *value = msc_race_write(race);
    assert_non_null(value);
    assert_ok(msc_race_read_header(again, value, ""));
    cJSON_Delete(value);
}

static void test_records_race__comes_back(void **state) {
    struct msc_race race, again;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,3,9],\"keep\":0.3}", 27));
    write_and_read(&again, &race);
    assert_memory_equal(again.rungs, race.rungs, sizeof race.rungs);
    assert_true(again.n_rungs == 3 && again.keep == 0.3 && again.margin == 1.5);
    assert_int_equal(again.n_batches, 27);
    assert_ok(read_text(&race, "{\"margin\":2.5}", 4));
    write_and_read(&again, &race);
    assert_true(again.margin == 2.5);
    // A margin of false comes back as 0.
    assert_ok(read_text(&race, "{\"rungs\":[1,3,9],\"margin\":false}", 27));
    write_and_read(&again, &race);
    assert_true(again.margin == 0.0);
}

static void test_records_race__what_headers_are_refused(void **state) {
    static const char *const bad[] = {
        "{}",
        "{\"version\":1}",
        "{\"version\":1,\"rungs\":[1],\"margin\":1}",
        "{\"version\":1,\"rungs\":[1],\"margin\":1,\"batches\":1}",
        "{\"version\":1,\"rungs\":[1],\"margin\":1,\"batches\":2.5}",
        "{\"version\":1,\"rungs\":[1],\"margin\":1,\"batches\":1e300}",
        "{\"version\":1,\"rungs\":[1,2],\"margin\":1,\"batches\":2}",
        "{\"version\":1,\"rungs\":[1],\"margin\":-1,\"batches\":4}",
        "{\"rungs\":[1]}",
        "{\"rungs\":[1],\"version\":0}",
        "{\"rungs\":[1],\"version\":1000}",
        "{\"rungs\":[1],\"version\":\"1\"}",
    };
    struct msc_race race;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cJSON *value = cJSON_Parse(bad[i]);
        assert_int_equal(msc_race_read_header(&race, value, "a"), MSC_E_INVALID);
        cJSON_Delete(value);
    }
}

// n trials that compete are measured on n batches, ceil(n / 2) * 3 more, and half of these, rounded
// up, * 12 more. The greatest effort of 8 trials is that of 7 (43) and 1 that cannot win (16). With
// a margin, all n may go on to 4 batches and ceil(n / 2) * 12 more, and those that cannot win only
// to 4 batches. With rungs at 1, 2, 4 and 8 batches, 5 trials take 48, and 3 that cannot win 8
// each.
static void test_records_race__effort(void **state) {
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4],\"margin\":false}", 16));
    assert_true(msc_race_effort(&race, 8, 16) == 59.0 / 128.0);
    assert_true(msc_race_effort(&race, 1, 16) == 1.0);
    assert_ok(read_text(&race, "{\"rungs\":[1,4]}", 16));
    assert_true(msc_race_effort(&race, 8, 16) == 80.0 / 128.0);
    msc_race_default(&race, 16);
    assert_true(msc_race_effort(&race, 8, 16) == 72.0 / 128.0);
}

// ---- Which trials go on -----------------------------------------------------------------------

static const double one_to_eight[] = {1, 2, 3, 4, 5, 6, 7, 8};

static void test_records_race__halves(void **state) {
    const struct msc_race_known known = {.has_best = true, .best = {0.5, 0.5, 0.5}};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4],\"margin\":false}", 16));
    for (int can_win = 0; can_win < 2; can_win++) {
        assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, can_win), 4);
        assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 7, can_win), 4);
        assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 1, can_win), 1);
        assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 0, can_win), 0);
    }
}

// Notes a measured trial: its partial sums a and b at two rungs, and its final loss.
static void note_line(struct msc_race_known *known, const struct msc_race *race, double a, double b,
                      double loss, double violation, int64_t baseline) {
    const struct msc_goal goal = {.n_objectives = 1};
    const struct msc_record_line line = {
        .trial.outcome = {.state = violation > 0.0 ? MSC_TRIAL_INFEASIBLE : MSC_TRIAL_COMPLETE,
                          .metrics = &loss,
                          .objectives = {loss},
                          .violation = violation},
        .repeat_of = -1,
        .baseline = baseline,
        .n_rungs = 2,
        .rungs = {a, b},
    };
    msc_race_note(known, race, &goal, &line);
}

static void note(struct msc_race_known *known, const struct msc_race *race, double a, double b,
                 double loss) {
    note_line(known, race, a, b, loss, 0.0, -1);
}

static void assert_error(const struct msc_race *race, const struct msc_race_known *known,
                         size_t rung, bool can_win, double error) {
    assert_float_equal(msc_race_error(race, known, rung, can_win), error, 1e-4);
}

// The rungs are after 1 and 4 of 16 batches. Without data, the prior counts as 4 factors with a
// standard deviation of 0.3 for one batch. After 1 batch, error^2 = (4 * 0.09) / 4 * (1 / 1 - 1 /
// 16) = 0.09 * 15 / 16 = 0.2905^2. After 4 batches, error^2 = 0.09 * 3 / 16 = 0.1299^2.
static void test_records_race__margin(void **state) {
    struct msc_race_known known = {0};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4],\"margin\":2}", 16));
    for (int can_win = 0; can_win < 2; can_win++) {
        assert_error(&race, &known, 0, can_win, 0.2905);
        assert_error(&race, &known, 1, can_win, 0.1299);
    }
    // If the error is above 0.25, no trial is eliminated. Without a best trial, the trials of a
    // round are compared with each other.
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, true), 8);
    assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 8, true), 4);
    note(&known, &race, 1, 1.5, 2);
    assert_true(known.has_best && known.n_squares[true] == 0);
    // Sums above 1.5 * exp(2 * 0.1299) = 1.94 are eliminated after 4 batches.
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, true), 8);
    assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 8, true), 1);
    assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight + 1, 7, true), 0);
    // 12 factors that do not change reduce error^2 to a quarter. After one batch, sums above 1 *
    // exp(2 * 0.145) = 1.34 are eliminated. At that rung the trials of a round are not compared
    // with each other.
    for (int i = 0; i < 6; i++) {
        note(&known, &race, 2, 3, 4);
    }
    assert_error(&race, &known, 0, true, 0.1452);
    assert_error(&race, &known, 0, false, 0.2905);
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, true), 1);
    assert_int_equal(msc_race_going(&race, &known, 0, (const double[]){1, 1.1, 1.2, 1.3}, 4, true),
                     4);
}

// A trial that cannot win still continues until its error is at most 0.06, or until the last rung.
static void test_records_race__what_cannot_win(void **state) {
    struct msc_race_known known = {0};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4,8],\"margin\":2}", 16));
    assert_error(&race, &known, 1, false, 0.1299);
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, false), 8);
    assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 8, false), 8);
    assert_int_equal(msc_race_going(&race, &known, 2, one_to_eight, 8, false), 0);
    known.n_squares[false] = 16; // 16 constant factors make the error 0.1299 / sqrt(5) = 0.058
    assert_error(&race, &known, 1, false, 0.0581);
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, false), 8);
    assert_int_equal(msc_race_going(&race, &known, 1, one_to_eight, 8, false), 0);
}

// If the error is above 0.25 at the only rung of a race, trials are still eliminated: the limit is
// 0.25 * exp(2 * 1.4668) = 4.7.
static void test_records_race__last_rung(void **state) {
    struct msc_race_known known = {.n_squares = {0, 4}, .squares = {0.0, 18.0}, .has_best = true};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1],\"margin\":2}", 16));
    known.best[0] = known.best[1] = 0.25;
    assert_error(&race, &known, 0, true, 1.4668);
    assert_int_equal(msc_race_going(&race, &known, 0, one_to_eight, 8, true), 4);
}

// If a trial has half of the best trial's sum at every rung, its factor is constant, so it adds no
// error. Factors of 3, 2 and 3 change by log(3 / 2) from 1 to 4 batches and from 4 to 16.
static void test_records_race__learns_the_spread(void **state) {
    const double change = log(3.0 / 2.0);
    struct msc_race_known known = {0};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4]}", 16));
    note(&known, &race, 2, 4, 8);
    note(&known, &race, 1, 2, 4);
    assert_true(known.n_squares[true] == 2 && known.squares[true] == 0.0 && known.best[2] == 4);
    note(&known, &race, 3, 4, 12);
    assert_true(known.n_squares[true] == 4 && known.best[2] == 4);
    double squares = change * change / (1.0 - 0.25) + change * change / (0.25 - 1.0 / 16.0);
    assert_float_equal(known.squares[true], squares, 1e-12);
    assert_float_equal(msc_race_error(&race, &known, 0, true),
                       sqrt((squares + 0.36) / 8.0 * 15.0 / 16.0), 1e-12);
    note(&known, &race, 0, 4, 12); // a sum of 0 has no factor
    assert_int_equal(known.n_squares[true], 5);
}

// An infeasible trial is compared with the nearest of the baselines and the best trial. Here the
// trial is 0.8 times the baseline of 10 at every rung, but 8 and 4 times the best.
static void test_records_race__nearest_reference(void **state) {
    struct msc_race_known known = {0};
    struct msc_race race;
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4]}", 16));
    note_line(&known, &race, 1, 5, 10, 1.0, 0);
    assert_true(known.n_baselines == 1 && known.n_squares[false] == 0 && !known.has_best);
    note(&known, &race, 0.1, 1, 2);
    note_line(&known, &race, 0.8, 4, 8, 1.0, -1);
    assert_int_equal(known.n_squares[false], 2);
    assert_float_equal(known.squares[false], 0.0, 1e-12);
    assert_int_equal(known.n_squares[true], 0);
}

// Trials with losses of 6 and 2 had sums of 2 and 1 at the first rung. The mean factor is 2.5, so a
// sum of 4 is extrapolated to 10.
static void test_records_race__what_agents_are_told(void **state) {
    const struct msc_goal goal = {.n_objectives = 1};
    const struct msc_race race = {.n_rungs = 1, .rungs = {1}, .n_batches = 4};
    struct msc_race_known known = {0};
    double loss;
    struct msc_record_line line = {.trial.proposal.bound = INFINITY,
                                   .trial.outcome = {.metrics = &loss},
                                   .repeat_of = -1,
                                   .baseline = -1,
                                   .n_rungs = 1};
    (void)state;
    for (int i = 0; i < 2; i++) {
        loss = i == 0 ? 6 : 2;
        line.rungs[0] = i == 0 ? 2 : 1;
        line.trial.outcome.objectives[0] = loss;
        line.trial.outcome.state = i == 0 ? MSC_TRIAL_COMPLETE : MSC_TRIAL_INFEASIBLE;
        msc_race_note(&known, &race, &goal, &line);
        assert_true(msc_race_told(&known, &race, &goal, &line, &line).outcome.objectives[0] ==
                    loss);
    }
    loss = line.rungs[0] = line.trial.outcome.objectives[0] = 4;
    line.trial.outcome.state = MSC_TRIAL_PRUNED;
    msc_race_note(&known, &race, &goal, &line);
    assert_true(msc_race_told(&known, &race, &goal, &line, &line).outcome.objectives[0] == 10);
    line.trial.proposal.bound = 3; // a trial that its own bound stopped is not extrapolated
    assert_true(msc_race_told(&known, &race, &goal, &line, &line).outcome.objectives[0] == 4);
}

// With a margin a sum is extrapolated by the growth of the best trial's sum. The factor is 2 after
// 1 of 16 batches, and 4/3 after 4 batches.
static void test_records_race__what_agents_are_told_beside_the_best(void **state) {
    const struct msc_goal goal = {.n_objectives = 1};
    struct msc_race_known known = {0};
    struct msc_race race;
    double loss = 3;
    struct msc_record_line line = {
        .trial = {.proposal.bound = INFINITY,
                  .outcome = {.state = MSC_TRIAL_PRUNED, .metrics = &loss, .objectives = {3}}},
        .repeat_of = -1,
        .n_rungs = 1,
        .rungs = {3, 3}};
    (void)state;
    assert_ok(read_text(&race, "{\"rungs\":[1,4]}", 16));
    note(&known, &race, 1, 1.5, 2);
    note(&known, &race, 1, 3, 9);
    assert_float_equal(msc_race_told(&known, &race, &goal, &line, &line).outcome.objectives[0], 6,
                       1e-12);
    line.n_rungs = 2;
    assert_float_equal(msc_race_told(&known, &race, &goal, &line, &line).outcome.objectives[0], 4,
                       1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_race__rungs),
        cmocka_unit_test(test_records_race__what_is_refused),
        cmocka_unit_test(test_records_race__comes_back),
        cmocka_unit_test(test_records_race__what_headers_are_refused),
        cmocka_unit_test(test_records_race__effort),
        cmocka_unit_test(test_records_race__halves),
        cmocka_unit_test(test_records_race__margin),
        cmocka_unit_test(test_records_race__what_cannot_win),
        cmocka_unit_test(test_records_race__last_rung),
        cmocka_unit_test(test_records_race__nearest_reference),
        cmocka_unit_test(test_records_race__learns_the_spread),
        cmocka_unit_test(test_records_race__what_agents_are_told),
        cmocka_unit_test(test_records_race__what_agents_are_told_beside_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
