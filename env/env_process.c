// Environments in any language. An environment is a program that reads one JSON object per line
// from its standard input and answers on its standard output:
//
//     {"method":"init","protocol":1,"params":{…}}      {"tasks":[…],"metrics":[…],"costs":[…]}
//     {"method":"evaluate","trials":[{"choices":[0,1]},…]}
//                                     a line for each: {"trial":0,"metrics":{"distill_loss":0.1}}
//     {"method":"done"}                                     no answer: the program ends
//
// An answer {"error":"text"} stops the search with that text. If the program ends or takes too long
// during an evaluation, it is restarted and each unanswered trial is evaluated on its own. A trial
// that ends the program twice has failed.
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/program.h"
#include "env/process_messages.h"

#include <string.h>

// A trial fails when it has ended the program this many times.
#define MOST_ENDS 2
// If more trials than this fail in a row, the program is at fault and the search stops.
#define MOST_FAILURES 32

struct process_env {
    const struct cJSON *command;
    double timeout_s;
    const struct cJSON *params;

    struct msc_program program;
    struct msc_process_env says;
    struct msc_hash answer; // hash of the answer to init
    struct msc_hash files;  // hash of the files that the command names
    int n_failures;         // failed trials in a row
    // Used during one call: indices of the trials without an answer, and which trials of a request
    // have outcomes.
    size_t *places;
    size_t places_capacity;
    bool *is_done;
    size_t is_done_capacity;
};

static const struct msc_param process_params[] = {
    {.name = "command",
     .help = "program and its arguments, a list of strings; run directly, without a shell",
     .offset = offsetof(struct process_env, command),
     .type = MSC_PARAM_JSON},
    {.name = "timeout",
     .help = "time allowed for one answer (the space or one trial); then the program is restarted",
     .offset = offsetof(struct process_env, timeout_s),
     .type = MSC_PARAM_DURATION,
     .number = 600,
     .min = 0.001,
     .max = 1e9},
    {.name = "params",
     .help = "any JSON value; passed unchanged to the program in \"init\"",
     .offset = offsetof(struct process_env, params),
     .type = MSC_PARAM_JSON},
    {0},
};

// ---- Starting ---------------------------------------------------------------------------------

static enum msc_status ask_space(struct process_env *p, cJSON **answer) {
    struct msc_str *request = &p->program.request;
    msc_str_clear(request);
    msc_str_append(request, "{\"method\":\"init\",\"protocol\":1,\"params\":");
    if (p->params) {
        msc_json_write(request, p->params);
    } else {
        msc_str_append(request, "{}");
    }
    msc_str_char(request, '}');
    return msc_program_exchange(&p->program, answer);
}

// Starts the program and reads its answer to init; *answer is owned by the caller, NULL on failure.
static enum msc_status start_program(struct msc_env *env, cJSON **answer) {
    struct process_env *p = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    *answer = NULL;
    enum msc_status status = msc_program_start(&p->program, host->folder, host->cancel);
    if (status == MSC_OK) {
        status = ask_space(p, answer);
    }
    return msc_program_name_error(&p->program, status, "init");
}

// Hashes the program's files, because results depend on them. A program found in PATH is not
// hashed.
static enum msc_status hash_files(struct msc_hash *out, const struct process_env *p,
                                  const char *folder) {
    struct msc_arena arena = {0};
    struct msc_hash h = msc_hash_bytes("program", 7);
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && p->program.argv[i]; i++) {
        const char *word = p->program.argv[i];
        const void *data = NULL;
        size_t n_bytes = 0;
        if (i == 0 && !strchr(word, '/')) {
            continue;
        }
        const char *path = msc_path_join(&arena, folder, word);
        if (!path) {
            status = MSC_FAIL(MSC_E_NOMEM, "not enough memory to hash the program's files");
        } else if (msc_file_exists(path) && msc_file_map(&data, &n_bytes, path) == MSC_OK) {
            h = msc_hash_combine(msc_hash_add_u64(h, i), msc_hash_bytes(data, n_bytes));
            msc_file_unmap(data, n_bytes);
        }
    }
    msc_arena_finish(&arena);
    *out = h;
    return status;
}

static enum msc_status process_init(struct msc_env *env) {
    struct process_env *p = msc_env_state(env);
    struct msc_arena *arena = msc_env_arena(env);
    cJSON *answer = NULL;
    p->program.kind = "environment process";
    p->program.timeout_s = p->timeout_s;
    MSC_TRY(msc_program_read(&p->program, p->command, "env.command",
                             "[\"python3\", \"environment.py\"]", arena));
    MSC_TRY(hash_files(&p->files, p, msc_env_host(env)->folder));
    MSC_TRY(start_program(env, &answer));
    enum msc_status status = msc_json_hash(&p->answer, answer);
    if (status == MSC_OK) {
        status = msc_process_read_space(&p->says, answer, arena);
    }
    cJSON_Delete(answer);
    return msc_program_name_error(&p->program, status, "init");
}

static const struct msc_space *process_space(const struct msc_env *env) {
    const struct process_env *p = msc_env_state(env);
    return &p->says.space;
}

// ---- Evaluating -------------------------------------------------------------------------------

// Whether the program has ended; the caller decides what that means for the trial.
static bool has_ended(enum msc_status status) {
    return status == MSC_E_IO;
}

static enum msc_status start_again(struct msc_env *env) {
    struct process_env *p = msc_env_state(env);
    cJSON *answer = NULL;
    struct msc_hash hash;
    msc_log(msc_env_host(env)->log, MSC_LOG_WARNING, "%s; restarting the program",
            msc_status_message());
    msc_program_kill(&p->program);
    MSC_TRY(start_program(env, &answer));
    enum msc_status status = msc_json_hash(&hash, answer);
    cJSON_Delete(answer);
    if (status == MSC_OK && !msc_hash_equal(hash, p->answer)) {
        status = MSC_FAIL(MSC_E_STATE, "the answer after a restart differs from the first answer");
    }
    return msc_program_name_error(&p->program, status, "init");
}

static enum msc_status take_outcome(struct msc_env *env, const struct msc_evaluation *e,
                                    const size_t places[], size_t n) {
    struct process_env *p = msc_env_state(env);
    cJSON *answer = NULL;
    size_t i = 0;
    MSC_TRY(msc_process_answer(p->program.process, &answer, p->timeout_s));
    enum msc_status status =
        msc_process_read_outcome(&i, answer, &p->says.space, e, places, p->is_done, n);
    cJSON_Delete(answer);
    MSC_TRY(status);
    p->is_done[i] = true;
    p->n_failures = 0;
    if (e->finished) {
        e->finished(e->payload, places[i]);
    }
    return MSC_OK;
}

// Evaluates the `n` trials at `places` in one request. On return, trials marked in is_done have
// outcomes, whatever the status. If the program ended, the error message says only how the program
// ended.
static enum msc_status evaluate_some(struct msc_env *env, const struct msc_evaluation *e,
                                     const size_t places[], size_t n) {
    struct process_env *p = msc_env_state(env);
    memset(p->is_done, 0, n * sizeof *p->is_done);
    msc_str_clear(&p->program.request);
    msc_process_write_evaluate(&p->program.request, &p->says.space, e, places, n);
    enum msc_status status =
        msc_process_request(p->program.process, &p->program.request, p->timeout_s);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = take_outcome(env, e, places, n);
    }
    return has_ended(status) ? status : msc_program_name_error(&p->program, status, "evaluate");
}

// Evaluates one trial per request, so that it is known which trial ends the program.
static enum msc_status evaluate_alone(struct msc_env *env, const struct msc_evaluation *e,
                                      size_t place) {
    struct process_env *p = msc_env_state(env);
    struct msc_outcome *outcome = &e->trials[place]->outcome;
    for (int n_ends = 1;; n_ends++) {
        enum msc_status status = evaluate_some(env, e, &place, 1);
        if (!has_ended(status)) {
            return status;
        }
        if (n_ends == MOST_ENDS && ++p->n_failures > MOST_FAILURES) {
            status =
                msc_status_prefix(status, "%d trials in a row ended the program", p->n_failures);
            return msc_program_name_error(&p->program, status, "evaluate");
        }
        if (n_ends == MOST_ENDS) {
            msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "%s", msc_status_message());
        }
        MSC_TRY(start_again(env));
        if (n_ends == MOST_ENDS) {
            break;
        }
    }
    if (e->finished) {
        e->finished(e->payload, place);
    }
    return MSC_OK;
}

static enum msc_status process_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    struct process_env *p = msc_env_state(env);
    MSC_TRY(msc_grow(&p->places, &p->places_capacity, e->n, sizeof *p->places));
    MSC_TRY(msc_grow(&p->is_done, &p->is_done_capacity, e->n, sizeof *p->is_done));
    for (size_t i = 0; i < e->n; i++) {
        p->places[i] = i;
    }
    if (e->n == 1) {
        return evaluate_alone(env, e, 0);
    }
    enum msc_status status = evaluate_some(env, e, p->places, e->n);
    if (!has_ended(status)) {
        return status;
    }
    size_t n_left = 0;
    for (size_t i = 0; i < e->n; i++) {
        p->places[n_left] = i;
        n_left += !p->is_done[i];
    }
    MSC_TRY(start_again(env));
    for (size_t i = 0; i < n_left; i++) {
        MSC_TRY(evaluate_alone(env, e, p->places[i]));
    }
    return MSC_OK;
}

// ---- Description ------------------------------------------------------------------------------

static enum msc_status process_reference(struct msc_env *env, double metrics[MSC_MAX_METRICS]) {
    const struct process_env *p = msc_env_state(env);
    memcpy(metrics, p->says.reference, sizeof p->says.reference);
    return MSC_OK;
}

static struct msc_hash process_identity(const struct msc_env *env) {
    const struct process_env *p = msc_env_state(env);
    return msc_hash_combine(p->answer, p->files);
}

static enum msc_status process_describe(const struct msc_env *env, struct cJSON *object) {
    const struct process_env *p = msc_env_state(env);
    char text[MSC_HASH_TEXT_BYTES];
    MSC_TRY(msc_json_add_number(object, "program_version", (double)p->says.version));
    MSC_TRY(msc_json_add_text(object, "program", msc_hash_format(text, p->files)));
    return msc_json_add_text(object, "answer", msc_hash_format(text, p->answer));
}

static void process_finish(struct msc_env *env) {
    struct process_env *p = msc_env_state(env);
    msc_program_finish(&p->program);
    msc_free(p->places);
    msc_free(p->is_done);
}

const struct msc_env_def msc_env_process = {
    .abi = MSC_ENV_ABI,
    .name = "process",
    .summary = "a program of your own that speaks JSON lines on its standard input and output",
    .version = 1,
    .state_size = sizeof(struct process_env),
    .params = process_params,
    .init = process_init,
    .space = process_space,
    .evaluate = process_evaluate,
    .reference = process_reference,
    .identity = process_identity,
    .describe = process_describe,
    .finish = process_finish,
};
