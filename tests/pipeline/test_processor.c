// A search of the tiny network from configuration to result. The reported loss is compared with one
// computed here from the outputs of single runs.
#include "tests/msc_test.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "pipeline/processor.h"
#include "pipeline/remarks.h"
#include "records/record_query.h"
#include "tools/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILES MSC_TESTS_FOLDER "/cli/files/"

static char folder[] = "/tmp/msc_processor_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static struct msc_config_dataset all_samples(void) {
    struct msc_config_dataset from = {.options = MSC_DATASET_OPTIONS_INIT};
    from.options.inputs = FILES "inputs.npz";
    from.options.batch = 4;
    return from;
}

static void write_config(char path[256]) {
    struct msc_str text = {0};
    snprintf(path, 256, "%s/c.json", folder);
    msc_str_printf(&text,
                   "{\"model\": \"" FILES "tiny.onnx\", \"dataset\": {\"inputs\": \"" FILES
                   "inputs.npz\", \"batch\": 4}, \"quantize\": {\"target\": \"generic\", \"gym\": "
                   "[{\"env\": {\"choices\": [{\"bits\": 8}, {\"bits\": 5}, {\"bits\": 3}], "
                   "\"bounds\": {\"size_ratio\": {\"max\": 0.25}}}, \"agent\": {\"type\": "
                   "\"random\"}, \"budget\": {\"trials\": 20}, \"parallel\": 4}]}}");
    assert_ok(msc_file_write(path, text.data, text.length));
    msc_str_finish(&text);
}

// The loss: each sample's mean (y - z)^2, averaged over the samples and divided by the mean y^2 of
// all samples. Each batch is run separately.
static double loss_of(struct msc_model *m, const struct msc_strategy *strategy) {
    double squares = 0;
    double *errors = calloc((size_t)msc_dataset_n_samples(m->dataset), sizeof *errors);
    double loss = 0;
    int64_t n = 0;
    assert_non_null(errors);
    for (size_t b = 0; b < msc_dataset_n_batches(m->dataset); b++) {
        const struct msc_array *x = msc_dataset_batch(m->dataset, b, 0);
        struct msc_model_run exact = {.inputs = &x};
        struct msc_model_run edited = {.inputs = &x, .strategy = strategy};
        assert_ok(msc_model_run(m, &exact));
        assert_ok(msc_model_run(m, &edited));
        for (int64_t i = 0; i < msc_dataset_batch_samples(m->dataset, b); i++, n++) {
            for (int64_t k = 0; k < 3; k++) {
                double y = msc_array_get_double(exact.outputs[0], 3 * i + k);
                double z = msc_array_get_double(edited.outputs[0], 3 * i + k);
                squares += y * y;
                errors[n] += (y - z) * (y - z) / 3;
            }
        }
        msc_model_run_finish(&exact);
        msc_model_run_finish(&edited);
    }
    for (int64_t i = 0; i < n; i++) {
        loss += errors[i] / (squares / (3 * (double)n));
    }
    free(errors);
    return loss / (double)n;
}

// The recorded loss of the winner equals the loss of the written strategy file applied by `run`.
static void check_loss(void) {
    char path[256];
    struct msc_record *record = NULL;
    struct msc_strategy *strategy = NULL;
    struct msc_model *m = NULL;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_config_dataset from = all_samples();
    o.device = "cpu";
    snprintf(path, sizeof path, "%s/msc_workspace/quantize_0.jsonl", folder);
    assert_ok(msc_record_open(&record, path, MSC_RECORD_READ, NULL));
    snprintf(path, sizeof path, "%s/msc_workspace/msc_quantize.json", folder);
    assert_ok(msc_strategy_load(&strategy, path));
    assert_ok(msc_model_open(&m, FILES "tiny.onnx", &o));
    assert_ok(msc_model_load_dataset(m, &from));
    struct msc_record_line best;
    assert_true(msc_record_best(&best, record));
    int metric = msc_space_find_metric(msc_record_space(record), "distill_loss");
    double recorded = best.trial.outcome.metrics[metric];
    assert_true(recorded > 0);
    assert_true(fabs(loss_of(m, strategy) / recorded - 1) < 1e-9);
    msc_model_close(m);
    msc_strategy_destroy(strategy);
    msc_record_close(record);
}

static void test_pipeline_processor__search(void **state) {
    (void)state;
    char path[256];
    struct msc_processor *p = NULL;
    struct msc_processor_result result;
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    o.device = "cpu";
    write_config(path);
    assert_ok(msc_processor_open(&p, path, &o));
    assert_ok(msc_processor_run(p, &result));
    assert_true(result.is_feasible);
    assert_false(result.was_cancelled);
    assert_int_equal(result.export_status, MSC_OK);
    assert_int_equal(cJSON_GetArraySize(result.reports), 1);
    msc_processor_result_finish(&result);
    msc_processor_close(p);
    check_loss();
}

// A search that was cancelled continues to the normal end.
static void test_pipeline_processor__cancelled(void **state) {
    (void)state;
    char path[256];
    char record[256];
    static struct msc_cancel cancel;
    struct msc_processor *p = NULL;
    struct msc_processor_result result;
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    o.device = "cpu";
    write_config(path);
    snprintf(record, sizeof record, "%s/stopped.jsonl", folder);
    cancel.level = 1;
    o.cancel = &cancel;
    o.record = record;
    assert_ok(msc_processor_open(&p, path, &o));
    assert_ok(msc_processor_run(p, &result));
    assert_true(result.was_cancelled);
    msc_processor_result_finish(&result);
    msc_processor_close(p);
    o.cancel = NULL;
    assert_ok(msc_processor_open_record(&p, record, &o));
    assert_ok(msc_processor_run(p, &result));
    assert_false(result.was_cancelled);
    const cJSON *end =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(result.reports, 0), "end");
    assert_string_equal(end->valuestring, "trials");
    msc_processor_result_finish(&result);
    msc_processor_close(p);
}

static void stop_at_once(void *payload, const struct msc_config_entry *entry, const char *what,
                         double left_s) {
    (void)entry, (void)what, (void)left_s;
    msc_cancel_raise(payload, 2);
}

// If the final measurements are cancelled, the search has not ended; the next launch measures.
static void test_pipeline_processor__cancelled_while_measuring(void **state) {
    (void)state;
    char path[256];
    char record[256];
    static struct msc_cancel cancel;
    struct msc_processor *p = NULL;
    struct msc_processor_result result;
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    o.device = "cpu";
    write_config(path);
    snprintf(record, sizeof record, "%s/unmeasured.jsonl", folder);
    o.cancel = &cancel;
    o.record = record;
    o.measuring = stop_at_once;
    o.payload = &cancel;
    for (int launch = 0; launch < 2; launch++) {
        bool is_stopped = launch == 0;
        assert_ok(msc_processor_open(&p, path, &o));
        assert_ok(msc_processor_run(p, &result));
        assert_int_equal(result.was_cancelled, is_stopped);
        const cJSON *report = cJSON_GetArrayItem(result.reports, 0);
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(report, "end")->valuestring,
                            is_stopped ? "cancelled" : "trials");
        assert_int_equal(cJSON_HasObjectItem(report, "reference"), !is_stopped);
        assert_int_equal(
            cJSON_GetObjectItem(cJSON_GetObjectItem(report, "counts"), "trials")->valueint, 23);
        msc_processor_result_finish(&result);
        msc_processor_close(p);
        cancel.level = 0;
        o.measuring = NULL;
    }
}

static void note(void *payload, enum msc_log_level level, const char *line) {
    (void)line;
    *(int *)payload += level == MSC_LOG_WARNING;
}

// A warning names costs that are neither objectives nor bounded. With a bound on the cost there is
// no warning.
static void test_pipeline_processor__remark(void **state) {
    (void)state;
    int n_warnings = 0;
    const struct msc_log log = {.level = MSC_LOG_INFO, .write = note, .payload = &n_warnings};
    struct msc_env *env = NULL;
    const struct msc_env_host host = {.abi = MSC_ENV_ABI};
    struct msc_goal goal = {.n_objectives = 1};
    assert_ok(msc_env_create(&env, msc_env_find("toy"), NULL, &host));
    assert_ok(msc_remark_costs(msc_env_space(env), &goal, &log));
    assert_int_equal(n_warnings, 1);
    goal.n_bounds = 1;
    goal.bounds[0].metric = msc_space_find_metric(msc_env_space(env), "size_ratio");
    assert_ok(msc_remark_costs(msc_env_space(env), &goal, &log));
    assert_int_equal(n_warnings, 1);
    msc_env_destroy(env);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_processor__search),
        cmocka_unit_test(test_pipeline_processor__cancelled),
        cmocka_unit_test(test_pipeline_processor__cancelled_while_measuring),
        cmocka_unit_test(test_pipeline_processor__remark),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
