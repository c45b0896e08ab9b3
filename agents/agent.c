#include "agents/agent.h"

#include "agents/agent_internal.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "env/api/library.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

// Agents and environments share a seed but draw from different streams of it; this constant selects
// the agents' stream.
#define AGENT_STREAM 0x6167656e74u

struct msc_agent {
    const struct msc_agent_def *def;
    void *state;
    const struct msc_space *space;
    const struct msc_goal *goal;
    uint64_t seed;
    struct msc_rng rng;
    struct msc_arena arena;
    struct msc_agent_host host;
    void *library;
};

void *msc_agent_state(const struct msc_agent *agent) {
    return agent->state;
}

const struct msc_space *msc_agent_space(const struct msc_agent *agent) {
    return agent->space;
}

const struct msc_goal *msc_agent_goal(const struct msc_agent *agent) {
    return agent->goal;
}

struct msc_arena *msc_agent_arena(struct msc_agent *agent) {
    return &agent->arena;
}

struct msc_rng *msc_agent_rng(struct msc_agent *agent) {
    return &agent->rng;
}

const struct msc_agent_host *msc_agent__host(const struct msc_agent *agent) {
    return &agent->host;
}

uint64_t msc_agent__seed(const struct msc_agent *agent) {
    return agent->seed;
}

const struct msc_agent_def *msc_agent_definition(const struct msc_agent *agent) {
    return agent->def;
}

static enum msc_status read_params(struct msc_agent *agent, const struct msc_agent_setup *setup) {
    static const char *const ignore[] = {"type", "path", NULL};
    static const char *const ignore_type[] = {"type", NULL};
    msc_param_defaults(agent->def->params, agent->state);
    return msc_param_read(agent->def->params, agent->state, setup->config, "agent",
                          setup->library ? ignore : ignore_type, &agent->arena);
}

static enum msc_status agent_start(struct msc_agent *agent, const struct msc_agent_setup *setup) {
    const struct msc_agent_def *def = agent->def;
    if (def->abi != MSC_AGENT_ABI) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "agent %s was built for ABI %u, expected %u; rebuild it with the "
                        "installed headers",
                        def->name, def->abi, MSC_AGENT_ABI);
    }
    agent->host = setup->host;
    if (setup->host.folder) {
        agent->host.folder = msc_arena_strdup(&agent->arena, setup->host.folder);
    }
    agent->state = msc_alloc_zero(1, def->state_size ? def->state_size : 1);
    if (!agent->state || (setup->host.folder && !agent->host.folder)) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    msc_rng_seed(&agent->rng, setup->seed, AGENT_STREAM);
    MSC_TRY(read_params(agent, setup));
    return def->init(agent);
}

enum msc_status msc_agent__create(struct msc_agent **out, const struct msc_agent_setup *setup) {
    struct msc_agent *agent = msc_alloc_zero(1, sizeof *agent);
    if (!agent) {
        msc_library_close(setup->library);
        return MSC_FAIL(MSC_E_NOMEM, "agent %s: out of memory", setup->def->name);
    }
    agent->def = setup->def;
    agent->space = setup->space;
    agent->goal = setup->goal;
    agent->seed = setup->seed;
    agent->library = setup->library;
    enum msc_status status = agent_start(agent, setup);
    if (status != MSC_OK) {
        msc_agent_destroy(agent);
        return status;
    }
    *out = agent;
    return MSC_OK;
}

enum msc_status msc_agent_create(struct msc_agent **out, const struct msc_agent_def *def,
                                 const struct cJSON *config, const struct msc_space *space,
                                 const struct msc_goal *goal, uint64_t seed) {
    struct msc_agent_setup setup = {
        .def = def, .config = config, .space = space, .goal = goal, .seed = seed};
    return msc_agent__create(out, &setup);
}

void msc_agent_destroy(struct msc_agent *agent) {
    if (!agent) {
        return;
    }
    if (agent->state && agent->def->finish) {
        agent->def->finish(agent);
    }
    msc_free(agent->state);
    msc_arena_finish(&agent->arena);
    msc_library_close(agent->library);
    msc_free(agent);
}

static enum msc_status check_proposal(const struct msc_agent *agent,
                                      const struct msc_proposal *proposal, size_t index) {
    const struct msc_space *space = agent->space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        if (proposal->choices[t] >= space->tasks[t].n_choices) {
            return MSC_FAIL(MSC_E_INVALID,
                            "agent %s: proposal %zu has choice %u for task %s, expected 0 to %u",
                            agent->def->name, index, proposal->choices[t], space->tasks[t].name,
                            space->tasks[t].n_choices - 1);
        }
    }
    if (isnan(proposal->bound) || proposal->parent < -1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "agent %s: proposal %zu has bound %g and parent %lld, expected a bound "
                        "that is a number and a parent of at least -1",
                        agent->def->name, index, proposal->bound, (long long)proposal->parent);
    }
    return MSC_OK;
}

enum msc_status msc_agent_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                              size_t *n) {
    for (size_t i = 0; i < max; i++) {
        out[i].parent = -1;
        out[i].bound = INFINITY;
        out[i].probe = false;
        out[i].origin = NULL;
    }
    *n = 0;
    MSC_TRY(agent->def->ask(agent, out, max, n));
    if (*n > max) {
        return MSC_FAIL(MSC_E_INVALID, "agent %s: made %zu proposals, expected at most %zu",
                        agent->def->name, *n, max);
    }
    for (size_t i = 0; i < *n; i++) {
        MSC_TRY(check_proposal(agent, &out[i], i));
    }
    return MSC_OK;
}

enum msc_status msc_agent_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct msc_trial told = *trial;
    told.outcome.time_us = 0;
    told.outcome.reuse_ratio = 0.0;
    return agent->def->tell(agent, &told);
}

bool msc_agent_is_done(const struct msc_agent *agent) {
    return agent->def->done && agent->def->done(agent);
}

struct msc_agent_left msc_agent_left(const struct msc_agent *agent) {
    if (msc_agent_is_done(agent)) {
        return (struct msc_agent_left){.n = 0.0, .is_exact = true};
    }
    return agent->def->left ? agent->def->left(agent)
                            : (struct msc_agent_left)MSC_AGENT_LEFT_UNKNOWN;
}

double msc_agent_effort(const struct msc_agent *agent, double n) {
    return agent->def->effort && isfinite(n) ? agent->def->effort(agent, n) : n;
}

bool msc_agent_can_assemble(const struct msc_agent *agent) {
    return agent->def->assemble && msc_agent_left(agent).n_plan > 0.0;
}

enum msc_status msc_agent_assemble(struct msc_agent *agent, struct msc_proposal *out) {
    out->parent = -1;
    out->bound = INFINITY;
    out->probe = false;
    out->origin = NULL;
    agent->def->assemble(agent, out->choices);
    return check_proposal(agent, out, 0);
}

static enum msc_status add_remark(cJSON *list, const char *line, size_t length) {
    struct msc_str raw = {0}, text = {0};
    msc_str_append_n(&raw, line, length);
    msc_shown_append(&text, msc_str_text(&raw));
    enum msc_status status = raw.failed ? msc_str_status(&raw) : msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_json_push(list, cJSON_CreateString(msc_str_text(&text)));
    }
    msc_str_finish(&raw);
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_agent_remarks(struct msc_agent *agent, struct cJSON *list) {
    struct msc_str text = {0};
    if (!agent->def->remarks) {
        return MSC_OK;
    }
    agent->def->remarks(agent, &text);
    enum msc_status status = msc_str_status(&text);
    for (const char *line = msc_str_text(&text); status == MSC_OK && *line;) {
        size_t length = strcspn(line, "\n");
        status = length > 0 ? add_remark(list, line, length) : MSC_OK;
        line += length + (line[length] == '\n');
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_agent_describe(const struct msc_agent *agent, struct cJSON *object) {
    MSC_TRY(msc_json_add_text(object, "type", agent->def->name));
    MSC_TRY(msc_json_add_number(object, "version", agent->def->version));
    return msc_param_write(agent->def->params, agent->state, object);
}
