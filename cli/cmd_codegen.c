#include "cli/searching.h"

#include "codegen/codegen.h"
#include "pipeline/subject.h"

#include <inttypes.h>
#include <limits.h>

struct codegen_values {
    struct msc_cli_common common;
    const char *model, *output, *inputs, *strategy;
    int64_t to, batch;
    bool allow_plugins;
};

#define CODEGEN(member) offsetof(struct codegen_values, member)

// The command does not set uses_models: the program runs on the processor, with kernels that use
// one thread.
static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, MSCGraph as text or JSON, RECORD or CONFIG:STAGE",
     .offset = CODEGEN(model),
     .is_positional = true,
     .is_required = true},
    {.name = "to",
     .argument = "LIBRARY",
     .type = MSC_CLI_CHOICE,
     .help = "write a program in C for libmscgym (c, the default), or in C++ for onnxruntime",
     .names = "c|onnxruntime",
     .offset = CODEGEN(to)},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "write the program to this folder, which must not have files of the same names",
     .offset = CODEGEN(output)},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record the outputs for the first samples of a .npz, .npy, .safetensors or .jsonl "
             "file, or a folder of images "
             "(default: random numbers)",
     .offset = CODEGEN(inputs)},
    {.name = "batch",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "record N samples together, if the model takes any number (default: 1)",
     .offset = CODEGEN(batch)},
    {.name = "bind",
     .argument = "SYMBOL=N",
     .type = MSC_CLI_LIST,
     .help = "set an open length of random inputs (default: 1); may be repeated",
     .details = "An input of one integer that selects a branch is set in the same way.",
     .offset = CODEGEN(common.bind)},
    {.name = "strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "compress the model by this strategy file",
     .offset = CODEGEN(strategy)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust records: libraries and programs that they name may run",
     .offset = CODEGEN(allow_plugins)},
    {0},
};

static enum msc_status codegen_check(const struct codegen_values *v) {
    if (!v->output) {
        return MSC_FAIL(MSC_E_INVALID, "codegen: --output FOLDER is missing");
    }
    return v->batch < 0 || (v->batch >= 1 && v->batch <= INT_MAX)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "codegen: --batch is %" PRId64 ", expected a whole number of 1 to %d",
                          v->batch, INT_MAX);
}

static enum msc_status codegen_check_subject(const struct codegen_values *v,
                                             const struct msc_subject *subject) {
    if (!subject->model) {
        return MSC_FAIL(MSC_E_INVALID,
                        "codegen: %s is a strategy file: expected a model, and this file with "
                        "--strategy",
                        v->model);
    }
    return subject->strategy && v->strategy
               ? MSC_FAIL(MSC_E_INVALID, "codegen: %s is already compressed: remove --strategy %s",
                          v->model, v->strategy)
               : MSC_OK;
}

static enum msc_status codegen_write(const struct msc_cli_call *call,
                                     const struct codegen_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_subject subject = {.model = NULL};
    struct msc_strategy *strategy = NULL;
    struct msc_codegen_options to = {.inputs = v->inputs, .folder = v->output};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(codegen_check(v));
    MSC_TRY_OUT(msc_cli_bindings(&o.bindings, &o.n_bindings, &v->common.bind, call->arena));
    o.log = &call->console->log;
    o.allow_plugins = v->allow_plugins;
    MSC_TRY_OUT(msc_subject_open(&subject, v->model, &o));
    MSC_TRY_OUT(codegen_check_subject(v, &subject));
    if (v->strategy) {
        MSC_TRY_OUT(msc_strategy_load(&strategy, v->strategy));
    }
    to.kind = v->to == 1 ? MSC_CODEGEN_ONNXRUNTIME : MSC_CODEGEN_C;
    to.model = subject.model;
    to.strategy = strategy ? strategy : subject.strategy;
    to.batch = v->batch > 0 ? v->batch : 1;
    to.bindings = o.bindings;
    to.n_bindings = o.n_bindings;
    if (o.n_bindings == 0 && subject.config) {
        to.bindings = subject.config->bindings;
        to.n_bindings = subject.config->n_bindings;
    }
    to.log = &call->console->log;
    status = msc_codegen(&to);
out:
    msc_strategy_destroy(strategy);
    msc_subject_close(&subject);
    return status;
}

static int cmd_codegen(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = codegen_write(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_codegen = {
    .name = "codegen",
    .summary = "writes the source of a program that runs a network, with a test",
    .usage = "MODEL --output FOLDER [--to c|onnxruntime] [options]",
    .description =
        "The folder has source, a CMakeLists.txt, the weights, recorded inputs and outputs, and a "
        "test that compares. The program in C builds the network joint by joint and runs on "
        "libmscgym; its outputs have the bits that mscgym computes. The program in C++ runs the "
        "exported model in onnxruntime.",
    .examples =
        "  mscgym codegen digits.onnx --inputs calibration.npz -o digits\n"
        "  cmake -S digits -B digits/build && cmake --build digits/build\n"
        "  ctest --test-dir digits/build\n"
        "  mscgym codegen digits.onnx --strategy msc_quantize.json --to onnxruntime -o ort\n",
    .options = options,
    .values_size = sizeof(struct codegen_values),
    .run = cmd_codegen,
};
