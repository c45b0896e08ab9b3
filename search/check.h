// Does a plug-in keep its contract? What every agent (agents/agent.h) and every environment
// (env/api/env.h) must do, whoever wrote it, as rules that are tried one by one.
//
//     for (const struct msc_check_rule *rule = msc_check_agent_rules; rule->name; rule++) {
//         status = rule->check(&subject);   // MSC_OK: kept
//     }
//
// A rule that is broken is a failure with one line that says what was expected and what was found.
// Nothing here limits the time that a plug-in takes, or catches its crashes: callers that do not
// trust it try each rule in a process of its own.
#ifndef MSC_SEARCH_CHECK_H
#define MSC_SEARCH_CHECK_H

#include "agents/agent.h"
#include "env/env.h"

struct msc_check_rule {
    const char *name; // NULL ends the table
    const char *says; // what must be so, in one line
    enum msc_status (*check)(const void *subject);
};

struct msc_check_agent {
    const struct cJSON *config; // of the agent, with "type" (msc_agent_open)
    const char *folder;         // where its paths start; NULL: the current one
};

struct msc_check_env {
    // Makes the environment anew; several may be there at once. `close` accepts what it made.
    enum msc_status (*open)(void *payload, struct msc_env **out);
    void (*close)(void *payload, struct msc_env *env);
    void *payload;
};

// In both tables the first rule is "init": where it is broken the others cannot be kept.
extern const struct msc_check_rule msc_check_agent_rules[]; // of a struct msc_check_agent
extern const struct msc_check_rule msc_check_env_rules[];   // of a struct msc_check_env

#endif
