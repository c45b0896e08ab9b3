// The parts of paths, whether one path is inside another, and absolute and relative forms. Expected
// relative forms come from Python's os.path; other expected texts are written by hand.
#include "base/alloc.h"
#include "base/file.h"
#include "tests/msc_test.h"

#include <stdbool.h>
#include <unistd.h>

static void test_base_path__parts(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    assert_string_equal(msc_path_join(&arena, "a/b", "c.x"), "a/b/c.x");
    assert_string_equal(msc_path_join(&arena, "a/b/", "c.x"), "a/b/c.x");
    assert_string_equal(msc_path_join(&arena, "a/b", "/c.x"), "/c.x");
    assert_string_equal(msc_path_join(&arena, "", "c.x"), "c.x");
    assert_string_equal(msc_path_folder(&arena, "a/b/c.x"), "a/b");
    assert_string_equal(msc_path_folder(&arena, "c.x"), ".");
    assert_string_equal(msc_path_folder(&arena, "/c.x"), "/");
    assert_string_equal(msc_path_folder(&arena, "a//c.x"), "a");
    assert_string_equal(msc_path_name("a/b/c.x"), "c.x");
    assert_string_equal(msc_path_name("c.x"), "c.x");
    assert_string_equal(msc_path_name("a/"), "");
    msc_arena_finish(&arena);
}

static void test_base_path__inside(void **state) {
    static const char *const inside[] = {"a", "a/b", "./a", "a..b", "..a", "a/...", "a//b"};
    static const char *const outside[] = {"", "/a", "..", "../a", "a/..", "a/../b", "a//../b", "/"};
    (void)state;
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        assert_true(msc_path_is_inside(inside[i]));
    }
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_false(msc_path_is_inside(outside[i]));
    }
}

static void expect_absolute(struct msc_arena *arena, const char *path, const char *expected) {
    char *absolute = NULL;
    assert_ok(msc_path_absolute(&absolute, arena, path));
    assert_string_equal(absolute, expected);
}

static void test_base_path__absolute(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_ok(msc_file_make_folders("path_test/real/deep"));
    unlink("path_test/link");
    assert_int_equal(symlink("real", "path_test/link"), 0);
    expect_absolute(&arena, ".", here);
    expect_absolute(&arena, "path_test/link/deep",
                    msc_arena_printf(&arena, "%s/path_test/real/deep", here));
    expect_absolute(&arena, "path_test/link/new.x",
                    msc_arena_printf(&arena, "%s/path_test/real/new.x", here));
    expect_absolute(&arena, "path_test/link/a//./b/new.x",
                    msc_arena_printf(&arena, "%s/path_test/real/a/b/new.x", here));
    expect_absolute(&arena, "absent.x", msc_arena_printf(&arena, "%s/absent.x", here));
    expect_absolute(&arena, "/", "/");
    expect_absolute(&arena, "/absent.x", "/absent.x");
    char *absolute = NULL;
    assert_int_equal(msc_path_absolute(&absolute, &arena, ""), MSC_E_INVALID);
    assert_int_equal(msc_path_absolute(&absolute, &arena, "absent/../x"), MSC_E_NOT_FOUND);
    msc_arena_finish(&arena);
}

static void test_base_path__resolve_inside(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    static const char *const outside[] = {"", "/etc/passwd", "../real", "out/deep", "out"};
    char here[4096];
    char *resolved = NULL;
    assert_non_null(getcwd(here, sizeof here));
    assert_ok(msc_file_make_folders("path_inside/folder/deep"));
    assert_ok(msc_file_make_folders("path_inside/folder2/deep"));
    unlink("path_inside/folder/in");
    unlink("path_inside/folder/out");
    assert_int_equal(symlink("deep", "path_inside/folder/in"), 0);
    assert_int_equal(symlink("../folder2", "path_inside/folder/out"), 0);
    assert_ok(msc_path_resolve_inside(&resolved, &arena, "path_inside/folder", "in/x"));
    assert_string_equal(resolved, msc_arena_printf(&arena, "%s/path_inside/folder/deep/x", here));
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_int_equal(
            msc_path_resolve_inside(&resolved, &arena, "path_inside/folder", outside[i]),
            MSC_E_INVALID);
    }
    assert_ok(msc_path_resolve_inside(&resolved, &arena, "/", "etc"));
    assert_string_equal(resolved, "/etc");
    msc_arena_finish(&arena);
}

// Expected texts: Python's os.path.relpath on the same paths.
static void test_base_path__relative(void **state) {
    static const struct {
        const char *path, *folder, *expected;
    } cases[] = {
        {"path_test/a.x", "path_test", "a.x"},
        {"path_test/a.x", "path_test/real/deep", "../../a.x"},
        {"path_test/real_too", "path_test/real", "../real_too"},
        {"path_test/real", "path_test/real_too", "../real"},
        {"path_test", "path_test", "."},
        {"path_test", "path_test/real", ".."},
        {"/absent/a.x", "/", "absent/a.x"},
        {"/", "/absent/b", "../.."},
        {"/absent/a.x", "/other/b", "../../absent/a.x"},
    };
    (void)state;
    struct msc_arena arena = {0};
    assert_ok(msc_file_make_folders("path_test/real/deep"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *relative = NULL;
        assert_ok(msc_path_relative(&relative, &arena, cases[i].path, cases[i].folder));
        assert_string_equal(relative, cases[i].expected);
    }
    msc_arena_finish(&arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_path__parts),
        cmocka_unit_test(test_base_path__inside),
        cmocka_unit_test(test_base_path__absolute),
        cmocka_unit_test(test_base_path__resolve_inside),
        cmocka_unit_test(test_base_path__relative),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
