// A search agent as a shared library: it changes one random task of the best point so far.
//
//     cc -shared -fPIC $(pkg-config --cflags mscgym) -o hill_climb_agent.so hill_climb_agent.c
//     mscgym agents ./hill_climb_agent.so
//
// In the configuration of a search:
//
//     "agent": {"type": "library", "path": "hill_climb_agent.so", "restart": 200}
//
// The functions that it calls are in the program that loads it, so nothing is linked.
#include <mscgym/agents/agent.h>
#include <mscgym/base/alloc.h>
#include <mscgym/base/str.h>

#include <string.h>

struct hill_climb {
    int64_t restart; // the parameter

    struct msc_trial best; // id -1: none yet
    int64_t n_in_vain;
};

static const struct msc_param hill_climb_params[] = {
    {.name = "restart",
     .help = "trials without improvement before it restarts at a random point; more search longer "
             "around a point",
     .offset = offsetof(struct hill_climb, restart),
     .type = MSC_PARAM_I64,
     .number = 100,
     .min = 1,
     .max = 1e9},
    {0},
};

static enum msc_status hill_climb_init(struct msc_agent *agent) {
    struct hill_climb *h = msc_agent_state(agent);
    return msc_trial_init(&h->best, msc_agent_arena(agent), msc_agent_space(agent));
}

static void propose(struct msc_agent *agent, struct msc_proposal *out) {
    struct hill_climb *h = msc_agent_state(agent);
    const struct msc_space *space = msc_agent_space(agent);
    struct msc_rng *rng = msc_agent_rng(agent);
    if (h->best.id < 0) {
        for (size_t t = 0; t < space->n_tasks; t++) {
            out->choices[t] = (uint32_t)msc_rng_below(rng, space->tasks[t].n_choices);
        }
        return;
    }
    size_t changed = (size_t)msc_rng_below(rng, space->n_tasks);
    memcpy(out->choices, h->best.proposal.choices, space->n_tasks * sizeof *out->choices);
    out->choices[changed] = (uint32_t)msc_rng_below(rng, space->tasks[changed].n_choices);
    out->parent = h->best.id;
}

static enum msc_status hill_climb_ask(struct msc_agent *agent, struct msc_proposal out[],
                                      size_t max, size_t *n) {
    for (; *n < max; (*n)++) {
        propose(agent, &out[*n]);
    }
    return MSC_OK;
}

// Choices, metrics and reason of the trial are borrowed for the call, so choices are copied.
static void keep_best(struct msc_agent *agent, const struct msc_trial *trial) {
    struct hill_climb *h = msc_agent_state(agent);
    size_t n_tasks = msc_agent_space(agent)->n_tasks;
    h->best.id = trial->id;
    h->best.outcome.state = trial->outcome.state;
    h->best.outcome.objectives[0] = trial->outcome.objectives[0];
    h->best.outcome.violation = trial->outcome.violation;
    memcpy(h->best.proposal.choices, trial->proposal.choices,
           n_tasks * sizeof *trial->proposal.choices);
}

static enum msc_status hill_climb_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct hill_climb *h = msc_agent_state(agent);
    enum msc_trial_state state = trial->outcome.state;
    bool is_usable = msc_trial_state_is_result(state);
    if (is_usable && (h->best.id < 0 || msc_trial_compare(trial, &h->best) < 0)) {
        keep_best(agent, trial);
        h->n_in_vain = 0;
    } else if (++h->n_in_vain >= h->restart) {
        h->best.id = -1;
        h->n_in_vain = 0;
    }
    return MSC_OK;
}

// What `mscgym show --phases`, `search --dry-run` and the report's page say that it has learnt.
static void hill_climb_remarks(struct msc_agent *agent, struct msc_str *out) {
    const struct hill_climb *h = msc_agent_state(agent);
    if (h->best.id >= 0 && h->n_in_vain > 0) {
        msc_str_printf(out, "%lld changes of single tasks did not improve trial %lld\n",
                       (long long)h->n_in_vain, (long long)h->best.id);
    }
}

static const struct msc_agent_def hill_climb = {
    .abi = MSC_AGENT_ABI,
    .name = "hill_climb",
    .summary = "changes one random task of the best point at a time",
    .version = 1,
    .state_size = sizeof(struct hill_climb),
    .params = hill_climb_params,
    .init = hill_climb_init,
    .ask = hill_climb_ask,
    .tell = hill_climb_tell,
    .remarks = hill_climb_remarks,
};

// The symbol that mscgym looks for.
extern const struct msc_agent_def *const msc_agent_plugin;
const struct msc_agent_def *const msc_agent_plugin = &hill_climb;
