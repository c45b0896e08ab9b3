// Atomic file writes: a file is complete or absent.
//
// Data is written to a temporary file next to the target, named TARGET.tmp.<16 random hex digits>.
// The random name cannot be guessed, so nobody can create a file or link of that name first. The
// writer keeps the temporary file locked. A temporary file without a lock was left by a killed
// writer; the next writer of the same target removes it.
#include "base/file.h"

#include "base/alloc.h"
#include "base/file_internal.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BETWEEN ".tmp."
#define N_DIGITS 16

enum msc_status msc_file_write(const char *path, const void *data, size_t n_bytes) {
    enum msc_status status = MSC_OK;
    struct msc_file_writer w = {0};
    MSC_TRY_OUT(msc_file_writer_begin(&w, path));
    MSC_TRY_OUT(msc_file_writer_write(&w, data, n_bytes));
    MSC_TRY_OUT(msc_file_writer_commit(&w));
out:
    msc_file_writer_abort(&w);
    return status;
}

// ---- Leftovers of killed writers --------------------------------------------------------------

// True if `name` is a temporary file of `target`. Both are names without folders.
static bool is_temporary(const char *name, const char *target) {
    size_t length = strlen(target);
    size_t between = strlen(BETWEEN);
    if (strncmp(name, target, length) != 0 || strncmp(name + length, BETWEEN, between) != 0) {
        return false;
    }
    const char *digits = name + length + between;
    return strspn(digits, "0123456789abcdef") == N_DIGITS && digits[N_DIGITS] == '\0';
}

// Removes one of this user's temporary files if no living writer has locked it. Names are never
// reused, so this removes either the file that was checked or, if its writer has just finished,
// nothing.
static void remove_dead(int folder, const char *name) {
    struct stat info;
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) {
        return;
    }
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
        info.st_uid == geteuid() && flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        unlinkat(folder, name, 0);
    }
    close(descriptor);
}

// Removes all temporary files that killed writers left, as far as possible. A failure does not stop
// the writer.
static void remove_all_dead(const char *path) {
    struct msc_arena arena = {0};
    const char *name = msc_path_name(path);
    const char *folder = msc_path_folder(&arena, path);
    DIR *list = folder ? opendir(folder) : NULL;
    for (struct dirent *e = list ? readdir(list) : NULL; e; e = readdir(list)) {
        if (is_temporary(e->d_name, name)) {
            remove_dead(dirfd(list), e->d_name);
        }
    }
    if (list) {
        closedir(list);
    }
    msc_arena_finish(&arena);
}

// ---- Writing ----------------------------------------------------------------------------------

static enum msc_status choose_name(char **out, const char *path) {
    uint64_t number = 0;
    struct msc_str name = {0};
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        return msc_file__fail("find a name to write", path, errno);
    }
    msc_str_printf(&name, "%s" BETWEEN "%0*llx", path, N_DIGITS, (unsigned long long)number);
    return msc_str_take(out, &name);
}

// Creates and locks a temporary file. If another process removes or locks the file first, creates
// another file.
static enum msc_status make_temporary(struct msc_file_writer *w, mode_t mode) {
    struct stat info = {0};
    while (info.st_nlink == 0) {
        msc_free(w->temporary);
        w->temporary = NULL;
        MSC_TRY(choose_name(&w->temporary, w->path));
        const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        w->descriptor = open(w->temporary, flags, mode);
        if (w->descriptor < 0) {
            return msc_file__fail("write", w->path, errno);
        }
        bool is_held = flock(w->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (fstat(w->descriptor, &info) != 0) {
            return msc_file__fail("write", w->path, errno);
        }
        if (!is_held || info.st_nlink == 0) {
            info.st_nlink = 0;
            close(w->descriptor);
            w->descriptor = -1;
        }
    }
    return MSC_OK;
}

static enum msc_status file_write_begin(struct msc_file_writer *w, const struct stat *old) {
    remove_all_dead(w->path);
    MSC_TRY(make_temporary(w, old ? 0600 : 0666));
    return !old || fchmod(w->descriptor, old->st_mode & 0777) == 0
               ? MSC_OK
               : msc_file__fail("keep the permissions of", w->path, errno);
}

enum msc_status msc_file_writer_begin(struct msc_file_writer *w, const char *path) {
    *w = (struct msc_file_writer){.descriptor = -1};
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        // Renaming over a device or folder would replace it.
        return MSC_FAIL(MSC_E_INVALID, "cannot write %s: it exists and is not a regular file",
                        path);
    }
    w->path = msc_strdup(path);
    MSC_TRY(MSC_ALLOCATED(w->path));
    enum msc_status status = file_write_begin(w, exists ? &old : NULL);
    if (status != MSC_OK) {
        msc_file_writer_abort(w);
    }
    return status;
}

enum msc_status msc_file_writer_write(struct msc_file_writer *w, const void *data, size_t n_bytes) {
    const char *rest = data;
    size_t n_left = n_bytes;
    while (n_left > 0) {
        ssize_t n = write(w->descriptor, rest, n_left);
        if (n < 0 && errno != EINTR) {
            return msc_file__fail("write", w->path, errno);
        }
        if (n > 0) {
            rest += n;
            n_left -= (size_t)n;
        }
    }
    w->n_bytes += n_bytes;
    return MSC_OK;
}

enum msc_status msc_file_writer_write_at(struct msc_file_writer *w, uint64_t place,
                                         const void *data, size_t n_bytes) {
    const char *rest = data;
    size_t n_left = n_bytes;
    while (n_left > 0) {
        ssize_t n = pwrite(w->descriptor, rest, n_left, (off_t)place);
        if (n < 0 && errno != EINTR) {
            return msc_file__fail("write", w->path, errno);
        }
        if (n > 0) {
            rest += n;
            n_left -= (size_t)n;
            place += (uint64_t)n;
        }
    }
    return MSC_OK;
}

enum msc_status msc_file_writer_read_at(struct msc_file_writer *w, uint64_t place, void *data,
                                        size_t n_bytes) {
    char *rest = data;
    size_t n_left = n_bytes;
    while (n_left > 0) {
        ssize_t n = pread(w->descriptor, rest, n_left, (off_t)place);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return msc_file__fail("read back", w->path, n == 0 ? EIO : errno);
        }
        if (n > 0) {
            rest += n;
            n_left -= (size_t)n;
            place += (uint64_t)n;
        }
    }
    return MSC_OK;
}

static void file_write_finish(struct msc_file_writer *w) {
    if (w->descriptor >= 0) {
        close(w->descriptor); // cannot lose data, because all of it is synced
    }
    msc_free(w->path);
    msc_free(w->temporary);
    *w = (struct msc_file_writer){.descriptor = -1};
}

enum msc_status msc_file_writer_commit(struct msc_file_writer *w) {
    if (fsync(w->descriptor) != 0) {
        return msc_file__fail("write", w->path, errno);
    }
    // The file must still be locked here, because a temporary file without a lock may be removed.
    if (rename(w->temporary, w->path) != 0) {
        return msc_file__fail("replace", w->path, errno);
    }
    // If a power cut prevents the sync, the folder has a complete file under one of the two names.
    msc_file_sync_folder(w->path);
    file_write_finish(w);
    return MSC_OK;
}

void msc_file_writer_abort(struct msc_file_writer *w) {
    if (!w->path) {
        return;
    }
    if (w->descriptor >= 0) {
        unlink(w->temporary);
    }
    file_write_finish(w);
}

// ---- Locks ------------------------------------------------------------------------------------

enum msc_status msc_file_lock_folder(int *lock, const char *folder) {
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0) {
        return msc_file__fail("lock", folder, errno);
    }
    while (flock(*lock, LOCK_EX) != 0 && errno == EINTR) {}
    return MSC_OK;
}
