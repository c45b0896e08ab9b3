// Text tables: columns are aligned, and folded into several blocks if the terminal is too narrow.
// Expected tables are written by hand.
#include "base/table.h"

#include "base/str.h"
#include "tests/msc_test.h"

static void check(struct msc_table *t, const char *const cells[], size_t n, size_t n_columns,
                  const char *expected) {
    struct msc_str out = {0};
    for (size_t i = 0; i < n; i++) {
        msc_table_add(t, cells[i]);
    }
    msc_table_write(&out, t, n_columns);
    assert_string_equal(msc_str_text(&out), expected);
    msc_str_finish(&out);
    msc_table_finish(t);
}

static const char *const losses[] = {"",           "trial 3", "uniform 8", "uncompressed",
                                     "loss",       "0.5",     "0.25",      "0",
                                     "size_bytes", "100",     "2000",      "30000"};

static void test_base_table__in_one_block(void **state) {
    (void)state;
    struct msc_table t = {.n_columns = 4, .indent = 2, .least_columns = 8};
    check(&t, losses, 12, 0,
          "               trial 3  uniform 8  uncompressed\n"
          "  loss             0.5       0.25             0\n"
          "  size_bytes       100       2000         30000\n");
}

static void test_base_table__folded(void **state) {
    (void)state;
    struct msc_table t = {.n_columns = 4, .indent = 2, .least_columns = 8};
    static const char wide[] = "               trial 3  uniform 8\n"
                               "  loss             0.5       0.25\n"
                               "  size_bytes       100       2000\n"
                               "\n"
                               "              uncompressed\n"
                               "  loss                   0\n"
                               "  size_bytes         30000\n";
    check(&t, losses, 12, 45, wide);
    t = (struct msc_table){.n_columns = 4, .indent = 2, .least_columns = 8};
    check(&t, losses, 12, 33, wide); // the limit is exactly the width of the first block
}

// A column that does not fit next to the key column gets a block of its own.
static void test_base_table__too_narrow(void **state) {
    (void)state;
    static const char *const cells[] = {"kind", "name", "read by", "weight", "conv", "fc"};
    struct msc_table t = {.n_columns = 3, .key = 1, .is_left = true};
    check(&t, cells, 6, 1, "kind\nweight\n\nname  read by\nconv  fc\n");
    t = (struct msc_table){.n_columns = 3, .key = 1, .is_left = true};
    check(&t, cells, 6, 14, "kind    name\nweight  conv\n\nname  read by\nconv  fc\n");
    t = (struct msc_table){.n_columns = 3, .key = 1, .is_left = true};
    check(&t, cells, 6, 21, "kind    name  read by\nweight  conv  fc\n");
    t = (struct msc_table){0};
    check(&t, NULL, 0, 80, "");
}

// A block always has at least one column in addition to the row names.
static void test_base_table__names_have_company(void **state) {
    (void)state;
    struct msc_table t = {.n_columns = 4, .indent = 2, .least_columns = 8};
    check(&t, losses, 12, 15,
          "               trial 3\n"
          "  loss             0.5\n"
          "  size_bytes       100\n"
          "\n"
          "              uniform 8\n"
          "  loss             0.25\n"
          "  size_bytes       2000\n"
          "\n"
          "              uncompressed\n"
          "  loss                   0\n"
          "  size_bytes         30000\n");
    t = (struct msc_table){.n_columns = 1};
    check(&t, losses + 4, 1, 1, "loss\n");
}

// Widths count characters, not bytes, and control characters are escaped.
static void test_base_table__safe_to_show(void **state) {
    (void)state;
    static const char *const cells[] = {"sch\xc3\xb6n", "1", "a\x1b\n", "2"};
    struct msc_table t = {.n_columns = 2};
    check(&t, cells, 4, 0, "sch\xc3\xb6n    1\na\\x1b\\n  2\n");
    assert_int_equal(msc_table_width("sch\xc3\xb6n"), 5);
    assert_int_equal(msc_table_width("a\x1b\n"), 7);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_table__in_one_block),
        cmocka_unit_test(test_base_table__folded),
        cmocka_unit_test(test_base_table__too_narrow),
        cmocka_unit_test(test_base_table__names_have_company),
        cmocka_unit_test(test_base_table__safe_to_show),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
