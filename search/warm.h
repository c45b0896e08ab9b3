// Collects points from earlier records and strategy files for a new search. Points are matched by
// the names of tasks and the labels of choices.
//
//     MSC_TRY(msc_warm_collect(&warm, &(struct msc_warm_options){.env = env, .goal = &goal,
//         .numerics = numerics, .paths = paths, .n_paths = n}));
//     options.warm = warm;                            // for msc_search_run; kept in the record
//
// Losses are comparable only for the same network, samples and arithmetic. If a record has the same
// numerics id and the same environment, except for the list of choices, the agent observes its
// trials with all their metrics. Only the best of these trials is evaluated again; its new results
// must be equal bit for bit. From any other record, the MSC_WARM_BEST best points within the exact
// bounds of this search are tried first. A strategy file gives one point, which is also tried.
// These points are evaluated like an agent's proposals.
//
// If the file lacks a task, or names a choice of the task that does not exist here, the task gets
// its most expensive choice. Such a point is only tried. Repeated points and baselines are skipped.
//
// From records whose points are not told, the losses of single choices teach how losses depend on
// features of choices (agents/feature_lessons.h), even if no task has the same name.
//
// The header of the new record stores everything that was taken (docs/record.md), so resuming the
// new search does not need the files.
#ifndef MSC_SEARCH_WARM_H
#define MSC_SEARCH_WARM_H

#include "env/api/env.h"

MSC_PUBLIC_BEGIN

// Maximum number of points of one file that are tried.
#define MSC_WARM_BEST 16

struct cJSON;

struct msc_warm_options {
    struct msc_env *env;
    const struct msc_goal *goal;
    const char *numerics;
    const char *const *paths; // records and strategy files, in the order in which they are observed
    size_t n_paths;
    bool is_dry_run; // if true, evaluates nothing
    const struct msc_log *log;
};

// Sets *out, owned by the caller, to the header's member `warm`, with its points as text
// (cJSON_Raw). `log` gets a line per file that says what was taken and which tasks the file lacks.
// MSC_E_INVALID: a file has no task of this space, or is neither a record nor a strategy file.
enum msc_status msc_warm_collect(struct cJSON **out, const struct msc_warm_options *options);

// For a search that is resumed: MSC_E_STATE if its record did not begin with these files. `warm` is
// the member of the record's header (NULL: nothing was taken). If a file no longer exists, `log`
// only gets a warning.
enum msc_status msc_warm_check(const struct cJSON *warm, const char *const paths[], size_t n_paths,
                               const char *record_path, const struct msc_log *log);

struct msc_warm_point {
    const uint32_t *choices; // [n_tasks]
    const double *metrics;   // [n_metrics], NaN: not measured; NULL: to be tried
};

struct msc_warm {
    size_t n_told, n_tried;
    // [n_told + n_tried]: points to observe, then points to try.
    const struct msc_warm_point *points;
};

// Reads the header's member `warm` (NULL: nothing was taken) for a space, into memory of the arena.
// `where` begins the error message (MSC_E_FORMAT).
enum msc_status msc_warm_read(struct msc_warm *out, struct msc_arena *arena,
                              const struct cJSON *warm, const struct msc_space *space,
                              const char *where);

// What the member `warm` (may be NULL) teaches an agent about features (msc_agent_host.lessons);
// NULL: nothing. Borrowed from `warm`.
const struct cJSON *msc_warm_lessons(const struct cJSON *warm);

MSC_PUBLIC_END

#endif
