// Reads a space from JSON: tasks, metrics and exact costs of tables (docs/table.md) and of
// environments that are programs (docs/environments.md).
//
//     struct msc_space_json r = {.space = &space, .arena = arena};
//     MSC_TRY(msc_space_json_read_tasks(&r, root));
//     MSC_TRY(msc_space_json_read_metrics(&r, root, read_metric, payload));
//     MSC_TRY(msc_space_finish(&space, arena));
//
// Everything is allocated in the arena. Messages of MSC_E_FORMAT and MSC_E_INVALID begin with the
// place, such as "tasks[3].choices"; the caller adds the name of the file or program.
#ifndef MSC_ENV_SPACE_JSON_H
#define MSC_ENV_SPACE_JSON_H

#include "base/alloc.h"
#include "env/api/trial.h"

struct cJSON;

// A column of a table with more values than this is a measured number, not a choice.
#define MSC_SPACE_JSON_MAX_CHOICES 4096

struct msc_space_json {
    struct msc_space *space; // zeroed by the caller, then filled
    struct msc_arena *arena;
    struct msc_task *tasks;     // the space's tasks, set when they are read
    struct msc_metric *metrics; // [MSC_MAX_METRICS], the first n_measured are not exact
    size_t n_measured;
    struct msc_cost *costs;
};

// Reads "features", "tasks" and "neighbours".
enum msc_status msc_space_json_read_tasks(struct msc_space_json *r, const struct cJSON *root);
// Reads "metrics" and "costs". `read` reads each item of "metrics" as metric `i` of the space; a
// metric named distill_loss becomes the first.
enum msc_status msc_space_json_read_metrics(struct msc_space_json *r, const struct cJSON *root,
                                            enum msc_status (*read)(void *payload, size_t i,
                                                                    const struct cJSON *object,
                                                                    const char *where),
                                            void *payload);

// ---- Parts of a space -------------------------------------------------------------------------

// Reads "name", "unit", "help" and "maximised" of a metric.
enum msc_status msc_space_json_read_head(const struct msc_space_json *r, struct msc_metric *metric,
                                         const struct cJSON *object, const char *where);
// Reads the index of a task.
enum msc_status msc_space_json_read_task(const struct msc_space_json *r, uint32_t *out,
                                         const struct cJSON *item, const char *where);
// Reads a list of `n` numbers. With `may_fail`, null is allowed and gives NaN.
enum msc_status msc_space_json_read_numbers(double out[], size_t n, const struct cJSON *list,
                                            bool may_fail, const char *where);
// Reads "constant"; 0 if absent.
enum msc_status msc_space_json_read_constant(double *out, const struct cJSON *object,
                                             const char *where);
// Reads "alone", the amount that each choice of each task adds: [n_tasks][n_choices]. *out is NULL
// if absent.
enum msc_status msc_space_json_read_alone(const struct msc_space_json *r, double ***out,
                                          const struct cJSON *object, bool may_fail,
                                          const char *where);

// Completes a space. A task without an order of choices is ordered by the first exact cost that is
// minimised. If the space has no baselines and all tasks have the same labels, the uniform plans
// become baselines.
enum msc_status msc_space_finish(struct msc_space *space, struct msc_arena *arena);

#endif
