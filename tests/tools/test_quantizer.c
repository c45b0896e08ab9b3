// The quantizer: which sites it includes, calibration and its parameters, and saving and loading.
// Expected parameters come from tests/env/make_quantize_expected.py and numpy.
#include "quantize_case.h"

#include "base/alloc.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>

#define CHOICES "{\"choices\":[{\"bits\":8},{\"bits\":4},{\"bits\":3,\"observer\":\"mse\"}]}"

// ---- Sites ------------------------------------------------------------------------------------

static int32_t site_of(const struct msc_quantizer *q, const char *name) {
    int32_t site = msc_sites_find_name(msc_quantizer_sites(q), name);
    assert_int_not_equal(site, MSC_NO_ID);
    return site;
}

static void test_tools_quantizer__include_exclude_fix(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    quantize_case_open(&c, 1, 4);
    // "image" is the alias of x:0.
    assert_ok(quantize_create(&q, c.g,
                              "{\"choices\":[{\"bits\":8},{\"bits\":4}],\"include\":[\"conv*\","
                              "\"image\",\"head.w\"],\"exclude\":[\"conv2.*\"],"
                              "\"fix\":{\"*.w\":\"float\",\"conv1.w\":\"4\"}}"));
    static const struct {
        const char *site;
        bool is_included;
        int32_t fixed;
    } rows[] = {{"x:0", true, MSC_NO_ID},     {"conv1.w", true, 1},
                {"relu:0", false, MSC_NO_ID}, {"conv2.w", false, MSC_FIXED_FLOAT},
                {"flat:0", false, MSC_NO_ID}, {"head.w", true, MSC_FIXED_FLOAT}};
    assert_int_equal(msc_quantizer_sites(q)->n_sites, 6);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t site = site_of(q, rows[i].site);
        assert_int_equal(msc_quantizer_is_included(q, site), rows[i].is_included);
        assert_int_equal(msc_quantizer_fixed_choice(q, site), rows[i].fixed);
    }
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    assert_int_equal(msc_quantizer_quant(q, site_of(q, "conv1.w"), 1)->bits, 4);
    assert_null(msc_quantizer_quant(q, site_of(q, "head.w"), MSC_FIXED_FLOAT));
    assert_null(msc_quantizer_quant(q, site_of(q, "head.w"), 0));
    assert_null(msc_quantizer_quant(q, site_of(q, "relu:0"), 0));
    msc_quantizer_destroy(q);
    // The choice {"float": true} is float, and a site may be fixed to it.
    assert_ok(quantize_create(&q, c.g,
                              "{\"choices\":[{\"bits\":8},{\"float\":true}],"
                              "\"fix\":{\"head.w\":\"float\"}}"));
    assert_int_equal(msc_quantizer_fixed_choice(q, site_of(q, "head.w")), 1);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

static void test_tools_quantizer__names_that_match_nothing(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_int_equal(quantize_create(&q, c.g, "{\"include\":[\"conv9*\"]}"), MSC_E_INVALID);
    assert_message("env.include: \"conv9*\" matches no site");
    assert_int_equal(quantize_create(&q, c.g, "{\"exclude\":[\"conv1.w\",\"w\"]}"), MSC_E_INVALID);
    assert_message("env.exclude: \"w\" matches no site");
    assert_int_equal(quantize_create(&q, c.g, "{\"fix\":{\"conv1\":\"8\"}}"), MSC_E_INVALID);
    assert_message("env.fix: \"conv1\" matches no site");
    assert_int_equal(quantize_create(&q, c.g, "{\"exclude\":[\"*\"]}"), MSC_E_INVALID);
    assert_message("no site is left");
    quantize_case_close(&c);
}

static void test_tools_quantizer__nothing_to_quantise(void **state) {
    static const int64_t dims[2] = {1, 4};
    struct msc_graph *g;
    struct msc_quantizer *q;
    int32_t x, joint;
    (void)state;
    assert_ok(msc_graph_create(&g, "bare"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "", 2, dims));
    assert_ok(msc_graph_add_joint(
        &joint, g, &(struct msc_joint_spec){.op = MSC_OP_RELU, .n_inputs = 1, .inputs = &x}));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(quantize_create(&q, g, "{}"), MSC_E_INVALID);
    assert_message("graph bare has nothing to quantise");
    msc_graph_destroy(g);
}

static void test_tools_quantizer__other_float_types(void **state) {
    static const int64_t dims[2] = {2, 2};
    struct msc_graph *g;
    struct msc_quantizer *q;
    struct msc_array *weight;
    int32_t x, w, joint;
    (void)state;
    assert_ok(msc_array_create(&weight, MSC_DTYPE_F16, 2, dims));
    assert_ok(msc_graph_create(&g, "half"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F16, "", 2, dims));
    assert_ok(msc_graph_add_weight(&w, g, "w", NULL, "OI", weight));
    assert_ok(msc_graph_add_joint(
        &joint, g,
        &(struct msc_joint_spec){.op = MSC_OP_LINEAR,
                                 .n_inputs = 1,
                                 .inputs = &x,
                                 .n_weights = 1,
                                 .weights = &(struct msc_weight_spec){"weight", w}}));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(quantize_create(&q, g, "{}"), MSC_E_UNSUPPORTED);
    assert_message("none of the 2 sites is float32 (the first is float16)");
    msc_graph_destroy(g);
    msc_array_release(weight);
}

// ---- Calibration ------------------------------------------------------------------------------

static void assert_near(double found, double expected, double relative) {
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        print_error("%.9g, expected %.9g\n", found, expected);
        fail();
    }
}

// Printed by make_quantize_expected.py.
static const struct {
    const char *site;
    int32_t choice;
    int n;
    float scales[5];
    int32_t zero_point;
} expected[] = {
    {"x:0", 0, 1, {0.0258584414f}, 131},
    {"x:0", 1, 1, {0.439593494f}, 8},
    {"x:0", 2, 1, {0.652641714f}, 4},
    {"conv1.w", 0, 4, {0.0205871109f, 0.0190718044f, 0.0134291761f, 0.015740823f}, 0},
    {"conv1.w", 1, 4, {0.37350899f, 0.346017033f, 0.243643627f, 0.285583496f}, 0},
    {"conv1.w", 2, 4, {0.701302052f, 0.655990601f, 0.537411869f, 0.650743663f}, 0},
    {"relu:0", 0, 1, {0.0610302351f}, 0},
    {"relu:0", 1, 1, {1.03751397f}, 0},
    {"relu:0", 2, 1, {1.82954478f}, 0},
    {"conv2.w", 0, 3, {0.0154084936f, 0.0177235045f, 0.0176264253f}, 0},
    {"conv2.w", 1, 3, {0.279554099f, 0.321554989f, 0.319793701f}, 0},
    {"conv2.w", 2, 3, {0.468835503f, 0.633061409f, 0.612105131f}, 0},
    {"flat:0", 0, 1, {0.103724055f}, 150},
    {"flat:0", 1, 1, {1.76330888f}, 9},
    {"flat:0", 2, 1, {3.4010644f}, 4},
    {"head.w",
     0,
     5,
     {0.00650985586f, 0.00255218265f, 0.0103408936f, 0.0166205466f, 0.00782475527f},
     0},
    {"head.w", 1, 5, {0.118107386f, 0.0463038869f, 0.187613353f, 0.301544189f, 0.141963407f}, 0},
    {"head.w", 2, 5, {0.260512918f, 0.108042397f, 0.434344441f, 0.703603089f, 0.310544968f}, 0},
};

static void check_scales(const struct msc_quantizer *q) {
    static const struct {
        int bits, activation_high, weight_high;
    } choices[3] = {{8, 255, 127}, {4, 15, 7}, {3, 7, 3}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        int32_t site = site_of(q, expected[i].site);
        bool is_weight = msc_quantizer_sites(q)->sites[site].kind == MSC_SITE_WEIGHT;
        const struct msc_quant *quant = msc_quantizer_quant(q, site, expected[i].choice);
        int high = is_weight ? choices[expected[i].choice].weight_high
                             : choices[expected[i].choice].activation_high;
        assert_non_null(quant);
        assert_int_equal(quant->bits, choices[expected[i].choice].bits);
        assert_int_equal(quant->high, high);
        assert_int_equal(quant->low, is_weight ? -high : 0);
        assert_int_equal(quant->axis, is_weight ? 0 : -1);
        assert_int_equal(quant->n, expected[i].n);
        for (int32_t k = 0; k < quant->n; k++) {
            assert_near((double)quant->scales[k], (double)expected[i].scales[k], 1e-6);
            assert_int_equal(quant->zero_points[k], expected[i].zero_point);
        }
    }
}

struct told {
    size_t n, done, all, n_seen, n_to_see;
};

static void tell(void *payload, enum msc_quantizer_stage stage, size_t done, size_t all) {
    struct told *t = payload;
    if (stage == MSC_STAGE_PASSES) {
        assert_true(done == t->n_seen + 1 && done <= all && t->n == 0);
        t->n_seen = done;
        t->n_to_see = all;
        return;
    }
    assert_int_equal(stage, MSC_STAGE_RANGES);
    t->n++;
    assert_true(done == t->done + 1 && done <= all);
    t->done = done;
    t->all = all;
}

static void assert_same_quants(const struct msc_quantizer *a, const struct msc_quantizer *b) {
    for (int32_t s = 0; s < msc_quantizer_sites(a)->n_sites; s++) {
        for (int32_t c = 0; c < (int32_t)msc_quantizer_n_choices(a); c++) {
            const struct msc_quant *x = msc_quantizer_quant(a, s, c);
            const struct msc_quant *y = msc_quantizer_quant(b, s, c);
            assert_int_equal(x == NULL, y == NULL);
            assert_true(!x || msc_hash_equal(x->hash, y->hash));
        }
    }
}

static void test_tools_quantizer__calibrate(void **state) {
    struct quantize_case c, other;
    struct msc_quantizer *q, *again;
    struct told told = {0};
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(q, c.ev, tell, &told));
    assert_true(told.done == told.all && told.all == 6);
    assert_true(told.n_seen == told.n_to_see && told.n_seen > 0);
    check_scales(q);
    // Two threads give the same parameters, bit by bit. With other batch sizes, the observed values
    // are the same.
    quantize_case_open(&other, 2, 4);
    assert_ok(quantize_create(&again, other.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(again, other.ev, NULL, NULL));
    assert_same_quants(q, again);
    msc_quantizer_destroy(again);
    quantize_case_close(&other);
    quantize_case_open(&other, 2, 10);
    assert_ok(quantize_create(&again, other.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(again, other.ev, NULL, NULL));
    check_scales(again);
    msc_quantizer_destroy(again);
    quantize_case_close(&other);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

static void stop_at_ranges(void *payload, enum msc_quantizer_stage stage, size_t done, size_t all) {
    (void)all;
    if (stage == MSC_STAGE_RANGES && done == 2) {
        msc_cancel_raise(payload, 2);
    }
}

// A request to stop is seen between two sites, and not only when all have their ranges.
static void test_tools_quantizer__stops(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_evaluator *ev;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_cancel cancel = {0};
    (void)state;
    quantize_case_open(&c, 1, 4);
    int32_t wanted = msc_graph_output(c.g, 0);
    o.backend = c.backend;
    o.n_threads = 1;
    o.cancel = &cancel;
    assert_ok(msc_evaluator_create(&ev, c.g, c.data, &wanted, 1, &o));
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_int_equal(msc_quantizer_observe(q, ev, stop_at_ranges, &cancel), MSC_E_CANCELLED);
    msc_quantizer_destroy(q);
    msc_evaluator_destroy(ev);
    quantize_case_close(&c);
}

// If memory is too small for all second moments at once, they are measured one by one. The
// resulting integers are the same.
static void test_tools_quantizer__rounds_in_little_memory(void **state) {
    static const char choices[] =
        "{\"choices\":[{\"bits\":4,\"observer\":\"hessian\",\"rounding\":\"gptq\"},"
        "{\"bits\":6,\"rounding\":\"descent\",\"correct\":\"affine\"}]}";
    const struct msc_quantizer_rounding least = {.memory_bytes = 1};
    struct quantize_case c;
    struct msc_quantizer *q, *other;
    (void)state;
    quantize_case_open(&c, 2, 2);
    assert_ok(quantize_create(&q, c.g, choices));
    assert_ok(quantize_create(&other, c.g, choices));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    assert_ok(msc_quantizer_observe(other, c.ev, NULL, NULL));
    assert_ok(msc_quantizer_round(other, c.ev, &least));
    const struct msc_sites *sites = msc_quantizer_sites(q);
    for (int32_t i = 0; i < 2 * sites->n_sites; i++) {
        const struct msc_quant *a = msc_quantizer_quant(q, i / 2, i % 2);
        const struct msc_quant *b = msc_quantizer_quant(other, i / 2, i % 2);
        assert_true(msc_hash_equal(a->hash, b->hash));
        assert_true((a->integers != NULL) == (sites->sites[i / 2].kind == MSC_SITE_WEIGHT));
    }
    msc_quantizer_destroy(q);
    msc_quantizer_destroy(other);
    quantize_case_close(&c);
}

// One scale for a whole weight, signed activations, scaled ranges, and one site for each use of a
// tensor instead of one for the tensor.
static void test_tools_quantizer__schemes(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g,
                              "{\"choices\":[{\"bits\":8},{\"bits\":8,\"scale\":0.5}],\"group\":"
                              "\"site\",\"weights\":{\"per_channel\":false},"
                              "\"activations\":{\"symmetric\":true}}"));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    const struct msc_quant *w = msc_quantizer_quant(q, site_of(q, "conv1.w"), 0);
    assert_int_equal(w->n, 1);
    assert_int_equal(w->axis, -1);
    assert_near((double)w->scales[0], 0.0205871109, 1e-6);
    // x spans -131 to 124 steps of 0.02586, its asymmetric scale, so -3.39 is the larger end.
    const struct msc_quant *x = msc_quantizer_quant(q, site_of(q, "x:0-c-conv1"), 0);
    assert_int_equal(x->low, -128);
    assert_int_equal(x->high, 127);
    assert_int_equal(x->zero_points[0], 0);
    assert_true(fabs((double)x->scales[0] * 127 - 131 * 0.0258584414) < 0.02);
    const struct msc_quant *half = msc_quantizer_quant(q, site_of(q, "x:0-c-conv1"), 1);
    assert_near((double)half->scales[0], (double)x->scales[0] / 2, 2e-7);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// Images normalised to [-1, 1] fall on ties of 255 steps, so the range is widened a little.
static void test_tools_quantizer__nudges_off_ties(void **state) {
    static const int64_t dims[4] = {4, 2, 6, 6};
    const double exact = 2.0 / 255;
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_array *a;
    float *x;
    (void)state;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, 4, dims));
    x = msc_array_data(a);
    for (int i = 0; i < 4 * 72; i++) {
        x[i] = (float)(i * 37 % 256) * 2 / 255 - 1;
    }
    quantize_case_open_with(&c, 1, 2, a);
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    double scale = (double)msc_quantizer_quant(q, site_of(q, "x:0"), 0)->scales[0];
    assert_true(scale > exact * 1.0005 && scale < exact * 1.015);
    int on_ties = 0;
    for (int i = 0; i < 4 * 72; i++) {
        double steps = (double)x[i] / scale;
        on_ties += fabs(steps - floor(steps) - 0.5) < 1e-3;
    }
    assert_true(on_ties <= 14);
    // With the exact range every value is on a tie.
    int before = 0;
    for (int i = 0; i < 4 * 72; i++) {
        double steps = (double)x[i] / exact;
        before += fabs(steps - floor(steps) - 0.5) < 1e-3;
    }
    assert_int_equal(before, 4 * 72);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
    msc_array_release(a);
}

// Calibrates with `value` as one element of the first sample and returns the site's scale under
// choice 0, or 0 if the site is left float.
static float scale_with(const char *site, float value, bool *is_left) {
    static const int64_t dims[4] = {2, 2, 6, 6};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_array *a = quantize_array(4, dims, 3);
    ((float *)msc_array_data(a))[5] = value;
    quantize_case_open_with(&c, 1, 2, a);
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    int32_t i = msc_sites_find_name(msc_quantizer_sites(q), site);
    const struct msc_quant *quant = msc_quantizer_quant(q, i, 0);
    float scale = quant ? quant->scales[0] : 0.0f;
    *is_left = msc_quantizer_is_left(q, i);
    assert_int_equal(msc_quantizer_is_included(q, i), !*is_left);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
    msc_array_release(a);
    return scale;
}

// NaN is ignored: only the other elements of x determine its range. A site with infinities has no
// scale and is left float.
static void test_tools_quantizer__not_finite(void **state) {
    static const int64_t dims[4] = {2, 2, 6, 6};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_array *a = quantize_array(4, dims, 3);
    bool is_left;
    float low = 0, high = 0;
    (void)state;
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        float x = ((float *)msc_array_data(a))[i];
        low = x < low && i != 5 ? x : low;
        high = x > high && i != 5 ? x : high;
    }
    assert_near(scale_with("x:0", NAN, &is_left), (high - low) / 255, 1e-6);
    assert_false(is_left);
    assert_true(scale_with("x:0", -INFINITY, &is_left) == 0 && is_left);
    // An infinite input also makes the relu's output infinite, so the relu's site is left float,
    // too.
    assert_true(scale_with("relu:0", INFINITY, &is_left) == 0 && is_left);
    assert_true(scale_with("relu:0", NAN, &is_left) > 0 && !is_left);
    quantize_case_open_with(&c, 1, 2, a);
    int32_t w = msc_graph_find_tensor(c.g, "conv2.w");
    ((float *)msc_array_data(msc_graph_tensor(c.g, w)->data))[7] = INFINITY;
    assert_ok(quantize_create(&q, c.g, "{\"exclude\":[\"flat:0\"]}"));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    assert_true(msc_quantizer_is_left(q, msc_sites_find_name(msc_quantizer_sites(q), "conv2.w")));
    assert_false(msc_quantizer_is_left(q, msc_sites_find_name(msc_quantizer_sites(q), "conv1.w")));
    // The site is still left float after saving and loading.
    struct msc_array_list list = {0};
    struct msc_quantizer *again;
    assert_ok(msc_quantizer_save(q, &list));
    assert_ok(quantize_create(&again, c.g, "{\"exclude\":[\"flat:0\"]}"));
    assert_ok(msc_quantizer_load(again, &list));
    for (int32_t i = 0; i < msc_quantizer_sites(q)->n_sites; i++) {
        assert_int_equal(msc_quantizer_is_left(q, i), msc_quantizer_is_left(again, i));
        assert_int_equal(msc_quantizer_is_included(q, i), msc_quantizer_is_included(again, i));
    }
    msc_array_list_finish(&list);
    msc_quantizer_destroy(again);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
    msc_array_release(a);
}

// ---- Saving and loading -----------------------------------------------------------------------

// Expected: each group's largest magnitude over 7, from numpy. Activations have one scale even if
// weights have groups, and none if they are left float.
static void test_tools_quantizer__groups(void **state) {
    static const float scales[] = {0.279554099f, 0.274387896f, 0.321554989f,
                                   0.172206327f, 0.319793701f, 0.109614782f};
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_array_list list = {0};
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g, "{\"choices\":[{\"bits\":4,\"group_size\":32}]}"));
    assert_string_equal(msc_quantizer_choice(q, 0)->label, "4 g32");
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    const struct msc_quant *quant = msc_quantizer_quant(q, site_of(q, "conv2.w"), 0);
    assert_int_equal(quant->n, 6);
    assert_int_equal(quant->axis, 1);
    assert_int_equal(quant->group_size, 32);
    assert_int_equal(quant->group_axes, 3);
    for (int i = 0; i < 6; i++) {
        assert_true(fabsf(quant->scales[i] - scales[i]) <= 1e-7f * scales[i]);
        assert_int_equal(quant->zero_points[i], 0);
    }
    assert_int_equal(msc_quantizer_quant(q, site_of(q, "relu:0"), 0)->n, 1);
    struct msc_hash hash = quant->hash;
    assert_ok(msc_quantizer_save(q, &list));
    msc_quantizer_destroy(q);
    assert_ok(quantize_create(&q, c.g, "{\"choices\":[{\"bits\":4,\"group_size\":32}]}"));
    assert_ok(msc_quantizer_load(q, &list));
    assert_true(msc_hash_equal(msc_quantizer_quant(q, site_of(q, "conv2.w"), 0)->hash, hash));
    msc_array_list_finish(&list);
    msc_quantizer_destroy(q);
    assert_ok(quantize_create(&q, c.g, "{\"activations\":{\"float\":true}}"));
    assert_false(msc_quantizer_is_included(q, site_of(q, "relu:0")));
    assert_true(msc_quantizer_is_included(q, site_of(q, "conv2.w")));
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// Float types have no scales: they need no observation, and nothing is saved for them.
static void test_tools_quantizer__float_types(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_array_list list = {0};
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g,
                              "{\"choices\":[{\"type\":\"float16\"},{\"bits\":16,\"type\":"
                              "\"bfloat16\"},{\"bits\":8}],\"fix\":{\"head.w\":\"bfloat16\","
                              "\"x:0\":\"float\"}}"));
    int32_t head = site_of(q, "head.w"), conv = site_of(q, "conv1.w");
    assert_int_equal(msc_quantizer_quant(q, conv, 0)->type, MSC_DTYPE_F16);
    assert_int_equal(msc_quantizer_quant(q, conv, 1)->type, MSC_DTYPE_BF16);
    assert_int_equal(msc_quantizer_quant(q, conv, 1)->bits, 16);
    assert_null(msc_quantizer_quant(q, conv, 2));
    assert_int_equal(msc_quantizer_fixed_choice(q, head), 1);
    assert_null(msc_quantizer_quant(q, site_of(q, "x:0"), 0));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    assert_int_equal(msc_quantizer_quant(q, conv, 0)->type, MSC_DTYPE_F16);
    assert_int_equal(msc_quantizer_quant(q, conv, 2)->n, 4);
    assert_ok(msc_quantizer_save(q, &list));
    assert_int_equal(list.n, 2 * 5); // scales and zero points of five sites, one choice each
    assert_ok(msc_quantizer_load(q, &list));
    msc_array_list_finish(&list);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

// Sums by several threads have other roundings. So a quantizer whose second moments are read from a
// file must not find more threads than one that measures them.
static void test_tools_quantizer__products_by_one_thread(void **state) {
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    openblas_set_num_threads(2);
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_int_equal(openblas_get_num_threads(), 1);
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
}

static void test_tools_quantizer__save_and_load(void **state) {
    struct msc_array_list list = {0};
    struct quantize_case c;
    struct msc_quantizer *q, *loaded;
    (void)state;
    quantize_case_open(&c, 1, 4);
    assert_ok(quantize_create(&q, c.g, CHOICES));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    assert_ok(msc_quantizer_save(q, &list));
    // 6 sites with 3 choices each, scales and zero points.
    assert_int_equal(list.n, 36);
    assert_non_null(msc_array_list_find(&list, "conv1.w/3 mse/scale"));
    assert_ok(quantize_create(&loaded, c.g, CHOICES));
    assert_ok(msc_quantizer_load(loaded, &list));
    assert_same_quants(q, loaded);
    assert_true(msc_hash_equal(msc_quantizer_quant(q, 0, 0)->hash,
                               msc_quantizer_quant(loaded, 0, 0)->hash));
    msc_quantizer_destroy(loaded);
    // Parameters of another choice are missing from the list.
    assert_ok(quantize_create(&loaded, c.g, "{\"choices\":[{\"bits\":5}]}"));
    assert_int_equal(msc_quantizer_load(loaded, &list), MSC_E_STATE);
    assert_message("no parameters for x:0, choice \"5\"");
    msc_quantizer_destroy(loaded);
    // The list has scales per channel, but one scale is expected.
    assert_ok(quantize_create(&loaded, c.g,
                              "{\"choices\":[{\"bits\":8}],\"weights\":"
                              "{\"per_channel\":false}}"));
    assert_int_equal(msc_quantizer_load(loaded, &list), MSC_E_STATE);
    assert_message("4 scales, expected 1");
    msc_quantizer_destroy(loaded);
    // Damaged parameters are refused.
    assert_ok(quantize_create(&loaded, c.g, CHOICES));
    ((float *)msc_array_data(msc_array_list_find(&list, "relu:0/4/scale")))[0] = -1;
    assert_int_equal(msc_quantizer_load(loaded, &list), MSC_E_STATE);
    assert_message("relu:0, choice \"4\": expected scales");
    ((float *)msc_array_data(msc_array_list_find(&list, "relu:0/4/scale")))[0] = 1;
    ((int32_t *)msc_array_data(msc_array_list_find(&list, "relu:0/4/zero_point")))[0] = 16;
    assert_int_equal(msc_quantizer_load(loaded, &list), MSC_E_STATE);
    msc_quantizer_destroy(loaded);
    msc_quantizer_destroy(q);
    msc_array_list_finish(&list);
    quantize_case_close(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_quantizer__include_exclude_fix),
        cmocka_unit_test(test_tools_quantizer__names_that_match_nothing),
        cmocka_unit_test(test_tools_quantizer__nothing_to_quantise),
        cmocka_unit_test(test_tools_quantizer__other_float_types),
        cmocka_unit_test(test_tools_quantizer__calibrate),
        cmocka_unit_test(test_tools_quantizer__stops),
        cmocka_unit_test(test_tools_quantizer__rounds_in_little_memory),
        cmocka_unit_test(test_tools_quantizer__schemes),
        cmocka_unit_test(test_tools_quantizer__nudges_off_ties),
        cmocka_unit_test(test_tools_quantizer__not_finite),
        cmocka_unit_test(test_tools_quantizer__groups),
        cmocka_unit_test(test_tools_quantizer__float_types),
        cmocka_unit_test(test_tools_quantizer__products_by_one_thread),
        cmocka_unit_test(test_tools_quantizer__save_and_load),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
