// Tests whether a plug-in keeps its contract. There are rules for every agent (agents/agent.h) and
// for every environment (env/api/env.h), each checked by itself.
//
//     for (const struct msc_check_rule *rule = msc_check_agent_rules; rule->name; rule++) {
//         status = rule->check(&subject);   // MSC_OK: kept
//     }
//
// A broken rule is a failure whose one-line message says what was expected and what was found.
// Rules have no time limit and do not catch crashes: run each in its own process if the plug-in is
// not trusted.
#ifndef MSC_CHECKS_CHECK_H
#define MSC_CHECKS_CHECK_H

#include "agents/agent.h"
#include "env/env.h"

struct msc_check_rule {
    const char *name; // NULL ends the table
    const char *says; // the requirement, in one line
    enum msc_status (*check)(const void *subject);
};

struct msc_check_agent {
    const struct cJSON *config; // the agent's object with "type" (msc_agent_open)
    const char *folder;         // base of the agent's relative paths; NULL: the current folder
};

struct msc_check_env {
    // Makes a new environment; several may exist at once. `close` releases it.
    enum msc_status (*open)(void *payload, struct msc_env **out);
    void (*close)(void *payload, struct msc_env *env);
    void *payload;
};

// The first rule of each table is "init". If it is broken, the others cannot be checked.
extern const struct msc_check_rule msc_check_agent_rules[]; // subject: struct msc_check_agent
extern const struct msc_check_rule msc_check_env_rules[];   // subject: struct msc_check_env

#endif
