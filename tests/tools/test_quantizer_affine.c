// The effect of a choice with "correct": "affine" on a weight. make_rounding.py prints the
// expected values.
#include "quantize_case.h"

#include <math.h>

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

enum { SIDE = 6, WINDOWS = 4, CHANNELS = 4, TAPS = 9, COLUMNS = 2 * TAPS };

static const double affine_errors[CHANNELS] = {0.97232532, 0.378971901, 0.680674394, 0.451160109};

// x [10,2,6,6] ── conv (w [4,2,3,3], b)
static struct msc_graph *make_conv(struct msc_array *weight) {
    struct msc_array *bias = quantize_array(1, DIMS(CHANNELS), 22);
    struct msc_graph *g;
    int32_t x, w, b, joint;
    assert_ok(msc_graph_create(&g, "conv"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "NCHW", 4,
                                  DIMS(QUANTIZE_SAMPLES, 2, SIDE, SIDE)));
    assert_ok(msc_graph_add_weight(&w, g, "w", NULL, "OIHW", weight));
    assert_ok(msc_graph_add_weight(&b, g, "b", NULL, "O", bias));
    msc_array_release(bias);
    const struct msc_weight_spec weights[] = {{"weight", w}, {"bias", b}};
    const struct msc_joint_spec spec = {.op = MSC_OP_CONV2D_BIAS,
                                        .name = "conv",
                                        .n_inputs = 1,
                                        .inputs = &x,
                                        .n_weights = 2,
                                        .weights = weights};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    x = msc_graph_joint(g, joint)->outputs[0];
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// The input that element k of a weight row is multiplied by, in a window of a sample.
static double input_of(const struct msc_array *x, int64_t sample, int window, int k) {
    int64_t row = window / WINDOWS + k % TAPS / 3, column = window % WINDOWS + k % 3;
    return msc_array_get_double(x, ((sample * 2 + k / TAPS) * SIDE + row) * SIDE + column);
}

// Mean and mean square of the error of a channel's outputs.
static void measure(double out[2], const struct msc_array *x, const struct msc_array *w,
                    const struct msc_quant *q, int channel) {
    out[0] = out[1] = 0;
    for (int i = 0; i < QUANTIZE_SAMPLES * WINDOWS * WINDOWS; i++) {
        double off = msc_array_get_double(q->shifts, channel);
        for (int k = 0; k < COLUMNS; k++) {
            int64_t at = channel * COLUMNS + k;
            double step = (double)q->scales[channel], element = msc_array_get_double(w, at);
            double integer =
                q->integers ? msc_array_get_double(q->integers, at) : rint(element / step);
            double rounded = integer * step;
            off += (rounded - msc_array_get_double(w, at)) *
                   input_of(x, i / (WINDOWS * WINDOWS), i % (WINDOWS * WINDOWS), k);
        }
        out[0] += off / (QUANTIZE_SAMPLES * WINDOWS * WINDOWS);
        out[1] += off * off / (QUANTIZE_SAMPLES * WINDOWS * WINDOWS);
    }
}

// The inputs have means far from 0. Rounding need not preserve the mean outputs, because shifts
// correct them.
static void test_tools_quantizer_affine__inputs_with_a_mean(void **state) {
    struct msc_array *x = quantize_array(4, DIMS(QUANTIZE_SAMPLES, 2, SIDE, SIDE), 11);
    struct msc_array *w = quantize_array(4, DIMS(CHANNELS, 2, 3, 3), 21);
    float *elements = msc_array_data(x);
    struct quantize_case c;
    struct msc_quantizer *q;
    (void)state;
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        elements[i] += 3;
    }
    quantize_case_open_graph_with(&c, make_conv(w), "generic", x);
    assert_ok(quantize_create(
        &q, c.g, "{\"choices\":[{\"bits\":3,\"rounding\":\"descent\",\"correct\":\"affine\"}]}"));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    const struct msc_quant *quant =
        msc_quantizer_quant(q, msc_sites_find_name(msc_quantizer_sites(q), "w"), 0);
    assert_non_null(quant->integers);
    assert_non_null(quant->shifts);
    for (int i = 0; i < CHANNELS; i++) {
        double off[2];
        measure(off, x, w, quant, i);
        if (!(fabs(off[0]) < 1e-4) || !(fabs(off[1] / affine_errors[i] - 1) < 1e-3)) {
            print_error("channel %d: off by %g, %.9g in the square, expected 0, %.9g\n", i, off[0],
                        off[1], affine_errors[i]);
            fail();
        }
    }
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
    msc_array_release(x);
    msc_array_release(w);
}

// A shift alone makes the mean outputs equal. It is all that is left of a choice if the moments of
// a weight would have too few rows.
static void check_shifts(const char *env) {
    struct msc_array *x = quantize_array(4, DIMS(QUANTIZE_SAMPLES, 2, SIDE, SIDE), 11);
    struct msc_array *w = quantize_array(4, DIMS(CHANNELS, 2, 3, 3), 21);
    struct quantize_case c;
    struct msc_quantizer *q;
    quantize_case_open_graph_with(&c, make_conv(w), "generic", x);
    assert_ok(quantize_create(&q, c.g, env));
    assert_ok(msc_quantizer_calibrate(q, c.ev, NULL, NULL));
    const struct msc_quant *quant =
        msc_quantizer_quant(q, msc_sites_find_name(msc_quantizer_sites(q), "w"), 0);
    assert_null(quant->integers);
    assert_non_null(quant->shifts);
    for (int i = 0; i < CHANNELS; i++) {
        double off[2];
        measure(off, x, w, quant, i);
        assert_true(fabs(off[0]) < 1e-4);
    }
    msc_quantizer_destroy(q);
    quantize_case_close(&c);
    msc_array_release(x);
    msc_array_release(w);
}

static void test_tools_quantizer_affine__shifts(void **state) {
    (void)state;
    check_shifts("{\"choices\":[{\"bits\":4,\"correct\":\"bias\"}]}");
    check_shifts("{\"choices\":[{\"bits\":4,\"rounding\":\"descent\",\"correct\":\"affine\"}],"
                 "\"moments\":{\"least\":1000}}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_quantizer_affine__inputs_with_a_mean),
        cmocka_unit_test(test_tools_quantizer_affine__shifts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
