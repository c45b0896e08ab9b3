// Runs an agent on a toy environment as the search does, in rounds of W, and keeps what happened.
#ifndef MSC_TESTS_AGENTS_TRACE_H
#define MSC_TESTS_AGENTS_TRACE_H

#include "agents/agent.h"
#include "env/env.h"

#define TRACE_TASKS 200

struct trace_entry {
    uint32_t choices[TRACE_TASKS]; // of the trial, and zeros
    struct msc_trial trial;        // its room is the trace's
    double exact_violation;
    // Of the first of an ask: what the agent said was left before it.
    bool is_first;
    struct msc_agent_left left;
};

struct trace {
    size_t n; // trials after the baselines
    size_t n_baselines;
    struct trace_entry *entries; // [capacity]
    size_t capacity;
    struct msc_arena arena; // of trials
    bool is_over;           // the agent had nothing left to ask
    struct msc_trial best;  // baselines included; id -1: none complete
};

struct trace_run {
    const char *env;   // JSON of the toy's parameters, objectives and bounds
    const char *agent; // JSON of the agent
    uint64_t seed;
    size_t round;      // W
    size_t max_trials; // a multiple of no number in particular
    bool tell_baselines;
    // Optional: changes an outcome before it is kept and told.
    void (*disturb)(int64_t id, struct msc_outcome *outcome);
    bool tell_twice;
    bool assembles; // has the agent make its plan early, before every ask
    // Optional: the first n_replayed outcomes come from here instead of the environment, and every
    // proposal must equal the one recorded.
    const struct trace *replayed;
    size_t n_replayed;
    void (*look)(struct msc_agent *agent); // optional: at the agent, once all is told
};

// Fails the running test when anything goes wrong. Finish with trace_finish.
void trace_make(struct trace *trace, const struct trace_run *run);
void trace_finish(struct trace *trace);
// Fails when the two differ in a proposal.
void trace_assert_same(const struct trace *a, const struct trace *b);
// The environment of a run alone, with its goal; the JSON tree is owned by the caller.
struct msc_env *trace_open_env(const char *json, struct msc_goal *goal, struct cJSON **config);

// The same with the configuration of an agent, which the test opens itself.
struct fixture {
    struct msc_env *env;
    struct msc_goal goal;
    struct cJSON *env_config;
    struct cJSON *config;
    struct msc_agent *agent; // NULL until then
};
void open_fixture(struct fixture *f, const char *env, const char *agent);
void close_fixture(struct fixture *f);

#endif
