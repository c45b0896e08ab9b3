#include "search/points.h"

#include "base/alloc.h"

#include <assert.h>

struct msc_point {
    struct msc_hash hash;
    int64_t id_and_settled; // 2 * id, plus 1 if settled; packed because there may be millions
};

struct msc_hash msc_point_hash(const uint32_t choices[], size_t n_tasks) {
    return msc_hash_bytes(choices, n_tasks * sizeof *choices);
}

static struct msc_point *points_at(const struct msc_points *points, struct msc_hash hash) {
    int32_t at = msc_hash_index_find(&points->index, hash, points->items, sizeof points->items[0]);
    return at >= 0 ? &points->items[at] : NULL;
}

int64_t msc_points_find(const struct msc_points *points, struct msc_hash hash) {
    const struct msc_point *point = points_at(points, hash);
    return point ? point->id_and_settled / 2 : -1;
}

enum msc_status msc_points_set(struct msc_points *points, struct msc_hash hash, int64_t id) {
    struct msc_point *point = points_at(points, hash);
    if (point) {
        point->id_and_settled = 2 * id + point->id_and_settled % 2;
        return MSC_OK;
    }
    MSC_TRY(msc_grow(&points->items, &points->capacity, points->n + 1, sizeof points->items[0]));
    MSC_TRY(msc_hash_index_reserve(&points->index, points->n + 1));
    points->items[points->n] = (struct msc_point){.hash = hash, .id_and_settled = 2 * id};
    msc_hash_index_add(&points->index, points->n++, points->items, sizeof points->items[0]);
    return MSC_OK;
}

void msc_points_settle(struct msc_points *points, struct msc_hash hash) {
    struct msc_point *point = points_at(points, hash);
    assert(point);
    points->n_settled += point->id_and_settled % 2 == 0;
    point->id_and_settled |= 1;
}

void msc_points_finish(struct msc_points *points) {
    msc_free(points->items);
    msc_hash_index_finish(&points->index);
    *points = (struct msc_points){0};
}
