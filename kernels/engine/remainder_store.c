#include "kernels/engine/remainder_store.h"

#include "base/alloc.h"

// The maximum number of kept weights. Searching this many takes less time than making any edited
// weight.
enum { MAX_WEIGHTS = 4096 };

void msc_remainder_store_init(struct msc_remainder_store *store) {
    *store = (struct msc_remainder_store){.weights = NULL};
    pthread_mutex_init(&store->lock, NULL);
}

void msc_remainder_store_finish(struct msc_remainder_store *store) {
    msc_remainder_store_drop(store);
    msc_free(store->weights);
    pthread_mutex_destroy(&store->lock);
}

// ---- The table (with the lock) ----------------------------------------------------------------

static struct msc_array *find_edited(struct msc_remainder_store *store,
                                     const struct msc_array *weight, struct msc_hash edit) {
    for (size_t i = 0; i < store->n_weights; i++) {
        struct msc_remainder_weight *w = &store->weights[i];
        if (w->weight == weight && msc_hash_equal(w->edit, edit)) {
            w->last_use = ++store->now;
            return msc_array_retain(w->edited);
        }
    }
    return NULL;
}

static void remove_oldest(struct msc_remainder_store *store) {
    size_t oldest = 0;
    for (size_t i = 1; i < store->n_weights; i++) {
        oldest = store->weights[i].last_use < store->weights[oldest].last_use ? i : oldest;
    }
    struct msc_remainder_weight gone = store->weights[oldest];
    store->weights[oldest] = store->weights[--store->n_weights];
    store->held_bytes -= msc_array_n_bytes(gone.edited);
    msc_array_release(gone.weight);
    msc_array_release(gone.edited);
}

static void make_room(struct msc_remainder_store *store, uint64_t n_bytes, size_t n) {
    while (store->n_weights > 0 && (store->held_bytes + n_bytes > store->limit_bytes ||
                                    store->n_weights + n > MAX_WEIGHTS)) {
        remove_oldest(store);
    }
}

// Keeps an edited weight if it is within the limit and its entry can be allocated.
static void keep_edited(struct msc_remainder_store *store, const struct msc_array *weight,
                        struct msc_hash edit, const struct msc_array *edited) {
    uint64_t n_bytes = msc_array_n_bytes(edited);
    make_room(store, n_bytes, 1);
    if (n_bytes > store->limit_bytes ||
        msc_grow(&store->weights, &store->capacity, store->n_weights + 1,
                 sizeof(store->weights[0])) != MSC_OK) {
        return;
    }
    store->weights[store->n_weights++] =
        (struct msc_remainder_weight){.weight = msc_array_retain(weight),
                                      .edit = edit,
                                      .edited = msc_array_retain(edited),
                                      .last_use = ++store->now};
    store->held_bytes += n_bytes;
}

// ---- From any thread --------------------------------------------------------------------------

enum msc_status msc_remainder_store_get(struct msc_array **out, struct msc_remainder_store *store,
                                        const struct msc_array *weight,
                                        const struct msc_edit *edit) {
    pthread_mutex_lock(&store->lock);
    *out = find_edited(store, weight, edit->hash);
    pthread_mutex_unlock(&store->lock);
    if (*out) {
        return MSC_OK;
    }
    struct msc_array *edited;
    MSC_TRY(msc_edit_apply(&edited, weight, edit));
    // Weights freed here were made by other remainders. Their bytes must not be deducted from the
    // memory measured for this remainder.
    struct msc_array_meter *meter = msc_array_measure(NULL);
    pthread_mutex_lock(&store->lock);
    *out = find_edited(store, weight, edit->hash); // another thread may have added it
    if (!*out) {
        store->n_made++;
        keep_edited(store, weight, edit->hash, edited);
    }
    pthread_mutex_unlock(&store->lock);
    msc_array_measure(meter);
    if (*out) {
        msc_array_release(edited);
    } else {
        *out = edited;
    }
    return MSC_OK;
}

void msc_remainder_store_measured(struct msc_remainder_store *store, uint64_t n_bytes) {
    pthread_mutex_lock(&store->lock);
    store->most_bytes = n_bytes > store->most_bytes ? n_bytes : store->most_bytes;
    pthread_mutex_unlock(&store->lock);
}

void msc_remainder_store_drop(struct msc_remainder_store *store) {
    pthread_mutex_lock(&store->lock);
    while (store->n_weights > 0) {
        remove_oldest(store);
    }
    pthread_mutex_unlock(&store->lock);
}
