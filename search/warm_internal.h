// Shared by the files that collect points (warm.h).
#ifndef MSC_SEARCH_WARM_INTERNAL_H
#define MSC_SEARCH_WARM_INTERNAL_H

#include "agents/feature_lessons.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "search/points.h"
#include "search/warm.h"

// State of the collection.
struct msc_warm_taking {
    const struct msc_warm_options *options;
    const struct msc_space *space;
    struct msc_arena arena;
    struct msc_points points;   // baselines and points taken so far
    struct msc_str told, tried; // text of two lists in `warm`, without the closing brackets
    struct msc_feature_lessons lessons;
    const cJSON *sources; // the files taken so far
};

// State of one file.
struct msc_warm_source {
    const char *path;
    const char *kind; // "record", "strategy"
    struct msc_hash hash;
    size_t n_told, n_tried;
    size_t n_known;     // tasks of this space that the file has
    uint32_t *choices;  // [n_tasks], the current point
    bool *is_known;     // [n_tasks]
    bool is_repeated;   // a file taken before is of the same search
    size_t n_losses;    // losses of single choices from which coefficients of features are learnt
    struct msc_str why; // why the file's values are not comparable; empty if they are
};

// warm_point.c. The index of the task's choice with this label, or -1.
int64_t msc_warm__find_choice(const struct msc_task *task, const char *label);
// True if the source's point is neither a baseline nor taken already.
bool msc_warm__is_new(const struct msc_warm_taking *w, const struct msc_warm_source *source);
// Takes the source's point if it is new. `metrics` [n_metrics]; NULL: the point is to be tried, and
// is skipped if it breaks an exact bound.
enum msc_status msc_warm__take(struct msc_warm_taking *w, struct msc_warm_source *source,
                               const double metrics[]);

// Take the points of a record or a strategy file, and set `kind`, `hash` and the other members of
// the source.
enum msc_status msc_warm__take_record(struct msc_warm_taking *w, struct msc_warm_source *source);
enum msc_status msc_warm__take_strategy(struct msc_warm_taking *w, struct msc_warm_source *source);
// The hash that identifies a file in a header.
enum msc_status msc_warm__hash_record(struct msc_hash *out, const char *path);
enum msc_status msc_warm__hash_strategy(struct msc_hash *out, const char *path);

#endif
