// Data of the charts over trials: exact for a few trials (expected values worked out by hand),
// thinned for many.
#include "results/trial_figures.h"

#include "base/json.h"
#include "base/rng.h"
#include "records/record_query.h"
#include "tests/msc_test.h"
#include "tests/records/records_fixture.h"

// A record with the loss as its only objective and the size as its only cost.
static struct msc_record *make_record(const struct fixture *f) {
    struct msc_record *record = NULL;
    cJSON *objectives = cJSON_GetObjectItemCaseSensitive(f->header, "objectives");
    while (cJSON_GetArraySize(objectives) > 1) {
        cJSON_DeleteItemFromArray(objectives, 1);
    }
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    return record;
}

static void add_trial(struct msc_record *record, double loss, double size, double elapsed_s) {
    struct msc_record_line line = fixture_trial((int64_t)msc_record_n_trials(record));
    double metrics[FIXTURE_METRICS] = {loss, size, 0.5};
    line.repeat_of = -1;
    line.retry_of = -1;
    line.baseline = -1;
    line.elapsed_s = elapsed_s;
    line.trial.outcome.metrics = metrics;
    line.trial.outcome.state = MSC_TRIAL_COMPLETE;
    line.trial.outcome.violation = 0.0;
    assert_ok(msc_record_append_trial(record, &line));
}

static double number_at(const cJSON *figures, const char *object, const char *key, int i) {
    const cJSON *list =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(figures, object), key);
    const cJSON *item = cJSON_GetArrayItem(list, i);
    assert_non_null(item);
    return item->valuedouble;
}

static int size_of(const cJSON *figures, const char *object, const char *key) {
    return cJSON_GetArraySize(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(figures, object), key));
}

static void test_report_trial_figures__of_a_few(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f);
    cJSON *figures = NULL;
    add_trial(record, 8.0, 40.0, 1.0);
    add_trial(record, 9.0, 30.0, 1.0); // smaller but with more loss: on the front
    add_trial(record, 9.5, 35.0, 2.0); // worse than trial 1 in both: not on the front
    add_trial(record, 4.0, 50.0, 4.0);
    assert_ok(msc_trial_figures(&figures, record, NULL, 0));
    assert_int_equal(size_of(figures, "best", "value"), 2);
    assert_true(number_at(figures, "best", "trial", 1) == 3.0);
    assert_true(number_at(figures, "best", "seconds", 1) == 4.0);
    assert_true(number_at(figures, "best", "value", 1) == 4.0);
    const cJSON *front = cJSON_GetObjectItemCaseSensitive(figures, "front"), *row = NULL;
    static const double expected[] = {1, 0, 3};
    int i = 0;
    cJSON_ArrayForEach(row, front) {
        assert_true(cJSON_GetObjectItemCaseSensitive(row, "id")->valuedouble == expected[i++]);
    }
    assert_int_equal(i, 3);
    assert_int_equal(size_of(figures, "points", "id"), 4);
    // Two trials end within the first second, one within the next second, and one within the next
    // two seconds.
    assert_true(number_at(figures, "speed", "trials_per_s", 0) == 2.0);
    assert_true(number_at(figures, "speed", "trials_per_s", 1) == 1.0);
    assert_true(number_at(figures, "speed", "trials_per_s", 2) == 0.5);
    cJSON_Delete(figures);
    msc_record_close(record);
}

// The choices of a task at the points, in the order of the tasks that were asked for.
static void test_report_trial_figures__choices_of_tasks(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f);
    const struct msc_space *space = msc_record_space(record);
    const char *const tasks[] = {space->tasks[1].name, "no such task", space->tasks[0].name};
    cJSON *figures = NULL;
    add_trial(record, 8.0, 40.0, 1.0);
    add_trial(record, 9.0, 30.0, 1.0);
    assert_ok(msc_trial_figures(&figures, record, tasks, 3));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(figures, "tasks");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    for (int i = 0; i < 2; i++) {
        const struct msc_task *task = &space->tasks[1 - i];
        const cJSON *item = cJSON_GetArrayItem(list, i);
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(item, "labels");
        const cJSON *choices = cJSON_GetObjectItemCaseSensitive(item, "choices");
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(item, "task")->valuestring,
                            task->name);
        assert_int_equal(cJSON_GetArraySize(labels), task->n_choices);
        assert_string_equal(cJSON_GetArrayItem(labels, 0)->valuestring, task->labels[0]);
        assert_int_equal(cJSON_GetArraySize(choices), 2);
        for (int k = 0; k < 2; k++) {
            const struct msc_record_line line = fixture_trial(k);
            assert_int_equal(cJSON_GetArrayItem(choices, k)->valueint,
                             line.trial.proposal.choices[1 - i]);
        }
    }
    cJSON_Delete(figures);
    msc_record_close(record);
}

static bool has_point(const cJSON *figures, double id) {
    for (int i = 0; i < size_of(figures, "points", "id"); i++) {
        if (number_at(figures, "points", "id", i) == id) {
            return true;
        }
    }
    return false;
}

static void test_report_trial_figures__of_many_keep_extremes_and_front(void **state) {
    enum { N = 8000 };
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f);
    cJSON *figures = NULL;
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    for (int i = 0; i < N; i++) {
        bool is_least = i == 4321, is_greatest = i == 5000;
        double loss = is_least      ? 1e-3
                      : is_greatest ? 1e6
                                    : 1.0 + (double)msc_rng_below(&rng, 100000) * 1e-3;
        add_trial(record, loss, 1.0 + (double)msc_rng_below(&rng, 90), 0.001 * i);
    }
    assert_ok(msc_trial_figures(&figures, record, NULL, 0));
    int n = size_of(figures, "points", "id");
    assert_in_range(n, 100, MSC_FIGURE_COLUMNS * MSC_FIGURE_ROWS + 200);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(figures, "is_thinned")));
    assert_true(has_point(figures, 4321));
    assert_true(has_point(figures, 5000));
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(figures, "front")) {
        assert_true(has_point(figures, cJSON_GetObjectItemCaseSensitive(row, "id")->valuedouble));
    }
    assert_in_range(size_of(figures, "speed", "seconds"), 10, 61);
    cJSON_Delete(figures);
    msc_record_close(record);
}

// Number of trials that no other trial dominates. Equal trials count once.
static int count_front(const double losses[], const double sizes[], int n) {
    int n_front = 0;
    for (int i = 0; i < n; i++) {
        bool is_covered = false;
        for (int k = 0; k < n && !is_covered; k++) {
            bool is_equal = losses[k] == losses[i] && sizes[k] == sizes[i];
            is_covered = losses[k] <= losses[i] && sizes[k] <= sizes[i] && (!is_equal || k < i);
        }
        n_front += !is_covered;
    }
    return n_front;
}

// The Pareto front of a few, many or all trials has as many trials as a comparison of all pairs
// finds.
static void test_report_trial_figures__front_as_of_all_pairs(void **state) {
    enum { N = 4000 };
    static double losses[N], sizes[N];
    struct msc_rng rng;
    msc_rng_seed(&rng, 2, 0);
    for (int width = 0; width < 3; width++) {
        fixture_setup(state);
        const struct fixture *f = *state;
        struct msc_record *record = make_record(f);
        cJSON *figures = NULL;
        for (int i = 0; i < N; i++) {
            double at = 1.0 + (double)msc_rng_below(&rng, 1500);
            sizes[i] = at;
            losses[i] = 2000.0 - at + (double)(width * width * (int)msc_rng_below(&rng, 800));
            add_trial(record, losses[i], sizes[i], 0.001 * i);
        }
        assert_ok(msc_trial_figures(&figures, record, NULL, 0));
        assert_int_equal(cJSON_GetObjectItemCaseSensitive(figures, "n_front")->valueint,
                         count_front(losses, sizes, N));
        cJSON_Delete(figures);
        msc_record_close(record);
        fixture_teardown(state);
    }
}

static void test_report_trial_figures__of_nothing(void **state) {
    const struct fixture *f = *state;
    struct msc_record *record = make_record(f);
    cJSON *figures = NULL;
    assert_ok(msc_trial_figures(&figures, record, NULL, 0));
    assert_int_equal(size_of(figures, "points", "id"), 0);
    assert_int_equal(size_of(figures, "best", "value"), 0);
    cJSON_Delete(figures);
    msc_record_close(record);
}

int main(int argc, char **argv) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_report_trial_figures__of_a_few),
        CASE(test_report_trial_figures__choices_of_tasks),
        CASE(test_report_trial_figures__of_many_keep_extremes_and_front),
        cmocka_unit_test(test_report_trial_figures__front_as_of_all_pairs),
        CASE(test_report_trial_figures__of_nothing),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
