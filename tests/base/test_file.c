// Reading, mapping, writing and renaming files, and sources and targets that must be refused.
// Expected contents are those that the test writes.
#include "base/file.h"

#include "base/alloc.h"
#include "tests/msc_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_content(const char *path, const char *expected) {
    char *data = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&data, &n_bytes, path));
    assert_int_equal(n_bytes, strlen(expected));
    assert_string_equal(data, expected);
    msc_free(data);
}

static bool temporary_exists(const char *path) {
    size_t n = 0;
    DIR *here = opendir(".");
    assert_non_null(here);
    for (struct dirent *entry = readdir(here); entry; entry = readdir(here)) {
        n += strncmp(entry->d_name, path, strlen(path)) == 0 && strstr(entry->d_name, ".tmp.");
    }
    closedir(here);
    return n > 0;
}

static void test_base_file__write_and_read(void **state) {
    (void)state;
    assert_ok(msc_file_write("file_a", "first", 5));
    expect_content("file_a", "first");
    assert_ok(msc_file_write("file_a", "", 0));
    expect_content("file_a", "");
    assert_false(temporary_exists("file_a"));

    // More bytes than one read call returns, and not a multiple of that number.
    size_t n_bytes = 300001;
    char *large = msc_alloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i++) {
        large[i] = (char)(i * 7);
    }
    assert_ok(msc_file_write("file_a", large, n_bytes));
    char *data = NULL;
    size_t n_read = 0;
    assert_ok(msc_file_read(&data, &n_read, "file_a"));
    assert_int_equal(n_read, n_bytes);
    assert_memory_equal(data, large, n_bytes);
    assert_int_equal(data[n_bytes], '\0');
    msc_free(data);
    const void *mapped = NULL;
    assert_ok(msc_file_map(&mapped, &n_read, "file_a"));
    assert_int_equal(n_read, n_bytes);
    assert_memory_equal(mapped, large, n_bytes);
    msc_file_unmap(mapped, n_read);
    msc_free(large);
    assert_ok(msc_file_remove("file_a"));
    assert_ok(msc_file_remove("file_a"));
    assert_false(msc_file_exists("file_a"));
}

static void test_base_file__rename(void **state) {
    (void)state;
    assert_ok(msc_file_write("file_from", "new", 3));
    assert_ok(msc_file_write("file_to", "old", 3));
    assert_ok(msc_file_rename("file_from", "file_to"));
    expect_content("file_to", "new");
    assert_ok(msc_file_rename("file_from", "file_to"));
    expect_content("file_to", "new");
    assert_int_equal(msc_file_rename("file_to", "file_absent/to"), MSC_E_NOT_FOUND);
    assert_message("file_to");
    expect_content("file_to", "new");
    assert_int_equal(msc_file_rename("file_to", "."), MSC_E_IO);
    assert_message("file_to");
    assert_ok(msc_file_remove("file_to"));
}

static void test_base_file__odd_sources(void **state) {
    (void)state;
    char *data = NULL;
    size_t n_bytes = 1;
    const void *mapped = &n_bytes;
    assert_int_equal(msc_file_read(&data, &n_bytes, "file_absent"), MSC_E_NOT_FOUND);
    assert_message("file_absent");
    assert_int_equal(msc_file_read(&data, &n_bytes, "."), MSC_E_INVALID);
    assert_int_equal(msc_file_map(&mapped, &n_bytes, "file_absent"), MSC_E_NOT_FOUND);
    assert_null(data);
    // Files in /proc report a size of 0.
    assert_ok(msc_file_read(&data, &n_bytes, "/proc/self/status"));
    assert_true(n_bytes > 100);
    assert_int_equal(strlen(data), n_bytes);
    msc_free(data);
    assert_ok(msc_file_write("file_empty", NULL, 0));
    assert_ok(msc_file_map(&mapped, &n_bytes, "file_empty"));
    assert_null(mapped);
    assert_int_equal(n_bytes, 0);
    msc_file_unmap(mapped, n_bytes);
    assert_ok(msc_file_remove("file_empty"));
}

// A Git LFS pointer file is reported as such instead of being read as the real file's content.
static void test_base_file__git_lfs(void **state) {
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2\n"
        "size 12345\n";
    const void *mapped = NULL;
    char *data = NULL;
    size_t n_bytes = 0;
    (void)state;
    assert_ok(msc_file_write("file_lfs", pointer, sizeof pointer - 1));
    assert_int_equal(msc_file_read(&data, &n_bytes, "file_lfs"), MSC_E_INVALID);
    assert_int_equal(msc_file_map(&mapped, &n_bytes, "file_lfs"), MSC_E_INVALID);
    assert_message("file_lfs: this is a Git LFS pointer");
    // A file that only begins like a pointer is read as an ordinary file.
    assert_ok(msc_file_write("file_lfs", pointer, 20));
    expect_content("file_lfs", "version https://git-");
    assert_ok(msc_file_remove("file_lfs"));
}

// Pipes and devices are not opened: opening a pipe for reading blocks until a writer comes, and
// reading a device may never end.
static void test_base_file__neither_pipes_nor_devices(void **state) {
    (void)state;
    const char *const paths[] = {"file_pipe", "/dev/zero", "."};
    unlink("file_pipe");
    assert_int_equal(mkfifo("file_pipe", 0600), 0);
    alarm(60); // ends the test if a read blocks forever
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char *data = NULL;
        const void *mapped = NULL;
        size_t n_bytes = 0;
        assert_int_equal(msc_file_read(&data, &n_bytes, paths[i]), MSC_E_INVALID);
        assert_non_null(strstr(msc_status_message(), paths[i]));
        assert_int_equal(msc_file_map(&mapped, &n_bytes, paths[i]), MSC_E_INVALID);
    }
    alarm(0);
    assert_int_equal(unlink("file_pipe"), 0);
}

static void test_base_file__writer(void **state) {
    (void)state;
    struct msc_file_writer w = {0};
    msc_file_writer_abort(&w);
    assert_ok(msc_file_write("file_b", "old", 3));
    assert_int_equal(chmod("file_b", 0640), 0);

    assert_ok(msc_file_writer_begin(&w, "file_b"));
    assert_ok(msc_file_writer_write(&w, "new ", 4));
    expect_content("file_b", "old");
    assert_true(temporary_exists("file_b"));
    msc_file_writer_abort(&w);
    assert_false(temporary_exists("file_b"));
    expect_content("file_b", "old");

    assert_ok(msc_file_writer_begin(&w, "file_b"));
    assert_ok(msc_file_writer_write(&w, "new ", 4));
    assert_ok(msc_file_writer_write(&w, "text", 4));
    assert_int_equal(w.n_bytes, 8);
    assert_ok(msc_file_writer_commit(&w));
    msc_file_writer_abort(&w);
    expect_content("file_b", "new text");
    assert_false(temporary_exists("file_b"));
    struct stat info;
    assert_int_equal(stat("file_b", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_ok(msc_file_remove("file_b"));
}

static void test_base_file__refused_targets(void **state) {
    (void)state;
    struct msc_file_writer w;
    assert_int_equal(msc_file_write("file_absent/x", "x", 1), MSC_E_NOT_FOUND);
    assert_message("file_absent/x");
    assert_int_equal(msc_file_writer_begin(&w, "/dev/null"), MSC_E_INVALID);
    msc_file_writer_abort(&w);
    assert_int_equal(msc_file_write(".", "x", 1), MSC_E_INVALID);
    assert_true(msc_file_exists("/dev/null"));
}

// A full disk, simulated by a limit on file size: the write fails after half of the bytes.
static void test_base_file__failing_write(void **state) {
    (void)state;
    static char large[100000];
    struct rlimit before;
    assert_ok(msc_file_write("file_c", "precious", 8));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 50000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum msc_status status = msc_file_write("file_c", large, sizeof large);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, MSC_E_IO);
    assert_message("cannot write file_c: ");
    assert_false(temporary_exists("file_c"));
    expect_content("file_c", "precious");
    assert_ok(msc_file_remove("file_c"));
}

static void test_base_file__folders(void **state) {
    (void)state;
    assert_ok(msc_file_make_folders("file_d/e//f/"));
    assert_ok(msc_file_make_folders("file_d/e/f"));
    assert_ok(msc_file_write("file_d/e/f/x", "x", 1));
    assert_int_equal(msc_file_make_folders("file_d/e/f/x"), MSC_E_INVALID);
    assert_int_equal(msc_file_make_folders("file_d/e/f/x/y"), MSC_E_INVALID);
    assert_ok(msc_file_make_folders("/"));
    assert_ok(msc_file_remove("file_d/e/f/x"));
    assert_int_equal(rmdir("file_d/e/f") + rmdir("file_d/e") + rmdir("file_d"), 0);

    uint64_t here = 0;
    uint64_t later = 0;
    assert_ok(msc_file_free_bytes(&here, "."));
    assert_ok(msc_file_free_bytes(&later, "file_absent/a/b"));
    assert_true(here > 0 && later > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_file__write_and_read),
        cmocka_unit_test(test_base_file__rename),
        cmocka_unit_test(test_base_file__odd_sources),
        cmocka_unit_test(test_base_file__git_lfs),
        cmocka_unit_test(test_base_file__neither_pipes_nor_devices),
        cmocka_unit_test(test_base_file__writer),
        cmocka_unit_test(test_base_file__refused_targets),
        cmocka_unit_test(test_base_file__failing_write),
        cmocka_unit_test(test_base_file__folders),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
