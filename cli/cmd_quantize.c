#include "cli/searching.h"
#include "cli/table.h"

#include "base/json.h"
#include "base/maths.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "model/export.h"
#include "pipeline/quick/quick.h"
#include "results/report_runtime.h"
#include "results/report_sameness.h"
#include "results/report_table.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct quantize_values {
    struct msc_cli_common common;
    const char *model, *inputs, *labels, *output, *save_strategy, *target, *sites, *effort;
    int64_t n_float;
    struct msc_cli_list loss_tensors, outputs, exclude;
    int64_t batch, sequence;
    const char *atol, *accuracy_drop, *loss, *imatrix;
};

#define QUANTIZE(member) offsetof(struct quantize_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text or JSON",
     .offset = QUANTIZE(model),
     .is_positional = true,
     .is_required = true},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "samples for the inputs, a few hundred: a .npz, .npy, .safetensors or .jsonl file, or "
             "a folder of images",
     .details = "A .npz has an array for each input. For a language model, a .npy or .jsonl file "
                "has token ids. All forms of dataset.inputs in a configuration are allowed.",
     .offset = QUANTIZE(inputs)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX file to write, or .tflite for LiteRT",
     .offset = QUANTIZE(output)},
    {.name = "save-strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "also write the plan as a strategy file",
     .details = "`mscgym run` and `mscgym export` compress the model again by this file.",
     .offset = QUANTIZE(save_strategy)},
    {.name = "labels",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "class of each sample; adds the accuracy to the table. next: the next token ids, "
             "which add the perplexity",
     .offset = QUANTIZE(labels)},
    {.name = "accuracy-drop",
     .argument = "X",
     .type = MSC_CLI_TEXT,
     .help = "write only a plan whose accuracy is at most X below the float model's, such as 0.01 "
             "for one point",
     .details = "It is measured on the held-back samples; the table shows its standard error.",
     .needs = "labels",
     .offset = QUANTIZE(accuracy_drop)},
    {.name = "target",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "onnxruntime|onnxruntime_avx2|onnxruntime_nbits|openvino|tensorrt|tflite|generic",
     .help = "runtime that will run the model (default: onnxruntime, or tflite if FILE ends so)",
     .offset = QUANTIZE(target)},
    {.name = "effort",
     .argument = "LEVEL",
     .type = MSC_CLI_TEXT,
     .names = "fast|default|best",
     .help =
         "how much time to spend: ranges and biases only (fast), the methods that gain most for "
         "their time (default), or all of them (best)",
     .offset = QUANTIZE(effort)},
    {.name = "sites",
     .argument = "WHICH",
     .type = MSC_CLI_TEXT,
     .names = "all|inputs",
     .help = "quantise all tensors that the runtime passes on as integers (all, the default), or "
             "only inputs of convolutions, products and the like (inputs)",
     .offset = QUANTIZE(sites)},
    {.name = "float",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help =
         "keep at most N tensors float, those that lose most at 8 bits (default: a tenth of all)",
     .details = "0: none. Twice as many float tensors must lower the loss by a quarter; "
                "bytes and bit operations may grow by at most a quarter.",
     .offset = QUANTIZE(n_float)},
    {.name = "loss-tensors",
     .argument = "NAMES",
     .type = MSC_CLI_LIST,
     .help = "tensors that the loss compares (default: the outputs, or what precedes NMS and "
             "similar operators)",
     .offset = QUANTIZE(loss_tensors)},
    {.name = "outputs",
     .argument = "NAMES",
     .type = MSC_CLI_LIST,
     .help = "tensors that the loss compares; everything they do not depend on stays float",
     .offset = QUANTIZE(outputs)},
    {.name = "exclude",
     .argument = "PATTERNS",
     .type = MSC_CLI_LIST,
     .help = "leave these tensors float; names may have * and ?",
     .offset = QUANTIZE(exclude)},
    {.name = "imatrix",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "importance file of llama.cpp, in place of second moments of the samples",
     .offset = QUANTIZE(imatrix)},
    {.name = "batch",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "run N samples together (default: from the model's shapes)",
     .offset = QUANTIZE(batch)},
    {.name = "sequence",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "cut token ids into samples of N (default: as the model or the file has them)",
     .offset = QUANTIZE(sequence)},
    {.name = "loss",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "mse|kl|cosine",
     .help = "how outputs are compared (default: kl for logits of tokens, else mse)",
     .offset = QUANTIZE(loss)},
    {.name = "atol",
     .argument = "X",
     .type = MSC_CLI_TEXT,
     .help = "refuse a backend whose outputs differ from the reference kernels by more than X "
             "(default: 0.001)",
     .offset = QUANTIZE(atol)},
    {0},
};

// ---- For people -------------------------------------------------------------------------------

static const char *quantize_text(const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

// Lines of the table: the name of a number, and its path in the report of a plan.
static const struct {
    const char *name;
    const char *path[4]; // NULL-terminated unless full
} lines[] = {
    {"distill_loss", {"metrics", "distill_loss"}},
    {"held_back.distill_loss", {"examined", "validation", "distill_loss"}},
    {"held_back.accuracy", {"examined", "validation", "accuracy"}},
    {"held_back.accuracy_drop", {"examined", "validation", "accuracy_drop"}},
    {"held_back.accuracy_drop_se", {"examined", "validation", "accuracy_drop_se"}},
    {"held_back.float_accuracy", {"examined", "validation", "float_accuracy"}},
    {"held_back.top1_kept", {"examined", "validation", "top1_kept"}},
    {"held_back.perplexity", {"examined", "validation", "cross_entropy"}},
    {"held_back.float_perplexity", {"examined", "validation", "float_cross_entropy"}},
    {"size_bytes", {"metrics", "size_bytes"}},
    {"file_bytes", {"examined", "file_bytes"}},
    {"runtime.held_back.distill_loss", {"examined", "runtime", "validation", "distill_loss"}},
    {"runtime.held_back.accuracy", {"examined", "runtime", "validation", "accuracy"}},
    {"runtime.held_back.accuracy_drop", {"examined", "runtime", "validation", "accuracy_drop"}},
    {"runtime.latency_us", {"examined", "runtime", "latency_us"}},
    {"runtime.latency_ratio", {"examined", "runtime", "latency_ratio"}},
};

// The report has the logarithm of the perplexity.
static bool is_log(const char *name) {
    return strstr(name, "perplexity") != NULL;
}

static const cJSON *find_number(const cJSON *plan, const char *const path[4]) {
    for (size_t i = 0; i < 4 && path[i]; i++) {
        plan = msc_json_get(plan, path[i]);
    }
    return cJSON_IsNumber(plan) ? plan : NULL;
}

static void add_number(struct msc_table *table, const char *name, const cJSON *number) {
    char cell[32] = "-";
    bool has_log = is_log(name);
    if (number && has_log) {
        snprintf(cell, sizeof cell, "%.5g", msc_maths_exp(number->valuedouble));
    } else if (number) {
        double value = number->valuedouble;
        int64_t whole;
        bool is_whole =
            msc_json_read_i64(&whole, number, INT64_C(-999999999999999), INT64_C(999999999999999));
        snprintf(cell, sizeof cell, is_whole ? "%.0f" : "%.5g", value);
    }
    msc_report_add_cell(table, name, cell, MSC_STYLE_PLAIN);
}

static void write_plans(struct msc_str *out, const char *const names[], const cJSON *const plans[],
                        size_t n) {
    struct msc_table table = {.n_columns = n + 1, .indent = 2, .least_columns = 10};
    msc_table_add(&table, "");
    for (size_t i = 0; i < n; i++) {
        msc_table_add(&table, names[i]);
    }
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        bool is_known = false;
        for (size_t i = 0; i < n; i++) {
            is_known = is_known || find_number(plans[i], lines[k].path);
        }
        if (is_known) {
            msc_table_add(&table, lines[k].name);
        }
        for (size_t i = 0; is_known && i < n; i++) {
            add_number(&table, lines[k].name, find_number(plans[i], lines[k].path));
        }
    }
    msc_table_write(out, &table, msc_cli_terminal_columns());
    msc_table_finish(&table);
}

// The plan with min-max ranges and rounding to nearest; NULL if that is the best plan.
static const cJSON *find_plain(const cJSON *list) {
    const cJSON *plan = NULL;
    cJSON_ArrayForEach(plan, list) {
        if (plan != list->child && cJSON_IsTrue(msc_json_get(plan, "plain"))) {
            return plan;
        }
    }
    return NULL;
}

static void write_runtime(struct msc_str *out, const cJSON *report) {
    const cJSON *runtime = msc_json_get(report, "runtime");
    if (msc_json_get(runtime, "missing")) {
        msc_str_append(out, "not measured in its runtime: ");
        msc_shown_append(out, quantize_text(runtime, "missing"));
        msc_str_char(out, '\n');
    } else if (msc_json_get(runtime, "version")) {
        msc_str_printf(out, "runtime: %s %s, ", quantize_text(runtime, "name"),
                       quantize_text(runtime, "version"));
        msc_shown_append(out, quantize_text(runtime, "processor"));
        msc_str_char(out, '\n');
    }
}

// Writes ", 3 tensors left float", or nothing if all are quantised.
static void write_count(struct msc_str *out, const cJSON *count, const char *of, const char *what) {
    double n = cJSON_IsNumber(count) ? count->valuedouble : 0.0;
    if (n > 0) {
        msc_str_printf(out, ", %.0f %s%s %s", n, of, n == 1 ? "" : "s", what);
    }
}

static void write_metadata(struct msc_str *out, const cJSON *n) {
    if (n) {
        msc_str_printf(out, "metadata: %.0f %s of the model kept\n", n->valuedouble,
                       n->valuedouble == 1 ? "entry" : "entries");
    }
}

static void write_rescaled(struct msc_str *out, const cJSON *n, bool has_plain) {
    if (n) {
        msc_str_printf(out, "channels rescaled: of %.0f activation%s%s\n", n->valuedouble,
                       n->valuedouble == 1 ? "" : "s", has_plain ? ", in both 8-bit models" : "");
    }
}

// A model counts as slower if its time, relative to the uncompressed model's, is above
// SLOWER_MARGIN (measured) or PREDICTED_MARGIN (predicted).
#define SLOWER_MARGIN 1.01
#define PREDICTED_MARGIN 1.05

// Warns if the model is slower in its runtime: by the measured time or, without one, by the
// predicted time.
static void write_slower(struct msc_str *out, const cJSON *report, const cJSON *best) {
    static const char *const measured[4] = {"examined", "runtime", "latency_ratio"};
    static const char *const predicted[4] = {"predicted_ratio"};
    const cJSON *ratio = find_number(best, measured);
    bool is_measured = ratio != NULL;
    ratio = is_measured ? ratio : find_number(best, predicted);
    if (!ratio || ratio->valuedouble <= (is_measured ? SLOWER_MARGIN : PREDICTED_MARGIN)) {
        return;
    }
    msc_str_printf(out, "slower than the uncompressed model in %s, by %.0f %% of its time%s\n",
                   quantize_text(report, "target"), 100 * (ratio->valuedouble - 1),
                   is_measured ? "" : ", as predicted: `mscgym bench` measures it there");
}

// Writes the loss of the float model in the runtime, for comparison with the plans.
static void write_float(struct msc_str *out, const cJSON *report, const cJSON *best) {
    static const char *const here[4] = {"metrics", "distill_loss"};
    static const char *const held_back[4] = {"examined", "validation", "distill_loss"};
    static const char *const there[4] = {"examined", "runtime", "distill_loss"};
    const cJSON *loss = find_number(msc_json_get(report, "reference"), there);
    const cJSON *searched = find_number(best, here);
    searched = searched ? searched : find_number(best, held_back);
    const char *name = quantize_text(msc_json_get(report, "runtime"), "name");
    if (!loss || !searched) {
        return;
    }
    double margin = msc_report__loss_margin(searched->valuedouble, NAN, NAN);
    if (loss->valuedouble > margin) {
        msc_report__write_float(out, loss->valuedouble, margin, name);
    } else {
        msc_str_printf(out, "outputs of the float model in %s differ by a loss of %.2g\n", name,
                       loss->valuedouble);
    }
}

// States the bound on the accuracy, and the drop of the written plan.
static void write_drop(struct msc_str *out, const cJSON *report, const cJSON *best) {
    static const char *const drop[4] = {"examined", "validation", "accuracy_drop"};
    static const char *const error[4] = {"examined", "validation", "accuracy_drop_se"};
    const cJSON *most = msc_json_get(report, "accuracy_drop");
    const cJSON *value = find_number(best, drop), *se = find_number(best, error);
    if (most && value) {
        msc_str_append(out, "accuracy_drop: at most ");
        msc_unit_digits(out, "accuracy_drop", most->valuedouble, 6);
        msc_str_append(out, " is allowed; it is ");
        msc_unit_value(out, "accuracy_drop", value->valuedouble);
        if (se) {
            msc_str_append(out, " (standard error ");
            msc_unit_digits(out, "accuracy_drop", se->valuedouble, 2);
            msc_str_append(out, ", from the differences sample by sample)");
        }
        msc_str_char(out, '\n');
    }
}

static enum msc_status print_quantized(const cJSON *report) {
    const cJSON *list = msc_json_get(report, "plans");
    const cJSON *best = list->child, *plain = find_plain(list);
    const char *names[] = {"written", "uncompressed", NULL};
    const cJSON *plans[] = {best, msc_json_get(report, "reference"), NULL};
    struct msc_str text = {0};
    if (plain) {
        names[2] = names[1], plans[2] = plans[1];
        names[1] = "plain 8 bits", plans[1] = plain;
    }
    double n_held_back = msc_json_get(report, "held_back")->valuedouble;
    int n_plans = cJSON_GetArraySize(list);
    msc_str_printf(&text, "best of %d plan%s, by ", n_plans, n_plans == 1 ? "" : "s");
    if (n_held_back > 0) {
        msc_str_printf(&text, "%.0f samples held back", n_held_back);
    } else {
        msc_str_append(&text, "the samples that ranges come from");
    }
    msc_str_printf(&text, ": weights %s, activations %s", quantize_text(best, "weights"),
                   quantize_text(best, "activations"));
    write_count(&text, msc_json_get(best, "float"), "tensor", "left float");
    write_count(&text, msc_json_get(best, "improved"), "weight", "improved");
    msc_str_char(&text, '\n');
    write_drop(&text, report, best);
    msc_report__write_sameness(&text, report);
    write_plans(&text, names, plans, plain ? 3 : 2);
    write_rescaled(&text, msc_json_get(report, "rescaled"), plain != NULL);
    write_slower(&text, report, best);
    write_metadata(&text, msc_json_get(report, "metadata"));
    write_runtime(&text, report);
    write_float(&text, report, best);
    msc_str_append(&text, "model: ");
    msc_shown_append(&text, quantize_text(report, "model"));
    msc_str_char(&text, '\n');
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// ---- The command ------------------------------------------------------------------------------

static void show_measuring(void *payload, const struct msc_config_entry *entry, const char *what,
                           double left_s) {
    (void)entry;
    msc_console_measuring(payload, "quantize", what, left_s);
}

static enum msc_status check_values(const struct quantize_values *v) {
    return v->inputs && v->output
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "quantize: --%s is missing: %s",
                          v->inputs ? "output" : "inputs",
                          v->inputs ? "the file to write" : "samples to calibrate with");
}

static enum msc_status quantize_model(cJSON **report, const struct msc_cli_call *call,
                                      const struct quantize_values *v) {
    struct msc_worker worker = {0};
    const char *runtime = v->output && msc_export_is_tflite(v->output) ? "tflite" : NULL;
    struct msc_quick_options o = {.model = v->model,
                                  .inputs = v->inputs,
                                  .labels = v->labels,
                                  .output = v->output,
                                  .save_strategy = v->save_strategy,
                                  .target = v->target ? v->target : runtime,
                                  .sites = v->sites,
                                  .effort = v->effort,
                                  .n_float = v->n_float,
                                  .loss_tensors = {v->loss_tensors.items, v->loss_tensors.n},
                                  .outputs = {v->outputs.items, v->outputs.n},
                                  .exclude = {v->exclude.items, v->exclude.n},
                                  .batch = v->batch,
                                  .sequence = v->sequence,
                                  .loss = v->loss,
                                  .imatrix = v->imatrix,
                                  .atol = v->atol,
                                  .host = MSC_PROCESSOR_OPTIONS_INIT};
    MSC_TRY(check_values(v));
    if (v->accuracy_drop) {
        MSC_TRY(msc_cli_parse_drop(&o.accuracy_drop, "quantize", v->accuracy_drop));
        o.has_accuracy_drop = true;
    }
    MSC_TRY(msc_cli_fill_stoppable(&o.host, &worker, call, &v->common));
    o.host.measuring = show_measuring;
    o.host.shows_progress = msc_console_shows_progress(call->console);
    o.host.payload = call->console;
    enum msc_status status = msc_quick_quantize(report, &o);
    msc_console_end_progress(call->console);
    msc_worker_close(&worker);
    return status;
}

static int cmd_quantize(const struct msc_cli_call *call, void *payload) {
    const struct quantize_values *v = payload;
    cJSON *report = NULL;
    enum msc_status status = quantize_model(&report, call, v);
    if (status == MSC_OK) {
        status = v->common.json ? msc_cli_print_json(report) : print_quantized(report);
    }
    cJSON_Delete(report);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_quantize = {
    .name = "quantize",
    .summary = "writes the best 8-bit model that needs no search",
    .usage = "MODEL --inputs FILE -o FILE [options]",
    .description =
        "Tries a few ranges and roundings for all weights and for all activations, and keeps the "
        "plan with the least loss on a held-out fifth of the samples. If worthwhile, the tensors "
        "that lose most at 8 bits stay float, and joints that integers would slow down compute in "
        "floats from 8-bit weights. Then adjusts the weights to the quantised inputs; --effort "
        "best also adjusts wide weights. With --effort fast, only finds ranges and corrects "
        "biases. If the target's runtime is installed, the table also shows its result. No other "
        "file is written. NAMES and PATTERNS are separated by commas or are a JSON list; these "
        "options may be repeated. `mscgym graph MODEL` prints the names.",
    .examples = "  mscgym quantize model.onnx --inputs inputs.npz -o small.onnx\n"
                "  mscgym quantize model.onnx --inputs inputs.npz -o small.onnx --target openvino\n"
                "  mscgym quantize detector.onnx --inputs inputs.npz -o small.onnx --loss-tensors "
                "boxes,scores\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct quantize_values),
    .run = cmd_quantize,
};
