// POSIX has no madvise.
#define _DEFAULT_SOURCE

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TENSOR_ALIGNMENT 64
#define LEAST_LARGE_BYTES ((size_t)8 << 20)

// A request for zero bytes gets one byte, so that NULL always means out of memory.
void *msc_alloc(size_t n_bytes) {
    return malloc(n_bytes > 0 ? n_bytes : 1);
}

void *msc_alloc_zero(size_t count, size_t element_bytes) {
    if (count == 0 || element_bytes == 0) {
        return calloc(1, 1);
    }
    return calloc(count, element_bytes);
}

void *msc_realloc(void *pointer, size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) {
        return NULL;
    }
    size_t n_bytes = count * element_bytes;
    return realloc(pointer, n_bytes > 0 ? n_bytes : 1);
}

void msc_free(void *pointer) {
    free(pointer);
}

char *msc_strdup(const char *text) {
    size_t n_bytes = strlen(text) + 1;
    char *copy = msc_alloc(n_bytes);
    return copy ? memcpy(copy, text, n_bytes) : NULL;
}

// Large blocks are new pages each time: the system clears large pages faster than many small ones.
// A refusal changes nothing else.
static void ask_for_large_pages(void *data, size_t n_bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t rest = (page - (uintptr_t)data % page) % page;
    madvise((char *)data + rest, n_bytes - rest, MADV_HUGEPAGE);
}

void *msc_alloc_aligned(size_t n_bytes) {
    if (n_bytes > SIZE_MAX - TENSOR_ALIGNMENT) {
        return NULL;
    }
    size_t n_lines = n_bytes / TENSOR_ALIGNMENT + 1;
    if (n_bytes > 0 && n_bytes % TENSOR_ALIGNMENT == 0) {
        n_lines--;
    }
    void *data = aligned_alloc(TENSOR_ALIGNMENT, n_lines * TENSOR_ALIGNMENT);
    if (data && n_bytes >= LEAST_LARGE_BYTES) {
        ask_for_large_pages(data, n_bytes);
    }
    return data;
}

void msc_free_aligned(void *pointer) {
    free(pointer);
}

enum msc_status msc_grow(void *array, size_t *capacity, size_t need, size_t element_bytes) {
    if (need <= *capacity) {
        return MSC_OK;
    }
    size_t count = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : need;
    count = count < 8 ? 8 : count;
    count = count < need ? need : count;
    // The element type is unknown here, so the pointer is read and written as bytes.
    void *elements = NULL;
    memcpy(&elements, array, sizeof elements);
    void *grown = msc_realloc(elements, count, element_bytes);
    if (!grown) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory: cannot allocate %zu elements of %zu bytes",
                        need, element_bytes);
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = count;
    return MSC_OK;
}
