#include "base/program.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/process.h"

#define STOP_GRACE_S 2.0

enum msc_status msc_program_read_words(const char ***out, const struct cJSON *value,
                                       const char *where, const char *example,
                                       struct msc_arena *arena) {
    size_t n = 0;
    const cJSON *word = NULL;
    if (!cJSON_IsArray(value) || !value->child) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected a list of strings such as %s", where, example);
    }
    const char **words =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(value) + 1, sizeof *words);
    MSC_TRY(MSC_ALLOCATED(words));
    cJSON_ArrayForEach(word, value) {
        if (!cJSON_IsString(word) || (n == 0 && !word->valuestring[0])) {
            return MSC_FAIL(MSC_E_INVALID, "%s: word %zu is not a string", where, n);
        }
        words[n] = msc_arena_strdup(arena, word->valuestring);
        MSC_TRY(MSC_ALLOCATED(words[n++]));
    }
    words[n] = NULL;
    *out = words;
    return MSC_OK;
}

enum msc_status msc_program_read(struct msc_program *p, const struct cJSON *command,
                                 const char *where, const char *example, struct msc_arena *arena) {
    struct msc_str name = {0};
    MSC_TRY(msc_program_read_words(&p->argv, command, where, example, arena));
    for (size_t i = 0; p->argv[i]; i++) {
        msc_str_printf(&name, "%s%s", i > 0 ? " " : "", p->argv[i]);
    }
    p->name = msc_str_keep(&name, arena);
    return MSC_ALLOCATED(p->name);
}

enum msc_status msc_program_start(struct msc_program *p, const char *folder,
                                  const struct msc_cancel *cancel) {
    MSC_TRY(msc_process_start(&p->process, p->argv, folder));
    msc_process_set_cancel(p->process, cancel, 2);
    return MSC_OK;
}

enum msc_status msc_program_exchange(struct msc_program *p, struct cJSON **answer) {
    MSC_TRY(msc_process_request(p->process, &p->request, p->timeout_s));
    return msc_process_answer(p->process, answer, p->timeout_s);
}

enum msc_status msc_program_name_error(const struct msc_program *p, enum msc_status status,
                                       const char *method) {
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status, "%s \"%s\", %s", p->kind, p->name, method);
}

void msc_program_stop(struct msc_program *p) {
    static const char farewell[] = "{\"method\":\"done\"}\n";
    if (p->process) {
        // From here on, requests to cancel are ignored, and so are errors: the program may have
        // stopped reading.
        msc_process_set_cancel(p->process, NULL, 0);
        (void)msc_process_send(p->process, farewell, sizeof farewell - 1, STOP_GRACE_S);
        msc_process_stop(p->process, STOP_GRACE_S);
        p->process = NULL;
    }
}

void msc_program_kill(struct msc_program *p) {
    msc_process_stop(p->process, 0.0);
    p->process = NULL;
}

void msc_program_finish(struct msc_program *p) {
    msc_program_stop(p);
    msc_str_finish(&p->request);
}
