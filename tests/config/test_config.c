// Configurations: defaults, paths, resolved parameters, and errors. The expected values are the
// documented defaults, and those that each test writes. tests/cli/cases/config_errors.sh has all
// error messages.
#include "tests/msc_test.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"

#include <math.h>

static struct msc_config *parse(const char *text, const char *folder) {
    struct msc_config *config = NULL;
    cJSON *json = NULL;
    assert_ok(msc_json_parse(&json, text, strlen(text), "c.json"));
    assert_ok(msc_config_create(&config, json, "c.json", folder, MSC_CONFIG_CODE_ALLOWED));
    return config;
}

static void test_pipeline_config__defaults(void **state) {
    (void)state;
    struct msc_config *c = parse("{\"gym\": [{\"env\": {\"type\": \"toy\"}}]}", "folder");
    assert_string_equal(c->workspace, "folder/msc_workspace");
    assert_string_equal(c->log_file, "folder/msc_workspace/MSC_LOG");
    assert_string_equal(c->device, "auto");
    assert_int_equal(msc_config_log_level(c), MSC_LOG_INFO);
    assert_null(c->model);
    assert_int_equal(c->n_entries, 1);
    const struct msc_config_entry *e = &c->entries[0];
    assert_string_equal(e->name, "gym[0]");
    assert_string_equal(e->record, "folder/msc_workspace/gym_0.jsonl");
    assert_string_equal(e->env_def->name, "toy");
    assert_null(e->strategy_file);
    assert_int_equal(e->parallel, 0);
    assert_true(e->budget.trials == 500);
    assert_true(e->budget.seconds <= 0);
    assert_false(e->budget.has_target);
    msc_config_destroy(c);
}

static const char full[] =
    "{\"workspace\": \"w\", \"verbose\": \"runtime\", \"log_file\": \"\", \"model\": \"../m.onnx\","
    " \"bind\": {\"H\": 224}, \"dataset\": {\"inputs\": \"x.npz\", \"labels\": \"/y.npy\","
    "  \"samples\": 100, \"batch\": 8, \"validation\": {\"inputs\": \"v.npz\"},"
    "  \"image\": {\"channels\": 1, \"mean\": [0.5]}},"
    " \"baseline\": {\"check_config\": {\"atol\": 0.05}}, \"profile\": {},"
    " \"gym\": [{\"env\": {\"type\": \"toy\"}}],"
    " \"quantize\": {\"target\": \"tensorrt\", \"gym\": ["
    "  {\"record\": \"sub/a.jsonl\", \"env\": {\"loss\": \"kl\"},"
    "   \"agent\": {\"type\": \"random\"}, \"seed\": \"9007199254740993\","
    "   \"budget\": {\"trials\": 7, \"time\": \"1h30m\", \"target\": 0.5}},"
    "  {\"base\": \"b.json\", \"folder\": \"agents\", \"baseline\": \"greedy\","
    "   \"trial_time\": \"2m\"}]}}";

static void test_pipeline_config__full(void **state) {
    (void)state;
    struct msc_config *c = parse(full, ".");
    assert_string_equal(c->workspace, "w");
    assert_null(c->log_file);
    assert_string_equal(c->model, "../m.onnx");
    assert_int_equal(c->n_bindings, 1);
    assert_string_equal(c->bindings[0].symbol, "H");
    assert_int_equal(c->bindings[0].value, 224);
    assert_string_equal(c->dataset.options.inputs, "x.npz");
    assert_string_equal(c->dataset.options.labels, "/y.npy");
    assert_int_equal(c->dataset.options.batch, 8);
    assert_int_equal(c->dataset.options.image.channels, 1);
    assert_true(c->dataset.options.image.mean[0] == 0.5);
    assert_string_equal(c->dataset.validation_inputs, "v.npz");
    assert_true(c->atol == 0.05);
    assert_int_equal(c->profile_repeat, 100);
    // Entries of sections come before those of the top-level `gym`.
    assert_int_equal(c->n_entries, 3);
    const struct msc_config_entry *e = c->entries;
    assert_string_equal(e[0].name, "quantize[0]");
    assert_string_equal(e[0].record, "w/sub/a.jsonl");
    assert_string_equal(e[0].strategy_file, "w/msc_quantize.json");
    assert_string_equal(e[0].target, "tensorrt");
    assert_true(e[0].seed == 9007199254740993u);
    assert_int_equal(e[0].budget.trials, 7);
    assert_true(e[0].budget.seconds == 5400);
    assert_true(e[0].budget.has_target && e[0].budget.target == 0.5);
    assert_string_equal(e[1].record, "w/quantize_1.jsonl");
    assert_string_equal(e[1].base, "b.json");
    assert_string_equal(e[1].folder, "agents");
    assert_int_equal(e[1].baseline, MSC_CONFIG_BASELINE_GREEDY);
    assert_true(e[1].trial_seconds == 120);
    assert_string_equal(e[2].name, "gym[0]");
    msc_config_destroy(c);
}

// The parameters of the environment and the agent have their defaults filled in, and the section's
// target is passed to the environment.
static void test_pipeline_config__plugins(void **state) {
    (void)state;
    struct msc_config *c = parse(full, ".");
    const cJSON *env = c->entries[0].env;
    const char *text = NULL;
    assert_ok(msc_json_get_text(&text, env, "target", "env"));
    assert_string_equal(text, "tensorrt");
    assert_ok(msc_json_get_text(&text, env, "loss", "env"));
    assert_string_equal(text, "kl");
    assert_ok(msc_json_get_text(&text, env, "group", "env"));
    assert_string_equal(text, "tensor");
    assert_ok(msc_json_get_text(&text, c->entries[1].agent, "type", "agent"));
    assert_string_equal(text, "auto");
    msc_config_destroy(c);
}

static char *write(const struct msc_config *c, const char *folder) {
    struct msc_str text = {0};
    cJSON *json = NULL;
    char *out = NULL;
    assert_ok(msc_config_to_json(c, &json, folder));
    msc_json_write(&text, json);
    cJSON_Delete(json);
    assert_ok(msc_str_take(&out, &text));
    return out;
}

// Writing a configuration and reading it again gives the same configuration.
static void test_pipeline_config__round_trip(void **state) {
    (void)state;
    struct msc_config *c = parse(full, ".");
    char *text = write(c, ".");
    struct msc_config *again = parse(text, ".");
    char *same = write(again, ".");
    assert_string_equal(text, same);
    msc_free(text);
    msc_free(same);
    msc_config_destroy(again);
    msc_config_destroy(c);
}

static const char plain[] = "{\"model\":\"m.onnx\",\"dataset\":{\"inputs\":\"x.npz\"},"
                            "\"quantize\":{\"gym\":[{}]}}";

static bool has_key(const cJSON *json, const char *key) {
    const cJSON *quantize = cJSON_GetObjectItem(json, "quantize");
    const cJSON *entry = cJSON_GetArrayItem(cJSON_GetObjectItem(quantize, "gym"), 0);
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItem(entry, "env"), key) != NULL;
}

// --show prints every default. A record's header leaves some defaults out, so that older records
// compare equal.
static void test_pipeline_config__defaults_shown(void **state) {
    static const char *const keys[] = {"choices", "weights", "activations", "objectives"};
    (void)state;
    struct msc_config *c = parse(plain, ".");
    cJSON *shown = NULL, *header = NULL;
    assert_ok(msc_config_to_json(c, &shown, "."));
    assert_ok(msc_config_entry_to_json(c, &c->entries[0], &header, "."));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_true(has_key(shown, keys[i]));
        assert_false(has_key(header, keys[i]));
    }
    assert_true(has_key(header, "loss"));
    cJSON_Delete(shown);
    cJSON_Delete(header);
    msc_config_destroy(c);
}

// In a record's header, paths are relative to the record.
static void test_pipeline_config__header(void **state) {
    (void)state;
    struct msc_config *c = parse(full, ".");
    cJSON *json = NULL;
    const char *text = NULL;
    const cJSON *object = NULL;
    assert_ok(msc_config_entry_to_json(c, &c->entries[1], &json, "w"));
    assert_ok(msc_json_get_text(&text, json, "workspace", "header"));
    assert_string_equal(text, ".");
    assert_ok(msc_json_get_text(&text, json, "model", "header"));
    assert_string_equal(text, "../../m.onnx");
    assert_ok(msc_json_get_object(&object, json, "dataset", "header"));
    assert_ok(msc_json_get_text(&text, object, "inputs", "header"));
    assert_string_equal(text, "../x.npz");
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "gym"));
    assert_ok(msc_json_get_object(&object, json, "quantize", "header"));
    const cJSON *gym = cJSON_GetObjectItemCaseSensitive(object, "gym");
    assert_int_equal(cJSON_GetArraySize(gym), 1);
    const cJSON *entry = cJSON_GetArrayItem(gym, 0);
    assert_ok(msc_json_get_text(&text, entry, "record", "header"));
    assert_string_equal(text, "quantize_1.jsonl");
    assert_ok(msc_json_get_text(&text, entry, "base", "header"));
    assert_string_equal(text, "../b.json");
    assert_ok(msc_json_get_text(&text, entry, "folder", "header"));
    assert_string_equal(text, "../agents");
    cJSON_Delete(json);
    msc_config_destroy(c);
}

static void test_pipeline_config__find_entry(void **state) {
    (void)state;
    struct msc_config *c = parse(full, ".");
    size_t index = 0;
    assert_ok(msc_config_find_entry(&index, c, "quantize[1]"));
    assert_int_equal(index, 1);
    assert_int_equal(msc_config_find_entry(&index, c, "prune[0]"), MSC_E_INVALID);
    assert_message("quantize[0], quantize[1], gym[0]");
    msc_config_destroy(c);
}

// A section without searches has one plan: 8 bits everywhere.
static void test_pipeline_config__plain_section(void **state) {
    (void)state;
    struct msc_config *c = parse(
        "{\"model\": \"m.onnx\", \"dataset\": {\"inputs\": \"x.npz\"}, \"quantize\": {}}", ".");
    assert_int_equal(c->n_entries, 1);
    assert_int_equal(c->entries[0].budget.trials, 0);
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(c->entries[0].env, "choices");
    assert_int_equal(cJSON_GetArraySize(choices), 1);
    msc_config_destroy(c);
}

static void test_pipeline_config__refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"gym\": [{\"env\": {\"type\": \"toy\"}, \"recod\": \"a\"}]}",
         "c.json: gym[0]: unknown key \"recod\", did you mean \"record\"?"},
        {"{\"gym\": [{\"env\": {\"type\": \"toy\"}, \"record\": \"./a\"},"
         " {\"env\": {\"type\": \"toy\"}, \"record\": \"a\"}]}",
         "the same record \"a\""},
        {"{\"model\": \"m\", \"dataset\": {\"inputs\": \"x\"}, \"quantize\": {\"strategy_file\":"
         " \"a\", \"gym\": [{\"record\": \"a\"}]}}",
         "\"a\" is the strategy file of quantize and the record of quantize[0]"},
        {"{\"distill\": {}}", "\"model\" is missing: the stages need it"},
        {"{\"prune\": {}, \"optimize\": {\"prune\": {}}}", "\"prune\" is given twice"},
        {"{\"quantize\": {}}", "\"model\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_config *config = NULL;
        cJSON *json = NULL;
        assert_ok(msc_json_parse(&json, cases[i].text, strlen(cases[i].text), "c.json"));
        assert_int_equal(msc_config_create(&config, json, "c.json", ".", MSC_CONFIG_CODE_ALLOWED),
                         MSC_E_INVALID);
        assert_message(cases[i].message);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_config__defaults),
        cmocka_unit_test(test_pipeline_config__full),
        cmocka_unit_test(test_pipeline_config__plugins),
        cmocka_unit_test(test_pipeline_config__round_trip),
        cmocka_unit_test(test_pipeline_config__defaults_shown),
        cmocka_unit_test(test_pipeline_config__header),
        cmocka_unit_test(test_pipeline_config__find_entry),
        cmocka_unit_test(test_pipeline_config__plain_section),
        cmocka_unit_test(test_pipeline_config__refused),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
