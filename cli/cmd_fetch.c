#include "cli/asking.h"

struct fetch_values {
    struct msc_cli_asking asking;
    const char *id, *output;
};

#define FETCH(member) offsetof(struct fetch_values, member)

static const struct msc_cli_option options[] = {
    {.name = "ID",
     .type = MSC_CLI_TEXT,
     .help = "a job, as mscgym jobs prints it",
     .offset = FETCH(id),
     .is_positional = true,
     .is_required = true},
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "folder to write the files into (default: a folder named as the job)",
     .offset = FETCH(output)},
    {0},
};

static int cmd_fetch(const struct msc_cli_call *call, void *payload) {
    const struct fetch_values *v = payload;
    struct msc_cli_words words = {.n = 0};
    msc_cli_add_word(&words, "fetch");
    msc_cli_add_option(&words, call->arena, "output", v->output ? v->output : v->id);
    msc_cli_add_word(&words, "--");
    msc_cli_add_word(&words, v->id);
    return msc_cli_ask(call, &v->asking, &words);
}

const struct msc_cli_command msc_cmd_fetch = {
    .name = "fetch",
    .summary = "writes the model, plan, record and report of a job of mscgym serve",
    .usage = "ID [-o DIR] [options]",
    .description = "Writes the files that the job has so far, and prints their paths. Needs "
                   "Python 3.",
    .examples = "  mscgym fetch 3f0c91d2a47b -o result\n",
    .options = options,
    .shared = msc_cli_server_options,
    .values_size = sizeof(struct fetch_values),
    .run = cmd_fetch,
};
