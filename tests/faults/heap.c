// Allocation functions that can fail on request. The linker redirects our own allocations to them.
// Allocations of libraries reach them because the program defines malloc and the other allocation
// functions. Sanitizers have their own heap, so with sanitizers the allocations of libraries are
// not intercepted.
#include "tests/faults/inject.h"

#include <errno.h>
#include <stdlib.h>

void *__wrap_calloc(size_t count, size_t element_bytes);
void *__wrap_realloc(void *pointer, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);

#ifdef MSC_FAULTS_OUTSIDE

// glibc's functions, by the names that are never replaced.
void *__libc_malloc(size_t n_bytes);
void *__libc_calloc(size_t count, size_t element_bytes);
void *__libc_realloc(void *pointer, size_t n_bytes);
void *__libc_memalign(size_t alignment, size_t n_bytes);

#define plain_malloc __libc_malloc
#define plain_calloc __libc_calloc
#define plain_realloc __libc_realloc
#define plain_aligned_alloc __libc_memalign

void *malloc(size_t n_bytes) {
    return is_refused(OUTSIDE) ? NULL : __libc_malloc(n_bytes);
}

void *calloc(size_t count, size_t element_bytes) {
    return is_refused(OUTSIDE) ? NULL : __libc_calloc(count, element_bytes);
}

void *realloc(void *pointer, size_t n_bytes) {
    return is_refused(OUTSIDE) ? NULL : __libc_realloc(pointer, n_bytes);
}

void *aligned_alloc(size_t alignment, size_t n_bytes) {
    return is_refused(OUTSIDE) ? NULL : __libc_memalign(alignment, n_bytes);
}

int posix_memalign(void **out, size_t alignment, size_t n_bytes) {
    void *data = is_refused(OUTSIDE) ? NULL : __libc_memalign(alignment, n_bytes);
    *out = data ? data : *out;
    return data ? 0 : ENOMEM;
}

#else

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t count, size_t element_bytes);
void *__real_realloc(void *pointer, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);

#define plain_malloc __real_malloc
#define plain_calloc __real_calloc
#define plain_realloc __real_realloc
#define plain_aligned_alloc __real_aligned_alloc

#endif

void *__wrap_malloc(size_t n_bytes) {
    return is_refused(ALLOC) ? NULL : plain_malloc(n_bytes);
}

void *__wrap_calloc(size_t count, size_t element_bytes) {
    return is_refused(ALLOC) ? NULL : plain_calloc(count, element_bytes);
}

void *__wrap_realloc(void *pointer, size_t n_bytes) {
    return is_refused(ALLOC) ? NULL : plain_realloc(pointer, n_bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes) {
    return is_refused(ALLOC) ? NULL : plain_aligned_alloc(alignment, n_bytes);
}
