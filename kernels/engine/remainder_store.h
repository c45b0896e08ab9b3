// Keeps the edited weights of remainders (kernels/engine/remainder.h) from trial to trial, so that
// a weight is quantised once for all trials. If the weights exceed the limit, the least recently
// used are freed first. The store also records how much memory a remainder takes while it runs.
//
//     struct msc_remainder_store store;
//     msc_remainder_store_init(&store);
//     MSC_TRY(msc_remainder_store_get(&array, &store, weight, edit)); // owned by the caller
//     msc_remainder_store_finish(&store);
#ifndef MSC_KERNELS_ENGINE_REMAINDER_STORE_H
#define MSC_KERNELS_ENGINE_REMAINDER_STORE_H

#include "graph/edit.h"

#include <pthread.h>

struct msc_remainder_weight {
    struct msc_array *weight; // the unedited weight; this reference keeps its address valid
    struct msc_hash edit;
    struct msc_array *edited;
    uint64_t last_use;
};

struct msc_remainder_store {
    pthread_mutex_t lock; // guards all members
    struct msc_remainder_weight *weights;
    size_t n_weights, capacity;
    uint64_t held_bytes;
    uint64_t limit_bytes; // initially 0: nothing is kept
    uint64_t now;
    uint64_t n_made;     // edited weights made since init
    uint64_t most_bytes; // highest memory use of any remainder so far
};

void msc_remainder_store_init(struct msc_remainder_store *store);
void msc_remainder_store_finish(struct msc_remainder_store *store);

// Returns a weight under an edit. Kept weights that exceed `limit_bytes` are freed. A weight larger
// than the limit is not kept: each call makes it again. May be called from any thread.
enum msc_status msc_remainder_store_get(struct msc_array **out, struct msc_remainder_store *store,
                                        const struct msc_array *weight,
                                        const struct msc_edit *edit);
// Records that a remainder took n_bytes. May be called from any thread.
void msc_remainder_store_measured(struct msc_remainder_store *store, uint64_t n_bytes);
void msc_remainder_store_drop(struct msc_remainder_store *store); // frees all weights

#endif
