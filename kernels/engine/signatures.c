#include "kernels/engine/signatures.h"

#include "base/alloc.h"
#include "graph/graph.h"

#include <string.h>

void msc_signatures_finish(struct msc_signatures *s) {
    for (size_t i = 0; i < s->n_selections; i++) {
        msc_free(s->selections[i]);
    }
    msc_free(s->selections);
    msc_free(s->items);
    msc_hash_index_finish(&s->index);
    *s = (struct msc_signatures){.dataset = NULL};
}

// The hash of a batch's signature, assuming that row `selection` marks the inputs that give
// parameters.
static struct msc_hash hash_batch(const struct msc_signatures *s, size_t batch, size_t selection) {
    struct msc_hash h = msc_hash_bytes(&selection, sizeof(selection));
    for (size_t i = 0; i < msc_dataset_n_inputs(s->dataset); i++) {
        const struct msc_array *a = msc_dataset_batch(s->dataset, batch, i);
        int n_dims = msc_array_n_dims(a);
        h = msc_hash_add_u64(h, (uint64_t)n_dims);
        h = msc_hash_add_bytes(h, msc_array_dims(a), sizeof(int64_t) * (size_t)n_dims);
        if (s->selections[selection][i]) {
            h = msc_hash_add_bytes(h, msc_array_data(a), msc_array_n_bytes(a));
        }
    }
    return h;
}

static int32_t find_hash(const struct msc_signatures *s, struct msc_hash hash) {
    return msc_hash_index_find(&s->index, hash, s->items, sizeof(s->items[0]));
}

int32_t msc_signatures_find(const struct msc_signatures *s, size_t batch) {
    for (size_t i = 0; i < s->n_selections; i++) {
        int32_t found = find_hash(s, hash_batch(s, batch, i));
        if (found >= 0) {
            return s->items[found].plan;
        }
    }
    return MSC_NO_ID;
}

static enum msc_status find_selection(struct msc_signatures *s, const bool is_parameter[],
                                      size_t *out) {
    size_t n = msc_dataset_n_inputs(s->dataset);
    for (*out = 0; *out < s->n_selections; ++*out) {
        if (memcmp(s->selections[*out], is_parameter, n * sizeof(bool)) == 0) {
            return MSC_OK;
        }
    }
    MSC_TRY(msc_grow(&s->selections, &s->selections_capacity, s->n_selections + 1,
                     sizeof(s->selections[0])));
    bool *copy = msc_alloc_zero(n + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(copy));
    memcpy(copy, is_parameter, n * sizeof(bool));
    s->selections[s->n_selections++] = copy;
    return MSC_OK;
}

enum msc_status msc_signatures_add(struct msc_signatures *s, size_t batch, int32_t plan,
                                   const bool is_parameter[]) {
    size_t selection;
    MSC_TRY(msc_grow(&s->items, &s->capacity, s->n + 1, sizeof(s->items[0])));
    MSC_TRY(msc_hash_index_reserve(&s->index, s->n + 1));
    MSC_TRY(find_selection(s, is_parameter, &selection));
    s->items[s->n] = (struct msc_signature){hash_batch(s, batch, selection), plan};
    msc_hash_index_add(&s->index, s->n++, s->items, sizeof(s->items[0]));
    return MSC_OK;
}
