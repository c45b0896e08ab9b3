// Serves env/gym.h as JSON lines, for learning agents in other languages (docs/environments.md).
#include "cli/searching.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "env/api/message.h"
#include "env/gym.h"

#include <stdio.h>
#include <string.h>

#define LINE_LIMIT ((size_t)64 << 20)

struct gym_values {
    struct msc_cli_common common;
    const char *config;
    int64_t trials;
};

static const struct msc_cli_option options[] = {
    {.name = "CONFIG",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration; the environment of its first search is served",
     .offset = offsetof(struct gym_values, config),
     .is_positional = true,
     .is_required = true},
    {.name = "trials",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "evaluate at most N episodes (default: no limit)",
     .offset = offsetof(struct gym_values, trials)},
    {0},
};

struct serving {
    struct msc_gym *gym;
    const struct msc_space *space;
    struct msc_goal goal;
    struct msc_str line;   // a request
    struct msc_str answer; // answer to the request
    bool is_over;
};

// ---- Lines ------------------------------------------------------------------------------------

static enum msc_status read_line(struct msc_str *line, bool *is_over) {
    int c;
    msc_str_clear(line);
    while ((c = getc(stdin)) != EOF && c != '\n') {
        if (line->length == LINE_LIMIT) {
            return MSC_FAIL(MSC_E_FORMAT, "request: the line has more than %zu bytes", LINE_LIMIT);
        }
        msc_str_char(line, (char)c);
    }
    *is_over = c == EOF;
    return msc_str_status(line);
}

static void write_key(struct msc_str *out, const char *key) {
    msc_str_append(out, ",\"");
    msc_str_append(out, key);
    msc_str_append(out, "\":");
}

static void write_bool(struct msc_str *out, const char *key, bool value) {
    write_key(out, key);
    msc_str_append(out, value ? "true" : "false");
}

static void write_step(struct serving *s, const struct msc_gym_step *step) {
    struct msc_str *out = &s->answer;
    msc_str_append(out, "{\"task\":");
    msc_str_u64(out, step->task);
    write_key(out, "n_choices");
    msc_str_u64(out, step->n_choices);
    write_key(out, "observation");
    msc_str_char(out, '[');
    for (size_t i = 0; step->observation && i < s->space->n_features; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_number(out, step->observation[i]);
    }
    msc_str_char(out, ']');
    write_key(out, "reward");
    msc_json_write_number(out, step->reward);
    write_bool(out, "terminated", step->terminated);
    write_bool(out, "truncated", step->truncated);
    if (step->outcome) {
        write_key(out, "outcome");
        msc_message_write_outcome(out, s->space, &s->goal, step->outcome);
    }
    msc_str_char(out, '}');
}

// ---- Requests ---------------------------------------------------------------------------------

static enum msc_status answer_init(struct serving *s, const cJSON *request) {
    (void)request;
    msc_str_append(&s->answer, "{\"protocol\":1,\"space\":");
    msc_message_write_space(&s->answer, s->space);
    write_key(&s->answer, "goal");
    msc_message_write_goal(&s->answer, s->space, &s->goal);
    msc_str_char(&s->answer, '}');
    return MSC_OK;
}

static enum msc_status answer_reset(struct serving *s, const cJSON *request) {
    struct msc_gym_step step;
    int64_t seed = 0;
    if (msc_json_get(request, "seed")) {
        MSC_TRY(msc_json_get_i64(&seed, request, "seed", "reset"));
    }
    MSC_TRY(msc_gym_reset(s->gym, (uint64_t)seed, &step));
    write_step(s, &step);
    return MSC_OK;
}

static enum msc_status answer_step(struct serving *s, const cJSON *request) {
    struct msc_gym_step step;
    int64_t choice = -1;
    MSC_TRY(msc_json_get_i64(&choice, request, "choice", "step"));
    if (choice < 0 || choice > UINT32_MAX) {
        return MSC_FAIL(MSC_E_INVALID, "step: choice %lld does not exist", (long long)choice);
    }
    MSC_TRY(msc_gym_step(s->gym, (uint32_t)choice, &step));
    write_step(s, &step);
    return MSC_OK;
}

static enum msc_status answer_save(struct serving *s, const cJSON *request) {
    cJSON *state = NULL;
    (void)request;
    MSC_TRY(msc_gym_save(s->gym, &state));
    msc_str_append(&s->answer, "{\"state\":");
    msc_json_write(&s->answer, state);
    msc_str_char(&s->answer, '}');
    cJSON_Delete(state);
    return MSC_OK;
}

static enum msc_status answer_restore(struct serving *s, const cJSON *request) {
    struct msc_gym_step step;
    const cJSON *state = NULL;
    MSC_TRY(msc_json_get_object(&state, request, "state", "restore"));
    MSC_TRY(msc_gym_restore(s->gym, state, &step));
    write_step(s, &step);
    return MSC_OK;
}

static enum msc_status answer_done(struct serving *s, const cJSON *request) {
    (void)request;
    s->is_over = true;
    return MSC_OK;
}

static const struct {
    const char *name;
    enum msc_status (*answer)(struct serving *s, const cJSON *request);
} methods[] = {
    {"init", answer_init}, {"reset", answer_reset},     {"step", answer_step},
    {"save", answer_save}, {"restore", answer_restore}, {"done", answer_done},
};

enum { N_METHODS = sizeof methods / sizeof methods[0] };

static enum msc_status answer_line(struct serving *s) {
    cJSON *request = NULL;
    const char *name = NULL;
    const char *names[N_METHODS];
    MSC_TRY(msc_json_parse(&request, s->line.data, s->line.length, "request"));
    enum msc_status status = msc_json_get_text(&name, request, "method", "request");
    size_t i = 0;
    for (; status == MSC_OK && i < N_METHODS && strcmp(name, methods[i].name) != 0; i++) {
        names[i] = methods[i].name;
    }
    if (status == MSC_OK) {
        status = i < N_METHODS ? methods[i].answer(s, request)
                               : msc_json_fail_key(name, names, N_METHODS, "request: method");
    }
    cJSON_Delete(request);
    return status;
}

// If a request fails, its error is the answer, and the state does not change.
static enum msc_status serve(struct serving *s) {
    for (;;) {
        bool is_last = false;
        MSC_TRY(read_line(&s->line, &is_last));
        if (s->line.length == 0 && is_last) {
            return MSC_OK;
        }
        msc_str_clear(&s->answer);
        if (s->line.length > 0 && answer_line(s) != MSC_OK) {
            msc_str_clear(&s->answer);
            msc_str_append(&s->answer, "{\"error\":");
            msc_json_write_text(&s->answer, msc_status_message());
            msc_str_char(&s->answer, '}');
        }
        if (s->is_over) {
            return MSC_OK;
        }
        if (s->answer.length > 0) {
            msc_str_char(&s->answer, '\n');
            MSC_TRY(msc_cli_print_str(&s->answer));
        }
    }
}

static enum msc_status cmd_gym_run(const struct msc_cli_call *call, const struct gym_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct serving s = {.gym = NULL};
    struct msc_processor *p = NULL;
    struct msc_drops drops;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_output_keep());
    MSC_TRY_OUT(msc_cli_fill_options(&o, call, &v->common));
    o.log = NULL;
    MSC_TRY_OUT(msc_processor_open(&p, v->config, &o));
    MSC_TRY_OUT(msc_processor_prepare(p));
    s.space = msc_env_space(msc_processor_env(p));
    MSC_TRY_OUT(
        msc_env_read_drops(&drops, &s.goal, s.space, msc_processor_config(p)->entries[0].env));
    MSC_TRY_OUT(msc_env_measure_drops(&drops, &s.goal, msc_processor_env(p)));
    MSC_TRY_OUT(msc_gym_create(&s.gym, msc_processor_env(p), &s.goal,
                               v->trials > 0 ? (uint64_t)v->trials : 0));
    status = serve(&s);
out:
    msc_gym_destroy(s.gym);
    msc_str_finish(&s.line);
    msc_str_finish(&s.answer);
    msc_processor_close(p);
    return status;
}

static int cmd_gym(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = cmd_gym_run(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_gym = {
    .name = "gym",
    .summary = "serves the environment of a search step by step, as JSON lines",
    .usage = "CONFIG [options]",
    .description =
        "For learning agents in any language. Each line of standard input is a request: init, "
        "reset, step, save, restore or done. One line answers it.",
    .examples = "  mscgym gym search.json\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct gym_values),
    .run = cmd_gym,
};
