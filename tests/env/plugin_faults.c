// A plug-in library with one fault, which the environment variable MSC_FAULT selects when the
// library is loaded. The faults are mistakes of a plug-in's author or damage to the file.
#include <mscgym/agents/agent.h>
#include <mscgym/env/api/env.h>

#include <stdlib.h>
#include <string.h>

// An unreadable address, as in a damaged pointer. It is volatile to keep compilers from warning.
static void *volatile nowhere = (void *)16;

struct state {
    int64_t count;
    int mode;
};

extern const struct msc_env_def *msc_env_plugin;
extern const struct msc_agent_def *msc_agent_plugin;
const struct msc_env_def *msc_env_plugin;
const struct msc_agent_def *msc_agent_plugin;

static struct msc_env_def env_def;
static struct msc_agent_def agent_def;
static struct msc_param params[3];
static struct msc_param endless[400];
static char long_name[5000];
static struct msc_space space;

static enum msc_status env_init(struct msc_env *env) {
    (void)env;
    return MSC_OK;
}

static const struct msc_space *env_space(const struct msc_env *env) {
    (void)env;
    const char *fault = getenv("MSC_FAULT");
    return strcmp(fault, "space") == 0 ? NULL : &space;
}

static enum msc_status env_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    (void)env;
    (void)e;
    return MSC_OK;
}

static struct msc_env_batches env_batches(const struct msc_env *env) {
    (void)env;
    return (struct msc_env_batches){.n = 1, .n_terms = 1};
}

static enum msc_status env_evaluate_part(struct msc_env *env, const struct msc_evaluation *e,
                                         const struct msc_env_part *part) {
    (void)part;
    return env_evaluate(env, e);
}

static double env_partial_loss(const struct msc_env *env, const double terms[], size_t n_batches) {
    (void)env;
    (void)n_batches;
    return terms[0];
}

static enum msc_status agent_init(struct msc_agent *agent) {
    (void)agent;
    return MSC_OK;
}

static enum msc_status agent_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                 size_t *n) {
    (void)agent;
    (void)out;
    *n = max;
    const char *fault = getenv("MSC_FAULT");
    if (fault && strcmp(fault, "exit") == 0) {
        exit(EXIT_SUCCESS);
    }
    return MSC_OK;
}

static enum msc_status agent_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    (void)agent;
    (void)trial;
    return MSC_OK;
}

static void set_name(const char *name) {
    env_def.name = name;
    agent_def.name = name;
}

static void set_params(const struct msc_param table[]) {
    env_def.params = table;
    agent_def.params = table;
}

// Another ABI lays out a definition differently, so the bytes 0x10 must not be read as pointers.
static void set_abi(unsigned abi) {
    memset(&env_def, 0x10, sizeof env_def);
    memset(&agent_def, 0x10, sizeof agent_def);
    env_def.abi = agent_def.abi = abi;
}

static void spoil_definition(const char *fault) {
    if (strcmp(fault, "no abi") == 0) {
        set_abi(0);
    } else if (strcmp(fault, "later abi") == 0) {
        set_abi(3);
    } else if (strcmp(fault, "abi") == 0) {
        env_def.abi = agent_def.abi = 77;
    } else if (strcmp(fault, "no name") == 0) {
        set_name(NULL);
    } else if (strcmp(fault, "empty name") == 0) {
        set_name("");
    } else if (strcmp(fault, "wild name") == 0) {
        set_name(nowhere);
    } else if (strcmp(fault, "long name") == 0) {
        memset(long_name, 'a', sizeof long_name);
        set_name(long_name);
    } else if (strcmp(fault, "escape") == 0) {
        set_name("\033[2J");
    } else if (strcmp(fault, "no summary") == 0) {
        env_def.summary = agent_def.summary = NULL;
    } else if (strcmp(fault, "no init") == 0) {
        env_def.init = NULL;
        agent_def.init = NULL;
    } else if (strcmp(fault, "wild init") == 0) {
        memcpy(&env_def.init, &(void *){nowhere}, sizeof(void *));
        memcpy(&agent_def.init, &(void *){nowhere}, sizeof(void *));
    } else if (strcmp(fault, "wild finish") == 0) {
        memcpy(&env_def.finish, &(void *){nowhere}, sizeof(void *));
        memcpy(&agent_def.finish, &(void *){nowhere}, sizeof(void *));
    }
}

// Removes one of the functions that measure trials by batches. These functions are valid only
// together.
static void spoil_parts(const char *fault) {
    env_def.batches = strcmp(fault, "no batches") == 0 ? NULL : env_batches;
    env_def.evaluate_part = strcmp(fault, "no evaluate_part") == 0 ? NULL : env_evaluate_part;
    env_def.partial_loss = strcmp(fault, "no partial_loss") == 0 ? NULL : env_partial_loss;
}

static void spoil_params(const char *fault) {
    if (strcmp(fault, "no params") == 0) {
        set_params(NULL);
    } else if (strcmp(fault, "wild params") == 0) {
        set_params(nowhere);
    } else if (strcmp(fault, "endless params") == 0) {
        for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
            endless[i] = params[0];
        }
        set_params(endless);
    } else if (strcmp(fault, "garbage behind params") == 0) {
        params[2].name = nowhere;
    } else if (strcmp(fault, "no help") == 0) {
        params[0].help = NULL;
    } else if (strcmp(fault, "type") == 0) {
        params[0].type = (enum msc_param_type)99;
    } else if (strcmp(fault, "outside") == 0) {
        params[0].offset = sizeof(struct state);
    } else if (strcmp(fault, "no names") == 0) {
        params[1].names = NULL;
    } else if (strcmp(fault, "no default") == 0) {
        params[1].text = NULL;
    } else if (strcmp(fault, "other default") == 0) {
        params[1].text = "neither";
    }
}

__attribute__((constructor)) static void load(void) {
    const char *fault = getenv("MSC_FAULT") ? getenv("MSC_FAULT") : "";
    params[0] = (struct msc_param){.name = "count",
                                   .help = "how many",
                                   .offset = offsetof(struct state, count),
                                   .type = MSC_PARAM_I64,
                                   .number = 1};
    params[1] = (struct msc_param){.name = "mode",
                                   .help = "how",
                                   .offset = offsetof(struct state, mode),
                                   .type = MSC_PARAM_ENUM,
                                   .text = "one",
                                   .names = "one|two"};
    env_def = (struct msc_env_def){.abi = MSC_ENV_ABI,
                                   .summary = "an environment",
                                   .state_size = sizeof(struct state),
                                   .init = env_init,
                                   .space = env_space,
                                   .evaluate = env_evaluate};
    agent_def = (struct msc_agent_def){.abi = MSC_AGENT_ABI,
                                       .summary = "an agent",
                                       .state_size = sizeof(struct state),
                                       .init = agent_init,
                                       .ask = agent_ask,
                                       .tell = agent_tell};
    set_name("faulty");
    set_params(params);
    spoil_definition(fault);
    spoil_params(fault);
    if (env_def.abi == MSC_ENV_ABI) {
        spoil_parts(fault);
    }
    msc_env_plugin = &env_def;
    msc_agent_plugin = &agent_def;
    if (strcmp(fault, "null") == 0) {
        msc_env_plugin = NULL;
        msc_agent_plugin = NULL;
        // The symbol is the definition itself, not a pointer to it. The definition begins with its
        // ABI number.
    } else if (strcmp(fault, "no pointer") == 0) {
        msc_env_plugin = (void *)(uintptr_t)MSC_ENV_ABI;
        msc_agent_plugin = (void *)(uintptr_t)MSC_AGENT_ABI;
    } else if (strcmp(fault, "crash") == 0) {
        abort();
    }
}
