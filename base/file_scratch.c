// Folders for what is needed for a while.
#include "base/file.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum msc_status msc_file_make_scratch(char **out, struct msc_arena *arena) {
    const char *place = getenv("TMPDIR");
    char *path = msc_arena_printf(arena, "%s/mscgym-XXXXXX", place && place[0] ? place : "/tmp");
    if (!path) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the path of a folder");
    }
    MSC_TRY(msc_utf8_check(path, strlen(path), "TMPDIR")); // programs get paths as JSON
    if (!mkdtemp(path)) {
        return MSC_FAIL(MSC_E_IO, "%s: no folder can be made: %s; TMPDIR names another place", path,
                        strerror(errno));
    }
    *out = path;
    return MSC_OK;
}

void msc_file_remove_scratch(const char *path) {
    DIR *folder = path ? opendir(path) : NULL;
    if (!folder) {
        return;
    }
    for (const struct dirent *item; (item = readdir(folder)) != NULL;) {
        unlinkat(dirfd(folder), item->d_name, 0); // fails for "." and ".."
    }
    closedir(folder);
    rmdir(path);
}
