// Proposals, outcomes and trials, and which of two trials is better. Plain data.
//
// One value goes the whole way: an agent writes the proposal, the search gives it an id, an
// environment fills the outcome, the agent is told of it, and the record keeps it with what a line
// adds (records/record.h). Choices, metrics and reason lie in the memory of whoever holds the trial:
// a copy of the struct shares them.
//
//     struct msc_trial trial;
//     MSC_TRY(msc_trial_init(&trial, &arena, space));       // room for them
//     msc_trial_begin(&trial, space);                       // what is known without a run
//     trial.outcome.metrics[0] = 0.5;
//     msc_goal_judge(goal, space, &trial.outcome);
#ifndef MSC_ENV_API_TRIAL_H
#define MSC_ENV_API_TRIAL_H

#include "base/alloc.h"
#include "base/status.h"
#include "env/api/space.h"

MSC_PUBLIC_BEGIN

// What an agent asks for.
struct msc_proposal {
    uint32_t *choices; // [n_tasks], written by the agent that is asked, else only read
    int64_t parent;    // id of the trial this one changes, or -1
    double bound;      // stop when the loss is sure to exceed it; +inf: never
    // Measure it even when its exact costs break a bound of the search: the agent needs the loss.
    // The core clears it before ask, and sets it for baselines.
    bool probe;
    // In an answer to ask, for people: how the agent came to it, a word such as "probe" that lives as
    // long as the agent; NULL: it does not say. Nothing else depends on it, and no record holds it:
    // replay tells it (mscgym show --phases).
    const char *origin;
};

enum msc_trial_state {
    MSC_TRIAL_COMPLETE,   // evaluated over all samples
    MSC_TRIAL_PRUNED,     // stopped at its bound: the loss is what it had come to by then, or more
    MSC_TRIAL_INFEASIBLE, // breaks a bound of the search; metrics known without a run are there
    MSC_TRIAL_FAILED,     // could not be evaluated; `reason` says why
    MSC_TRIAL_STATE_COUNT
};

// Did it come to a result, within the bounds or not?
static inline bool msc_trial_state_is_result(enum msc_trial_state state) {
    return state == MSC_TRIAL_COMPLETE || state == MSC_TRIAL_INFEASIBLE;
}

enum msc_trial_cause {
    MSC_CAUSE_NONE,
    MSC_CAUSE_TRIAL,       // the trial itself: NaN, a crash of its own
    MSC_CAUSE_ENVIRONMENT, // memory, device, time limit: may succeed another time
};

#define MSC_MAX_METRICS 24
#define MSC_MAX_OBJECTIVES 4
#define MSC_MAX_BOUNDS 8
#define MSC_REASON_BYTES 200

// What came of it.
struct msc_outcome {
    enum msc_trial_state state;
    enum msc_trial_cause cause; // of a failure
    double *metrics;            // [n_metrics], by index in msc_space.metrics; NaN: not measured
    // Smaller is better: maximised ones have their sign turned.
    double objectives[MSC_MAX_OBJECTIVES];
    double violation; // 0: feasible
    char *reason;     // one line of UTF-8 in MSC_REASON_BYTES, empty unless failed or pruned
    // May differ from run to run; an agent is told 0:
    uint64_t time_us;   // evaluation time
    double reuse_ratio; // work answered from earlier trials, 0…1
};

struct msc_trial {
    int64_t id; // counted from 0 over the whole record
    struct msc_proposal proposal;
    struct msc_outcome outcome;
};

struct msc_objective {
    int metric; // index in msc_space.metrics
    bool is_maximised;
};

struct msc_bound {
    int metric;
    double min, max; // -inf, +inf: no limit
};

// What the search is after.
struct msc_goal {
    size_t n_objectives; // at least 1
    struct msc_objective objectives[MSC_MAX_OBJECTIVES];
    size_t n_bounds;
    struct msc_bound bounds[MSC_MAX_BOUNDS];
};

const char *msc_trial_state_name(enum msc_trial_state state); // "complete", "pruned", ...
bool msc_trial_state_parse(enum msc_trial_state *out, const char *name);

// A trial with id and parent -1 and no bound, with room in the arena for choices (all 0), metrics
// and a reason. MSC_E_NOMEM.
enum msc_status msc_trial_init(struct msc_trial *trial, struct msc_arena *arena,
                               const struct msc_space *space);
// The same for an outcome alone: choices are the caller's.
enum msc_status msc_outcome_init(struct msc_outcome *outcome, struct msc_arena *arena,
                                 const struct msc_space *space);
// The outcome before anything was measured: state COMPLETE, the exact costs of its choices, every
// other metric NaN, no reason, everything else zero. The room stays.
void msc_trial_begin(struct msc_trial *trial, const struct msc_space *space);
// State FAILED, or PRUNED, with a reason that is made one line (a line break becomes "\n", a byte that
// is no UTF-8 "\xfc") and cut at a whole character to fit.
void msc_outcome_fail(struct msc_outcome *outcome, enum msc_trial_cause cause, const char *format,
                      ...) MSC_PRINTF(3, 4);
void msc_outcome_prune(struct msc_outcome *outcome, const char *format, ...) MSC_PRINTF(2, 3);

// Violation = sum over bounds of max(0, overshoot) / |limit| (limit 0: overshoot itself), over the
// metrics that are not NaN.
double msc_goal_violation(const struct msc_goal *goal, const double metrics[]);
// The violation of a point by its exact costs alone.
double msc_goal_exact_violation(const struct msc_goal *goal, const struct msc_space *space,
                                const uint32_t choices[]);
void msc_goal_set_objectives(const struct msc_goal *goal, struct msc_outcome *outcome);
// Fills objectives and violation from the metrics. A COMPLETE outcome becomes FAILED when an
// objective or a bounded metric is not finite, else INFEASIBLE when it has a violation.
void msc_goal_judge(const struct msc_goal *goal, const struct msc_space *space,
                    struct msc_outcome *outcome);
// True when a trial's own bound counts: `distill_loss` is the only objective. Elsewhere trials are
// evaluated as if they had none.
bool msc_goal_takes_bound(const struct msc_goal *goal, const struct msc_space *space);
// True of a PRUNED trial that no bound of its own has stopped: it was raced out (docs/agents.md). Its
// metric is what its loss had come to. An agent is told, as its objective, an estimate of the whole.
bool msc_goal_is_estimate(const struct msc_goal *goal, const struct msc_trial *trial);
// What to learn of a trial: its outcome, but of one that was raced out as if the estimate had been
// measured, unless a bound of the search is on what was not.
struct msc_outcome msc_goal_learn(const struct msc_goal *goal, const struct msc_trial *trial);
// MSC_E_INVALID naming the bound, its limit and the reachable value, when no point can meet it.
enum msc_status msc_goal_check(const struct msc_goal *goal, const struct msc_space *space);

// Total order for one objective: < 0 when a is better. Feasible before infeasible; feasible by
// objective 0; infeasible by violation; pruned and failed last; then the lower id.
int msc_trial_compare(const struct msc_trial *a, const struct msc_trial *b);
// True when a is at least as good in all n objectives; and better in one besides.
bool msc_outcome_covers(const struct msc_outcome *a, const struct msc_outcome *b, size_t n);
bool msc_outcome_dominates(const struct msc_outcome *a, const struct msc_outcome *b, size_t n);
// Order for any goal: by feasibility and violation as above, then by Pareto rank (0 = front).
// ranks [n] is filled for feasible complete outcomes, SIZE_MAX elsewhere. MSC_E_NOMEM.
enum msc_status msc_pareto_rank(size_t ranks[], const struct msc_outcome *const outcomes[],
                                size_t n, size_t n_objectives);
// The same in the caller's memory: `scratch` [3 * n].
void msc_pareto_rank_with(size_t ranks[], size_t scratch[],
                          const struct msc_outcome *const outcomes[], size_t n,
                          size_t n_objectives);
// The front alone: indices [at most n] of the feasible complete outcomes that no other one
// dominates, by the first objective, then the others; of equal ones the first. Returns how many.
size_t msc_pareto_front(size_t front[], const struct msc_outcome *const outcomes[], size_t n,
                        size_t n_objectives);

MSC_PUBLIC_END

#endif
