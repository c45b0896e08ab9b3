// Finds batches that can share a plan: their inputs have the same shapes, and the inputs that give
// parameters of joints (a Reshape's shape) have the same values. Only binding shows which inputs
// give parameters, so this selection is stored with each plan; nearly all plans have the same one.
//
//     struct msc_signatures s = {.dataset = dataset};
//     int32_t plan = msc_signatures_find(&s, batch);            // MSC_NO_ID: needs a new plan
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
    // One row per distinct selection: which inputs give parameters.
    bool **selections; // [n_selections][n_inputs]
    size_t n_selections, selections_capacity;
    struct msc_signature *items;
    size_t n, capacity;
    struct msc_hash_index index; // finds `items` by hash
};

void msc_signatures_finish(struct msc_signatures *s);
// The plan that was added for a batch of the same signature, or MSC_NO_ID.
int32_t msc_signatures_find(const struct msc_signatures *s, size_t batch);
// Adds the plan of a batch that was not found. `is_parameter` [n_inputs] is copied.
enum msc_status msc_signatures_add(struct msc_signatures *s, size_t batch, int32_t plan,
                                   const bool is_parameter[]);

#endif
