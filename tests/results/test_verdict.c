// The verdict of a report in words: what to deploy and why. Expected sentences follow from the
// figures of made-up records.
#include "results/verdict.h"

#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <stdio.h>

#define LOSS "{\"metric\":\"distill_loss\",\"maximise\":false}"
#define SIZE "{\"metric\":\"size_ratio\",\"maximise\":false}"
#define OF(objectives, n_complete)                                                                 \
    "\"objectives\":[" objectives "],\"counts\":{\"complete\":" n_complete "},"
#define OF_LOSS OF(LOSS, "7")
#define ENDED "\"end\":\"trials\","
#define COMMON "\"record\":\"a.jsonl\",\"bounds\":[{\"metric\":\"size_ratio\",\"max\":0.2}],"

#define ROW(id, more, state, loss, size)                                                           \
    "{\"id\":" id "," more "\"state\":\"" state                                                    \
    "\",\"violation\":0,\"metrics\":{\"distill_loss\":" loss ",\"size_ratio\":" size "}"

// Verdict on a record whose winner is delivered. `beside`: members of the document next to
// `numbers`.
static cJSON *verdict_with(const char *goal, const char *members, const char *beside) {
    struct msc_str json = {0};
    cJSON *record = NULL, *verdict = NULL;
    msc_str_printf(&json, "{\"numbers\":{%s" COMMON "%s},%s}", goal, members, beside);
    assert_ok(msc_json_parse(&record, json.data, json.length, "record"));
    const cJSON *numbers = cJSON_GetObjectItemCaseSensitive(record, "numbers");
    cJSON_AddItemToObject(
        record, "delivered",
        cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(numbers, "winner"), true));
    assert_ok(msc_verdict_make(&verdict, record));
    cJSON_Delete(record);
    msc_str_finish(&json);
    return verdict;
}

static cJSON *verdict_of(const char *members, const char *loss) {
    struct msc_str beside = {0};
    msc_str_printf(&beside,
                   "\"config\":{\"model\":\"m.onnx\"},\"env\":{\"params\":{\"loss\":\"%s\"}}",
                   loss ? loss : "");
    cJSON *verdict = verdict_with(OF_LOSS ENDED, members, msc_str_text(&beside));
    msc_str_finish(&beside);
    return verdict;
}

static const char *text_of(const cJSON *verdict, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(verdict, key);
    return item ? item->valuestring : "";
}

static bool says(const cJSON *verdict, const char *sentence) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(verdict, "reasons")) {
        if (strcmp(item->valuestring, sentence) == 0) {
            return true;
        }
    }
    return false;
}

static void test_report_verdict__a_winner_is_deployed(void **state) {
    (void)state;
    cJSON *v = verdict_of(
        "\"winner\":" ROW("5", "", "complete", "0.0001",
                          "0.15") "},"
                                  "\"baselines\":[" ROW(
                                      "0", "\"label\":\"8\",", "infeasible", "0.00001",
                                      "0.27") "}," ROW("1", "\"label\":\"4\",", "complete",
                                                       "0.0004", "0.14") "}]",
        "mse");
    assert_string_equal(text_of(v, "kind"), "deploy");
    assert_string_equal(text_of(v, "headline"), "Deploy trial 5.");
    assert_string_equal(text_of(v, "command"), "mscgym export a.jsonl -o compressed.onnx");
    assert_true(says(v, "It has the least loss, 0.0001, of the 7 trials that meet the "
                        "bounds (relative size at most 20 %)."));
    assert_true(says(v, "The best uniform plan within the bounds, uniform 4, has 0.0004: 4 "
                        "times as much."));
    assert_true(says(v, "Its outputs are off by 1 % of their size (root mean square)."));
    assert_true(says(v, "It keeps 15 % of the model's weight bytes."));
    cJSON_Delete(v);
}

static void test_report_verdict__no_uniform_plan_may_meet_the_bounds(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"winner\":" ROW("5", "", "complete", "0.0001",
                                            "0.15") "},"
                                                    "\"baselines\":[" ROW("0", "\"label\":\"8\",",
                                                                          "infeasible", "0.00001",
                                                                          "0.27") "}]",
                          NULL);
    assert_true(says(v,
                     "No uniform plan meets the bounds: with uniform 8 the relative size is 27 %, "
                     "but must be at most 20 %."));
    cJSON_Delete(v);
}

static void test_report_verdict__a_uniform_plan_may_be_best(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"winner\":" ROW("1", "\"label\":\"4\",", "complete", "0.0004",
                                            "0.14") "},\"baselines\":[]",
                          NULL);
    assert_string_equal(text_of(v, "kind"), "uniform");
    assert_string_equal(text_of(v, "headline"), "Deploy uniform 4: nothing better was found.");
    cJSON_Delete(v);
}

// With several objectives, the best plan by the first objective may be worse by the others.
static void test_report_verdict__a_front_trades_objectives(void **state) {
    (void)state;
    const char *members =
        "\"winner\":" ROW("1", "\"label\":\"8\",", "complete", "0.0004", "0.19") "}";
    cJSON *v = verdict_with(OF(LOSS "," SIZE, "7") ENDED, members, "\"trials\":{\"n_front\":5}");
    assert_string_equal(text_of(v, "kind"), "uniform");
    assert_string_equal(text_of(v, "headline"), "Deploy uniform 8, which has the least loss.");
    assert_true(says(v, "The front has 5 plans, which trade loss for relative size."));
    cJSON_Delete(v);
    v = verdict_with(OF(LOSS "," SIZE, "7") ENDED, members, "\"trials\":{\"n_front\":1}");
    assert_false(says(v, "The front has 1 plans, which trade loss for relative size."));
    cJSON_Delete(v);
    v = verdict_with(OF_LOSS ENDED, members, "\"trials\":{\"n_front\":5}");
    assert_string_equal(text_of(v, "headline"), "Deploy uniform 8: nothing better was found.");
    assert_false(says(v, "The front has 5 plans, which trade loss."));
    cJSON_Delete(v);
}

// If the search has a dataset but no validation samples, the verdict advises adding them.
static void test_report_verdict__validation_is_asked_for(void **state) {
    (void)state;
    static const char advice[] =
        "It was not measured on samples that the search did not use: add dataset.validation.";
    const char *members = "\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") "}";
    cJSON *v = verdict_with(OF_LOSS ENDED, members, "\"config\":{\"dataset\":{}}");
    assert_true(says(v, advice));
    cJSON_Delete(v);
    // The search has not ended, so its validation may still come.
    v = verdict_with(OF_LOSS, members, "\"config\":{\"dataset\":{}}");
    assert_false(says(v, advice));
    cJSON_Delete(v);
    v = verdict_with(OF_LOSS ENDED, members, "\"config\":{\"dataset\":{\"validation\":0.2}}");
    assert_false(says(v, advice));
    cJSON_Delete(v);
}

// If all samples or all outputs are the same, a low loss is no reason to deploy.
static void test_report_verdict__samples_may_say_nothing(void **state) {
    (void)state;
    const char *members = "\"sameness\":{\"dead\":[\"relu1\",\"pool\"]},\"winner\":" ROW(
        "5", "", "complete", "0", "0.15") "}";
    cJSON *v = verdict_of(members, "mse");
    assert_string_equal(text_of(v, "kind"), "blind");
    assert_string_equal(
        text_of(v, "headline"),
        "The samples cannot tell plans apart: do not deploy trial 5 without testing it.");
    assert_true(says(v, "The model gives the same outputs for all samples: nothing varies after "
                        "relu1, pool, so the loss is meaningless."));
    assert_false(says(v, "Its outputs are off by 0 % of their size (root mean square)."));
    cJSON_Delete(v);
    members = "\"sameness\":{\"same\":true},\"winner\":" ROW("5", "", "complete", "0", "0.15") "}";
    v = verdict_of(members, "mse");
    assert_string_equal(text_of(v, "kind"), "blind");
    assert_true(
        says(v, "All samples are the same, so the loss tells nothing about other samples."));
    cJSON_Delete(v);
    // Validation samples that are also calibration samples do not speak against a plan.
    members =
        "\"sameness\":{\"unshared\":0},\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") "}";
    v = verdict_of(members, "mse");
    assert_string_equal(text_of(v, "kind"), "deploy");
    assert_true(says(v, "All validation samples are also calibration samples, so no plan was "
                        "measured on samples that the search did not use."));
    cJSON_Delete(v);
}

// A search in a table of values has neither a model nor samples.
static void test_report_verdict__a_search_may_be_of_no_network(void **state) {
    (void)state;
    const char *members = "\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") "}";
    cJSON *v = verdict_with(OF_LOSS ENDED, members, "\"config\":{}");
    assert_string_equal(text_of(v, "headline"), "Deploy trial 5.");
    assert_null(cJSON_GetObjectItemCaseSensitive(v, "command"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(v, "reasons")), 3);
    cJSON_Delete(v);
}

// A plan that failed or was left out is not named as one that breaks a bound.
static void test_report_verdict__a_uniform_plan_may_have_failed(void **state) {
    (void)state;
#define FAILED "{\"id\":0,\"label\":\"8\",\"state\":\"failed\",\"metrics\":{}}"
    cJSON *v = verdict_of("\"winner\":" ROW("5", "", "complete", "0.0001",
                                            "0.15") "},"
                                                    "\"baselines\":[" FAILED
                                                    "," ROW("1", "\"label\":\"6\",", "infeasible",
                                                            "0.0001", "0.25") "}]",
                          NULL);
    assert_true(says(v,
                     "No uniform plan meets the bounds: with uniform 6 the relative size is 25 %, "
                     "but must be at most 20 %."));
    cJSON_Delete(v);
    v = verdict_of("\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") "},"
                                                                            "\"baselines\":[" FAILED
                                                                            "]",
                   NULL);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(v, "reasons")), 3);
    cJSON_Delete(v);
}

// Numbers have enough digits to differ from the bound, integers are printed in full, and "1 trial"
// is singular.
static void test_report_verdict__numbers(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"winner\":" ROW("2", "", "infeasible", "0.5", "0.20000125") "}", NULL);
    assert_true(says(
        v, "The nearest is trial 2: the relative size is 20.0001 %, but must be at most 20 %."));
    cJSON_Delete(v);
    v = verdict_with(OF(LOSS, "1") ENDED,
                     "\"winner\":" ROW("5", "", "complete", "1234567", "0.15") "}", "\"env\":{}");
    assert_true(says(v, "It has the least loss, 1234567, of the 1 trial that meets the "
                        "bounds (relative size at most 20 %)."));
    cJSON_Delete(v);
}

// A model whose outputs are all zero has a relative loss near 1. For other losses 0.8 is not large.
static void test_report_verdict__a_great_loss_is_not_deployed(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"winner\":" ROW("5", "", "complete", "0.8", "0.15") "}", "mse");
    assert_string_equal(text_of(v, "kind"), "far");
    cJSON_Delete(v);
    v = verdict_of("\"winner\":" ROW("5", "", "complete", "0.8", "0.15") "}", "kl");
    assert_string_equal(text_of(v, "kind"), "deploy");
    cJSON_Delete(v);
}

static void test_report_verdict__nothing_meets_the_bounds(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"winner\":" ROW("2", "", "infeasible", "0.5", "0.25") "}", NULL);
    assert_string_equal(text_of(v, "kind"), "infeasible");
    assert_true(
        says(v, "The nearest is trial 2: the relative size is 25 %, but must be at most 20 %."));
    assert_string_equal(text_of(v, "command"), "");
    cJSON_Delete(v);
}

static void test_report_verdict__no_trial_has_a_result(void **state) {
    (void)state;
    cJSON *v = verdict_with(OF_LOSS, "\"winner\":null", "\"env\":{}");
    assert_string_equal(text_of(v, "kind"), "none");
    assert_string_equal(text_of(v, "headline"),
                        "There is nothing to deploy yet: no trial has a result.");
    cJSON_Delete(v);
    v = verdict_with(OF_LOSS ENDED, "\"winner\":null", "\"env\":{}");
    assert_string_equal(text_of(v, "headline"),
                        "There is nothing to deploy: no trial has a result.");
    cJSON_Delete(v);
}

// The plans of a schedule or placement change no weight, so there is no model to export.
static void test_report_verdict__a_search_may_edit_no_model(void **state) {
    static const char *const envs[] = {"schedule", "placement", "quantize"};
    (void)state;
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        char beside[100];
        snprintf(beside, sizeof beside,
                 "\"config\":{\"model\":\"m.onnx\"},\"env\":{\"type\":\"%s\"}", envs[i]);
        cJSON *v = verdict_with(
            OF_LOSS ENDED, "\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") "}", beside);
        bool is_exported = cJSON_GetObjectItemCaseSensitive(v, "command") != NULL;
        assert_int_equal(is_exported, strcmp(envs[i], "quantize") == 0);
        cJSON_Delete(v);
    }
}

// The winner's file is not smaller than the file of uniform 8, and its loss and latency are no
// better.
static void test_report_verdict__a_winner_may_not_be_better_than_uniform_8(void **state) {
    (void)state;
#define EXAMINED                                                                                   \
    ",\"examined\":{\"file_bytes\":100,\"runtime\":{\"distill_loss\":0.1,\"us_by_round\":[9,9]}}}"
#define BESIDE_8(state, more)                                                                      \
    "\"runtime\":{\"name\":\"ort\",\"version\":\"1\",\"processor\":\"chip\","                      \
    "\"threads\":1,\"rounds\":2},"                                                                 \
    "\"winner\":" ROW("5", "", "complete", "0.1", "0.15") EXAMINED                                 \
        ",\"baselines\":[" ROW("0", more "\"label\":\"8\",", state, "0.1", "0.27") EXAMINED "]"
    cJSON *v = verdict_of(BESIDE_8("infeasible", ""), NULL);
    assert_string_equal(text_of(v, "kind"), "caution");
    assert_string_equal(
        text_of(v, "headline"),
        "Trial 5 is not better than uniform 8, but that plan does not meet the bounds.");
    assert_string_equal(text_of(v, "command"), "mscgym export a.jsonl -o compressed.onnx");
    cJSON_Delete(v);
    v = verdict_of(BESIDE_8("complete", ""), NULL);
    assert_string_equal(
        text_of(v, "headline"),
        "Trial 5 is not better than uniform 8: deploy that plan, which needs no search.");
    assert_string_equal(text_of(v, "command"),
                        "mscgym export a.jsonl --trial 0 -o compressed.onnx");
    cJSON_Delete(v);
    // A plan whose results could not be reproduced is left out of the comparison.
    v = verdict_of(BESIDE_8("complete", "\"left_out\":true,"), NULL);
    assert_string_equal(text_of(v, "kind"), "deploy");
    cJSON_Delete(v);
}

// Files next to a record may be forged: members of a wrong type are ignored.
static void test_report_verdict__a_runtime_may_lack_its_texts(void **state) {
    (void)state;
    cJSON *v = verdict_of("\"runtime\":{\"name\":5,\"version\":[]},"
                          "\"winner\":" ROW("5", "", "complete", "0.0001", "0.15") EXAMINED,
                          NULL);
    assert_string_equal(text_of(v, "kind"), "deploy");
    cJSON_Delete(v);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_verdict__a_winner_is_deployed),
        cmocka_unit_test(test_report_verdict__no_uniform_plan_may_meet_the_bounds),
        cmocka_unit_test(test_report_verdict__a_uniform_plan_may_be_best),
        cmocka_unit_test(test_report_verdict__a_front_trades_objectives),
        cmocka_unit_test(test_report_verdict__validation_is_asked_for),
        cmocka_unit_test(test_report_verdict__samples_may_say_nothing),
        cmocka_unit_test(test_report_verdict__a_search_may_be_of_no_network),
        cmocka_unit_test(test_report_verdict__a_search_may_edit_no_model),
        cmocka_unit_test(test_report_verdict__a_uniform_plan_may_have_failed),
        cmocka_unit_test(test_report_verdict__numbers),
        cmocka_unit_test(test_report_verdict__no_trial_has_a_result),
        cmocka_unit_test(test_report_verdict__a_great_loss_is_not_deployed),
        cmocka_unit_test(test_report_verdict__nothing_meets_the_bounds),
        cmocka_unit_test(test_report_verdict__a_winner_may_not_be_better_than_uniform_8),
        cmocka_unit_test(test_report_verdict__a_runtime_may_lack_its_texts),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
