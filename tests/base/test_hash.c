// XXH3 hashes: of bytes, combined, and written as text; and CRC-32C checksums. Expected values come
// from Python's xxhash and RFC 3720.
#include "base/hash.h"

#include "base/crc32c.h"

#include "tests/msc_test.h"

// Expected digits: xxh3_128_hexdigest(bytes) of the Python package xxhash.
static void test_base_hash__xxh3(void **state) {
    (void)state;
    char text[MSC_HASH_TEXT_BYTES];
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
    }
    assert_string_equal(msc_hash_format(text, msc_hash_bytes("", 0)),
                        "99aa06d3014798d86001c324468d497f");
    assert_string_equal(msc_hash_format(text, msc_hash_bytes(NULL, 0)),
                        "99aa06d3014798d86001c324468d497f");
    assert_string_equal(msc_hash_format(text, msc_hash_bytes("mscgym", 6)),
                        "77be338663d98f44a721f95776c9529f");
    assert_string_equal(msc_hash_format(text, msc_hash_bytes(bytes, sizeof bytes)),
                        "f1f8a93f50849ac39408a4433b952d71");
}

// Expected: xxh3_128_hexdigest of both 16-byte little-endian values, one after the other.
static void test_base_hash__combine(void **state) {
    (void)state;
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash a = msc_hash_bytes("a", 1);
    struct msc_hash b = msc_hash_bytes("b", 1);
    struct msc_hash ab = msc_hash_combine(a, b);
    assert_string_equal(msc_hash_format(text, ab), "19131124ff43b9719d62555f6199645b");
    assert_false(msc_hash_equal(ab, msc_hash_combine(b, a)));
    assert_true(msc_hash_equal(ab, msc_hash_add_text(a, "b")));
    assert_true(msc_hash_equal(ab, msc_hash_add_bytes(a, "b", 1)));
    assert_true(msc_hash_equal(msc_hash_add_text(a, NULL), msc_hash_add_text(a, "")));
    assert_true(msc_hash_equal(msc_hash_add_u64(a, 0x0807060504030201u),
                               msc_hash_add_bytes(a, "\1\2\3\4\5\6\7\10", 8)));
    // Hashing "xy" then "z" differs from hashing "x" then "yz".
    struct msc_hash split = msc_hash_add_text(msc_hash_add_text(a, "xy"), "z");
    assert_false(msc_hash_equal(split, msc_hash_add_text(msc_hash_add_text(a, "x"), "yz")));
}

static void test_base_hash__parse(void **state) {
    (void)state;
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash h = {0};
    assert_true(msc_hash_parse(&h, "0123456789abcdefFEDCBA9876543210"));
    assert_true(h.high == 0x0123456789abcdefu);
    assert_true(h.low == 0xfedcba9876543210u);
    assert_string_equal(msc_hash_format(text, h), "0123456789abcdeffedcba9876543210");
    static const char *const bad[] = {"",
                                      "0123",
                                      "0123456789abcdeffedcba987654321",
                                      "0123456789abcdeffedcba98765432100",
                                      "0123456789abcdeffedcba987654321g",
                                      " 123456789abcdeffedcba9876543210"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(msc_hash_parse(&h, bad[i]));
    }
    assert_true(h.low == 0xfedcba9876543210u);
}

// The check value of CRC-32C, and two values from RFC 3720, appendix B.4.
static void test_base_hash__crc32c(void **state) {
    (void)state;
    unsigned char bytes[32] = {0};
    assert_int_equal(msc_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(msc_crc32c(bytes, sizeof bytes), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(msc_crc32c(bytes, sizeof bytes), 0x62a8ab43u);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_hash__xxh3),
        cmocka_unit_test(test_base_hash__combine),
        cmocka_unit_test(test_base_hash__parse),
        cmocka_unit_test(test_base_hash__crc32c),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
