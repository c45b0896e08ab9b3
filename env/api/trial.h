// Proposals, outcomes and trials, and the order of trials. Plain data.
//
// One struct passes through all stages: an agent writes the proposal, the search assigns an id, an
// environment fills the outcome, the agent observes it, and the record stores it
// (records/record.h). Choices, metrics and reason are stored by the trial's owner; a copy of the
// struct shares them.
//
//     struct msc_trial trial;
//     MSC_TRY(msc_trial_init(&trial, &arena, space));       // allocates its arrays
//     msc_trial_begin(&trial, space);                       // fills in exact costs
//     trial.outcome.metrics[0] = 0.5;
//     msc_goal_judge(goal, space, &trial.outcome);
#ifndef MSC_ENV_API_TRIAL_H
#define MSC_ENV_API_TRIAL_H

#include "base/alloc.h"
#include "base/status.h"
#include "env/api/space.h"

MSC_PUBLIC_BEGIN

// A point that an agent asks to evaluate.
struct msc_proposal {
    uint32_t *choices; // [n_tasks], written by the agent in ask; read-only elsewhere
    int64_t parent;    // id of the trial that this one changes, or -1
    // the trial may be stopped if its loss is certain to exceed `bound`; +inf: never
    double bound;
    // Measure the point even if its exact costs break a bound of the search, because the agent
    // needs the loss. The core clears `probe` before ask and sets it for baselines.
    bool probe;
    // For people: how the agent made the proposal, a word such as "probe", valid until the agent is
    // destroyed; NULL: unknown. Nothing depends on it and records do not contain it; `mscgym show
    // --phases` restores it by replay.
    const char *origin;
};

enum msc_trial_state {
    MSC_TRIAL_COMPLETE, // evaluated over all samples
    MSC_TRIAL_PRUNED,   // stopped early: its loss is a lower bound or an estimate of the full loss
    MSC_TRIAL_INFEASIBLE, // breaks a bound of the search; metrics known without a run are filled
    MSC_TRIAL_FAILED,     // could not be evaluated; `reason` says why
    MSC_TRIAL_STATE_COUNT
};

// Whether a trial with this state has a result, within the bounds or not.
static inline bool msc_trial_state_is_result(enum msc_trial_state state) {
    return state == MSC_TRIAL_COMPLETE || state == MSC_TRIAL_INFEASIBLE;
}

enum msc_trial_cause {
    MSC_CAUSE_NONE,
    MSC_CAUSE_TRIAL,       // the trial itself, for example NaN or a crash
    MSC_CAUSE_ENVIRONMENT, // memory, device, time limit: may succeed if repeated
};

#define MSC_MAX_METRICS 24
#define MSC_MAX_OBJECTIVES 4
#define MSC_MAX_BOUNDS 8
#define MSC_REASON_BYTES 200

// The result of a trial.
struct msc_outcome {
    enum msc_trial_state state;
    enum msc_trial_cause cause; // why a FAILED trial failed
    double *metrics;            // [n_metrics], by index in msc_space.metrics; NaN: not measured
    // Smaller is better: maximised objectives are negated.
    double objectives[MSC_MAX_OBJECTIVES];
    double violation; // 0: feasible
    char *reason;     // one line of UTF-8 in MSC_REASON_BYTES, empty unless failed or pruned
    // May differ from run to run; agents always see 0:
    uint64_t time_us;   // evaluation time
    double reuse_ratio; // fraction of the work reused from earlier trials, 0…1
};

struct msc_trial {
    int64_t id; // counted from 0 within the record
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

// The goal of a search.
struct msc_goal {
    size_t n_objectives; // at least 1
    struct msc_objective objectives[MSC_MAX_OBJECTIVES];
    size_t n_bounds;
    struct msc_bound bounds[MSC_MAX_BOUNDS];
};

const char *msc_trial_state_name(enum msc_trial_state state); // "complete", "pruned", ...
bool msc_trial_state_parse(enum msc_trial_state *out, const char *name);

// Initialises a trial with id -1, parent -1 and no bound; allocates choices (all 0), metrics and
// reason in the arena. MSC_E_NOMEM.
enum msc_status msc_trial_init(struct msc_trial *trial, struct msc_arena *arena,
                               const struct msc_space *space);
// Like msc_trial_init, but for an outcome only.
enum msc_status msc_outcome_init(struct msc_outcome *outcome, struct msc_arena *arena,
                                 const struct msc_space *space);
// Resets the outcome before it is measured: state COMPLETE, the exact costs of its choices, NaN for
// all other metrics, no reason, everything else 0. Its memory is kept.
void msc_trial_begin(struct msc_trial *trial, const struct msc_space *space);
// Sets state FAILED or PRUNED and a reason. The reason is made one line (a line break becomes "\n",
// a byte that is not UTF-8 "\xfc") and truncated between characters to fit.
void msc_outcome_fail(struct msc_outcome *outcome, enum msc_trial_cause cause, const char *format,
                      ...) MSC_PRINTF(3, 4);
void msc_outcome_prune(struct msc_outcome *outcome, const char *format, ...) MSC_PRINTF(2, 3);

// Violation: the sum over bounds of max(0, overshoot) / |limit|. A bound whose limit is 0 adds
// max(0, overshoot). Metrics that are NaN are skipped.
double msc_goal_violation(const struct msc_goal *goal, const double metrics[]);
// The violation of a point, computed from its exact costs only.
double msc_goal_exact_violation(const struct msc_goal *goal, const struct msc_space *space,
                                const uint32_t choices[]);
void msc_goal_set_objectives(const struct msc_goal *goal, struct msc_outcome *outcome);
// Fills objectives and violation from the metrics. A COMPLETE outcome becomes FAILED if an
// objective or a bounded metric is not finite, else INFEASIBLE if it has a violation.
void msc_goal_judge(const struct msc_goal *goal, const struct msc_space *space,
                    struct msc_outcome *outcome);
// Whether bounds of trials apply: `distill_loss` must be the only objective. Otherwise trials are
// evaluated as if they had no bound.
bool msc_goal_takes_bound(const struct msc_goal *goal, const struct msc_space *space);
// True for a PRUNED trial that was eliminated early by a race (docs/agents.md), not stopped at its
// own bound. The metric of its objective is the loss so far; the objective itself is an estimate of
// the full loss.
bool msc_goal_is_estimate(const struct msc_goal *goal, const struct msc_trial *trial);
// The outcome that an agent should learn from. If a race eliminated the trial early and all bounded
// metrics were measured, the outcome counts as measured in full, with the estimate as its
// objective. In all other cases it is the trial's own outcome.
struct msc_outcome msc_goal_learn(const struct msc_goal *goal, const struct msc_trial *trial);
// MSC_E_INVALID if no point can meet a bound; the message names the bound, its limit and the
// reachable value.
enum msc_status msc_goal_check(const struct msc_goal *goal, const struct msc_space *space);

// Total order for one objective: < 0 if a is better. Feasible trials are first, by objective 0;
// then infeasible ones, by violation; then pruned and failed ones. Ties are broken by the lower id.
int msc_trial_compare(const struct msc_trial *a, const struct msc_trial *b);
// `covers`: a is at least as good as b in all n objectives. `dominates`: a is also better in at
// least one of them.
bool msc_outcome_covers(const struct msc_outcome *a, const struct msc_outcome *b, size_t n);
bool msc_outcome_dominates(const struct msc_outcome *a, const struct msc_outcome *b, size_t n);
// Fills ranks [n] with the Pareto rank (0 = front) of feasible complete outcomes, and SIZE_MAX for
// all others. MSC_E_NOMEM.
enum msc_status msc_pareto_rank(size_t ranks[], const struct msc_outcome *const outcomes[],
                                size_t n, size_t n_objectives);
// Like msc_pareto_rank, but without allocation: the caller provides `scratch` [3 * n].
void msc_pareto_rank_with(size_t ranks[], size_t scratch[],
                          const struct msc_outcome *const outcomes[], size_t n,
                          size_t n_objectives);
// Fills `front` [n] with the indices of the Pareto front: the feasible complete outcomes that are
// not dominated, in lexicographic order of objectives. Equal outcomes are listed once, by the first
// of them. Returns the number of indices.
size_t msc_pareto_front(size_t front[], const struct msc_outcome *const outcomes[], size_t n,
                        size_t n_objectives);

MSC_PUBLIC_END

#endif
