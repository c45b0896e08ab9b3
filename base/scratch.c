#include "base/scratch.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "mscgym-run-" // the same as in mscgym-runtime

static const char *find_place(void) {
    const char *place = getenv("TMPDIR");
    return place && place[0] ? place : "/tmp";
}

// Opens a folder, but not a link to a folder. -1 if it does not exist or cannot be opened.
static int open_folder(int parent, const char *name) {
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void msc_scratch_remove(struct msc_scratch *scratch) {
    if (scratch->path) {
        msc_file_remove_tree(AT_FDCWD, scratch->path);
        close(scratch->lock);
        scratch->path = NULL;
    }
}

// ---- Leftovers of killed processes ------------------------------------------------------------

static void remove_dead(int parent, const char *name) {
    struct stat info;
    int lock = open_folder(parent, name);
    if (lock < 0) {
        return;
    }
    if (fstat(lock, &info) == 0 && info.st_uid == geteuid() &&
        flock(lock, LOCK_EX | LOCK_NB) == 0) {
        msc_file_remove_tree(parent, name);
    }
    close(lock);
}

void msc_scratch_sweep(void) {
    DIR *list = opendir(find_place());
    for (const struct dirent *item; list && (item = readdir(list)) != NULL;) {
        if (strncmp(item->d_name, PREFIX, strlen(PREFIX)) == 0) {
            remove_dead(dirfd(list), item->d_name);
        }
    }
    if (list) {
        closedir(list);
    }
}

// ---- Making -----------------------------------------------------------------------------------

static enum msc_status fail_make(const char *path) {
    return MSC_FAIL(MSC_E_IO, "%s: cannot make a folder there: %s; set TMPDIR to another folder",
                    path, strerror(errno));
}

// Locks the folder. False if a sweep removed the folder between its creation and the lock. On a
// file system without locks, sweeps remove nothing.
static bool hold(int *lock, const char *path) {
    struct stat info = {0};
    *lock = open_folder(AT_FDCWD, path);
    if (*lock < 0) {
        return false;
    }
    bool is_held = flock(*lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (is_held && fstat(*lock, &info) == 0 && info.st_nlink > 0) {
        return true;
    }
    close(*lock);
    errno = ENOENT;
    return false;
}

enum msc_status msc_scratch_make(struct msc_scratch *out, struct msc_arena *arena) {
    char *place = NULL;
    // The path must be UTF-8, because other programs receive it in JSON.
    MSC_TRY(msc_utf8_check(find_place(), strlen(find_place()), "TMPDIR"));
    MSC_TRY(msc_path_planned(&place, arena, find_place()));
    for (;;) {
        char *path = msc_arena_printf(arena, "%s/" PREFIX "XXXXXX", place);
        MSC_TRY(MSC_ALLOCATED(path));
        if (!mkdtemp(path)) {
            return fail_make(path);
        }
        if (hold(&out->lock, path)) {
            out->path = path;
            return MSC_OK;
        }
        if (errno != ENOENT) {
            enum msc_status status = fail_make(path);
            rmdir(path);
            return status;
        }
    }
}
