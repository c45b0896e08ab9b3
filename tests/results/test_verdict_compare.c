// The verdict on several records in words. Expected sentences follow from made-up records.
#include "results/verdict_compare.h"

#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

// A record whose winner has this state and objective value, and this configuration.
#define RECORD_FOR(metric, maximise, name, state, value, choice, config, more)                     \
    "{\"name\":\"" name "\",\"path\":\"x/" name ".jsonl\",\"config\":{" config                     \
    "},\"plan\":[{\"task\":\"w\",\"choice\":\"" choice                                             \
    "\"}],\"verdict\":{\"kind\":\"deploy\",\"headline\":\"Deploy trial "                           \
    "5.\",\"reasons\":[\"first\","                                                                 \
    "\"Of " name ".\",\"last\"],\"command\":\"mscgym export x/" name                               \
    ".jsonl\"},\"numbers\":{\"objectives\":[{\"metric\":\"" metric "\",\"maximise\":" maximise     \
    "}]," more "\"seed\":\"1\"},\"delivered\":{\"id\":5,\"state\":\"" state                        \
    "\",\"metrics\":{\"" metric "\":" value "}}}"
#define RECORD(name, state, loss, choice, config, more)                                            \
    RECORD_FOR("distill_loss", "false", name, state, loss, choice, config, more)

#define ENDED "\"end\":\"trials\","

static cJSON *verdict_of(const char *records) {
    cJSON *list = NULL, *verdict = NULL;
    assert_ok(msc_json_parse(&list, records, strlen(records), "records"));
    assert_ok(msc_verdict_compare(&verdict, list));
    cJSON_Delete(list);
    return verdict;
}

static const char *text_of(const cJSON *verdict, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(verdict, key);
    return item ? item->valuestring : "";
}

// Compares all reasons, one per line.
static void assert_reasons(const cJSON *verdict, const char *expected) {
    struct msc_str text = {0};
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(verdict, "reasons")) {
        msc_str_append(&text, item->valuestring);
        msc_str_char(&text, '\n');
    }
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

static void test_report_verdict_compare__the_best_is_deployed(void **state) {
    (void)state;
    cJSON *v = verdict_of(
        "[" RECORD("a", "complete", "0.004", "4", "\"gym\":[{\"seed\":1}]", ENDED) "," RECORD(
            "b", "complete", "0.002", "8", "\"gym\":[{\"seed\":2}]",
            ENDED) "," RECORD("c", "complete", "0.002", "8",
                              "\"gym\":[{\"agent\":{\"type\":\"random\"}}]",
                              ENDED) "," RECORD("d", "complete", "0.002", "6", "\"gym\":[{}]",
                                                ENDED) "," RECORD("e", "infeasible", "0.001", "2",
                                                                  "\"gym\":[{}]", ENDED) "]");
    assert_string_equal(text_of(v, "kind"), "deploy");
    assert_string_equal(text_of(v, "headline"), "b: Deploy trial 5.");
    assert_string_equal(text_of(v, "command"), "mscgym export x/b.jsonl");
    assert_reasons(
        v, "It has the least loss, 0.002, of the plans that these 5 searches would deploy.\n"
           "Of b.\n"
           "a: 2 times as much, 0.004.\n"
           "c: the same plan.\n"
           "d: another plan, equally good.\n"
           "e: no plan meets its bounds.\n");
    cJSON_Delete(v);
}

static void test_report_verdict_compare__the_greatest_of_what_is_maximised(void **state) {
    (void)state;
#define ACCURATE(name, state, accuracy, choice)                                                    \
    RECORD_FOR("accuracy", "true", name, state, accuracy, choice, "", ENDED)
    cJSON *v = verdict_of("[" ACCURATE("a", "infeasible", "0.99", "2") "," ACCURATE(
        "b", "complete", "0.4", "4") "," ACCURATE("c", "complete", "0.8", "6") "]");
    assert_string_equal(text_of(v, "kind"), "deploy");
    assert_string_equal(text_of(v, "headline"), "c: Deploy trial 5.");
    assert_reasons(
        v, "It has the greatest accuracy, 80 %, of the plans that these 3 searches would deploy.\n"
           "Of c.\n"
           "a: no plan meets its bounds.\n"
           "b: 0.5 times as much, 40 %.\n");
    cJSON_Delete(v);
}

// Differences in what was compared are named. Records of the same name are named by their paths.
static void test_report_verdict_compare__what_differs(void **state) {
    (void)state;
    cJSON *v = verdict_of(
        "[" RECORD("a", "complete", "0.002", "4", "\"dataset\":{\"samples\":8}", ENDED) "," RECORD(
            "a", "complete", "0.003", "8", "\"dataset\":{\"samples\":9},\"seed\":4", "") "]");
    assert_string_equal(text_of(v, "headline"), "x/a.jsonl: Deploy trial 5.");
    assert_reasons(
        v, "It has the least loss, 0.002, of the plans that these 2 searches would deploy.\n"
           "Of a.\n"
           "x/a.jsonl: 1.5 times as much, 0.003.\n"
           "Caution: the searches also differ in dataset.samples.\n"
           "1 of the searches has not ended: this may still change.\n");
    cJSON_Delete(v);
}

static void test_report_verdict_compare__nothing_to_deploy(void **state) {
    (void)state;
    cJSON *v = verdict_of("[" RECORD("a", "infeasible", "1", "4", "",
                                     ENDED) "," RECORD("b", "infeasible", "2", "8", "", ENDED) "]");
    assert_string_equal(text_of(v, "kind"), "infeasible");
    assert_string_equal(
        text_of(v, "headline"),
        "There is nothing to deploy: no trial of these searches meets every bound.");
    assert_reasons(v, "");
    assert_string_equal(text_of(v, "command"), "");
    cJSON_Delete(v);
}

static void test_report_verdict_compare__other_objectives(void **state) {
    (void)state;
    cJSON *v = verdict_of("[" RECORD("a", "complete", "1", "4", "",
                                     ENDED) ",{\"name\":\"b\","
                                            "\"numbers\":{\"objectives\":[{\"metric\":\"accuracy\","
                                            "\"maximise\":true}]}}]");
    assert_string_equal(text_of(v, "kind"), "none");
    assert_string_equal(
        text_of(v, "headline"),
        "These searches had different objectives: each has a best plan of its own.");
    cJSON_Delete(v);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_verdict_compare__the_best_is_deployed),
        cmocka_unit_test(test_report_verdict_compare__the_greatest_of_what_is_maximised),
        cmocka_unit_test(test_report_verdict_compare__what_differs),
        cmocka_unit_test(test_report_verdict_compare__nothing_to_deploy),
        cmocka_unit_test(test_report_verdict_compare__other_objectives),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
