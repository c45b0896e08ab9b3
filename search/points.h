// Maps each point that was tried to its trial. A point is settled once the agent has observed a
// trial of the point that was not stopped at a bound. Further trials of the point would add
// nothing.
#ifndef MSC_SEARCH_POINTS_H
#define MSC_SEARCH_POINTS_H

#include "base/hash_index.h"

struct msc_point;

struct msc_points { // initialise with zeros
    struct msc_point *items;
    size_t n, capacity;
    struct msc_hash_index index; // finds points in `items`
    size_t n_settled;
};

// Points are identified by 128-bit hashes; choices are not compared.
struct msc_hash msc_point_hash(const uint32_t choices[], size_t n_tasks);
// The trial of a point; -1: none.
int64_t msc_points_find(const struct msc_points *points, struct msc_hash hash);
// Adds a point or replaces its trial. After MSC_E_NOMEM the table is unchanged.
enum msc_status msc_points_set(struct msc_points *points, struct msc_hash hash, int64_t id);
// Marks a point as settled. It must be in the table.
void msc_points_settle(struct msc_points *points, struct msc_hash hash);
void msc_points_finish(struct msc_points *points);

#endif
