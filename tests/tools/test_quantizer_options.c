// Quantizer options: how they are read, and which are refused. Expected messages are written by
// hand; which schemes runtimes accept comes from their documentation.
#include "quantize_case.h"

#include "base/alloc.h"

#include <stdio.h>

static enum msc_status read_options(struct msc_quantizer_options *out, struct msc_arena *arena,
                                    const char *text) {
    cJSON *json;
    assert_ok(msc_json_parse(&json, text, strlen(text), "test"));
    enum msc_status status = msc_quantizer_read_options(out, json, NULL, arena);
    cJSON_Delete(json);
    return status;
}

static void test_tools_quantizer_options__default_options(void **state) {
    static const char *const labels[] = {"8 x0.8", "8 x0.9", "8", "8 x1.1", "8 x1.2"};
    struct msc_quantizer_options o;
    struct msc_arena arena = {0};
    (void)state;
    assert_ok(read_options(&o, &arena, "{}"));
    assert_int_equal(o.n_choices, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(o.choices[i].label, labels[i]);
        assert_int_equal(o.choices[i].bits, 8);
        assert_int_equal(o.choices[i].observers[MSC_SITE_WEIGHT], MSC_OBSERVER_MINMAX);
        assert_int_equal(o.choices[i].observers[MSC_SITE_ACTIVATION], MSC_OBSERVER_MINMAX);
    }
    assert_int_equal(o.group, MSC_GROUP_TENSOR);
    assert_true(o.weights.is_symmetric && o.weights.is_per_channel);
    assert_false(o.activations.is_symmetric);
    msc_arena_finish(&arena);
}

// The observer of a choice: the default, and one given by name.
static void test_tools_quantizer_options__observers(void **state) {
    static const struct {
        const char *observers, *choice, *label;
        enum msc_observer of_weights, of_activations;
    } rows[] = {
        {"{}", "{\"bits\":8}", "8", MSC_OBSERVER_MINMAX, MSC_OBSERVER_MSE},
        {"{}", "{\"bits\":5}", "5", MSC_OBSERVER_MINMAX, MSC_OBSERVER_MSE},
        {"{}", "{\"bits\":4}", "4", MSC_OBSERVER_MSE, MSC_OBSERVER_MSE},
        {"{}", "{\"bits\":9}", "9", MSC_OBSERVER_MINMAX, MSC_OBSERVER_MINMAX},
        {"{\"weights\":\"auto\",\"activations\":\"minmax\"}", "{\"bits\":4}", "4", MSC_OBSERVER_MSE,
         MSC_OBSERVER_MINMAX},
        {"{\"weights\":\"mse\"}", "{\"bits\":8}", "8", MSC_OBSERVER_MSE, MSC_OBSERVER_MSE},
        {"{\"activations\":\"percentile\"}", "{\"bits\":8}", "8", MSC_OBSERVER_MINMAX,
         MSC_OBSERVER_PERCENTILE},
        {"{\"activations\":\"percentile\"}", "{\"bits\":8,\"percentile\":99.5}", "8 99.5",
         MSC_OBSERVER_MINMAX, MSC_OBSERVER_PERCENTILE},
        {"{}", "{\"bits\":8,\"observer\":\"minmax\"}", "8 minmax", MSC_OBSERVER_MINMAX,
         MSC_OBSERVER_MINMAX},
        {"{}", "{\"bits\":8,\"observer\":\"mse\"}", "8 mse", MSC_OBSERVER_MSE, MSC_OBSERVER_MSE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_quantizer_options o;
        struct msc_arena arena = {0};
        char text[256];
        snprintf(text, sizeof(text), "{\"observers\":%s,\"choices\":[%s]}", rows[i].observers,
                 rows[i].choice);
        assert_ok(read_options(&o, &arena, text));
        assert_string_equal(o.choices[0].label, rows[i].label);
        assert_int_equal(o.choices[0].observers[MSC_SITE_WEIGHT], rows[i].of_weights);
        assert_int_equal(o.choices[0].observers[MSC_SITE_ACTIVATION], rows[i].of_activations);
        msc_arena_finish(&arena);
    }
}

// With an importance file, types of GGUF use it by default. Null is no file.
static void test_tools_quantizer_options__imatrix(void **state) {
    static const struct {
        const char *imatrix;
        enum msc_observer observer;
    } rows[] = {{"\"a.gguf\"", MSC_OBSERVER_HESSIAN}, {"null", MSC_OBSERVER_MSE}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_quantizer_options o;
        struct msc_arena arena = {0};
        char text[256];
        snprintf(
            text, sizeof(text),
            "{\"activations\":{\"float\":true},\"choices\":[{\"type\":\"q4_0\"}],\"imatrix\":%s}",
            rows[i].imatrix);
        assert_ok(read_options(&o, &arena, text));
        assert_int_equal(o.choices[0].observers[MSC_SITE_WEIGHT], rows[i].observer);
        msc_arena_finish(&arena);
    }
}

static void test_tools_quantizer_options__labels(void **state) {
    struct msc_quantizer_options o;
    struct msc_arena arena = {0};
    (void)state;
    assert_ok(read_options(
        &o, &arena,
        "{\"target\":\"onnx\",\"group\":\"joint\",\"choices\":[{\"float\":true},{\"bits\":16},"
        "{\"bits\":2,\"observer\":\"percentile\",\"scale\":0.5},"
        "{\"observer\":\"percentile\",\"percentile\":99.5}],\"fix\":{\"a*\":\"16\",\"b\":\"float\"}"
        ",\"include\":[\"*\"],\"exclude\":[\"q?\",\"r\"]}"));
    assert_string_equal(o.choices[0].label, "float");
    assert_string_equal(o.choices[1].label, "16");
    assert_string_equal(o.choices[2].label, "2 percentile 99.99 x0.5");
    assert_string_equal(o.choices[3].label, "8 percentile 99.5");
    assert_int_equal(o.group, MSC_GROUP_JOINT);
    assert_int_equal(o.n_fixed, 2);
    assert_string_equal(o.fixed[1].label, "float");
    assert_int_equal(o.n_include, 1);
    assert_string_equal(o.exclude[1], "r");
    msc_arena_finish(&arena);
}

// Expected: whether a runtime's 8-bit integer path accepts a scheme. Sources: "Working with
// quantized types" (TensorRT 10), "Low precision transformations" (OpenVINO 2024) and "8-bit
// quantization specification" (TensorFlow Lite).
static void test_tools_quantizer_options__targets(void **state) {
    static const char *const names[] = {"onnx", "tensorrt", "openvino", "tflite"};
    static const struct {
        const char *options;
        bool is_taken[4];
    } rows[] = {
        {"", {true, true, true, true}},
        {",\"activations\":{\"symmetric\":true}", {true, true, true, true}},
        {",\"activations\":{\"symmetric\":false}", {true, false, true, true}},
        {",\"weights\":{\"per_channel\":false}", {true, false, true, true}},
        {",\"weights\":{\"symmetric\":false}", {true, false, false, false}},
        {",\"choices\":[{\"bits\":8},{\"float\":true}]", {true, true, true, true}},
        {",\"choices\":[{\"bits\":8},{\"bits\":4}]", {true, false, false, false}},
        {",\"choices\":[{\"bits\":16}]", {true, false, false, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int t = 0; t < 4; t++) {
            struct msc_quantizer_options o;
            struct msc_arena arena = {0};
            char text[128];
            snprintf(text, sizeof(text), "{\"target\":\"%s\"%s}", names[t], rows[i].options);
            assert_int_equal(read_options(&o, &arena, text) == MSC_OK, rows[i].is_taken[t]);
            if (!rows[i].is_taken[t]) {
                assert_message(names[t]);
            } else if (rows[i].options[0] == '\0') {
                assert_true(o.weights.is_symmetric && o.weights.is_per_channel);
                assert_int_equal(o.activations.is_symmetric, t == 1);
            }
            msc_arena_finish(&arena);
        }
    }
}

static void test_tools_quantizer_options__bad_options(void **state) {
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"choices\":[]}", "the list is empty"},
        {"{\"choices\":8}", "choices"},
        {"{\"choices\":[8]}", "env.choices[0]: expected an object"},
        {"{\"choices\":[{\"bits\":8},{\"bit\":4}]}", "env.choices[1]"},
        {"{\"choices\":[{\"bits\":1}]}", "bits is 1, expected 2 to 16"},
        {"{\"choices\":[{\"bits\":17}]}", "bits is 17"},
        {"{\"choices\":[{\"bits\":4.5}]}", "expected a whole number"},
        {"{\"choices\":[{\"bits\":\"8\"}]}", "bits"},
        {"{\"choices\":[{\"bits\":4,\"group_size\":8}]}",
         "group_size is 8, expected 16, 32, 64, 128 or 256"},
        {"{\"choices\":[{\"bits\":4,\"group_size\":48}]}", "group_size is 48"},
        {"{\"choices\":[{\"bits\":4,\"group_size\":512}]}", "group_size is 512"},
        {"{\"target\":\"onnxruntime_nbits\",\"sites\":\"inputs\"}",
         "target onnxruntime_nbits needs \"all\""},
        {"{\"target\":\"openvino\",\"choices\":[{\"bits\":8,\"group_size\":32}]}",
         "remove env.choices[0] (\"8 g32\")"},
        {"{\"choices\":[{\"type\":\"float8\"}]}",
         "unknown type \"float8\": expected float16, bfloat16, q4_0, "},
        {"{\"choices\":[{\"type\":\"float16\",\"bits\":8}]}", "bits is 8, but float16 has 16"},
        {"{\"choices\":[{\"type\":\"bfloat16\",\"scale\":2}]}",
         "a choice of type bfloat16 allows no other key than bits"},
        {"{\"choices\":[{\"type\":\"float16\"},{\"type\":\"float16\",\"bits\":16}]}",
         "the same as env.choices[0] (\"float16\")"},
        {"{\"target\":\"tflite\",\"choices\":[{\"type\":\"float16\"}]}",
         "remove env.choices[0] (\"float16\")"},
        {"{\"target\":\"openvino\",\"choices\":[{\"bits\":8,\"dynamic\":true}]}",
         "target openvino has no dynamic quantisation; remove env.choices[0] (\"8 dynamic\")"},
        {"{\"choices\":[{\"bits\":6,\"dynamic\":true}]}", "dynamic supports 8 bits, not 6"},
        {"{\"choices\":[{\"bits\":8,\"dynamic\":1}]}", "dynamic"},
        {"{\"choices\":[{\"bits\":8,\"scale\":0}]}", "scale is 0"},
        {"{\"choices\":[{\"bits\":8,\"percentile\":50}]}", "percentile is 50"},
        {"{\"choices\":[{\"bits\":8,\"observer\":\"max\"}]}", "unknown observer \"max\""},
        {"{\"choices\":[{\"bits\":8},{\"bits\":8}]}",
         "env.choices[1] is the same as env.choices[0] (\"8\")"},
        {"{\"observers\":{\"weights\":\"max\"}}",
         "env.observers (besides auto): unknown observer \"max\""},
        {"{\"observers\":{\"weight\":\"mse\"}}", "did you mean \"weights\""},
        {"{\"observers\":\"mse\"}", "observers"},
        {"{\"observers\":{},\"choices\":[{\"bits\":8,\"observer\":\"mse\"},{\"bits\":8,"
         "\"observer\":"
         "\"mse\"}]}",
         "env.choices[1] is the same as env.choices[0] (\"8 mse\")"},
        {"{\"choices\":[{\"float\":true,\"bits\":8}]}", "a float choice allows no other key"},
        {"{\"group\":\"layer\"}", "unknown value \"layer\""},
        {"{\"target\":\"tpu\"}",
         "unknown target \"tpu\", expected one of onnxruntime, "
         "onnxruntime_avx2, onnxruntime_nbits, openvino, tensorrt, tflite, generic"},
        {"{\"sites\":\"some\"}", "env.sites: unknown value \"some\": expected all or inputs"},
        {"{\"sites\":\"all\"}", "target generic requantises nothing"},
        {"{\"sites\":\"all\",\"target\":\"onnxruntime\",\"group\":\"site\"}",
         "one scale for all its consumers"},
        {"{\"target\":\"tensorrt\",\"activations\":{\"symmetric\":false}}", "tensorrt takes"},
        {"{\"target\":\"tflite\",\"choices\":[{\"bits\":8},{\"bits\":4}]}",
         "target tflite takes 8 bits and symmetric weights; remove env.choices[1] (\"4\")"},
        {"{\"target\":\"onnxruntime\",\"activations\":{\"per_channel\":true}}",
         "env.activations: target onnxruntime supports no scales per channel"},
        {"{\"activations\":{\"per_channels\":true}}", "did you mean \"per_channel\""},
        {"{\"weights\":3}", "weights"},
        {"{\"include\":[3]}", "env.include"},
        {"{\"fix\":{\"a\":\"5\"}}", "env.fix[\"a\"]"},
        {"{\"fix\":{\"a\":8}}", "env.fix[\"a\"]"},
        {"{\"fix\":[\"a\"]}", "env.fix: expected an object of names, such as {"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_quantizer_options o;
        struct msc_arena arena = {0};
        assert_int_not_equal(read_options(&o, &arena, rows[i].text), MSC_OK);
        assert_message(rows[i].message);
        msc_arena_finish(&arena);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_quantizer_options__default_options),
        cmocka_unit_test(test_tools_quantizer_options__observers),
        cmocka_unit_test(test_tools_quantizer_options__imatrix),
        cmocka_unit_test(test_tools_quantizer_options__labels),
        cmocka_unit_test(test_tools_quantizer_options__targets),
        cmocka_unit_test(test_tools_quantizer_options__bad_options),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
