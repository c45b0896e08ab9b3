// A space as JSON: what tables (docs/table.md) and environments that are programs
// (docs/environments.md) say of their tasks, metrics and exact costs.
//
//     struct msc_space_json r = {.space = &space, .arena = arena};
//     MSC_TRY(msc_space_json_read_tasks(&r, root));
//     MSC_TRY(msc_space_json_read_metrics(&r, root, read_metric, payload));
//     MSC_TRY(msc_space_finish(&space, arena));
//
// Everything lies in the arena. MSC_E_FORMAT and MSC_E_INVALID begin with the place,
// "tasks[3].choices"; whose it is the caller adds.
#ifndef MSC_ENV_SPACE_JSON_H
#define MSC_ENV_SPACE_JSON_H

#include "base/alloc.h"
#include "env/api/trial.h"

struct cJSON;

// More is not a choice, but a number that was measured.
#define MSC_SPACE_JSON_MAX_CHOICES 4096

struct msc_space_json {
    struct msc_space *space; // filled from zero
    struct msc_arena *arena;
    struct msc_task *tasks;     // of the space, once they are read
    struct msc_metric *metrics; // [MSC_MAX_METRICS], of which n_measured come first
    size_t n_measured;
    struct msc_cost *costs;
};

// "features" and "tasks".
enum msc_status msc_space_json_read_tasks(struct msc_space_json *r, const struct cJSON *root);
// "metrics" and "costs". `read` takes each item of "metrics", the i-th of the space: one named
// distill_loss comes first.
enum msc_status msc_space_json_read_metrics(struct msc_space_json *r, const struct cJSON *root,
                                            enum msc_status (*read)(void *payload, size_t i,
                                                                    const struct cJSON *object,
                                                                    const char *where),
                                            void *payload);

// ---- Parts of it ------------------------------------------------------------------------------

// "name", "unit", "help", "maximised" of a metric.
enum msc_status msc_space_json_read_head(const struct msc_space_json *r, struct msc_metric *metric,
                                         const struct cJSON *object, const char *where);
// The index of a task.
enum msc_status msc_space_json_read_task(const struct msc_space_json *r, uint32_t *out,
                                         const struct cJSON *item, const char *where);
// A list of `n` numbers at `out`. `null` is NaN where that may be.
enum msc_status msc_space_json_read_numbers(double out[], size_t n, const struct cJSON *list,
                                            bool may_fail, const char *where);
// "constant", 0 where there is none.
enum msc_status msc_space_json_read_constant(double *out, const struct cJSON *object,
                                             const char *where);
// "alone", what each choice of each task adds: [n_tasks][n_choices]; *out is NULL where there is no
// such key.
enum msc_status msc_space_json_read_alone(const struct msc_space_json *r, double ***out,
                                          const struct cJSON *object, bool may_fail,
                                          const char *where);

// What is left to be told from the rest: the order of choices where a task has none, by the first
// exact cost of which less is better, and, where the space has no baselines and all tasks have the
// same labels, those of the uniform plans.
enum msc_status msc_space_finish(struct msc_space *space, struct msc_arena *arena);

#endif
