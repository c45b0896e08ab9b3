#include "tools/command.h"

#include "base/json.h"
#include "base/process.h"
#include "base/program.h"
#include "base/str.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct command_keys {
    const cJSON *argv;
    bool maximise;
    double timeout_s;
    bool lasting;
};

const struct msc_param msc_command_params[] = {
    {.name = "argv",
     .help = "program and arguments; {model} is replaced by the exported file",
     .offset = offsetof(struct command_keys, argv),
     .type = MSC_PARAM_JSON},
    {.name = "maximise",
     .help = "larger numbers are better",
     .offset = offsetof(struct command_keys, maximise),
     .type = MSC_PARAM_BOOL},
    {.name = "timeout",
     .help = "time limit of one run",
     .offset = offsetof(struct command_keys, timeout_s),
     .type = MSC_PARAM_DURATION,
     .number = 600,
     .min = 1e-3,
     .max = 1e9},
    {.name = "lasting",
     .help = "the program is started once, and answers a line of JSON for each trial",
     .offset = offsetof(struct command_keys, lasting),
     .type = MSC_PARAM_BOOL},
    {0},
};

static const char *const placeholders[] = {"{model}", "{outputs}"};
enum { N_PLACEHOLDERS = sizeof placeholders / sizeof placeholders[0] };

// ---- Reading and writing ----------------------------------------------------------------------

static enum msc_status make_lasting(struct msc_command *command, const struct cJSON *argv,
                                    const char *where, struct msc_arena *arena) {
    struct msc_program *p = msc_arena_array(arena, 1, sizeof *p);
    MSC_TRY(MSC_ALLOCATED(p));
    *p = (struct msc_program){.kind = "metric process", .timeout_s = command->timeout_s};
    MSC_TRY(msc_program_read(p, argv, where, "[\"./score.py\", \"{outputs}\"]", arena));
    command->program = p;
    return MSC_OK;
}

enum msc_status msc_command_read(struct msc_command *out, const struct cJSON *value,
                                 const char *where, struct msc_arena *arena) {
    struct command_keys keys;
    bool is_list = cJSON_IsArray(value);
    if (!is_list && !cJSON_IsObject(value)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: expected [\"./score.py\", \"{model}\"], or an object with \"argv\", "
                        "\"maximise\" and \"timeout\"",
                        where);
    }
    msc_param_defaults(msc_command_params, &keys);
    MSC_TRY(msc_param_read(msc_command_params, &keys, is_list ? NULL : value, where, NULL, arena));
    MSC_TRY(msc_program_read_words(&out->argv, is_list ? value : keys.argv, where,
                                   "[\"./score.py\", \"{model}\"]", arena));
    out->is_maximised = keys.maximise;
    out->timeout_s = keys.timeout_s;
    out->program = NULL;
    if (keys.lasting) {
        MSC_TRY(make_lasting(out, keys.argv, where, arena));
    }
    for (int i = 0; i < N_PLACEHOLDERS; i++) {
        if (msc_command_wants(out, placeholders[i])) {
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: the command must contain {model}, which is replaced by the exported file",
                    where);
}

enum msc_status msc_command_write(const struct msc_command *command, struct cJSON *object) {
    cJSON *argv = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "argv", argv));
    for (size_t i = 0; command->argv[i]; i++) {
        MSC_TRY(msc_json_push(argv, cJSON_CreateString(command->argv[i])));
    }
    MSC_TRY(msc_json_add_bool(object, "maximise", command->is_maximised));
    if (command->program) {
        MSC_TRY(msc_json_add_bool(object, "lasting", true));
    }
    return msc_json_add_number(object, "timeout", command->timeout_s);
}

bool msc_command_wants(const struct msc_command *command, const char *file) {
    for (size_t i = 1; command->argv[i]; i++) {
        if (strstr(command->argv[i], file)) {
            return true;
        }
    }
    return false;
}

// ---- Running ----------------------------------------------------------------------------------

// A word with its placeholders replaced by file paths.
static const char *fill_word(const char *word, const struct msc_command_files *files,
                             struct msc_arena *arena) {
    const char *const paths[N_PLACEHOLDERS] = {files->model, files->outputs};
    struct msc_str text = {0};
    msc_str_append(&text, "");
    while (*word) {
        int found = -1;
        for (int i = 0; i < N_PLACEHOLDERS; i++) {
            if (paths[i] && strncmp(word, placeholders[i], strlen(placeholders[i])) == 0) {
                found = i;
            }
        }
        if (found >= 0) {
            msc_str_append(&text, paths[found]);
            word += strlen(placeholders[found]);
        } else {
            msc_str_char(&text, *word++);
        }
    }
    return msc_str_keep(&text, arena);
}

static enum msc_status fill_words(const char **out[], const struct msc_command *command,
                                  const struct msc_command_files *files, struct msc_arena *arena) {
    size_t n = 0;
    while (command->argv[n]) {
        n++;
    }
    const char **argv = msc_arena_array(arena, n + 1, sizeof *argv);
    MSC_TRY(MSC_ALLOCATED(argv));
    for (size_t i = 0; i < n; i++) {
        argv[i] = i == 0 ? command->argv[0] : fill_word(command->argv[i], files, arena);
        MSC_TRY(MSC_ALLOCATED(argv[i]));
    }
    argv[n] = NULL;
    *out = argv;
    return MSC_OK;
}

static enum msc_status read_number(double *out, const char *program, const struct msc_str *last) {
    enum { MOST_SHOWN = 60 };
    double number = NAN;
    if (msc_parse_double(&number, msc_str_text(last)) && isfinite(number)) {
        *out = number;
        return MSC_OK;
    }
    struct msc_str shown = {0};
    msc_str_append_n(&shown, msc_str_text(last),
                     last->length < MOST_SHOWN ? last->length : MOST_SHOWN);
    enum msc_status status = MSC_FAIL(MSC_E_STATE, "%s: its last line is \"%s\", expected a number",
                                      program, msc_str_text(&shown));
    msc_str_finish(&shown);
    return status;
}

// ---- A lasting program ------------------------------------------------------------------------

static enum msc_status write_request(struct msc_program *p, const struct msc_command_files *files) {
    const char *const members[] = {"model", "outputs"}, *paths[] = {files->model, files->outputs};
    cJSON *request = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(request);
    if (status == MSC_OK) {
        status = msc_json_add_text(request, "method", "measure");
    }
    for (int i = 0; status == MSC_OK && i < N_PLACEHOLDERS; i++) {
        status = paths[i] ? msc_json_add_text(request, members[i], paths[i]) : MSC_OK;
    }
    msc_str_clear(&p->request);
    msc_json_write(&p->request, request);
    cJSON_Delete(request);
    return status;
}

static enum msc_status read_value(double *out, const cJSON *answer) {
    const cJSON *value = msc_json_get(answer, "value");
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble)) {
        return MSC_FAIL(MSC_E_STATE, "expected {\"value\": a number}");
    }
    *out = value->valuedouble;
    return MSC_OK;
}

// Starts the program if it does not run.
static enum msc_status ask(double *out, const struct msc_command *command,
                           const struct msc_command_files *files, const char *folder,
                           const struct msc_cancel *cancel, int level) {
    struct msc_program *p = command->program;
    cJSON *answer = NULL;
    if (!p->process) {
        MSC_TRY(msc_program_start(p, folder, cancel));
        msc_process_set_cancel(p->process, cancel, level);
    }
    MSC_TRY(write_request(p, files));
    enum msc_status status = msc_program_exchange(p, &answer);
    if (status == MSC_OK) {
        status = read_value(out, answer);
    } else if (status != MSC_E_STATE) { // after {"error": text} it still answers
        msc_program_kill(p);
    }
    cJSON_Delete(answer);
    status = msc_program_name_error(p, status, "measure");
    bool is_trial = status == MSC_E_IO || status == MSC_E_FORMAT;
    return is_trial ? MSC_E_STATE : status;
}

void msc_command_finish(struct msc_command *command) {
    if (command->program) {
        msc_program_finish(command->program);
    }
}

enum msc_status msc_command_run(double *out, const struct msc_command *command,
                                const struct msc_command_files *files, const char *folder,
                                const struct msc_cancel *cancel, int level) {
    struct msc_arena arena = {0};
    struct msc_str last = {0};
    const char **argv = NULL;
    enum msc_status status = MSC_OK;
    if (command->program) {
        return ask(out, command, files, folder, cancel, level);
    }
    MSC_TRY_OUT(fill_words(&argv, command, files, &arena));
    MSC_TRY_OUT(msc_process_run(&last, argv, folder, command->timeout_s, cancel, level));
    status = read_number(out, argv[0], &last);
out:
    msc_str_finish(&last);
    msc_arena_finish(&arena);
    return status;
}
