// The winner is evaluated again before it is delivered, and the result is kept next to the record.
// In forged records, bits of losses are flipped, so that the winner is wrong and must be left out.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/search/fake_env.h"
#include "records/record_query.h"
#include "records/distilled.h"
#include "records/kept.h"
#include "checks/recheck.h"
#include "results/report.h"
#include "tests/search/search_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The loss is the sum of the choices. The plan "uniform 0" breaks the bound.
#define ENV "{\"tasks\":6,\"choices\":4,\"baselines\":2,\"bounds\":{\"size_bytes\":{\"max\":55}}}"

static int64_t best_id(const struct msc_record *record) {
    struct msc_record_line best;
    assert_true(msc_record_best(&best, record));
    return best.trial.id;
}

static void run_search(struct search_run *run, const struct fixture *f, int64_t n) {
    const struct launch one = {.path = f->path,
                               .env = ENV,
                               .def = &msc_env_fake,
                               .agent = "{\"type\":\"random\"}",
                               .options = LAUNCH_TRIALS(n)};
    fake_reset();
    run_launch(run, &one);
    assert_ok(run->status);
}

static double flip(double value, unsigned bit) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits ^= UINT64_C(1) << bit;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

// A copy of the record in which one bit of the loss is flipped in each of the trials `first` to
// `last`.
static struct msc_record *forge(const struct fixture *f, const struct msc_record *record,
                                int64_t first, int64_t last) {
    char path[FIXTURE_PATH_BYTES];
    struct msc_record *forged = NULL;
    fixture_join(path, f, "forged.jsonl");
    unlink(path);
    cJSON *header = cJSON_Duplicate(msc_record_header(record), 1);
    cJSON_DeleteItemFromObject(header, "measured");
    assert_ok(msc_record_create(&forged, path, header, NULL));
    cJSON_Delete(header);
    for (size_t i = 0; i < msc_record_n_trials(record); i++) {
        struct msc_record_line line = msc_record_trial(record, i);
        struct msc_outcome *outcome = &line.trial.outcome;
        double metrics[2] = {flip(outcome->metrics[0], 53), outcome->metrics[1]};
        if (line.trial.id >= first && line.trial.id <= last &&
            outcome->state == MSC_TRIAL_COMPLETE) {
            outcome->metrics = metrics;
        }
        assert_ok(msc_record_append_trial(forged, &line));
    }
    assert_ok(msc_record_commit(forged));
    msc_record_release(forged);
    return forged;
}

// Returns the id of a trial that becomes the best one if bit 53 of its loss is flipped. The trial
// is complete and not a repeat.
static int64_t find_victim(const struct msc_record *record) {
    struct msc_record_line best;
    assert_true(msc_record_best(&best, record));
    for (size_t i = 2; i < msc_record_n_trials(record); i++) {
        const struct msc_record_line line = msc_record_trial(record, i);
        const struct msc_outcome *outcome = &line.trial.outcome;
        if (outcome->state == MSC_TRIAL_COMPLETE && line.repeat_of < 0 &&
            line.trial.id != best.trial.id &&
            flip(outcome->metrics[0], 53) < best.trial.outcome.metrics[0]) {
            return line.trial.id;
        }
    }
    fail();
    return -1;
}

static void test_search_recheck__flipped_bit(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    cJSON *left_out = NULL;
    run_search(&run, f, 40);
    int64_t best = best_id(run.result.record);
    int64_t victim = find_victim(run.result.record);
    struct msc_record *forged = forge(f, run.result.record, victim, victim);
    assert_int_equal(best_id(forged), victim);

    // Results under other numerics are not comparable, so no trial is left out.
    struct msc_recheck_options options = {.env = run.env, .numerics = "other"};
    assert_ok(msc_recheck_winner(&left_out, forged, &options));
    assert_int_equal(cJSON_GetArraySize(left_out), 0);
    cJSON_Delete(left_out);
    assert_int_equal(best_id(forged), victim);

    options.numerics = "test";
    assert_ok(msc_recheck_winner(&left_out, forged, &options));
    assert_int_equal(cJSON_GetArraySize(left_out), 1);
    const cJSON *row = cJSON_GetArrayItem(left_out, 0);
    assert_true(cJSON_GetObjectItem(row, "id")->valuedouble == (double)victim);
    assert_true(cJSON_GetObjectItem(row, "line")->valuedouble == (double)(victim + 2));
    assert_string_equal(cJSON_GetObjectItem(row, "metric")->valuestring, "distill_loss");
    assert_int_equal(best_id(forged), best);
    cJSON_Delete(left_out);

    int64_t ids[50];
    size_t n = 0;
    msc_record_top(ids, &n, 50, forged);
    for (size_t i = 0; i < n; i++) {
        assert_true(ids[i] != victim);
    }
    msc_record_close(forged);
    run_finish(&run);
}

static void test_search_recheck__nothing_comes_out_again(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    cJSON *left_out = NULL;
    run_search(&run, f, 40);
    struct msc_record *forged = forge(f, run.result.record, 0, 100);
    const struct msc_recheck_options options = {.env = run.env, .numerics = "test"};
    assert_int_equal(msc_recheck_winner(&left_out, forged, &options), MSC_E_STATE);
    assert_message("its 8 best lines could not be reproduced");
    msc_record_close(forged);
    run_finish(&run);
}

// ---- Files kept next to the record -------------------------------------------------------------

static int n_notes;

static void count_note(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    (void)level;
    (void)line;
    n_notes++;
}

static const struct msc_log notes = {.level = MSC_LOG_INFO, .write = count_note};

static cJSON *make_report(struct msc_record *record, struct msc_env *env,
                          const struct msc_search_result *result) {
    cJSON *report = NULL;
    const struct msc_report_options options = {.record = record, .env = env, .result = result};
    assert_ok(msc_report_create(&report, &options));
    return report;
}

static char *text_of(const cJSON *report) {
    struct msc_str text = {0};
    assert_ok(msc_report_text(&text, report));
    return text.data;
}

// Returns the text of the report, including the result kept next to the record.
static char *show(const char *path, int expected_notes) {
    struct msc_record *record = NULL;
    cJSON *kept = NULL;
    n_notes = 0;
    assert_ok(msc_record_open(&record, path, MSC_RECORD_READ, NULL));
    assert_ok(msc_kept_load(&kept, record, &notes));
    assert_int_equal(n_notes, expected_notes);
    cJSON *report = make_report(record, NULL, NULL);
    assert_ok(msc_kept_add(report, kept));
    char *text = text_of(report);
    cJSON_Delete(report);
    cJSON_Delete(kept);
    msc_record_close(record);
    return text;
}

// Writes a file without waiting for the disk.
static void put(const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void test_search_recheck__kept(void **state) {
    const struct fixture *f = *state;
    char path[FIXTURE_PATH_BYTES + 16];
    struct search_run run;
    size_t length = 0;
    run_search(&run, f, 4);
    cJSON *report = make_report(run.result.record, run.env, &run.result);
    assert_ok(msc_kept_save(run.result.record, report));
    char *expected = text_of(report);
    char *shown = show(f->path, 0);
    assert_string_equal(shown, expected);
    assert_non_null(strstr(shown, "validation"));
    msc_free(shown);

    // If any byte changes, the kept file is treated as damaged: it is ignored with a note, not an
    // error.
    snprintf(path, sizeof path, "%s.result.json", f->path);
    char *text = NULL;
    assert_ok(msc_file_read(&text, &length, path));
    for (size_t i = 0; i < length; i++) {
        const char before = text[i];
        if (before == ' ' || before == '\n') {
            continue;
        }
        text[i] = before == 'x' ? 'y' : 'x';
        put(path, text, length);
        shown = show(f->path, 1);
        assert_null(strstr(shown, "validation"));
        msc_free(shown);
        text[i] = before;
    }
    put(path, text, length);
    msc_free(text);

    // More trials give another winner, to which the kept file does not apply.
    int64_t best = best_id(run.result.record);
    run_finish(&run);
    cJSON_Delete(report);
    run_search(&run, f, 400);
    assert_true(best_id(run.result.record) != best);
    shown = show(f->path, 1);
    assert_null(strstr(shown, "validation"));
    msc_free(shown);
    msc_free(expected);
    run_finish(&run);
}

// A file with a valid checksum may have been written by another program. Missing and wrong members
// are reported.
static void test_search_recheck__distilled_is_whole(void **state) {
    static const char whole[] = "{\"improved\":2,\"held_back\":8,\"loss_before\":0.5,"
                                "\"loss_after\":0.25,\"weights\":[{},{},{}]}";
    static const char *const members[] = {"improved", "held_back", "loss_before", "loss_after",
                                          "weights"};
    const struct fixture *f = *state;
    struct search_run run;
    run_search(&run, f, 4);
    int64_t best = best_id(run.result.record);
    for (size_t i = 0; i <= sizeof members / sizeof members[0] + 1; i++) {
        bool is_whole = i == sizeof members / sizeof members[0] + 1;
        cJSON *distilled = NULL, *found = NULL;
        assert_ok(msc_json_parse(&distilled, whole, strlen(whole), "distilled"));
        if (i < sizeof members / sizeof members[0]) {
            cJSON_DeleteItemFromObjectCaseSensitive(distilled, members[i]);
        } else if (!is_whole) {
            assert_ok(msc_json_add_number(distilled, "objection", 1));
        }
        assert_ok(msc_distilled_save(run.result.record, distilled, best));
        n_notes = 0;
        assert_ok(msc_distilled_load(&found, run.result.record, best, &notes));
        assert_int_equal(found != NULL, is_whole);
        assert_int_equal(n_notes, !is_whole);
        cJSON_Delete(found);
        cJSON_Delete(distilled);
    }
    cJSON *report = make_report(run.result.record, run.env, &run.result);
    assert_ok(msc_report_add_beside(report, run.result.record, NULL, &notes));
    char *text = text_of(report);
    assert_non_null(strstr(text, "distill: 2 of 3 weights improved, which changes the loss on 8 "
                                 "held-back samples from 0.5 to 0.25; this plan is delivered"));
    msc_free(text);
    cJSON_Delete(report);
    run_finish(&run);
}

static void test_search_recheck__left_out_is_kept(void **state) {
    const struct fixture *f = *state;
    struct search_run run;
    cJSON *left_out = NULL;
    struct msc_record *again = NULL;
    run_search(&run, f, 40);
    int64_t best = best_id(run.result.record);
    int64_t victim = find_victim(run.result.record);
    struct msc_record *forged = forge(f, run.result.record, victim, victim);
    const struct msc_recheck_options options = {.env = run.env, .numerics = "test"};
    assert_ok(msc_recheck_winner(&left_out, forged, &options));
    cJSON *report = make_report(forged, run.env, NULL);
    assert_ok(msc_json_add(report, "left_out", left_out));
    assert_ok(msc_kept_save(forged, report));
    assert_ok(msc_record_open(&again, msc_record_path(forged), MSC_RECORD_READ, NULL));
    assert_int_equal(best_id(again), victim);
    assert_ok(msc_kept_leave_out(again, NULL));
    assert_int_equal(best_id(again), best);
    msc_record_close(again);
    char *shown = show(msc_record_path(forged), 0);
    assert_non_null(strstr(shown, "could not be reproduced and is left out: distill_loss is "));
    msc_free(shown);
    cJSON_Delete(report);
    msc_record_close(forged);
    run_finish(&run);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_recheck__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(flipped_bit),        CASE(nothing_comes_out_again), CASE(kept),
        CASE(distilled_is_whole), CASE(left_out_is_kept),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
