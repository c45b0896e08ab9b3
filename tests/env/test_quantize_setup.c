// Setting up the environment `quantize`: parameter files, identities and refused configurations.
// Expected messages are written by hand; identities are compared with each other.
#include "env/env.h"

#include "base/file.h"
#include "tests/env/quantize_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct msc_hash identity_of(const struct bench *b) {
    struct msc_hash identity;
    assert_ok(msc_env_identity(&identity, b->env));
    return identity;
}

static void test_env_quantize_setup__parameters(void **state) {
    static const uint32_t plan[] = {0, 1, 0, 2, 0, 1};
    char folder[] = "/tmp/msc_quantize_XXXXXX";
    char path[64];
    struct bench b;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/record.params", folder);
    prepare_bench(&b, 1, 4);
    b.host.parameters_path = path;
    // The parameter file is required but missing.
    b.host.parameters_required = true;
    assert_int_equal(create(&b, "{" CHOICES "}"), MSC_E_STATE);
    assert_message("record.params is missing");
    b.host.parameters_required = false;
    assert_ok(create(&b, "{" CHOICES "}"));
    assert_true(msc_file_exists(path));
    struct msc_hash identity = identity_of(&b);
    struct msc_outcome made = evaluate(&b, plan);
    close_env(&b);
    // If parameters are read from the file instead of computed, the identity is the same and all
    // metrics are equal bit by bit.
    b.host.parameters_required = true;
    assert_ok(create(&b, "{" CHOICES "}"));
    assert_true(msc_hash_equal(identity, identity_of(&b)));
    struct msc_outcome read = evaluate(&b, plan);
    assert_memory_equal(made.metrics, read.metrics, sizeof(made.metrics[0]) * 7);
    close_env(&b);
    // A file of another configuration is refused.
    assert_int_equal(create(&b, "{\"choices\":[{\"bits\":7}]}"), MSC_E_STATE);
    assert_message("record.params does not belong to this configuration");
    // A damaged file is refused.
    assert_ok(msc_file_write(path, "nonsense", 8));
    assert_int_equal(create(&b, "{" CHOICES "}"), MSC_E_FORMAT);
    assert_message("record.params");
    unlink(path);
    rmdir(folder);
    close_bench(&b);
}

static void test_env_quantize_setup__identity(void **state) {
    static const char *const configs[] = {"{" CHOICES "}", "{\"loss\":\"kl\"," CHOICES "}",
                                          "{\"exclude\":[\"head.w\"]," CHOICES "}",
                                          "{\"activations\":{\"symmetric\":true}," CHOICES "}"};
    struct msc_hash seen[4];
    struct bench b;
    (void)state;
    prepare_bench(&b, 1, 4);
    for (int i = 0; i < 4; i++) {
        assert_ok(create(&b, configs[i]));
        seen[i] = identity_of(&b);
        for (int k = 0; k < i; k++) {
            assert_false(msc_hash_equal(seen[i], seen[k]));
        }
        close_env(&b);
    }
    assert_ok(create(&b, configs[0]));
    assert_true(msc_hash_equal(seen[0], identity_of(&b)));
    cJSON *header = cJSON_CreateObject();
    assert_ok(msc_env_describe(b.env, header));
    static const char *const keys[] = {"graph", "weights", "dataset", "base_strategy",
                                       "params_hash"};
    for (int i = 0; i < 5; i++) {
        const char *text;
        assert_ok(msc_json_get_text(&text, header, keys[i], "header"));
        assert_int_equal(strlen(text), 32);
    }
    cJSON_Delete(header);
    close_bench(&b);
}

static void test_env_quantize_setup__bad_configurations(void **state) {
    static const struct {
        const char *config, *message;
    } rows[] = {
        {"{\"choice\":[]}", "choice"},
        {"{\"loss\":\"mae\"}", "mae"},
        {"{\"loss_tensors\":[]}", "env.loss_tensors"},
        {"{\"loss_tensors\":[\"nobody\"]}", "no tensor \"nobody\""},
        {"{\"loss_tensors\":{\"head:0\":-1}}", "positive weights"},
        {"{\"loss\":\"kl\",\"kl_axis\":0}", "env.kl_axis: 0"},
        {"{\"loss\":\"kl\",\"kl_axis\":2}", "env.kl_axis: 2"},
        {"{\"class_scores\":\"nobody\"}", "env.class_scores"},
        {"{\"exclude\":[\"convolution*\"]}", "convolution*"},
    };
    struct bench b;
    (void)state;
    prepare_bench(&b, 1, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(create(&b, rows[i].config), MSC_E_INVALID);
        assert_message(rows[i].message);
    }
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_setup__parameters),
        cmocka_unit_test(test_env_quantize_setup__identity),
        cmocka_unit_test(test_env_quantize_setup__bad_configurations),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
