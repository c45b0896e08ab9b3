// Preloaded (LD_PRELOAD) into a program: logs in MSC_POWER_LOG what the program does to the files
// below MSC_POWER_FOLDER, in order. tests/long/power_loss.py derives from the log what a power cut
// may leave on the disk. Each entry is one write to the log, which all processes of a run share:
//
//     u32 kind, u32 length of the path, u64 inode, u64 offset, u64 length of the data, path, data
//
// Kinds: 0 a file was created at a path, 1 data were written at an offset, 2 a new length, 3 a
// sync of the file, 4 a sync of the folder, 5 a rename (the data is the old path), 6 a path was
// removed, 7 a folder was created.
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE, DATA, LENGTH, SYNC_FILE, SYNC_FOLDER, RENAME, REMOVE, FOLDER };

struct note {
    uint32_t kind, path_length;
    uint64_t inode, offset, data_length;
};

// The real function that this file's function of the same name replaces.
#define REAL(name) real_##name
#define TAKE_REAL(result, name, ...)                                                               \
    static result (*real_##name)(__VA_ARGS__);                                                     \
    if (!real_##name) {                                                                            \
        *(void **)(&real_##name) = dlsym(RTLD_NEXT, #name);                                        \
    }

static int log_descriptor(void) {
    static int descriptor = -1;
    const char *path = getenv("MSC_POWER_LOG");
    if (descriptor < 0 && path) {
        TAKE_REAL(int, open, const char *, int, ...)
        descriptor = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    return descriptor;
}

// The path relative to the folder, or NULL if it is outside.
static const char *inside(const char *path, char memory[PATH_MAX]) {
    const char *folder = getenv("MSC_POWER_FOLDER");
    char copy[PATH_MAX], whole[2 * PATH_MAX], resolved[PATH_MAX];
    if (!folder || strlen(path) >= sizeof copy) {
        return NULL;
    }
    strcpy(copy, path);
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    if (slash) {
        *slash = '\0';
    }
    // Symbolic links in the path's folders are resolved. The last name of the path may no longer
    // exist.
    if (!realpath(slash ? (slash == copy ? "/" : copy) : ".", resolved)) {
        return NULL;
    }
    snprintf(whole, sizeof whole, "%s/%s", resolved, name);
    size_t n = strlen(folder);
    if (strncmp(whole, folder, n) != 0 || whole[n] != '/' || strlen(whole + n) >= PATH_MAX) {
        return NULL;
    }
    return strcpy(memory, whole + n + 1);
}

static void put(enum kind kind, const char *path, uint64_t inode, uint64_t offset, const void *data,
                size_t n_bytes) {
    int error = errno, log = log_descriptor();
    struct note note = {(uint32_t)kind, (uint32_t)strlen(path), inode, offset, n_bytes};
    struct iovec parts[] = {
        {&note, sizeof note}, {(void *)path, note.path_length}, {(void *)data, n_bytes}};
    TAKE_REAL(ssize_t, writev, int, const struct iovec *, int)
    ssize_t whole = (ssize_t)(sizeof note + note.path_length + n_bytes);
    if (log >= 0 && REAL(writev)(log, parts, 3) != whole) {
        abort();
    }
    errno = error;
}

// Finds the path of the file that `descriptor` refers to, if the file is below the folder. Returns
// false otherwise.
static bool know(int descriptor, char path[PATH_MAX], uint64_t *inode, bool *is_folder) {
    char name[64], target[PATH_MAX];
    struct stat info;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(name, target, sizeof target - 1);
    if (n < 0 || fstat(descriptor, &info) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        return false;
    }
    target[n] = '\0';
    *inode = info.st_ino;
    *is_folder = S_ISDIR(info.st_mode);
    const char *folder = getenv("MSC_POWER_FOLDER");
    if (folder && strcmp(target, folder) == 0) {
        path[0] = '\0';
        return true;
    }
    return inside(target, path) != NULL;
}

static void note_data(int descriptor, uint64_t offset, const void *data, size_t n_bytes) {
    char path[PATH_MAX];
    uint64_t inode;
    bool is_folder;
    int error = errno;
    if (know(descriptor, path, &inode, &is_folder)) {
        put(DATA, path, inode, offset, data, n_bytes);
    }
    errno = error;
}

// ---- Files ------------------------------------------------------------------------------------

static void note_open(int descriptor, int flags, bool was_there) {
    char path[PATH_MAX];
    uint64_t inode;
    bool is_folder;
    int error = errno;
    if (descriptor >= 0 && know(descriptor, path, &inode, &is_folder) && !is_folder) {
        if (!was_there) {
            put(CREATE, path, inode, 0, NULL, 0);
        } else if (flags & O_TRUNC) {
            put(LENGTH, path, inode, 0, NULL, 0);
        }
    }
    errno = error;
}

int open(const char *path, int flags, ...) {
    TAKE_REAL(int, open, const char *, int, ...)
    mode_t mode = 0;
    struct stat info;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    bool was_there = !(flags & O_CREAT) || lstat(path, &info) == 0;
    int descriptor = REAL(open)(path, flags, mode);
    note_open(descriptor, flags, was_there);
    return descriptor;
}

ssize_t write(int descriptor, const void *data, size_t n_bytes) {
    TAKE_REAL(ssize_t, write, int, const void *, size_t)
    struct stat info;
    off_t before = lseek(descriptor, 0, SEEK_CUR);
    ssize_t n = REAL(write)(descriptor, data, n_bytes);
    if (n > 0 && before >= 0 && fstat(descriptor, &info) == 0) {
        off_t after = lseek(descriptor, 0, SEEK_CUR); // with O_APPEND, this is the end of the file
        note_data(descriptor, (uint64_t)(after - n), data, (size_t)n);
    }
    return n;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int n_pieces) {
    TAKE_REAL(ssize_t, writev, int, const struct iovec *, int)
    off_t before = lseek(descriptor, 0, SEEK_CUR);
    ssize_t n = REAL(writev)(descriptor, pieces, n_pieces);
    off_t at = before < 0 ? -1 : lseek(descriptor, 0, SEEK_CUR) - n;
    for (int i = 0; n > 0 && at >= 0 && i < n_pieces; i++) {
        note_data(descriptor, (uint64_t)at, pieces[i].iov_base, pieces[i].iov_len);
        at += (off_t)pieces[i].iov_len;
    }
    return n;
}

ssize_t pwrite(int descriptor, const void *data, size_t n_bytes, off_t offset) {
    TAKE_REAL(ssize_t, pwrite, int, const void *, size_t, off_t)
    ssize_t n = REAL(pwrite)(descriptor, data, n_bytes, offset);
    if (n > 0) {
        note_data(descriptor, (uint64_t)offset, data, (size_t)n);
    }
    return n;
}

static void note_plain(enum kind kind, int descriptor, uint64_t length) {
    char path[PATH_MAX];
    uint64_t inode;
    bool is_folder;
    int error = errno;
    if (know(descriptor, path, &inode, &is_folder)) {
        put(is_folder && kind == SYNC_FILE ? SYNC_FOLDER : kind, path, inode, length, NULL, 0);
    }
    errno = error;
}

int ftruncate(int descriptor, off_t n_bytes) {
    TAKE_REAL(int, ftruncate, int, off_t)
    int result = REAL(ftruncate)(descriptor, n_bytes);
    if (result == 0) {
        note_plain(LENGTH, descriptor, (uint64_t)n_bytes);
    }
    return result;
}

int posix_fallocate(int descriptor, off_t offset, off_t n_bytes) {
    TAKE_REAL(int, posix_fallocate, int, off_t, off_t)
    int result = REAL(posix_fallocate)(descriptor, offset, n_bytes);
    struct stat info;
    if (result == 0 && fstat(descriptor, &info) == 0) {
        note_plain(LENGTH, descriptor, (uint64_t)info.st_size);
    }
    return result;
}

// A sync is only logged: flushing takes time, and in this run the power does not fail.
int fsync(int descriptor) {
    note_plain(SYNC_FILE, descriptor, 0);
    return 0;
}

int fdatasync(int descriptor) {
    return fsync(descriptor);
}

// ---- Folders ----------------------------------------------------------------------------------

int rename(const char *from, const char *to) {
    TAKE_REAL(int, rename, const char *, const char *)
    char before[PATH_MAX], after[PATH_MAX];
    const char *old_path = inside(from, before), *new_path = inside(to, after);
    int result = REAL(rename)(from, to);
    if (result == 0 && old_path && new_path) {
        put(RENAME, new_path, 0, 0, old_path, strlen(old_path));
    }
    return result;
}

int unlink(const char *path) {
    TAKE_REAL(int, unlink, const char *)
    char memory[PATH_MAX];
    const char *gone = inside(path, memory);
    int result = REAL(unlink)(path);
    if (result == 0 && gone) {
        put(REMOVE, gone, 0, 0, NULL, 0);
    }
    return result;
}

int unlinkat(int folder, const char *path, int flags) {
    TAKE_REAL(int, unlinkat, int, const char *, int)
    char memory[PATH_MAX], whole[2 * PATH_MAX];
    uint64_t inode;
    bool is_folder;
    bool is_known = folder != AT_FDCWD && path[0] != '/' && flags == 0 &&
                    know(folder, memory, &inode, &is_folder);
    snprintf(whole, sizeof whole, "%s%s%s", is_known ? memory : "",
             is_known && memory[0] ? "/" : "", path);
    int result = REAL(unlinkat)(folder, path, flags);
    if (result == 0 && is_known) {
        put(REMOVE, whole, 0, 0, NULL, 0);
    }
    return result;
}

int mkdir(const char *path, mode_t mode) {
    TAKE_REAL(int, mkdir, const char *, mode_t)
    char memory[PATH_MAX];
    int result = REAL(mkdir)(path, mode);
    const char *made = result == 0 ? inside(path, memory) : NULL;
    if (made) {
        put(FOLDER, made, 0, 0, NULL, 0);
    }
    return result;
}
