// Every key of the configuration, section by section.
#include "pipeline/config_internal.h"

#include "base/str.h"
#include "search/watchdog.h"
#include "tools/command.h"

#include <math.h>

#define TOP(member) offsetof(struct msc_config_top, member)
#define SECTION(member) offsetof(struct msc_config_section, member)
#define GYM(member) offsetof(struct msc_config_gym, member)
#define BUDGET(member) offsetof(struct msc_config_budget, member)
#define DATA(member) offsetof(struct msc_config_data, member)
#define IMAGE(member) offsetof(struct msc_config_image, member)

#define MAX_COUNT 9007199254740991.0

const struct msc_param msc_config__top_params[] = {
    {.name = "workspace",
     .help = "folder of all outputs, relative to the configuration",
     .offset = TOP(workspace),
     .type = MSC_PARAM_TEXT,
     .text = "msc_workspace"},
    {.name = "verbose",
     .help = "what is told: runtime is info",
     .offset = TOP(verbose),
     .type = MSC_PARAM_ENUM,
     .text = "info",
     .names = MSC_LOG_LEVEL_NAMES},
    {.name = "log_file",
     .help = "file in the workspace that the same is appended to; empty: none",
     .offset = TOP(log_file),
     .type = MSC_PARAM_TEXT,
     .text = "MSC_LOG"},
    {.name = "log_every",
     .help = "time between lines on how a search goes, there and off a terminal; 0: none",
     .offset = TOP(log_seconds),
     .type = MSC_PARAM_DURATION,
     .number = 300,
     .min = 0,
     .max = 1e9},
    {.name = "device",
     .help = "what computes: auto, cpu, vulkan, vulkan:N, vulkan:uuid=UUID, vulkan:pci=ADDRESS",
     .offset = TOP(device),
     .type = MSC_PARAM_TEXT,
     .text = "auto"},
    {.name = "model",
     .help = "network: an ONNX file, or MSCGraph JSON beside its safetensors",
     .offset = TOP(model),
     .type = MSC_PARAM_TEXT},
    {.name = "bind",
     .help = "values of symbolic dimensions: {\"H\": 224}",
     .offset = TOP(bind),
     .type = MSC_PARAM_JSON},
    {.name = "outputs",
     .help = "tensors that searches compare, behind which nothing is searched: [\"scores\"]",
     .offset = TOP(outputs),
     .type = MSC_PARAM_JSON},
    {.name = "dataset",
     .help = "calibration samples",
     .offset = TOP(dataset),
     .type = MSC_PARAM_JSON},
    {.name = "prepare",
     .help =
         "{}: model and dataset are looked at; each stage that is named is recorded and done once",
     .offset = TOP(prepare),
     .type = MSC_PARAM_JSON},
    {.name = "parse",
     .help = "the model as MSCGraph",
     .offset = TOP(parse),
     .type = MSC_PARAM_JSON},
    {.name = "baseline",
     .help = "check of the backend against the reference kernels",
     .offset = TOP(baseline),
     .type = MSC_PARAM_JSON},
    {.name = "optimize",
     .help = "prune, joint, quantize, distill and track together",
     .offset = TOP(optimize),
     .type = MSC_PARAM_JSON},
    {.name = "prune", .help = "which channels go", .offset = TOP(prune), .type = MSC_PARAM_JSON},
    {.name = "joint",
     .help = "which channels go and how many bits the rest gets, in one search",
     .offset = TOP(joint),
     .type = MSC_PARAM_JSON},
    {.name = "quantize",
     .help = "how many bits each tensor gets",
     .offset = TOP(quantize),
     .type = MSC_PARAM_JSON},
    {.name = "distill",
     .help = "better weights for what the last search of quantize has found, as there",
     .offset = TOP(distill),
     .type = MSC_PARAM_JSON},
    {.name = "track",
     .help = "how far off each tensor is in the end, and which joint goes wrong",
     .offset = TOP(track),
     .type = MSC_PARAM_JSON},
    {.name = "gym", .help = "searches without a tool", .offset = TOP(gym), .type = MSC_PARAM_JSON},
    {.name = "compile",
     .help = "export and profile together",
     .offset = TOP(compile),
     .type = MSC_PARAM_JSON},
    {.name = "export",
     .help = "the compressed model as ONNX, which is written in any case",
     .offset = TOP(export_model),
     .type = MSC_PARAM_JSON},
    {.name = "profile",
     .help = "latency of the winner, printed at the end",
     .offset = TOP(profile),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__section_params[] = {
    {.name = "strategy_file",
     .help = "file in the workspace for the edits found; one that is there is applied where `gym` "
             "lists nothing; default msc_<section>.json",
     .offset = SECTION(strategy_file),
     .type = MSC_PARAM_TEXT},
    {.name = "target",
     .help = "runtime that the model is for: onnxruntime, onnxruntime_avx2, openvino, tensorrt, "
             "tflite, or "
             "generic",
     .offset = SECTION(target),
     .type = MSC_PARAM_TEXT,
     .text = "onnxruntime"},
    {.name = "runtime",
     .help =
         "what the end of a search measures there, where it is installed: {threads, rounds}, or "
         "false: nothing",
     .offset = SECTION(runtime),
     .type = MSC_PARAM_JSON},
    {.name = "gym",
     .help = "searches, in turn; without any, 8 bits or a density of 0.8 everywhere are measured",
     .offset = SECTION(gym),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__runtime_params[] = {
    {.name = "threads",
     .help = "of one run",
     .offset = offsetof(struct msc_config_runtime_keys, threads),
     .type = MSC_PARAM_I64,
     .number = 1,
     .min = 1,
     .max = 1024},
    {.name = "rounds",
     .help = "rounds of latencies, each of which runs all models in turn",
     .offset = offsetof(struct msc_config_runtime_keys, rounds),
     .type = MSC_PARAM_I64,
     .number = 20,
     .min = 1,
     .max = 100000},
    {0},
};

const struct msc_param msc_config__gym_params[] = {
    {.name = "record",
     .help = "file in the workspace; default <section>_<n>.jsonl",
     .offset = GYM(record),
     .type = MSC_PARAM_TEXT},
    {.name = "env",
     .help = "environment: type (default: the section's), parameters, objectives, "
             "bounds",
     .offset = GYM(env),
     .type = MSC_PARAM_JSON},
    {.name = "agent",
     .help = "agent: type (default auto) and parameters",
     .offset = GYM(agent),
     .type = MSC_PARAM_JSON},
    {.name = "budget",
     .help = "how long the search may go (default: 500 trials if no agent is named, else no limit)",
     .offset = GYM(budget),
     .type = MSC_PARAM_JSON},
    {.name = "race",
     .help = "trials go on only while they may be the best: true, or {rungs, keep, margin}",
     .offset = GYM(race),
     .type = MSC_PARAM_JSON},
    {.name = "rerank",
     .help = "after the search its best are measured in their runtime and ordered anew: {top, "
             "command}",
     .offset = GYM(rerank),
     .type = MSC_PARAM_JSON},
    {.name = "distill",
     .help = "after that the winner's weights are improved: true, or {ridge, held_back}",
     .offset = GYM(distill),
     .type = MSC_PARAM_JSON},
    {.name = "seed",
     .help = "seed of the agent",
     .offset = GYM(seed),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 9.2e18},
    {.name = "parallel",
     .help = "trials in a round",
     .offset = GYM(parallel),
     .type = MSC_PARAM_I64,
     .number = 32,
     .min = 1,
     .max = MSC_SEARCH_MAX_PARALLEL},
    {.name = "trial_time",
     .help = "time limit of one trial; 0: none",
     .offset = GYM(trial_seconds),
     .type = MSC_PARAM_DURATION,
     .number = 0,
     .min = 0,
     .max = 1e9},
    {.name = "quiet_time",
     .help = "without a sign of life for so long, and for 100 median trials, the search process is "
             "started again; 0: never",
     .offset = GYM(quiet_seconds),
     .type = MSC_PARAM_DURATION,
     .number = MSC_WATCHDOG_DEFAULT_S,
     .min = 0,
     .max = 1e9},
    {.name = "baseline",
     .help = "what stands beside the winner: uniform plans, or also a greedy search of its own",
     .offset = GYM(baseline),
     .type = MSC_PARAM_ENUM,
     .text = "uniform",
     .names = "uniform|greedy"},
    {.name = "deliver",
     .help =
         "false: of what it finds no strategy file or model is written, and nothing is measured "
         "once more",
     .offset = GYM(deliver),
     .type = MSC_PARAM_BOOL,
     .number = 1},
    {.name = "base",
     .help = "strategy file to start from; default: what the entries before found",
     .offset = GYM(base),
     .type = MSC_PARAM_TEXT},
    {.name = "folder",
     .help = "where an agent's program runs and its paths start; default: the configuration's",
     .offset = GYM(folder),
     .type = MSC_PARAM_TEXT},
    {0},
};

const struct msc_param msc_config__rerank_params[] = {
    {.name = "top",
     .help = "so many of the best trials are measured",
     .offset = offsetof(struct msc_config_rerank, top),
     .type = MSC_PARAM_I64,
     .number = 10,
     .min = 1,
     .max = 1000},
    {.name = "command",
     .help = "a program whose number orders them: [\"./score.py\", \"{model}\"], or {argv, "
             "maximise, timeout}",
     .offset = offsetof(struct msc_config_rerank, command),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__distill_params[] = {
    {.name = "ridge",
     .help = "how firmly weights are held to what they are, a number or a list to try; default "
             "[0.5, 0.1]",
     .offset = offsetof(struct msc_config_distill, ridge),
     .type = MSC_PARAM_JSON},
    {.name = "held_back",
     .help = "share of the calibration samples that weights are judged on, not fitted to",
     .offset = offsetof(struct msc_config_distill, held_back),
     .type = MSC_PARAM_F64,
     .number = 0.125,
     .min = 0.01,
     .max = 0.9},
    {0},
};

const struct msc_param msc_config__budget_params[] = {
    {.name = "trials",
     .help = "in all, without baselines; -1: no limit",
     .offset = BUDGET(trials),
     .type = MSC_PARAM_I64,
     .number = -1,
     .min = -1,
     .max = MAX_COUNT},
    {.name = "time",
     .help = "over all launches",
     .offset = BUDGET(seconds),
     .type = MSC_PARAM_DURATION,
     .number = INFINITY,
     .min = 1e-3,
     .max = INFINITY},
    {.name = "target",
     .help = "value of the first objective that is good enough",
     .offset = BUDGET(target),
     .type = MSC_PARAM_F64,
     .number = NAN},
    {0},
};

const struct msc_param msc_config__data_params[] = {
    {.name = "inputs",
     .help = "a .npz, .npy or .safetensors file, or a folder of images",
     .offset = DATA(inputs),
     .type = MSC_PARAM_TEXT},
    {.name = "labels",
     .help = "a .npy of integers, one for each sample",
     .offset = DATA(labels),
     .type = MSC_PARAM_TEXT},
    {.name = "samples",
     .help = "take the first so many; 0: all",
     .offset = DATA(samples),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = MAX_COUNT},
    {.name = "batch",
     .help = "samples computed together; 0: by the model's shapes, with a state all",
     .offset = DATA(batch),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 65536},
    {.name = "state",
     .help = "inputs that an output feeds from sample to sample of a batch: {\"h\": \"hn\"}",
     .offset = DATA(state),
     .type = MSC_PARAM_JSON},
    {.name = "image",
     .help = "how images become inputs",
     .offset = DATA(image),
     .type = MSC_PARAM_JSON},
    {.name = "validation",
     .help = "held-out samples: {inputs, labels}, or the fraction at the end to set aside",
     .offset = DATA(validation),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__image_params[] = {
    {.name = "height",
     .help = "resized to; 0: the model's",
     .offset = IMAGE(height),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 65536},
    {.name = "width",
     .help = "resized to; 0: the model's",
     .offset = IMAGE(width),
     .type = MSC_PARAM_I64,
     .number = 0,
     .min = 0,
     .max = 65536},
    {.name = "channels",
     .help = "1, 3 or 4",
     .offset = IMAGE(channels),
     .type = MSC_PARAM_I64,
     .number = 3,
     .min = 1,
     .max = 4},
    {.name = "channels_last",
     .help = "[n, h, w, c] instead of [n, c, h, w]",
     .offset = IMAGE(channels_last),
     .type = MSC_PARAM_BOOL},
    {.name = "scale",
     .help = "pixels times this",
     .offset = IMAGE(scale),
     .type = MSC_PARAM_F64,
     .number = 1.0 / 255.0},
    {.name = "mean",
     .help = "taken off after scaling: a number for each channel",
     .offset = IMAGE(mean),
     .type = MSC_PARAM_JSON},
    {.name = "std",
     .help = "then divided by: a number for each channel",
     .offset = IMAGE(std),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__validation_params[] = {
    {.name = "inputs",
     .help = "as above",
     .offset = offsetof(struct msc_config_validation, inputs),
     .type = MSC_PARAM_TEXT},
    {.name = "labels",
     .help = "as above",
     .offset = offsetof(struct msc_config_validation, labels),
     .type = MSC_PARAM_TEXT},
    {0},
};

const struct msc_param msc_config__baseline_params[] = {
    {.name = "check_config",
     .help = "how near the outputs must be",
     .offset = offsetof(struct msc_config_check_outer, check_config),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__check_params[] = {
    {.name = "atol",
     .help = "greatest absolute difference; 0 where rtol alone is given",
     .offset = offsetof(struct msc_config_check, atol),
     .type = MSC_PARAM_F64,
     .number = 1e-3,
     .min = 0,
     .max = INFINITY},
    {.name = "rtol",
     .help = "and so much more times the reference; 0 where atol alone is given",
     .offset = offsetof(struct msc_config_check, rtol),
     .type = MSC_PARAM_F64,
     .number = 1e-3,
     .min = 0,
     .max = INFINITY},
    {0},
};

const struct msc_param msc_config__profile_params[] = {
    {.name = "repeat",
     .help = "runs to measure",
     .offset = offsetof(struct msc_config_profile, repeat),
     .type = MSC_PARAM_I64,
     .number = 100,
     .min = 1,
     .max = 1e6},
    {0},
};

const struct msc_config_tool msc_config__tools[MSC_CONFIG_TOOL_COUNT] = {
    // 8 of 10 channels, as MSC has it.
    {"prune", TOP(prune),
     "[{\"env\":{\"choices\":[{\"density\":0.8}]},\"budget\":{\"trials\":0},\"parallel\":1}]"},
    {"joint", TOP(joint),
     "[{\"env\":{\"prune\":{\"choices\":[{\"density\":0.8}]},\"choices\":[{\"bits\":8}]},"
     "\"budget\":{\"trials\":0},\"parallel\":1}]"},
    {"quantize", TOP(quantize),
     "[{\"env\":{\"choices\":[{\"bits\":8}]},\"budget\":{\"trials\":0},\"parallel\":1}]"},
};

const char *const msc_config_free_keys[] = {
    "workspace",
    "verbose",
    "log_file",
    "log_every",
    "device",
    "model",
    "baseline",
    "profile",
    "dataset.inputs",
    "dataset.labels",
    "dataset.validation*",
    "*.strategy_file",
    "prune.runtime",
    "prune.target",
    "quantize.runtime",
    "joint.runtime",
    "*.record",
    "*.base",
    "*.folder",
    "*.rerank",
    "*.distill",
    "*.trial_time",
    "*.quiet_time",
    "*.baseline",
    "*.deliver",
    NULL,
};

// For people to look up: records/race.h reads these, and what they are by default where samples are known.
static const struct msc_param race_params[] = {
    {.name = "rungs",
     .help =
         "numbers of batches after which trials are compared; default 1, 2, 4, ..., half of all",
     .type = MSC_PARAM_JSON},
    {.name = "keep",
     .help = "share of a round that goes on after a rung; default 0.5",
     .type = MSC_PARAM_JSON},
    {.name = "margin",
     .help = "a trial ends that is behind the best so far by so many standard errors; false: none; "
             "default 1.5",
     .type = MSC_PARAM_JSON},
    {0},
};

static const struct {
    const char *title;
    const struct msc_param *params;
} parts[] = {
    {"top level", msc_config__top_params},
    {"dataset", msc_config__data_params},
    {"dataset.image", msc_config__image_params},
    {"dataset.validation", msc_config__validation_params},
    {"baseline.check_config", msc_config__check_params},
    {"prune, joint and quantize", msc_config__section_params},
    {"quantize.runtime", msc_config__runtime_params},
    {"quantize.gym[N], prune.gym[N], joint.gym[N] and gym[N]", msc_config__gym_params},
    {"quantize.gym[N].race", race_params},
    {"quantize.gym[N].rerank", msc_config__rerank_params},
    {"quantize.gym[N].rerank.command and env.command", msc_command_params},
    {"quantize.gym[N].distill", msc_config__distill_params},
    {"quantize.gym[N].budget", msc_config__budget_params},
    {"profile", msc_config__profile_params},
    {"parse", msc_config__parse_params},
    {"optimize", msc_config__optimize_params},
    {"track", msc_config__track_params},
    {"compile", msc_config__compile_params},
    {"export", msc_config__export_params},
};

void msc_config_help(struct msc_str *out) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        msc_str_printf(out, "%s%s:\n", i > 0 ? "\n" : "", parts[i].title);
        msc_param_help(parts[i].params, out);
    }
}

enum msc_status msc_config_describe(struct cJSON *list) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cJSON *part = cJSON_CreateObject(), *keys = cJSON_CreateArray();
        enum msc_status status = msc_json_push(list, part);
        if (status != MSC_OK) {
            cJSON_Delete(keys);
            return status;
        }
        MSC_TRY(msc_json_add(part, "keys", keys));
        MSC_TRY(msc_json_add_text(part, "section", parts[i].title));
        MSC_TRY(msc_param_describe(parts[i].params, keys));
    }
    return MSC_OK;
}
