// Scratch folders: made and removed, and swept if a killed process has left them. The expected
// folders are those that the test makes.
#include "base/scratch.h"

#include "base/alloc.h"
#include "tests/processes.h"
#include "tests/temp_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct room {
    char folder[TEMP_FOLDER_BYTES];
    char outside[TEMP_FOLDER_BYTES];
};

static int open_room(void **state) {
    struct room *room = test_calloc(1, sizeof *room);
    temp_folder_make(room->folder);
    temp_folder_make(room->outside);
    setenv("TMPDIR", room->folder, 1);
    *state = room;
    return 0;
}

static int close_room(void **state) {
    struct room *room = *state;
    unsetenv("TMPDIR");
    temp_folder_remove(room->folder);
    temp_folder_remove(room->outside);
    test_free(room);
    return 0;
}

static void join(char path[PATH_MAX], const char *folder, const char *name) {
    assert_true(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
}

static void write_in(const char *folder, const char *name) {
    char path[PATH_MAX];
    join(path, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("x", file);
    fclose(file);
}

static void make_in(char path[PATH_MAX], const char *folder, const char *name) {
    join(path, folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static size_t count_in(const char *folder) {
    size_t n = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    while (readdir(list)) {
        n++;
    }
    closedir(list);
    return n - 2; // without "." and ".."
}

// Starts a process that makes a scratch folder, reports it, and waits to be killed.
static pid_t start_owner(void) {
    int ends[2];
    char said = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct msc_arena arena = {0};
        struct msc_scratch scratch = {0};
        char inner[PATH_MAX];
        if (msc_scratch_make(&scratch, &arena) == MSC_OK) {
            write_in(scratch.path, "model.onnx");
            make_in(inner, scratch.path, "deep");
            write_in(inner, "samples.npz");
            (void)!write(ends[1], "x", 1);
        }
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ends[0], &said, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void kill_owner(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_base_scratch__goes_with_what_is_in_it(void **state) {
    const struct room *room = *state;
    struct msc_arena arena = {0};
    struct msc_scratch scratch = {0};
    char inner[PATH_MAX];
    assert_ok(msc_scratch_make(&scratch, &arena));
    assert_int_equal(strncmp(scratch.path, room->folder, strlen(room->folder)), 0);
    write_in(scratch.path, "a");
    make_in(inner, scratch.path, "b");
    write_in(inner, "c");
    msc_scratch_remove(&scratch);
    msc_scratch_remove(&scratch); // removing a folder that was never made does nothing
    assert_int_equal(count_in(room->folder), 0);
    msc_arena_finish(&arena);
}

static void test_base_scratch__dead_ones_are_swept(void **state) {
    const struct room *room = *state;
    pid_t dead = start_owner();
    pid_t alive = start_owner();
    msc_scratch_sweep();
    assert_int_equal(count_in(room->folder), 2);
    kill_owner(dead);
    msc_scratch_sweep();
    assert_int_equal(count_in(room->folder), 1);
    kill_owner(alive);
    msc_scratch_sweep();
    assert_int_equal(count_in(room->folder), 0);
}

// A sweep keeps files with other names and symbolic links. It does not follow a link inside a
// folder, so the files that the link points to are kept, too.
static void test_base_scratch__nothing_else_is_swept(void **state) {
    const struct room *room = *state;
    char path[PATH_MAX], dead[PATH_MAX], others[2][PATH_MAX];
    write_in(room->outside, "kept");
    make_in(others[0], room->folder, "mscgym-1000");
    make_in(others[1], room->folder, "else");
    write_in(room->folder, "mscgym-run-afile");
    join(path, room->folder, "mscgym-run-alink");
    assert_int_equal(symlink(room->outside, path), 0);
    make_in(dead, room->folder, "mscgym-run-dead00");
    join(path, dead, "link");
    assert_int_equal(symlink(room->outside, path), 0);
    msc_scratch_sweep();
    assert_int_equal(count_in(room->folder), 4);
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(count_in(room->outside), 1);
    assert_int_equal(rmdir(others[0]), 0);
    assert_int_equal(rmdir(others[1]), 0);
}

// Folders that are made while other processes sweep keep their files.
static void test_base_scratch__making_and_sweeping_at_once(void **state) {
    const struct room *room = *state;
    pid_t sweepers[2];
    for (size_t i = 0; i < 2; i++) {
        sweepers[i] = fork();
        while (sweepers[i] == 0) {
            msc_scratch_sweep();
        }
    }
    for (size_t i = 0; i < 500; i++) {
        struct msc_arena arena = {0};
        struct msc_scratch scratch = {0};
        assert_ok(msc_scratch_make(&scratch, &arena));
        write_in(scratch.path, "model.onnx");
        assert_int_equal(count_in(scratch.path), 1);
        msc_scratch_remove(&scratch);
        msc_arena_finish(&arena);
    }
    for (size_t i = 0; i < 2; i++) {
        kill_owner(sweepers[i]);
    }
    assert_int_equal(count_in(room->folder), 0);
}

static void test_base_scratch__bad_places(void **state) {
    struct msc_arena arena = {0};
    struct msc_scratch scratch = {0};
    (void)state;
    setenv("TMPDIR", "/no/such/folder", 1);
    msc_scratch_sweep();
    assert_int_equal(msc_scratch_make(&scratch, &arena), MSC_E_IO);
    assert_message("set TMPDIR to another folder");
    setenv("TMPDIR", "/tmp/caf\xe9", 1);
    assert_int_equal(msc_scratch_make(&scratch, &arena), MSC_E_FORMAT);
    assert_message("TMPDIR: byte 8 is 0xe9");
    msc_arena_finish(&arena);
}

#define IN_ROOM(test) cmocka_unit_test_setup_teardown(test, open_room, close_room)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        IN_ROOM(test_base_scratch__goes_with_what_is_in_it),
        IN_ROOM(test_base_scratch__dead_ones_are_swept),
        IN_ROOM(test_base_scratch__nothing_else_is_swept),
        IN_ROOM(test_base_scratch__making_and_sweeping_at_once),
        IN_ROOM(test_base_scratch__bad_places),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
