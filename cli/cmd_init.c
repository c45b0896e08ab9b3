#include "cli/searching.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "pipeline/first_config.h"

struct init_values {
    struct msc_cli_common common;
    const char *model, *inputs, *labels, *output, *target, *time;
};

#define INIT(member) offsetof(struct init_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text or JSON",
     .offset = INIT(model),
     .is_positional = true,
     .is_required = true},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "samples for the inputs, a few hundred: a .npz, .npy, .safetensors or .jsonl file, or "
             "a folder of images",
     .offset = INIT(inputs)},
    {.name = "labels",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "class of each sample (.npy)",
     .offset = INIT(labels)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "configuration to write (default: search.yaml)",
     .offset = INIT(output)},
    {.name = "target",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "onnxruntime|onnxruntime_avx2|onnxruntime_nbits|openvino|tensorrt|tflite|generic",
     .help = "runtime that will run the model (default: onnxruntime)",
     .offset = INIT(target)},
    {.name = "time",
     .argument = "TIME",
     .type = MSC_CLI_TEXT,
     .help = "time of the search (default: 8h)",
     .offset = INIT(time)},
    {0},
};

static enum msc_status print_found(const cJSON *found) {
    struct msc_str text = {0};
    const cJSON *bound = msc_json_get(msc_json_get(found, "size_ratio"), "bound");
    const cJSON *runtime = msc_json_get(found, "runtime"), *item = NULL;
    const char *config = msc_json_get(found, "config")->valuestring;
    msc_shown_append(&text, config);
    msc_str_printf(&text, ": a search of the bits of %.0f tensors, on %.0f samples",
                   msc_json_number_of(found, "tasks"), msc_json_number_of(found, "samples"));
    if (bound) {
        msc_str_printf(&text, ", with a size of at most %g of the float model's",
                       bound->valuedouble);
    }
    msc_str_char(&text, '\n');
    if ((item = msc_json_get(runtime, "missing"))) {
        msc_str_append(&text, "the winner will not be measured in its runtime: ");
        msc_shown_append(&text, item->valuestring);
        msc_str_char(&text, '\n');
    }
    msc_str_append(&text, "next: mscgym search ");
    msc_shown_append(&text, config);
    msc_str_append(&text, " --dry-run\n");
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status init_config(cJSON **found, const struct msc_cli_call *call,
                                   const struct init_values *v) {
    struct msc_worker worker = {0};
    struct msc_first_config_options o = {.model = v->model,
                                         .inputs = v->inputs,
                                         .labels = v->labels,
                                         .target = v->target,
                                         .time = v->time ? v->time : "8h",
                                         .output = v->output ? v->output : "search.yaml",
                                         .host = MSC_PROCESSOR_OPTIONS_INIT};
    if (!v->inputs) {
        return MSC_FAIL(MSC_E_INVALID, "init: --inputs is missing: samples to calibrate with");
    }
    MSC_TRY(msc_cli_fill_stoppable(&o.host, &worker, call, &v->common));
    enum msc_status status = msc_first_config(found, &o);
    msc_worker_close(&worker);
    return status;
}

static int cmd_init(const struct msc_cli_call *call, void *payload) {
    const struct init_values *v = payload;
    cJSON *found = NULL;
    enum msc_status status = init_config(&found, call, v);
    if (status == MSC_OK) {
        status = v->common.json ? msc_cli_print_json(found) : print_found(found);
    }
    cJSON_Delete(found);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_init = {
    .name = "init",
    .summary = "writes a first configuration for a model, with comments",
    .usage = "MODEL --inputs FILE [-o search.yaml] [options]",
    .description =
        "Checks that the model and the samples fit, and writes a search of the bits of all "
        "tensors in YAML, with a bound on the size halfway between 8 and 4 bits. The file is "
        "for you to edit. A file that exists is not replaced.",
    .examples = "  mscgym init model.onnx --inputs inputs.npz\n"
                "  mscgym init model.onnx --inputs inputs.npz --labels labels.npy --time 30m\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct init_values),
    .run = cmd_init,
};
