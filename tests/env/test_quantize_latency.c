// The metric latency_us of the small network, from a table of kernel times that a script prints
// in place of the runtime. Expected latencies are worked out by hand.
#include "tests/env/quantize_bench.h"

#include "tests/temp_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HELLO                                                                                      \
    "{\"protocol\":1,\"runtimes\":[{\"name\":\"onnxruntime\",\"version\":\"1.2.3\"},"              \
    "{\"name\":\"openvino\",\"missing\":\"pip install openvino\"}],\"processor\":\"A chip\","      \
    "\"features\":[],\"threads\":4}"
#define KERNEL(kind, name, us) "{\"kind\":\"" kind "\",\"names\":[\"" name "\"],\"us\":" us "}"
#define C(name, us) KERNEL("compute", name, us)
#define Q(name, us) KERNEL("quantize", name, us)
#define D(name, us) KERNEL("dequantize", name, us)
#define MODEL(us, kernels) "{\"us\":" us ",\"kernels\":[" kernels "]}"

// Profiles of five models: float; all sites in bytes; only conv2 in bytes; all except conv2 in
// bytes; and float from the pool on. Kernels are named after their output or a joint, as runtimes
// do.
#define PROFILES_OF(conv2, uniform, even, joined)                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             \
    "{\"models\":[" MODEL(                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    \
        "331",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                \
        C("relu:0_nchwc", "100") "," C("conv2_token_3", "200") "," C("pool", "10") "," C(                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     \
            "flat",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           \
            "1") "," C("head",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                \
                       "20")) "," MODEL(uniform, Q("image_quantized_7",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       \
                                                   "5") "," C("conv1", "40") "," C("conv2", conv2) "," C("pool:0_quantized",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  \
                                                                                                         "8") "," C("flat", "1") "," C("head", "12")) "," MODEL(even, Q("image_quantized", "5") "," D("image_dequantized", "4") "," C("relu", "100") "," Q("relu:0_quantized", "7") "," C("conv2", conv2) "," C("pool",                                                                                                                                                                                                                                                                                                                                                       \
                                                                                                                                                                                                                                                                                                                "8") "," C("flat",                                                                                                                                                                                                                                                                                                                                            \
                                                                                                                                                                                                                                                                                                                           "1") "," D("flat:0_dequantized", "2") "," C("head",                                                                                                                                                                                                                                                                                                \
                                                                                                                                                                                                                                                                                                                                                                       "20")) "," MODEL("275", Q("image_quantized", "5") "," C("conv1",                                                                                                                                                                                                                                       \
                                                                                                                                                                                                                                                                                                                                                                                                                               "40") "," D("relu:0_dequantized",                                                                                                                                                                                                              \
                                                                                                                                                                                                                                                                                                                                                                                                                                           "6") "," C("conv2.float",                                                                                                                                                                                                          \
                                                                                                                                                                                                                                                                                                                                                                                                                                                      "200") "," Q("conv2:0_quantized", "3") "," C("pool",                                                                                                                                                                    \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "8") "," C("flat",                                                                                                                                                         \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              "1") "," C("head", "12")) "," MODEL(joined,                                                                                                                     \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  Q("image_quantized", "5") "," C("conv1",                                                                                    \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  "40") "," C("conv2",                                                                        \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              conv2) "," D("conv2:0_dequantized", "2.5") "," C("pool",                        \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               "10") "," C("flat",            \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "1") "," C("head", \
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "20")) "]}"

#define PROFILES PROFILES_OF("60", "126", "207", "138.5")
// Here conv2 takes longer in bytes than in float.
#define SLOW_PROFILES PROFILES_OF("360", "426", "507", "438.5")

#define CONFIG(more)                                                                               \
    "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8},"                     \
    "{\"float\":true},{\"bits\":16}]" more "}"
#define LATENCY ",\"objectives\":[\"latency_us\"],\"bounds\":{\"latency_ratio\":{\"max\":1}}"

static char folder[TEMP_FOLDER_BYTES];

static void answer_with(const char *profiles) {
    char command[TEMP_FOLDER_BYTES + 32], path[TEMP_FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/runtime.sh", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "read -r a; echo '%s'; read -r b; echo '%s'; read -r c\n", HELLO, profiles);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "/bin/sh %s", path);
    assert_int_equal(setenv("MSCGYM_RUNTIME", command, 1), 0);
}

static int set_up(void **state) {
    (void)state;
    temp_folder_make(folder);
    answer_with(PROFILES);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unsetenv("MSCGYM_RUNTIME");
    temp_folder_remove(folder);
    return 0;
}

// ---- The formula, by hand ---------------------------------------------------------------------

enum { X, W1, R, W2, Y2, P, W3, N_TASKS }; // tasks, in the order of the space
enum { BYTES, FLOAT, WORDS, N_FORMS };

// Time of a site's conversions. Bytes made by an integer kernel need no quantising, and bytes read
// by an integer kernel need no dequantising.
static double site(uint32_t form, bool is_made, bool is_read, double quantize, double dequantize) {
    return form == FLOAT   ? 0
           : form == WORDS ? quantize + dequantize
                           : (is_made ? 0 : quantize) + (is_read ? 0 : dequantize);
}

// No profile quantises the output of a float pool, so this time is estimated. The 3 elements take 3
// times as long as one element elsewhere. The time per element is the median of 5 / (2 * 36), 7 /
// (4 * 36) and 3 / (3 * 36).
#define QUANTIZE_P (3.0 * 7.0 / (4.0 * 36.0))

static double expected_us(const uint32_t c[N_TASKS]) {
    bool conv1 = c[X] == BYTES && c[W1] == BYTES && c[R] == BYTES;
    bool conv2 = c[R] == BYTES && c[W2] == BYTES && c[Y2] == BYTES;
    bool pool = c[Y2] == BYTES && c[P] == BYTES;
    bool head = c[P] == BYTES && c[W3] == BYTES;
    return (conv1 ? 40 : 100) + (conv2 ? 60 : 200) + (pool ? 8 : 10) + 1 + (head ? 12 : 20) +
           site(c[X], false, conv1, 5, 4) + site(c[R], conv1, conv2, 7, 6) +
           site(c[Y2], conv2, pool, 3, 2.5) + site(c[P], pool, head, QUANTIZE_P, 2);
}

static void test_env_quantize_latency__is_the_sum_over_groups(void **state) {
    (void)state;
    struct bench b;
    open_bench(&b, CONFIG(LATENCY));
    const struct msc_space *space = msc_env_space(b.env);
    const struct msc_cost *cost = msc_space_find_cost(space, "latency_us");
    const struct msc_cost *ratio = msc_space_find_cost(space, "latency_ratio");
    assert_int_equal(space->n_tasks, N_TASKS);
    assert_string_equal(space->tasks[P].name, "pool:0");
    assert_non_null(cost);
    assert_non_null(ratio);
    uint32_t choices[N_TASKS] = {0};
    for (int point = 0; point < 3 * 3 * 3 * 3 * 3 * 3 * 3; point++) {
        for (int t = 0, left = point; t < N_TASKS; t++, left /= 3) {
            choices[t] = (uint32_t)(left % 3);
        }
        assert_near(msc_cost_value(cost, choices), expected_us(choices), 1e-9);
        assert_near(msc_cost_value(ratio, choices), expected_us(choices) / 331, 1e-9);
    }
    double reference[MSC_MAX_METRICS];
    assert_ok(msc_env_reference(b.env, reference));
    assert_near(reference[msc_space_find_metric(space, "latency_us")], 331, 1e-9);
    close_bench(&b);
}

// ---- The quickest plan ------------------------------------------------------------------------

static double least_of_all(const struct msc_space *space, const struct msc_cost *cost) {
    double least = INFINITY;
    for (uint32_t point = 0; point < 1u << N_TASKS; point++) {
        uint32_t choices[N_TASKS];
        for (int t = 0; t < N_TASKS; t++) {
            choices[t] = point >> t & 1u;
        }
        least = fmin(least, msc_cost_value(cost, choices));
    }
    assert_int_equal(space->n_tasks, N_TASKS);
    return least;
}

static void test_env_quantize_latency__begins_with_the_quickest(void **state) {
    (void)state;
    static const char config[] = "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":"
                                 "[{\"bits\":8},{\"float\":true}]" LATENCY "}";
    struct bench b;
    open_bench(&b, config);
    assert_int_equal(msc_env_space(b.env)->n_baselines, 2); // uniform 8 is already the quickest
    close_bench(&b);
    answer_with(SLOW_PROFILES);
    open_bench(&b, config);
    const struct msc_space *space = msc_env_space(b.env);
    const struct msc_cost *cost = msc_space_find_cost(space, "latency_us");
    assert_int_equal(space->n_baselines, 3);
    assert_string_equal(space->baselines[2].label, "the quickest");
    assert_int_equal(space->baselines[2].choices[W2], FLOAT);
    assert_int_equal(space->baselines[2].choices[W1], BYTES);
    assert_near(msc_cost_value(cost, space->baselines[2].choices), least_of_all(space, cost), 1e-9);
    assert_true(least_of_all(space, cost) < 331);
    close_bench(&b);
}

// ---- When latency is measured, and where it is kept -------------------------------------------

static void test_env_quantize_latency__only_where_it_is_asked_for(void **state) {
    (void)state;
    struct bench b;
    cJSON *header = cJSON_CreateObject();
    answer_with("never asked");
    open_bench(&b, CONFIG(""));
    assert_int_equal(msc_space_find_metric(msc_env_space(b.env), "latency_us"), -1);
    assert_ok(msc_env_describe(b.env, header));
    assert_null(cJSON_GetObjectItem(header, "latency_of"));
    cJSON_Delete(header);
    close_bench(&b);
    answer_with(PROFILES);
    open_bench(&b, CONFIG(",\"bounds\":{\"latency_ratio\":{\"max\":1}}"));
    assert_true(msc_space_find_metric(msc_env_space(b.env), "latency_us") >= 0);
    close_bench(&b);
}

static struct msc_hash identity_of(struct bench *b) {
    struct msc_hash h;
    assert_ok(msc_env_identity(&h, b->env));
    close_env(b);
    return h;
}

// Latencies are measured once and then read from the file. A search with other latencies has
// another identity.
static void test_env_quantize_latency__is_kept(void **state) {
    (void)state;
    struct bench b;
    char path[TEMP_FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/a.params", folder);
    prepare_bench(&b, 1, 4);
    b.host.parameters_path = path;
    assert_ok(create(&b, CONFIG(LATENCY)));
    cJSON *header = cJSON_CreateObject();
    assert_ok(msc_env_describe(b.env, header));
    assert_string_equal(cJSON_GetObjectItem(header, "latency_of")->valuestring,
                        "onnxruntime 1.2.3, 1 thread, A chip");
    cJSON_Delete(header);
    struct msc_hash first = identity_of(&b);
    answer_with("never asked");
    assert_ok(create(&b, CONFIG(LATENCY)));
    assert_true(msc_hash_equal(first, identity_of(&b)));
    // A search without latencies accepts the file. A search with latencies refuses a file that
    // has none.
    assert_ok(create(&b, CONFIG("")));
    assert_false(msc_hash_equal(first, identity_of(&b)));
    remove(path);
    assert_ok(create(&b, CONFIG("")));
    close_env(&b);
    assert_int_equal(create(&b, CONFIG(LATENCY)), MSC_E_STATE);
    assert_message("does not belong to this configuration: the file lacks the table of latencies");
    remove(path);
    b.host.parameters_required = true;
    assert_int_equal(create(&b, CONFIG(LATENCY)), MSC_E_STATE);
    assert_message("a.params is missing: it contains this record's latencies");
    b.host.parameters_required = false;
    char other[sizeof PROFILES + 8];
    strcpy(other, PROFILES);
    strstr(other, "\"us\":331")[6] = '2';
    answer_with(other);
    assert_ok(create(&b, CONFIG(LATENCY)));
    assert_false(msc_hash_equal(first, identity_of(&b)));
    close_bench(&b);
}

static void test_env_quantize_latency__of_own_kernels(void **state) {
    (void)state;
    static const char *const configs[] = {
        CONFIG(LATENCY),
        "{\"target\":\"generic\",\"choices\":[{\"bits\":8},{\"float\":true}]" LATENCY "}",
        "{\"target\":\"openvino\",\"choices\":[{\"bits\":8},{\"float\":true}]" LATENCY "}",
    };
    setenv("MSCGYM_RUNTIME", "/no/such/program", 1);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct bench b;
        open_bench(&b, configs[i]);
        const struct msc_space *space = msc_env_space(b.env);
        const struct msc_cost *cost = msc_space_find_cost(space, "latency_us");
        cJSON *header = cJSON_CreateObject();
        assert_ok(msc_env_describe(b.env, header));
        const char *of = cJSON_GetObjectItem(header, "latency_of")->valuestring;
        assert_non_null(strstr(of, "mscgym's cpu kernels"));
        cJSON_Delete(header);
        assert_true(msc_cost_value(cost, space->baselines[0].choices) > 0);
        assert_true(msc_cost_value(cost, space->baselines[1].choices) > 0);
        close_bench(&b);
    }
}

// ---- Sites that disappear once lengths are known ----------------------------------------------

static int32_t add(struct msc_graph *g, enum msc_op op, const char *name, int32_t n_inputs,
                   const int32_t inputs[], const struct msc_attr *attr, int32_t weight) {
    const struct msc_weight_spec w = {"weight", weight};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, g,
                                  &(struct msc_joint_spec){.op = op,
                                                           .name = name,
                                                           .n_inputs = n_inputs,
                                                           .inputs = inputs,
                                                           .n_weights = weight != MSC_NO_ID,
                                                           .weights = &w,
                                                           .n_attrs = attr != NULL,
                                                           .attrs = attr}));
    return msc_graph_joint(g, joint)->outputs[0];
}

static int32_t add_weight(struct msc_graph *g, const char *name, uint64_t seed) {
    struct msc_array *a = quantize_array(2, (const int64_t[]){3, 2}, seed);
    int32_t tensor;
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, "OI", a));
    msc_array_release(a);
    return tensor;
}

// The sum of two parts: a linear layer of the image's channel means, and the image's squared height
// plus its squared width.
static struct msc_graph *create_graph(void) {
    static const struct msc_attr start = {"start", "2"}, dtype = {"dtype", "float32"},
                                 row = {"shape", "1,2"}, column = {"shape", "2,1"};
    const int64_t dims[4] = {-1, 2, 6, 6};
    int32_t prims[4] = {0, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID};
    struct msc_graph *g;
    int32_t x, y[2], factors[2];
    assert_ok(msc_graph_create(&g, "lengths"));
    assert_ok(msc_graph_add_symbol(&prims[0], g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, g, "x", "image", MSC_DTYPE_F32, "NCHW", 4, dims, prims));
    y[0] = add(g, MSC_OP_GLOBAL_AVG_POOL, "pool", 1, &x, NULL, MSC_NO_ID);
    y[0] = add(g, MSC_OP_FLATTEN, "flat", 1, y, NULL, MSC_NO_ID);
    y[0] = add(g, MSC_OP_LINEAR, "of_image", 1, y, NULL, add_weight(g, "a.w", 1));
    y[1] = add(g, MSC_OP_SHAPE_OF, "lengths", 1, &x, &start, MSC_NO_ID);
    y[1] = add(g, MSC_OP_CAST, "floats", 1, &y[1], &dtype, MSC_NO_ID);
    factors[0] = add(g, MSC_OP_RESHAPE, "row", 1, &y[1], &row, MSC_NO_ID);
    factors[1] = add(g, MSC_OP_RESHAPE, "column", 1, &y[1], &column, MSC_NO_ID);
    y[1] = add(g, MSC_OP_MATMUL, "of_lengths", 2, factors, NULL, MSC_NO_ID);
    y[0] = add(g, MSC_OP_ADD, "sum", 2, y, NULL, MSC_NO_ID);
    assert_ok(msc_graph_set_outputs(g, 1, y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static void test_env_quantize_latency__without_constants(void **state) {
    (void)state;
    struct bench b;
    setenv("MSCGYM_RUNTIME", "/no/such/program", 1);
    prepare_bench_of(&b, create_graph(), "generic");
    assert_ok(create(&b, "{\"target\":\"generic\",\"choices\":[{\"bits\":8},"
                         "{\"float\":true}]" LATENCY "}"));
    const struct msc_space *space = msc_env_space(b.env);
    const struct msc_cost *cost = msc_space_find_cost(space, "latency_us");
    assert_int_equal(space->n_tasks, 2);
    assert_true(msc_cost_value(cost, space->baselines[0].choices) > 0);
    close_bench(&b);
}

static void test_env_quantize_latency__refuses(void **state) {
    (void)state;
    static const struct {
        const char *profiles, *config, *message;
        enum msc_status status;
    } cases[] = {
        {PROFILES, "{\"choices\":[{\"bits\":16},{\"float\":true}]" LATENCY "}",
         "latency_us needs a choice of at most 8 bits", MSC_E_INVALID},
        {"{\"models\":[]}", CONFIG(LATENCY), "answer: 0 models, expected 5", MSC_E_FORMAT},
        {"{\"error\":\"1.onnx: too new\"}", CONFIG(LATENCY),
         "mscgym-runtime, profile: it reported: 1.onnx: too new", MSC_E_STATE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        answer_with(cases[i].profiles);
        prepare_bench(&b, 1, 4);
        assert_int_equal(create(&b, cases[i].config), cases[i].status);
        assert_message(cases[i].message);
        close_bench(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__is_the_sum_over_groups, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__begins_with_the_quickest, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__only_where_it_is_asked_for,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__of_own_kernels, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__without_constants, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_env_quantize_latency__refuses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
