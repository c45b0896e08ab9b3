// Winograd's algorithm, computed by every method of this machine and compared with convolutions in
// plain C.
#include "kernels/cpu/simd_indirect.h"

#include "base/rng.h"

#include "tests/kernels/vnni_of_avx512.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN = 100, MOST_OUT = 150, MOST_SIDE = 13, MOST_IMAGES = 3 };
enum {
    MOST_INPUT = MOST_IMAGES * MOST_SIDE * MOST_SIDE * MOST_IN,
    MOST_SUMS = MOST_IMAGES * (MOST_SIDE + 2) * (MOST_SIDE + 2) * MOST_OUT,
};

// Operands, and the sums that are expected of them.
struct images {
    struct msc_simd_image_windows w;
    uint8_t in[MOST_INPUT], blank[MOST_IN];
    int8_t weights[MOST_OUT * MOST_IN * 9];
    int64_t n; // sums
    int32_t sums[MOST_SUMS], offsets[MOST_OUT + 15];
    float scales[MOST_OUT + 15], bias[MOST_OUT + 15], added[MOST_SUMS];
};

struct results {
    int32_t sums[MOST_SUMS + 1];
    float y[MOST_SUMS + 1];
    uint8_t bytes[2][MOST_SUMS + 1];
};

static int64_t below(struct msc_rng *rng, int64_t n) {
    return (int64_t)msc_rng_below(rng, (uint32_t)n);
}

static float random_float(struct msc_rng *rng, float low, float high) {
    return low + (high - low) * (float)msc_rng_double(rng);
}

// The input that the window at (y, x) of an image reads at `tap`.
static const uint8_t *tap_of(const struct images *t, int64_t image, int64_t y, int64_t x,
                             int64_t tap) {
    const struct msc_simd_image_windows *w = &t->w;
    y += tap / 3 - w->pad_top;
    x += tap % 3 - w->pad_left;
    bool is_inside = y >= 0 && y < w->in_height && x >= 0 && x < w->in_width;
    int64_t at = (image * w->in_height + y) * w->in_width + x;
    return is_inside ? t->in + at * w->in_channels : t->blank;
}

static void expect_sums(struct images *t) {
    const struct msc_simd_image_windows *w = &t->w;
    int64_t per_image = w->out_height * w->out_width;
    t->n = w->images * per_image * w->channels;
    memset(t->sums, 0, sizeof(t->sums));
    for (int64_t i = 0; i < t->n / w->channels; i++) {
        int64_t at = i % per_image, y = at / w->out_width, x = at % w->out_width;
        for (int64_t tap = 0; tap < 9; tap++) {
            const uint8_t *in = tap_of(t, i / per_image, y, x, tap);
            for (int64_t o = 0; o < w->channels; o++) {
                int32_t *sum = &t->sums[i * w->channels + o];
                for (int64_t c = 0; c < w->in_channels; c++) {
                    *sum +=
                        (int8_t)(in[c] ^ w->flip) * t->weights[(o * w->in_channels + c) * 9 + tap];
                }
            }
        }
    }
}

// In some rounds, all bytes and weights are the largest or the smallest.
static void set_operands(struct images *t, struct msc_rng *rng, int round) {
    struct msc_simd_image_windows *w = &t->w;
    w->flip = round % 2 == 0 ? 0x80 : 0;
    w->images = 1 + below(rng, MOST_IMAGES);
    w->in_height = 1 + below(rng, MOST_SIDE);
    w->in_width = 1 + below(rng, MOST_SIDE);
    w->in_channels = round % 3 == 0 ? 32 * (1 + below(rng, 3)) : 1 + below(rng, MOST_IN);
    w->channels = 1 + below(rng, MOST_OUT);
    w->pad_top = below(rng, 3);
    w->pad_left = below(rng, 3);
    int64_t height = w->in_height + w->pad_top + below(rng, 3) - 2;
    int64_t width = w->in_width + w->pad_left + below(rng, 3) - 2;
    w->out_height = height < 1 ? 1 : height;
    w->out_width = width < 1 ? 1 : width;
    bool is_extreme = round % 4 == 3;
    for (size_t i = 0; i < sizeof(t->in); i++) {
        t->in[i] = (uint8_t)(is_extreme ? 127 + below(rng, 2) : below(rng, 256));
    }
    for (size_t i = 0; i < sizeof(t->weights); i++) {
        t->weights[i] = (int8_t)(is_extreme ? 255 * below(rng, 2) - 128 : below(rng, 256) - 128);
    }
    memset(t->blank, (int)below(rng, 256), sizeof(t->blank));
    w->in = t->in;
    w->blank = t->blank;
    expect_sums(t);
    for (int64_t c = 0; c < w->channels; c++) {
        t->offsets[c] = (int32_t)below(rng, 100000) - 50000;
        t->scales[c] = random_float(rng, 1e-5f, 1e-3f);
        t->bias[c] = random_float(rng, -2.0f, 2.0f);
    }
    for (int64_t i = 0; i < t->n; i++) {
        t->added[i] = random_float(rng, -2.0f, 2.0f);
    }
}

static float expected_y(const struct images *t, const struct msc_simd_epilogue *e, int64_t i) {
    int64_t c = i % t->w.channels;
    float y = t->scales[c] * (float)(t->sums[i] - t->offsets[c]) + t->bias[c];
    y = y < e->finish.low ? e->finish.low : y > e->finish.high ? e->finish.high : y;
    return e->n_instrs > 0 ? y + t->added[i] : y;
}

static void check_results(const struct images *t, const struct results *r,
                          const struct msc_simd_epilogue *e, const struct msc_simd_bytes *q) {
    for (int64_t i = 0; i < t->n; i++) {
        float y = expected_y(t, e, i);
        uint8_t byte;
        msc_simd_plain.quantize(&byte, &y, 1, q);
        assert_true(!e->out || memcmp(&r->y[i], &y, sizeof(y)) == 0);
        for (int32_t f = 0; f < e->n_quantized; f++) {
            assert_int_equal(r->bytes[f][i], byte);
        }
    }
    assert_true(((const uint8_t *)(r->y + t->n))[0] == 0xee);
    assert_true(r->bytes[0][t->n] == 0xee && r->bytes[1][t->n] == 0xee);
}

static void check_ends(const struct images *t, struct results *r,
                       const struct msc_simd_winograd *winograd, int round) {
    int32_t zero_point = round % 2 == 0 ? 77 : -3;
    struct msc_quant quant = {.bits = 8,
                              .low = round % 2 == 0 ? 0 : -128,
                              .high = round % 2 == 0 ? 255 : 127,
                              .axis = -1,
                              .n = 1,
                              .scales = (float[]){0.05f},
                              .zero_points = &zero_point};
    struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
    const struct msc_simd_instr add = {.op = MSC_SIMD_ADD};
    const float *arrays[] = {t->added};
    const struct msc_simd_quantized quantized[2] = {{r->bytes[0], q}, {r->bytes[1], q}};
    struct msc_simd_epilogue e = {.finish = {.offsets = t->offsets,
                                             .scales = t->scales,
                                             .bias = t->bias,
                                             .low = round % 3 == 0 ? -INFINITY : 0.0f,
                                             .high = round % 3 == 2 ? 6.0f : INFINITY},
                                  .instrs = &add,
                                  .arrays = {.at = arrays},
                                  .quantized = quantized,
                                  .has_numbers = round % 5 != 0};
    for (e.n_instrs = 0; e.n_instrs < 2; e.n_instrs++) {
        // Outputs: floats; bytes; two variants of bytes; floats and bytes.
        for (int outputs = 0; outputs < 4; outputs++) {
            memset(r, 0xee, sizeof(*r));
            e.out = outputs == 0 || outputs == 3 ? r->y : NULL;
            e.n_quantized = outputs == 3 ? 1 : outputs;
            winograd->multiply_epilogue(&t->w, &e);
            check_results(t, r, &e, &q);
        }
    }
}

static void check_images(struct images *t, struct results *r,
                         const struct msc_simd_winograd *winograd, int round) {
    int64_t out = t->w.channels, in = t->w.in_channels;
    void *packed = aligned_alloc(64, winograd->packed_bytes(out, in) / 64 * 64 + 64);
    void *scratch = aligned_alloc(64, winograd->scratch_bytes(in) / 64 * 64 + 64);
    assert_true(packed && scratch);
    winograd->pack(packed, t->weights, out, in);
    t->w.weights = packed;
    t->w.scratch = scratch;
    memset(r, 0xee, sizeof(*r));
    winograd->multiply(r->sums, &t->w);
    assert_memory_equal(r->sums, t->sums, (size_t)t->n * sizeof(t->sums[0]));
    assert_true((uint32_t)r->sums[t->n] == 0xeeeeeeeeu);
    check_ends(t, r, winograd, round);
    free(packed);
    free(scratch);
}

// The tables to test; NULL after the last.
static const struct msc_simd *find_table(size_t i) {
    size_t n = 0;
    while (msc_simd_of_machine(n)) {
        n++;
    }
#ifdef TEST_HAS_VNNI
    if (i == n) {
        return vnni_of_avx512();
    }
#endif
    return i < n ? msc_simd_of_machine(i) : NULL;
}

static void test_kernels_cpu_winograd__sums(void **state) {
    (void)state;
    static struct images t;
    static struct results r;
    struct msc_rng rng;
    msc_rng_seed(&rng, 6, 0);
    for (int round = 0; round < 40; round++) {
        const struct msc_simd *table;
        set_operands(&t, &rng, round);
        for (size_t i = 0; (table = find_table(i)) != NULL; i++) {
            if (table->winograd) {
                check_images(&t, &r, table->winograd, round);
            }
        }
    }
}

// Sums just below 2^25, the bound of the algorithm.
static void test_kernels_cpu_winograd__largest(void **state) {
    (void)state;
    enum { IN = 226, SIDE = 6 };
    static int8_t weights[IN * 9];
    static uint8_t in[SIDE * SIDE * IN];
    const struct msc_simd *table;
    memset(weights, 0x80, sizeof(weights)); // -128
    for (int sign = 0; sign < 2; sign++) {
        memset(in, sign ? 0x80 : 0x7f, sizeof(in));
        int32_t expected = (sign ? -128 : 127) * -128 * 9 * IN;
        for (size_t i = 0; (table = find_table(i)) != NULL; i++) {
            const struct msc_simd_winograd *winograd = table->winograd;
            if (!winograd) {
                continue;
            }
            int32_t sums[(SIDE - 2) * (SIDE - 2)];
            void *packed = aligned_alloc(64, winograd->packed_bytes(1, IN) / 64 * 64 + 64);
            void *scratch = aligned_alloc(64, winograd->scratch_bytes(IN) / 64 * 64 + 64);
            assert_true(packed && scratch);
            winograd->pack(packed, weights, 1, IN);
            winograd->multiply(sums, &(struct msc_simd_image_windows){.in = in,
                                                                      .blank = in,
                                                                      .images = 1,
                                                                      .in_height = SIDE,
                                                                      .in_width = SIDE,
                                                                      .in_channels = IN,
                                                                      .out_height = SIDE - 2,
                                                                      .out_width = SIDE - 2,
                                                                      .channels = 1,
                                                                      .weights = packed,
                                                                      .scratch = scratch});
            for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) {
                assert_int_equal(sums[k], expected);
            }
            free(packed);
            free(scratch);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_winograd__sums),
        cmocka_unit_test(test_kernels_cpu_winograd__largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
