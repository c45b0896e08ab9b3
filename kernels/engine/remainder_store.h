// What remainders (kernels/engine/remainder.h) keep from trial to trial: their weights under edits,
// so that one trial quantises what all others read too. Within a limit, what was used longest ago
// first out. And how much memory a remainder takes while it runs.
//
//     struct msc_remainder_store store;
//     msc_remainder_store_init(&store);
//     MSC_TRY(msc_remainder_store_get(&array, &store, weight, edit)); // one reference, the caller's
//     msc_remainder_store_finish(&store);
#ifndef MSC_KERNELS_ENGINE_REMAINDER_STORE_H
#define MSC_KERNELS_ENGINE_REMAINDER_STORE_H

#include "graph/edit.h"

#include <pthread.h>

struct msc_remainder_weight {
    struct msc_array *weight; // as the model has it: holds on to its address
    struct msc_hash edit;
    struct msc_array *edited;
    uint64_t last_use;
};

struct msc_remainder_store {
    pthread_mutex_t lock; // guards all of it
    struct msc_remainder_weight *weights;
    size_t n_weights, capacity;
    uint64_t held_bytes;
    uint64_t limit_bytes; // 0 at first: nothing is kept
    uint64_t now;
    uint64_t n_made;     // weights under edits, since init
    uint64_t most_bytes; // that a remainder took at once
};

void msc_remainder_store_init(struct msc_remainder_store *store);
void msc_remainder_store_finish(struct msc_remainder_store *store);

// A weight under an edit. What was kept and does not fit `limit_bytes` any more is freed; what does
// not fit alone is made anew each time. From any thread.
enum msc_status msc_remainder_store_get(struct msc_array **out, struct msc_remainder_store *store,
                                        const struct msc_array *weight,
                                        const struct msc_edit *edit);
// A remainder took so many bytes. From any thread.
void msc_remainder_store_measured(struct msc_remainder_store *store, uint64_t n_bytes);
void msc_remainder_store_drop(struct msc_remainder_store *store); // frees all weights

#endif
