// System calls and allocations that fail on request. The linker redirects the calls of the command
// to this file (-Wl,--wrap). tests/long/fault_points.py makes each of them fail in turn.
//
// MSC_FAULT_PAGE names a file that all processes of a run share (struct page). The file counts the
// calls of the parent and of the workers, including restarted workers. After the counts, the file
// has a note on each call, or on each call of the kind MSC_FAULT_KIND: a hash of the call stack.
// Calls are noted until the file is full. MSC_FAULT says which calls fail:
//
//     MSC_FAULT="worker alloc 17 1 12"       the 17th allocation of workers, once, with ENOMEM
//     MSC_FAULT="worker write 3 -1 28"       every write from the third on, with ENOSPC
//     MSC_FAULT="parent read 2 1 -1"         the second read returns half of the requested bytes
//     MSC_FAULT="worker device 5 1 19"       the fifth submitted batch finds the device lost
#include "tests/faults/inject.h"

#include "supervise/worker_page.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PARENT, WORKER, N_ROLES };

static const char kind_names[N_KINDS][8] = {
    "alloc", "outside", "open", "stat", "read", "write",   "say",    "sync",
    "close", "name",    "size", "map",  "lock", "process", "device",
};

enum { N_FRAMES = 24, HALF = -1 };

struct page {
    uint32_t n_kinds;
    uint32_t n_frames;
    char names[16][8];              // names of the kinds
    atomic_uint calls[N_ROLES][16]; // number of calls by role and kind
    atomic_uint n_failed;
    atomic_uint n_noted;
    // Stack of the first call that failed, relative to the program's start.
    uint64_t frames[N_FRAMES];
    struct note {
        uint8_t role, kind;
        uint16_t unused;
        uint32_t stack;
    } notes[];
};

static struct page *page;
static size_t n_notes;           // the number of notes for which there is room
static int noted_kind = N_KINDS; // N_KINDS: all kinds are noted
static int role;
static struct {
    int role, kind;
    unsigned first, count;
    int error;
} plan = {.kind = N_KINDS};

extern char __executable_start, etext; // bounds of the program's code

int __real_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
int __real_stat(const char *path, struct stat *info);
int __real_fstat(int descriptor, struct stat *info);
ssize_t __real_read(int descriptor, void *data, size_t n_bytes);
size_t __real_fread(void *data, size_t size, size_t n, FILE *file);
ssize_t __real_write(int descriptor, const void *data, size_t n_bytes);
ssize_t __real_pwrite(int descriptor, const void *data, size_t n_bytes, off_t offset);
ssize_t __real_writev(int descriptor, const struct iovec *pieces, int n);
int __real_fputs(const char *text, FILE *file);
int __real_fflush(FILE *file);
int __real_close(int descriptor);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_mkdir(const char *path, mode_t mode);
char *__real_realpath(const char *path, char *resolved);
int __real_fchmod(int descriptor, mode_t mode);
int __real_ftruncate(int descriptor, off_t n_bytes);
int __real_posix_fallocate(int descriptor, off_t offset, off_t n_bytes);
void *__real_mmap(void *at, size_t n_bytes, int access, int flags, int descriptor, off_t offset);
int __real_memfd_create(const char *name, unsigned flags);
int __real_flock(int descriptor, int what);
pid_t __real_fork(void);
int __real_execve(const char *path, char *const argv[], char *const environment[]);

// ---- Which call fails -------------------------------------------------------------------------

// Hashes only the return addresses within this program, because libraries have too many.
static uint32_t hash_stack(void *const frames[], int n) {
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < n; i++) {
        const char *at = frames[i];
        if (at >= &__executable_start && at < &etext) {
            h = (h ^ (uint64_t)(at - &__executable_start)) * 1099511628211u;
        }
    }
    return (uint32_t)(h ^ h >> 32);
}

static void note_call(enum kind kind) {
    void *frames[64]; // large, because libraries add many frames
    unsigned at = atomic_fetch_add(&page->n_noted, 1);
    if (at < n_notes) {
        int n = backtrace(frames, 64);
        page->notes[at] =
            (struct note){(uint8_t)role, (uint8_t)kind, 0, hash_stack(frames + 2, n - 2)};
    }
}

static void note_failure(void) {
    void *frames[N_FRAMES];
    if (atomic_fetch_add(&page->n_failed, 1) > 0) {
        return;
    }
    int n = backtrace(frames, N_FRAMES);
    for (int i = 0; i < n; i++) {
        page->frames[i] = (uint64_t)((char *)frames[i] - &__executable_start);
    }
    page->n_frames = (uint32_t)n;
}

bool is_refused(enum kind kind) {
    if (!page) {
        return false;
    }
    unsigned n = atomic_fetch_add(&page->calls[role][kind], 1) + 1;
    if (n_notes > 0 && (noted_kind == N_KINDS || noted_kind == (int)kind)) {
        note_call(kind);
    }
    if (plan.role != role || plan.kind != (int)kind || n < plan.first ||
        n - plan.first >= plan.count) {
        return false;
    }
    note_failure();
    errno = plan.error;
    return true;
}

static size_t half(size_t n) {
    return n > 1 ? n / 2 : n;
}

// ---- Files ------------------------------------------------------------------------------------

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return is_refused(OPEN) ? -1 : __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    return is_refused(OPEN) ? NULL : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path) {
    return is_refused(OPEN) ? NULL : __real_opendir(path);
}

int __wrap_stat(const char *path, struct stat *info);
int __wrap_stat(const char *path, struct stat *info) {
    return is_refused(STAT) ? -1 : __real_stat(path, info);
}

int __wrap_fstat(int descriptor, struct stat *info);
int __wrap_fstat(int descriptor, struct stat *info) {
    return is_refused(STAT) ? -1 : __real_fstat(descriptor, info);
}

ssize_t __wrap_read(int descriptor, void *data, size_t n_bytes);
ssize_t __wrap_read(int descriptor, void *data, size_t n_bytes) {
    if (!is_refused(READ)) {
        return __real_read(descriptor, data, n_bytes);
    }
    return plan.error == HALF ? __real_read(descriptor, data, half(n_bytes)) : -1;
}

size_t __wrap_fread(void *data, size_t size, size_t n, FILE *file);
size_t __wrap_fread(void *data, size_t size, size_t n, FILE *file) {
    if (!is_refused(READ)) {
        return __real_fread(data, size, n, file);
    }
    return plan.error == HALF ? __real_fread(data, size, half(n), file) : 0;
}

static enum kind kind_of_write(int descriptor) {
    return descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO ? SAY : WRITE;
}

ssize_t __wrap_write(int descriptor, const void *data, size_t n_bytes);
ssize_t __wrap_write(int descriptor, const void *data, size_t n_bytes) {
    if (!is_refused(kind_of_write(descriptor))) {
        return __real_write(descriptor, data, n_bytes);
    }
    return plan.error == HALF ? __real_write(descriptor, data, half(n_bytes)) : -1;
}

ssize_t __wrap_writev(int descriptor, const struct iovec *pieces, int n);
ssize_t __wrap_writev(int descriptor, const struct iovec *pieces, int n) {
    if (!is_refused(kind_of_write(descriptor))) {
        return __real_writev(descriptor, pieces, n);
    }
    return plan.error == HALF ? __real_writev(descriptor, pieces, n / 2) : -1;
}

ssize_t __wrap_pwrite(int descriptor, const void *data, size_t n_bytes, off_t offset);
ssize_t __wrap_pwrite(int descriptor, const void *data, size_t n_bytes, off_t offset) {
    if (!is_refused(WRITE)) {
        return __real_pwrite(descriptor, data, n_bytes, offset);
    }
    return plan.error == HALF ? __real_pwrite(descriptor, data, half(n_bytes), offset) : -1;
}

int __wrap_fputs(const char *text, FILE *file);
int __wrap_fputs(const char *text, FILE *file) {
    return is_refused(SAY) ? EOF : __real_fputs(text, file);
}

int __wrap_fflush(FILE *file);
int __wrap_fflush(FILE *file) {
    return is_refused(SAY) ? EOF : __real_fflush(file);
}

// Nothing is flushed to disk: in these tests the power never fails.
int __wrap_fsync(int descriptor);
int __wrap_fsync(int descriptor) {
    (void)descriptor;
    return is_refused(SYNC) ? -1 : 0;
}

int __wrap_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor) {
    return __wrap_fsync(descriptor);
}

// The descriptor is closed even if the call must report a failure.
int __wrap_close(int descriptor);
int __wrap_close(int descriptor) {
    bool is_bad = is_refused(CLOSE);
    int error = errno;
    int result = __real_close(descriptor);
    errno = is_bad ? error : errno;
    return is_bad ? -1 : result;
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
    return is_refused(NAME) ? -1 : __real_rename(from, to);
}

int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path) {
    return is_refused(NAME) ? -1 : __real_unlink(path);
}

int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode) {
    return is_refused(NAME) ? -1 : __real_mkdir(path, mode);
}

char *__wrap_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved) {
    return is_refused(STAT) ? NULL : __real_realpath(path, resolved);
}

int __wrap_fchmod(int descriptor, mode_t mode);
int __wrap_fchmod(int descriptor, mode_t mode) {
    return is_refused(NAME) ? -1 : __real_fchmod(descriptor, mode);
}

int __wrap_ftruncate(int descriptor, off_t n_bytes);
int __wrap_ftruncate(int descriptor, off_t n_bytes) {
    return is_refused(SIZE) ? -1 : __real_ftruncate(descriptor, n_bytes);
}

int __wrap_posix_fallocate(int descriptor, off_t offset, off_t n_bytes);
int __wrap_posix_fallocate(int descriptor, off_t offset, off_t n_bytes) {
    return is_refused(SIZE) ? plan.error : __real_posix_fallocate(descriptor, offset, n_bytes);
}

void *__wrap_mmap(void *at, size_t n_bytes, int access, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *at, size_t n_bytes, int access, int flags, int descriptor, off_t offset) {
    return is_refused(MAP) ? MAP_FAILED
                           : __real_mmap(at, n_bytes, access, flags, descriptor, offset);
}

int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags) {
    return is_refused(OPEN) ? -1 : __real_memfd_create(name, flags);
}

int __wrap_flock(int descriptor, int what);
int __wrap_flock(int descriptor, int what) {
    return is_refused(LOCK) ? -1 : __real_flock(descriptor, what);
}

// ---- Processes --------------------------------------------------------------------------------

pid_t __wrap_fork(void);
pid_t __wrap_fork(void) {
    return is_refused(PROCESS) ? -1 : __real_fork();
}

int __wrap_execve(const char *path, char *const argv[], char *const environment[]);
int __wrap_execve(const char *path, char *const argv[], char *const environment[]) {
    return is_refused(PROCESS) ? -1 : __real_execve(path, argv, environment);
}

// ---- Initialisation ---------------------------------------------------------------------------

static int find_kind(const char *name) {
    for (int i = 0; i < N_KINDS; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            return i;
        }
    }
    abort();
}

static void read_plan(const char *text) {
    char of[8], kind[8];
    long first, count;
    int error;
    if (sscanf(text, "%7s %7s %ld %ld %d", of, kind, &first, &count, &error) != 5) {
        abort();
    }
    plan.role = strcmp(of, "worker") == 0 ? WORKER : PARENT;
    plan.first = (unsigned)first;
    plan.count = count < 0 ? UINT32_MAX : (unsigned)count;
    plan.error = error;
    plan.kind = find_kind(kind);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("MSC_FAULT_PAGE");
    const char *fault = getenv("MSC_FAULT");
    const char *noted = getenv("MSC_FAULT_KIND");
    cJSON_Hooks hooks = {.malloc_fn = __wrap_malloc, .free_fn = free};
    struct stat info;
    int descriptor = path ? __real_open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0 || __real_fstat(descriptor, &info) != 0 ||
        info.st_size < (off_t)sizeof(struct page)) {
        return;
    }
    void *shared =
        __real_mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    __real_close(descriptor);
    if (shared == MAP_FAILED) {
        abort();
    }
    cJSON_InitHooks(&hooks);
    void *frame;
    backtrace(&frame, 1); // backtrace allocates memory on its first call
    role = getenv(MSC_WORKER_VARIABLE) ? WORKER : PARENT;
    if (fault) {
        read_plan(fault);
    }
    if (noted) {
        noted_kind = find_kind(noted);
    }
    page = shared;
    page->n_kinds = N_KINDS;
    memcpy(page->names, kind_names, sizeof kind_names);
    n_notes = ((size_t)info.st_size - sizeof(struct page)) / sizeof(struct note);
}
