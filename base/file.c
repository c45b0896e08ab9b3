// POSIX has no madvise.
#define _DEFAULT_SOURCE
#include "base/file.h"

#include "base/alloc.h"
#include "base/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 16)

enum msc_status msc_file__fail(const char *what, const char *path, int error) {
    char reason[128];
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", error);
    }
    bool is_misled =
        error == ENOTDIR || error == EISDIR; // a file in place of a folder, or the reverse
    enum msc_status status = error == ENOENT ? MSC_E_NOT_FOUND
                             : is_misled     ? MSC_E_INVALID
                                             : MSC_E_IO;
    return MSC_FAIL(status, "cannot %s %s: %s", what, path, reason);
}

// In a clone without Git LFS, a text file that begins with this line replaces each large file.
static bool is_lfs_pointer(int descriptor) {
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    char found[sizeof begin - 1];
    return pread(descriptor, found, sizeof found, 0) == (ssize_t)sizeof found &&
           memcmp(found, begin, sizeof found) == 0;
}

enum msc_status msc_file_open(int *out, uint64_t *n_bytes, const char *path) {
    struct stat info;
    // While the file type is unknown, opening must not block or acquire a controlling terminal.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        return msc_file__fail("open", path, errno);
    }
    int error = fstat(descriptor, &info) == 0 ? 0 : errno;
    if (error != 0) {
        close(descriptor);
        return msc_file__fail("read", path, error);
    }
    if (!S_ISREG(info.st_mode)) {
        close(descriptor);
        return MSC_FAIL(MSC_E_INVALID, "cannot read %s: it is %s, expected a file", path,
                        S_ISDIR(info.st_mode)    ? "a folder"
                        : S_ISFIFO(info.st_mode) ? "a pipe"
                                                 : "a device");
    }
    if (is_lfs_pointer(descriptor)) {
        close(descriptor);
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: this is a Git LFS pointer, not the file itself; run git lfs pull",
                        path);
    }
    *out = descriptor;
    if (n_bytes) {
        *n_bytes = (uint64_t)info.st_size;
    }
    return MSC_OK;
}

enum msc_status msc_file_read(char **out, size_t *n_bytes, const char *path) {
    enum msc_status status = MSC_OK;
    char *data = NULL;
    size_t length = 0;
    size_t capacity = 0;
    int descriptor = -1;
    uint64_t n_expected = 0;

    MSC_TRY(msc_file_open(&descriptor, &n_expected, path));
    // The size is only a hint: files in /proc report 0, and a file may grow while it is read. With
    // the extra byte, the read that finds the end of the file does not need a larger buffer.
    size_t room = n_expected > 0 ? (size_t)n_expected + 1 : READ_BYTES;
    for (;;) {
        MSC_TRY_OUT(msc_grow(&data, &capacity, length + room + 1, 1));
        ssize_t n = read(descriptor, data + length, capacity - length - 1);
        if (n < 0 && errno != EINTR) {
            status = msc_file__fail("read", path, errno);
            goto out;
        }
        if (n == 0) {
            break;
        }
        length += n > 0 ? (size_t)n : 0;
        room = length < capacity - 1 ? 0 : READ_BYTES;
    }
    data[length] = '\0';
    *out = data;
    *n_bytes = length;
    data = NULL;
out:
    msc_free(data);
    close(descriptor);
    return status;
}

enum msc_status msc_file_size(uint64_t *n_bytes, const char *path) {
    int descriptor = -1;
    MSC_TRY(msc_file_open(&descriptor, n_bytes, path));
    close(descriptor);
    return MSC_OK;
}

// Maps bytes of an open file, and closes it. `offset` is at the start of a page.
static enum msc_status map_and_close(void **out, int descriptor, uint64_t offset, size_t n_bytes,
                                     const char *path) {
    void *data = NULL;
    if (n_bytes > 0) {
        data = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, descriptor, (off_t)offset);
    }
    int error = errno;
    close(descriptor);
    if (data == MAP_FAILED) {
        return msc_file__fail("map", path, error);
    }
    *out = data;
    return MSC_OK;
}

enum msc_status msc_file_map(const void **out, size_t *n_bytes, const char *path) {
    int descriptor = -1;
    uint64_t length = 0;
    MSC_TRY(msc_file_open(&descriptor, &length, path));
    void *data = NULL;
    MSC_TRY(map_and_close(&data, descriptor, 0, length, path));
    *out = data;
    *n_bytes = length;
    return MSC_OK;
}

void msc_file_unmap(const void *data, size_t n_bytes) {
    if (data) {
        munmap((void *)data, n_bytes);
    }
}

// Mappings begin at pages: bytes between the start of its page and `address`.
static size_t page_rest(uint64_t address) {
    return (size_t)(address % (uint64_t)sysconf(_SC_PAGESIZE));
}

enum msc_status msc_file_map_part(const void **out, const char *path, uint64_t offset,
                                  size_t n_bytes) {
    int descriptor = -1;
    uint64_t length = 0;
    size_t rest = page_rest(offset);
    MSC_TRY(msc_file_open(&descriptor, &length, path));
    if (offset > length || n_bytes > length - offset) {
        close(descriptor);
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: has %" PRIu64 " bytes, expected at least %" PRIu64
                        ": copy the file again",
                        path, length, offset + n_bytes);
    }
    void *data = NULL;
    MSC_TRY(map_and_close(&data, descriptor, offset - rest, rest + n_bytes, path));
    *out = (const char *)data + rest;
    return MSC_OK;
}

void msc_file_unmap_part(const void *data, size_t n_bytes) {
    size_t rest = page_rest((uintptr_t)data);
    munmap((char *)data - rest, rest + n_bytes);
}

void msc_file_forget_part(const void *data, size_t n_bytes) {
    size_t rest = page_rest((uintptr_t)data);
    madvise((char *)data - rest, rest + n_bytes, MADV_DONTNEED);
}

bool msc_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

void msc_file_sync_folder(const char *path) {
    struct msc_arena arena = {0};
    char *folder = msc_path_folder(&arena, path);
    int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) { // some file systems cannot sync a folder
        fsync(descriptor);
        close(descriptor);
    }
    msc_arena_finish(&arena);
}

enum msc_status msc_file_sync(const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    int error = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (error != 0 && error != EINVAL) { // some file systems cannot sync
        return msc_file__fail("sync", path, error);
    }
    msc_file_sync_folder(path);
    return MSC_OK;
}

static enum msc_status make_folder(const char *path) {
    if (mkdir(path, 0777) == 0) {
        msc_file_sync_folder(path);
        return MSC_OK;
    }
    int error = errno;
    struct stat info;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) {
            return MSC_OK;
        }
        error = ENOTDIR;
    }
    return msc_file__fail("make folder", path, error);
}

enum msc_status msc_file_make_folders(const char *path) {
    enum msc_status status = MSC_OK;
    char *prefix = msc_strdup(path);
    MSC_TRY(MSC_ALLOCATED(prefix));
    for (char *c = prefix; *c; c++) {
        if (*c == '/' && c > prefix && c[-1] != '/') {
            *c = '\0';
            MSC_TRY_OUT(make_folder(prefix));
            *c = '/';
        }
    }
    status = make_folder(path);
out:
    msc_free(prefix);
    return status;
}

enum msc_status msc_file_remove(const char *path) {
    if (unlink(path) != 0 && errno != ENOENT) {
        return msc_file__fail("remove", path, errno);
    }
    return MSC_OK;
}

enum msc_status msc_file_rename(const char *from, const char *to) {
    if (rename(from, to) == 0) {
        return MSC_OK;
    }
    int cause = errno;
    return cause == ENOENT && !msc_file_exists(from) ? MSC_OK
                                                     : msc_file__fail("rename", from, cause);
}

enum msc_status msc_file_set_aside(const char **to, struct msc_arena *arena, const char *path) {
    int i = 1;
    do {
        *to = msc_arena_printf(arena, "%s.%d", path, i++);
        MSC_TRY(MSC_ALLOCATED(*to));
    } while (msc_file_exists(*to));
    MSC_TRY(msc_file_rename(path, *to));
    msc_file_sync_folder(path);
    return MSC_OK;
}

enum msc_status msc_file_free_bytes(uint64_t *out, const char *path) {
    enum msc_status status = MSC_OK;
    struct msc_arena arena = {0};
    struct statvfs info;
    const char *place = path;
    while (statvfs(place, &info) != 0) {
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(place, ".") == 0 ||
            strcmp(place, "/") == 0) {
            status = msc_file__fail("determine the free space for", path, errno);
            goto out;
        }
        place = msc_path_folder(&arena, place);
        MSC_TRY_OUT(MSC_ALLOCATED(place));
    }
    *out = (uint64_t)info.f_bavail * info.f_frsize;
out:
    msc_arena_finish(&arena);
    return status;
}
