#include "base/hash_index.h"

#include "base/alloc.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

static struct msc_hash hash_of(const void *elements, size_t element_bytes, size_t place) {
    struct msc_hash hash;
    memcpy(&hash, (const char *)elements + place * element_bytes, sizeof hash);
    return hash;
}

// The slot of the element with this hash, or a free slot for it. A free slot always exists.
static struct msc_hash_index_slot *find_slot(const struct msc_hash_index *index,
                                             struct msc_hash hash, const void *elements,
                                             size_t element_bytes) {
    uint32_t low = (uint32_t)hash.low;
    size_t at = low & (index->n_slots - 1);
    for (;; at = (at + 1) & (index->n_slots - 1)) {
        struct msc_hash_index_slot *slot = &index->slots[at];
        if (slot->place == 0 ||
            (slot->low == low &&
             msc_hash_equal(hash_of(elements, element_bytes, (size_t)slot->place - 1), hash))) {
            return slot;
        }
    }
}

int32_t msc_hash_index_find(const struct msc_hash_index *index, struct msc_hash hash,
                            const void *elements, size_t element_bytes) {
    return index->n_slots > 0 ? find_slot(index, hash, elements, element_bytes)->place - 1 : -1;
}

// Puts an element into its free slot.
static void put(struct msc_hash_index *index, struct msc_hash_index_slot element) {
    size_t at = element.low & (index->n_slots - 1);
    while (index->slots[at].place != 0) {
        at = (at + 1) & (index->n_slots - 1);
    }
    index->slots[at] = element;
}

enum msc_status msc_hash_index_reserve(struct msc_hash_index *index, size_t n) {
    struct msc_hash_index grown = {.n_slots = FIRST_SLOTS};
    if (index->n_slots / 2 >= n) {
        return MSC_OK;
    }
    while (n < INT32_MAX && grown.n_slots / 2 < n) {
        grown.n_slots *= 2;
    }
    grown.slots = n < INT32_MAX ? msc_alloc_zero(grown.n_slots, sizeof grown.slots[0]) : NULL;
    if (!grown.slots) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory: cannot allocate a table of %zu hashes", n);
    }
    for (size_t i = 0; i < index->n_slots; i++) {
        if (index->slots[i].place != 0) {
            put(&grown, index->slots[i]);
        }
    }
    msc_free(index->slots);
    *index = grown;
    return MSC_OK;
}

void msc_hash_index_add(struct msc_hash_index *index, size_t place, const void *elements,
                        size_t element_bytes) {
    struct msc_hash hash = hash_of(elements, element_bytes, place);
    put(index, (struct msc_hash_index_slot){(uint32_t)hash.low, (int32_t)place + 1});
}

void msc_hash_index_clear(struct msc_hash_index *index) {
    if (index->n_slots > 0) {
        memset(index->slots, 0, index->n_slots * sizeof index->slots[0]);
    }
}

void msc_hash_index_finish(struct msc_hash_index *index) {
    msc_free(index->slots);
    *index = (struct msc_hash_index){0};
}
