#include "base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 16
#define FIRST_BLOCK_BYTES ((size_t)4 << 10)
#define LARGEST_BLOCK_BYTES ((size_t)1 << 20)

// A block's header. Objects follow it; padding aligns the first object.
struct msc_arena_block {
    struct msc_arena_block *next;
    size_t capacity_bytes;
    size_t used_bytes;
    size_t padding;
};
_Static_assert(sizeof(struct msc_arena_block) % ALIGNMENT == 0, "objects start aligned");

// Adds a block with room for at least `n_bytes` to the front of the list. Block sizes double up to
// a limit. An object above the limit gets a block of its own size.
static struct msc_arena_block *add_block(struct msc_arena *arena, size_t n_bytes) {
    size_t capacity = FIRST_BLOCK_BYTES;
    if (arena->blocks && arena->blocks->capacity_bytes >= FIRST_BLOCK_BYTES / 2) {
        capacity = arena->blocks->capacity_bytes * 2;
    }
    capacity = capacity > LARGEST_BLOCK_BYTES ? LARGEST_BLOCK_BYTES : capacity;
    capacity = capacity < n_bytes ? n_bytes : capacity;
    if (capacity > SIZE_MAX - sizeof(struct msc_arena_block)) {
        return NULL;
    }
    struct msc_arena_block *block = msc_alloc(sizeof *block + capacity);
    if (!block) {
        return NULL;
    }
    *block = (struct msc_arena_block){.next = arena->blocks, .capacity_bytes = capacity};
    arena->blocks = block;
    return block;
}

// Records the size of the first request that failed.
static void *fail_request(struct msc_arena *arena, size_t n_bytes) {
    arena->failed_bytes = arena->failed_bytes > 0 ? arena->failed_bytes : n_bytes;
    return NULL;
}

enum msc_status msc_arena_status(const struct msc_arena *arena) {
    return arena->failed_bytes == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_NOMEM, "out of memory: a request of %zu bytes failed",
                          arena->failed_bytes);
}

void *msc_arena_alloc(struct msc_arena *arena, size_t n_bytes) {
    if (n_bytes > SIZE_MAX - ALIGNMENT) {
        return fail_request(arena, n_bytes);
    }
    size_t rounded = (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    rounded = rounded > 0 ? rounded : ALIGNMENT;
    struct msc_arena_block *block = arena->blocks;
    if (!block || block->capacity_bytes - block->used_bytes < rounded) {
        block = add_block(arena, rounded);
        if (!block) {
            return fail_request(arena, rounded);
        }
    }
    unsigned char *object = (unsigned char *)(block + 1) + block->used_bytes;
    block->used_bytes += rounded;
    arena->used_bytes += n_bytes;
    return memset(object, 0, rounded);
}

void *msc_arena_array(struct msc_arena *arena, size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes) {
        return fail_request(arena, SIZE_MAX);
    }
    return msc_arena_alloc(arena, count * element_bytes);
}

char *msc_arena_strdup(struct msc_arena *arena, const char *text) {
    return msc_arena_strndup(arena, text, strlen(text));
}

char *msc_arena_strndup(struct msc_arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) {
        return fail_request(arena, length);
    }
    char *copy = msc_arena_alloc(arena, length + 1);
    if (copy && length > 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

char *msc_arena_printf(struct msc_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = n < 0 ? fail_request(arena, SIZE_MAX) : msc_arena_alloc(arena, (size_t)n + 1);
    if (text) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)n + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

void msc_arena_reset(struct msc_arena *arena) {
    struct msc_arena_block *largest = arena->blocks;
    for (struct msc_arena_block *block = arena->blocks; block; block = block->next) {
        if (block->capacity_bytes > largest->capacity_bytes) {
            largest = block;
        }
    }
    struct msc_arena_block *next = NULL;
    for (struct msc_arena_block *block = arena->blocks; block; block = next) {
        next = block->next;
        if (block != largest) {
            msc_free(block);
        }
    }
    if (largest) {
        largest->next = NULL;
        largest->used_bytes = 0;
    }
    *arena = (struct msc_arena){.blocks = largest};
}

void msc_arena_finish(struct msc_arena *arena) {
    struct msc_arena_block *next = NULL;
    for (struct msc_arena_block *block = arena->blocks; block; block = next) {
        next = block->next;
        msc_free(block);
    }
    *arena = (struct msc_arena){0};
}
