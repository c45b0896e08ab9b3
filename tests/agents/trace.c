// Runs agents on toy environments, as declared in trace.h.
#include "tests/agents/trace.h"

#include "base/alloc.h"
#include "base/json.h"
#include "tests/msc_test.h"

#include <math.h>
#include <string.h>

struct msc_env *trace_open_env(const char *json, struct msc_goal *goal, struct cJSON **config) {
    struct msc_env *env = NULL;
    struct msc_env_host host = {0};
    assert_ok(msc_json_parse(config, json, strlen(json), "env"));
    assert_ok(msc_env_create(&env, msc_env_find("toy"), *config, &host));
    assert_ok(msc_env_read_goal(goal, msc_env_space(env), *config));
    assert_true(msc_env_space(env)->n_tasks <= TRACE_TASKS);
    return env;
}

void open_fixture(struct fixture *f, const char *env, const char *agent) {
    memset(f, 0, sizeof *f);
    f->env = trace_open_env(env, &f->goal, &f->env_config);
    assert_ok(msc_json_parse(&f->config, agent, strlen(agent), "agent"));
}

void close_fixture(struct fixture *f) {
    msc_agent_destroy(f->agent);
    msc_env_destroy(f->env);
    cJSON_Delete(f->config);
    cJSON_Delete(f->env_config);
}

struct runner {
    const struct trace_run *run;
    struct trace *trace;
    struct msc_env *env;
    struct msc_goal goal;
    struct msc_agent *agent;
    size_t n_tasks;
};

static void note_best(struct trace *trace, const struct msc_trial *trial) {
    bool is_first = trace->best.id < 0 && trial->outcome.state == MSC_TRIAL_COMPLETE;
    if (is_first || (trace->best.id >= 0 && msc_trial_compare(trial, &trace->best) < 0)) {
        trace->best = *trial;
    }
}

static void evaluate(struct runner *r, struct msc_trial *trial) {
    const struct msc_evaluation evaluation = {.trials = &trial, .n = 1};
    assert_ok(msc_env_evaluate(r->env, &r->goal, &evaluation));
    if (r->run->disturb) {
        r->run->disturb(trial->id, &trial->outcome);
    }
}

static void tell(struct runner *r, const struct msc_trial *trial) {
    assert_ok(msc_agent_tell(r->agent, trial));
    if (r->run->tell_twice) {
        assert_ok(msc_agent_tell(r->agent, trial));
    }
}

static void run_baselines(struct runner *r) {
    const struct msc_space *space = msc_env_space(r->env);
    for (size_t i = 0; i < space->n_baselines; i++) {
        struct msc_trial trial;
        assert_ok(msc_trial_init(&trial, &r->trace->arena, space));
        memcpy(trial.proposal.choices, space->baselines[i].choices,
               r->n_tasks * sizeof *trial.proposal.choices);
        trial.id = (int64_t)i;
        trial.proposal.probe = true;
        evaluate(r, &trial);
        note_best(r->trace, &trial);
        tell(r, &trial);
    }
    r->trace->n_baselines = space->n_baselines;
}

static struct trace_entry *add_entry(struct runner *r, const struct msc_proposal *proposal) {
    struct trace *trace = r->trace;
    assert_ok(msc_grow(&trace->entries, &trace->capacity, trace->n + 1, sizeof *trace->entries));
    struct trace_entry *entry = &trace->entries[trace->n];
    memset(entry, 0, sizeof *entry);
    assert_ok(msc_trial_init(&entry->trial, &trace->arena, msc_env_space(r->env)));
    uint32_t *choices = entry->trial.proposal.choices;
    memcpy(choices, proposal->choices, r->n_tasks * sizeof *choices);
    memcpy(entry->choices, choices, r->n_tasks * sizeof *choices);
    entry->trial.id = (int64_t)(trace->n_baselines + trace->n++);
    entry->trial.proposal = *proposal;
    entry->trial.proposal.choices = choices;
    entry->exact_violation = msc_goal_exact_violation(&r->goal, msc_env_space(r->env), choices);
    return entry;
}

static void assert_same_proposal(const struct trace_entry *a, const struct trace_entry *b) {
    assert_memory_equal(a->choices, b->choices, sizeof a->choices);
    assert_int_equal(a->trial.proposal.probe, b->trial.proposal.probe);
    assert_int_equal(a->trial.proposal.parent, b->trial.proposal.parent);
    assert_true(a->trial.proposal.bound == b->trial.proposal.bound);
}

static void evaluate_entry(struct runner *r, struct trace_entry *entry, size_t index) {
    const struct trace_run *run = r->run;
    if (run->replayed && index < run->n_replayed) {
        const struct trace_entry *old = &run->replayed->entries[index];
        assert_same_proposal(entry, old);
        entry->trial.outcome = old->trial.outcome;
    } else {
        evaluate(r, &entry->trial);
    }
    note_best(r->trace, &entry->trial);
}

static bool run_round(struct runner *r) {
    static uint32_t choices[256][TRACE_TASKS];
    struct msc_proposal proposals[256];
    struct trace *trace = r->trace;
    size_t n;
    assert_true(r->run->round <= 256);
    for (size_t i = 0; i < r->run->round; i++) {
        proposals[i].choices = choices[i];
    }
    if (r->run->assembles && msc_agent_can_assemble(r->agent)) {
        assert_ok(msc_agent_assemble(r->agent, &proposals[0]));
    }
    if (r->run->assembles) {
        cJSON *remarks = cJSON_CreateArray();
        assert_ok(msc_agent_remarks(r->agent, remarks));
        cJSON_Delete(remarks);
    }
    const struct msc_agent_left left = msc_agent_left(r->agent);
    assert_ok(msc_agent_ask(r->agent, proposals, r->run->round, &n));
    assert_true(n <= r->run->round);
    size_t first = trace->n;
    for (size_t i = 0; i < n; i++) {
        struct trace_entry *entry = add_entry(r, &proposals[i]);
        entry->is_first = i == 0;
        entry->left = left;
    }
    for (size_t i = first; i < trace->n; i++) {
        evaluate_entry(r, &trace->entries[i], i);
    }
    for (size_t i = first; i < trace->n; i++) {
        tell(r, &trace->entries[i].trial);
    }
    return n > 0 && !msc_agent_is_done(r->agent);
}

void trace_make(struct trace *trace, const struct trace_run *run) {
    struct runner r = {.run = run, .trace = trace};
    struct cJSON *env_config = NULL;
    struct cJSON *agent_config = NULL;
    memset(trace, 0, sizeof *trace);
    trace->best.id = -1;
    r.env = trace_open_env(run->env, &r.goal, &env_config);
    r.n_tasks = msc_env_space(r.env)->n_tasks;
    assert_ok(msc_json_parse(&agent_config, run->agent, strlen(run->agent), "agent"));
    const struct msc_agent_host host = {.folder = MSC_TESTS_FOLDER};
    assert_ok(
        msc_agent_open(&r.agent, agent_config, msc_env_space(r.env), &r.goal, run->seed, &host));
    if (run->tell_baselines) {
        run_baselines(&r);
    }
    while (trace->n < run->max_trials && !trace->is_over) {
        trace->is_over = !run_round(&r);
    }
    if (run->look) {
        run->look(r.agent);
    }
    msc_agent_destroy(r.agent);
    msc_env_destroy(r.env);
    cJSON_Delete(agent_config);
    cJSON_Delete(env_config);
}

void trace_finish(struct trace *trace) {
    msc_free(trace->entries);
    msc_arena_finish(&trace->arena);
}

void trace_assert_same(const struct trace *a, const struct trace *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_same_proposal(&a->entries[i], &b->entries[i]);
    }
}
