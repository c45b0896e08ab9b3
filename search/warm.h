// What a search takes of others before its agent is first asked: points of records and of strategy
// files, found by the names of tasks and the labels of their choices.
//
//     MSC_TRY(msc_warm_collect(&warm, &(struct msc_warm_options){.env = env, .goal = &goal,
//         .numerics = numerics, .paths = paths, .n_paths = n}));
//     options.warm = warm;                            // of msc_search_run; into the record's header
//
// A loss is comparable only with losses of the same network, samples and arithmetic. So of a record
// whose environment is the same, but for the list of choices, under the same numerics id, the trials
// are told with all they measured, and nothing of them is evaluated again but the best one, which must
// come out to the bit. Of any other record the MSC_WARM_BEST best points within the exact bounds of this
// search, and of a strategy file its point, are tried first: evaluated as what an agent proposes.
//
// A task that the file does not have, or whose choice has no such label here, is at its most expensive
// choice: such a point is tried, never told. Points that come twice, or are baselines, count once.
//
// All that was taken stands in the header of the new record (docs/record.md): going on with it asks
// the files for nothing.
#ifndef MSC_SEARCH_WARM_H
#define MSC_SEARCH_WARM_H

#include "env/api/env.h"

MSC_PUBLIC_BEGIN

// Points of one file that are tried.
#define MSC_WARM_BEST 16

struct cJSON;

struct msc_warm_options {
    struct msc_env *env;
    const struct msc_goal *goal;
    const char *numerics;
    const char *const *paths; // records and strategy files, in the order of telling
    size_t n_paths;
    bool is_dry_run; // nothing is evaluated
    const struct msc_log *log;
};

// *out, owned by the caller, is the header's member `warm`, its points as text (cJSON_Raw); `log` is told in one line of each file what
// was taken and which tasks it does not know. MSC_E_INVALID: a file has no task of this space, or is
// neither a record nor a strategy file.
enum msc_status msc_warm_collect(struct cJSON **out, const struct msc_warm_options *options);

// For a search that goes on: MSC_E_STATE when its record, whose header has `warm` (NULL: nothing), did not
// begin with these files. A file that is gone is not missed: `log` is warned.
enum msc_status msc_warm_check(const struct cJSON *warm, const char *const paths[], size_t n_paths,
                               const char *record_path, const struct msc_log *log);

struct msc_warm_point {
    const uint32_t *choices; // [n_tasks]
    const double *metrics;   // [n_metrics], NaN: not measured; NULL: it is to be tried
};

struct msc_warm {
    size_t n_told, n_tried;
    const struct msc_warm_point *points; // [n_told + n_tried], those told first
};

// Reads the header's member (NULL: nothing was taken) for a space; memory is the arena's. `where` begins
// the error text (MSC_E_FORMAT).
enum msc_status msc_warm_read(struct msc_warm *out, struct msc_arena *arena,
                              const struct cJSON *warm, const struct msc_space *space,
                              const char *where);

MSC_PUBLIC_END

#endif
