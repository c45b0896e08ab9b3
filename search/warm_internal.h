// What the sources of warm.h share.
#ifndef MSC_SEARCH_WARM_INTERNAL_H
#define MSC_SEARCH_WARM_INTERNAL_H

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "search/points.h"
#include "search/warm.h"

// What is being collected.
struct msc_warm_taking {
    const struct msc_warm_options *options;
    const struct msc_space *space;
    struct msc_arena arena;
    struct msc_points points;   // baselines and what was taken
    struct msc_str told, tried; // lists of the member that is made, of which the end is to come
};

// What one file gave.
struct msc_warm_source {
    const char *path;
    const char *kind; // "record", "strategy"
    struct msc_hash hash;
    size_t n_told, n_tried;
    size_t n_known;     // tasks of this space that it has
    uint32_t *choices;  // [n_tasks], of the point at hand
    bool *is_known;     // [n_tasks]
    struct msc_str why; // its values are not told; empty: they are
};

// The choice of a task with that label, or -1.
int64_t msc_warm__find_choice(const struct msc_task *task, const char *label);
// Is the source's point neither a baseline nor taken?
bool msc_warm__is_new(const struct msc_warm_taking *w, const struct msc_warm_source *source);
// Takes the source's point if it is new. `metrics` [n_metrics] NULL: it
// is to be tried, and a point that breaks an exact bound is passed over.
enum msc_status msc_warm__take(struct msc_warm_taking *w, struct msc_warm_source *source,
                               const double metrics[]);

// The files of each kind: sets `kind`, `hash` and what else is told of a source.
enum msc_status msc_warm__take_record(struct msc_warm_taking *w, struct msc_warm_source *source);
enum msc_status msc_warm__take_strategy(struct msc_warm_taking *w, struct msc_warm_source *source);
// What a file is known by in a header.
enum msc_status msc_warm__hash_record(struct msc_hash *out, const char *path);
enum msc_status msc_warm__hash_strategy(struct msc_hash *out, const char *path);

#endif
