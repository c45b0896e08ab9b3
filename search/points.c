#include "search/points.h"

#include "base/alloc.h"

#include <assert.h>

#define FIRST_CAPACITY 1024

struct msc_point_slot {
    struct msc_hash hash;
    int64_t id_plus_1; // 0: free
    bool is_settled;
};

struct msc_hash msc_point_hash(const uint32_t choices[], size_t n_tasks) {
    return msc_hash_bytes(choices, n_tasks * sizeof *choices);
}

// The slot that holds `hash`, or the free one where it belongs. There is always a free one.
static struct msc_point_slot *find_slot(struct msc_point_slot *slots, size_t capacity,
                                        struct msc_hash hash) {
    size_t at = (size_t)hash.low & (capacity - 1);
    while (slots[at].id_plus_1 != 0 && !msc_hash_equal(slots[at].hash, hash)) {
        at = (at + 1) & (capacity - 1);
    }
    return &slots[at];
}

int64_t msc_points_find(const struct msc_points *points, struct msc_hash hash) {
    return points->n > 0 ? find_slot(points->slots, points->capacity, hash)->id_plus_1 - 1 : -1;
}

static enum msc_status grow(struct msc_points *points) {
    size_t capacity = points->capacity > 0 ? points->capacity * 2 : FIRST_CAPACITY;
    struct msc_point_slot *slots = msc_alloc_zero(capacity, sizeof *slots);
    if (!slots) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for a table of %zu points", capacity);
    }
    for (size_t i = 0; i < points->capacity; i++) {
        if (points->slots[i].id_plus_1 != 0) {
            *find_slot(slots, capacity, points->slots[i].hash) = points->slots[i];
        }
    }
    msc_free(points->slots);
    points->slots = slots;
    points->capacity = capacity;
    return MSC_OK;
}

enum msc_status msc_points_set(struct msc_points *points, struct msc_hash hash, int64_t id) {
    if (points->n + 1 > points->capacity / 2) {
        MSC_TRY(grow(points));
    }
    struct msc_point_slot *slot = find_slot(points->slots, points->capacity, hash);
    points->n += slot->id_plus_1 == 0;
    slot->hash = hash;
    slot->id_plus_1 = id + 1;
    return MSC_OK;
}

void msc_points_settle(struct msc_points *points, struct msc_hash hash) {
    struct msc_point_slot *slot = find_slot(points->slots, points->capacity, hash);
    assert(slot->id_plus_1 != 0);
    points->n_settled += !slot->is_settled;
    slot->is_settled = true;
}

void msc_points_finish(struct msc_points *points) {
    msc_free(points->slots);
    *points = (struct msc_points){0};
}
