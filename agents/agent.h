// The agent interface: who chooses the next trial, by ask and tell.
//
// An agent is one file ending in one `const struct msc_agent_def`. The core allocates `state_size`
// zeroed bytes, applies parameter defaults and calls `init`. A plug-in is a shared library that
// exports `msc_agent_plugin`, a pointer to its definition.
//
// An agent is a deterministic function of its parameters, space, goal, seed and what it was told:
// asked the same way and told the same outcomes it proposes the same points. It never sees a
// budget, a clock or a thread count. Replay and resume rest on this, and the conformance tests
// (tests/agents/test_conformance.c) check it for every registered agent.
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

// MSC_ENV_ABI (env/api/env.h) says what this number covers. Layout: msc_agent_def,
// msc_agent_left, the space, the goal, proposals, trials and outcomes of env/api/, msc_param and
// msc_rng. Functions: those below that are for the definition's, and those of env/api/ and of the
// installed headers of base/. Agents need no others.
#define MSC_AGENT_ABI 1u

struct cJSON;
struct msc_agent;
struct msc_cancel;

// Whose agent it is; borrowed until destroy, but for the folder, which is copied.
struct msc_agent_host {
    // Where relative paths start, and where a program runs; NULL: the current one.
    const char *folder;
    // Polled while an agent that is a program thinks: level 2 ends that (MSC_E_CANCELLED). May be NULL.
    const struct msc_cancel *cancel;
};

// How many trials an agent will still ask for, were nothing else to end the search.
struct msc_agent_left {
    double n;      // +inf: no end is in sight
    bool is_exact; // false: at most so many; with +inf: nothing is known
    // Of them up to the plan that all others before it are asked for to make, that one counted; +inf:
    // nobody knows how many; 0: it was asked for, or there is none.
    double n_plan;
};
#define MSC_AGENT_LEFT_UNKNOWN                                                                     \
    { .n = INFINITY, .is_exact = false }

struct msc_agent_def {
    unsigned abi;        // MSC_AGENT_ABI of the header it is built with
    const char *name;    // [a-z0-9_]
    const char *summary; // one line for `mscgym agents`
    unsigned version;    // changes when proposals change; part of the record's identity
    size_t state_size;
    const struct msc_param *params; // ends with {0}; offsets are into the state

    // Space and goal are borrowed until finish (msc_agent_space, msc_agent_goal).
    enum msc_status (*init)(struct msc_agent *agent);
    // Fills out[0 … *n) with at most `max` proposals, each with its own choices buffer to write.
    // Fewer is fine; 0 means that nothing is left to try. `origin` of a proposal may say how it was made.
    enum msc_status (*ask)(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                           size_t *n);
    // Every trial with its outcome, also baselines (before the first ask), failed, pruned and
    // repeated ones, in id order. Borrowed for the call, with its choices, metrics and reason.
    enum msc_status (*tell)(struct msc_agent *agent, const struct msc_trial *trial);
    // Optional: true when the agent has nothing more to ask. Default: only an ask of 0 ends it.
    bool (*done)(const struct msc_agent *agent);
    // Optional: what is left after those that it was asked for. Called between an ask and the next,
    // perhaps from another thread: look only. Default: nothing is known.
    struct msc_agent_left (*left)(const struct msc_agent *agent);
    // Optional, as `left`: what the next n of them cost, in trials as expensive as those that it
    // asked for last; before the first ask, as one that shares nothing with others. Default: n.
    double (*effort)(const struct msc_agent *agent, double n);
    // Optional: writes the plan that it would make if it were told nothing more, while `left` says that
    // there is one to come (n_plan). Between an ask and the next; what it proposes later is the same
    // with and without. Default: there is no such plan.
    void (*assemble)(struct msc_agent *agent, uint32_t choices[]);
    // Optional: frees what the state holds beyond the arena. Accepts zeroed state.
    void (*finish)(struct msc_agent *agent);
};

// For the definition's functions.
void *msc_agent_state(const struct msc_agent *agent);
const struct msc_space *msc_agent_space(const struct msc_agent *agent);
const struct msc_goal *msc_agent_goal(const struct msc_agent *agent);
struct msc_arena *msc_agent_arena(struct msc_agent *agent); // freed after finish
struct msc_rng *msc_agent_rng(struct msc_agent *agent);     // seeded from the search's seed

// For callers. `config` is the agent's JSON object ("type" is passed over), borrowed until destroy;
// may be NULL.
enum msc_status msc_agent_create(struct msc_agent **out, const struct msc_agent_def *def,
                                 const struct cJSON *config, const struct msc_space *space,
                                 const struct msc_goal *goal, uint64_t seed);
// The agent that a config means by "type": a built-in name, "process" (a program, "command") or
// "library" (a shared library, "path"). A program ends at the latest with the thread that opened it.
// `host` may be NULL. `config` NULL or without "type": MSC_E_INVALID.
enum msc_status msc_agent_open(struct msc_agent **out, const struct cJSON *config,
                               const struct msc_space *space, const struct msc_goal *goal,
                               uint64_t seed, const struct msc_agent_host *host);
// Fills out[0 … *n); parent -1, bound +inf and probe false are set before the agent writes. A
// choice out of range, a bound that is not a number or a parent below -1 is MSC_E_INVALID.
enum msc_status msc_agent_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                              size_t *n);
// The agent hears nothing that may differ from run to run: times and reuse are 0 to it.
enum msc_status msc_agent_tell(struct msc_agent *agent, const struct msc_trial *trial);
bool msc_agent_is_done(const struct msc_agent *agent);
struct msc_agent_left msc_agent_left(const struct msc_agent *agent);
double msc_agent_effort(const struct msc_agent *agent, double n);
// Is there a plan to come that could be made of what the agent was told? Then it can be written to `out`,
// as of the agent's asking.
bool msc_agent_can_assemble(const struct msc_agent *agent);
enum msc_status msc_agent_assemble(struct msc_agent *agent, struct msc_proposal *out);
const struct msc_agent_def *msc_agent_definition(const struct msc_agent *agent);
// Adds the members that the record's header carries: "type", "version" and the resolved parameters.
enum msc_status msc_agent_describe(const struct msc_agent *agent, struct cJSON *object);
void msc_agent_destroy(struct msc_agent *agent); // accepts NULL

// The definition that the shared library at `path` exports as `msc_agent_plugin`, valid until
// *library, owned by the caller, is closed (msc_library_close). Relative paths start from `folder`
// (NULL: the current one). MSC_E_NOT_FOUND, MSC_E_FORMAT or MSC_E_UNSUPPORTED (another ABI).
enum msc_status msc_agent_library_open(void **library, const struct msc_agent_def **def,
                                       const char *path, const char *folder);

// The built-in agents, NULL-terminated, in the order users see; and one by name, or NULL.
const struct msc_agent_def *const *msc_agent_list(void);
const struct msc_agent_def *msc_agent_find(const char *name);
// The agent that runs a program and speaks JSON lines with it (agent_process.c says which). Not in
// the list: it cannot start without a command.
extern const struct msc_agent_def msc_agent_process;

MSC_PUBLIC_END

#endif
