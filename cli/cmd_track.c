#include "cli/searching.h"
#include "cli/table.h"

#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "model/strategies.h"
#include "pipeline/subject.h"
#include "model/track.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct track_values {
    struct msc_cli_common common;
    const char *model, *other, *inputs, *strategy, *other_strategy;
    int64_t samples;
    bool allow_plugins;
};

#define TRACK(member) offsetof(struct track_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "reference model: ONNX, MSCGraph text or JSON, RECORD[:TRIAL] or CONFIG[:STAGE]",
     .offset = TRACK(model),
     .is_positional = true,
     .is_required = true},
    {.name = "OTHER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "model to compare: a model, a strategy file, RECORD, RECORD:TRIAL, CONFIG or "
             "CONFIG:STAGE (default: the compressed MODEL)",
     .offset = TRACK(other),
     .is_positional = true},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "samples for the inputs: a .npz, .npy, .safetensors or .jsonl file, or a folder of "
             "images (default: those of the "
             "record or configuration)",
     .offset = TRACK(inputs)},
    {.name = "samples",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "use the first N samples (default: 16; 0: all)",
     .offset = TRACK(samples)},
    {.name = "strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "compress OTHER by this strategy file",
     .offset = TRACK(other_strategy)},
    {.name = "from",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "compress MODEL by this strategy file",
     .offset = TRACK(strategy)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust records: libraries and programs that they name may run",
     .offset = TRACK(allow_plugins)},
    {0},
};

// ---- For people -------------------------------------------------------------------------------

static const char *joint_of(const struct msc_graph *g, const struct msc_track_row *row) {
    return msc_graph_joint(g, msc_graph_tensor(g, row->tensor)->producer)->name;
}

static const char *label_of(const struct msc_graph *g, const struct msc_track_row *row) {
    return msc_tensor_label(msc_graph_tensor(g, row->tensor));
}

static void add_decibels(struct msc_table *table, double db) {
    char cell[32];
    snprintf(cell, sizeof cell, "%.1f", db);
    msc_table_add(table, db == INFINITY ? "equal" : cell);
}

static void add_name(struct msc_table *table, const char *name) {
    struct msc_str text = {0};
    msc_cli_write_short(&text, name, MSC_CLI_NAME_COLUMNS);
    table->failed |= text.failed;
    msc_table_add(table, msc_str_text(&text));
    msc_str_finish(&text);
}

static void add_row(struct msc_table *table, const struct msc_graph *g,
                    const struct msc_track_row *row) {
    char cell[32];
    add_name(table, joint_of(g, row));
    add_name(table, label_of(g, row));
    if (row->n == 0) {
        msc_table_add(table, "other shape");
        for (int i = 0; i < 3; i++) {
            msc_table_add(table, "-");
        }
        return;
    }
    add_decibels(table, row->snr_db);
    snprintf(cell, sizeof cell, "%.5f", row->cosine);
    msc_table_add(table, cell);
    snprintf(cell, sizeof cell, "%.3g", row->max_abs);
    msc_table_add(table, cell);
    snprintf(cell, sizeof cell, "%.3g", row->mean_abs);
    msc_table_add(table, cell);
}

static void write_worst(struct msc_str *out, const struct msc_track *track,
                        const struct msc_graph *g) {
    if (track->worst == track->n_rows) {
        msc_str_append(out, "nothing differs\n");
        return;
    }
    const struct msc_track_row *row = &track->rows[track->worst];
    msc_str_append(out, "largest fall: ");
    msc_shown_append(out, joint_of(g, row));
    msc_str_printf(out, ", to %.1f dB; its inputs ", row->snr_db);
    if (row->inputs_db == INFINITY) {
        msc_str_append(out, "are equal\n");
    } else {
        msc_str_printf(out, "have %.1f dB\n", row->inputs_db);
    }
}

static enum msc_status print_track(const struct msc_track *track, const struct msc_graph *g) {
    static const char *const head[] = {"joint",  "tensor",  "SNR, dB",
                                       "cosine", "max |d|", "mean |d|"};
    struct msc_table table = {.n_columns = sizeof head / sizeof head[0]};
    struct msc_str text = {0};
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (size_t i = 0; i < track->n_rows; i++) {
        add_row(&table, g, &track->rows[i]);
    }
    msc_str_printf(&text, "%zu tensor%s on %" PRId64 " sample%s\n", track->n_rows,
                   track->n_rows == 1 ? "" : "s", track->n_samples,
                   track->n_samples == 1 ? "" : "s");
    msc_table_write(&text, &table, msc_cli_terminal_columns());
    write_worst(&text, track, g);
    enum msc_status status = msc_cli_print_str(&text);
    msc_table_finish(&table);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_track_json(const struct msc_track *track, const struct msc_graph *g) {
    cJSON *json = NULL;
    MSC_TRY(msc_track_to_json(&json, track, g));
    enum msc_status status = msc_cli_print_json(json);
    cJSON_Delete(json);
    return status;
}

// ---- The command ------------------------------------------------------------------------------

// The configuration whose dataset is used without --inputs: the second model's or, if it has none,
// the first model's. NULL: neither has one.
static const struct msc_config *find_config(const struct msc_subject subjects[2]) {
    for (int i = 1; i >= 0; i--) {
        if (subjects[i].config && subjects[i].config->dataset.options.inputs) {
            return subjects[i].config;
        }
    }
    return NULL;
}

static enum msc_status choose_dataset(struct msc_config_dataset *out, const struct track_values *v,
                                      const struct msc_config *config) {
    if (!v->inputs && !config) {
        return MSC_FAIL(MSC_E_INVALID, "track: --inputs is missing: --inputs SAMPLES.npz");
    }
    *out = msc_subject_dataset(v->inputs ? NULL : config);
    if (v->inputs) {
        out->options.inputs = v->inputs;
    }
    if (v->samples >= 0) {
        out->options.samples = v->samples;
    }
    return MSC_OK;
}

static enum msc_status open_side(struct msc_model **out, const struct msc_cli_call *call,
                                 const struct track_values *v, const struct msc_subject *subject,
                                 const struct msc_config *config) {
    struct msc_config_dataset dataset;
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    MSC_TRY(choose_dataset(&dataset, v, config));
    MSC_TRY(msc_cli_fill_model_options(&o, call, &v->common));
    if (o.n_bindings == 0 && subject->config) {
        o.bindings = subject->config->bindings;
        o.n_bindings = subject->config->n_bindings;
    }
    MSC_TRY(msc_model_open(out, subject->model, &o));
    return msc_model_load_dataset(*out, &dataset);
}

static enum msc_status track_open_subjects(struct msc_subject subjects[2],
                                           const struct msc_cli_call *call,
                                           const struct track_values *v) {
    const char *const words[2][2] = {{v->model, v->strategy}, {v->other, v->other_strategy}};
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    MSC_TRY(msc_cli_fill_options(&o, call, &v->common));
    o.allow_plugins = v->allow_plugins;
    for (int i = 0; i < 2; i++) {
        if (words[i][0]) {
            MSC_TRY(msc_subject_open(&subjects[i], words[i][0], &o));
        }
        if (words[i][1] && subjects[i].strategy) {
            return MSC_FAIL(MSC_E_INVALID, "track: %s is already compressed: remove --%s %s",
                            words[i][0], i == 0 ? "from" : "strategy", words[i][1]);
        }
        if (words[i][1]) {
            MSC_TRY(msc_strategy_load(&subjects[i].own, words[i][1]));
            subjects[i].strategy = subjects[i].own;
        }
    }
    if (!subjects[0].model) {
        return MSC_FAIL(MSC_E_INVALID, "track: %s is a strategy file; expected a model first",
                        v->model);
    }
    return MSC_OK;
}

// If the second side lacks a model or a strategy, takes it from the first side. If there is only
// one argument and it has a strategy, compares the compressed model with the uncompressed one.
static enum msc_status complete_sides(struct msc_subject subjects[2],
                                      const struct track_values *v) {
    if (!v->other && !subjects[1].strategy && !v->strategy) {
        subjects[1].strategy = subjects[0].strategy;
        subjects[0].strategy = NULL;
    }
    if (!v->other && !subjects[0].strategy && !subjects[1].strategy) {
        return MSC_FAIL(MSC_E_INVALID,
                        "track: expected another model, or --strategy FILE for this one");
    }
    if (!subjects[1].model) {
        subjects[1].model = subjects[0].model;
        subjects[1].config = subjects[1].config ? subjects[1].config : subjects[0].config;
    }
    return MSC_OK;
}

static enum msc_status is_same_file(bool *out, struct msc_arena *arena,
                                    const struct msc_subject subjects[2]) {
    char *paths[2];
    for (int i = 0; i < 2; i++) {
        MSC_TRY(msc_path_absolute(&paths[i], arena, subjects[i].model));
    }
    *out = strcmp(paths[0], paths[1]) == 0;
    return MSC_OK;
}

static enum msc_status track_subjects(const struct msc_cli_call *call,
                                      const struct track_values *v) {
    struct msc_subject subjects[2] = {{.model = NULL}, {.model = NULL}};
    struct msc_model *model = NULL, *other = NULL;
    struct msc_track *track = NULL;
    bool is_same = false;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(track_open_subjects(subjects, call, v));
    MSC_TRY_OUT(complete_sides(subjects, v));
    const struct msc_config *config = find_config(subjects);
    MSC_TRY_OUT(is_same_file(&is_same, call->arena, subjects));
    MSC_TRY_OUT(open_side(&model, call, v, &subjects[0], config));
    if (!is_same) {
        MSC_TRY_OUT(open_side(&other, call, v, &subjects[1], config));
    }
    const struct msc_track_side sides[2] = {
        {.model = model, .strategy = subjects[0].strategy},
        {.model = other ? other : model, .strategy = subjects[1].strategy}};
    MSC_TRY_OUT(msc_track_make(&track, sides));
    status =
        v->common.json ? print_track_json(track, model->graph) : print_track(track, model->graph);
out:
    msc_track_destroy(track);
    msc_model_close(other);
    msc_model_close(model);
    msc_subject_close(&subjects[1]);
    msc_subject_close(&subjects[0]);
    return status;
}

static int cmd_track(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = track_subjects(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_track = {
    .name = "track",
    .summary = "compares two models tensor by tensor, and names the faulty joint",
    .usage = "MODEL [OTHER] [--inputs FILE] [--strategy FILE] [options]",
    .description = "The signal-to-noise ratio (SNR) of a tensor is 10 log10 of the sum of its "
                   "squares over the sum of squared differences. The faulty joint is the one whose "
                   "SNR falls most below the SNR of its inputs. Tensors of two models are matched "
                   "by name; exported models keep the names. The stages of a configuration are "
                   "baseline, the names of its searches, and export.",
    .examples = "  mscgym track digits.onnx small.onnx --inputs calibration.npz\n"
                "  mscgym track digits.onnx --strategy msc_workspace/msc_quantize.json \\\n"
                "      --inputs calibration.npz --samples 64 --json\n"
                "  mscgym track msc_workspace/digits.jsonl:12 msc_workspace/digits.jsonl\n"
                "  mscgym track digits.json:baseline digits.json:export\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct track_values),
    .run = cmd_track,
};
