// Output of a program whose lines are read from a pipe: `cat` writes the bytes. Each line is an
// answer and must be returned as it was written, or be an error. The program may be stopped after
// any answer.
#include "base/alloc.h"
#include "base/json.h"
#include "base/program.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MAX_ANSWERS = 4 };

// Checks that the answer equals the next line of the text.
static void check_answer(const cJSON *answer, const char **text, const char *end) {
    const char *newline = *text < end ? memchr(*text, '\n', (size_t)(end - *text)) : NULL;
    cJSON *expected = NULL;
    if (!newline ||
        fuzz_check(msc_json_parse(&expected, *text, (size_t)(newline - *text), "line")) != MSC_OK) {
        fuzz_fail("an answer that is no line of the program's");
    }
    if (!cJSON_Compare(answer, expected, true)) {
        fuzz_fail("an answer that is not what the line says");
    }
    cJSON_Delete(expected);
    *text = newline + 1;
}

static void speak(struct msc_program *p, const char *text, size_t n_bytes) {
    const char *end = text + n_bytes;
    enum msc_status status = MSC_OK;
    for (int i = 0; i < MAX_ANSWERS && status == MSC_OK; i++) {
        cJSON *answer = NULL;
        msc_str_clear(&p->request);
        msc_str_append(&p->request, "{\"method\":\"ask\"}");
        status = msc_program_exchange(p, &answer);
        if (status == MSC_OK) {
            check_answer(answer, &text, end);
        } else {
            status = fuzz_check(msc_program_name_error(p, status, "ask"));
        }
        cJSON_Delete(answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct msc_arena arena = {0};
    struct msc_program p = {.kind = "agent process", .timeout_s = 5.0};
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    fuzz_write("said", data, n_bytes);
    cJSON *command = cJSON_CreateArray();
    cJSON_AddItemToArray(command, cJSON_CreateString("cat"));
    cJSON_AddItemToArray(command, cJSON_CreateString(fuzz_path("said")));
    if (msc_program_read(&p, command, "agent.command", "\"cat\"", &arena) != MSC_OK ||
        msc_program_start(&p, NULL, NULL) != MSC_OK) {
        fuzz_fail(msc_status_message());
    }
    speak(&p, (const char *)data, n_bytes);
    msc_program_kill(&p);
    msc_program_finish(&p);
    cJSON_Delete(command);
    msc_arena_finish(&arena);
    return 0;
}
