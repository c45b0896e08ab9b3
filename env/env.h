// Environments as the program uses them: finds, opens and evaluates one. Use these functions
// instead of the definition's pointers: they check arguments, fill in exact costs and judge
// outcomes by the goal.
//
//     const struct msc_env_def *def;
//     struct msc_env_library *library;
//     MSC_TRY(msc_env_select(&def, &library, "toy", folder));
//     MSC_TRY(msc_env_create(&env, def, config, &host));
//     MSC_TRY(msc_env_read_goal(&goal, msc_env_space(env), config));
//     MSC_TRY(msc_env_evaluate(env, &goal, &evaluation));
//     msc_env_destroy(env);
//     msc_env_library_close(library);     // after its last environment is destroyed
#ifndef MSC_ENV_ENV_H
#define MSC_ENV_ENV_H

#include "env/api/drop.h"
#include "env/api/env.h"

MSC_PUBLIC_BEGIN

// msc_env_list returns the built-in environments in the order of `mscgym envs`, NULL-terminated.
// msc_env_find returns one of them by name, or NULL.
const struct msc_env_def *const *msc_env_list(void);
const struct msc_env_def *msc_env_find(const char *name);

// A shared library that exports `msc_env_plugin`, a pointer to its definition.
struct msc_env_library;
// MSC_E_NOT_FOUND, MSC_E_FORMAT (invalid library) or MSC_E_UNSUPPORTED (another ABI); the message
// names the file.
enum msc_status msc_env_library_open(struct msc_env_library **out, const char *path);
const struct msc_env_def *msc_env_library_definition(const struct msc_env_library *library);
void msc_env_library_close(struct msc_env_library *library); // accepts NULL

// Finds the definition that a config's `env.type` names: a built-in one, or a shared library if the
// name contains '/' or ends in ".so" (relative to `folder`, which may be NULL). *library is owned
// by the caller and NULL for a built-in one. MSC_E_NOT_FOUND: the message suggests the nearest
// name.
enum msc_status msc_env_select(const struct msc_env_def **def, struct msc_env_library **library,
                               const char *type, const char *folder);

// `config` is the environment's JSON object, borrowed until destroy; may be NULL. Its keys "type",
// "objectives" and "bounds" are ignored; every other key must be a parameter. The host struct is
// copied; its members are borrowed until destroy. MSC_E_INVALID if the host lacks something that
// the definition needs, or if the space is invalid.
enum msc_status msc_env_create(struct msc_env **out, const struct msc_env_def *def,
                               const struct cJSON *config, const struct msc_env_host *host);
void msc_env_destroy(struct msc_env *env); // accepts NULL

// The host as passed to msc_env_create, with the whole graph. In msc_env_host the graph lacks the
// channels that the strategy to start from removes.
const struct msc_env_host *msc_env_whole_host(const struct msc_env *env);

const struct msc_env_def *msc_env_definition(const struct msc_env *env);
const struct msc_space *msc_env_space(const struct msc_env *env); // borrowed until destroy

// Reads "objectives" (names of metrics; default: the space's first metric) and "bounds" ({metric:
// {"min": …, "max": …}}) from the environment's JSON object (NULL: defaults). Bounds that no point
// can meet are refused. MSC_E_INVALID: the message names the key.
enum msc_status msc_env_read_goal(struct msc_goal *goal, const struct msc_space *space,
                                  const struct cJSON *config);
// Like msc_env_read_goal, but also accepts bounds by drop: {metric: {"drop": …, "relative": …}},
// {"<metric>_drop": number} and {"<metric>_drop_ratio": number}. These bounds have no limit until
// msc_env_measure_drops sets it, or the limits of a record are taken.
enum msc_status msc_env_read_drops(struct msc_drops *drops, struct msc_goal *goal,
                                   const struct msc_space *space, const struct cJSON *config);
// Measures the float model and sets the limits of bounds by drop; without such bounds, does
// nothing. MSC_E_INVALID: the float model has no such metric, or the drop excludes nothing.
enum msc_status msc_env_measure_drops(struct msc_drops *drops, struct msc_goal *goal,
                                      struct msc_env *env);

// Adds to the environment's JSON object the absent keys whose defaults the parameter table cannot
// hold (the definition's `complete`), and sorts all keys into the table's order. If "objectives" is
// absent, the space's first metric is added, but only for an environment that needs nothing from
// its host: other environments cannot be created here. Files named in the object are relative to
// `folder` (NULL: the current one). Errors are those of reading the object.
enum msc_status msc_env_complete(const struct msc_env_def *def, struct cJSON *config,
                                 const char *folder);

// Evaluates trials: resets every outcome (msc_trial_begin), lets the environment measure it, and
// judges it by the goal. A trial whose exact costs break a bound becomes INFEASIBLE without being
// measured. If `probe` is set (baselines; agents that need the loss), the trial is measured, but
// remains INFEASIBLE. `e->finished` is called once for each trial after its outcome was judged. A
// reported outcome is valid even if the call fails later. Outcomes depend only on choices and
// bound. A trial's bound is passed on if the goal allows it (msc_goal_takes_bound). A trial stopped
// at its bound is PRUNED, whatever its costs, with its loss so far.
enum msc_status msc_env_evaluate(struct msc_env *env, const struct msc_goal *goal,
                                 const struct msc_evaluation *e);

// The batches of the environment's samples (n 0: trials cannot be evaluated in several parts).
struct msc_env_batches msc_env_batches(const struct msc_env *env);
size_t msc_env_n_batches(const struct msc_env *env); // 0: trials cannot be evaluated in parts
size_t msc_env_n_terms(const struct msc_env *env);   // doubles that a trial needs between parts

// Evaluates a part of the batches. The first part resets the outcome; each later part begins at the
// end of the previous one and continues the outcome. Before the last part, an outcome that has not
// failed is PRUNED with its loss so far. After it, the outcome has the same bits as from
// msc_env_evaluate.
enum msc_status msc_env_evaluate_part(struct msc_env *env, const struct msc_goal *goal,
                                      const struct msc_evaluation *e,
                                      const struct msc_env_part *part);
// Resets and measures outcomes without judging them by a goal, for another process that judges
// them. `part` NULL: all batches.
enum msc_status msc_env_measure(struct msc_env *env, const struct msc_evaluation *e,
                                const struct msc_env_part *part);

// Replaces the environment's measuring, for example by other machines. Exact costs, bounds and
// judging remain in this process.
struct msc_env_elsewhere {
    // Like the definition's evaluate or, if the environment has batches, like its evaluate_part. A
    // `part` of NULL means all batches.
    enum msc_status (*measure)(void *payload, const struct msc_evaluation *e,
                               const struct msc_env_part *part);
    void *payload;
};
// `elsewhere` is borrowed until the next call of this function or destroy. NULL: this process
// measures trials.
void msc_env_set_elsewhere(struct msc_env *env, const struct msc_env_elsewhere *elsewhere);
// For `measure`: fills the outcomes of trials whose terms are known (MSC_PART_FOLD) and calls
// `finished`.
enum msc_status msc_env_fold(struct msc_env *env, const struct msc_evaluation *e,
                             const struct msc_env_part *part);

// The loss of a trial after its first `n_batches` batches, from its terms.
double msc_env_partial_loss(const struct msc_env *env, const double terms[], size_t n_batches);

// The metrics of the uncompressed model; NaN if unknown.
enum msc_status msc_env_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]);
// Whether the environment can give a point's edits (toy spaces have none).
bool msc_env_has_edits(const struct msc_env *env);
// The edits of a point as a strategy; *out is owned by the caller (cJSON_Delete).
// MSC_E_UNSUPPORTED if the environment has none.
enum msc_status msc_env_edits(struct msc_env *env, const uint32_t choices[], struct cJSON **out);
// Measures a point again for the report (`what`: MSC_REEVALUATE_*). *out is a JSON object owned by
// the caller; it is empty if the environment measures nothing again.
enum msc_status msc_env_reevaluate(struct msc_env *env, const uint32_t choices[], unsigned what,
                                   struct cJSON **out);
// Hash of everything that results depend on: name, version, parameters, space and more.
// MSC_E_NOMEM.
enum msc_status msc_env_identity(struct msc_hash *out, const struct msc_env *env);
// Adds the members for the record's header: "type", "version", "params" (with defaults) and those
// of the environment itself.
enum msc_status msc_env_describe(const struct msc_env *env, struct cJSON *object);
// State that changes during a search, for the gym view. *out is owned by the caller; it is JSON
// null if there is no such state.
enum msc_status msc_env_save(const struct msc_env *env, struct cJSON **out);
enum msc_status msc_env_restore(struct msc_env *env, const struct cJSON *state);

MSC_PUBLIC_END

#endif
