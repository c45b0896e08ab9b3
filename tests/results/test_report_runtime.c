// Sentences of a report about results in the target runtime. The expected sentences follow from the
// figures of a made-up report.
#include "results/report_runtime.h"

#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <stdio.h>

// A row of the report: id, file size, loss in the runtime, latency in two rounds.
struct row {
    double id, bytes, loss, us[2];
};

// Writes a row with a loss of 0.5 in the search and a noise of 10 %.
static void write_row(struct msc_str *out, const struct row *row, const char *label) {
    msc_str_printf(out,
                   "{\"id\":%g,\"label\":\"%s\",\"metrics\":{\"distill_loss\":0.5},\"examined\":{"
                   "\"noise\":0.1,\"file_bytes\":%g,\"runtime\":{\"distill_loss\":%g,"
                   "\"us_by_round\":[%g,%g]}}}",
                   row->id, label, row->bytes, row->loss, row->us[0], row->us[1]);
}

static void assert_said(const struct row *winner, const char *expected) {
    static const struct row four = {1, 50, 2, {10, 10}}, eight = {0, 100, 0.5, {10, 20}},
                            reference = {-1, 400, 0, {20, 40}};
    struct msc_str json = {0}, text = {0};
    cJSON *report = NULL;
    msc_str_append(&json, "{\"runtime\":{\"name\":\"onnxruntime\",\"version\":\"1.2.3\","
                          "\"processor\":\"A chip\",\"threads\":2,\"rounds\":2},\"winner\":");
    write_row(&json, winner, "");
    msc_str_append(&json, ",\"baselines\":[");
    write_row(&json, &four, "8 mse");
    msc_str_char(&json, ',');
    write_row(&json, &eight, "8");
    msc_str_append(&json, "],\"reference\":");
    write_row(&json, &reference, "");
    msc_str_char(&json, '}');
    assert_ok(msc_json_parse(&report, json.data, json.length, "report"));
    assert_ok(msc_report__write_runtime(&text, report));
    static const char name[] = "runtime: onnxruntime 1.2.3, A chip, 2 threads, 2 rounds\n";
    assert_memory_equal(msc_str_text(&text), name, sizeof name - 1);
    assert_string_equal(msc_str_text(&text) + sizeof name - 1, expected);
    cJSON_Delete(report);
    msc_str_finish(&json);
    msc_str_finish(&text);
}

static void test_search_report_runtime__says_what_the_winner_is_worth(void **state) {
    (void)state;
    // The winner is smaller, or more accurate by more than the noise, or faster in each round. Only
    // a file that is not smaller is reported.
    assert_said(&(struct row){5, 99, 0.5, {20, 40}}, "");
    assert_said(&(struct row){5, 100, 0.44, {20, 40}},
                "the winner has no smaller file than uniform 8: 100 bytes against "
                "100 bytes\n");
    assert_said(&(struct row){5, 120, 0.5, {9, 18}},
                "the winner has no smaller file than uniform 8: 120 bytes against "
                "100 bytes\n");
    // Loss within the noise, and faster in only one round.
    assert_said(&(struct row){5, 100, 0.46, {9, 21}},
                "the winner is not better than uniform 8: a file of 100 bytes against 100 bytes, a loss "
                "in onnxruntime of 0.46 against 0.5, 0.975 times its latency (0.938 to 1.01)\n");
    // The winner is uniform 8 itself.
    assert_said(&(struct row){0, 100, 0.5, {10, 20}}, "");
    // Slower than the float model in each round, then in only one.
    assert_said(&(struct row){5, 99, 0.5, {22, 48}},
                "the winner is slower than the float model in onnxruntime: 1.15 times its latency "
                "(1.12 to 1.18)\n");
    assert_said(&(struct row){5, 99, 0.5, {18, 48}}, "");
    // Slower in each round, but by less than can be measured.
    assert_said(&(struct row){5, 99, 0.5, {20.1, 40.2}}, "");
    // The loss differs from the search's by less, then by more, than three times the noise.
    assert_said(&(struct row){5, 99, 0.64, {10, 20}}, "");
    assert_said(&(struct row){5, 99, 0.66, {10, 20}},
                "the winner has another loss in onnxruntime than the search measured: 0.66, not "
                "0.5\n");
}

static void assert_text(const char *json, const char *expected) {
    struct msc_str text = {0};
    cJSON *report = NULL;
    assert_ok(msc_json_parse(&report, json, strlen(json), "report"));
    assert_ok(msc_report__write_runtime(&text, report));
    assert_string_equal(msc_str_text(&text), expected);
    cJSON_Delete(report);
    msc_str_finish(&text);
}

#define RUNTIME                                                                                    \
    "\"runtime\":{\"name\":\"onnxruntime\",\"version\":\"1\",\"processor\":\"x\",\"threads\":1,"   \
    "\"rounds\":1},"
#define ROW(loss, found, us)                                                                       \
    "\"state\":\"complete\",\"metrics\":{\"distill_loss\":" #loss "},\"examined\":{\"runtime\":{"  \
    "\"distill_loss\":" #found ",\"us_by_round\":[" #us "]}}}"

// The plan that `rerank` put first has its own name in the text, not "the winner".
static void test_search_report_runtime__names_what_is_delivered(void **state) {
    (void)state;
    assert_text("{" RUNTIME "\"winner\":{\"id\":42," ROW(1, 1, 10) ",\"reference\":{" ROW(
                    0, 0, 10) ",\"reranked\":{\"plans\":[{\"id\":8," ROW(1, 2, 20) "]}}",
                "runtime: onnxruntime 1, x, 1 thread, 1 rounds\n"
                "trial 8 (first after rerank) has another loss in onnxruntime than the search "
                "measured: 2, not 1\n"
                "trial 8 (first after rerank) is slower than the float model in onnxruntime: 2 "
                "times its latency (2 to 2)\n");
}

// A plan that is float throughout has loss 0 in the search. In a runtime it has only rounding
// errors, which are not reported. A larger loss is reported.
static void test_search_report_runtime__rounding_of_floats_is_no_loss(void **state) {
    (void)state;
    assert_text("{" RUNTIME "\"winner\":{\"id\":5," ROW(0, 3e-14, 10) ",\"baselines\":[{\"id\":0,"
                                                                      "\"label\":\"8\"," ROW(
                                                                          1e-5, 1e-5, 10) "]}",
                "runtime: onnxruntime 1, x, 1 thread, 1 rounds\n");
    assert_text("{" RUNTIME "\"winner\":{\"id\":5," ROW(0, 1e-6, 10) ",\"baselines\":[{\"id\":0,"
                                                                     "\"label\":\"8\"," ROW(
                                                                         1e-5, 1e-5, 10) "]}",
                "runtime: onnxruntime 1, x, 1 thread, 1 rounds\n"
                "the winner has another loss in onnxruntime than the search measured: 1e-06, not "
                "0\n");
}

static void test_search_report_runtime__says_nothing_of_what_is_not_there(void **state) {
    (void)state;
    assert_text("{\"winner\":null}", "");
    assert_text("{\"winner\":{\"id\":0},\"runtime\":{\"name\":\"openvino\",\"missing\":\"pip "
                "install\"}}",
                "runtime: openvino, nothing was measured: pip install\n");
    assert_text("{\"winner\":{\"id\":1},\"baselines\":[{\"id\":0,\"label\":\"8\"}],\"runtime\":{"
                "\"name\":\"openvino\",\"version\":\"1\",\"processor\":\"x\",\"threads\":1,"
                "\"rounds\":20}}",
                "runtime: openvino 1, x, 1 thread, 20 rounds\n");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_report_runtime__says_what_the_winner_is_worth),
        cmocka_unit_test(test_search_report_runtime__names_what_is_delivered),
        cmocka_unit_test(test_search_report_runtime__rounding_of_floats_is_no_loss),
        cmocka_unit_test(test_search_report_runtime__says_nothing_of_what_is_not_there),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
