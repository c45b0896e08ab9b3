// Heap memory and arenas.
//
// No code outside base/ calls malloc. Small objects that live and die together come from an arena:
//
//     struct msc_arena arena = {0};
//     char *name = msc_arena_printf(&arena, "%s:%d", joint, 0);   // NULL: out of memory
//     int *counts = msc_arena_array(&arena, n, sizeof counts[0]);
//     MSC_TRY_OUT(msc_arena_status(&arena));                       // fails if either failed
//     …
// out:
//     msc_arena_finish(&arena);                                    // frees everything at once
//
// An arena remembers its first failure, so one check of its status is enough for several requests.
// Check before you use their results.
#ifndef MSC_BASE_ALLOC_H
#define MSC_BASE_ALLOC_H

#include "base/status.h"

#include <stddef.h>

MSC_PUBLIC_BEGIN

// Functions that allocate return NULL if memory is short or a size overflows. msc_free accepts
// NULL.
void *msc_alloc(size_t n_bytes);
void *msc_alloc_zero(size_t count, size_t element_bytes);
void *msc_realloc(void *pointer, size_t count, size_t element_bytes);
void msc_free(void *pointer);
char *msc_strdup(const char *text);

// Memory for tensor data, aligned to 64 bytes; freed with msc_free_aligned.
void *msc_alloc_aligned(size_t n_bytes);
void msc_free_aligned(void *pointer);

// Makes room for `need` elements in *array (a pointer to a pointer), at least doubling the
// capacity. Keeps the contents. On MSC_E_NOMEM the array is unchanged.
enum msc_status msc_grow(void *array, size_t *capacity, size_t need, size_t element_bytes);

// MSC_OK if `pointers` is true, else MSC_E_NOMEM: MSC_TRY(MSC_ALLOCATED(names && counts)).
#define MSC_ALLOCATED(pointers)                                                                    \
    ((pointers) ? MSC_OK : ((void)MSC_FAIL(MSC_E_NOMEM, "out of memory"), MSC_E_NOMEM))

struct msc_arena_block;

// Zero-initialise; not thread-safe.
struct msc_arena {
    struct msc_arena_block *blocks;
    size_t used_bytes;   // bytes allocated since initialisation or the last reset
    size_t failed_bytes; // size of the first failed request since then; 0: none
};

// Zeroed memory aligned to 16 bytes, owned by the arena. NULL if memory is short.
void *msc_arena_alloc(struct msc_arena *arena, size_t n_bytes);
void *msc_arena_array(struct msc_arena *arena, size_t count, size_t element_bytes);
char *msc_arena_strdup(struct msc_arena *arena, const char *text);
char *msc_arena_strndup(struct msc_arena *arena, const char *text, size_t length);
char *msc_arena_printf(struct msc_arena *arena, const char *format, ...) MSC_PRINTF(2, 3);

// MSC_E_NOMEM if a request has failed since initialisation or the last reset, else MSC_OK.
enum msc_status msc_arena_status(const struct msc_arena *arena);

// Discards all objects; keeps the largest block for reuse.
void msc_arena_reset(struct msc_arena *arena);
// Frees all memory; the arena can be used again. Accepts a zeroed arena.
void msc_arena_finish(struct msc_arena *arena);

MSC_PUBLIC_END

#endif
