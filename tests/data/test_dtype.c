// Element types: names, sizes, and conversion of float32 to float16 and bfloat16 and back. Expected
// bits come from numpy and torch.
#include "data/dtype.h"

#include "data_test.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_data_dtype__names_and_sizes(void **state) {
    (void)state;
    for (int i = MSC_DTYPE_NONE + 1; i < MSC_DTYPE_COUNT; i++) {
        assert_int_equal(msc_dtype_find(msc_dtype_name((enum msc_dtype)i)), i);
        assert_true(msc_dtype_bytes((enum msc_dtype)i) > 0);
    }
    assert_int_equal(msc_dtype_find("float31"), MSC_DTYPE_NONE);
    assert_int_equal(msc_dtype_bytes(MSC_DTYPE_NONE), 0);
    assert_int_equal(msc_dtype_bytes(MSC_DTYPE_BF16), 2);
    assert_true(msc_dtype_is_float(MSC_DTYPE_BF16) && !msc_dtype_is_float(MSC_DTYPE_I64));
    assert_true(msc_dtype_is_integer(MSC_DTYPE_U8) && !msc_dtype_is_integer(MSC_DTYPE_BOOL));
}

static void test_data_dtype__f16_from_f32(void **state) {
    (void)state;
    // Expected: numpy 1.24, np.float32(x).astype(np.float16).view(np.uint16)
    static const struct {
        uint32_t from;
        uint16_t to;
    } rows[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3c00}, {0x3eaaaaab, 0x3555},
        {0x477fe000, 0x7bff}, {0x477fefff, 0x7bff}, {0x477ff000, 0x7c00}, {0x49742400, 0x7c00},
        {0x38800000, 0x0400}, {0x387fc000, 0x03ff}, {0x33800000, 0x0001}, {0x33000000, 0x0000},
        {0x33000001, 0x0001}, {0x33c00000, 0x0002}, {0x45001000, 0x6800}, {0x45003000, 0x6802},
        {0xbf802000, 0xbc01}, {0x7f800000, 0x7c00}, {0x38000000, 0x0200}, {0x3dcccccd, 0x2e66},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(msc_f32_to_f16(float_of(rows[i].from)), rows[i].to);
    }
    assert_true(isnan(msc_f16_to_f32(msc_f32_to_f16(NAN))));
    assert_true(isnan(msc_f16_to_f32(msc_f32_to_f16(float_of(0x7f800001)))));
}

static void test_data_dtype__f16_there_and_back(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = msc_f16_to_f32((uint16_t)bits);
        if (isnan(value)) {
            assert_true((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0);
        } else {
            assert_int_equal(msc_f32_to_f16(value), bits);
        }
    }
    assert_true(msc_f16_to_f32(0x3555) == 0.333251953125f);
    assert_true(msc_f16_to_f32(0x8001) == -5.9604644775390625e-08f);
}

static void test_data_dtype__bf16(void **state) {
    (void)state;
    // Expected: torch 1.13, torch.tensor(x).to(torch.bfloat16).view(torch.int16)
    static const struct {
        float from;
        uint16_t to;
    } rows[] = {
        {1.0f, 0x3f80},        {1.0f / 3.0f, 0x3eab}, {3.140625f, 0x4049},
        {1.00390625f, 0x3f80}, {1.01171875f, 0x3f82}, {3.3895314e38f, 0x7f7f},
        {3.4e38f, 0x7f80},     {-0.1f, 0xbdcd},       {1e-40f, 0x0001},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(msc_f32_to_bf16(rows[i].from), rows[i].to);
    }
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = msc_bf16_to_f32((uint16_t)bits);
        if (!isnan(value)) {
            assert_int_equal(msc_f32_to_bf16(value), bits);
        }
    }
    assert_true(isnan(msc_bf16_to_f32(msc_f32_to_bf16(float_of(0x7fffffff)))));
}

// Arrays are converted in another way than single numbers. Both must give the same bits.
static void test_data_dtype__arrays(void **state) {
    (void)state;
    static const enum msc_dtype types[] = {MSC_DTYPE_F16, MSC_DTYPE_BF16};
    for (int t = 0; t < 2; t++) {
        bool is_half = types[t] == MSC_DTYPE_F16;
        for (uint32_t i = 0; i < 0x10000; i++) {
            // Each number of the type, each boundary between two of them, and the float32 numbers
            // next to the boundary.
            uint16_t bits = (uint16_t)i, narrow[9];
            float back, wide = is_half ? msc_f16_to_f32(bits) : msc_bf16_to_f32(bits);
            msc_f32_widen(&back, &bits, types[t], 1);
            assert_memory_equal(&back, &wide, sizeof wide);
            uint32_t from = 0, half = is_half ? 0x1000 : 0x8000;
            memcpy(&from, &wide, sizeof wide);
            const float near[4] = {wide, float_of(from + half), float_of(from + half - 1),
                                   float_of(from + half + 1)};
            float x[9]; // more than a vector of eight
            for (int k = 0; k < 9; k++) {
                x[k] = near[k % 4];
            }
            msc_f32_narrow(narrow, types[t], x, 9);
            for (int k = 0; k < 9; k++) {
                assert_int_equal(narrow[k], is_half ? msc_f32_to_f16(x[k]) : msc_f32_to_bf16(x[k]));
            }
        }
        uint16_t narrow;
        for (uint32_t i = 0x32000000; i < 0x39000000; i += 0x101) { // subnormal halves
            float x = float_of(i);
            msc_f32_narrow(&narrow, types[t], &x, 1);
            assert_int_equal(narrow, is_half ? msc_f32_to_f16(x) : msc_f32_to_bf16(x));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_dtype__names_and_sizes),
        cmocka_unit_test(test_data_dtype__f16_from_f32),
        cmocka_unit_test(test_data_dtype__f16_there_and_back),
        cmocka_unit_test(test_data_dtype__bf16),
        cmocka_unit_test(test_data_dtype__arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
