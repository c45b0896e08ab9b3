#include "cli/searching.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/array_file.h"
#include "data/npy.h"
#include "env/env.h"
#include "graph/graph.h"
#include "graph/onnx/load.h"
#include "model/operators.h"
#include "graph/passes/bind.h"
#include "graph/wide.h"
#include "model/gguf_export.h"
#include "model/load_check.h"
#include "model/output.h"
#include "pipeline/processor_parts.h"
#include "pipeline/record_plan.h"
#include "model/strategies.h"
#include "records/kept.h"
#include "results/optuna.h"
#include "results/report.h"
#include "results/tensorboard.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct export_values {
    struct msc_cli_common common;
    const char *record, *output, *model, *weights, *strategy, *save_strategy, *dataset;
    const char *tensor_types, *optuna, *tensorboard;
    bool recalibrate, allow_plugins;
    int64_t trial;
};

#define EXPORT(member) offsetof(struct export_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record of a search",
     .offset = EXPORT(record),
     .is_positional = true},
    {.name = "trial",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "export this trial (default: the winner)",
     .offset = EXPORT(trial)},
    {.name = "model",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "export this model in place of a record's",
     .offset = EXPORT(model)},
    {.name = "weights",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "replace the model's weights with the arrays of the same names in a .npz or "
             ".safetensors file",
     .offset = EXPORT(weights)},
    {.name = "strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "with --model: compress the model by this strategy file",
     .details = "A strategy that was found with other weights is refused without --recalibrate.",
     .offset = EXPORT(strategy)},
    {.name = "recalibrate",
     .type = MSC_CLI_FLAG,
     .help = "keep the strategy's choices, and compute its scales for the weights of this model",
     .details = "The distill loss is printed with the old and with the new scales.",
     .offset = EXPORT(recalibrate)},
    {.name = "dataset",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "with --recalibrate: inputs for the scales, or a configuration that has a dataset",
     .details = "Inputs are a .npz, .npy, .safetensors or .jsonl file, or a folder of images.",
     .offset = EXPORT(dataset)},
    {.name = "save-strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "also write a strategy file: the trial's, or the given one with the new scales",
     .offset = EXPORT(save_strategy)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX file to write, .tflite for LiteRT, or .gguf for a model in GGUF",
     .offset = EXPORT(output)},
    {.name = "tensor-types",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "write the types of a plan for a model in GGUF, for llama-quantize --tensor-type-file",
     .details = "The number of bytes of all tensors is printed.",
     .offset = EXPORT(tensor_types)},
    {.name = "optuna",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "write all trials of the record as a journal of Optuna",
     .details = "Optuna's JournalStorage reads it.",
     .offset = EXPORT(optuna)},
    {.name = "tensorboard",
     .argument = "DIR",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "write all trials of the record as a run of TensorBoard, DIR/NAME",
     .offset = EXPORT(tensorboard)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust the record: libraries and programs that it names may run",
     .offset = EXPORT(allow_plugins)},
    {0},
};

// Prints the metrics of the exported plan, and how much differences in rounding may change its
// loss.
static enum msc_status print_reevaluated(struct msc_env *env, const struct msc_trial *trial) {
    cJSON *json = NULL;
    unsigned what = MSC_REEVALUATE_VALIDATION | MSC_REEVALUATE_NOISE;
    MSC_TRY(msc_env_reevaluate(env, trial->proposal.choices, what, &json));
    enum msc_status status = msc_json_add_number(json, "trial", (double)trial->id);
    if (status == MSC_OK) {
        status = msc_cli_print_json(json);
    }
    cJSON_Delete(json);
    return status;
}

static bool writes_gguf(const struct export_values *v) {
    return v->output && msc_path_ends_in(v->output, ".gguf");
}

// Writes the GGUF file and the list of types.
static enum msc_status write_gguf(const struct export_values *v, const struct msc_graph *graph,
                                  const struct msc_strategy *strategy, const char *model) {
    const struct msc_gguf_export e = {.graph = graph,
                                      .strategy = strategy,
                                      .model = model,
                                      .output = writes_gguf(v) ? v->output : NULL,
                                      .types = v->tensor_types};
    struct msc_str text = {0};
    uint64_t n_bytes;
    if (!msc_path_ends_in(model, ".gguf")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: GGUF files and lists of tensor types are written for models in GGUF, "
                        "whose tensors have the names that llama.cpp knows",
                        model);
    }
    MSC_TRY(msc_gguf_export(&n_bytes, &e));
    msc_str_printf(&text, "tensors: %" PRIu64 " bytes\n", n_bytes);
    enum msc_status status = v->common.json ? MSC_OK : msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// Writes all files of a plan.
static enum msc_status write_plan(const struct export_values *v, const struct msc_graph *graph,
                                  const struct msc_strategy *strategy, const char *model,
                                  const struct msc_record *record, int64_t trial) {
    bool is_onnx = v->output && !writes_gguf(v);
    if (writes_gguf(v) || v->tensor_types) {
        MSC_TRY(write_gguf(v, graph, strategy, model));
    }
    MSC_TRY(is_onnx ? msc_export_model(graph, strategy, v->output, record, trial) : MSC_OK);
    return is_onnx && strategy
               ? msc_load_check(v->output, model, msc_strategy_scheme(strategy).target)
               : MSC_OK;
}

static enum msc_status export_claim_outputs(struct msc_file_set *files,
                                            const struct export_values *v) {
    MSC_TRY(msc_output_claim(files, writes_gguf(v) ? MSC_OUTPUT_GGUF : MSC_OUTPUT_MODEL, "--output",
                             v->output));
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_TYPES, "--tensor-types", v->tensor_types));
    return msc_output_claim(files, MSC_OUTPUT_STRATEGY, "--save-strategy", v->save_strategy);
}

static enum msc_status export_record(const struct msc_cli_call *call,
                                     const struct export_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_record_plan plan = {0};
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_cli_fill_options(&o, call, &v->common));
    o.allow_plugins = v->allow_plugins;
    MSC_TRY_OUT(msc_record_plan_open(&plan, v->record, v->trial, &o));
    MSC_TRY_OUT(msc_processor_files(&files, plan.processor));
    MSC_TRY_OUT(export_claim_outputs(&files, v));
    MSC_TRY_OUT(msc_record_plan_make(&plan));
    const struct msc_graph *graph = msc_processor_graph(plan.processor);
    if (v->save_strategy) {
        MSC_TRY_OUT(msc_strategy_save(plan.strategy, graph, v->save_strategy));
    }
    MSC_TRY_OUT(write_plan(v, graph, plan.strategy, msc_processor_config(plan.processor)->model,
                           plan.record, plan.trial.id));
    status =
        v->common.json ? print_reevaluated(msc_processor_env(plan.processor), &plan.trial) : MSC_OK;
out:
    msc_record_plan_close(&plan);
    msc_file_set_finish(&files);
    return status;
}

// Inputs that are bound decide which branches the model has. In the exported file, symbols remain
// symbolic, as in the export of a record.
static enum msc_status load_model(struct msc_graph **out, const struct msc_cli_call *call,
                                  const struct export_values *v,
                                  const struct msc_array_list *weights) {
    const struct msc_binding *bindings;
    size_t n;
    bool is_bound;
    MSC_TRY(msc_cli_bindings(&bindings, &n, &v->common.bind, call->arena));
    struct msc_operators *operators;
    MSC_TRY(msc_operators_open(&operators, v->common.operators.items, v->common.operators.n));
    enum msc_status status =
        msc_graph_load_weights(out, &is_bound, v->model, bindings, n, weights, operators);
    msc_operators_close(operators);
    MSC_TRY(status);
    for (size_t i = 0; !is_bound && i < n; i++) {
        if (msc_graph_find_prim(*out, bindings[i].symbol) == MSC_NO_ID) {
            return msc_graph_fail_binding(*out, v->model, bindings[i].symbol);
        }
    }
    return MSC_OK;
}

// Finds the input that probably decides a branch: the first integer or boolean input of one
// element. NULL: there is none, or the model has no branches.
static const char *deciding_input(const struct msc_graph *g) {
    bool has_branches = false;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        has_branches = has_branches || msc_graph_joint(g, i)->op == MSC_OP_IF;
    }
    for (int32_t i = 0; has_branches && i < msc_graph_n_inputs(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        bool is_whole = msc_dtype_is_integer(t->dtype) || t->dtype == MSC_DTYPE_BOOL;
        if (is_whole && msc_tensor_n_elements(t) == 1) {
            return t->alias;
        }
    }
    return NULL;
}

// ---- Scales for other weights -----------------------------------------------------------------

static enum msc_status print_losses(const struct export_values *v,
                                    const struct msc_recalibration *losses, int64_t n_samples) {
    struct msc_str text = {0};
    if (!v->common.json) {
        msc_str_append(&text, "distill_loss: ");
        if (isnan(losses->loss_before)) {
            msc_str_append(&text, "unknown with the old scales, which have other shapes, ");
        } else {
            msc_str_double(&text, losses->loss_before);
            msc_str_append(&text, " with the old scales, ");
        }
        msc_str_double(&text, losses->loss_after);
        msc_str_printf(&text, " with the new ones, on %lld samples\n", (long long)n_samples);
        enum msc_status status = msc_cli_print_str(&text);
        msc_str_finish(&text);
        return status;
    }
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = isnan(losses->loss_before)
                                 ? MSC_OK
                                 : msc_json_add_number(json, "loss_before", losses->loss_before);
    if (status == MSC_OK) {
        status = msc_json_add_number(json, "loss_after", losses->loss_after);
    }
    if (status == MSC_OK) {
        status = msc_json_add_number(json, "samples", (double)n_samples);
    }
    if (status == MSC_OK) {
        status = msc_cli_print_json(json);
    }
    cJSON_Delete(json);
    return status;
}

static enum msc_status export_open_model(struct msc_model **out, const struct msc_cli_call *call,
                                         const struct export_values *v,
                                         const struct msc_array_list *weights,
                                         const struct msc_config *config) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.weights = weights;
    o.device = config ? config->device : o.device;
    MSC_TRY(msc_cli_fill_model_options(&o, call, &v->common));
    if (o.n_bindings == 0 && config) {
        o.bindings = config->bindings;
        o.n_bindings = config->n_bindings;
    }
    return msc_model_open(out, v->model, &o);
}

static enum msc_status cmd_export_recalibrate(struct msc_strategy *strategy,
                                              const struct msc_cli_call *call,
                                              const struct export_values *v,
                                              const struct msc_array_list *weights) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    struct msc_config *config = NULL;
    struct msc_model *model = NULL;
    struct msc_recalibration losses;
    enum msc_status status = MSC_OK;
    dataset.options.inputs = v->dataset;
    dataset.options.batch = 0; // taken from the model's shapes
    if (msc_config_is_path(v->dataset)) {
        MSC_TRY_OUT(
            msc_config_load(&config, v->dataset,
                            v->allow_plugins ? MSC_CONFIG_CODE_ALLOWED : MSC_CONFIG_CODE_IDLE));
        dataset = config->dataset;
    }
    if (!dataset.options.inputs) {
        status = MSC_FAIL(MSC_E_INVALID, "%s: the configuration has no dataset", v->dataset);
        goto out;
    }
    MSC_TRY_OUT(export_open_model(&model, call, v, weights, config));
    MSC_TRY_OUT(msc_model_load_dataset(model, &dataset));
    MSC_TRY_OUT(msc_strategy_refit(&losses, strategy, model));
    status = print_losses(v, &losses, msc_dataset_n_samples(model->dataset));
out:
    msc_model_close(model);
    msc_config_destroy(config);
    return status;
}

// ---- Models -----------------------------------------------------------------------------------

static enum msc_status export_strategy(const struct msc_cli_call *call,
                                       const struct export_values *v) {
    struct msc_graph *loaded = NULL, *split = NULL, *graph = NULL;
    struct msc_strategy *strategy = NULL;
    struct msc_array_list weights = {0};
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_output_read_model(&files, v->model));
    MSC_TRY_OUT(msc_file_set_read(&files, "the strategy", v->strategy));
    MSC_TRY_OUT(msc_file_set_read(&files, "the weights", v->weights));
    MSC_TRY_OUT(msc_file_set_read(&files, "the dataset", v->dataset));
    MSC_TRY_OUT(export_claim_outputs(&files, v));
    if (v->weights) {
        MSC_TRY_OUT(msc_array_file_load(&weights, v->weights));
    }
    MSC_TRY_OUT(load_model(&loaded, call, v, v->weights ? &weights : NULL));
    MSC_TRY_OUT(msc_graph_split(&split, loaded));
    MSC_TRY_OUT(msc_graph_widen(&graph, split));
    if (v->strategy) {
        MSC_TRY_OUT(msc_strategy_load(&strategy, v->strategy));
    }
    if (v->recalibrate) {
        MSC_TRY_OUT(cmd_export_recalibrate(strategy, call, v, v->weights ? &weights : NULL));
    }
    if (v->save_strategy) {
        MSC_TRY_OUT(msc_strategy_save(strategy, graph, v->save_strategy));
    }
    status = write_plan(v, graph, strategy, v->model, NULL, -1);
    const char *decides = deciding_input(graph);
    if (status == MSC_E_STATE && strategy && decides) {
        status = msc_status_prefix(
            status, "set the input that selects the branch, such as --bind %s=1", decides);
    }
out:
    msc_array_list_finish(&weights);
    msc_strategy_destroy(strategy);
    msc_graph_destroy(graph);
    msc_graph_destroy(split);
    msc_graph_destroy(loaded);
    msc_file_set_finish(&files);
    return status;
}

// ---- Trials -----------------------------------------------------------------------------------

static enum msc_status export_tensorboard(struct msc_record *record, const char *folder,
                                          const struct msc_log *log) {
    struct msc_tensorboard *board = NULL;
    struct msc_str text = {0};
    cJSON *kept = NULL, *report = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_kept_load(&kept, record, log));
    MSC_TRY_OUT(msc_report_create(&report, &(struct msc_report_options){.record = record}));
    MSC_TRY_OUT(msc_kept_add(report, kept));
    MSC_TRY_OUT(msc_report_text(&text, report));
    MSC_TRY_OUT(msc_tensorboard_open(&board, folder, record));
    MSC_TRY_OUT(msc_tensorboard_follow(board, record));
    status = msc_tensorboard_tell(board, record, "result", msc_str_text(&text));
out:
    msc_tensorboard_close(board);
    msc_str_finish(&text);
    cJSON_Delete(report);
    cJSON_Delete(kept);
    return status;
}

// Writes the trials for other programs that show searches. Needs neither model nor samples.
static enum msc_status export_trials(const struct msc_cli_call *call,
                                     const struct export_values *v) {
    struct msc_file_set files = {0};
    struct msc_record *record = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_file_set_read(&files, "the record", v->record));
    MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_JOURNAL, "--optuna", v->optuna));
    MSC_TRY_OUT(msc_record_open(&record, v->record, MSC_RECORD_READ, &call->console->log));
    if (v->optuna) {
        MSC_TRY_OUT(msc_optuna_save(record, v->optuna));
    }
    if (v->tensorboard) {
        status = export_tensorboard(record, v->tensorboard, &call->console->log);
    }
out:
    msc_record_close(record);
    msc_file_set_finish(&files);
    return status;
}

// ---- The commands -----------------------------------------------------------------------------

static enum msc_status export_check(const struct export_values *v) {
    bool has_trials = v->optuna || v->tensorboard, has_plan = v->output || v->tensor_types;
    if (!has_plan && !has_trials) {
        return MSC_FAIL(MSC_E_INVALID, "export: --output is missing: -o MODEL.onnx");
    }
    if (v->weights && (writes_gguf(v) || v->tensor_types)) {
        return MSC_FAIL(MSC_E_INVALID, "export: --weights needs an output in ONNX");
    }
    if (has_trials && (!v->record || (!has_plan && (v->trial >= 0 || v->save_strategy)))) {
        return MSC_FAIL(MSC_E_INVALID,
                        "export: --optuna and --tensorboard need a RECORD, because they write all "
                        "of its trials");
    }
    if (!v->record == !v->model) {
        return MSC_FAIL(MSC_E_INVALID, "export: expected either a RECORD or --model FILE");
    }
    if ((v->record && (v->strategy || v->weights)) ||
        (v->model && (v->trial >= 0 || (v->save_strategy && !v->recalibrate)))) {
        return MSC_FAIL(MSC_E_INVALID, "export: --strategy and --weights need --model; --trial and "
                                       "--save-strategy need a RECORD");
    }
    if (v->recalibrate != (v->dataset != NULL) || (v->recalibrate && !v->strategy)) {
        return MSC_FAIL(MSC_E_INVALID, "export: --recalibrate needs --model, --strategy and "
                                       "--dataset FILE");
    }
    return MSC_OK;
}

static int cmd_export(const struct msc_cli_call *call, void *payload) {
    const struct export_values *v = payload;
    enum msc_status status = export_check(v);
    if (status == MSC_OK && (v->optuna || v->tensorboard)) {
        status = export_trials(call, v);
    }
    if (status == MSC_OK && (v->output || v->tensor_types)) {
        status = v->record ? export_record(call, v) : export_strategy(call, v);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_export = {
    .name = "export",
    .summary = "writes the compressed model, or trials for other programs",
    .usage = "RECORD -o FILE [options]\nRECORD --tensor-types FILE [options]\n--model FILE "
             "--strategy FILE -o FILE [options]\nRECORD "
             "--optuna FILE | --tensorboard DIR",
    .examples =
        "  mscgym export msc_workspace/digits.jsonl -o small.onnx\n"
        "  mscgym export msc_workspace/digits.jsonl --trial 17 -o small.onnx\n"
        "  mscgym export msc_workspace/quantize_0.jsonl -o small.gguf --tensor-types types.txt\n"
        "  mscgym export msc_workspace/digits.jsonl --optuna digits.journal\n"
        "  mscgym export msc_workspace/digits.jsonl --tensorboard runs\n"
        "  mscgym export --model digits.onnx --strategy msc_workspace/msc_quantize.json \\\n"
        "      -o small.onnx\n"
        "  mscgym export --model retrained.onnx --strategy msc_quantize.json --recalibrate \\\n"
        "      --dataset inputs.npz --save-strategy retrained.json -o small.onnx\n"
        "  mscgym export --model digits.onnx --weights retrained.npz --strategy msc_quantize.json "
        "\\\n"
        "      --recalibrate --dataset inputs.npz -o small.onnx\n"
        "  mscgym export --model vad.onnx --bind sr=16000 --strategy msc_quantize.json -o "
        "small.onnx\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct export_values),
    .run = cmd_export,
};
