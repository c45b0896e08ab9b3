// Loops in the machine's vector instructions are compared with loops in plain C. The loops in plain
// C are compared with the formula.
#include "kernels/cpu/simd.h"

#include "base/rng.h"

#include "tests/msc_test.h"
#ifdef TEST_HAS_VNNI
#include "tests/kernels/vnni_of_avx512.h"
#endif

#include <math.h>

enum { N = 1000 };

static const struct msc_simd *tested; // the table of the current round

static float random_float(struct msc_rng *rng, float low, float high) {
    return low + (high - low) * (float)msc_rng_double(rng);
}

// Numbers on and next to ties, in and out of range, NaN and infinities.
static void set_numbers(float x[N], struct msc_rng *rng, const struct msc_quant *q) {
    float scale = q->scales[0];
    for (int i = 0; i < N; i++) {
        int32_t level = (int32_t)msc_rng_below(rng, 300) - 20 + q->low - q->zero_points[0];
        float tie = ((float)level + 0.5f) * scale;
        float beside[] = {tie, nextafterf(tie, INFINITY), nextafterf(tie, -INFINITY)};
        x[i] = i % 4 == 3 ? random_float(rng, -300 * scale, 300 * scale) : beside[i % 4];
    }
    const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, -3e38f, 1e-42f};
    memcpy(x + 40, special, sizeof(special));
}

static struct msc_quant quant_of(const float *scale, const int32_t *zero_point, bool is_signed) {
    return (struct msc_quant){.bits = 8,
                              .low = is_signed ? -128 : 0,
                              .high = is_signed ? 127 : 255,
                              .axis = -1,
                              .n = 1,
                              .scales = scale,
                              .zero_points = zero_point};
}

// Narrows q to a smaller range that includes zero, anywhere within the range of bytes.
static void narrow(struct msc_quant *q, int32_t *zero_point, struct msc_rng *rng) {
    int32_t width = (int32_t)msc_rng_below(rng, 127) + 1;
    q->low += (int32_t)msc_rng_below(rng, (uint32_t)(255 - width));
    q->high = q->low + width;
    *zero_point = q->low + (int32_t)msc_rng_below(rng, (uint32_t)width + 1);
}

static void test_kernels_cpu_simd__quantize(void **state) {
    (void)state;
    static const float powers[] = {1.0f, 1e-3f, 300.0f, 1e-25f, 1e-40f, 1e25f, 1e37f};
    struct msc_rng rng;
    msc_rng_seed(&rng, 1, 0);
    for (int round = 0; round < 700; round++) {
        float x[N], scale = powers[round % 7] * random_float(&rng, 1.0f, 2.0f);
        uint8_t plain[N + 1], best[N + 1];
        bool is_signed = round % 2 == 1;
        int32_t zero_point = is_signed ? 0 : (int32_t)msc_rng_below(&rng, 256);
        struct msc_quant q = quant_of(&scale, &zero_point, is_signed);
        if (round % 3 == 0) {
            narrow(&q, &zero_point, &rng);
        }
        struct msc_simd_bytes bytes = msc_simd_bytes_of(&q);
        int n = N - round % 40;
        set_numbers(x, &rng, &q);
        plain[n] = best[n] = 0xee;
        msc_simd_plain.quantize(plain, x, n, &bytes);
        tested->quantize(best, x, n, &bytes);
        assert_memory_equal(plain, best, (size_t)n + 1);
        for (int i = 0; i < n; i++) {
            int32_t expected = msc_quantize_value(x[i], scale, zero_point, q.low, q.high);
            assert_int_equal(plain[i], (uint8_t)expected);
        }
    }
}

struct sums {
    int32_t sums[N], offsets[N];
    float scales[N], bias[N];
};

static struct msc_simd_finish random_sums(struct sums *s, struct msc_rng *rng, float low,
                                          float high) {
    for (int i = 0; i < N; i++) {
        s->sums[i] = (int32_t)msc_rng_below(rng, 4000000) - 2000000;
        s->offsets[i] = (int32_t)msc_rng_below(rng, 100000);
        s->scales[i] = random_float(rng, 1e-6f, 1e-5f);
        s->bias[i] = random_float(rng, -3.0f, 3.0f);
    }
    s->bias[7] = NAN;
    s->sums[8] = INT32_MIN;
    return (struct msc_simd_finish){.sums = s->sums,
                                    .offsets = s->offsets,
                                    .scales = s->scales,
                                    .bias = s->bias,
                                    .low = low,
                                    .high = high};
}

static void test_kernels_cpu_simd__finish(void **state) {
    (void)state;
    struct msc_rng rng;
    struct sums s;
    msc_rng_seed(&rng, 2, 0);
    for (int round = 0; round < 60; round++) {
        float plain[N], best[N];
        int n = N - round;
        struct msc_simd_finish f = random_sums(&s, &rng, round % 3 == 0 ? -INFINITY : 0.0f,
                                               round % 3 == 2 ? 6.0f : INFINITY);
        msc_simd_plain.finish(plain, &f, n);
        tested->finish(best, &f, n);
        assert_true(isnan(plain[7]) && isnan(best[7]));
        plain[7] = best[7] = 0.0f;
        assert_memory_equal(plain, best, (size_t)n * sizeof(plain[0]));
        float y = s.scales[9] * (float)(s.sums[9] - s.offsets[9]);
        y = y + s.bias[9];
        assert_true(plain[9] == fminf(fmaxf(y, f.low), f.high));
    }
}

struct taps {
    uint8_t x[8192];
    int8_t weights[64 * 12];
    const uint8_t *at[12];
    uint8_t packed[2][1 << 17];
};

static struct msc_simd_taps random_taps(struct taps *t, struct msc_rng *rng, int64_t channels,
                                        int n_taps) {
    for (size_t i = 0; i < sizeof(t->x); i++) {
        t->x[i] = (uint8_t)msc_rng_below(rng, 256);
    }
    for (size_t i = 0; i < sizeof(t->weights); i++) {
        t->weights[i] = (int8_t)((int)msc_rng_below(rng, 256) - 128);
    }
    for (int i = 0; i < 12; i++) {
        t->at[i] = t->x + msc_rng_below(rng, 5000);
    }
    int64_t period = channels;
    while (period % MSC_SIMD_BLOCK != 0) {
        period += channels;
    }
    assert_true(msc_simd_taps_bytes(n_taps, period) <= sizeof(t->packed[0]));
    msc_simd_plain.pack_taps(t->packed[0], t->weights, channels, n_taps, period);
    tested->pack_taps(t->packed[1], t->weights, channels, n_taps, period);
    return (struct msc_simd_taps){.taps = t->at,
                                  .n_taps = n_taps,
                                  .flip = msc_rng_below(rng, 2) != 0 ? 0x80 : 0,
                                  .weights = t->packed[0],
                                  .period = period};
}

static void test_kernels_cpu_simd__taps(void **state) {
    (void)state;
    static struct taps t;
    struct msc_rng rng;
    struct sums s;
    msc_rng_seed(&rng, 3, 0);
    for (int round = 0; round < 200; round++) {
        int64_t channels = 1 + (int64_t)msc_rng_below(&rng, 48);
        struct msc_simd_taps taps = random_taps(&t, &rng, channels, 1 + round % 9), best = taps;
        int32_t plain[N], other[N];
        uint8_t plain_bytes[N], other_bytes[N];
        float scale = 0.3f;
        int32_t zero_point = 128;
        struct msc_quant quant = quant_of(&scale, &zero_point, false);
        struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
        struct msc_simd_finish f = random_sums(&s, &rng, 0.0f, INFINITY);
        f.bias = s.scales;
        // One long run, or several that each start at the first channel.
        taps.n_runs = round % 2 == 0 ? 1 : 3;
        taps.n = round % 2 == 0 ? N - (int64_t)msc_rng_below(&rng, 70) : channels;
        taps.step = 7;
        best = taps;
        best.weights = t.packed[1];
        msc_simd_plain.add_taps(plain, &taps);
        tested->add_taps(other, &best);
        int64_t n = taps.n * taps.n_runs;
        assert_memory_equal(plain, other, (size_t)n * sizeof(plain[0]));
        int64_t last = n - 1, run = last / taps.n, expected = 0;
        for (int i = 0; i < taps.n_taps; i++) {
            expected += (t.at[i][run * 7 + last % taps.n] ^ taps.flip) *
                        t.weights[last % taps.n % channels * taps.n_taps + i];
        }
        assert_int_equal(plain[last], expected);
        if (taps.period <= N) {
            msc_simd_plain.add_taps_quantize(plain_bytes, &taps, &f, &q);
            tested->add_taps_quantize(other_bytes, &best, &f, &q);
            assert_memory_equal(plain_bytes, other_bytes, (size_t)n);
        }
    }
}

// Windows of 3 columns of up to 4 rows, some of which lie beyond the ends of rows.
static void test_kernels_cpu_simd__columns(void **state) {
    enum { ROWS = MSC_SIMD_TAPS, TAPS = ROWS * MSC_SIMD_COLUMNS, MOST = 8 };
    (void)state;
    static struct taps t;
    struct msc_rng rng;
    struct sums s;
    msc_rng_seed(&rng, 7, 0);
    for (int round = 0; round < 200 && tested->add_columns; round++) {
        int64_t channels = 1 + (int64_t)msc_rng_below(&rng, 64);
        struct msc_simd_taps taps = random_taps(&t, &rng, channels, TAPS);
        struct msc_simd_columns c = {.rows = t.at,
                                     .n_rows = 1 + round % 3,
                                     .n = 1 + (int64_t)msc_rng_below(&rng, MOST),
                                     .n_used = ROWS,
                                     .n_shared = round % 4,
                                     .n_in = 1 + (int64_t)msc_rng_below(&rng, 12),
                                     .first = -(int64_t)msc_rng_below(&rng, 3),
                                     .stride = 1 + (int64_t)msc_rng_below(&rng, 4),
                                     .blank = t.x,
                                     .flip = taps.flip,
                                     .weights = t.packed[1],
                                     .channels = channels};
        int32_t sums[3 * MOST * 64], zero_point = 128;
        uint8_t bytes[3 * MOST * 64], byte;
        float scale = 300.0f, y;
        struct msc_quant quant = quant_of(&scale, &zero_point, false);
        struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
        struct msc_simd_finish f = random_sums(&s, &rng, 0.0f, INFINITY), one = f;
        f.bias = one.bias = s.scales;
        tested->pack_taps(t.packed[1], t.weights, channels, TAPS, channels);
        tested->add_columns(sums, &c);
        tested->add_columns_quantize(bytes, &c, &f, &q);
        for (int64_t i = 0; i < c.n_rows * c.n * channels; i++) {
            int64_t channel = i % channels, window = i / channels % c.n, row = i / channels / c.n;
            int32_t sum = 0;
            for (int64_t k = 0; k < TAPS; k++) {
                int64_t column = c.first + window * c.stride + k / ROWS;
                bool is_inside = column >= 0 && column < c.n_in;
                const uint8_t *x = t.at[row * ROWS + k % ROWS] + column * channels;
                sum +=
                    ((is_inside ? x : c.blank)[channel] ^ c.flip) * t.weights[channel * TAPS + k];
            }
            assert_int_equal(sums[i], sum);
            one.sums = &sum;
            one.offsets = f.offsets + channel;
            one.scales = f.scales + channel;
            one.bias = f.bias + channel;
            msc_simd_plain.finish(&y, &one, 1);
            msc_simd_plain.quantize(&byte, &y, 1, &q);
            assert_int_equal(bytes[i], byte);
        }
    }
}

static struct msc_simd_pool random_pool(int64_t offsets[9], struct msc_rng *rng, int round) {
    for (int i = 0; i < 9; i++) {
        offsets[i] = (int64_t)msc_rng_below(rng, 5000);
    }
    return (struct msc_simd_pool){.offsets = offsets,
                                  .n_taps = 1 + round % 9,
                                  .channels = 1 + (int64_t)msc_rng_below(rng, 200),
                                  .n_windows = 1 + round % 4,
                                  .step = round % 11};
}

static void test_kernels_cpu_simd__largest(void **state) {
    (void)state;
    static struct taps t;
    struct msc_rng rng;
    msc_rng_seed(&rng, 4, 0);
    random_taps(&t, &rng, 3, 1);
    for (int round = 0; round < 100; round++) {
        uint8_t plain[801], best[801], flip = round % 2 == 0 ? 0 : 0x80;
        int64_t offsets[9];
        struct msc_simd_pool p = random_pool(offsets, &rng, round);
        int64_t n = p.channels * p.n_windows;
        plain[n] = best[n] = 0xee;
        msc_simd_plain.largest(plain, t.x, &p, flip);
        tested->largest(best, t.x, &p, flip);
        assert_memory_equal(plain, best, (size_t)n + 1);
        int largest = -1000;
        for (int i = 0; i < p.n_taps; i++) {
            uint8_t x = t.x[(p.n_windows - 1) * p.step + offsets[i] + p.channels - 1];
            int value = flip == 0 ? x : (int8_t)x;
            largest = value > largest ? value : largest;
        }
        assert_int_equal(plain[n - 1], (uint8_t)largest);
    }
}

// Float pools with zeros of both signs, infinities and, in every other round, NaN.
static void test_kernels_cpu_simd__pools(void **state) {
    (void)state;
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, 1e-40f, NAN};
    static float x[6000];
    struct msc_rng rng;
    msc_rng_seed(&rng, 6, 0);
    for (int round = 0; round < 200; round++) {
        float plain[801], best[801], divisor = (float)(1 + round % 9);
        int64_t offsets[9];
        struct msc_simd_pool p = random_pool(offsets, &rng, round);
        int64_t n = p.channels * p.n_windows;
        for (int i = 0; i < 6000; i++) {
            uint32_t which = (uint32_t)msc_rng_below(&rng, 40);
            x[i] = which < 5u + (uint32_t)(round % 2) ? special[which]
                                                      : random_float(&rng, -1.0f, 1.0f);
        }
        plain[n] = best[n] = 7.0f;
        msc_simd_plain.largest_float(plain, x, &p);
        tested->largest_float(best, x, &p);
        assert_memory_equal(plain, best, (size_t)(n + 1) * sizeof(plain[0]));
        float largest = -INFINITY, sum = 0.0f;
        for (int i = 0; i < p.n_taps; i++) {
            float value = x[(p.n_windows - 1) * p.step + offsets[i] + p.channels - 1];
            largest = value > largest || isnan(value) ? value : largest;
            sum += value;
        }
        assert_true(isnan(largest) ? isnan(best[n - 1]) : best[n - 1] == largest);
        msc_simd_plain.mean(plain, x, &p, divisor);
        tested->mean(best, x, &p, divisor);
        assert_true(best[n] == 7.0f);
        assert_true(isnan(sum) ? isnan(best[n - 1]) : best[n - 1] == sum / divisor);
        for (int64_t i = 0; i < n; i++) {
            assert_true(isnan(plain[i]) ? isnan(best[i])
                                        : memcmp(&plain[i], &best[i], sizeof(plain[i])) == 0);
        }
    }
}

// Every element is moved once, for every size, and nothing is written past the last.
static void test_kernels_cpu_simd__transpose(void **state) {
    enum { MOST = 150, GAP = 3 };
    static uint8_t in[MOST * (MOST + GAP)], out[MOST * (MOST + GAP)];
    static uint32_t in4[MOST * (MOST + GAP)], out4[MOST * (MOST + GAP)];
    (void)state;
    const struct msc_simd *simd = tested;
    if (!simd->transpose1) {
        print_message("skipped: this table has no transposes\n");
        skip();
    }
    struct msc_rng rng;
    msc_rng_seed(&rng, 5, 0);
    for (int i = 0; i < MOST * (MOST + GAP); i++) {
        in[i] = (uint8_t)msc_rng_below(&rng, 255);
        in4[i] = (uint32_t)i;
    }
    for (int round = 0; round < 200; round++) {
        int64_t rows = 1 + (int64_t)msc_rng_below(&rng, MOST), in_row = MOST + round % (GAP + 1);
        int64_t cols = 1 + (int64_t)msc_rng_below(&rng, MOST), out_row = rows + round % (GAP + 1);
        memset(out, 0xff, sizeof(out));
        memset(out4, 0xff, sizeof(out4));
        simd->transpose1(out, out_row, in, in_row, rows, cols);
        simd->transpose4(out4, out_row, in4, in_row, rows, cols);
        for (int64_t c = 0; c < cols; c++) {
            for (int64_t r = 0; r < out_row; r++) {
                int64_t at = r * in_row + c, to = c * out_row + r;
                assert_int_equal(out[to], r < rows ? in[at] : 0xff);
                assert_int_equal(out4[to], r < rows ? in4[at] : 0xffffffff);
            }
        }
        assert_int_equal(out[cols * out_row], 0xff);
        assert_int_equal(out4[cols * out_row], 0xffffffff);
    }
}

// Rows of any length; every eighth round includes NaN and infinities.
static void set_row(float x[], int n, struct msc_rng *rng, int round) {
    static const float special[] = {-INFINITY, NAN, -0.0f, -3e38f, 1e-42f, INFINITY};
    float width = round % 3 == 0 ? 300.0f : 8.0f;
    for (int i = 0; i < n; i++) {
        x[i] = random_float(rng, -width, width);
    }
    for (int i = 0; round % 8 == 7 && i < 3; i++) {
        x[msc_rng_below(rng, (uint32_t)n)] = special[msc_rng_below(rng, 6)];
    }
}

// Checks for the same bits, or NaN in both.
static void check_same(const float a[], const float b[], int n) {
    for (int i = 0; i < n; i++) {
        assert_true(isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], sizeof(a[i])) == 0);
    }
}

static void test_kernels_cpu_simd__softmax(void **state) {
    (void)state;
    struct msc_rng rng;
    msc_rng_seed(&rng, 6, 0);
    for (int round = 0; round < 800; round++) {
        float x[2 * N], plain[2 * N + 1], best[2 * N + 1];
        int n = round < 200 ? 1 + round : 1 + (int)msc_rng_below(&rng, 2 * N);
        bool is_log = round % 2 == 1;
        set_row(x, n, &rng, round);
        plain[n] = best[n] = 7.0f;
        memcpy(plain, x, (size_t)n * sizeof(x[0]));
        (is_log ? msc_simd_plain.log_softmax : msc_simd_plain.softmax)(plain, plain, n);
        (is_log ? tested->log_softmax : tested->softmax)(best, x, n);
        check_same(plain, best, n + 1);
        assert_true(best[n] == 7.0f);
        double max = -INFINITY, sum = 0;
        for (int i = 0; i < n; i++) {
            max = x[i] > max ? x[i] : max;
        }
        for (int i = 0; i < n; i++) {
            sum += exp(x[i] - max);
        }
        for (int i = 0; i < n; i++) {
            double y = is_log ? x[i] - max - log(sum) : exp(x[i] - max) / sum;
            double allowed = is_log ? 1e-6 * fabs(y) + 2e-6 : 2e-6 * y + 1e-44;
            assert_true(isnan(y) ? isnan(best[i]) : fabs(best[i] - y) <= allowed || best[i] == y);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_simd__quantize),
        cmocka_unit_test(test_kernels_cpu_simd__finish),
        cmocka_unit_test(test_kernels_cpu_simd__taps),
        cmocka_unit_test(test_kernels_cpu_simd__columns),
        cmocka_unit_test(test_kernels_cpu_simd__largest),
        cmocka_unit_test(test_kernels_cpu_simd__pools),
        cmocka_unit_test(test_kernels_cpu_simd__transpose),
        cmocka_unit_test(test_kernels_cpu_simd__softmax),
    };
    int n_failed = 0;
    msc_test_select(argc, argv);
    for (size_t i = 0; (tested = msc_simd_of_machine(i)) != NULL; i++) {
        print_message("loops: %s\n", tested->isa);
        n_failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
#ifdef TEST_HAS_VNNI
    tested = vnni_of_avx512();
    if (tested) {
        print_message("loops: %s\n", tested->isa);
        n_failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
#endif
    return n_failed;
}
