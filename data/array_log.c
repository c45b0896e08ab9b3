// flock is not in POSIX.
#define _DEFAULT_SOURCE

#include "data/array_log.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "mscgym arrays 1\n"
enum { MAGIC_BYTES = sizeof MAGIC - 1, HASH_BYTES = 16, BEGIN_BYTES = MAGIC_BYTES + HASH_BYTES };

// The first bytes of an array. Its dimensions and its name follow.
struct array_head {
    uint32_t name_bytes, dtype, n_dims, zero;
};

struct logged_array {
    char *name;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    uint64_t begin, n_bytes; // range of the elements in the file
    struct msc_hash hash;    // hash of everything before the elements
};

struct msc_array_log {
    char *path;
    int descriptor;
    uint64_t n_bytes; // length of the valid part of the file
    struct logged_array *arrays;
    size_t n, capacity;
};

static enum msc_status fail_log(const struct msc_array_log *l, const char *what, int error) {
    char reason[128];
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", error);
    }
    return MSC_FAIL(MSC_E_IO, "%s: cannot %s: %s", l->path, what, reason);
}

// ---- Bytes ------------------------------------------------------------------------------------

static void put_hash(unsigned char bytes[HASH_BYTES], struct msc_hash h) {
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(h.low >> (8 * i));
        bytes[8 + i] = (unsigned char)(h.high >> (8 * i));
    }
}

static bool has_hash(const unsigned char bytes[HASH_BYTES], struct msc_hash h) {
    unsigned char expected[HASH_BYTES];
    put_hash(expected, h);
    return memcmp(bytes, expected, HASH_BYTES) == 0;
}

static enum msc_status write_at(const struct msc_array_log *l, uint64_t at, const void *data,
                                size_t n_bytes) {
    const char *rest = data;
    while (n_bytes > 0) {
        ssize_t n = pwrite(l->descriptor, rest, n_bytes, (off_t)at);
        if (n < 0 && errno != EINTR) {
            return fail_log(l, "write", errno);
        }
        if (n > 0) {
            rest += n;
            at += (uint64_t)n;
            n_bytes -= (size_t)n;
        }
    }
    return MSC_OK;
}

static enum msc_status read_at(const struct msc_array_log *l, uint64_t at, void *data,
                               size_t n_bytes) {
    char *rest = data;
    while (n_bytes > 0) {
        ssize_t n = pread(l->descriptor, rest, n_bytes, (off_t)at);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return n == 0 ? MSC_FAIL(MSC_E_FORMAT, "%s: the file has become shorter", l->path)
                          : fail_log(l, "read", errno);
        }
        if (n > 0) {
            rest += n;
            at += (uint64_t)n;
            n_bytes -= (size_t)n;
        }
    }
    return MSC_OK;
}

// ---- Reading ----------------------------------------------------------------------------------

enum part { PART_WHOLE, PART_SHORT, PART_DAMAGED };

// Computes the size of the elements without trusting the dims. False if a dim is negative or the
// size exceeds `most`.
static bool count_bytes(uint64_t *out, const struct logged_array *a, uint64_t most) {
    uint64_t n = msc_dtype_bytes(a->dtype);
    for (int i = 0; i < a->n_dims; i++) {
        uint64_t length = (uint64_t)a->dims[i];
        if (a->dims[i] < 0 || (length > 0 && n > most / length)) {
            return false;
        }
        n *= length;
    }
    *out = n;
    return n <= most;
}

// Parses the array at offset `at` of the file. The name is borrowed from `bytes`.
static enum part parse_array(struct logged_array *a, const char **name, size_t *name_bytes,
                             const unsigned char *bytes, uint64_t n_bytes, uint64_t at) {
    struct array_head head;
    if (n_bytes - at < sizeof head) {
        return PART_SHORT;
    }
    memcpy(&head, bytes + at, sizeof head);
    *a = (struct logged_array){.dtype = (enum msc_dtype)head.dtype, .n_dims = (int)head.n_dims};
    if (head.zero != 0 || head.n_dims > MSC_MAX_DIMS || head.dtype >= MSC_DTYPE_COUNT ||
        msc_dtype_bytes(a->dtype) == 0) {
        return PART_DAMAGED;
    }
    uint64_t of_dims = head.n_dims * sizeof(a->dims[0]), left = n_bytes - at - sizeof head;
    if (left < of_dims + head.name_bytes) {
        return PART_SHORT;
    }
    memcpy(a->dims, bytes + at + sizeof head, of_dims);
    *name = (const char *)bytes + at + sizeof head + of_dims;
    *name_bytes = head.name_bytes;
    a->begin = at + sizeof head + of_dims + head.name_bytes;
    left = n_bytes - a->begin;
    if (left < HASH_BYTES || !count_bytes(&a->n_bytes, a, left - HASH_BYTES)) {
        return PART_SHORT;
    }
    a->hash = msc_hash_bytes(bytes + at, a->begin - at);
    a->hash = msc_hash_add_bytes(a->hash, bytes + a->begin, a->n_bytes);
    return has_hash(bytes + a->begin + a->n_bytes, a->hash) ? PART_WHOLE : PART_DAMAGED;
}

static enum msc_status keep_array(struct msc_array_log *l, const struct logged_array *a,
                                  const char *name, size_t name_bytes) {
    MSC_TRY(msc_grow(&l->arrays, &l->capacity, l->n + 1, sizeof(l->arrays[0])));
    struct logged_array *kept = &l->arrays[l->n];
    *kept = *a;
    kept->name = msc_alloc_zero(name_bytes + 1, 1);
    MSC_TRY(MSC_ALLOCATED(kept->name));
    memcpy(kept->name, name, name_bytes);
    l->n++;
    l->n_bytes = a->begin + a->n_bytes + HASH_BYTES;
    return MSC_OK;
}

static enum msc_status scan_log(struct msc_array_log *l, const unsigned char *bytes, size_t n_bytes,
                                struct msc_hash identity, const struct msc_log *log) {
    bool is_one = n_bytes >= BEGIN_BYTES;
    if (n_bytes > 0 && memcmp(bytes, MAGIC, n_bytes < MAGIC_BYTES ? n_bytes : MAGIC_BYTES) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: not an array file of mscgym, so it is not overwritten",
                        l->path);
    }
    if (!is_one || !has_hash(bytes + MAGIC_BYTES, identity)) {
        if (n_bytes > 0) {
            msc_log(log, MSC_LOG_WARNING, "%s: %s; starting a new file", l->path,
                    is_one ? "belongs to another configuration, model, dataset or program"
                           : "damaged");
        }
        return MSC_OK;
    }
    l->n_bytes = BEGIN_BYTES;
    while (l->n_bytes < n_bytes) {
        struct logged_array a;
        const char *name;
        size_t name_bytes;
        enum part part = parse_array(&a, &name, &name_bytes, bytes, n_bytes, l->n_bytes);
        if (part == PART_DAMAGED) {
            msc_log(log, MSC_LOG_WARNING,
                    "%s: damaged from byte %llu on; that part will be recomputed", l->path,
                    (unsigned long long)l->n_bytes);
        } else if (part == PART_SHORT) {
            msc_log(log, MSC_LOG_INFO, "%s: the last array is incomplete and will be recomputed",
                    l->path);
        }
        if (part != PART_WHOLE) {
            break;
        }
        MSC_TRY(keep_array(l, &a, name, name_bytes));
    }
    return MSC_OK;
}

// ---- Opening ----------------------------------------------------------------------------------

// Rejects a symbolic or hard link, because it may lead to somebody else's file.
static enum msc_status lock_log(struct msc_array_log *l) {
    struct stat info;
    l->descriptor = open(l->path, O_RDWR | O_CLOEXEC | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (l->descriptor < 0) {
        return errno == ELOOP
                   ? MSC_FAIL(MSC_E_IO, "%s: this is a symbolic link, which is not followed",
                              l->path)
                   : fail_log(l, "open", errno);
    }
    if (fstat(l->descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        return MSC_FAIL(MSC_E_IO, "%s: not a regular file", l->path);
    }
    if (info.st_nlink > 1) {
        return MSC_FAIL(MSC_E_IO, "%s: the file has a second hard link, so it is not overwritten",
                        l->path);
    }
    return flock(l->descriptor, LOCK_EX | LOCK_NB) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE, "%s: another process has the file open", l->path);
}

static enum msc_status load_log(struct msc_array_log *l, struct msc_hash identity,
                                const struct msc_log *log) {
    const void *bytes = NULL;
    size_t n_bytes = 0;
    unsigned char begin[BEGIN_BYTES] = MAGIC;
    MSC_TRY(lock_log(l));
    MSC_TRY(msc_file_map(&bytes, &n_bytes, l->path));
    enum msc_status status = scan_log(l, bytes, n_bytes, identity, log);
    msc_file_unmap(bytes, n_bytes);
    MSC_TRY(status);
    if (ftruncate(l->descriptor, (off_t)l->n_bytes) != 0) {
        return fail_log(l, "cut", errno);
    }
    if (l->n_bytes == 0) {
        put_hash(begin + MAGIC_BYTES, identity);
        MSC_TRY(write_at(l, 0, begin, sizeof begin));
        l->n_bytes = sizeof begin;
    }
    return MSC_OK;
}

enum msc_status msc_array_log_open(struct msc_array_log **out, const char *path,
                                   struct msc_hash identity, const struct msc_log *log) {
    struct msc_array_log *l = msc_alloc_zero(1, sizeof *l);
    MSC_TRY(MSC_ALLOCATED(l));
    l->descriptor = -1;
    l->path = msc_strdup(path);
    enum msc_status status =
        l->path ? load_log(l, identity, log) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        msc_array_log_close(l);
        return status;
    }
    *out = l;
    return MSC_OK;
}

void msc_array_log_close(struct msc_array_log *l) {
    if (l) {
        for (size_t i = 0; i < l->n; i++) {
            msc_free(l->arrays[i].name);
        }
        if (l->descriptor >= 0) {
            close(l->descriptor);
        }
        msc_free(l->arrays);
        msc_free(l->path);
        msc_free(l);
    }
}

void msc_array_log_remove(const char *path) {
    struct stat info;
    char begin[MAGIC_BYTES];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool is_one = descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
                  pread(descriptor, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
                  memcmp(begin, MAGIC, sizeof begin) == 0;
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (is_one) {
        (void)msc_file_remove(path); // a failure is ignored, because a leftover file does no harm
    }
}

// ---- Arrays -----------------------------------------------------------------------------------

size_t msc_array_log_n(const struct msc_array_log *l) {
    return l->n;
}

const char *msc_array_log_name(const struct msc_array_log *l, size_t index) {
    return l->arrays[index].name;
}

static const struct logged_array *find_array(const struct msc_array_log *l, const char *name) {
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->arrays[i].name, name) == 0) {
            return &l->arrays[i];
        }
    }
    return NULL;
}

// The hash of everything before an array's elements.
static struct msc_hash hash_head(const struct array_head *head, const int64_t dims[],
                                 const char *name, char room[]) {
    size_t of_dims = head->n_dims * sizeof(dims[0]);
    memcpy(room, head, sizeof *head);
    memcpy(room + sizeof *head, dims, of_dims);
    memcpy(room + sizeof *head + of_dims, name, head->name_bytes);
    return msc_hash_bytes(room, sizeof *head + of_dims + head->name_bytes);
}

enum msc_status msc_array_log_read(struct msc_array **out, const struct msc_array_log *l,
                                   const char *name) {
    const struct logged_array *a = find_array(l, name);
    struct msc_array *array;
    unsigned char hash[HASH_BYTES];
    if (!a) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "%s: no array %s", l->path, name);
    }
    MSC_TRY(msc_array_create(&array, a->dtype, a->n_dims, a->dims));
    enum msc_status status = read_at(l, a->begin, msc_array_data(array), a->n_bytes);
    if (status == MSC_OK) {
        status = read_at(l, a->begin + a->n_bytes, hash, sizeof hash);
    }
    if (status == MSC_OK && !has_hash(hash, a->hash)) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: the file has changed since it was opened", l->path);
    }
    if (status != MSC_OK) {
        msc_array_release(array);
        return status;
    }
    *out = array;
    return MSC_OK;
}

static enum msc_status append_array(struct msc_array_log *l, struct logged_array *a,
                                    const char *name, const void *data) {
    const struct array_head head = {.name_bytes = (uint32_t)strlen(name),
                                    .dtype = (uint32_t)a->dtype,
                                    .n_dims = (uint32_t)a->n_dims};
    unsigned char hash[HASH_BYTES];
    size_t n_head = sizeof head + (size_t)a->n_dims * sizeof(a->dims[0]) + head.name_bytes;
    char *room = msc_alloc(n_head);
    MSC_TRY(MSC_ALLOCATED(room));
    a->begin = l->n_bytes + n_head;
    a->hash = msc_hash_add_bytes(hash_head(&head, a->dims, name, room), data, a->n_bytes);
    put_hash(hash, a->hash);
    enum msc_status status = write_at(l, l->n_bytes, room, n_head);
    msc_free(room);
    MSC_TRY(status);
    MSC_TRY(write_at(l, a->begin, data, a->n_bytes));
    return write_at(l, a->begin + a->n_bytes, hash, sizeof hash);
}

enum msc_status msc_array_log_add(struct msc_array_log *l, const char *name,
                                  const struct msc_array *array) {
    struct logged_array a = {.dtype = msc_array_dtype(array), .n_dims = msc_array_n_dims(array)};
    memcpy(a.dims, msc_array_dims(array), (size_t)a.n_dims * sizeof(a.dims[0]));
    a.n_bytes = (uint64_t)msc_array_n_elements(array) * msc_dtype_bytes(a.dtype);
    enum msc_status status = append_array(l, &a, name, msc_array_data(array));
    if (status == MSC_OK) {
        status = keep_array(l, &a, name, strlen(name));
    }
    if (status != MSC_OK && ftruncate(l->descriptor, (off_t)l->n_bytes) != 0) {
        return status; // the next open cuts off the incomplete array
    }
    return status;
}
