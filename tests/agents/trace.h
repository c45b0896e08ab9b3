// Runs an agent on a toy environment in rounds of W, as the search does, and records the
// proposals and outcomes.
#ifndef MSC_TESTS_AGENTS_TRACE_H
#define MSC_TESTS_AGENTS_TRACE_H

#include "agents/agent.h"
#include "env/env.h"

#define TRACE_TASKS 200

struct trace_entry {
    uint32_t choices[TRACE_TASKS]; // the trial's choices, padded with zeros
    struct msc_trial trial;        // its arrays are owned by the trace
    double exact_violation;
    // Only for the first trial of a call of `ask`: the number of trials that the agent expected to
    // be left before the call.
    bool is_first;
    struct msc_agent_left left;
};

struct trace {
    size_t n; // number of trials after the baselines
    size_t n_baselines;
    struct trace_entry *entries; // the trials, [capacity]
    size_t capacity;
    struct msc_arena arena; // memory of the trials
    bool is_over;           // the agent had nothing more to propose
    struct msc_trial best;  // including baselines; id -1: no complete trial
};

struct trace_run {
    const char *env;   // JSON of the toy's parameters, objectives and bounds
    const char *agent; // JSON of the agent's configuration
    uint64_t seed;
    size_t round;      // W, the number of trials per round
    size_t max_trials; // need not be a multiple of `round`
    bool tell_baselines;
    // Optional: changes an outcome before it is recorded and the agent observes it.
    void (*disturb)(int64_t id, struct msc_outcome *outcome);
    bool tell_twice;
    bool assembles; // the agent assembles its plan and remarks before every call of `ask`
    // Optional: the first n_replayed outcomes come from this trace instead of the environment,
    // and every proposal must equal the recorded one.
    const struct trace *replayed;
    size_t n_replayed;
    void (*look)(struct msc_agent *agent); // optional: inspects the agent after the last trial
};

// Runs an agent as `run` describes and records the trace. Fails the running test on any error.
// Finish the trace with trace_finish.
void trace_make(struct trace *trace, const struct trace_run *run);
void trace_finish(struct trace *trace);
// Fails if the traces differ in a proposal.
void trace_assert_same(const struct trace *a, const struct trace *b);
// Opens only the environment of a run, with its goal. The caller owns the JSON tree.
struct msc_env *trace_open_env(const char *json, struct msc_goal *goal, struct cJSON **config);

// An environment opened by trace_open_env, and an agent's configuration. The test opens the agent
// itself.
struct fixture {
    struct msc_env *env;
    struct msc_goal goal;
    struct cJSON *env_config;
    struct cJSON *config;
    struct msc_agent *agent; // NULL until the test opens it
};
void open_fixture(struct fixture *f, const char *env, const char *agent);
void close_fixture(struct fixture *f);

#endif
