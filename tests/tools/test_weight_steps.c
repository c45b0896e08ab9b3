// Weight scales are widened if a bias would not fit int32 in steps of the old scale. Expected
// scales are worked out by hand.
#include "tools/weight_steps.h"

#include "quantize_case.h"

#include <math.h>

enum { ROWS = 2, COLUMNS = 2 };

static const float w[ROWS * COLUMNS] = {1, 1, 1, 1}, b[ROWS] = {-0x1p20f, 4};

static double half(const void *payload, int32_t joint) {
    (void)payload;
    (void)joint;
    return 0.5;
}

static double none(const void *payload, int32_t joint) {
    (void)payload;
    (void)joint;
    return 0;
}

// Widens the scales of w in a graph, and destroys the graph. Activation scales come from
// `scale_of`.
static void widen(struct msc_quant *out, const struct msc_quant *quant, struct msc_graph *g,
                  const char *target, double (*scale_of)(const void *, int32_t)) {
    const struct msc_site_scheme scheme = {.target = msc_target_find(target)};
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, &scheme));
    const struct msc_weight_steps beside = {.graph = g,
                                            .sites = &sites,
                                            .site = msc_sites_find_name(&sites, "w"),
                                            .scale_of = scale_of};
    assert_int_not_equal(beside.site, MSC_NO_ID);
    assert_ok(msc_weight_steps_widen(out, quant, &beside));
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

static struct msc_quant by_rows(const float scales[ROWS], const int32_t zero_points[ROWS]) {
    return (struct msc_quant){.bits = 8,
                              .low = -128,
                              .high = 127,
                              .axis = 0,
                              .n = ROWS,
                              .scales = scales,
                              .zero_points = zero_points};
}

// A bias of 2^20 is 2^30 steps of 0.5 * 2^-9. So the scale 2^-11 is multiplied by 4, and the
// integers are divided by 4 and rounded to the nearest. A bias of 4 fits the scale 2^-11 unchanged.
static void test_tools_weight_steps__of_a_bias(void **state) {
    static const float scales[ROWS] = {0x1p-11f, 0x1p-11f};
    static const int32_t zero_points[ROWS] = {8, 8};
    static const int8_t integers[ROWS * COLUMNS] = {100, -7, 100, -7};
    struct msc_quant quant = by_rows(scales, zero_points), wider;
    struct msc_array *chosen;
    (void)state;
    assert_ok(msc_array_create_from(&chosen, MSC_DTYPE_I8, 4,
                                    (const int64_t[]){ROWS, COLUMNS, 1, 1}, integers));
    quant.integers = chosen;
    widen(&wider, &quant, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime", half);
    assert_int_equal(wider.n, ROWS);
    assert_true(wider.scales[0] == 0x1p-9f && wider.scales[1] == 0x1p-11f);
    assert_int_equal(wider.zero_points[0], 2);
    assert_int_equal(wider.zero_points[1], 8);
    static const int8_t expected[ROWS * COLUMNS] = {25, -2, 100, -7};
    assert_memory_equal(msc_array_data(wider.integers), expected, sizeof expected);
    assert_false(msc_hash_equal(wider.hash, quant.hash));
    msc_quant_finish(&wider);
    msc_array_release(chosen);
}

// Shifts are added to the bias: 2^20 - 2^20 for the first channel, 4 + 2^21 - 4 for the second.
static void test_tools_weight_steps__of_shifts(void **state) {
    static const float scales[ROWS] = {0x1p-11f, 0x1p-11f}, by[ROWS] = {0x1p20f, 0x1p21f - 4};
    static const int32_t zero_points[ROWS] = {0};
    struct msc_quant quant = by_rows(scales, zero_points), wider;
    struct msc_array *shifts;
    (void)state;
    assert_ok(msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, (const int64_t[]){ROWS}, by));
    quant.shifts = shifts;
    widen(&wider, &quant, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime", half);
    assert_int_equal(wider.n, ROWS);
    assert_true(wider.scales[0] == 0x1p-11f && wider.scales[1] == 0x1p-8f);
    assert_ptr_equal(wider.shifts, shifts);
    msc_quant_finish(&wider);
    msc_array_release(shifts);
}

// A constant added after the convolution counts, too: 2^19 / 0.5 together with a bias of 2^20 is
// 2^30 steps of 0.5 * 2^-8.
static void test_tools_weight_steps__of_a_tail(void **state) {
    static const float scales[ROWS] = {0x1p-11f, 0x1p-11f};
    static const int32_t zero_points[ROWS] = {0};
    const struct msc_quant quant = by_rows(scales, zero_points);
    struct msc_quant wider;
    (void)state;
    widen(&wider, &quant, quantize_make_sum(w, b, 0.5f, -0x1p19f), "onnxruntime", half);
    assert_int_equal(wider.n, ROWS);
    assert_true(wider.scales[0] == 0x1p-8f);
    assert_true(fabsf(wider.scales[1] - 0x1p-9f) < 0x1p-20f);
    msc_quant_finish(&wider);
}

// A scale does not change if it is wide enough, if the bias is added as floats, or if the
// activation is not quantised. The scales of weights with groups do not change either, because such
// weights are multiplied as floats.
static void test_tools_weight_steps__stay(void **state) {
    static const float narrow[ROWS] = {0x1p-11f, 0x1p-11f}, wide[ROWS] = {0x1p-9f, 0x1p-27f};
    static const int32_t zero_points[ROWS] = {0};
    struct msc_quant found, groups = by_rows(narrow, zero_points);
    const struct msc_quant of_wide = by_rows(wide, zero_points);
    (void)state;
    widen(&found, &of_wide, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime", half);
    assert_int_equal(found.n, 0);
    widen(&found, &groups, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "openvino", half);
    assert_int_equal(found.n, 0);
    widen(&found, &groups, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime", none);
    assert_int_equal(found.n, 0);
    groups.group_size = groups.group_axes = 1;
    widen(&found, &groups, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), "onnxruntime", half);
    assert_int_equal(found.n, 0);
    msc_quant_finish(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_weight_steps__of_a_bias),
        cmocka_unit_test(test_tools_weight_steps__of_shifts),
        cmocka_unit_test(test_tools_weight_steps__of_a_tail),
        cmocka_unit_test(test_tools_weight_steps__stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
