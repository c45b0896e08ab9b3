#include "cli/cli.h"

#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/scratch.h"
#include "base/str.h"
#include "base/table.h"
#include "cli/table.h"
#include "pipeline/delivery.h"
#include "model/latency.h"
#include "model/runtime_samples.h"
#include "tools/runtime.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct bench_values {
    struct msc_cli_common common;
    struct msc_cli_list models;
    const char *runtime, *input;
    int64_t rounds, batch;
};

#define BENCH(member) offsetof(struct bench_values, member)
#define OWN_RUNTIME "cpu"
#define DEFAULT_ROUNDS 20
#define MAX_ROUNDS 100000

// The command does not set uses_models, because other runtimes have neither --device nor --memory.
static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "ONNX; for cpu also MSCGraph text or JSON; ratios are relative to the first model",
     .offset = BENCH(models),
     .is_positional = true,
     .is_required = true},
    {.name = "runtime",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names =
         "onnxruntime|openvino|litert|tvm|onnxruntime-web|onnxruntime-web-chromium|onnxruntime-"
         "webgpu|cpu",
     .help = "onnxruntime (the default), openvino, litert, tvm, onnxruntime-web, "
             "onnxruntime-web-chromium, "
             "onnxruntime-webgpu, or cpu, the kernels of mscgym",
     .offset = BENCH(runtime)},
    {.name = "input",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help =
         "samples for the inputs: a .npz, a .npy, a folder of images and so on (default: random "
         "numbers)",
     .offset = BENCH(input)},
    {.name = "batch",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "run N samples together, if the model takes any number (default: 1)",
     .offset = BENCH(batch)},
    {.name = "rounds",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "number of rounds; each runs all models once (default: 20)",
     .offset = BENCH(rounds)},
    {.name = "threads",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "use N threads in a run (default: one per processor)",
     .offset = BENCH(common.threads)},
    {.name = "bind",
     .argument = "SYMBOL=N",
     .type = MSC_CLI_LIST,
     .help = "set an open length of random inputs (default: 1); may be repeated",
     .offset = BENCH(common.bind)},
    {0},
};

// Measurements, and the runtime and processor that they were made with.
struct bench {
    const struct bench_values *values;
    const char *runtime;
    const char *version;
    const char *processor; // NULL for the kernels of mscgym: their version names it
    int n_threads;
    struct msc_latency latency;
    struct msc_quartiles *times, *ratios; // [n_models]
    uint64_t *file_bytes;                 // [n_models]
};

// ---- Measuring --------------------------------------------------------------------------------

static struct msc_model_options model_options(const struct bench *b,
                                              const struct msc_cli_call *call) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.device = OWN_RUNTIME;
    o.n_threads = b->n_threads;
    o.is_single = true;
    o.keeps_types = true;
    o.log = &call->console->log;
    o.plugins = b->values->common.operators.items;
    o.n_plugins = b->values->common.operators.n;
    return o;
}

// A runtime reads a .npz by itself. Samples of other forms are read for the first model and written
// as a .npz to the scratch.
static enum msc_status give_samples(struct msc_runtime_job *job, struct bench *b,
                                    struct msc_scratch *scratch, const struct msc_cli_call *call) {
    const struct bench_values *v = b->values;
    struct msc_model_options o = model_options(b, call);
    struct msc_runtime_samples samples = {0};
    struct msc_model *model = NULL;
    job->inputs = v->input;
    if (!v->input || msc_path_ends_in(v->input, ".npz")) {
        return MSC_OK;
    }
    o.bindings = job->bindings;
    o.n_bindings = job->n_bindings;
    MSC_TRY(msc_scratch_make(scratch, call->arena));
    MSC_TRY(msc_model_open(&model, v->models.items[0], &o));
    enum msc_status status = msc_model_load_first(model, v->input, v->batch);
    if (status == MSC_OK) {
        status = msc_runtime_samples_write_first(&samples, call->arena, model->dataset,
                                                 model->specs, scratch->path, "samples");
    }
    msc_model_close(model);
    job->inputs = status == MSC_OK ? samples.paths[0] : NULL;
    return status;
}

static enum msc_status bench_runtime(struct bench *b, const struct msc_cli_call *call) {
    const struct bench_values *v = b->values;
    const struct msc_runtime_options o = MSC_RUNTIME_OPTIONS_INIT;
    struct msc_runtime_job job = MSC_RUNTIME_JOB_INIT;
    const struct msc_runtime_found *found;
    struct msc_runtime *runtime = NULL;
    struct msc_scratch scratch = {0};
    enum msc_status status;
    MSC_TRY(msc_cli_bindings(&job.bindings, &job.n_bindings, &v->common.bind, call->arena));
    MSC_TRY(msc_runtime_start(&runtime, &o));
    status = msc_runtime_find(&found, runtime, b->runtime);
    if (status == MSC_E_INVALID) {
        status = MSC_FAIL(status, "%s, and " OWN_RUNTIME ", the kernels of mscgym",
                          msc_status_message());
    }
    MSC_TRY_OUT(status);
    b->version = msc_arena_strdup(call->arena, found->version);
    b->processor = msc_arena_strdup(call->arena, msc_runtime_host(runtime)->processor);
    MSC_TRY_OUT(MSC_ALLOCATED(b->version && b->processor));
    job.runtime = b->runtime;
    job.models = v->models.items;
    job.n_models = v->models.n;
    MSC_TRY_OUT(give_samples(&job, b, &scratch, call));
    job.batch = v->batch;
    job.n_threads = b->n_threads;
    job.n_rounds = v->rounds;
    status = msc_runtime_latency(runtime, &job, &b->latency);
out:
    msc_runtime_stop(runtime);
    msc_scratch_remove(&scratch);
    return status;
}

static enum msc_status bench_own(struct bench *b, const struct msc_cli_call *call) {
    const struct bench_values *v = b->values;
    struct msc_model_options o = model_options(b, call);
    struct msc_model **models = msc_arena_array(call->arena, v->models.n, sizeof *models);
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(models));
    memset(models, 0, v->models.n * sizeof models[0]);
    MSC_TRY(msc_cli_bindings(&o.bindings, &o.n_bindings, &v->common.bind, call->arena));
    for (size_t i = 0; i < v->models.n; i++) {
        MSC_TRY_OUT(msc_model_open(&models[i], v->models.items[i], &o));
        MSC_TRY_OUT(msc_model_load_first(models[i], v->input, v->batch));
    }
    b->version = msc_arena_strdup(call->arena, msc_model_numerics(models[0]));
    MSC_TRY_OUT(MSC_ALLOCATED(b->version));
    status = msc_model_latency(&b->latency, models, v->models.n, (size_t)v->rounds);
out:
    for (size_t i = 0; i < v->models.n; i++) {
        msc_model_close(models[i]);
    }
    return status;
}

static enum msc_status bench_sum_up(struct bench *b) {
    for (size_t i = 0; i < b->latency.n_models; i++) {
        MSC_TRY(msc_latency_quartiles(&b->times[i], &b->latency, i));
        MSC_TRY(msc_latency_ratios(&b->ratios[i], &b->latency, i, 0));
    }
    return MSC_OK;
}

// ---- Printing ---------------------------------------------------------------------------------

static void add_cells(struct msc_table *table, const struct msc_quartiles *q, int digits) {
    char cell[96];
    snprintf(cell, sizeof cell, "%.*f", digits, q->median);
    msc_table_add(table, cell);
    snprintf(cell, sizeof cell, "%.*f to %.*f", digits, q->lower, digits, q->upper);
    msc_table_add(table, cell);
}

static void write_models(struct msc_str *out, const struct bench *b) {
    static const char *const head[] = {"model", "us",        "quartiles",
                                       "ratio", "quartiles", "file bytes"};
    struct msc_table table = {.n_columns = sizeof head / sizeof head[0]};
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (size_t i = 0; i < b->latency.n_models; i++) {
        struct msc_str name = {0};
        char cell[32];
        msc_cli_write_short(&name, b->values->models.items[i], MSC_CLI_NAME_COLUMNS);
        table.failed |= name.failed;
        msc_table_add(&table, msc_str_text(&name));
        msc_str_finish(&name);
        add_cells(&table, &b->times[i], b->times[i].median < 1000.0 ? 1 : 0);
        add_cells(&table, &b->ratios[i], 3);
        snprintf(cell, sizeof cell, "%" PRIu64, b->file_bytes[i]);
        msc_table_add(&table, cell);
    }
    msc_table_write(out, &table, msc_cli_terminal_columns());
    msc_table_finish(&table);
}

static enum msc_status print_bench(const struct bench *b) {
    struct msc_str text = {0};
    msc_str_append(&text, b->processor ? b->runtime : "the kernels of mscgym,");
    msc_str_printf(&text, " %s%s%s, %d thread%s, %zu rounds\n", b->version,
                   b->processor ? ", " : "", b->processor ? b->processor : "", b->n_threads,
                   b->n_threads == 1 ? "" : "s", b->latency.n_rounds);
    write_models(&text, b);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status add_quartiles(cJSON *object, const char *key,
                                     const struct msc_quartiles *q) {
    cJSON *json = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, key, json));
    MSC_TRY(msc_json_add_number(json, "lower", q->lower));
    MSC_TRY(msc_json_add_number(json, "median", q->median));
    return msc_json_add_number(json, "upper", q->upper);
}

static enum msc_status add_model(cJSON *list, const struct bench *b, size_t i) {
    cJSON *json = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, json));
    MSC_TRY(msc_json_add_text(json, "model", b->values->models.items[i]));
    MSC_TRY(msc_json_add_number(json, "file_bytes", (double)b->file_bytes[i]));
    MSC_TRY(msc_json_add_number(json, "runs", (double)b->latency.runs[i]));
    MSC_TRY(add_quartiles(json, "us", &b->times[i]));
    MSC_TRY(add_quartiles(json, "ratio", &b->ratios[i]));
    cJSON *rounds = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "us_by_round", rounds));
    for (size_t r = 0; r < b->latency.n_rounds; r++) {
        double us = b->latency.us[i * b->latency.n_rounds + r];
        MSC_TRY(msc_json_push(rounds, cJSON_CreateNumber(us)));
    }
    return MSC_OK;
}

static enum msc_status print_bench_json(const struct bench *b) {
    cJSON *json = cJSON_CreateObject();
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_json_add_text(json, "runtime", b->runtime));
    MSC_TRY_OUT(msc_json_add_text(json, "version", b->version));
    if (b->processor) {
        MSC_TRY_OUT(msc_json_add_text(json, "processor", b->processor));
    }
    MSC_TRY_OUT(msc_json_add_number(json, "threads", b->n_threads));
    MSC_TRY_OUT(msc_json_add_number(json, "rounds", (double)b->latency.n_rounds));
    for (size_t i = 0; i < b->latency.n_models; i++) {
        MSC_TRY_OUT(add_model(list, b, i));
    }
    status = msc_json_add(json, "models", list);
    list = NULL;
    MSC_TRY_OUT(status);
    status = msc_cli_print_json(json);
out:
    cJSON_Delete(list);
    cJSON_Delete(json);
    return status;
}

// ---- The command ------------------------------------------------------------------------------

static enum msc_status read_count(int64_t *value, const char *name, int64_t most,
                                  int64_t if_absent) {
    *value = *value < 0 ? if_absent : *value;
    return *value >= 1 && *value <= most
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "bench: --%s is %" PRId64 ", expected a whole number of 1 to %" PRId64,
                          name, *value, most);
}

static enum msc_status bench_models(struct bench *b, struct bench_values *v,
                                    const struct msc_cli_call *call) {
    size_t n = v->models.n;
    MSC_TRY(read_count(&v->rounds, "rounds", MAX_ROUNDS, DEFAULT_ROUNDS));
    MSC_TRY(read_count(&v->batch, "batch", INT_MAX, 1));
    MSC_TRY(read_count(&v->common.threads, "threads", INT_MAX, msc_machine_n_threads()));
    b->runtime = v->runtime ? v->runtime : "onnxruntime";
    b->n_threads = (int)v->common.threads;
    b->times = msc_arena_array(call->arena, n, sizeof b->times[0]);
    b->ratios = msc_arena_array(call->arena, n, sizeof b->ratios[0]);
    b->file_bytes = msc_arena_array(call->arena, n, sizeof b->file_bytes[0]);
    MSC_TRY(MSC_ALLOCATED(b->times && b->ratios && b->file_bytes));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_model_file_bytes(&b->file_bytes[i], v->models.items[i], call->arena));
    }
    MSC_TRY(strcmp(b->runtime, OWN_RUNTIME) == 0 ? bench_own(b, call) : bench_runtime(b, call));
    MSC_TRY(bench_sum_up(b));
    return v->common.json ? print_bench_json(b) : print_bench(b);
}

static int cmd_bench(const struct msc_cli_call *call, void *payload) {
    struct bench b = {.values = payload};
    enum msc_status status = bench_models(&b, payload, call);
    msc_latency_finish(&b.latency);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_bench = {
    .name = "bench",
    .summary = "measures the latency of models side by side, in their runtime",
    .usage = "MODEL... [--runtime NAME] [options]",
    .description =
        "In each round all models run one after another, and each round gives one ratio per model. "
        "Prints median and quartiles of the rounds and of the ratios, and the bytes of the files. "
        "All but cpu run in the program mscgym-runtime, whose Python must have them. litert takes "
        ".tflite files. "
        "MSCGYM_RUNTIME names another program, such as \"/my/python /usr/bin/mscgym-runtime\".",
    .examples = "  mscgym bench digits.onnx msc_workspace/digits.onnx\n"
                "  mscgym bench digits.onnx small.onnx --threads 1 --input calibration.npz\n"
                "  mscgym bench digits.onnx --runtime cpu --rounds 100 --json\n",
    .options = options,
    .values_size = sizeof(struct bench_values),
    .run = cmd_bench,
};
