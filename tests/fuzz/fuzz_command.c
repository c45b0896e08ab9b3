// Command lines: words that each end with a NUL, the command's name first. They are parsed into
// the command's values, including bindings, durations and sizes, and its help is written. No
// command runs.
#include "base/alloc.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MAX_WORDS = 24 };

static void read_words(const struct msc_cli_command *c, int argc, char *argv[]) {
    const struct msc_cli_option *const tables[] = {
        c->options, msc_cli_basic_options, c->uses_models ? msc_cli_model_options : NULL, NULL};
    struct msc_arena arena = {0};
    struct msc_cli_common *values = msc_arena_alloc(&arena, c->values_size);
    if (fuzz_check(msc_cli_parse(values, tables, argc, argv, &arena)) == MSC_OK) {
        const struct msc_binding *bindings = NULL;
        size_t n = 0;
        if (fuzz_check(msc_cli_bindings(&bindings, &n, &values->bind, &arena)) == MSC_OK &&
            n != values->bind.n) {
            fuzz_fail("a binding was lost");
        }
    }
    msc_arena_finish(&arena);
}

static void write_help(const struct msc_cli_command *c) {
    struct msc_str text = {0};
    msc_cli_help_options(&text, c->options);
    fuzz_check(msc_str_status(&text));
    msc_str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    char *words[MAX_WORDS + 1] = {NULL};
    int n = 0;
    if (n_bytes < 1 || n_bytes > 4096) {
        return -1;
    }
    char *memory = msc_alloc(n_bytes + 1);
    memcpy(memory, data, n_bytes);
    memory[n_bytes] = '\0';
    for (size_t at = 0; at < n_bytes && n < MAX_WORDS; at += strlen(memory + at) + 1) {
        words[n++] = memory + at;
    }
    const struct msc_cli_command *c = msc_cli_find_command(msc_cli_commands, words[0]);
    if (c) {
        read_words(c, n, words);
        write_help(c);
    }
    msc_free(memory);
    return c ? 0 : -1;
}
