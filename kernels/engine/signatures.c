#include "kernels/engine/signatures.h"

#include "base/alloc.h"
#include "graph/graph.h"

#include <string.h>

enum { FIRST_TABLE = 16 };

void msc_signatures_finish(struct msc_signatures *s) {
    for (size_t i = 0; i < s->n_selections; i++) {
        msc_free(s->selections[i]);
    }
    msc_free(s->selections);
    msc_free(s->table);
    *s = (struct msc_signatures){.dataset = NULL};
}

// What tells a batch from others under one selection.
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

// The hash's place in the table, or where it would go.
static struct msc_signature *place_of(const struct msc_signatures *s, struct msc_hash hash) {
    size_t at = hash.low & (s->table_size - 1);
    while (s->table[at].plan != MSC_NO_ID && !msc_hash_equal(s->table[at].hash, hash)) {
        at = (at + 1) & (s->table_size - 1);
    }
    return &s->table[at];
}

int32_t msc_signatures_find(const struct msc_signatures *s, size_t batch) {
    int32_t plan = MSC_NO_ID;
    for (size_t i = 0; i < s->n_selections && plan == MSC_NO_ID; i++) {
        plan = place_of(s, hash_batch(s, batch, i))->plan;
    }
    return plan;
}

// Keeps the table at most half full.
static enum msc_status make_room(struct msc_signatures *s) {
    struct msc_signatures grown = *s;
    if (2 * (s->n + 1) <= s->table_size) {
        return MSC_OK;
    }
    grown.table_size = s->table_size > 0 ? 2 * s->table_size : FIRST_TABLE;
    grown.table = msc_alloc_zero(grown.table_size, sizeof(grown.table[0]));
    if (!grown.table) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluator");
    }
    for (size_t i = 0; i < grown.table_size; i++) {
        grown.table[i].plan = MSC_NO_ID;
    }
    for (size_t i = 0; i < s->table_size; i++) {
        if (s->table[i].plan != MSC_NO_ID) {
            *place_of(&grown, s->table[i].hash) = s->table[i];
        }
    }
    msc_free(s->table);
    *s = grown;
    return MSC_OK;
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
    if (!copy) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for an evaluator");
    }
    memcpy(copy, is_parameter, n * sizeof(bool));
    s->selections[s->n_selections++] = copy;
    return MSC_OK;
}

enum msc_status msc_signatures_add(struct msc_signatures *s, size_t batch, int32_t plan,
                                   const bool is_parameter[]) {
    size_t selection;
    MSC_TRY(make_room(s));
    MSC_TRY(find_selection(s, is_parameter, &selection));
    struct msc_hash hash = hash_batch(s, batch, selection);
    *place_of(s, hash) = (struct msc_signature){hash, plan};
    s->n++;
    return MSC_OK;
}
