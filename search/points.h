// Which points of the space were tried, and by which trial: from choices to trial ids.
// A point is settled once a trial of it was told that no bound stopped: no other will tell more.
#ifndef MSC_SEARCH_POINTS_H
#define MSC_SEARCH_POINTS_H

#include "base/hash_index.h"

struct msc_point;

struct msc_points { // zero-initialise
    struct msc_point *items;
    size_t n, capacity;
    struct msc_hash_index index; // of `items`
    size_t n_settled;
};

// 128 bits name a point: no choices are compared.
struct msc_hash msc_point_hash(const uint32_t choices[], size_t n_tasks);
int64_t msc_points_find(const struct msc_points *points, struct msc_hash hash); // -1: none
// Adds a point or gives it another trial. MSC_E_NOMEM leaves the table as it was.
enum msc_status msc_points_set(struct msc_points *points, struct msc_hash hash, int64_t id);
// The point must be in the table.
void msc_points_settle(struct msc_points *points, struct msc_hash hash);
void msc_points_finish(struct msc_points *points);

#endif
