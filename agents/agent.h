// The agent interface. An agent chooses the next trials (ask) and observes their outcomes (tell).
//
// An agent is one file ending in one `const struct msc_agent_def`. The core allocates `state_size`
// zeroed bytes, applies parameter defaults and calls `init`. A plug-in is a shared library that
// exports `msc_agent_plugin`, a pointer to its definition.
//
// An agent is deterministic: parameters, space, goal, seed and the sequence of asks and tells fix
// its proposals. It never sees a budget, a clock or a thread count. Replay and resume rely on this.
// The conformance tests (tests/agents/test_conformance.c) check it for every registered agent.
//
//     struct msc_agent *agent;
//     MSC_TRY(msc_agent_create(&agent, def, config, space, goal, seed));
//     while (!msc_agent_is_done(agent)) {
//         MSC_TRY(msc_agent_ask(agent, proposals, 8, &n));     // n = 0: nothing left to try
//         ... evaluate ...
//         MSC_TRY(msc_agent_tell(agent, &trial));              // each, in id order
//     }
//     msc_agent_destroy(agent);
#ifndef MSC_AGENTS_AGENT_H
#define MSC_AGENTS_AGENT_H

#include "base/log.h"
#include "base/param.h"
#include "base/rng.h"
#include "env/api/trial.h"

#include <math.h>

MSC_PUBLIC_BEGIN

// MSC_ENV_ABI (env/api/env.h) explains when such a number changes. MSC_AGENT_ABI covers the layout
// of msc_agent_def, msc_agent_left, msc_param, msc_rng, and the space, goal, proposals, trials and
// outcomes of env/api/. It also covers the functions that an agent may call: the functions below
// under "For the functions of a definition", those of env/api/, and those of the installed headers
// of base/.
#define MSC_AGENT_ABI 2u

struct cJSON;
struct msc_agent;
struct msc_cancel;
struct msc_str;

// The program's resources for an agent.
struct msc_agent_host {
    // Base of relative paths and working folder of programs; NULL: the current folder. The string
    // is copied.
    const char *folder;
    // Polled while an agent's program computes an answer: a request of level 2 stops the program
    // (MSC_E_CANCELLED). Borrowed until destroy; may be NULL.
    const struct msc_cancel *cancel;
    // What other searches teach about features of choices (agents/feature_lessons.h); NULL:
    // nothing. Borrowed during the call.
    const struct cJSON *lessons;
};

// The number of trials that an agent will still propose if nothing else ends the search.
struct msc_agent_left {
    double n;      // +inf: no limit is known
    bool is_exact; // false: n is an upper limit (+inf: unknown)
    // The number of trials up to and including the next plan that the agent prepares. +inf:
    // unknown; 0: the plan was already proposed, or the agent does not prepare one.
    double n_plan;
};
#define MSC_AGENT_LEFT_UNKNOWN                                                                     \
    { .n = INFINITY, .is_exact = false }

struct msc_agent_def {
    unsigned abi;        // MSC_AGENT_ABI of the header it is built with
    const char *name;    // [a-z0-9_]
    const char *summary; // one line for `mscgym agents`
    unsigned version;    // changes when proposals change; written to the record's header
    size_t state_size;
    const struct msc_param *params; // ends with {0}; offsets are into the state

    // Space and goal are borrowed until finish (msc_agent_space, msc_agent_goal).
    enum msc_status (*init)(struct msc_agent *agent);
    // Fills out[0 … *n) with at most `max` proposals, each with its own choices buffer to write.
    // Fewer are allowed; 0 means that nothing is left to try. `origin` may name how a proposal was
    // made.
    enum msc_status (*ask)(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                           size_t *n);
    // Observes every trial with its outcome, in id order, including baselines (before the first
    // ask) and failed, pruned and repeated trials. The trial and all it points to are borrowed for
    // the call.
    enum msc_status (*tell)(struct msc_agent *agent, const struct msc_trial *trial);
    // Optional: true if the agent has nothing more to propose. Default: the search ends when an ask
    // gives 0 proposals.
    bool (*done)(const struct msc_agent *agent);
    // Optional: the number of proposals still to come. It is called between two asks, perhaps from
    // another thread, and must change nothing. Default: unknown.
    struct msc_agent_left (*left)(const struct msc_agent *agent);
    // Optional, called like `left`: the cost of the next n proposals. The unit is the cost of one
    // trial that is like the last proposals. Before the first ask, it is the cost of a trial that
    // shares no work with others. Default: n.
    double (*effort)(const struct msc_agent *agent, double n);
    // Optional: writes the plan that follows from the outcomes observed so far. It is called
    // between two asks and only if `left` reports a plan to come (n_plan). It must not affect later
    // proposals. Default: there is no such plan.
    void (*assemble)(struct msc_agent *agent, uint32_t choices[]);
    // Optional: appends to `out` what the agent has learnt about the space, for people: one
    // sentence a line, without a full stop, naming tasks and choices as the space does. It is
    // called between two asks and must not affect later proposals. Default: nothing.
    void (*remarks)(struct msc_agent *agent, struct msc_str *out);
    // Optional: frees memory of the state that is not in the arena. Accepts zeroed state.
    void (*finish)(struct msc_agent *agent);
};

// For the functions of a definition: the agent's own state, its space and its goal.
void *msc_agent_state(const struct msc_agent *agent);
const struct msc_space *msc_agent_space(const struct msc_agent *agent);
const struct msc_goal *msc_agent_goal(const struct msc_agent *agent);
struct msc_arena *msc_agent_arena(struct msc_agent *agent); // freed after finish
struct msc_rng *msc_agent_rng(struct msc_agent *agent);     // seeded from the search's seed

// The functions below are for callers of agents. `config` is the agent's JSON object ("type" is
// ignored), borrowed until destroy; may be NULL.
enum msc_status msc_agent_create(struct msc_agent **out, const struct msc_agent_def *def,
                                 const struct cJSON *config, const struct msc_space *space,
                                 const struct msc_goal *goal, uint64_t seed);
// Creates the agent that the config's "type" names: a built-in one, "process" (the program
// "command") or "library" (the shared library "path"). A program ends no later than the thread that
// opened it. `host` may be NULL. MSC_E_INVALID if `config` is NULL or has no "type".
enum msc_status msc_agent_open(struct msc_agent **out, const struct cJSON *config,
                               const struct msc_space *space, const struct msc_goal *goal,
                               uint64_t seed, const struct msc_agent_host *host);
// Fills out[0 … *n). Before the agent writes, parent is set to -1, bound to +inf and probe to
// false. MSC_E_INVALID if the agent gives a choice out of range, a NaN bound or a parent below -1.
enum msc_status msc_agent_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                              size_t *n);
// The agent sees times and reuse as 0, because they may differ from run to run.
enum msc_status msc_agent_tell(struct msc_agent *agent, const struct msc_trial *trial);
bool msc_agent_is_done(const struct msc_agent *agent);
struct msc_agent_left msc_agent_left(const struct msc_agent *agent);
double msc_agent_effort(const struct msc_agent *agent, double n);
// Whether the agent can make its plan from the outcomes so far; msc_agent_assemble then writes it
// as a proposal.
bool msc_agent_can_assemble(const struct msc_agent *agent);
enum msc_status msc_agent_assemble(struct msc_agent *agent, struct msc_proposal *out);
// Adds the agent's remarks to a list, one text for each line; control characters are escaped.
enum msc_status msc_agent_remarks(struct msc_agent *agent, struct cJSON *list);
const struct msc_agent_def *msc_agent_definition(const struct msc_agent *agent);
// Adds the members for the record's header: "type", "version" and the parameters with their values.
enum msc_status msc_agent_describe(const struct msc_agent *agent, struct cJSON *object);
void msc_agent_destroy(struct msc_agent *agent); // accepts NULL

// Loads the shared library at `path` and gives the definition that it exports as
// `msc_agent_plugin`. The caller owns *library (msc_library_close); *def is valid until the library
// is closed. Relative paths start from `folder` (NULL: the current one). MSC_E_NOT_FOUND,
// MSC_E_FORMAT or MSC_E_UNSUPPORTED (another ABI).
enum msc_status msc_agent_library_open(void **library, const struct msc_agent_def **def,
                                       const char *path, const char *folder);

// msc_agent_list returns the built-in agents in the order of `mscgym agents`, NULL-terminated.
// msc_agent_find returns one of them by name, or NULL.
const struct msc_agent_def *const *msc_agent_list(void);
const struct msc_agent_def *msc_agent_find(const char *name);
// Runs a program as an agent, by JSON lines (agent_process.c describes them). It is not in the list
// because it needs a command.
extern const struct msc_agent_def msc_agent_process;

MSC_PUBLIC_END

#endif
