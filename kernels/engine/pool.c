#include "kernels/engine/pool.h"

#include "base/alloc.h"

enum { SMALLEST_LOG2 = 6 }; // 64 bytes

// The index of the smallest size class for n bytes; *class_bytes is the size of that class.
static size_t size_class(size_t n_bytes, size_t *class_bytes) {
    int log2 = SMALLEST_LOG2;
    while (log2 < 62 && ((size_t)1 << (log2 + 1)) <= n_bytes) {
        log2++;
    }
    size_t base = (size_t)1 << log2;
    size_t step = base / 8;
    size_t eighths = n_bytes <= base ? 0 : (n_bytes - base + step - 1) / step;
    *class_bytes = base + eighths * step;
    return (size_t)(log2 - SMALLEST_LOG2) * 8 + eighths;
}

uint64_t msc_pool_most(const struct msc_pool *pool) {
    bool is_lower = pool->ceiling_bytes > 0 && pool->ceiling_bytes < pool->limit_bytes;
    return is_lower ? pool->ceiling_bytes : pool->limit_bytes;
}

// Allocates from the backend. If the backend has no memory left, returns free buffers to it and
// tries again.
static void *pool_allocate(struct msc_pool *pool, size_t class_bytes) {
    struct msc_backend *b = pool->backend;
    void *memory = b->def->allocate(b, class_bytes);
    if (!memory && msc_pool_trim(pool)) {
        memory = b->def->allocate(b, class_bytes);
    }
    if (memory) {
        msc_pool_account(pool, (int64_t)class_bytes);
    } else {
        msc_pool_lower(pool);
    }
    return memory;
}

void *msc_pool_take(struct msc_pool *pool, size_t n_bytes, bool force) {
    size_t class_bytes;
    struct msc_pool_list *list = &pool->free_lists[size_class(n_bytes, &class_bytes)];
    if (list->n > 0) {
        return list->items[--list->n];
    }
    uint64_t most = msc_pool_most(pool);
    if (pool->held_bytes + class_bytes > most) {
        (void)msc_pool_trim(pool);
        bool is_over = pool->held_bytes + class_bytes > most;
        if (is_over && !force) {
            return NULL;
        }
        pool->was_short = pool->was_short || is_over;
    }
    return pool_allocate(pool, class_bytes);
}

static void pool_release(struct msc_pool *pool, void *memory, size_t class_bytes) {
    pool->backend->def->release_memory(pool->backend, memory, class_bytes);
    pool->held_bytes -= class_bytes;
}

void msc_pool_give(struct msc_pool *pool, void *memory, size_t n_bytes) {
    size_t class_bytes;
    if (!memory) {
        return;
    }
    struct msc_pool_list *list = &pool->free_lists[size_class(n_bytes, &class_bytes)];
    if (pool->held_bytes > msc_pool_most(pool) ||
        msc_grow(&list->items, &list->capacity, list->n + 1, sizeof(void *)) != MSC_OK) {
        pool_release(pool, memory, class_bytes);
        return;
    }
    list->items[list->n++] = memory;
}

void msc_pool_account(struct msc_pool *pool, int64_t n_bytes) {
    pool->held_bytes = (uint64_t)((int64_t)pool->held_bytes + n_bytes);
    if (pool->held_bytes > pool->peak_bytes) {
        pool->peak_bytes = pool->held_bytes;
    }
}

// The size of the size class with this index.
static size_t class_size(size_t index) {
    size_t base = (size_t)1 << (index / 8 + SMALLEST_LOG2);
    return base + index % 8 * (base / 8);
}

bool msc_pool_trim(struct msc_pool *pool) {
    uint64_t before = pool->held_bytes;
    for (size_t i = 0; i < MSC_POOL_CLASSES; i++) {
        struct msc_pool_list *list = &pool->free_lists[i];
        while (list->n > 0) {
            pool_release(pool, list->items[--list->n], class_size(i));
        }
    }
    return pool->held_bytes < before;
}

// The ceiling is at least 1, because 0 means no ceiling.
void msc_pool_lower(struct msc_pool *pool) {
    uint64_t held = pool->held_bytes > 0 ? pool->held_bytes : 1;
    pool->ceiling_bytes =
        pool->ceiling_bytes > 0 && pool->ceiling_bytes < held ? pool->ceiling_bytes : held;
}

void msc_pool_raise(struct msc_pool *pool) {
    uint64_t most = pool->ceiling_bytes / 64 + pool->ceiling_bytes;
    pool->ceiling_bytes = most > pool->limit_bytes ? 0 : most;
}

void msc_pool_finish(struct msc_pool *pool) {
    (void)msc_pool_trim(pool);
    for (size_t i = 0; i < MSC_POOL_CLASSES; i++) {
        msc_free(pool->free_lists[i].items);
        pool->free_lists[i] = (struct msc_pool_list){0};
    }
}
