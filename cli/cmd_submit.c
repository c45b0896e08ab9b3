#include "cli/asking.h"

struct submit_values {
    struct msc_cli_asking asking;
    const char *model, *inputs, *labels, *config, *name, *target, *time;
    struct msc_cli_list files;
    bool wait;
};

#define SUBMIT(member) offsetof(struct submit_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "model to compress, without --config",
     .offset = SUBMIT(model),
     .is_positional = true},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "samples for the inputs",
     .offset = SUBMIT(inputs)},
    {.name = "labels",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "class of each sample (.npy)",
     .offset = SUBMIT(labels)},
    {.name = "target",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "runtime that will run the model (default: onnxruntime)",
     .offset = SUBMIT(target)},
    {.name = "time",
     .argument = "TIME",
     .type = MSC_CLI_TEXT,
     .help = "time of the search (default: 8h)",
     .offset = SUBMIT(time)},
    {.name = "config",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration in place of MODEL, --inputs, --labels, --target and --time",
     .offset = SUBMIT(config)},
    {.name = "file",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "a file that the configuration names; may be repeated",
     .offset = SUBMIT(files)},
    {.name = "name",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "name of the job, for people",
     .offset = SUBMIT(name)},
    {.name = "wait",
     .type = MSC_CLI_FLAG,
     .help = "follow the job to its end",
     .offset = SUBMIT(wait)},
    {0},
};

static int cmd_submit(const struct msc_cli_call *call, void *payload) {
    const struct submit_values *v = payload;
    struct msc_cli_words words = {.n = 0};
    if (!v->config == !v->model) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID, "submit: expected either MODEL or "
                                                          "--config"));
    }
    msc_cli_add_word(&words, "submit");
    msc_cli_add_option(&words, call->arena, "inputs", v->inputs);
    msc_cli_add_option(&words, call->arena, "labels", v->labels);
    msc_cli_add_option(&words, call->arena, "target", v->target);
    msc_cli_add_option(&words, call->arena, "time", v->time);
    msc_cli_add_option(&words, call->arena, "config", v->config);
    msc_cli_add_option(&words, call->arena, "name", v->name);
    for (size_t i = 0; i < v->files.n; i++) {
        msc_cli_add_option(&words, call->arena, "file", v->files.items[i]);
    }
    if (v->wait) {
        msc_cli_add_word(&words, "--wait");
    }
    if (v->model) {
        msc_cli_add_word(&words, "--");
        msc_cli_add_word(&words, v->model);
    }
    return msc_cli_ask(call, &v->asking, &words);
}

const struct msc_cli_command msc_cmd_submit = {
    .name = "submit",
    .summary = "submits a model or a configuration to mscgym serve",
    .usage = "MODEL --inputs FILE [options]\n--config FILE [options]",
    .description = "Uploads the files and prints the new job. With a model, the server writes a "
                   "first configuration, as mscgym init does. Needs Python 3.",
    .examples = "  mscgym submit model.onnx --inputs inputs.npz --time 1h --wait\n"
                "  mscgym submit --config search.json --file model.onnx --file inputs.npz\n",
    .options = options,
    .shared = msc_cli_server_options,
    .values_size = sizeof(struct submit_values),
    .run = cmd_submit,
};
