// The additive model of a record: effects of single choices, fitted to trials that change several
// choices. The losses are made from known effects.
#include "results/additive.h"

#include "base/rng.h"
#include "tests/msc_test.h"
#include "tests/records/records_fixture.h"

#include <math.h>

static void add_point(struct msc_record *record, uint32_t choices[], double loss) {
    struct msc_record_line line = fixture_trial((int64_t)msc_record_n_trials(record));
    double metrics[FIXTURE_METRICS] = {loss, 1.0, 0.5};
    line.repeat_of = line.retry_of = line.baseline = -1;
    line.trial.proposal.choices = choices;
    line.trial.outcome.metrics = metrics;
    line.trial.outcome.state = MSC_TRIAL_COMPLETE;
    line.trial.outcome.violation = 0.0;
    assert_ok(msc_record_append_trial(record, &line));
}

// The loss is 5 + 3 * (first choice), minus 0.5 if the second task has its last choice.
static void test_report_additive__finds_what_adds_up(void **state) {
    const struct fixture *f = *state;
    const struct msc_task *tasks = fixture_space.tasks;
    struct msc_record *record = NULL;
    struct msc_additive fit;
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int i = 0; i < 300; i++) {
        uint32_t choices[FIXTURE_TASKS];
        for (size_t t = 0; t < FIXTURE_TASKS; t++) {
            choices[t] = (uint32_t)msc_rng_below(&rng, tasks[t].n_choices);
        }
        bool is_last = choices[1] + 1 == tasks[1].n_choices;
        add_point(record, choices, 5.0 + 3.0 * choices[0] - (is_last ? 0.5 : 0.0));
    }
    assert_ok(msc_additive_fit(&fit, record));
    assert_int_equal(fit.n_trials, 300);
    assert_true(fit.explained > 0.99);
    const double *first = fit.effects + fit.offsets[0], *second = fit.effects + fit.offsets[1];
    const double *third = fit.effects + fit.offsets[2];
    assert_true(fabs(first[1] - first[0] - 3.0) < 0.03);
    assert_true(fabs(second[tasks[1].n_choices - 1] - second[0] + 0.5) < 0.03);
    assert_true(fabs(third[1] - third[0]) < 0.03);
    msc_additive_finish(&fit);
    msc_record_close(record);
}

static void test_report_additive__of_nothing(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = NULL;
    struct msc_additive fit;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    assert_ok(msc_additive_fit(&fit, record));
    assert_int_equal(fit.n_trials, 0);
    msc_additive_finish(&fit);
    msc_record_close(record);
}

int main(int argc, char **argv) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_report_additive__finds_what_adds_up),
        CASE(test_report_additive__of_nothing),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
