// The environment interface. An environment defines the search space and measures trials.
//
// An environment is one file ending in one `const struct msc_env_def`. The core allocates
// `state_size` zeroed bytes, applies parameter defaults, reads the parameters and calls `init`.
// A plug-in is a shared library that exports `msc_env_plugin`, a pointer to its definition.
//
//     static enum msc_status toy_init(struct msc_env *env) { struct toy *t = msc_env_state(env); …
//     const struct msc_env_def msc_env_toy = {
//         .abi = MSC_ENV_ABI, .name = "toy", .summary = "...", .version = 1,
//         .state_size = sizeof(struct toy), .params = toy_params,
//         .init = toy_init, .space = toy_space, .evaluate = toy_evaluate, ... };
//
// Callers use the wrappers of env/env.h, never the definition's pointers.
#ifndef MSC_ENV_API_ENV_H
#define MSC_ENV_API_ENV_H

#include "base/cancel.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "env/api/trial.h"

MSC_PUBLIC_BEGIN

// The version of the binary interface between the program and an environment in a shared library.
// MSC_AGENT_ABI is its counterpart for agents. MSC_ENV_ABI covers:
//   Layout: the definition (msc_env_def), the structs passed to its functions (msc_env_host,
//     msc_evaluation), the structs of env/api/space.h and env/api/trial.h in them, msc_param,
//     msc_hash, and the values of their enumerations and limits (MSC_MAX_METRICS).
//   Contract: when each of the definition's functions is called, and who owns what.
//   Functions: those declared in env/api/ and in the installed headers of base/.
// The number increases with any change that would make the program misread an older library, such
// as a new member at the end of a struct. New functions do not increase it. A library with another
// number is refused with an error. Rebuild it with the program's headers.
//
// The number does not cover graph/, data/, kernels/, tools/ and env/distill.h. These headers change
// with the program's version (libmscgym.so.0.1), so an environment that uses them is built for that
// version.
#define MSC_ENV_ABI 2u

struct cJSON;
struct msc_graph;
struct msc_dataset;
struct msc_backend;
struct msc_strategy;
struct msc_trial_runs;

// The program's resources for an environment, borrowed until the environment's `finish`. Members
// that the definition does not request in `needs` may be NULL.
struct msc_env_host {
    unsigned abi;
    // The fused model with its weights, without the channels that `base` removes.
    const struct msc_graph *graph;
    const struct msc_dataset *dataset;    // calibration samples
    const struct msc_dataset *validation; // held-out samples, or NULL
    struct msc_backend *backend;
    int n_threads;                   // threads for evaluation; at most as many as the backend has
    uint64_t memory_bytes;           // memory limit of the process (msc_evaluator_options)
    const struct msc_strategy *base; // edits of earlier pipeline entries, or NULL
    // RECORD.params, the file that keeps calibrated parameters; or NULL
    const char *parameters_path;
    // True if the parameters cannot be computed again with equal results. The file at
    // parameters_path must then exist, else the environment fails with MSC_E_STATE.
    bool parameters_required;
    // The configuration's folder: paths are relative to it, and programs run in it. NULL: the
    // current folder.
    const char *folder;
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    // Optional: what is prepared before the first trial, and about which part of all of it is done
    // (0 to 1). Called after the first part of each step, then at most once a second.
    void (*preparing)(void *payload, const char *what, double part);
    void *preparing_payload;
};

enum {
    MSC_ENV_NEEDS_GRAPH = 1 << 0,
    MSC_ENV_NEEDS_DATASET = 1 << 1,
    MSC_ENV_NEEDS_BACKEND = 1 << 2,
};

// Flags that tell what an environment's choices decide. If a task decides channels or single
// weights, the labels of its choices are densities. If a task decides bits, the labels are numbers
// of bits.
enum {
    MSC_ENV_DECIDES_CHANNELS = 1 << 0,
    MSC_ENV_DECIDES_BITS = 1 << 1,
};

struct msc_env;

// A set of trials to evaluate together.
struct msc_evaluation {
    struct msc_trial *const *trials; // [n], proposals to read and outcomes to fill
    size_t n;
    // Optional: called once for each trial when it is done, in any order, one call at a time.
    void (*finished)(void *payload, size_t index);
    void *payload;
    // [n], set by the core: the loss above which each trial may be stopped. It is the bound of the
    // trial's proposal, or +inf if the goal does not allow bounds.
    const double *bounds;
};

// How an environment whose metrics are means over samples divides its samples into batches.
struct msc_env_batches {
    size_t n;       // number of batches; 0: trials can only be measured completely
    size_t n_terms; // terms (doubles) of a trial: the contributions of its batches to sums
    // If n_sums is not 0, terms are [n_sums][n]: each sum has one term for each batch. If n_sums is
    // 0, only the environment knows the order of the terms.
    size_t n_sums;
};

enum msc_part_kind {
    // The next batches of trials whose earlier parts were evaluated in this process. The terms of
    // the earlier parts are filled, and the outcome has the result so far.
    MSC_PART_NEXT,
    // A part that does not continue an earlier one, for a caller that sums terms elsewhere. Terms
    // of batches before `first` are 0, and a bound applies to the loss of these batches only. A
    // trial that does not reach the end is PRUNED or FAILED; its remaining terms are unchanged.
    // Only metrics from runs of the network are measured.
    MSC_PART_ALONE,
    // Batches whose terms are known, because they were computed as MSC_PART_ALONE. The outcomes are
    // filled as by MSC_PART_NEXT, without runs.
    MSC_PART_FOLD,
};

// Result of a trial that was measured elsewhere.
struct msc_part_found {
    size_t n_batches;           // leading batches of the part whose terms are known
    enum msc_trial_cause cause; // why the other terms are missing; MSC_CAUSE_NONE: none is missing
    const char *reason;
    uint64_t time_us;
    double reuse_ratio;
};

struct msc_env_part {
    size_t first, end; // batches first ... end - 1
    // [e->n][n_terms], owned by the caller. Earlier parts have filled the terms of their batches;
    // this part adds its own. NULL: there are no other parts.
    double *const *terms;
    enum msc_part_kind kind;
    const struct msc_part_found *found; // [e->n] for MSC_PART_FOLD
};

// What to measure again for a report, as bits of a set.
enum {
    MSC_REEVALUATE_VALIDATION = 1 << 0, // metrics on the validation samples
    MSC_REEVALUATE_NOISE = 1 << 1,      // how much rounding noise changes the loss
    MSC_REEVALUATE_ALONE = 1 << 2,      // sum of the losses with one choice applied at a time
    MSC_REEVALUATE_ALL = 7,
    // Not for reports: adds "memory_bytes", the least memory_bytes of the host with which trials
    // can be evaluated.
    MSC_REEVALUATE_MEMORY = 1 << 3,
    // Not for reports: adds "effort": {"noise", "alone", "validation"}, the cost of the
    // measurements above, in evaluations of one point without reuse.
    MSC_REEVALUATE_EFFORT = 1 << 4,
};

struct msc_env_def {
    unsigned abi; // MSC_ENV_ABI
    const char *name;
    const char *summary; // one line for `mscgym envs`
    unsigned version;    // changes when results change; covered by msc_env_identity
    unsigned needs;      // MSC_ENV_NEEDS_*
    unsigned decides;    // MSC_ENV_DECIDES_*; 0: something else
    size_t state_size;
    const struct msc_param *params; // ends with {0}; offsets are into the state

    // Optional: adds absent members of a configuration whose defaults the parameter table cannot
    // hold: lists, objects, and defaults that depend on another key. Used by `mscgym config --show`
    // and to compare a configuration with a record's. `init` reads the configuration without these
    // additions.
    enum msc_status (*complete)(struct cJSON *config);
    // Optional: the metrics that the environment can measure in any configuration; NULL after the
    // last. Used by `mscgym envs`. A space has only the metrics that its search measures.
    const struct msc_metric *(*metric)(size_t index);
    // Builds the space. The host is msc_env_host(env).
    enum msc_status (*init)(struct msc_env *env);
    // Borrowed until finish.
    const struct msc_space *(*space)(const struct msc_env *env);
    // Measures trials. Exact costs are already filled in. A trial that cannot be evaluated gets
    // state FAILED with reason and cause (msc_outcome_fail). Equal choices give equal metrics,
    // independently of the other trials in the call. A status other than MSC_OK means that nothing
    // could be evaluated; MSC_E_LOST means that the process must be restarted first. A trial whose
    // `distill_loss` is certain to exceed its entry of `bounds` may be stopped. Its state is then
    // PRUNED (msc_outcome_prune), and its `distill_loss` is a lower bound of the full loss that
    // exceeds the entry. Equal choices and bounds must give equal lower bounds. An environment may
    // ignore bounds.
    enum msc_status (*evaluate)(struct msc_env *env, const struct msc_evaluation *e);
    // Optional, for built-in environments only: returns the member of the state that runs the
    // network for trials (env/trial_runs.h).
    struct msc_trial_runs *(*runs)(const struct msc_env *env);
    // Optional, all three or none: trials can be measured batch by batch, also at different times
    // or on different machines. A sum over the same batches has the same bits, wherever the batches
    // were run.
    struct msc_env_batches (*batches)(const struct msc_env *env);
    enum msc_status (*evaluate_part)(struct msc_env *env, const struct msc_evaluation *e,
                                     const struct msc_env_part *part);
    // The loss of a trial after its first `n_batches` batches, from its terms.
    double (*partial_loss)(const struct msc_env *env, const double terms[], size_t n_batches);
    // Optional: the metrics of the uncompressed model. Default: unknown.
    enum msc_status (*reference)(struct msc_env *env, double metrics[MSC_MAX_METRICS]);
    // Optional: the edits of a point as a strategy (JSON of docs/strategy.md), owned by the caller.
    enum msc_status (*edits)(struct msc_env *env, const uint32_t choices[], struct cJSON **out);
    // Optional: measures a point again for the report; `what` is a set of MSC_REEVALUATE_*. *out is
    // a JSON object, owned by the caller.
    enum msc_status (*reevaluate)(struct msc_env *env, const uint32_t choices[], unsigned what,
                                  struct cJSON **out);
    // Optional: hash of everything that results depend on, except the parameters.
    struct msc_hash (*identity)(const struct msc_env *env);
    // Optional: adds members with hashes ("graph", "weights", "dataset", "params_hash") to the
    // record's header.
    enum msc_status (*describe)(const struct msc_env *env, struct cJSON *object);
    // Optional, for the gym view: `save` writes as JSON the state that changes during a search, and
    // `restore` reads it.
    enum msc_status (*save)(const struct msc_env *env, struct cJSON **out);
    enum msc_status (*restore)(struct msc_env *env, const struct cJSON *state);
    // Accepts zeroed state.
    void (*finish)(struct msc_env *env);
};

// For the functions of a definition: the environment's own state, and the program's resources.
void *msc_env_state(const struct msc_env *env);
const struct msc_env_host *msc_env_host(const struct msc_env *env);
// The configuration object the parameters were read from (may be NULL); borrowed.
const struct cJSON *msc_env_config(const struct msc_env *env);
struct msc_arena *msc_env_arena(struct msc_env *env); // freed after finish

MSC_PUBLIC_END

#endif
