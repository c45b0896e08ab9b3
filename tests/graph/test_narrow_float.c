// The narrow float formats of ONNX: encoding and decoding, compared with the onnx package.
#include "graph/narrow_float.h"

#include "tests/msc_test.h"

#include <math.h>

static const char *const names[] = {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                    "float8e5m2fnuz"};

// Codes that onnx.helper.float32_to_float8e4m3 and float32_to_float8e5m2 of onnx 1.16.2 give for
// each format, with and without saturation. The values are zeros, underflow, ties among subnormal
// and normal numbers, the largest numbers, and overflow.
static void test_graph_narrow_float__encode(void **state) {
    static const struct {
        float x;
        uint8_t codes[8];
    } rows[] = {
        {0.0f, {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}},
        {-0.0f, {0x80, 0x80, 0x00, 0x00, 0x80, 0x80, 0x00, 0x00}},
        {1e-09f, {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}},
        {0.0009765625f, {0x00, 0x00, 0x01, 0x01, 0x14, 0x14, 0x18, 0x18}},
        {0.00146484375f, {0x01, 0x01, 0x02, 0x02, 0x16, 0x16, 0x1a, 0x1a}},
        {0.001953125f, {0x01, 0x01, 0x02, 0x02, 0x18, 0x18, 0x1c, 0x1c}},
        {-0.0029296875f, {0x82, 0x82, 0x83, 0x83, 0x9a, 0x9a, 0x9e, 0x9e}},
        {0.0146484375f, {0x08, 0x08, 0x0f, 0x0f, 0x24, 0x24, 0x28, 0x28}},
        {0.3f, {0x2a, 0x2a, 0x32, 0x32, 0x35, 0x35, 0x39, 0x39}},
        {-1.0f, {0xb8, 0xb8, 0xc0, 0xc0, 0xbc, 0xbc, 0xc0, 0xc0}},
        {1.0625f, {0x38, 0x38, 0x40, 0x40, 0x3c, 0x3c, 0x40, 0x40}},
        {1.1875f, {0x3a, 0x3a, 0x42, 0x42, 0x3d, 0x3d, 0x41, 0x41}},
        {-17.0f, {0xd8, 0xd8, 0xe0, 0xe0, 0xcc, 0xcc, 0xd0, 0xd0}},
        {232.0f, {0x76, 0x76, 0x7e, 0x7e, 0x5b, 0x5b, 0x5f, 0x5f}},
        {240.0f, {0x77, 0x77, 0x7f, 0x7f, 0x5c, 0x5c, 0x60, 0x60}},
        {248.0f, {0x78, 0x78, 0x7f, 0x80, 0x5c, 0x5c, 0x60, 0x60}},
        {-256.0f, {0xf8, 0xf8, 0xff, 0x80, 0xdc, 0xdc, 0xe0, 0xe0}},
        {432.0f, {0x7e, 0x7e, 0x7f, 0x80, 0x5f, 0x5f, 0x63, 0x63}},
        {464.0f, {0x7e, 0x7e, 0x7f, 0x80, 0x5f, 0x5f, 0x63, 0x63}},
        {465.0f, {0x7e, 0x7f, 0x7f, 0x80, 0x5f, 0x5f, 0x63, 0x63}},
        {-512.0f, {0xfe, 0xff, 0xff, 0x80, 0xe0, 0xe0, 0xe4, 0xe4}},
        {57344.0f, {0x7e, 0x7f, 0x7f, 0x80, 0x7b, 0x7b, 0x7f, 0x7f}},
        {1e+30f, {0x7e, 0x7f, 0x7f, 0x80, 0x7b, 0x7c, 0x7f, 0x80}},
        {INFINITY, {0x7e, 0x7f, 0x7f, 0x80, 0x7b, 0x7c, 0x7f, 0x80}},
        {-INFINITY, {0xfe, 0xff, 0xff, 0x80, 0xfb, 0xfc, 0xff, 0x80}},
        {NAN, {0x7f, 0x7f, 0x80, 0x80, 0x7f, 0x7f, 0x80, 0x80}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int k = 0; k < 8; k++) {
            uint8_t code =
                msc_narrow_float_encode(msc_narrow_float_find(names[k / 2]), rows[i].x, k % 2 == 0);
            assert_int_equal(code, rows[i].codes[k]);
        }
    }
}

// Numbers that onnx.numpy_helper.float8e4m3_to_float32 and float8e5m2_to_float32 of onnx 1.16.2
// give.
static void test_graph_narrow_float__decode(void **state) {
    static const uint8_t codes[] = {0x01, 0x07, 0x3c, 0x7b, 0x7e, 0x7f, 0x80, 0x85, 0xc3, 0xfc};
    static const float numbers[4][10] = {
        {0.001953125f, 0.013671875f, 1.5f, 352, 448, NAN, -0.0f, -0.009765625f, -2.75f, -384},
        {0.0009765625f, 0.0068359375f, 0.75f, 176, 224, 240, NAN, -0.0048828125f, -1.375f, -192},
        {1.52587890625e-05f, 0.0001068115234375f, 1, 57344, NAN, NAN, -0.0f, -7.62939453125e-05f,
         -3.5f, -INFINITY},
        {7.62939453125e-06f, 5.340576171875e-05f, 0.5f, 28672, 49152, 57344, NAN,
         -3.814697265625e-05f, -1.75f, -32768},
    };
    (void)state;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 10; i++) {
            float x = msc_narrow_float_decode(msc_narrow_float_find(names[k]), codes[i]);
            assert_true(isnan(numbers[k][i]) ? isnan(x) : x == numbers[k][i]);
            assert_int_equal(!isnan(x) && signbit(x), !isnan(x) && signbit(numbers[k][i]));
        }
    }
}

// Every code that decodes to a number encodes back to itself.
static void test_graph_narrow_float__there_and_back(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        const struct msc_narrow_float *f = msc_narrow_float_find(names[k]);
        for (int code = 0; code < 256; code++) {
            float x = msc_narrow_float_decode(f, (uint8_t)code);
            if (!isnan(x)) {
                assert_int_equal(msc_narrow_float_encode(f, x, false), code);
            }
        }
    }
    assert_null(msc_narrow_float_find("float8"));
}

// Codes and numbers that float4_e2m1fn of ml_dtypes 0.5 gives. NaN has no code there; ONNX's
// float4.md makes it the largest number.
static void test_graph_narrow_float__four_bits(void **state) {
    static const float numbers[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    static const struct {
        float x;
        uint8_t code;
    } rows[] = {{0.25f, 0}, {0.26f, 1},  {0.75f, 2},      {2.5f, 4},     {3.5f, 6},
                {5, 6},     {5.1f, 7},   {7, 7},          {INFINITY, 7}, {-0.1f, 8},
                {-0.0f, 8}, {-2.5f, 12}, {-INFINITY, 15}, {-0.75f, 10}};
    const struct msc_narrow_float *f = msc_narrow_float_find("float4e2m1");
    (void)state;
    for (uint8_t code = 0; code < 16; code++) {
        float x = code < 8 ? numbers[code] : -numbers[code - 8];
        assert_true(msc_narrow_float_decode(f, code) == x);
        assert_int_equal(msc_narrow_float_encode(f, x, code % 2 == 0), code);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(msc_narrow_float_encode(f, rows[i].x, i % 2 == 0), rows[i].code);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_narrow_float__encode),
        cmocka_unit_test(test_graph_narrow_float__decode),
        cmocka_unit_test(test_graph_narrow_float__there_and_back),
        cmocka_unit_test(test_graph_narrow_float__four_bits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
