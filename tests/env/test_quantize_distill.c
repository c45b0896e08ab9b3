// The distillation stage by itself: repaired weights must lower the loss, and biases must still fit
// int32.
#include "env/quantize/distill.h"

#include "tests/env/quantize_bench.h"

// Of all sites that onnxruntime requantises, only the input (8 bits) and w (4 bits) are quantised.
#define CONFIG                                                                                     \
    "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"include\":[\"x:0\",\"w\"],"                   \
    "\"fix\":{\"w\":\"4\"},\"choices\":[{\"bits\":8},{\"bits\":4}]}"

static double scale_of(const struct msc_strategy *strategy, const struct msc_graph *g,
                       const char *name) {
    const struct msc_site_scheme scheme = msc_strategy_scheme(strategy);
    const struct msc_edit *edits[16] = {NULL};
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, &scheme));
    assert_in_range(sites.n_slots, 1, 16);
    assert_ok(msc_strategy_apply(strategy, g, &sites, edits));
    int32_t site = msc_sites_find_name(&sites, name);
    assert_int_not_equal(site, MSC_NO_ID);
    double scale = (double)msc_edit_quant(edits[sites.sites[site].slots[0]])->scales[0];
    msc_sites_finish(&sites);
    return scale;
}

// A channel with almost no weight has a bias of 1000. The scales make this bias at most 2^30 steps
// of the channel's sums, so it fits int32 and is kept. The weights of the other channel, 0.125
// times -8 and 3, are improved.
static void test_env_quantize_distill__wide_biases(void **state) {
    static const float w[] = {1e-20f, 0, -1, 0.375f}, b[] = {1000, 0};
    static const uint32_t choices[] = {0};
    const struct msc_quantize_distill_options o = {
        .held_back = 0.2, .n_ridges = 2, .ridges = {0.5, 0.1}};
    struct msc_quantize_distilled d;
    struct bench bench;
    (void)state;
    prepare_bench_of(&bench, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime");
    assert_ok(create(&bench, CONFIG));
    assert_int_equal(msc_env_space(bench.env)->n_tasks, 1);
    assert_ok(msc_quantize_distill(&d, bench.env, choices, &o));
    double step = scale_of(d.strategy, bench.c.g, "x:0") * scale_of(d.strategy, bench.c.g, "w");
    assert_true(step * 0x1p30 >= 1000 * (1 - 1e-6));
    assert_int_equal(d.n_improved, 1);
    assert_string_equal(d.by, "outputs");
    assert_true(d.loss_after < d.loss_before);
    msc_quantize_distilled_finish(&d);
    close_bench(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_distill__wide_biases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
