// Products of windows, computed by every method of this machine and compared with sums in plain C.
// On machines without matrix tiles, the tile method is emulated in plain C. Floats have integer
// values, so their sums are exact.
#include "kernels/cpu/simd_indirect.h"

#include "base/rng.h"

#include "tests/msc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WINDOWS = 75, MOST_CHANNELS = 150, MOST_DEPTH = 200, MOST_RUNS = 3, INPUT = 20000 };

#ifdef TEST_HAS_TILES
#include "tests/kernels/vnni_of_avx512.h"

extern const struct msc_simd_product tiles_emulated;
bool msc_simd__agrees(const struct msc_simd_product *tiles);
#endif

struct product {
    const struct msc_simd_product *product;
    bool is_float;
};

enum { MOST_PRODUCTS = 12 };

static int find_products(struct product out[MOST_PRODUCTS]) {
    const struct msc_simd *table;
    int n = 0;
    for (size_t i = 0; (table = msc_simd_of_machine(i)) != NULL; i++) {
        const struct product products[] = {
            {table->bytes, false},
            {table->tiles && msc_simd_get_tiles() ? table->tiles : NULL, false},
            {table->floats, true}};
        for (size_t k = 0; k < sizeof products / sizeof products[0]; k++) {
            out[n] = products[k];
            n += products[k].product != NULL;
        }
    }
#ifdef TEST_HAS_TILES
    if (msc_simd_of_machine(0)->tiles) { // the machine has the vector units that tiles rely on
        out[n++] = (struct product){&tiles_emulated, false};
    }
    if (vnni_of_avx512()) {
        out[n++] = (struct product){vnni_of_avx512()->bytes, false};
    }
#endif
    return n;
}

// Integer operands, expected results, and memory for results.
struct windows {
    uint8_t x[INPUT];
    int8_t weights[MOST_CHANNELS * MOST_RUNS * MOST_DEPTH];
    int64_t at[MOST_WINDOWS];
    int64_t n, n_runs, depth, channels, runs[MOST_RUNS]; // sizes in elements
    int32_t sums[MOST_WINDOWS * MOST_CHANNELS];
    int32_t offsets[MOST_CHANNELS + 15];
    float scales[MOST_CHANNELS + 15], bias[MOST_CHANNELS + 15];
    float added[MOST_WINDOWS * MOST_CHANNELS], y[MOST_WINDOWS * MOST_CHANNELS];
    uint8_t bytes[MOST_WINDOWS * MOST_CHANNELS];
};

struct results {
    float y[MOST_WINDOWS * MOST_CHANNELS + 1];
    uint8_t bytes[2][MOST_WINDOWS * MOST_CHANNELS + 1];
};

static int64_t below(struct msc_rng *rng, int64_t n) {
    return (int64_t)msc_rng_below(rng, (uint32_t)n);
}

static void set_at(struct windows *t, struct msc_rng *rng, int round) {
    int64_t stride = t->depth + below(rng, 2) * 4;
    for (int64_t i = 0; i < t->n; i++) {
        // Windows are evenly spaced, have gaps at the ends of rows, or start anywhere.
        int64_t row = round % 3 == 1 ? i / 20 * 40 : 0;
        t->at[i] = round % 3 == 2 ? below(rng, 5000) : (i * stride + row) % 15000;
    }
}

static void set_operands(struct windows *t, struct msc_rng *rng, int round) {
    t->n = 1 + below(rng, MOST_WINDOWS);
    t->n_runs = 1 + below(rng, MOST_RUNS);
    for (int i = 0; i < MOST_RUNS; i++) {
        t->runs[i] = below(rng, 1400);
    }
    t->depth = round % 2 == 0 ? 64 * (1 + below(rng, 3)) : 1 + below(rng, MOST_DEPTH);
    t->channels = 1 + below(rng, MOST_CHANNELS);
    set_at(t, rng, round);
    // Weights of 8 bits or fewer. In some rounds all operands have the largest magnitudes, or the
    // products of two or four neighbours have sums near the limits of int16.
    int64_t n_steps = 128 >> below(rng, 4), kind = below(rng, 3);
    for (size_t i = 0; i < sizeof(t->x); i++) {
        t->x[i] = kind == 0 ? (uint8_t)below(rng, 256) : 255;
    }
    for (size_t i = 0; i < sizeof(t->weights); i++) {
        int64_t weight = below(rng, 2 * n_steps) - n_steps, near = n_steps / 2 + below(rng, 2);
        int64_t largest = weight < 0 ? -n_steps : n_steps - 1;
        int64_t limit = weight < 0 ? -near : near;
        t->weights[i] = (int8_t)(kind == 0 ? weight : kind == 1 ? largest : limit);
    }
    for (int64_t i = 0; i < t->n * t->channels; i++) {
        const int8_t *weight = t->weights + i % t->channels * t->n_runs * t->depth;
        t->sums[i] = 0;
        for (int64_t run = 0; run < t->n_runs; run++) {
            for (int64_t k = 0; k < t->depth; k++) {
                t->sums[i] += t->x[t->at[i / t->channels] + t->runs[run] + k] * *weight++;
            }
        }
    }
}

static float random_float(struct msc_rng *rng, float low, float high) {
    return low + (high - low) * (float)msc_rng_double(rng);
}

static void set_epilogue(struct windows *t, struct msc_rng *rng, bool has_numbers) {
    for (int64_t c = 0; c < t->channels; c++) {
        t->offsets[c] = (int32_t)below(rng, 100000) - 50000;
        t->scales[c] = random_float(rng, 1e-5f, 1e-3f);
        t->bias[c] = random_float(rng, -2.0f, 2.0f);
    }
    if (!has_numbers) {
        t->bias[0] = NAN;
    }
    for (int64_t i = 0; i < t->n * t->channels; i++) {
        t->added[i] = random_float(rng, -2.0f, 2.0f);
    }
}

// The expected result of the epilogue, computed separately for each sum.
static void expect(struct windows *t, const struct msc_simd_epilogue *epilogue, bool is_float,
                   const struct msc_simd_bytes *q) {
    for (int64_t i = 0; i < t->n * t->channels; i++) {
        int64_t c = i % t->channels;
        float y = is_float ? (float)t->sums[i] + t->bias[c]
                           : t->scales[c] * (float)(t->sums[i] - t->offsets[c]) + t->bias[c];
        y = y < epilogue->finish.low    ? epilogue->finish.low
            : y > epilogue->finish.high ? epilogue->finish.high
                                        : y;
        t->y[i] = epilogue->n_instrs > 0 ? y + t->added[i] : y;
        msc_simd_plain.quantize(&t->bytes[i], &t->y[i], 1, q);
    }
}

static void check_floats(const float y[], const float expected[], int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        assert_true(memcmp(&y[i], &expected[i], sizeof(y[i])) == 0 ||
                    (isnan(y[i]) && isnan(expected[i])));
    }
}

static void check_ends(struct windows *t, struct results *r, const struct product *p,
                       const struct msc_simd_indirect *w, int round) {
    bool has_numbers = round % 4 < 2;
    int32_t zero_point = round % 2 == 0 ? 77 : -3;
    struct msc_quant quant = {.bits = 8,
                              .low = round % 2 == 0 ? 0 : -128,
                              .high = round % 2 == 0 ? 255 : 127,
                              .axis = -1,
                              .n = 1,
                              .scales = (float[]){p->is_float ? 300.0f : 0.05f},
                              .zero_points = &zero_point};
    struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
    const struct msc_simd_instr add = {.op = MSC_SIMD_ADD};
    const float *arrays[] = {t->added};
    const struct msc_simd_quantized quantized[2] = {{r->bytes[0], q}, {r->bytes[1], q}};
    struct msc_simd_epilogue epilogue = {.finish = {.offsets = p->is_float ? NULL : t->offsets,
                                                    .scales = p->is_float ? NULL : t->scales,
                                                    .bias = t->bias,
                                                    .low = round % 3 == 0 ? -INFINITY : 0.0f,
                                                    .high = round % 3 == 2 ? 6.0f : INFINITY},
                                         .instrs = &add,
                                         .arrays = {.at = arrays},
                                         .quantized = quantized,
                                         .has_numbers = has_numbers && !p->is_float};
    int64_t n = t->n * t->channels;
    for (epilogue.n_instrs = 0; epilogue.n_instrs < 2; epilogue.n_instrs++) {
        expect(t, &epilogue, p->is_float, &q);
        // Outputs: floats; bytes; two variants of bytes; floats and bytes.
        for (int outputs = 0; outputs < 4; outputs++) {
            memset(r, 0xee, sizeof(*r));
            epilogue.out = outputs == 0 || outputs == 3 ? r->y : NULL;
            epilogue.n_quantized = outputs == 3 ? 1 : outputs;
            p->product->multiply_epilogue(w, &epilogue);
            if (epilogue.out) {
                check_floats(r->y, t->y, n);
            }
            for (int f = 0; f < epilogue.n_quantized; f++) {
                assert_memory_equal(r->bytes[f], t->bytes, (size_t)n);
            }
            assert_true(((uint8_t *)(r->y + n))[0] == 0xee);
            assert_true(r->bytes[0][n] == 0xee && r->bytes[1][n] == 0xee);
        }
    }
}

static void check_sums(const struct windows *t, const struct product *p,
                       const struct msc_simd_indirect *w) {
    static int32_t sums[MOST_WINDOWS * MOST_CHANNELS + 1];
    int64_t n = t->n * t->channels;
    memset(sums, 0xee, sizeof(sums));
    p->product->multiply(sums, w);
    assert_true((uint32_t)sums[n] == 0xeeeeeeeeu);
    for (int64_t i = 0; i < n; i++) {
        float y;
        memcpy(&y, &sums[i], sizeof(y));
        assert_true(p->is_float ? y == (float)t->sums[i] : sums[i] == t->sums[i]);
    }
}

static void *to_elements(const void *bytes, size_t n, bool is_signed, bool is_float) {
    size_t element = is_float ? sizeof(float) : 1;
    char *out = malloc(n * element);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        float y =
            is_signed ? (float)((const int8_t *)bytes)[i] : (float)((const uint8_t *)bytes)[i];
        memcpy(out + i * element, is_float ? (const void *)&y : (const char *)bytes + i, element);
    }
    return out;
}

static void check_product(struct windows *t, struct results *r, const struct product *p,
                          int round) {
    int64_t element = p->is_float ? (int64_t)sizeof(float) : 1, at[MOST_WINDOWS];
    int64_t depth = t->depth * element, runs[MOST_RUNS];
    size_t packed_bytes = p->product->packed_bytes(t->channels, t->n_runs, depth);
    void *in = to_elements(t->x, INPUT, false, p->is_float);
    void *weights =
        to_elements(t->weights, (size_t)(t->channels * t->n_runs * t->depth), true, p->is_float);
    void *packed = aligned_alloc(64, (packed_bytes + 63) / 64 * 64);
    void *scratch = aligned_alloc(64, p->product->scratch_bytes(t->n_runs, depth) + 64);
    assert_true(packed && scratch);
    p->product->pack(packed, weights, t->channels, t->n_runs, depth);
    for (int64_t i = 0; i < t->n; i++) {
        at[i] = t->at[i] * element;
    }
    for (int i = 0; i < MOST_RUNS; i++) {
        runs[i] = t->runs[i] * element;
    }
    struct msc_simd_indirect w = {.in = in,
                                  .at = at,
                                  .n = t->n,
                                  .n_runs = t->n_runs,
                                  .runs = runs,
                                  .depth = depth,
                                  .weights = packed,
                                  .channels = t->channels,
                                  .scratch = scratch};
    check_sums(t, p, &w);
    check_ends(t, r, p, &w, round);
    free(in);
    free(weights);
    free(packed);
    free(scratch);
}

static void test_kernels_cpu_indirect__products(void **state) {
    (void)state;
    static struct windows t;
    static struct results r;
    struct product products[MOST_PRODUCTS];
    int n_products = find_products(products);
    struct msc_rng rng;
    msc_rng_seed(&rng, 5, 0);
    for (int round = 0; round < 60 && n_products > 0; round++) {
        set_operands(&t, &rng, round);
        set_epilogue(&t, &rng, round % 4 < 2);
        for (int i = 0; i < n_products; i++) {
            check_product(&t, &r, &products[i], round);
        }
    }
}

// Enough windows for several groups of pieces, and enough channels for several blocks.
static void test_kernels_cpu_indirect__many(void **state) {
    (void)state;
    enum { WINDOWS = 1100, CHANNELS = 70, DEPTH = 64, RUNS = 9 };
    struct product products[MOST_PRODUCTS];
    int n_products = find_products(products);
    static int64_t at[WINDOWS], runs[RUNS];
    static int32_t sums[WINDOWS * CHANNELS];
    static uint8_t in[WINDOWS * 8 + RUNS * 100 + DEPTH];
    static int8_t weights[CHANNELS * RUNS * DEPTH];
    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * i % 251);
    }
    for (size_t i = 0; i < sizeof(weights); i++) {
        weights[i] = (int8_t)((int)(i * 7 % 256) - 128);
    }
    for (int64_t i = 0; i < WINDOWS; i++) {
        at[i] = i * 8 - i % 7; // not evenly spaced
    }
    for (int64_t i = 0; i < RUNS; i++) {
        runs[i] = i * 100;
    }
    for (int i = 0; i < n_products; i++) {
        const struct msc_simd_product *p = products[i].product;
        if (products[i].is_float) {
            continue;
        }
        void *packed = aligned_alloc(64, p->packed_bytes(CHANNELS, RUNS, DEPTH));
        void *scratch = aligned_alloc(64, p->scratch_bytes(RUNS, DEPTH) + 64);
        assert_true(packed && scratch);
        p->pack(packed, weights, CHANNELS, RUNS, DEPTH);
        p->multiply(sums, &(struct msc_simd_indirect){.in = in,
                                                      .at = at,
                                                      .n = WINDOWS,
                                                      .n_runs = RUNS,
                                                      .runs = runs,
                                                      .depth = DEPTH,
                                                      .weights = packed,
                                                      .channels = CHANNELS,
                                                      .scratch = scratch});
        for (int64_t o = 0; o < WINDOWS * CHANNELS; o++) {
            const int8_t *weight = weights + o % CHANNELS * RUNS * DEPTH;
            int32_t sum = 0;
            for (int64_t k = 0; k < RUNS * DEPTH; k++) {
                sum += in[at[o / CHANNELS] + k / DEPTH * 100 + k % DEPTH] * weight[k];
            }
            assert_int_equal(sums[o], sum);
        }
        free(packed);
        free(scratch);
    }
}

#ifdef TEST_HAS_TILES
static void multiply_wrongly(void *sums, const struct msc_simd_indirect *w) {
    tiles_emulated.multiply(sums, w);
    ((int32_t *)sums)[w->n * w->channels - 1]++;
}

// Tiles are used only if their results agree with the results of vector instructions.
static void test_kernels_cpu_indirect__agree(void **state) {
    (void)state;
    struct msc_simd_product wrong = tiles_emulated;
    wrong.multiply = multiply_wrongly;
    if (msc_simd_of_machine(0)->tiles) {
        assert_true(msc_simd__agrees(&tiles_emulated));
        assert_false(msc_simd__agrees(&wrong));
    }
}
#endif

// Weights are packed to the same bytes from rows of inputs as from rows of channels.
static void test_kernels_cpu_indirect__packs_rows(void **state) {
    static const int64_t sizes[][2] = {{1, 1}, {16, 4}, {17, 5}, {64, 64}, {150, 199}, {130, 2}};
    struct product products[MOST_PRODUCTS];
    int n_products = find_products(products);
    (void)state;
    for (int p = 0; p < n_products; p++) {
        const struct msc_simd_product *product = products[p].product;
        size_t element = products[p].is_float ? sizeof(float) : 1;
        for (size_t i = 0; product->pack_rows && i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t channels = (size_t)sizes[i][0], n = (size_t)sizes[i][1];
            int64_t depth = (int64_t)(n * element);
            size_t n_bytes = product->packed_bytes((int64_t)channels, 1, depth);
            char *rows = malloc(channels * n * element), *turned = malloc(channels * n * element);
            char *packed[2] = {malloc(n_bytes), malloc(n_bytes)};
            assert_true(rows && turned && packed[0] && packed[1]);
            for (size_t k = 0; k < channels * n * element; k++) {
                rows[k] = (char)(k * 37 % 251);
            }
            for (size_t k = 0; k < n; k++) {
                for (size_t c = 0; c < channels; c++) {
                    memcpy(turned + (c * n + k) * element, rows + (k * channels + c) * element,
                           element);
                }
            }
            memset(packed[1], 1, n_bytes);
            product->pack(packed[0], turned, (int64_t)channels, 1, depth);
            product->pack_rows(packed[1], rows, (int64_t)channels, (int64_t)n, (int64_t)element);
            assert_memory_equal(packed[0], packed[1], n_bytes);
            free(rows);
            free(turned);
            free(packed[0]);
            free(packed[1]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_indirect__packs_rows),
        cmocka_unit_test(test_kernels_cpu_indirect__products),
        cmocka_unit_test(test_kernels_cpu_indirect__many),
#ifdef TEST_HAS_TILES
        cmocka_unit_test(test_kernels_cpu_indirect__agree),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
