// Which batches run by one plan: those whose inputs have the same shapes and hold the same where
// parameters of joints come from them (a Reshape's shape). Which inputs these are only binding
// tells, so they are noted with each plan; they are the same for nearly all.
//
//     struct msc_signatures s = {.dataset = dataset};
//     int32_t plan = msc_signatures_find(&s, batch);            // MSC_NO_ID: it takes one of its own
//     MSC_TRY(msc_signatures_add(&s, batch, plan, is_parameter));
//     msc_signatures_finish(&s);
#ifndef MSC_KERNELS_ENGINE_SIGNATURES_H
#define MSC_KERNELS_ENGINE_SIGNATURES_H

#include "base/hash_index.h"
#include "data/dataset.h"

struct msc_signature {
    struct msc_hash hash;
    int32_t plan;
};

struct msc_signatures {
    const struct msc_dataset *dataset; // borrowed
    // Inputs that parameters come from, one row for each selection that some plan has.
    bool **selections; // [n_selections][n_inputs]
    size_t n_selections, selections_capacity;
    struct msc_signature *items;
    size_t n, capacity;
    struct msc_hash_index index; // of `items`
};

void msc_signatures_finish(struct msc_signatures *s);
// The plan that was added for a batch with this one's signature, or MSC_NO_ID.
int32_t msc_signatures_find(const struct msc_signatures *s, size_t batch);
// Of a batch that is not found. `is_parameter` [n_inputs] is copied.
enum msc_status msc_signatures_add(struct msc_signatures *s, size_t batch, int32_t plan,
                                   const bool is_parameter[]);

#endif
