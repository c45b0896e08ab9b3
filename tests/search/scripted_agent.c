// Agent that proposes the trials of a script and logs what it observes: a plug-in library for the
// tests of the search. The script has one list per round:
//
//     {"type": "library", "path": "scripted_agent.so", "log": "told.txt",
//      "script": [[{"choices": [0, 1], "bound": 0.5, "probe": true}], …]}
//
// If MSC_SCRIPTED_SKIP is set, the agent skips the first round, like an agent that is not
// deterministic. The log has a line "ask" for each request and "tell <id> <state> <first metric>"
// for each outcome. If the outcome is an estimate, " for <estimated objective>" follows.
#include <mscgym/agents/agent.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

struct scripted {
    const cJSON *script;
    const char *log;

    const cJSON *round;
};

static const struct msc_param scripted_params[] = {
    {.name = "script",
     .help = "proposals, round by round",
     .type = MSC_PARAM_JSON,
     .offset = offsetof(struct scripted, script)},
    {.name = "log",
     .help = "file to write to",
     .type = MSC_PARAM_TEXT,
     .offset = offsetof(struct scripted, log)},
    {0},
};

static enum msc_status scripted_init(struct msc_agent *agent) {
    struct scripted *s = msc_agent_state(agent);
    s->round = s->script ? s->script->child : NULL;
    if (s->round && getenv("MSC_SCRIPTED_SKIP")) {
        s->round = s->round->next;
    }
    return MSC_OK;
}

static void note(const struct scripted *s, const char *line) {
    FILE *file = s->log ? fopen(s->log, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", line);
        fclose(file);
    }
}

static enum msc_status scripted_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                    size_t *n) {
    struct scripted *s = msc_agent_state(agent);
    const cJSON *item = NULL;
    *n = 0;
    note(s, "ask");
    cJSON_ArrayForEach(item, s->round) {
        const cJSON *choices = cJSON_GetObjectItemCaseSensitive(item, "choices");
        const cJSON *bound = cJSON_GetObjectItemCaseSensitive(item, "bound");
        const cJSON *parent = cJSON_GetObjectItemCaseSensitive(item, "parent");
        if (*n == max) {
            return MSC_FAIL(MSC_E_INVALID, "a round of the script has more than %zu", max);
        }
        struct msc_proposal *proposal = &out[(*n)++];
        for (int t = 0; t < cJSON_GetArraySize(choices); t++) {
            proposal->choices[t] = (uint32_t)cJSON_GetArrayItem(choices, t)->valueint;
        }
        if (bound) {
            proposal->bound = bound->valuedouble;
        }
        if (parent) {
            proposal->parent = parent->valueint;
        }
        proposal->probe = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "probe"));
    }
    s->round = s->round ? s->round->next : NULL;
    return MSC_OK;
}

static enum msc_status scripted_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct scripted *s = msc_agent_state(agent);
    const struct msc_outcome *outcome = &trial->outcome;
    char line[128], estimate[32] = "";
    if (outcome->objectives[0] > outcome->metrics[0]) {
        snprintf(estimate, sizeof estimate, " for %.3g", outcome->objectives[0]);
    }
    snprintf(line, sizeof line, "tell %lld %s %.3g%s", (long long)trial->id,
             msc_trial_state_name(outcome->state), outcome->metrics[0], estimate);
    note(s, line);
    return MSC_OK;
}

static const struct msc_agent_def scripted_def = {
    .abi = MSC_AGENT_ABI,
    .name = "scripted",
    .summary = "proposes what a script says",
    .version = 1,
    .state_size = sizeof(struct scripted),
    .params = scripted_params,
    .init = scripted_init,
    .ask = scripted_ask,
    .tell = scripted_tell,
};

extern const struct msc_agent_def *const msc_agent_plugin;
const struct msc_agent_def *const msc_agent_plugin = &scripted_def;
