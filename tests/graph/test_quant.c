// Fake quantisation: per tensor, per channel and in groups, in place, and the parameters that are
// refused. Expected values come from numpy and torch.
#include "graph/quant.h"

#include "base/alloc.h"

#include "tests/msc_test.h"

#include <math.h>

// Expected values from numpy 1.24 in float32: q = clip(rint(x / s) + z, low, high), y = (q - z) *
// s. The cases include ties, values whose quotient differs from x * (1 / s), and quotients that
// overflow.
static const struct {
    float x, scale;
    int32_t zero_point, low, high;
    int32_t q;
    float y;
} cases[] = {
    {-0x1.000000p-2f, 0x1.99999ap-4f, 0, -127, 127, -2, -0x1.99999ap-3f},
    {-0x1.333334p-3f, 0x1.99999ap-4f, 0, -127, 127, -2, -0x1.99999ap-3f},
    {-0x1.99999ap-5f, 0x1.99999ap-4f, 0, -127, 127, 0, 0x0.0p+0f},
    {0x1.99999ap-5f, 0x1.99999ap-4f, 0, -127, 127, 0, 0x0.0p+0f},
    {0x1.333334p-3f, 0x1.99999ap-4f, 0, -127, 127, 2, 0x1.99999ap-3f},
    {0x1.000000p-2f, 0x1.99999ap-4f, 0, -127, 127, 2, 0x1.99999ap-3f},
    {0x1.666666p-2f, 0x1.99999ap-4f, 0, -127, 127, 4, 0x1.99999ap-2f},
    {-0x1.400000p-1f, 0x1.000000p-2f, 3, 0, 15, 1, -0x1.000000p-1f},
    {-0x1.800000p-2f, 0x1.000000p-2f, 3, 0, 15, 1, -0x1.000000p-1f},
    {-0x1.000000p-3f, 0x1.000000p-2f, 3, 0, 15, 3, 0x0.0p+0f},
    {0x1.000000p-3f, 0x1.000000p-2f, 3, 0, 15, 3, 0x0.0p+0f},
    {0x1.800000p-2f, 0x1.000000p-2f, 3, 0, 15, 5, 0x1.000000p-1f},
    {0x1.400000p-1f, 0x1.000000p-2f, 3, 0, 15, 5, 0x1.000000p-1f},
    {0x1.f7c07ap+2f, 0x1.474f94p-4f, 0, -127, 127, 98, 0x1.f531dap+2f},
    {0x1.92ae8ep-2f, 0x1.5ea272p-8f, 0, -127, 127, 74, 0x1.956bd4p-2f},
    {0x1.05ea9ep-4f, 0x1.1c1ce0p-9f, 0, -127, 127, 30, 0x1.0a5b12p-4f},
    {0x1.a1e692p+2f, 0x1.0780fep-4f, 0, -127, 127, 102, 0x1.a3f594p+2f},
    {0x1.0d287cp+2f, 0x1.30e318p-4f, 0, -127, 127, 57, 0x1.0f8a42p+2f},
    {0x1.2562c0p-1f, 0x1.bf1060p-5f, 0, -127, 127, 11, 0x1.335b42p-1f},
    {0x1.93e594p+99f, 0x1.000000p-1f, 7, 0, 255, 255, 0x1.f00000p+6f},
    {-0x1.93e594p+99f, 0x1.000000p-1f, 7, 0, 255, 0, -0x1.c00000p+1f},
    {0x0.0p+0f, 0x1.333334p-2f, 128, 0, 255, 128, 0x0.0p+0f},
    {-0x0.0p+0f, 0x1.333334p-2f, 0, -7, 7, 0, 0x0.0p+0f},
    {-0x1.99999ap-4f, 0x1.000000p-1f, 0, -7, 7, 0, 0x0.0p+0f},
    {0x1.16c200p-133f, 0x1.be0000p-137f, 0, -127, 127, 10, 0x1.16c000p-133f},
    {0x1.ff933cp+127f, 0x1.b38fb8p-127f, 0, -32767, 32767, 32767, 0x1.b38c50p-112f},
    {0x1.388134p+14f, 0x1.666666p-1f, 32768, 0, 65535, 61340, 0x1.38819ap+14f},
    {0x1.400000p+2f, 0x1.0624dep-10f, -4, -8, 7, 7, 0x1.6872b2p-7f},
    {0x1.ccccccp-1f, 0x1.333334p-1f, 1, 0, 3, 2, 0x1.333334p-1f},
};
#define N_CASES ((int)(sizeof(cases) / sizeof(cases[0])))

// Compares bits, so -0 and 0 differ.
static void check_floats(const float found[], const float expected[], int n) {
    assert_memory_equal(found, expected, (size_t)n * sizeof(float));
}

static void test_graph_quant__values(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        int32_t q = msc_quantize_value(cases[i].x, cases[i].scale, cases[i].zero_point,
                                       cases[i].low, cases[i].high);
        assert_int_equal(q, cases[i].q);
    }
}

// Runs of many lengths, so that every lane of the vector loop and its tail are tested.
static void test_graph_quant__runs(void **state) {
    (void)state;
    enum { LONGEST = 67 };
    for (int i = 0; i < N_CASES; i++) {
        float x[LONGEST], y[LONGEST], expected[LONGEST];
        int32_t q[LONGEST];
        for (int k = 0; k < LONGEST; k++) {
            x[k] = cases[i].x;
            expected[k] = cases[i].y;
        }
        for (int n = 1; n <= LONGEST; n += 11) {
            msc_fake_quantize_run(y, x, n, cases[i].scale, cases[i].zero_point, cases[i].low,
                                  cases[i].high);
            check_floats(y, expected, n);
            msc_quantize_run(q, x, n, cases[i].scale, cases[i].zero_point, cases[i].low,
                             cases[i].high);
            for (int k = 0; k < n; k++) {
                assert_int_equal(q[k], cases[i].q);
            }
        }
    }
}

// Quantises in place, as the evaluators do.
static void test_graph_quant__in_place(void **state) {
    (void)state;
    float x[] = {0.3f, -0.2f, 9.0f};
    msc_fake_quantize_run(x, x, 3, 0.25f, 0, -7, 7);
    check_floats(x, (const float[]){0.25f, -0.25f, 1.75f}, 3);
}

static void test_graph_quant__not_finite(void **state) {
    (void)state;
    float x[] = {NAN, INFINITY, -INFINITY}, y[3];
    int32_t q[3];
    msc_fake_quantize_run(y, x, 3, 0.5f, 2, 0, 15);
    assert_true(isnan(y[0]));
    assert_true(y[1] == 6.5f && y[2] == -1.0f);
    msc_quantize_run(q, x, 3, 0.5f, 2, 0, 15);
    assert_int_equal(q[0], 0);
    assert_int_equal(q[1], 15);
    assert_int_equal(q[2], 0);
}

// Quantising a quantised value does not change it, for every 8-bit integer and many scales.
static void test_graph_quant__round_trip(void **state) {
    (void)state;
    for (int k = 1; k <= 200; k++) {
        float scale = 0.0007f * (float)(k * k);
        for (int32_t zero_point = 0; zero_point <= 255; zero_point += 51) {
            for (int32_t q = 0; q <= 255; q++) {
                float y = (float)(q - zero_point) * scale, again;
                assert_int_equal(msc_quantize_value(y, scale, zero_point, 0, 255), q);
                msc_fake_quantize_run(&again, &y, 1, scale, zero_point, 0, 255);
                check_floats(&again, &y, 1);
            }
        }
    }
}

static const float matrix[] = {0.11f, -0.52f, 0.333f, 1.0f, -1.0f, 0.05f}; // shape [2, 3]

static struct msc_array *make_matrix(void) {
    struct msc_array *x;
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 2, (const int64_t[]){2, 3}, matrix));
    return x;
}

static void check_array(const struct msc_quant *quant, const int32_t q[6], const float y[6]) {
    struct msc_array *x = make_matrix(), *fake, *whole;
    assert_ok(msc_fake_quantize_array(&fake, x, quant));
    assert_ok(msc_quantize_array(&whole, x, quant));
    assert_int_equal(msc_array_dtype(fake), MSC_DTYPE_F32);
    assert_int_equal(msc_array_dtype(whole), MSC_DTYPE_I32);
    assert_int_equal(msc_array_dim(whole, 1), 3);
    check_floats(msc_array_data(fake), y, 6);
    assert_memory_equal(msc_array_data(whole), q, 6 * sizeof(q[0]));
    msc_array_release(fake);
    msc_array_release(whole);
    msc_array_release(x);
}

// Expected values from numpy in float32, with the parameters broadcast along their axis.
static void test_graph_quant__per_channel(void **state) {
    (void)state;
    struct msc_quant quant = {.bits = 8,
                              .low = -127,
                              .high = 127,
                              .axis = 1,
                              .n = 3,
                              .scales = (const float[]){0.01f, 0.02f, 0.003f},
                              .zero_points = (const int32_t[]){0, 1, -2}};
    check_array(&quant, (const int32_t[]){11, -25, 109, 100, -49, 15},
                (const float[]){0x1.c28f5cp-4f, -0x1.0a3d70p-1f, 0x1.54fdf4p-2f, 1.0f, -1.0f,
                                0x1.a1cac0p-5f});
    quant = (struct msc_quant){.bits = 4,
                               .low = -7,
                               .high = 7,
                               .axis = 0,
                               .n = 2,
                               .scales = (const float[]){0.01f, 0.02f},
                               .zero_points = (const int32_t[]){0, 1}};
    check_array(&quant, (const int32_t[]){7, -7, 7, 7, -7, 3},
                (const float[]){0x1.1eb852p-4f, -0x1.1eb852p-4f, 0x1.1eb852p-4f, 0x1.eb851ep-4f,
                                -0x1.47ae14p-3f, 0x1.47ae14p-5f});
}

static void test_graph_quant__refuses(void **state) {
    (void)state;
    struct msc_array *x = make_matrix(), *whole, *out;
    struct msc_quant quant = {.bits = 8,
                              .low = -127,
                              .high = 127,
                              .axis = 0,
                              .n = 3,
                              .scales = (const float[]){1, 1, 1},
                              .zero_points = (const int32_t[]){0, 0, 0}};
    assert_int_equal(msc_fake_quantize_array(&out, x, &quant), MSC_E_INVALID);
    assert_message("3 scales along axis 0 do not fit a tensor of [2,3]");
    quant.axis = 2;
    assert_int_equal(msc_quantize_array(&out, x, &quant), MSC_E_INVALID);
    quant.axis = -1;
    assert_int_equal(msc_quantize_array(&out, x, &quant), MSC_E_INVALID);
    quant.n = 1;
    assert_ok(msc_array_create(&whole, MSC_DTYPE_I64, 1, (const int64_t[]){2}));
    assert_int_equal(msc_fake_quantize_array(&out, whole, &quant), MSC_E_INVALID);
    assert_message("expected float32");
    msc_array_release(whole);
    msc_array_release(x);
}

// Expected: the nearest number by numpy's float16 (of x clipped to +-65504) and torch's bfloat16
// (clipped to its largest number). The cases are ties in both directions, subnormals and
// overflow.
static void test_graph_quant__float_types(void **state) {
    static const struct {
        float x, f16, bf16;
    } rows[] = {
        {0x1.0p+0f, 0x1.0p+0f, 0x1.0p+0f},
        {0x1.002p+0f, 0x1.0p+0f, 0x1.0p+0f},
        {0x1.006p+0f, 0x1.008p+0f, 0x1.0p+0f},
        {0x1.002002p+0f, 0x1.004p+0f, 0x1.0p+0f},
        {-0x1.01p+0f, -0x1.01p+0f, -0x1.0p+0f},
        {0x1.99999ap-4f, 0x1.998p-4f, 0x1.9ap-4f},
        {-0x1.921fb6p+1f, -0x1.92p+1f, -0x1.92p+1f},
        {0x1.ffcp+15f, 0x1.ffcp+15f, 0x1.0p+16f},
        {0x1.ffdffap+15f, 0x1.ffcp+15f, 0x1.0p+16f},
        {0x1.ffep+15f, 0x1.ffcp+15f, 0x1.0p+16f},
        {-0x1.93e594p+99f, -0x1.ffcp+15f, -0x1.94p+99f},
        {0x1.ff933cp+127f, 0x1.ffcp+15f, 0x1.fep+127f},
        {-0x1.ffp+127f, -0x1.ffcp+15f, -0x1.fep+127f},
        {0x1.0p-14f, 0x1.0p-14f, 0x1.0p-14f},
        {0x1.ffep-15f, 0x1.0p-14f, 0x1.0p-14f},
        {0x1.ffb48p-15f, 0x1.ff8p-15f, 0x1.0p-14f},
        {0x1.0p-24f, 0x1.0p-24f, 0x1.0p-24f},
        {0x1.0p-25f, 0x0.0p+0f, 0x1.0p-25f},
        {0x1.00068ep-25f, 0x1.0p-24f, 0x1.0p-25f},
        {-0x1.0p-26f, -0x0.0p+0f, -0x1.0p-26f},
        {0x1.8p-24f, 0x1.0p-23f, 0x1.8p-24f},
        {0x1.4p-23f, 0x1.0p-23f, 0x1.4p-23f},
        {0x1.16c2p-133f, 0x0.0p+0f, 0x1.0p-133f},
        {-0x0.0p+0f, -0x0.0p+0f, -0x0.0p+0f},
        {0x1.01b2b2p-25f, 0x1.0p-24f, 0x1.02p-25f},
        {0x1.55553ep-2f, 0x1.554p-2f, 0x1.56p-2f},
    };
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    struct msc_quant f16 = msc_quant_of_float(MSC_DTYPE_F16);
    struct msc_quant bf16 = msc_quant_of_float(MSC_DTYPE_BF16);
    float x[N], expected[2][N], found[N];
    struct msc_array *in, *out;
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = rows[i].x;
        expected[0][i] = rows[i].f16;
        expected[1][i] = rows[i].bf16;
    }
    msc_quant_apply_run(found, x, N, &bf16);
    check_floats(found, expected[1], N);
    int64_t dims[1] = {N};
    assert_ok(msc_array_create_from(&in, MSC_DTYPE_F32, 1, dims, x));
    assert_ok(msc_fake_quantize_array(&out, in, &f16));
    check_floats(msc_array_data(out), expected[0], N);
    msc_array_release(out);
    assert_int_not_equal(msc_quantize_array(&out, in, &f16), MSC_OK);
    assert_message("float16 is not an integer type");
    msc_array_release(in);
    const float odd[] = {INFINITY, -INFINITY, NAN};
    msc_quant_apply_run(found, odd, 3, &f16);
    assert_true(found[0] == 65504.0f && found[1] == -65504.0f && isnan(found[2]));
    assert_int_equal(f16.bits, 16);
    assert_false(msc_hash_equal(f16.hash, bf16.hash));
}

// Expected values from numpy: scales and zero points are repeated along the axis until every
// element has its own, then the formula above applies.
static void check_groups(const struct msc_quant *model, int n_dims, const int64_t dims[],
                         const int32_t integers[12], const float expected[12]) {
    static const float x[12] = {0.3f,  -1.7f, 2.2f, 0.9f, -0.4f, 1.1f,
                                0.25f, -3.3f, 0.6f, 2.9f, -0.7f, 1.3f};
    struct msc_array *in, *out;
    struct msc_quant q = *model;
    msc_quant_seal(&q);
    assert_ok(msc_array_create_from(&in, MSC_DTYPE_F32, n_dims, dims, x));
    assert_ok(msc_quantize_array(&out, in, &q));
    assert_memory_equal(msc_array_data(out), integers, 12 * sizeof(int32_t));
    msc_array_release(out);
    assert_ok(msc_fake_quantize_array(&out, in, &q));
    check_floats(msc_array_data(out), expected, 12);
    msc_array_release(out);
    q.n++;
    assert_int_not_equal(msc_quantize_array(&out, in, &q), MSC_OK);
    assert_message("do not fit a tensor");
    msc_array_release(in);
}

static void test_graph_quant__groups(void **state) {
    static const float scales[] = {0.3f, 0.2f, 0.5f, 0.4f};
    static const float eight[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
    static const int32_t zeros[] = {3, 0, 1, 2}, none[8] = {0};
    (void)state;
    struct msc_quant q = {.bits = 4,
                          .low = -7,
                          .high = 7,
                          .axis = 1,
                          .n = 4,
                          .group_size = 4,
                          .group_axes = 1,
                          .scales = scales,
                          .zero_points = none};
    // [2, 6] in groups of 4 and 2 columns, and the same elements as [2, 2, 3].
    static const int32_t rows[] = {1, -6, 7, 3, -2, 6, 0, -7, 1, 6, -2, 3};
    static const float row_values[] = {0.300000012f,  -1.80000007f, 2.10000014f,   0.900000036f,
                                       -0.400000006f, 1.20000005f,  0.0f,          -3.5f,
                                       0.5f,          3.0f,         -0.800000012f, 1.20000005f};
    check_groups(&q, 2, (const int64_t[]){2, 6}, rows, row_values);
    q.group_axes = 2;
    check_groups(&q, 3, (const int64_t[]){2, 2, 3}, rows, row_values);
    // [6, 2] in groups along the first axis, with zero points.
    q.axis = 0;
    q.group_axes = 1;
    q.low = 0;
    q.zero_points = zeros;
    check_groups(&q, 2, (const int64_t[]){6, 2},
                 (const int32_t[]){4, 0, 7, 4, 2, 6, 4, 0, 2, 7, 0, 5},
                 (const float[]){0.300000012f, 0.0f, 1.20000005f, 0.800000012f, -0.300000012f,
                                 1.20000005f, 0.300000012f, 0.0f, 0.5f, 2.0f, -0.5f, 1.20000005f});
    // [1, 3, 2, 2] in groups of 2 and 1 along the second axis.
    q.axis = 1;
    q.low = -7;
    q.n = 8;
    q.group_size = 2;
    q.scales = eight;
    q.zero_points = none;
    check_groups(&q, 4, (const int64_t[]){1, 3, 2, 2},
                 (const int32_t[]){3, -7, 7, 2, -4, 6, 1, -7, 1, 5, -1, 2},
                 (const float[]){0.300000012f, -1.39999998f, 2.10000014f, 0.800000012f,
                                 -0.400000006f, 1.20000005f, 0.300000012f, -2.79999995f, 0.5f, 3.0f,
                                 -0.699999988f, 1.60000002f});
}

static void test_graph_quant__hash(void **state) {
    (void)state;
    float scales[] = {0.5f, 0.25f};
    int32_t zero_points[] = {0, 1};
    struct msc_quant a = {
        .bits = 8, .low = -127, .high = 127, .n = 2, .scales = scales, .zero_points = zero_points};
    struct msc_quant b = a;
    const float copy[] = {0.5f, 0.25f};
    b.scales = copy;
    msc_quant_seal(&a);
    msc_quant_seal(&b);
    assert_true(msc_hash_equal(a.hash, b.hash));
    int32_t *const members[] = {&b.bits, &b.low, &b.high, &b.axis, &zero_points[1], &b.group_size};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        *members[i] += 1;
        msc_quant_seal(&b);
        assert_false(msc_hash_equal(a.hash, b.hash));
        *members[i] -= 1;
    }
    scales[1] = 0.125f;
    msc_quant_seal(&b);
    assert_true(msc_hash_equal(a.hash, b.hash));
    msc_quant_seal(&a);
    assert_false(msc_hash_equal(a.hash, b.hash));
}

// From DynamicQuantizeLinear and DequantizeLinear in ONNX Runtime 1.32. The first three cases are
// the examples of ONNX's specification.
static const struct {
    float x[6], scale;
    int32_t zero_point;
    float y[6];
} dynamic_cases[] = {
    {{0, 2, -3, -2.5f, 1.34f, 0.5f},
     0x1.414142p-6f,
     153,
     {0, 0x1p+1f, -0x1.8p+1f, -0x1.3ebecp+1f, 0x1.555556p+0f, 0x1.050506p-1f}},
    {{-1, -2.1f, -1.3f, -2.5f, -3.34f, -4},
     0x1.010102p-6f,
     255,
     {-0x1.010102p+0f, -0x1.0d0d0ep+1f, -0x1.4d4d4ep+0f, -0x1.3f3f4p+1f, -0x1.ababaep+1f, -4}},
    {{1, 2.1f, 1.3f, 2.5f, 3.34f, 4},
     0x1.010102p-6f,
     0,
     {0x1.010102p+0f, 0x1.0d0d0ep+1f, 0x1.4d4d4ep+0f, 0x1.3f3f4p+1f, 0x1.ababaep+1f, 4}},
    {{0, 0, 0, 0, 0, 0}, 1, 0, {0, 0, 0, 0, 0, 0}},
    {{-0.5f, 0.5f, -0.002f, 0.002f, 0.1f, -0.1f}, // the zero point is a tie
     0x1.010102p-8f,
     127,
     {-0x1.fdfep-2f, 0x1.fdfep-2f, -0x1.010102p-8f, 0x1.010102p-8f, 0x1.919194p-4f,
      -0x1.919194p-4f}},
    {{-3, -1, -0.5f, 252, 126, 1.5f}, 1, 3, {-3, -1, 0, 252, 126, 2}},
};

static void test_graph_quant__dynamic(void **state) {
    const struct msc_quant q = msc_quant_dynamic();
    const int64_t n = 6;
    (void)state;
    for (size_t i = 0; i < sizeof(dynamic_cases) / sizeof(dynamic_cases[0]); i++) {
        float scale, y[6];
        int32_t zero_point;
        struct msc_array *x, *found;
        msc_quant_find_dynamic(&scale, &zero_point, dynamic_cases[i].x, n);
        check_floats(&scale, &dynamic_cases[i].scale, 1);
        assert_int_equal(zero_point, dynamic_cases[i].zero_point);
        msc_quant_apply_run(y, dynamic_cases[i].x, n, &q);
        check_floats(y, dynamic_cases[i].y, 6);
        assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 1, &n, dynamic_cases[i].x));
        assert_ok(msc_fake_quantize_array(&found, x, &q));
        check_floats(msc_array_data(found), dynamic_cases[i].y, 6);
        msc_array_release(x);
        msc_array_release(found);
    }
}

// Elements in all lanes and after the last full block of lanes; NaN does not count.
static void test_graph_quant__dynamic_range(void **state) {
    enum { MOST = 100 };
    (void)state;
    for (int n = 1; n <= MOST; n++) {
        for (int at = 0; at < n; at++) {
            float x[MOST] = {0}, scale;
            int32_t zero_point;
            x[at] = -255;
            x[(at + 1) % n] = n > 1 ? NAN : -255;
            msc_quant_find_dynamic(&scale, &zero_point, x, n);
            assert_true(scale == 1 && zero_point == 255);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_quant__values),
        cmocka_unit_test(test_graph_quant__runs),
        cmocka_unit_test(test_graph_quant__in_place),
        cmocka_unit_test(test_graph_quant__not_finite),
        cmocka_unit_test(test_graph_quant__float_types),
        cmocka_unit_test(test_graph_quant__groups),
        cmocka_unit_test(test_graph_quant__round_trip),
        cmocka_unit_test(test_graph_quant__per_channel),
        cmocka_unit_test(test_graph_quant__refuses),
        cmocka_unit_test(test_graph_quant__hash),
        cmocka_unit_test(test_graph_quant__dynamic),
        cmocka_unit_test(test_graph_quant__dynamic_range),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
