// Finds elements of an array by the 128-bit hash that each begins with. The array is the caller's;
// it only grows, and no two of its elements have the same hash.
//
//     struct item { struct msc_hash hash; … } *items;      // [n]
//     struct msc_hash_index index = {0};
//     int32_t at = msc_hash_index_find(&index, hash, items, sizeof items[0]);   // -1: none
//     MSC_TRY(msc_hash_index_reserve(&index, n + 1));
//     msc_hash_index_add(&index, n, items, sizeof items[0]); // items[n] is there
//     msc_hash_index_finish(&index);
#ifndef MSC_BASE_HASH_INDEX_H
#define MSC_BASE_HASH_INDEX_H

#include "base/hash.h"
#include "base/status.h"

struct msc_hash_index_slot {
    uint32_t low;  // of its hash: of another element it differs, nearly always
    int32_t place; // of an element, + 1; 0 where none is
};

struct msc_hash_index {                // zero-initialise
    struct msc_hash_index_slot *slots; // open addressing
    size_t n_slots;                    // a power of two up to 2^32, or 0; at most half are taken
};

// The place of the element with this hash, or -1.
int32_t msc_hash_index_find(const struct msc_hash_index *index, struct msc_hash hash,
                            const void *elements, size_t element_bytes);
// Makes room for n elements in all. MSC_E_NOMEM leaves the index as it was.
enum msc_status msc_hash_index_reserve(struct msc_hash_index *index, size_t n);
// Room is reserved for the element, and its hash is new.
void msc_hash_index_add(struct msc_hash_index *index, size_t place, const void *elements,
                        size_t element_bytes);
void msc_hash_index_clear(struct msc_hash_index *index); // forgets all elements, keeps the room
void msc_hash_index_finish(struct msc_hash_index *index);

#endif
