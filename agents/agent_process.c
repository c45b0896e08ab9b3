// Agents in any language: a program that reads one JSON object a line from its standard input and
// answers each with one line on its standard output.
//
//     {"method":"init","protocol":1,"seed":"0","params":{…},"space":{…},"goal":{…}}   {}
//     {"method":"ask","max":8}                     {"proposals":[{"choices":[0,1]}],"done":false}
//     {"method":"tell","trial":{…},"outcome":{…}}                                     {}
//     {"method":"done"}                                         no answer: the program ends
//
// An answer {"error":"text"} stops the search with that text. A proposal may also carry "parent",
// "bound" and "probe"; "done" true means that nothing is left to ask, "left" that at most so many
// more will be proposed after these.
#include "agents/agent.h"
#include "agents/agent_internal.h"
#include "agents/process_messages.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/process.h"
#include "base/str.h"

#define STOP_GRACE_S 2.0

struct process_agent {
    const struct cJSON *command;
    double timeout_s;
    const struct cJSON *params;

    struct msc_process *process;
    const char *name; // for error texts: the whole command
    bool is_done;
    bool has_left; // it has said how many there are
    double n_left;
    struct msc_str request; // kept for its memory
};

static const struct msc_param process_params[] = {
    {.name = "command",
     .help = "program and arguments, a list of texts; no shell is involved",
     .offset = offsetof(struct process_agent, command),
     .type = MSC_PARAM_JSON},
    {.name = "timeout",
     .help = "time that one answer may take",
     .offset = offsetof(struct process_agent, timeout_s),
     .type = MSC_PARAM_DURATION,
     .number = 60,
     .min = 0.001,
     .max = 1e9},
    {.name = "params",
     .help = "handed to the program as it is",
     .offset = offsetof(struct process_agent, params),
     .type = MSC_PARAM_JSON},
    {0},
};

// Sends the request built in p->request; *answer is owned by the caller.
static enum msc_status process_exchange(struct process_agent *p, cJSON **answer) {
    MSC_TRY(msc_process_request(p->process, &p->request, p->timeout_s));
    return msc_process_answer(p->process, answer, p->timeout_s);
}

static enum msc_status name_error(const struct process_agent *p, enum msc_status status,
                                  const char *method) {
    return status == MSC_OK
               ? MSC_OK
               : msc_status_prefix(status, "agent process \"%s\", %s", p->name, method);
}

// Copies the command into a NULL-terminated array of the arena.
static enum msc_status read_command(struct msc_agent *agent, const char ***argv) {
    struct process_agent *p = msc_agent_state(agent);
    struct msc_arena *arena = msc_agent_arena(agent);
    int n = cJSON_IsArray(p->command) ? cJSON_GetArraySize(p->command) : 0;
    if (n == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "agent.command: expected a list such as [\"python3\", \"agent.py\"]");
    }
    const char **copy = msc_arena_array(arena, (size_t)n + 1, sizeof *copy);
    if (!copy) {
        return MSC_FAIL(MSC_E_NOMEM, "agent.command: out of memory");
    }
    struct msc_str name = {0};
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, p->command) {
        if (!cJSON_IsString(item) || (i == 0 && item->valuestring[0] == '\0')) {
            msc_str_finish(&name);
            return MSC_FAIL(MSC_E_INVALID, "agent.command: item %zu is no text", i);
        }
        copy[i] = item->valuestring;
        msc_str_printf(&name, "%s%s", i++ > 0 ? " " : "", item->valuestring);
    }
    p->name = msc_str_keep(&name, arena);
    *argv = copy;
    return p->name ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "agent.command: out of memory");
}

static enum msc_status process_init(struct msc_agent *agent) {
    struct process_agent *p = msc_agent_state(agent);
    const char **argv = NULL;
    MSC_TRY(read_command(agent, &argv));
    enum msc_status status = msc_process_start(&p->process, argv, msc_agent__folder(agent));
    if (status == MSC_OK) {
        cJSON *answer = NULL;
        msc_str_clear(&p->request);
        msc_process_write_init(&p->request, msc_agent_space(agent), msc_agent_goal(agent),
                               msc_agent__seed(agent), p->params);
        status = process_exchange(p, &answer);
        cJSON_Delete(answer);
    }
    return name_error(p, status, "init");
}

static enum msc_status read_left(struct process_agent *p, const cJSON *answer) {
    const cJSON *left = cJSON_GetObjectItemCaseSensitive(answer, "left");
    if (left && (!cJSON_IsNumber(left) || !(left->valuedouble >= 0.0))) {
        return MSC_FAIL(MSC_E_FORMAT, "answer: \"left\" is no number of proposals");
    }
    p->has_left = left != NULL;
    p->n_left = left ? left->valuedouble : 0.0;
    return MSC_OK;
}

static enum msc_status process_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                   size_t *n) {
    struct process_agent *p = msc_agent_state(agent);
    cJSON *answer = NULL;
    msc_str_clear(&p->request);
    msc_str_printf(&p->request, "{\"method\":\"ask\",\"max\":%zu}", max);
    enum msc_status status = process_exchange(p, &answer);
    if (status == MSC_OK) {
        status =
            msc_process_read_proposals(answer, msc_agent_space(agent), out, max, n, &p->is_done);
    }
    if (status == MSC_OK) {
        status = read_left(p, answer);
    }
    cJSON_Delete(answer);
    return name_error(p, status, "ask");
}

static enum msc_status process_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct process_agent *p = msc_agent_state(agent);
    cJSON *answer = NULL;
    msc_str_clear(&p->request);
    msc_process_write_tell(&p->request, msc_agent_space(agent), msc_agent_goal(agent), trial);
    enum msc_status status = process_exchange(p, &answer);
    cJSON_Delete(answer);
    return name_error(p, status, "tell");
}

static bool process_done(const struct msc_agent *agent) {
    const struct process_agent *p = msc_agent_state(agent);
    return p->is_done;
}

static struct msc_agent_left process_left(const struct msc_agent *agent) {
    const struct process_agent *p = msc_agent_state(agent);
    return p->has_left ? (struct msc_agent_left){.n = p->n_left}
                       : (struct msc_agent_left)MSC_AGENT_LEFT_UNKNOWN;
}

static void process_finish(struct msc_agent *agent) {
    static const char farewell[] = "{\"method\":\"done\"}\n";
    struct process_agent *p = msc_agent_state(agent);
    if (p->process) {
        // Whether it still listens makes no difference now.
        (void)msc_process_send(p->process, farewell, sizeof farewell - 1, STOP_GRACE_S);
        msc_process_stop(p->process, STOP_GRACE_S);
    }
    msc_str_finish(&p->request);
}

double msc_agent__process_timeout_s(const struct msc_agent *agent) {
    const struct process_agent *p = msc_agent_state(agent);
    return p->timeout_s;
}

const struct msc_agent_def msc_agent_process = {
    .abi = MSC_AGENT_ABI,
    .name = "process",
    .summary = "a program of your own that speaks JSON lines on its standard input and output",
    .version = 1,
    .state_size = sizeof(struct process_agent),
    .params = process_params,
    .init = process_init,
    .ask = process_ask,
    .tell = process_tell,
    .done = process_done,
    .left = process_left,
    .finish = process_finish,
};
