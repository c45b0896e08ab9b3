// Temporary memory of the threads of a cpu backend.
#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

#include <string.h>

struct buffer {
    void *memory;
    size_t n_bytes;
};

// Memory of one thread. Each structure has cache lines of its own, because one thread writes its
// structure while other threads read other structures.
struct msc_cpu_memory {
    _Alignas(64) struct buffer scratch;
    struct buffer result; // output of families that write only floats; inputs that were quantised
                          // to be moved
    struct buffer floats; // dequantised inputs, for families that read only floats
};

enum msc_status msc_cpu_memory_create(struct msc_cpu_memory **out, int n_threads) {
    size_t n_bytes = (size_t)n_threads * sizeof(**out);
    *out = msc_alloc_aligned(n_bytes);
    MSC_TRY(MSC_ALLOCATED(*out));
    memset(*out, 0, n_bytes);
    return MSC_OK;
}

void msc_cpu_memory_destroy(struct msc_cpu_memory *memory, int n_threads) {
    for (int i = 0; memory && i < n_threads; i++) {
        msc_free_aligned(memory[i].scratch.memory);
        msc_free_aligned(memory[i].result.memory);
        msc_free_aligned(memory[i].floats.memory);
    }
    msc_free_aligned(memory);
}

static enum msc_status get_buffer(void **out, struct buffer *s, size_t n_bytes) {
    if (s->n_bytes < n_bytes || !s->memory) {
        size_t larger = n_bytes + n_bytes / 4 + 4096;
        msc_free_aligned(s->memory);
        s->memory = msc_alloc_aligned(larger);
        s->n_bytes = s->memory ? larger : 0;
        if (!s->memory) {
            return MSC_FAIL(MSC_E_NOMEM, "cpu: not enough memory for %zu bytes of scratch",
                            n_bytes);
        }
    }
    *out = s->memory;
    return MSC_OK;
}

enum msc_status msc_cpu_get_scratch(void **out, struct msc_cpu_backend *b, int thread,
                                    size_t n_bytes) {
    return get_buffer(out, &b->memory[thread].scratch, n_bytes);
}

enum msc_status msc_cpu_get_result(void **out, struct msc_cpu_backend *b, int thread,
                                   size_t n_bytes) {
    return get_buffer(out, &b->memory[thread].result, n_bytes);
}

enum msc_status msc_cpu_get_floats(void **out, struct msc_cpu_backend *b, int thread,
                                   size_t n_bytes) {
    return get_buffer(out, &b->memory[thread].floats, n_bytes);
}
