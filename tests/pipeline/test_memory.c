// Running out of memory: each allocation fails in turn, including cJSON's. A function returns a
// complete object or an error, never a partial object.
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "env/env.h"
#include "config/config.h"
#include "results/report.h"

#include "tests/short_memory.h"

#include "tests/msc_test.h"

static cJSON *parse(const char *text) {
    cJSON *json = NULL;
    assert_ok(msc_json_parse(&json, text, strlen(text), "test"));
    return json;
}

static const char config[] =
    "{\"model\":\"m.onnx\",\"dataset\":{\"inputs\":\"x.npz\"},\"quantize\":{\"target\":\"generic\","
    "\"gym\":[{\"env\":{\"choices\":[{\"bits\":8},{\"bits\":4,\"observer\":\"mse\"}],\"bounds\":{"
    "\"size_ratio\":"
    "{\"max\":0.2}}},\"agent\":{\"type\":\"evolutionary\",\"population\":4}}]}}";

// Checks that the configured choices are read. If they were lost, the defaults would be used
// without notice.
static enum msc_status make_config(void) {
    struct msc_config *c = NULL;
    cJSON *json = NULL;
    MSC_TRY(msc_json_parse(&json, config, sizeof config - 1, "c.json"));
    MSC_TRY(msc_config_create(&c, json, "c.json", ".", MSC_CONFIG_CODE_ALLOWED));
    const cJSON *env = c->entries[0].env;
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(env, "choices")), 2);
    assert_non_null(cJSON_GetObjectItem(env, "bounds"));
    assert_string_equal(cJSON_GetObjectItem(env, "target")->valuestring, "generic");
    assert_int_equal(cJSON_GetObjectItem(c->entries[0].agent, "population")->valueint, 4);
    msc_config_destroy(c);
    return MSC_OK;
}

static void test_pipeline_memory__config(void **state) {
    (void)state;
    run_failing(make_config, 100);
}

static struct msc_env *env;
static struct msc_hash identity;

static enum msc_status make_identity(void) {
    struct msc_hash found;
    MSC_TRY(msc_env_identity(&found, env));
    assert_true(msc_hash_equal(found, identity));
    return MSC_OK;
}

static void test_pipeline_memory__identity(void **state) {
    const struct msc_env_host host = {0};
    cJSON *params = parse("{\"type\":\"toy\"}");
    (void)state;
    assert_ok(msc_env_create(&env, msc_env_find("toy"), params, &host));
    assert_ok(msc_env_identity(&identity, env));
    run_failing(make_identity, 10);
    msc_env_destroy(env);
    cJSON_Delete(params);
}

static const char report[] =
    "{\"record\":\"r.jsonl\",\"counts\":{\"trials\":2,\"complete\":2,\"pruned\":0,\"infeasible\":0,"
    "\"failed\":0,\"baselines\":0,\"repeats\":0,\"retries\":0},\"objectives\":[{\"metric\":"
    "\"loss\"}],"
    "\"metrics\":[\"loss\",\"size\"],\"winner\":{\"id\":1,\"state\":\"complete\",\"metrics\":"
    "{\"loss\":0.5,\"size\":7}},\"top\":[{\"id\":0,\"state\":\"complete\",\"metrics\":"
    "{\"loss\":0.75,\"size\":6}}]}";
static cJSON *report_json;
static struct msc_str report_text;

static enum msc_status make_report(void) {
    struct msc_str text = {0};
    enum msc_status status = msc_report_text(&text, report_json);
    if (status == MSC_OK) {
        assert_string_equal(msc_str_text(&text), msc_str_text(&report_text));
    }
    msc_str_finish(&text);
    return status;
}

static void test_pipeline_memory__report(void **state) {
    (void)state;
    report_json = parse(report);
    assert_ok(msc_report_text(&report_text, report_json));
    assert_non_null(strstr(msc_str_text(&report_text), "0.75"));
    run_failing(make_report, 5);
    msc_str_finish(&report_text);
    cJSON_Delete(report_json);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_memory__config),
        cmocka_unit_test(test_pipeline_memory__identity),
        cmocka_unit_test(test_pipeline_memory__report),
    };
    cJSON_Hooks hooks = {.malloc_fn = __wrap_malloc, .free_fn = __wrap_free};
    cJSON_InitHooks(&hooks);
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
