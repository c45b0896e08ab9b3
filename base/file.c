#include "base/file.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 16)

static enum msc_status fail_system(const char *what, const char *path, int error) {
    char reason[128];
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", error);
    }
    enum msc_status status = error == ENOENT ? MSC_E_NOT_FOUND : MSC_E_IO;
    return MSC_FAIL(status, "cannot %s %s: %s", what, path, reason);
}

static enum msc_status open_for_reading(int *out, struct stat *info, const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail_system("open", path, errno);
    }
    int error = fstat(descriptor, info) == 0 ? 0 : errno;
    if (error == 0 && S_ISDIR(info->st_mode)) {
        error = EISDIR;
    }
    if (error != 0) {
        close(descriptor);
        return fail_system("read", path, error);
    }
    *out = descriptor;
    return MSC_OK;
}

enum msc_status msc_file_read(char **out, size_t *n_bytes, const char *path) {
    enum msc_status status = MSC_OK;
    char *data = NULL;
    size_t length = 0;
    size_t capacity = 0;
    int descriptor = -1;
    struct stat info;

    MSC_TRY(open_for_reading(&descriptor, &info, path));
    // The size is only a hint: pipes have none, and a file may grow while it is read. One byte more
    // lets the read that finds the end happen without growing.
    size_t room = info.st_size > 0 ? (size_t)info.st_size + 1 : READ_BYTES;
    for (;;) {
        MSC_TRY_OUT(msc_grow(&data, &capacity, length + room + 1, 1));
        ssize_t n = read(descriptor, data + length, capacity - length - 1);
        if (n < 0 && errno != EINTR) {
            status = fail_system("read", path, errno);
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

enum msc_status msc_file_map(const void **out, size_t *n_bytes, const char *path) {
    int descriptor = -1;
    struct stat info;
    MSC_TRY(open_for_reading(&descriptor, &info, path));
    if (!S_ISREG(info.st_mode)) {
        close(descriptor);
        return MSC_FAIL(MSC_E_IO, "cannot map %s: not a regular file", path);
    }
    void *data = NULL;
    size_t length = (size_t)info.st_size;
    if (length > 0) {
        data = mmap(NULL, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    int error = errno;
    close(descriptor);
    if (data == MAP_FAILED) {
        return fail_system("map", path, error);
    }
    *out = data;
    *n_bytes = length;
    return MSC_OK;
}

void msc_file_unmap(const void *data, size_t n_bytes) {
    if (data) {
        munmap((void *)data, n_bytes);
    }
}

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

enum msc_status msc_file_writer_begin(struct msc_file_writer *w, const char *path) {
    *w = (struct msc_file_writer){.descriptor = -1};
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        // Renaming would replace the device or folder itself.
        return MSC_FAIL(MSC_E_INVALID, "cannot write %s: it exists and is no regular file", path);
    }
    struct msc_str name = {0};
    msc_str_append(&name, path);
    msc_str_append(&name, ".tmp.");
    msc_str_i64(&name, (int64_t)getpid());
    MSC_TRY(msc_str_take(&w->temporary, &name));
    w->path = msc_strdup(path);
    if (!w->path) {
        msc_free(w->temporary);
        w->temporary = NULL;
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    w->descriptor = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (w->descriptor < 0) {
        enum msc_status status = fail_system("write", w->path, errno);
        msc_file_writer_abort(w);
        return status;
    }
    if (exists && fchmod(w->descriptor, old.st_mode & 0777) != 0) {
        enum msc_status status = fail_system("keep the permissions of", w->path, errno);
        msc_file_writer_abort(w);
        return status;
    }
    return MSC_OK;
}

enum msc_status msc_file_writer_write(struct msc_file_writer *w, const void *data, size_t n_bytes) {
    const char *rest = data;
    size_t n_left = n_bytes;
    while (n_left > 0) {
        ssize_t n = write(w->descriptor, rest, n_left);
        if (n < 0 && errno != EINTR) {
            return fail_system("write", w->path, errno);
        }
        if (n > 0) {
            rest += n;
            n_left -= (size_t)n;
        }
    }
    w->n_bytes += n_bytes;
    return MSC_OK;
}

// Makes the rename itself last through a power cut. A failure here cannot undo the rename, and
// either name leads to a whole file, so it is none of the caller's business.
static void sync_folder(const char *path) {
    struct msc_arena arena = {0};
    const char *folder = msc_path_folder(&arena, path);
    int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
    msc_arena_finish(&arena);
}

enum msc_status msc_file_writer_commit(struct msc_file_writer *w) {
    if (fsync(w->descriptor) != 0) {
        return fail_system("write", w->path, errno);
    }
    int descriptor = w->descriptor;
    w->descriptor = -1;
    if (close(descriptor) != 0) {
        return fail_system("write", w->path, errno);
    }
    if (rename(w->temporary, w->path) != 0) {
        return fail_system("replace", w->path, errno);
    }
    sync_folder(w->path);
    msc_free(w->path);
    msc_free(w->temporary);
    *w = (struct msc_file_writer){.descriptor = -1};
    return MSC_OK;
}

void msc_file_writer_abort(struct msc_file_writer *w) {
    if (!w->path) {
        return;
    }
    if (w->descriptor >= 0) {
        close(w->descriptor);
    }
    unlink(w->temporary);
    msc_free(w->path);
    msc_free(w->temporary);
    *w = (struct msc_file_writer){.descriptor = -1};
}

bool msc_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

static enum msc_status make_folder(const char *path) {
    if (mkdir(path, 0777) == 0) {
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
    return fail_system("make folder", path, error);
}

enum msc_status msc_file_make_folders(const char *path) {
    enum msc_status status = MSC_OK;
    char *prefix = msc_strdup(path);
    if (!prefix) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
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
        return fail_system("remove", path, errno);
    }
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
            status = fail_system("ask for the free space of", path, errno);
            goto out;
        }
        place = msc_path_folder(&arena, place);
        if (!place) {
            status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
            goto out;
        }
    }
    *out = (uint64_t)info.f_bavail * info.f_frsize;
out:
    msc_arena_finish(&arena);
    return status;
}
