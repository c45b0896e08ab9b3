// Finds the elements of an array by the 128-bit hash at the start of each element. The caller
// owns the array; it may only grow, and all hashes differ.
//
//     struct item { struct msc_hash hash; … } *items;      // [n]
//     struct msc_hash_index index = {0};
//     int32_t at = msc_hash_index_find(&index, hash, items, sizeof items[0]);   // -1: none
//     MSC_TRY(msc_hash_index_reserve(&index, n + 1));
//     msc_hash_index_add(&index, n, items, sizeof items[0]); // items[n] is already filled in
//     msc_hash_index_finish(&index);
#ifndef MSC_BASE_HASH_INDEX_H
#define MSC_BASE_HASH_INDEX_H

#include "base/hash.h"
#include "base/status.h"

struct msc_hash_index_slot {
    uint32_t low;  // low bits of the hash, compared before the full hash
    int32_t place; // the element's position + 1; 0 for an empty slot
};

struct msc_hash_index {                // zero-initialise
    struct msc_hash_index_slot *slots; // open addressing
    size_t n_slots;                    // a power of two up to 2^32, or 0; at most half are occupied
};

// The position of the element with this hash, or -1.
int32_t msc_hash_index_find(const struct msc_hash_index *index, struct msc_hash hash,
                            const void *elements, size_t element_bytes);
// Makes room for n elements in total. On MSC_E_NOMEM the index is unchanged.
enum msc_status msc_hash_index_reserve(struct msc_hash_index *index, size_t n);
// Adds an element. Room must be reserved for it, and its hash must be new.
void msc_hash_index_add(struct msc_hash_index *index, size_t place, const void *elements,
                        size_t element_bytes);
void msc_hash_index_clear(struct msc_hash_index *index); // removes all elements, keeps the memory
void msc_hash_index_finish(struct msc_hash_index *index);

#endif
