#include "data/mapped.h"

#include "base/alloc.h"
#include "base/file.h"

#include <pthread.h>
#include <stdatomic.h>

// Parts in memory form a list, the one used last first; `older` of a part that is not in memory and
// of the last one is NULL.
struct msc_mapped {
    const void *data;
    size_t n_bytes;
    bool is_listed;
    struct msc_mapped *newer, *older;
    bool has_hash;
    struct msc_hash hash;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the list and hashes
static _Atomic(struct msc_mapped *) newest;
static struct msc_mapped *oldest;
static size_t listed_bytes;

enum msc_status msc_mapped_create(struct msc_mapped **out, const char *path, uint64_t offset,
                                  size_t n_bytes) {
    struct msc_mapped *m = msc_alloc_zero(1, sizeof *m);
    MSC_TRY(MSC_ALLOCATED(m));
    enum msc_status status = msc_file_map_part(&m->data, path, offset, n_bytes);
    if (status != MSC_OK) {
        msc_free(m);
        return status;
    }
    m->n_bytes = n_bytes;
    *out = m;
    return MSC_OK;
}

// The caller holds the lock.
static void unlist(struct msc_mapped *m) {
    if (!m->is_listed) {
        return;
    }
    if (m->newer) {
        m->newer->older = m->older;
    } else {
        atomic_store(&newest, m->older);
    }
    if (m->older) {
        m->older->newer = m->newer;
    } else {
        oldest = m->newer;
    }
    m->is_listed = false;
    listed_bytes -= m->n_bytes;
}

// The caller holds the lock.
static void list(struct msc_mapped *m) {
    struct msc_mapped *before = atomic_load(&newest);
    m->newer = NULL;
    m->older = before;
    if (before) {
        before->newer = m;
    } else {
        oldest = m;
    }
    atomic_store(&newest, m);
    m->is_listed = true;
    listed_bytes += m->n_bytes;
}

void msc_mapped_destroy(struct msc_mapped *mapped) {
    if (!mapped) {
        return;
    }
    pthread_mutex_lock(&lock);
    unlist(mapped);
    pthread_mutex_unlock(&lock);
    msc_file_unmap_part(mapped->data, mapped->n_bytes);
    msc_free(mapped);
}

const void *msc_mapped_data(const struct msc_mapped *mapped) {
    return mapped->data;
}

void msc_mapped_touch(struct msc_mapped *mapped) {
    // Most calls repeat the last one.
    if (atomic_load_explicit(&newest, memory_order_relaxed) == mapped) {
        return;
    }
    pthread_mutex_lock(&lock);
    unlist(mapped);
    list(mapped);
    while (listed_bytes > MSC_MAPPED_BYTES && oldest != mapped) {
        struct msc_mapped *left = oldest;
        unlist(left);
        msc_file_forget_part(left->data, left->n_bytes);
    }
    pthread_mutex_unlock(&lock);
}

struct msc_hash msc_mapped_hash(struct msc_mapped *mapped) {
    pthread_mutex_lock(&lock);
    bool has_hash = mapped->has_hash;
    struct msc_hash hash = mapped->hash;
    pthread_mutex_unlock(&lock);
    if (has_hash) {
        return hash;
    }
    msc_mapped_touch(mapped);
    hash = msc_hash_bytes(mapped->data, mapped->n_bytes);
    pthread_mutex_lock(&lock);
    mapped->hash = hash;
    mapped->has_hash = true;
    pthread_mutex_unlock(&lock);
    return hash;
}
