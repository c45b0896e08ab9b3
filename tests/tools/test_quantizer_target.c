// Requirements of targets on scales and rounded biases. Expected values are worked out by hand.
#include "quantize_case.h"

#include "graph/edit.h"
#include "tools/bias_edits.h"

#include <math.h>

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

enum { CHANNELS = 2 };

static const struct msc_quant *quant_of(const struct msc_quantizer *q, const char *name,
                                        int32_t choice) {
    int32_t site = msc_sites_find_name(msc_quantizer_sites(q), name);
    assert_int_not_equal(site, MSC_NO_ID);
    return msc_quantizer_quant(q, site, choice);
}

static void open_net(struct quantize_case *c, struct msc_quantizer **q, struct msc_graph *g,
                     const char *config) {
    quantize_case_open_graph(c, g, strstr(config, "tflite") ? "tflite" : "onnxruntime");
    assert_ok(quantize_create(q, c->g, config));
    assert_ok(msc_quantizer_calibrate(*q, c->ev, NULL, NULL));
}

static void open_quantizer(struct quantize_case *c, struct msc_quantizer **q, const float w[4],
                           const float b[CHANNELS], const char *config) {
    open_net(c, q, quantize_make_activation(MSC_OP_HARD_SWISH, w, b), config);
}

// Hard swish is 0 below -3. So the range of its input starts at -3, and 3 is a whole number of
// steps. Neither rule applies to the range of the hard swish's output. Values below -3 do not widen
// the step.
static void test_tools_quantizer_target__hard_swish(void **state) {
    static const float w[] = {10, 0, 0, 10}, b[] = {0, 0};
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    open_quantizer(&c, &q, w, b,
                   "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8},"
                   "{\"bits\":8,\"observer\":\"mse\"},{\"bits\":6,\"observer\":\"percentile\"}]}");
    double most = 0;
    const struct msc_array *x = quantize_array(4, DIMS(QUANTIZE_SAMPLES, 2, 6, 6), 11);
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        most = fmax(most, 10 * msc_array_get_double(x, i));
    }
    msc_array_release((struct msc_array *)x);
    for (int32_t choice = 0; choice < 3; choice++) {
        const struct msc_quant *conv = quant_of(q, "conv:0", choice);
        double steps = 3 / (double)conv->scales[0];
        assert_true(fabs(steps - rint(steps)) < 1e-4);
        assert_int_equal(conv->zero_points[0], (int)rint(steps));
    }
    const struct msc_quant *conv = quant_of(q, "conv:0", 0);
    assert_int_equal(conv->zero_points[0], (int)(255 * 3 / (3 + most)));
    assert_int_not_equal(quant_of(q, "act:0", 0)->zero_points[0],
                         (int)rint(3 / (double)quant_of(q, "act:0", 0)->scales[0]));
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// TensorFlow Lite's kernels of some activation functions have a scale of their own: 1/256 for
// results from 0 to 1, 1/128 for those from -1 to 1 (its 8-bit specification). Activations here are
// uint8, so the zero points of int8 move by 128. Other targets and kernels take any scale.
static void test_tools_quantizer_target__fixed_scales(void **state) {
    static const float w[] = {1, 0, 0, 1}, b[] = {0, 0};
    static const struct {
        enum msc_op op;
        const char *config;
        float scale; // 0: any
        int32_t zero_point;
    } rows[] = {
        {MSC_OP_SIGMOID, "{\"target\":\"tflite\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}",
         1.0f / 256, 0},
        {MSC_OP_TANH, "{\"target\":\"tflite\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}",
         1.0f / 128, 128},
        {MSC_OP_HARD_SWISH, "{\"target\":\"tflite\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}",
         0, 0},
        {MSC_OP_SIGMOID,
         "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct quantize_case c;
        struct msc_quantizer *q;
        open_net(&c, &q, quantize_make_activation(rows[i].op, w, b), rows[i].config);
        const struct msc_quant *quant = quant_of(q, "act:0", 0);
        bool is_fixed = quant->scales[0] == 1.0f / 256 || quant->scales[0] == 1.0f / 128;
        assert_int_equal(is_fixed, rows[i].scale > 0);
        if (is_fixed) {
            assert_true(quant->scales[0] == rows[i].scale);
            assert_int_equal(quant->zero_points[0], rows[i].zero_point);
        }
        msc_quantizer_destroy(q);
        quantize_case_close(&c);
    }
}

// A channel has almost no weight and a bias of 1000. The step of the channel's sums is at least
// 1000 / 2^30, so that the bias fits int32. The other channel's scale does not change.
static void test_tools_quantizer_target__wide_biases(void **state) {
    static const float w[] = {1e-20f, 0, 1, 0.5f}, b[] = {-1000, 1000};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_bias_edits *bias_edits;
    const struct msc_edit *edits[16] = {NULL};
    (void)state;
    open_quantizer(&c, &q, w, b,
                   "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}");
    const struct msc_quant *x = quant_of(q, "x:0", 0), *weight = quant_of(q, "w", 0);
    assert_true(weight->scales[1] == 1.0f / 127);
    double step = (double)x->scales[0] * (double)weight->scales[0];
    assert_true(fabs(step * 0x1p30 / 1000 - 1) < 1e-6);
    const struct msc_sites *sites = msc_quantizer_sites(q);
    assert_in_range(sites->n_slots, 1, 16);
    for (int32_t i = 0; i < sites->n_sites; i++) {
        for (int32_t k = 0; k < sites->sites[i].n_slots; k++) {
            edits[sites->sites[i].slots[k]] = msc_quantizer_edit(q, i, 0);
        }
    }
    assert_ok(msc_bias_edits_create(&bias_edits, c.g, sites));
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    const struct msc_bias_rounding *r = msc_edit_rounding(edits[sites->n_site_slots]);
    assert_non_null(r);
    for (int64_t k = 0; k < CHANNELS; k++) {
        double rounded = msc_bias_round(b[k], msc_bias_step(r, k)) * (double)msc_bias_step(r, k);
        assert_true(fabs(rounded - (double)b[k]) < 0.1);
    }
    msc_bias_edits_destroy(bias_edits);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// If the runtime merges an added constant into the bias (3 / 0.5), the constant is rounded with the
// bias. Then the loss equals the runtime's loss. If the sum stays float or would overflow, the
// constant is not rounded.
static void test_tools_quantizer_target__added_behind(void **state) {
    static const float w[] = {1, 0.5f, -1, 0.25f}, b[] = {3, -2}, small[] = {1e-12f, 1e-12f};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_bias_edits *bias_edits;
    const struct msc_edit *edits[16] = {NULL};
    (void)state;
    open_net(&c, &q, quantize_make_sum(w, b, 0.5f, 3),
             "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}");
    const struct msc_sites *sites = msc_quantizer_sites(q);
    int32_t sum = msc_sites_find_name(sites, "more:0"), weight = msc_sites_find_name(sites, "w");
    assert_true(sum != MSC_NO_ID && weight != MSC_NO_ID);
    assert_in_range(sites->n_slots, 1, 16);
    for (int32_t i = 0; i < sites->n_sites; i++) {
        for (int32_t k = 0; k < sites->sites[i].n_slots; k++) {
            edits[sites->sites[i].slots[k]] = msc_quantizer_edit(q, i, 0);
        }
    }
    const struct msc_edit **bias = &edits[sites->n_site_slots];
    assert_ok(msc_bias_edits_create(&bias_edits, c.g, sites));
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    const struct msc_bias_rounding *r = msc_edit_rounding(*bias);
    assert_non_null(r);
    assert_true(r->shift == 6);
    for (int64_t k = 0; k < CHANNELS; k++) {
        double step = (double)msc_bias_step(r, k), sum_of = (double)b[k] + 6;
        assert_true(fabs(msc_bias_round_channel(r, b[k], k) * step - sum_of) <= 0.5001 * step);
    }
    struct msc_quant tiny = *quant_of(q, "w", 0);
    tiny.scales = small;
    const struct msc_edit narrow = msc_edit_quantize(tiny),
                          *wide = msc_quantizer_edit(q, weight, 0);
    edits[sites->sites[weight].slots[0]] = &narrow;
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    assert_true(msc_edit_rounding(*bias)->shift == 0);
    edits[sites->sites[weight].slots[0]] = wide;
    for (int32_t i = 0; i < sites->sites[sum].n_slots; i++) {
        edits[sites->sites[sum].slots[i]] = NULL;
    }
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    assert_true(msc_edit_rounding(*bias)->shift == 0);
    msc_bias_edits_destroy(bias_edits);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// Shifts are added before the bias is rounded to int32. If the edits of activation and weight do
// not change, the bias keeps its edit.
static void test_tools_quantizer_target__shifted_biases(void **state) {
    static const float w[] = {1, 0.5f, -1, 0.25f}, b[] = {3, -2}, by[] = {0.5f, -0.25f};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_bias_edits *bias_edits;
    struct msc_array *shifts, *found;
    const int64_t n = 2;
    const struct msc_edit *edits[16] = {NULL}, *first;
    (void)state;
    open_quantizer(&c, &q, w, b,
                   "{\"target\":\"onnxruntime\",\"sites\":\"all\",\"choices\":[{\"bits\":8}]}");
    const struct msc_sites *sites = msc_quantizer_sites(q);
    int32_t weight = sites->sites[msc_sites_find_name(sites, "w")].slots[0];
    assert_in_range(sites->n_slots, 1, 16);
    assert_ok(msc_array_create_from(&shifts, MSC_DTYPE_F32, 1, &n, by));
    struct msc_quant quant = *quant_of(q, "w", 0);
    quant.shifts = shifts;
    struct msc_edit shifted = msc_edit_quantize(quant);
    assert_false(msc_hash_equal(shifted.hash, quant_of(q, "w", 0)->hash));
    edits[weight] = &shifted;
    assert_ok(msc_bias_edits_create(&bias_edits, c.g, sites));
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    first = edits[sites->n_site_slots];
    assert_int_equal(first->kind, MSC_EDIT_REPLACE);
    assert_null(first->next); // the activation is float, so the sum is float, too
    assert_true(((const float *)msc_array_data(first->elements))[0] == 3.5f);
    assert_true(((const float *)msc_array_data(first->elements))[1] == -2.25f);
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    assert_ptr_equal(edits[sites->n_site_slots], first);
    for (int32_t k = 0; k < sites->n_sites; k++) {
        edits[sites->sites[k].slots[0]] =
            k == msc_sites_find_name(sites, "w") ? &shifted : msc_quantizer_edit(q, k, 0);
    }
    assert_ok(msc_bias_edits_fill(bias_edits, edits));
    const struct msc_edit *both = edits[sites->n_site_slots];
    const struct msc_bias_rounding *r = msc_edit_rounding(both);
    assert_non_null(r);
    assert_ok(msc_edit_apply(
        &found, msc_graph_tensor(c.g, sites->slots[sites->n_site_slots].tensor)->data, both));
    for (int64_t k = 0; k < n; k++) {
        float step = msc_bias_step(r, k);
        assert_true(((const float *)msc_array_data(found))[k] ==
                    (float)rint((double)((b[k] + by[k]) / step)) * step);
    }
    msc_array_release(found);
    msc_bias_edits_destroy(bias_edits);
    msc_array_release(shifts);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_quantizer_target__hard_swish),
        cmocka_unit_test(test_tools_quantizer_target__fixed_scales),
        cmocka_unit_test(test_tools_quantizer_target__wide_biases),
        cmocka_unit_test(test_tools_quantizer_target__added_behind),
        cmocka_unit_test(test_tools_quantizer_target__shifted_biases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
