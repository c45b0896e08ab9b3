// Environments as the program sees them: finding, opening and asking one. Nobody calls through a
// definition's pointers; these wrappers check state, fill what is known without a run, and judge.
//
//     const struct msc_env_def *def;
//     struct msc_env_library *library;
//     MSC_TRY(msc_env_select(&def, &library, "toy", folder));
//     MSC_TRY(msc_env_create(&env, def, config, &host));
//     MSC_TRY(msc_env_read_goal(&goal, msc_env_space(env), config));
//     MSC_TRY(msc_env_evaluate(env, &goal, &evaluation));
//     msc_env_destroy(env);
//     msc_env_library_close(library);     // after the last environment of it is gone
#ifndef MSC_ENV_ENV_H
#define MSC_ENV_ENV_H

#include "env/api/env.h"

MSC_PUBLIC_BEGIN

// The built-in environments, NULL-terminated, in the order users see; and one by name, or NULL.
const struct msc_env_def *const *msc_env_list(void);
const struct msc_env_def *msc_env_find(const char *name);

// A shared library that exports `msc_env_plugin`, a pointer to its definition.
struct msc_env_library;
// MSC_E_NOT_FOUND, MSC_E_FORMAT (no such symbol) or MSC_E_UNSUPPORTED (another ABI) with one line
// naming the file.
enum msc_status msc_env_library_open(struct msc_env_library **out, const char *path);
const struct msc_env_def *msc_env_library_definition(const struct msc_env_library *library);
void msc_env_library_close(struct msc_env_library *library); // accepts NULL

// The definition that a config's `env.type` means: a built-in name, or the path of a shared library
// (it contains '/' or ends in ".so"; relative to `folder`, which may be NULL). *library is owned by
// the caller and NULL for a built-in one. MSC_E_NOT_FOUND suggests the nearest name.
enum msc_status msc_env_select(const struct msc_env_def **def, struct msc_env_library **library,
                               const char *type, const char *folder);

// `config` is the environment's JSON object, borrowed until destroy; may be NULL. Its keys "type",
// "objectives" and "bounds" are passed over, every other one must be a parameter. The host struct
// is copied, what it points to is borrowed until destroy. MSC_E_INVALID when the host lacks what
// the definition needs, or the space it built is not sound.
enum msc_status msc_env_create(struct msc_env **out, const struct msc_env_def *def,
                               const struct cJSON *config, const struct msc_env_host *host);
void msc_env_destroy(struct msc_env *env); // accepts NULL

// The host as it was given: its graph is the model's, of which msc_env_host has what the strategy that
// the search starts from leaves.
const struct msc_env_host *msc_env_whole_host(const struct msc_env *env);

const struct msc_env_def *msc_env_definition(const struct msc_env *env);
const struct msc_space *msc_env_space(const struct msc_env *env); // borrowed until destroy

// Reads "objectives" (names of metrics; default: the space's first metric) and "bounds"
// ({metric: {"min": …, "max": …}}) of the environment's JSON object (NULL: defaults), and refuses
// what no point can meet. MSC_E_INVALID names the key.
enum msc_status msc_env_read_goal(struct msc_goal *goal, const struct msc_space *space,
                                  const struct cJSON *config);

// Adds what is absent from the environment's JSON object and has a default that its parameters'
// table cannot hold (the definition's `complete`), and puts its keys in the table's order. Without
// "objectives" an environment that needs nothing of its host gets its space's first metric; any
// other keeps its metrics to itself until it is made. Files that the object names are found from
// `folder` (NULL: the current one). Errors are those of reading the object.
enum msc_status msc_env_complete(const struct msc_env_def *def, struct cJSON *config,
                                 const char *folder);

// Evaluates trials: begins every outcome anew (msc_trial_begin), lets the environment measure, then
// judges it against the goal. A trial that breaks a bound by its exact costs becomes INFEASIBLE
// without being measured, unless its `probe` is set (baselines; agents that need the loss): then it
// is measured all the same and still is INFEASIBLE, with all metrics.
// `e->finished` is called once for each trial, with its outcome already judged; such outcomes are
// valid even when the call fails later. Outcomes depend on choices and bound alone. A trial's bound
// is passed on where it counts (msc_goal_takes_bound); a trial stopped at it is PRUNED, whatever
// its costs, with what its loss had come to.
enum msc_status msc_env_evaluate(struct msc_env *env, const struct msc_goal *goal,
                                 const struct msc_evaluation *e);

// Environments whose losses are sums over batches of samples can be asked for some of these first,
// and for others later.
struct msc_env_batches msc_env_batches(const struct msc_env *env);
size_t msc_env_n_batches(const struct msc_env *env); // 0: this one cannot
size_t msc_env_n_terms(const struct msc_env *env);   // doubles that each trial needs meanwhile

// Evaluates a part of the batches. The first part begins the outcome anew; later ones, which begin
// where the one before ended, go on with it. Before the last part an outcome that has not failed is
// PRUNED, with what its loss had come to; in the end it is as from msc_env_evaluate, to the last bit.
enum msc_status msc_env_evaluate_part(struct msc_env *env, const struct msc_goal *goal,
                                      const struct msc_evaluation *e,
                                      const struct msc_env_part *part);
// What the environment alone makes of trials: outcomes are begun and measured, but nothing is held
// against a goal. `part` NULL: all batches. For whoever measures for somebody else, who judges.
enum msc_status msc_env_measure(struct msc_env *env, const struct msc_evaluation *e,
                                const struct msc_env_part *part);

// Somebody who measures trials in the environment's place, on other machines say. Everything else
// stays here: exact costs, bounds, judging.
struct msc_env_elsewhere {
    // As the definition's evaluate; of an environment with batches as its evaluate_part, `part` being
    // NULL for all of them.
    enum msc_status (*measure)(void *payload, const struct msc_evaluation *e,
                               const struct msc_env_part *part);
    void *payload;
};
// Borrowed until the next call or destroy; NULL: it measures by itself.
void msc_env_set_elsewhere(struct msc_env *env, const struct msc_env_elsewhere *elsewhere);
// For these: the outcomes of trials whose terms are there (MSC_PART_FOLD), and `finished`.
enum msc_status msc_env_fold(struct msc_env *env, const struct msc_evaluation *e,
                             const struct msc_env_part *part);

// What a trial's loss has come to after the first batches, by its terms.
double msc_env_partial_loss(const struct msc_env *env, const double terms[], size_t n_batches);

// The metrics of the uncompressed model; NaN where the environment does not know.
enum msc_status msc_env_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]);
// True when the environment can say a point's edits (toy spaces have none).
bool msc_env_has_edits(const struct msc_env *env);
// The edits of a point as a strategy; *out is owned by the caller (cJSON_Delete).
// MSC_E_UNSUPPORTED when it has none.
enum msc_status msc_env_edits(struct msc_env *env, const uint32_t choices[], struct cJSON **out);
// Measures a point once more for the report (`what`: MSC_REEVALUATE_*). *out is a JSON object owned
// by the caller, empty when the environment has nothing to say.
enum msc_status msc_env_reevaluate(struct msc_env *env, const uint32_t choices[], unsigned what,
                                   struct cJSON **out);
// Hash of name, version, parameters, space and whatever else results depend on. MSC_E_NOMEM.
enum msc_status msc_env_identity(struct msc_hash *out, const struct msc_env *env);
// Adds the members that the record's header carries: "type", "version", "params" (resolved) and
// those of the environment itself.
enum msc_status msc_env_describe(const struct msc_env *env, struct cJSON *object);
// State beyond parameters, for the gym view. *out is owned by the caller; JSON null when none.
enum msc_status msc_env_save(const struct msc_env *env, struct cJSON **out);
enum msc_status msc_env_restore(struct msc_env *env, const struct cJSON *state);

MSC_PUBLIC_END

#endif
