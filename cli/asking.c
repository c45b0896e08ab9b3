#include "cli/asking.h"

#include "base/file.h"
#include "base/machine.h"
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "mscgym-client"

#define ASKING(member) offsetof(struct msc_cli_asking, member)

const struct msc_cli_option msc_cli_server_options[] = {
    {.name = "server",
     .argument = "URL",
     .type = MSC_CLI_TEXT,
     .help = "address of the server (default: $MSCGYM_SERVER, or http://127.0.0.1:8642)",
     .offset = ASKING(server)},
    {.name = "token-file",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "file with the user's token (default: the token in $MSCGYM_TOKEN)",
     .offset = ASKING(token_file)},
    {0},
};

void msc_cli_add_word(struct msc_cli_words *words, const char *word) {
    size_t most = sizeof words->items / sizeof words->items[0] - 1; // NULL ends them
    words->failed |= !word || words->n == most;
    if (!words->failed) {
        words->items[words->n++] = word;
    }
}

void msc_cli_add_option(struct msc_cli_words *words, struct msc_arena *arena, const char *name,
                        const char *value) {
    if (value) {
        msc_cli_add_word(words, msc_arena_printf(arena, "--%s=%s", name, value));
    }
}

static enum msc_status become_client(const struct msc_cli_call *call,
                                     const struct msc_cli_words *words) {
    struct msc_cli_words all = {.n = 0};
    char *folder = msc_machine_program_folder(call->arena);
    char *beside = folder ? msc_path_join(call->arena, folder, PROGRAM) : NULL;
    msc_cli_add_word(&all, beside && msc_file_exists(beside) ? beside : PROGRAM);
    for (size_t i = 0; i < words->n; i++) {
        msc_cli_add_word(&all, words->items[i]);
    }
    if (words->failed || all.failed) {
        return MSC_FAIL(MSC_E_INVALID, "%s: too many arguments: expected at most 50",
                        call->argv[0]);
    }
    msc_output_give_back(); // --json keeps it; the client writes to it
    fflush(stdout);
    execvp(all.items[0], (char *const *)all.items);
    return MSC_FAIL(MSC_E_IO, "%s: %s cannot be started: %s: it needs Python 3", call->argv[0],
                    all.items[0], strerror(errno));
}

int msc_cli_ask(const struct msc_cli_call *call, const struct msc_cli_asking *asking,
                const struct msc_cli_words *words) {
    struct msc_cli_words all = {.failed = words->failed};
    msc_cli_add_option(&all, call->arena, "server", asking->server);
    msc_cli_add_option(&all, call->arena, "token-file", asking->token_file);
    if (asking->common.json) {
        msc_cli_add_word(&all, "--json");
    }
    for (size_t i = 0; i < words->n; i++) {
        msc_cli_add_word(&all, words->items[i]);
    }
    return msc_cli_fail(call, become_client(call, &all));
}
