// Rules for every agent. They run the agent in the environment `toy`, in rounds as a search does.
#include "base/json.h"
#include "checks/check.h"

#include <math.h>
#include <string.h>

// How to run the agent.
struct check_run {
    const struct msc_check_agent *subject;
    const char *env; // parameters, objectives and bounds of the toy environment
    uint64_t seed;
    size_t round, max_trials;
    bool tell_baselines, tell_twice;
    // Optional: changes an outcome before the agent observes it.
    void (*disturb)(int64_t id, const struct msc_space *space, struct msc_outcome *outcome);
    // Optional: an earlier run. The first n_replayed outcomes are taken from it, and the proposals
    // must equal its proposals.
    const struct check_trace *replayed;
    size_t n_replayed;
};

// The recorded run.
struct check_trace {
    struct msc_arena arena;
    struct check_entry *entries; // [n], trials after the baselines
    size_t n, capacity, n_baselines, n_tasks;
    bool is_over;     // did the agent end, with nothing left to propose?
    bool is_feasible; // was any trial complete?
};

struct check_entry {
    struct msc_trial trial;
    bool is_first; // the first trial of an ask; `left` is the agent's answer before that ask
    struct msc_agent_left left;
};

struct check_runner {
    const struct check_run *run;
    struct check_trace *trace;
    cJSON *config; // parameters of the toy environment
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_agent *agent;
    struct msc_proposal *proposals; // [round]
};

static const char small_toy[] = "{\"tasks\":3,\"choices\":4,\"interaction\":0.5}";
static const char bounded_toy[] = "{\"tasks\":12,\"choices\":4,\"interaction\":0.5,"
                                  "\"bounds\":{\"size_ratio\":{\"max\":0.05}}}";
static const char pareto_toy[] = "{\"tasks\":8,\"choices\":3,"
                                 "\"objectives\":[\"distill_loss\",\"size_bytes\"]}";
static const char single_toy[] = "{\"tasks\":1,\"choices\":1}";

static void trace_finish(struct check_trace *trace) {
    msc_free(trace->entries);
    msc_arena_finish(&trace->arena);
    memset(trace, 0, sizeof *trace);
}

static enum msc_status evaluate(struct check_runner *r, struct msc_trial *trial) {
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    MSC_TRY(msc_env_evaluate(r->env, &r->goal, &e));
    if (r->run->disturb) {
        r->run->disturb(trial->id, msc_env_space(r->env), &trial->outcome);
    }
    return MSC_OK;
}

static enum msc_status tell(struct check_runner *r, const struct msc_trial *trial) {
    r->trace->is_feasible |= trial->outcome.state == MSC_TRIAL_COMPLETE;
    MSC_TRY(msc_agent_tell(r->agent, trial));
    return r->run->tell_twice ? msc_agent_tell(r->agent, trial) : MSC_OK;
}

static enum msc_status run_baselines(struct check_runner *r) {
    const struct msc_space *space = msc_env_space(r->env);
    for (size_t i = 0; i < space->n_baselines; i++) {
        struct msc_trial trial;
        MSC_TRY(msc_trial_init(&trial, &r->trace->arena, space));
        memcpy(trial.proposal.choices, space->baselines[i].choices,
               space->n_tasks * sizeof trial.proposal.choices[0]);
        trial.id = (int64_t)i;
        trial.proposal.probe = true;
        MSC_TRY(evaluate(r, &trial));
        MSC_TRY(tell(r, &trial));
    }
    r->trace->n_baselines = space->n_baselines;
    return MSC_OK;
}

static bool is_same(const struct msc_proposal *a, const struct msc_proposal *b, size_t n_tasks) {
    return memcmp(a->choices, b->choices, n_tasks * sizeof a->choices[0]) == 0 &&
           a->probe == b->probe && a->parent == b->parent && a->bound == b->bound;
}

static enum msc_status add_entry(struct check_runner *r, const struct msc_proposal *proposal) {
    struct check_trace *trace = r->trace;
    MSC_TRY(msc_grow(&trace->entries, &trace->capacity, trace->n + 1, sizeof trace->entries[0]));
    struct check_entry *entry = &trace->entries[trace->n];
    *entry = (struct check_entry){.is_first = false};
    MSC_TRY(msc_trial_init(&entry->trial, &trace->arena, msc_env_space(r->env)));
    uint32_t *choices = entry->trial.proposal.choices;
    memcpy(choices, proposal->choices, trace->n_tasks * sizeof choices[0]);
    entry->trial.proposal = *proposal;
    entry->trial.proposal.choices = choices;
    entry->trial.id = (int64_t)(trace->n_baselines + trace->n++);
    return MSC_OK;
}

static enum msc_status evaluate_entry(struct check_runner *r, size_t index) {
    struct check_entry *entry = &r->trace->entries[index];
    const struct check_trace *replayed = r->run->replayed;
    if (!replayed || index >= r->run->n_replayed) {
        return evaluate(r, &entry->trial);
    }
    const struct check_entry *old = &replayed->entries[index];
    if (index >= replayed->n ||
        !is_same(&entry->trial.proposal, &old->trial.proposal, r->trace->n_tasks)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "seed %llu, rounds of %zu: after the same results, the agent proposes "
                        "another point as trial %lld",
                        (unsigned long long)r->run->seed, r->run->round,
                        (long long)entry->trial.id);
    }
    entry->trial.outcome = old->trial.outcome;
    return MSC_OK;
}

static enum msc_status run_round(struct check_runner *r) {
    struct check_trace *trace = r->trace;
    const struct msc_agent_left left = msc_agent_left(r->agent);
    size_t n = 0;
    size_t first = trace->n;
    MSC_TRY(msc_agent_ask(r->agent, r->proposals, r->run->round, &n));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(add_entry(r, &r->proposals[i]));
        trace->entries[first + i].is_first = i == 0;
        trace->entries[first + i].left = left;
    }
    for (size_t i = first; i < trace->n; i++) {
        MSC_TRY(evaluate_entry(r, i));
    }
    for (size_t i = first; i < trace->n; i++) {
        MSC_TRY(tell(r, &trace->entries[i].trial));
    }
    trace->is_over = n == 0 || msc_agent_is_done(r->agent);
    return MSC_OK;
}

static enum msc_status runner_open(struct check_runner *r) {
    const struct check_run *run = r->run;
    const struct msc_env_host host = {.n_threads = 1};
    MSC_TRY(msc_json_parse(&r->config, run->env, strlen(run->env), "toy"));
    MSC_TRY(msc_env_create(&r->env, msc_env_find("toy"), r->config, &host));
    const struct msc_space *space = msc_env_space(r->env);
    MSC_TRY(msc_env_read_goal(&r->goal, space, r->config));
    r->trace->n_tasks = space->n_tasks;
    r->proposals = msc_arena_array(&r->trace->arena, run->round, sizeof r->proposals[0]);
    for (size_t i = 0; r->proposals && i < run->round; i++) {
        r->proposals[i].choices =
            msc_arena_array(&r->trace->arena, space->n_tasks, sizeof(uint32_t));
        MSC_TRY(MSC_ALLOCATED(r->proposals[i].choices));
    }
    MSC_TRY(MSC_ALLOCATED(r->proposals));
    const struct msc_agent_host agent_host = {.folder = run->subject->folder};
    return msc_agent_open(&r->agent, run->subject->config, space, &r->goal, run->seed, &agent_host);
}

// Runs the agent and records its trials. The caller finishes the trace, also after a failure.
static enum msc_status trace_make(struct check_trace *trace, const struct check_run *run) {
    struct check_runner r = {.run = run, .trace = trace};
    enum msc_status status = MSC_OK;
    memset(trace, 0, sizeof *trace);
    MSC_TRY_OUT(runner_open(&r));
    if (run->tell_baselines) {
        MSC_TRY_OUT(run_baselines(&r));
    }
    while (trace->n < run->max_trials && !trace->is_over) {
        MSC_TRY_OUT(run_round(&r));
    }
out:
    msc_agent_destroy(r.agent);
    msc_env_destroy(r.env);
    cJSON_Delete(r.config);
    return status;
}

// ---- Rules ------------------------------------------------------------------------------------

static enum msc_status check_init(const void *subject) {
    static const char *const envs[] = {small_toy, bounded_toy, pareto_toy, single_toy};
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        struct check_trace trace;
        const struct check_run run = {.subject = subject, .env = envs[i], .round = 1};
        enum msc_status status = trace_make(&trace, &run);
        trace_finish(&trace);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// Runs the agent in several toy environments. msc_agent_ask itself checks that choices are in
// range.
static enum msc_status check_proposals(const void *subject) {
    static const char *const envs[] = {small_toy, bounded_toy, pareto_toy, single_toy};
    for (size_t i = 0; i < 8; i++) {
        struct check_trace trace;
        const struct check_run run = {.subject = subject,
                                      .env = envs[i / 2],
                                      .round = i % 2 ? 1 : 16,
                                      .max_trials = 100,
                                      .tell_baselines = true};
        enum msc_status status = trace_make(&trace, &run);
        size_t n = trace.n;
        trace_finish(&trace);
        MSC_TRY(status);
        if (n == 0 && envs[i / 2] != single_toy) {
            return MSC_FAIL(MSC_E_INVALID, "the first ask proposes nothing");
        }
    }
    return MSC_OK;
}

static enum msc_status compare_traces(const struct check_trace *a, const struct check_trace *b) {
    if (a->n != b->n) {
        return MSC_FAIL(MSC_E_INVALID, "one run has %zu trials, another with the same seed %zu",
                        a->n, b->n);
    }
    for (size_t i = 0; i < a->n; i++) {
        if (!is_same(&a->entries[i].trial.proposal, &b->entries[i].trial.proposal, a->n_tasks)) {
            return MSC_FAIL(MSC_E_INVALID, "two runs of the same seed differ in trial %lld",
                            (long long)a->entries[i].trial.id);
        }
    }
    return MSC_OK;
}

static enum msc_status check_seed(const void *subject) {
    struct check_trace first, second = {.n = 0};
    const struct check_run run = {.subject = subject,
                                  .env = bounded_toy,
                                  .seed = 7,
                                  .round = 8,
                                  .max_trials = 150,
                                  .tell_baselines = true};
    enum msc_status status = trace_make(&first, &run);
    if (status == MSC_OK) {
        status = trace_make(&second, &run);
    }
    if (status == MSC_OK) {
        status = compare_traces(&first, &second);
    }
    trace_finish(&first);
    trace_finish(&second);
    return status;
}

// Does what a resumed search does: asks a new agent for the same proposals, and answers from the
// earlier run up to the middle of a round.
static enum msc_status check_replay(const void *subject) {
    static const size_t rounds[] = {1, 3, 8, 64};
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        struct check_trace whole, resumed = {.n = 0};
        struct check_run run = {.subject = subject,
                                .env = bounded_toy,
                                .seed = 3,
                                .round = rounds[i],
                                .max_trials = 130,
                                .tell_baselines = true};
        enum msc_status status = trace_make(&whole, &run);
        if (status == MSC_OK) {
            run.replayed = &whole;
            run.n_replayed = whole.n * 2 / 5 + 1;
            status = trace_make(&resumed, &run);
        }
        if (status == MSC_OK) {
            status = compare_traces(&whole, &resumed);
        }
        trace_finish(&whole);
        trace_finish(&resumed);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static void fail_all(int64_t id, const struct msc_space *space, struct msc_outcome *outcome) {
    (void)id;
    for (size_t i = 0; i < space->n_metrics; i++) {
        outcome->metrics[i] = NAN;
    }
    outcome->objectives[0] = NAN;
    outcome->violation = 0.0;
    msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "nothing works today");
}

static void mix(int64_t id, const struct msc_space *space, struct msc_outcome *outcome) {
    if (id % 3 == 0) {
        fail_all(id, space, outcome);
    } else if (id % 5 == 0) {
        outcome->state = MSC_TRIAL_PRUNED;
    } else if (id % 7 == 0) {
        outcome->state = MSC_TRIAL_INFEASIBLE;
        outcome->violation = 0.5;
    } else if (id % 11 == 0) {
        outcome->objectives[0] = INFINITY;
        outcome->objectives[1] = -INFINITY;
    }
}

static enum msc_status check_outcomes(const void *subject) {
    static const char *const envs[] = {small_toy, bounded_toy, pareto_toy};
    for (size_t i = 0; i < 6; i++) {
        struct check_trace trace;
        const struct check_run run = {.subject = subject,
                                      .env = envs[i / 2],
                                      .round = 8,
                                      .max_trials = 150,
                                      .tell_baselines = i % 2 == 0,
                                      .disturb = i % 2 ? mix : fail_all,
                                      .tell_twice = true};
        enum msc_status status = trace_make(&trace, &run);
        trace_finish(&trace);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status check_bounds(const void *subject) {
    struct check_trace trace;
    const struct check_run run = {.subject = subject,
                                  .env = bounded_toy,
                                  .round = 8,
                                  .max_trials = 300,
                                  .tell_baselines = true};
    enum msc_status status = trace_make(&trace, &run);
    if (status == MSC_OK && !trace.is_feasible) {
        status = MSC_FAIL(
            MSC_E_INVALID,
            "none of %zu trials meets the bound of the environment, size_ratio <= 0.05", trace.n);
    }
    trace_finish(&trace);
    return status;
}

static enum msc_status check_entries_left(const struct check_trace *trace) {
    for (size_t i = 0; i < trace->n; i++) {
        const struct check_entry *entry = &trace->entries[i];
        double n = (double)(trace->n - i);
        bool is_true =
            entry->left.n >= n && (!trace->is_over || !entry->left.is_exact || entry->left.n == n);
        if (entry->is_first && !is_true) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "before trial %lld, the agent reports %s%g trial%s left, but %g followed",
                (long long)entry->trial.id, entry->left.is_exact ? "" : "at most ", entry->left.n,
                entry->left.n == 1 ? "" : "s", n);
        }
    }
    return MSC_OK;
}

static enum msc_status check_left(const void *subject) {
    static const char *const envs[] = {small_toy, bounded_toy};
    for (size_t i = 0; i < 4; i++) {
        struct check_trace trace;
        const struct check_run run = {.subject = subject,
                                      .env = envs[i / 2],
                                      .round = i % 2 ? 1 : 5,
                                      .max_trials = 150,
                                      .tell_baselines = i % 2 == 0};
        enum msc_status status = trace_make(&trace, &run);
        if (status == MSC_OK) {
            status = check_entries_left(&trace);
        }
        trace_finish(&trace);
        MSC_TRY(status);
    }
    return MSC_OK;
}

const struct msc_check_rule msc_check_agent_rules[] = {
    {"init", "starts with every space and goal", check_init},
    {"proposals", "proposes points of the space, no more than requested", check_proposals},
    {"seed", "the same seed and outcomes give the same proposals", check_seed},
    {"replay", "continues from a record as if it had never stopped", check_replay},
    {"outcomes", "accepts failed, pruned, infeasible and repeated trials", check_outcomes},
    {"bounds", "finds a point within the bounds", check_bounds},
    {"left", "reports the number of trials left correctly", check_left},
    {NULL, NULL, NULL},
};
