// Agents in any language. An agent is a program that reads one JSON object per line from its
// standard input and answers each with one line on its standard output:
//
//     {"method":"init","protocol":1,"seed":"0","params":{…},"space":{…},"goal":{…}}   {}
//     {"method":"ask","max":8}                     {"proposals":[{"choices":[0,1]}],"done":false}
//     {"method":"tell","trial":{…},"outcome":{…}}                                     {}
//     {"method":"remarks"}                                      {"remarks":["a sentence"]}
//     {"method":"done"}                                         no answer: the program ends
//
// Only a program whose answer to "init" has "remarks" true is asked for remarks.
//
// An answer {"error":"text"} stops the search with that text. A proposal may also have "parent",
// "bound" and "probe". "done" true means that the agent has nothing more to propose; the optional
// number "left" is an upper limit of the proposals that follow after these.
#include "agents/agent.h"
#include "agents/agent_internal.h"
#include "agents/process_messages.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/program.h"

struct process_agent {
    const struct cJSON *command;
    double timeout_s;
    const struct cJSON *params;

    struct msc_program program;
    bool is_done;
    bool has_remarks; // the program answers "remarks"
    bool has_left;    // the last answer had "left"
    double n_left;
};

static const struct msc_param process_params[] = {
    {.name = "command",
     .help = "program and its arguments, a list of strings; run directly, without a shell",
     .offset = offsetof(struct process_agent, command),
     .type = MSC_PARAM_JSON},
    {.name = "timeout",
     .help = "time allowed for one answer; a program that takes longer ends the search",
     .offset = offsetof(struct process_agent, timeout_s),
     .type = MSC_PARAM_DURATION,
     .number = 60,
     .min = 0.001,
     .max = 1e9},
    {.name = "params",
     .help = "any JSON value; passed unchanged to the program in \"init\"",
     .offset = offsetof(struct process_agent, params),
     .type = MSC_PARAM_JSON},
    {0},
};

static enum msc_status process_init(struct msc_agent *agent) {
    struct process_agent *p = msc_agent_state(agent);
    struct msc_program *program = &p->program;
    program->kind = "agent process";
    program->timeout_s = p->timeout_s;
    MSC_TRY(msc_program_read(program, p->command, "agent.command", "[\"python3\", \"agent.py\"]",
                             msc_agent_arena(agent)));
    const struct msc_agent_host *host = msc_agent__host(agent);
    enum msc_status status = msc_program_start(program, host->folder, host->cancel);
    if (status == MSC_OK) {
        cJSON *answer = NULL;
        msc_str_clear(&program->request);
        msc_process_write_init(&program->request, msc_agent_space(agent), msc_agent_goal(agent),
                               msc_agent__seed(agent), p->params);
        status = msc_program_exchange(program, &answer);
        p->has_remarks = status == MSC_OK && cJSON_IsTrue(msc_json_get(answer, "remarks"));
        cJSON_Delete(answer);
    }
    return msc_program_name_error(program, status, "init");
}

static enum msc_status read_left(struct process_agent *p, const cJSON *answer) {
    const cJSON *left = msc_json_get(answer, "left");
    if (left && (!cJSON_IsNumber(left) || !(left->valuedouble >= 0.0))) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "answer: \"left\" is not a number of proposals, expected at least 0");
    }
    p->has_left = left != NULL;
    p->n_left = left ? left->valuedouble : 0.0;
    return MSC_OK;
}

static enum msc_status process_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                   size_t *n) {
    struct process_agent *p = msc_agent_state(agent);
    cJSON *answer = NULL;
    msc_str_clear(&p->program.request);
    msc_str_printf(&p->program.request, "{\"method\":\"ask\",\"max\":%zu}", max);
    enum msc_status status = msc_program_exchange(&p->program, &answer);
    if (status == MSC_OK) {
        status =
            msc_process_read_proposals(answer, msc_agent_space(agent), out, max, n, &p->is_done);
    }
    if (status == MSC_OK) {
        status = read_left(p, answer);
    }
    cJSON_Delete(answer);
    return msc_program_name_error(&p->program, status, "ask");
}

static enum msc_status process_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct process_agent *p = msc_agent_state(agent);
    cJSON *answer = NULL;
    msc_str_clear(&p->program.request);
    msc_process_write_tell(&p->program.request, msc_agent_space(agent), msc_agent_goal(agent),
                           trial);
    enum msc_status status = msc_program_exchange(&p->program, &answer);
    cJSON_Delete(answer);
    return msc_program_name_error(&p->program, status, "tell");
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

static enum msc_status read_remarks(struct msc_str *out, const cJSON *answer) {
    const cJSON *list = NULL, *item = NULL;
    MSC_TRY(msc_json_get_array(&list, answer, "remarks", "answer"));
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "answer: \"remarks\" is not a list of strings");
        }
        msc_str_printf(out, "%s\n", item->valuestring);
    }
    return MSC_OK;
}

// The search is over, so an error is only a remark.
static void process_remarks(struct msc_agent *agent, struct msc_str *out) {
    struct process_agent *p = msc_agent_state(agent);
    cJSON *answer = NULL;
    if (!p->has_remarks) {
        return;
    }
    msc_str_clear(&p->program.request);
    msc_str_append(&p->program.request, "{\"method\":\"remarks\"}");
    enum msc_status status = msc_program_exchange(&p->program, &answer);
    if (status == MSC_OK) {
        status = read_remarks(out, answer);
    }
    cJSON_Delete(answer);
    if (msc_program_name_error(&p->program, status, "remarks") != MSC_OK) {
        msc_str_printf(out, "no remarks: %s\n", msc_status_message());
    }
}

static void process_finish(struct msc_agent *agent) {
    struct process_agent *p = msc_agent_state(agent);
    msc_program_finish(&p->program);
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
    .remarks = process_remarks,
    .finish = process_finish,
};
