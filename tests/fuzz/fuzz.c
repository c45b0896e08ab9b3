// Helpers that the fuzzers share, as declared in fuzz.h.
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];

int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

// Allocations larger than any machine's memory return NULL, as without the sanitizer. libFuzzer's
// own limit catches large but possible ones.
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

const char *__ubsan_default_options(void) {
    return "print_stacktrace=1";
}

void fuzz_fail(const char *what) {
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

// Calls `use` for every file of the folder.
static void for_each_file(void (*use)(void *payload, const char *name), void *payload) {
    DIR *list = opendir(folder);
    if (!list) {
        fuzz_fail("the folder is gone");
    }
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            use(payload, entry->d_name);
        }
    }
    closedir(list);
}

static void remove_file(void *payload, const char *name) {
    (void)payload;
    unlink(fuzz_path(name));
}

static void remove_folder(void) {
    for_each_file(remove_file, NULL);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/dev/shm";
    if (snprintf(folder, sizeof folder, "%s/msc_fuzz_XXXXXX", base) >= (int)sizeof folder ||
        !mkdtemp(folder)) {
        fuzz_fail("cannot make a folder below $TMPDIR or /dev/shm");
    }
    atexit(remove_folder);
    return 0;
}

const char *fuzz_path(const char *name) {
    static char paths[4][PATH_MAX + 256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void fuzz_write(const char *name, const void *data, size_t n_bytes) {
    const char *path = fuzz_path(name);
    // The old file is removed instead of overwritten, because it may still be mapped.
    unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || write(file, data, n_bytes) != (ssize_t)n_bytes || close(file) != 0) {
        fuzz_fail("cannot write a file");
    }
}

void fuzz_remove(const char *name) {
    unlink(fuzz_path(name));
}

static void check_file(void *payload, const char *name) {
    for (const char *const *known = payload; *known; known++) {
        if (strcmp(*known, name) == 0) {
            return;
        }
    }
    fprintf(stderr, "fuzz: %s was left behind\n", name);
    abort();
}

void fuzz_check_files(const char *const names[]) {
    for_each_file(check_file, (void *)names);
}

enum msc_status fuzz_check(enum msc_status status) {
    if (status != MSC_OK) {
        const char *text = msc_status_message();
        if (text[0] == '\0') {
            fuzz_fail("a failure without a message");
        }
        if (strchr(text, '\n') || strchr(text, '\r')) {
            fuzz_fail("a message of several lines");
        }
        if (status > 0 || status < MSC_E_CANCELLED) {
            fuzz_fail("a status that is none");
        }
    }
    msc_status_restore(MSC_OK, "");
    return status;
}

static void drop_line(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    (void)level;
    if (strchr(line, '\n')) {
        fuzz_fail("a log line with a line break");
    }
}

const struct msc_log fuzz_log = {.level = MSC_LOG_DEBUG, .write = drop_line};
