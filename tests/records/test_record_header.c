// Record headers: whether a record fits a configuration, and the canonical text that two records of
// the same search share. Expected messages are written by hand.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_query.h"
#include "records_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Replaces `old_text` in the header by `new_text` and compares the result with the original.
static enum msc_status compare_with(const struct fixture *f, const char *old_text,
                                    const char *new_text, const char *const free_keys[]) {
    struct msc_str text = {0};
    struct msc_str changed = {0};
    cJSON *wanted = NULL;
    msc_json_write(&text, f->header);
    const char *place = strstr(msc_str_text(&text), old_text);
    assert_non_null(place);
    msc_str_append_n(&changed, text.data, (size_t)(place - text.data));
    msc_str_append(&changed, new_text);
    msc_str_append(&changed, place + strlen(old_text));
    assert_ok(msc_json_parse(&wanted, changed.data, changed.length, "wanted"));
    enum msc_status status = msc_record_header_compare(f->header, wanted, free_keys, f->path);
    cJSON_Delete(wanted);
    msc_str_finish(&text);
    msc_str_finish(&changed);
    return status;
}

static void test_records_record_header__names_the_field(void **state) {
    static const struct {
        const char *old_text;
        const char *new_text;
        const char *message; // NULL: the change is allowed
    } rows[] = {
        {"\"bits\":[8,6]", "\"bits\":[8,4]", "config.quantize.bits[1] is 6 there and 4 here"},
        {"\"bits\":[8,6]", "\"bits\":[8]", "config.quantize.bits[1] is 6 there and nothing here"},
        {"\"bits\":[8,6]", "\"bits\":[8,6,4]", "bits[2] is nothing there and 4 here"},
        {"\"bits\":[8,6]", "\"bits\":\"8\"", "config.quantize.bits is [8,6] there and \"8\" here"},
        {"\"a.onnx\"", "\"b.onnx\"", "config.model is \"a.onnx\" there and \"b.onnx\" here"},
        {"\"model\":\"a.onnx\"", "\"modle\":\"a.onnx\"",
         "config.model is \"a.onnx\" there and nothing"},
        {"\"seed\":\"18446744073709551615\"", "\"seed\":\"0\"", "seed is"},
        {"\"parallel\":4", "\"parallel\":8", "parallel is 4 there and 8 here"},
        {"\"graph\":\"00ff\"", "\"graph\":\"00fe\"", "hashes.graph is \"00ff\" there"},
        {"\"graph\":\"0a\"", "\"graph\":\"0c\"",
         "env.graph is \"0a\" there and \"0c\" here; either the model differs, or another version "
         "of the program read it and folded constants differently (mscgym 0.1.0 there, "
         "mscgym 0.1.0 here)"},
        {"\"weights\":\"0b\"", "\"weights\":\"0c\"", "folded constants differently"},
        {"\"max\":100", "\"max\":100.5", "bounds[0].max is 100 there and 100.5 here"},
        {"\"maximise\":false", "\"maximise\":true", "objectives[0].maximise is false there"},
        {"conv/weight", "conv/bias", "space.tasks[0].name"},
        {"\"verbose\":\"info\"", "\"verbose\":\"debug\"", "config.verbose"},
        {"{\"trials\":10}}},\"budget\"", "{\"time\":\"8h\"}}},\"budget\"", NULL},
        {"\"budget\":{\"trials\":10},\"env\"", "\"env\"", NULL},
        {"mscgym 0.1.0", "mscgym 0.2.0", NULL},
        {"cpu;avx512", "vulkan", NULL},
        {"\"graph\":\"00ff\"", "\"graph\":\"00ff\",\"weights\":\"aa\"", NULL},
        {"\"parallel\":4", "\"parallel\":4.0", NULL},
    };
    const struct fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum msc_status status = compare_with(f, rows[i].old_text, rows[i].new_text, NULL);
        if (rows[i].message) {
            assert_int_equal(status, MSC_E_STATE);
            assert_message(rows[i].message);
            assert_message(f->path);
        } else {
            assert_ok(status);
        }
    }
}

static void test_records_record_header__free_keys(void **state) {
    static const char *const free_keys[] = {"verbose", NULL};
    const struct fixture *f = *state;
    assert_ok(compare_with(f, "\"info\"", "\"debug\"", free_keys));
    assert_int_equal(compare_with(f, "\"a.onnx\"", "\"b.onnx\"", free_keys), MSC_E_STATE);
}

static void test_records_record_header__own_members(void **state) {
    const struct fixture *f = *state;
    cJSON *more = NULL;
    cJSON *header = NULL;
    const char text[] = "{\"paths\":{\"model\":\"../a.onnx\"},\"seed\":1}";
    assert_ok(msc_json_parse(&more, text, strlen(text), "more"));
    struct msc_record_header from = {
        .space = &fixture_space, .goal = &fixture_goal, .parallel = 1, .more = more};
    assert_int_equal(msc_record_header_create(&header, &from), MSC_E_INVALID);
    assert_message("\"seed\"");
    cJSON_DeleteItemFromObject(more, "seed");
    assert_ok(msc_record_header_create(&header, &from));
    assert_non_null(cJSON_GetObjectItem(header, "paths"));
    cJSON_Delete(header);
    cJSON_Delete(more);
    (void)f;
}

// Which bounds are drops, and the float model's values, are read as they were written.
static void test_records_record_header__drops(void **state) {
    struct msc_drops drops = {
        {{.is_stated = true, .is_relative = true, .most = 0.1, .reference = 0.3}}};
    struct msc_record_header from = {
        .space = &fixture_space, .goal = &fixture_goal, .drops = &drops, .parallel = 1};
    struct msc_drops read;
    cJSON *header = NULL;
    (void)state;
    assert_ok(msc_record_header_create(&header, &from));
    assert_ok(msc_record_header_drops(&read, header, "header"));
    assert_true(msc_drops_any(&read, &fixture_goal));
    assert_true(read.of_bound[0].is_stated && read.of_bound[0].is_relative);
    assert_true(read.of_bound[0].most == 0.1 && read.of_bound[0].reference == 0.3);
    cJSON *bound = cJSON_GetArrayItem(cJSON_GetObjectItem(header, "bounds"), 0);
    cJSON_DeleteItemFromObject(bound, "float");
    assert_int_equal(msc_record_header_drops(&read, header, "header"), MSC_E_FORMAT);
    assert_message("\"float\"");
    cJSON_DeleteItemFromObject(bound, "drop");
    assert_ok(msc_record_header_drops(&read, header, "header"));
    assert_false(msc_drops_any(&read, &fixture_goal));
    cJSON_Delete(header);
}

static enum msc_status gather(void *payload, const char *line, size_t length) {
    struct msc_str *text = payload;
    assert_null(memchr(line, '\n', length));
    msc_str_append_n(text, line, length);
    msc_str_char(text, '\n');
    return msc_str_status(text);
}

static void write_trial(const struct fixture *f, uint64_t time_us, double trials, double loss) {
    struct msc_record *record = NULL;
    struct msc_record_line line = fixture_trial(0);
    double metrics[FIXTURE_METRICS] = {loss, 1, 1};
    line.trial.outcome.time_us = time_us;
    line.elapsed_s = (double)time_us;
    line.trial.outcome.reuse_ratio = 1.0 / (double)time_us;
    line.trial.outcome.metrics = metrics;
    cJSON *budget = cJSON_GetObjectItem(f->header, "budget");
    cJSON_SetNumberValue(cJSON_GetObjectItem(budget, "trials"), trials);
    unlink(f->path);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    assert_ok(msc_record_append_trial(record, &line));
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
}

static void test_records_record_header__canonical(void **state) {
    const struct fixture *f = *state;
    struct msc_str texts[3] = {{0}};
    write_trial(f, 7, 10, 0.5);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[0]));
    write_trial(f, 8000, 500, 0.5);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[1]));
    write_trial(f, 7, 10, 0.25);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[2]));
    assert_string_equal(msc_str_text(&texts[0]), msc_str_text(&texts[1]));
    assert_string_not_equal(msc_str_text(&texts[0]), msc_str_text(&texts[2]));
    assert_null(strstr(msc_str_text(&texts[0]), "measured"));
    assert_null(strstr(msc_str_text(&texts[0]), "budget"));
    // A torn last line is not part of the canonical text.
    size_t length = 0;
    char *text = fixture_read(&length, f->path);
    fixture_put(f->path, text, length - 3);
    msc_str_clear(&texts[1]);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[1]));
    assert_int_equal(texts[1].length, strcspn(msc_str_text(&texts[0]), "\n") + 1);
    msc_free(text);
    for (int i = 0; i < 3; i++) {
        msc_str_finish(&texts[i]);
    }
}

// Writes trials 0 to n - 1 of a sequence. Before trial `assembled` (-1: none) comes an assembled
// plan, which is not part of the sequence.
static void write_sequence(const struct fixture *f, int64_t n, int64_t assembled) {
    struct msc_record *record = NULL;
    int64_t n_plans = 0;
    unlink(f->path);
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (int64_t id = 0; id < n; id++) {
        if (id == assembled) {
            struct msc_record_line plan = fixture_trial(0);
            plan.trial.id = id;
            plan.baseline = plan.trial.proposal.parent = -1;
            plan.trial.proposal.probe = false;
            plan.is_assembled = true;
            assert_ok(msc_record_append_trial(record, &plan));
            assert_ok(msc_record_append_segment(record, "other", false));
            n_plans++;
        } else if (id == n / 2) {
            assert_ok(msc_record_append_segment(record, "other", false));
        }
        struct msc_record_line line = fixture_trial(id);
        line.trial.id += n_plans;
        line.trial.proposal.parent += line.trial.proposal.parent >= assembled ? n_plans : 0;
        line.repeat_of = id == n - 1 ? n - 2 + n_plans : -1;
        line.retry_of = id == n - 2 ? 2 : -1;
        assert_ok(msc_record_append_trial(record, &line));
    }
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
}

// The canonical text omits an assembled plan and renumbers the trials. Reading a record marks its
// assembled plans. Only a plan at the end of the record counts against the budget.
static void test_records_record_header__canonical_sequence(void **state) {
    const struct fixture *f = *state;
    struct msc_str texts[2] = {{0}};
    struct msc_record *record = NULL;
    struct msc_record_counts counts;
    write_sequence(f, 12, -1);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[0]));
    write_sequence(f, 12, 6);
    assert_ok(msc_record_canonical(f->path, NULL, gather, &texts[1]));
    assert_string_equal(msc_str_text(&texts[0]), msc_str_text(&texts[1]));
    assert_non_null(strstr(msc_str_text(&texts[0]), "\"first\":6"));
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_APPEND, NULL));
    assert_int_equal(msc_record_n_trials(record), 13);
    for (size_t i = 0; i < 13; i++) {
        assert_true(msc_record_trial(record, i).is_assembled == (i == 6));
    }
    msc_record_count(&counts, record);
    assert_int_equal(counts.n_budgeted, 12 - 2 - 1); // baselines, retry and plan do not count
    struct msc_record_line plan = fixture_trial(13);
    plan.is_assembled = true;
    assert_ok(msc_record_append_trial(record, &plan));
    msc_record_count(&counts, record);
    assert_int_equal(counts.n_budgeted, 10);
    msc_record_close(record);
    msc_str_finish(&texts[0]);
    msc_str_finish(&texts[1]);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_records_record_header__##name, fixture_setup,             \
                                    fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(names_the_field), CASE(free_keys), CASE(own_members),
        CASE(drops),           CASE(canonical), CASE(canonical_sequence),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
