// Every allocation of each scenario fails once: the n-th call returns NULL for n = 1, 2, ...
// until the scenario succeeds. Each failure must return MSC_E_NOMEM and leave nothing allocated.
// The linker redirects the library's allocation functions to this file.
#include "tests/graph/graph_samples.h"

#include "data/npy.h"
#include "graph/builder_internal.h"
#include "graph/rules/rules.h"
#include "graph/site.h"
#include "graph/tflite/tflite.h"
#include "tests/short_memory.h"

// Input of the scenarios, made before allocations start to fail.
static struct msc_graph *sample;
static struct msc_str sample_json, sample_text;
static struct msc_array_list sample_weights;

// Enough relu joints for every table to grow.
static enum msc_status add_chain(struct msc_graph *g) {
    int32_t symbol, x, joint;
    MSC_TRY(msc_graph_add_symbol(&symbol, g, "n"));
    MSC_TRY(msc_graph_add_symbolic_input(&x, g, "x", NULL, MSC_DTYPE_F32, "NC", 2, DIMS(-1, 3),
                                         IDS(symbol, -1)));
    for (int i = 0; i < 70; i++) {
        struct msc_joint_spec spec = {.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &x};
        MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
        x = msc_graph_joint(g, joint)->outputs[0];
    }
    MSC_TRY(msc_graph_set_outputs(g, 1, &x));
    return msc_graph_finalize(g);
}

static enum msc_status build(void) {
    struct msc_graph *g;
    MSC_TRY(msc_graph_create(&g, "chain"));
    enum msc_status status = add_chain(g);
    msc_graph_destroy(g);
    return status;
}

static enum msc_status clone(void) {
    struct msc_graph *g;
    MSC_TRY(msc_graph_clone(&g, sample));
    msc_graph_destroy(g);
    return MSC_OK;
}

static enum msc_status write_forms(void) {
    struct msc_str text = {0};
    msc_graph_print(sample, &text);
    msc_graph_write_json(sample, &text);
    msc_graph_write_prototxt(sample, &text);
    enum msc_status status = msc_str_status(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status find_sites(void) {
    struct msc_sites sites;
    MSC_TRY(msc_sites_find(&sites, sample, &(struct msc_site_scheme){.by_use = true}));
    msc_sites_finish(&sites);
    return MSC_OK;
}

static enum msc_status plan_tflite(void) {
    return msc_tflite_check(sample, "sample.tflite");
}

static enum msc_status read_json(void) {
    struct msc_graph *g;
    MSC_TRY(
        msc_graph_read_json(&g, sample_json.data, sample_json.length, "f", &sample_weights, NULL));
    msc_graph_destroy(g);
    return MSC_OK;
}

static enum msc_status read_text(void) {
    struct msc_graph *g;
    MSC_TRY(
        msc_graph_read_text(&g, sample_text.data, sample_text.length, "f", &sample_weights, NULL));
    msc_graph_destroy(g);
    return MSC_OK;
}

// Applies a rule that is right, and one that is refused, with the inputs that show it.
static enum msc_status apply_rules(void) {
    static const char network[] = "g <OUTPUTS: y> ID x OUT: x<N,4|float32> OPTYPE: input\n"
                                  "ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: negative\n"
                                  "ID y IN: b OPTYPE: clip ATTRS: min=0 max=6";
    static const char text[] =
        "rule right { match { ID a IN: x OPTYPE: negative ID y IN: a OPTYPE: negative }\n"
        "where { near(sqrt(16), 4, 1e-3), shape(x) == shape(y) } replace { y = x } }\n"
        "rule wrong { match { ID y IN: x OPTYPE: clip ATTRS: min=$low max=$high }\n"
        "replace { ID r IN: x,\"$($low + 1)\" OPTYPE: maximum\n"
        "ID y IN: r OPTYPE: clip ATTRS: min=$low max=\"$($high + 1)\" } }";
    struct msc_rules *rules = NULL;
    struct msc_graph *g = NULL;
    struct msc_array_list example = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_graph_read_text(&g, network, strlen(network), "g", NULL, NULL));
    MSC_TRY_OUT(msc_rules_read(&rules, text, strlen(text), "r"));
    status =
        msc_rules_apply(g, NULL, rules, &(struct msc_rules_options){.counterexample = &example});
    assert_int_not_equal(status, MSC_OK);
    status = status == MSC_E_INVALID ? MSC_OK : status;
out:
    msc_array_list_finish(&example);
    msc_rules_destroy(rules);
    msc_graph_destroy(g);
    return status;
}

// Adds joints whose names are so long that each needs a new block of the builder's arena. A joint
// must be added under its full name or not at all.
static enum msc_status add_named(struct msc_builder *b) {
    static char names[4][3001];
    int32_t x;
    struct msc_value *values[5];
    MSC_TRY(msc_graph_add_input(&x, b->graph, "x", NULL, MSC_DTYPE_F32, "NC", 2, DIMS(1, 3)));
    MSC_TRY(msc_builder_activation(&values[0], b, "x", x));
    for (int i = 0; i < 4; i++) {
        memset(names[i], 'a' + i, sizeof(names[i]) - 1);
        struct msc_builder_joint relu = {.op = MSC_OP_RELU,
                                         .name = names[i],
                                         .n_operands = 1,
                                         .operands = &values[i],
                                         .n_outputs = 1,
                                         .aliases = (const char *[]){""}};
        MSC_TRY(msc_builder_add(&values[i + 1], b, &relu));
        assert_true(msc_graph__live_joint(b->graph, names[i]) != MSC_NO_ID);
    }
    return MSC_OK;
}

static enum msc_status build_named(void) {
    struct msc_graph *g;
    MSC_TRY(msc_graph_create(&g, "named"));
    struct msc_builder b = {.graph = g};
    enum msc_status status = add_named(&b);
    msc_builder_finish(&b);
    msc_graph_destroy(g);
    return status;
}

static void test_graph_memory__names(void **state) {
    (void)state;
    run_failing(build_named, 1);
}

static void test_graph_memory__build(void **state) {
    (void)state;
    run_failing(build, 1);
}

static void test_graph_memory__clone(void **state) {
    (void)state;
    run_failing(clone, 1);
}

static void test_graph_memory__forms(void **state) {
    (void)state;
    run_failing(write_forms, 1);
}

static void test_graph_memory__sites(void **state) {
    (void)state;
    run_failing(find_sites, 1);
}

static void test_graph_memory__tflite(void **state) {
    (void)state;
    run_failing(plan_tflite, 3);
}

static void test_graph_memory__json(void **state) {
    (void)state;
    run_failing(read_json, 1);
}

static void test_graph_memory__text(void **state) {
    (void)state;
    run_failing(read_text, 1);
}

static void test_graph_memory__rules(void **state) {
    (void)state;
    run_failing(apply_rules, 100);
}

static int set_up(void **state) {
    (void)state;
    sample = make_branches();
    msc_graph_write_json(sample, &sample_json);
    msc_graph_print(sample, &sample_text);
    const struct msc_tensor *w =
        msc_graph_tensor(sample, msc_graph_find_tensor(sample, "shared.weight"));
    return msc_array_list_add(&sample_weights, w->name, w->data) == MSC_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    msc_graph_destroy(sample);
    msc_str_finish(&sample_json);
    msc_str_finish(&sample_text);
    msc_array_list_finish(&sample_weights);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_memory__build),  cmocka_unit_test(test_graph_memory__names),
        cmocka_unit_test(test_graph_memory__clone),  cmocka_unit_test(test_graph_memory__forms),
        cmocka_unit_test(test_graph_memory__sites),  cmocka_unit_test(test_graph_memory__json),
        cmocka_unit_test(test_graph_memory__text),   cmocka_unit_test(test_graph_memory__rules),
        cmocka_unit_test(test_graph_memory__tflite),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
