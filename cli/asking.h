// Commands that ask a server, `mscgym serve`. The client is the program mscgym-client
// (python/mscgym/client.py), which is in the folder of mscgym or in the PATH.
#ifndef MSC_CLI_ASKING_H
#define MSC_CLI_ASKING_H

#include "cli/cli.h"

// Begins the values of these commands.
struct msc_cli_asking {
    struct msc_cli_common common;
    const char *server, *token_file;
};

extern const struct msc_cli_option msc_cli_server_options[];

// The words after the name of the program, such as {"submit", "--name=x", "--", "a.onnx"}.
struct msc_cli_words {
    const char *items[64];
    size_t n;
    bool failed; // out of memory, or too many
};
void msc_cli_add_word(struct msc_cli_words *words, const char *word);
// Adds "--name=value", unless the value is NULL.
void msc_cli_add_option(struct msc_cli_words *words, struct msc_arena *arena, const char *name,
                        const char *value);
// Becomes the client. Returns only if that fails: an exit code.
int msc_cli_ask(const struct msc_cli_call *call, const struct msc_cli_asking *asking,
                const struct msc_cli_words *words);

#endif
