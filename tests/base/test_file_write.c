// Atomic file writes. The target holds its old or its new content, even if the writer is killed at
// any system call. This also holds if other users plant files in the folder. Expected contents are
// those that the test writes.
#include "base/file.h"

#include "base/alloc.h"
#include "tests/temp_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[TEMP_FOLDER_BYTES];

static int enter_folder(void **state) {
    (void)state;
    temp_folder_make(folder);
    return chdir(folder);
}

static int leave_folder(void **state) {
    (void)state;
    int failed = chdir("/");
    temp_folder_remove(folder);
    return failed;
}

// Counts the names in the current folder that begin with `beginning`.
static size_t count_files(const char *beginning) {
    size_t n = 0;
    DIR *here = opendir(".");
    assert_non_null(here);
    for (struct dirent *entry = readdir(here); entry; entry = readdir(here)) {
        n += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
    }
    closedir(here);
    return n;
}

static bool holds(const char *path, const char *expected) {
    char *data = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&data, &n_bytes, path));
    bool is_equal = strcmp(data, expected) == 0;
    msc_free(data);
    return is_equal;
}

static void write_text(const char *path, const char *text) {
    assert_ok(msc_file_write(path, text, strlen(text)));
}

static void plant(const char *path, const char *text) {
    FILE *file = fopen(path, "wx");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// ---- Kills ------------------------------------------------------------------------------------

// Starts a child that writes the file, and kills it at its n-th stop. The child stops each time it
// enters or leaves a system call. Returns false if the child finished first.
static bool kill_at(int n) {
    int how = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0) {
            _exit(3);
        }
        _exit(msc_file_write("target", "newer", 5) == MSC_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 3) {
        print_message("skipped: nobody may be traced here\n");
        skip();
    }
    for (int i = 0; WIFSTOPPED(how) && i < n; i++) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &how, 0), child);
    }
    bool is_stopped = WIFSTOPPED(how);
    if (is_stopped) {
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &how, 0), child);
    } else {
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    return is_stopped;
}

static void test_base_file_write__killed_anywhere(void **state) {
    (void)state;
    size_t n_left = 0;
    bool was_killed = true;
    for (int n = 0; was_killed; n++) {
        write_text("target", "older");
        was_killed = kill_at(n);
        assert_true(holds("target", "older") || holds("target", "newer"));
        n_left += count_files("target.");
        write_text("target", "newest");
        assert_true(holds("target", "newest"));
        assert_int_equal(count_files(""), 3); // the names are ".", ".." and "target"
    }
    assert_true(n_left > 0); // at least one child was killed while its temporary file existed
    assert_ok(msc_file_remove("target"));
}

// ---- Planted files ----------------------------------------------------------------------------

// If temporary names contained the process id, another user of the folder could guess a name and
// plant a file there.
static void test_base_file_write__planted_names(void **state) {
    (void)state;
    char guess[64];
    snprintf(guess, sizeof guess, "target.tmp.%d", (int)getpid());
    plant("precious", "of somebody");

    assert_int_equal(link("precious", guess), 0);
    write_text("target", "text");
    assert_true(holds("target", "text") && holds("precious", "of somebody"));
    assert_true(holds(guess, "of somebody"));
    assert_ok(msc_file_remove(guess));

    assert_int_equal(symlink("precious", guess), 0);
    write_text("target", "more");
    assert_true(holds("target", "more") && holds("precious", "of somebody"));
    assert_true(holds(guess, "of somebody"));
    assert_ok(msc_file_remove(guess));
    assert_ok(msc_file_remove("precious"));
    assert_ok(msc_file_remove("target"));
}

// A write removes only temporary files that a dead writer of the same target left.
static void test_base_file_write__what_is_removed(void **state) {
    (void)state;
    static const char *const kept[] = {
        "target.tmp.0123456789abcde",   // one digit too short
        "target.tmp.0123456789abcdef0", // one digit too long
        "target.tmp.0123456789ABCDEF",  // temporary names are lower-case
        "target.tmp.12345",             // a process id instead of random digits
        "target2.tmp.0123456789abcdef", // another target
        "other.tmp.0123456789abcdef",
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        plant(kept[i], "kept");
    }
    plant("precious", "of somebody");
    assert_int_equal(symlink("precious", "target.tmp.0000000000000001"), 0);
    assert_int_equal(link("precious", "target.tmp.0000000000000002"), 0);
    assert_int_equal(mkfifo("target.tmp.0000000000000003", 0600), 0);
    plant("target.tmp.0000000000000004", "of a living writer");
    plant("target.tmp.0000000000000005", "of a dead writer");
    int living = open("target.tmp.0000000000000004", O_RDONLY);
    assert_true(living >= 0 && flock(living, LOCK_EX) == 0);
    write_text("target", "text");
    assert_false(msc_file_exists("target.tmp.0000000000000005"));
    assert_int_equal(count_files("target.tmp.000000000000000"), 4);
    assert_true(holds("target.tmp.0000000000000004", "of a living writer"));
    assert_true(holds("precious", "of somebody"));
    close(living);
    write_text("target", "text");
    assert_false(msc_file_exists("target.tmp.0000000000000004"));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        assert_true(holds(kept[i], "kept"));
        assert_ok(msc_file_remove(kept[i]));
    }
    assert_ok(msc_file_remove("target.tmp.0000000000000001"));
    assert_ok(msc_file_remove("target.tmp.0000000000000002"));
    assert_ok(msc_file_remove("target.tmp.0000000000000003"));
    assert_ok(msc_file_remove("precious"));
    assert_ok(msc_file_remove("target"));
}

// ---- Permissions ------------------------------------------------------------------------------

static mode_t mode_of(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 0777;
}

static void test_base_file_write__permissions(void **state) {
    (void)state;
    struct msc_file_writer w;
    mode_t mask = umask(027);
    write_text("target", "text");
    assert_int_equal(mode_of("target"), 0640);
    assert_int_equal(chmod("target", 0400), 0);
    assert_ok(msc_file_writer_begin(&w, "target"));
    // No other user can read the file while it is being written.
    assert_int_equal(mode_of(w.temporary), 0400);
    assert_ok(msc_file_writer_write(&w, "more", 4));
    assert_ok(msc_file_writer_commit(&w));
    assert_int_equal(mode_of("target"), 0400);
    umask(mask);
    assert_ok(msc_file_remove("target"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_file_write__killed_anywhere),
        cmocka_unit_test(test_base_file_write__planted_names),
        cmocka_unit_test(test_base_file_write__what_is_removed),
        cmocka_unit_test(test_base_file_write__permissions),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
