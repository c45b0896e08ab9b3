// The environment interface: what can be chosen, and what a choice is worth.
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

// This number for environments, and MSC_AGENT_ABI for agents, covers all that passes between a library
// and the program that loads it.
//   Layout: the definition (msc_env_def), the structs that its functions are handed (msc_env_host,
//     msc_evaluation) with all that they hold of env/api/space.h and env/api/trial.h, msc_param,
//     msc_hash, and the values of their enumerations and limits (MSC_MAX_METRICS).
//   Contract: which of the definition's functions are called when, and who owns what.
//   Functions: those that env/api/ and the installed headers of base/ declare.
// The number rises with any change to these that would make the program misread a library built
// before, such as a new member at a struct's end. A library with another number is refused in one
// line. Built again with the program's headers it works, unless a function that it uses is gone. New
// functions alone do not raise the number.
// Not covered are graph/, data/, kernels/, tools/ and env/distill.h. Like all other installed headers
// they change with the program's version (the library's file name, libmscgym.so.0.1), and an
// environment that uses them is built for that version.
#define MSC_ENV_ABI 1u

struct cJSON;
struct msc_graph;
struct msc_dataset;
struct msc_backend;
struct msc_strategy;
struct msc_trial_runs;

// What the program lends to an environment, valid until its finish. Members may be NULL where the
// environment's definition does not ask for them (`needs`).
struct msc_env_host {
    unsigned abi;
    // Fused, with its weights: what `base` leaves of it, where that takes channels away.
    const struct msc_graph *graph;
    const struct msc_dataset *dataset;    // calibration samples
    const struct msc_dataset *validation; // held-out samples, or NULL
    struct msc_backend *backend;          // what computes
    int n_threads;                        // to evaluate with; at most the backend's
    uint64_t memory_bytes;                // that the process may hold (msc_evaluator_options)
    const struct msc_strategy *base;      // edits found by earlier entries, or NULL
    const char *parameters_path;          // RECORD.params: what must not be computed twice, or NULL
    // MSC_E_STATE when the file must exist already: the record was made under other numerics.
    bool parameters_required;
    const char *
        folder; // of its configuration: files are found from it, and programs run in it; NULL: the current one
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

enum {
    MSC_ENV_NEEDS_GRAPH = 1 << 0,
    MSC_ENV_NEEDS_DATASET = 1 << 1,
    MSC_ENV_NEEDS_BACKEND = 1 << 2,
};

// What the choices of an environment decide. A task of channels or single weights has a density as its
// label, one of bits a number of bits.
enum {
    MSC_ENV_DECIDES_CHANNELS = 1 << 0,
    MSC_ENV_DECIDES_BITS = 1 << 1,
};

struct msc_env;

// A set of trials to evaluate together.
struct msc_evaluation {
    struct msc_trial *const *trials; // [n], proposals to read and outcomes to fill
    size_t n;
    // Optional: called once for each trial as it is done, in any order, one call at a time.
    void (*finished)(void *payload, size_t index);
    void *payload;
    // [n], set by the core: above which loss a trial may be stopped. Its proposal's bound, or +inf
    // where that does not count.
    const double *bounds;
};

// Environments whose metrics are means over batches of samples: what these are means of.
struct msc_env_batches {
    size_t n;       // 0: trials are measured whole
    size_t n_terms; // doubles in which a trial keeps what its batches add to the sums
    // Terms are [n_sums][n], one of each batch. 0: in another order that only the environment knows.
    size_t n_sums;
};

enum msc_part_kind {
    // The batches that come next: earlier parts have filled their terms, and the outcome says how far
    // it has come.
    MSC_PART_NEXT,
    // Batches by themselves, for somebody who adds terms up elsewhere. Those of batches before `first`
    // are 0; a bound is one of what these batches lose alone. A trial that does not reach the end is
    // PRUNED or FAILED, and terms that were not computed stay as they were. Nothing but runs of the
    // network is measured.
    MSC_PART_ALONE,
    // Batches that were computed as such: outcomes are filled from terms as if they had been next.
    MSC_PART_FOLD,
};

// What came of a trial elsewhere.
struct msc_part_found {
    size_t n_batches;           // from the part's first on, whose terms are there
    enum msc_trial_cause cause; // why there are no more; MSC_CAUSE_NONE: these are all
    const char *reason;
    uint64_t time_us;
    double reuse_ratio;
};

struct msc_env_part {
    size_t first, end; // the batches from `first` to before `end`
    // [e->n][n_terms], the caller's: what earlier parts have filled, and this one adds to; NULL: there
    // is but one part.
    double *const *terms;
    enum msc_part_kind kind;
    const struct msc_part_found *found; // [e->n] of MSC_PART_FOLD
};

// What to measure once more for a report.
enum {
    MSC_REEVALUATE_VALIDATION = 1 << 0, // metrics on the validation samples
    MSC_REEVALUATE_NOISE = 1 << 1,      // how far rounding alone moves the loss
    MSC_REEVALUATE_ALONE = 1 << 2,      // the sum of the losses that its choices have alone
    MSC_REEVALUATE_ALL = 7,
    // Not for reports: the least host memory_bytes that trials can be evaluated in, "memory_bytes".
    MSC_REEVALUATE_MEMORY = 1 << 3,
    // Nor this: what the others take, in evaluations of a point of which nothing is known yet:
    // "effort": {"noise", "alone", "validation"}.
    MSC_REEVALUATE_EFFORT = 1 << 4,
};

struct msc_env_def {
    unsigned abi; // MSC_ENV_ABI
    const char *name;
    const char *summary; // one line for `mscgym envs`
    unsigned version;    // changes when results change; part of the record's identity
    unsigned needs;      // MSC_ENV_NEEDS_*
    unsigned decides;    // MSC_ENV_DECIDES_*; 0: something else
    size_t state_size;
    const struct msc_param *params; // ends with {0}; offsets are into the state

    // Optional: adds to a configuration what is absent and has a default that no table can hold:
    // lists, objects, what depends on another key. For `mscgym config --show`, and to compare a
    // configuration with a record's; init reads what was given.
    enum msc_status (*complete)(struct cJSON *config);
    // Optional: what it can measure, whatever the configuration; NULL from some index on. For
    // `mscgym envs`: a space has those of them that its search measures.
    const struct msc_metric *(*metric)(size_t index);
    // Builds the space. The host is msc_env_host(env).
    enum msc_status (*init)(struct msc_env *env);
    // Borrowed until finish.
    const struct msc_space *(*space)(const struct msc_env *env);
    // Fills metrics (exact costs are already there) and, for a trial that cannot be evaluated,
    // state FAILED with reason and cause (msc_outcome_fail). Equal choices give equal metrics,
    // whatever else is in the call. A status other than MSC_OK means that nothing could be evaluated
    // at all; MSC_E_LOST, that nothing will be until the process is started anew.
    // A trial whose `distill_loss` is sure to exceed its entry of `bounds` may be stopped: state
    // PRUNED (msc_outcome_prune), as the metric a lower bound of it that exceeds that entry, the
    // same every time for equal choices and bound. An environment may ignore bounds.
    enum msc_status (*evaluate)(struct msc_env *env, const struct msc_evaluation *e);
    // Optional, only of built-in environments: the runs of the network that measure its trials
    // (env/trial_runs.h), in its state.
    struct msc_trial_runs *(*runs)(const struct msc_env *env);
    // Optional, all three or none: trials can be measured by batches, some of them first and others
    // later, or on another machine. A sum over the same batches is the same to the last bit, whoever
    // computed which.
    struct msc_env_batches (*batches)(const struct msc_env *env);
    enum msc_status (*evaluate_part)(struct msc_env *env, const struct msc_evaluation *e,
                                     const struct msc_env_part *part);
    // What a trial's loss has come to after the first batches, by its terms.
    double (*partial_loss)(const struct msc_env *env, const double terms[], size_t n_batches);
    // Optional: the metrics of the uncompressed model. Default: none are known.
    enum msc_status (*reference)(struct msc_env *env, double metrics[MSC_MAX_METRICS]);
    // Optional: the edits of a point as a strategy (JSON of docs/strategy.md), owned by the caller.
    enum msc_status (*edits)(struct msc_env *env, const uint32_t choices[], struct cJSON **out);
    // Optional: measures a point once more for the report; `what` is of MSC_REEVALUATE_*. *out is a
    // JSON object, owned by the caller.
    enum msc_status (*reevaluate)(struct msc_env *env, const uint32_t choices[], unsigned what,
                                  struct cJSON **out);
    // Optional: hash of everything beyond the parameters that results depend on.
    struct msc_hash (*identity)(const struct msc_env *env);
    // Optional: hash members for the record's header ("graph", "weights", "dataset",
    // "params_hash").
    enum msc_status (*describe)(const struct msc_env *env, struct cJSON *object);
    // Optional: state beyond parameters as JSON and back, for the gym view's save and restore.
    enum msc_status (*save)(const struct msc_env *env, struct cJSON **out);
    enum msc_status (*restore)(struct msc_env *env, const struct cJSON *state);
    // Accepts zeroed state.
    void (*finish)(struct msc_env *env);
};

// For the definition's functions.
void *msc_env_state(const struct msc_env *env);
const struct msc_env_host *msc_env_host(const struct msc_env *env);
// The configuration object the parameters were read from (may be NULL); borrowed.
const struct cJSON *msc_env_config(const struct msc_env *env);
struct msc_arena *msc_env_arena(struct msc_env *env); // freed after finish

MSC_PUBLIC_END

#endif
