// A temporary folder for a test.
//
//     char folder[TEMP_FOLDER_BYTES];
//     temp_folder_make(folder);
//     ...
//     temp_folder_remove(folder);
#ifndef MSC_TESTS_TEMP_FOLDER_H
#define MSC_TESTS_TEMP_FOLDER_H

#include "tests/msc_test.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMP_FOLDER_BYTES PATH_MAX

// Makes a new folder below $TMPDIR or /tmp and writes its path to `path`.
static inline void temp_folder_make(char path[TEMP_FOLDER_BYTES]) {
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(path, TEMP_FOLDER_BYTES, "%s/msc_test_XXXXXX", base);
    assert_non_null(mkdtemp(path));
}

// Removes the folder with its files. The folder must not contain other folders.
static inline void temp_folder_remove(const char *path) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char file[TEMP_FOLDER_BYTES + sizeof(entry->d_name) + 1];
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        unlink(file); // fails for "." and ".."
    }
    closedir(folder);
    assert_int_equal(rmdir(path), 0);
}

#endif
