#include "cli/searching.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/array_file.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "model/collect.h"
#include "model/output.h"
#include "model/pieces.h"
#include "model/strategies.h"
#include "pipeline/subject.h"

#include <string.h>

struct run_values {
    struct msc_cli_common common;
    const char *model, *output, *strategy, *dataset, *keep;
    struct msc_cli_list inputs, states, tensors;
    int64_t repeat, samples;
    bool allow_plugins;
};

#define RUN(member) offsetof(struct run_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text or JSON; with --inputs also RECORD, CONFIG:STAGE or "
             "the manifest of mscgym split",
     .offset = RUN(model),
     .is_positional = true,
     .is_required = true},
    {.name = "input",
     .argument = "NAME=FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "a .npy for one input; repeat the option for every input",
     .offset = RUN(inputs)},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "run all samples of a .npz, .npy, .safetensors or .jsonl file, or a folder of images",
     .offset = RUN(dataset)},
    {.name = "samples",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "with --inputs: run only the first N samples (default: all)",
     .needs = "inputs",
     .offset = RUN(samples)},
    {.name = "state",
     .argument = "INPUT=OUTPUT",
     .type = MSC_CLI_LIST,
     .help =
         "each row of the inputs is a chunk; chunks run in order, and OUTPUT of a chunk becomes "
         "INPUT of the next chunk; may be repeated",
     .details =
         "Outputs get a row for each chunk. A state begins with zeros unless --input gives it.",
     .offset = RUN(states)},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help =
         "write the outputs as NAME.npy in this folder, or all to one .npz or .safetensors file",
     .details = "Slashes and colons in names become underscores.",
     .offset = RUN(output)},
    {.name = "tensor",
     .argument = "NAME",
     .type = MSC_CLI_LIST,
     .help = "write this tensor in place of the outputs; with --inputs a pattern such as '*'; may "
             "be repeated",
     .details = "With --inputs the arrays are [n, d1, ...] for n samples if one sample is [1, d1, "
                "...], and [n, d0, d1, ...] if it begins with another length. They are NAME/0, "
                "NAME/1, ... if the shapes of samples differ.",
     .offset = RUN(tensors)},
    {.name = "strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "compress the model by this strategy file; the outputs equal the search's bit for bit",
     .offset = RUN(strategy)},
    {.name = "repeat",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "measure the latency of N runs (default: 10; 0: none)",
     .offset = RUN(repeat)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust records and manifests: libraries and programs that they name may run",
     .offset = RUN(allow_plugins)},
    {.name = "keep",
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "for a manifest: write each piece's inputs as NAME.npz, samples for its search",
     .offset = RUN(keep)},
    {0},
};

// ---- Inputs -----------------------------------------------------------------------------------

// The arrays of --input and the paths of their files.
struct run_inputs {
    struct msc_array_list list;
    const char **places; // [list.n]
};

static enum msc_status load_input(struct run_inputs *inputs, const char *text,
                                  struct msc_arena *arena) {
    const char *equals = strchr(text, '=');
    struct msc_array *array = NULL;
    if (!equals || equals == text || !equals[1]) {
        return MSC_FAIL(MSC_E_INVALID, "run: --input is \"%s\", expected NAME=FILE.npy", text);
    }
    char *name = msc_arena_strndup(arena, text, (size_t)(equals - text));
    MSC_TRY(MSC_ALLOCATED(name));
    if (msc_array_list_find(&inputs->list, name)) {
        return MSC_FAIL(MSC_E_INVALID, "run: input \"%s\" is given twice", name);
    }
    if (msc_array_file_kind_of(equals + 1) != MSC_ARRAY_FILE_NONE) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "run: --input is \"%s\", expected a .npy; --inputs %s uses all arrays of a file", text,
            equals + 1);
    }
    MSC_TRY(msc_npy_load(&array, equals + 1));
    inputs->places[inputs->list.n] = equals + 1;
    enum msc_status status = msc_array_list_add(&inputs->list, name, array);
    msc_array_release(array);
    return status;
}

static enum msc_status load_inputs(struct run_inputs *inputs, const struct run_values *v,
                                   struct msc_arena *arena) {
    inputs->places = msc_arena_array(arena, v->inputs.n + 1, sizeof *inputs->places);
    MSC_TRY(MSC_ALLOCATED(inputs->places));
    for (size_t i = 0; i < v->inputs.n; i++) {
        MSC_TRY(load_input(inputs, v->inputs.items[i], arena));
    }
    return MSC_OK;
}

static size_t find_spec(const struct msc_model *m, const char *name) {
    size_t i = 0;
    while (i < m->n_inputs && strcmp(m->specs[i].name, name) != 0) {
        i++;
    }
    return i;
}

static enum msc_status fail_input(const struct msc_model *m, const char *name) {
    struct msc_str names = {0};
    for (size_t i = 0; i < m->n_inputs; i++) {
        msc_str_item(&names, m->specs[i].name);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: unknown input \"%s\": expected %s%s", m->path, name,
                 m->n_inputs == 1 ? "" : "one of ", msc_str_text(&names));
    msc_str_finish(&names);
    return status;
}

// Puts the arrays in the order of the model's inputs.
static enum msc_status run_order_inputs(const struct msc_array *arrays[], const char *places[],
                                        const struct msc_model *m,
                                        const struct run_inputs *inputs) {
    for (size_t k = 0; k < inputs->list.n; k++) {
        size_t i = find_spec(m, inputs->list.names[k]);
        if (i == m->n_inputs) {
            return fail_input(m, inputs->list.names[k]);
        }
        arrays[i] = inputs->list.arrays[k];
        places[i] = inputs->places[k];
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (!arrays[i] && !m->specs[i].state) {
            char dims[MSC_DIMS_TEXT_BYTES];
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: input \"%s\" is missing: --input %s=FILE.npy, %s %s", m->path,
                            m->specs[i].name, m->specs[i].name,
                            msc_dims_format(dims, m->specs[i].n_dims, m->specs[i].dims),
                            msc_dtype_name(m->specs[i].dtype));
        }
    }
    return MSC_OK;
}

static enum msc_status set_states(struct msc_model *m, const struct run_values *v,
                                  struct msc_arena *arena) {
    size_t n = v->states.n;
    struct msc_config_state *states = msc_arena_array(arena, n + 1, sizeof *states);
    MSC_TRY(MSC_ALLOCATED(states));
    for (size_t i = 0; i < n; i++) {
        const char *text = v->states.items[i];
        const char *equals = strchr(text, '=');
        if (!equals || equals == text || equals[1] == '\0') {
            return MSC_FAIL(MSC_E_INVALID, "run: --state is \"%s\", expected INPUT=OUTPUT", text);
        }
        states[i].input = msc_arena_strndup(arena, text, (size_t)(equals - text));
        states[i].output = equals + 1;
        MSC_TRY(MSC_ALLOCATED(states[i].input));
    }
    return msc_model_set_states(m, states, n);
}

// ---- Outputs ----------------------------------------------------------------------------------

// Name of an output: as given by --tensor, else as in the model.
static const char *output_name(const struct msc_model *m, const struct msc_model_run *run,
                               size_t i) {
    const struct msc_tensor *t = msc_graph_tensor(m->graph, run->wanted[i]);
    return run->n_tensors > 0 ? run->tensors[i] : msc_tensor_label(t);
}

// Path of the output's .npy in the folder; NULL: out of memory.
static char *output_path(struct msc_arena *arena, const char *folder, const char *output) {
    char *name = msc_arena_printf(arena, "%s.npy", output);
    for (char *c = name; c && *c; c++) {
        *c = *c == '/' || *c == ':' ? '_' : *c;
    }
    return name ? msc_path_join(arena, folder, name) : NULL;
}

// Writes a .npy for each output.
static enum msc_status save_files(const struct msc_model *m, const struct msc_model_run *run,
                                  const char *folder, struct msc_arena *arena) {
    MSC_TRY(msc_file_make_folders(folder));
    for (size_t i = 0; i < run->n_outputs; i++) {
        char *path = output_path(arena, folder, output_name(m, run, i));
        MSC_TRY(MSC_ALLOCATED(path));
        MSC_TRY(msc_npy_save(path, run->outputs[i]));
    }
    return MSC_OK;
}

// Writes all outputs to one file, under their own names.
static enum msc_status save_archive(const struct msc_model *m, const struct msc_model_run *run,
                                    const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < run->n_outputs; i++) {
        status = msc_array_list_add(&list, output_name(m, run, i), run->outputs[i]);
    }
    bool is_npz = msc_array_file_kind_of(path) == MSC_ARRAY_FILE_NPZ;
    if (status == MSC_OK) {
        status = is_npz ? msc_npz_save(path, &list) : msc_safetensors_save(path, &list, NULL, 0);
    }
    msc_array_list_finish(&list);
    return status;
}

static bool is_archive(const char *output) {
    return msc_array_file_kind_of(output) != MSC_ARRAY_FILE_NONE;
}

static enum msc_status save_outputs(const struct msc_model *m, const struct msc_model_run *run,
                                    const char *output, struct msc_arena *arena) {
    return is_archive(output) ? save_archive(m, run, output) : save_files(m, run, output, arena);
}

// ---- Which files may be replaced --------------------------------------------------------------

static size_t n_wanted(const struct msc_model *m, const struct run_values *v) {
    return v->tensors.n > 0 ? v->tensors.n : (size_t)msc_graph_n_outputs(m->graph);
}

// The name that output i will have, known before the run.
static const char *cmd_run_wanted_name(const struct msc_model *m, const struct run_values *v,
                                       size_t i) {
    return v->tensors.n > 0 ? v->tensors.items[i]
                            : msc_tensor_label(msc_graph_tensor(
                                  m->graph, msc_graph_output(m->graph, (int32_t)i)));
}

// An existing archive may be replaced only if it holds arrays of the same names.
static enum msc_status check_archive(const struct msc_model *m, const struct run_values *v,
                                     struct msc_arena *arena) {
    size_t n = n_wanted(m, v);
    const char **names = msc_arena_array(arena, n + 1, sizeof *names);
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < n; i++) {
        names[i] = cmd_run_wanted_name(m, v, i);
    }
    return msc_output_check_arrays(v->output, names, n);
}

static enum msc_status run_read_inputs(struct msc_file_set *files, const struct run_values *v) {
    MSC_TRY(msc_output_read_model(files, v->model));
    MSC_TRY(msc_file_set_read(files, "the strategy", v->strategy));
    for (size_t i = 0; i < v->inputs.n; i++) {
        const char *equals = strchr(v->inputs.items[i], '=');
        MSC_TRY(msc_file_set_read(files, "an input", equals ? equals + 1 : NULL));
    }
    return MSC_OK;
}

static enum msc_status run_claim_outputs(const struct msc_model *m, const struct run_values *v,
                                         struct msc_arena *arena) {
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(run_read_inputs(&files, v));
    if (is_archive(v->output)) {
        MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_ANY, "--output", v->output));
        status = check_archive(m, v, arena);
        goto out;
    }
    for (size_t i = 0; i < n_wanted(m, v); i++) {
        const char *path = output_path(arena, v->output, cmd_run_wanted_name(m, v, i));
        MSC_TRY_OUT(MSC_ALLOCATED(path));
        MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_ANY, "an output", path));
    }
out:
    msc_file_set_finish(&files);
    return status;
}

static double at_fraction(const struct msc_model_run *run, double fraction) {
    return run->microseconds[(int64_t)(fraction * (double)(run->repeat - 1))];
}

static enum msc_status print_run_json(const struct msc_model *m, const struct msc_model_run *run) {
    cJSON *json = cJSON_CreateObject();
    cJSON *latency = cJSON_CreateObject();
    enum msc_status status = msc_json_add_text(json, "numerics", msc_model_numerics(m));
    const struct {
        const char *name;
        double fraction;
    } rows[] = {{"min_us", 0}, {"p10_us", 0.1}, {"median_us", 0.5}, {"p90_us", 0.9}, {"max_us", 1}};
    for (size_t i = 0; run->repeat > 0 && i < sizeof rows / sizeof rows[0]; i++) {
        if (status == MSC_OK) {
            status = msc_json_add_number(latency, rows[i].name, at_fraction(run, rows[i].fraction));
        }
    }
    if (status == MSC_OK) {
        status = msc_json_add_number(latency, "runs", (double)run->repeat);
    }
    if (status == MSC_OK) {
        status = msc_json_add(json, "latency", latency);
        latency = NULL;
    }
    if (status == MSC_OK) {
        status = msc_cli_print_json(json);
    }
    cJSON_Delete(latency);
    cJSON_Delete(json);
    return status;
}

static enum msc_status print_latency(const struct msc_model_run *run) {
    struct msc_str text = {0};
    if (run->repeat > 0) {
        msc_str_printf(&text, "latency: %.4g us median of %lld (%.4g to %.4g in eight of ten)\n",
                       at_fraction(run, 0.5), (long long)run->repeat, at_fraction(run, 0.1),
                       at_fraction(run, 0.9));
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// ---- The command ------------------------------------------------------------------------------

static enum msc_status run_open_model(struct msc_model **out, const struct msc_cli_call *call,
                                      const struct run_values *v,
                                      const struct msc_array_list *feeds) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    o.is_single = !v->strategy; // with a strategy, outputs have the same bits as in the search
    o.keeps_types = !v->strategy;
    o.feeds = feeds;
    MSC_TRY(msc_cli_fill_model_options(&o, call, &v->common));
    return msc_model_open(out, v->model, &o);
}

// Takes the inputs of one run of the network: the first chunk.
static enum msc_status take_first(struct msc_array_list *first, const struct msc_array_list *all) {
    for (size_t i = 0; i < all->n; i++) {
        const struct msc_array *array = all->arrays[i];
        struct msc_array *row = NULL;
        if (msc_array_n_dims(array) == 0 || msc_array_dim(array, 0) == 0) {
            row = msc_array_retain(array);
        } else {
            MSC_TRY(msc_array_rows(&row, array, 0, 1));
        }
        enum msc_status status = msc_array_list_add(first, all->names[i], row);
        msc_array_release(row);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status run_model(const struct msc_cli_call *call, const struct run_values *v) {
    struct msc_model *m = NULL;
    struct msc_strategy *strategy = NULL;
    struct run_inputs given = {0};
    struct msc_array_list first = {0};
    const struct msc_array **inputs;
    const char **places;
    struct msc_model_run run = {.repeat = v->repeat >= 0 ? v->repeat : 10, .keeps_types = true};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(load_inputs(&given, v, call->arena));
    MSC_TRY_OUT(take_first(&first, &given.list));
    MSC_TRY_OUT(run_open_model(&m, call, v, v->states.n > 0 ? &first : &given.list));
    inputs = msc_arena_array(call->arena, m->n_inputs + 1, sizeof *inputs);
    places = msc_arena_array(call->arena, m->n_inputs + 1, sizeof *places);
    MSC_TRY_OUT(MSC_ALLOCATED(inputs && places));
    if (v->output) {
        MSC_TRY_OUT(run_claim_outputs(m, v, call->arena));
    }
    MSC_TRY_OUT(set_states(m, v, call->arena));
    MSC_TRY_OUT(run_order_inputs(inputs, places, m, &given));
    if (!m->has_state) {
        msc_model_take_whole(m, inputs);
    }
    if (v->strategy) {
        MSC_TRY_OUT(msc_strategy_load(&strategy, v->strategy));
    }
    run.inputs = inputs;
    run.places = places;
    run.is_sequence = m->has_state;
    run.strategy = strategy;
    run.tensors = v->tensors.items;
    run.n_tensors = v->tensors.n;
    MSC_TRY_OUT(msc_model_run(m, &run));
    if (v->output) {
        MSC_TRY_OUT(save_outputs(m, &run, v->output, call->arena));
    }
    status = v->common.json ? print_run_json(m, &run) : print_latency(&run);
out:
    msc_model_run_finish(&run);
    msc_array_list_finish(&given.list);
    msc_array_list_finish(&first);
    msc_strategy_destroy(strategy);
    msc_model_close(m);
    return status;
}

// ---- All samples of a dataset -----------------------------------------------------------------

static enum msc_status check_collect(const struct run_values *v) {
    if (v->inputs.n > 0 || v->repeat >= 0) {
        return MSC_FAIL(MSC_E_INVALID, "run: --inputs cannot be used with --input or --repeat");
    }
    return v->output && is_archive(v->output)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "run: --inputs needs --output FILE.npz or FILE.safetensors");
}

static enum msc_status print_collected(const struct msc_model *m, const struct msc_collect *collect,
                                       bool as_json) {
    if (!as_json) {
        struct msc_str text = {0};
        msc_str_printf(&text, "%s: %zu tensor%s of %lld sample%s, %.3g MB\n", collect->path,
                       collect->n_tensors, collect->n_tensors == 1 ? "" : "s",
                       (long long)collect->n_samples, collect->n_samples == 1 ? "" : "s",
                       (double)collect->n_bytes * 1e-6);
        enum msc_status status = msc_cli_print_str(&text);
        msc_str_finish(&text);
        return status;
    }
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_json_add_text(json, "numerics", msc_model_numerics(m)));
    MSC_TRY_OUT(msc_json_add_text(json, "file", collect->path));
    MSC_TRY_OUT(msc_json_add_number(json, "tensors", (double)collect->n_tensors));
    MSC_TRY_OUT(msc_json_add_number(json, "samples", (double)collect->n_samples));
    MSC_TRY_OUT(msc_json_add_number(json, "bytes", (double)collect->n_bytes));
    status = msc_cli_print_json(json);
out:
    cJSON_Delete(json);
    return status;
}

static enum msc_status load_samples(struct msc_model *m, const struct run_values *v) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    dataset.options.inputs = v->dataset;
    dataset.options.samples = v->samples >= 0 ? v->samples : 0;
    dataset.options.batch = m->has_state ? 0 : 1;
    return msc_model_load_dataset(m, &dataset);
}

static enum msc_status run_open_subject(struct msc_subject *out, const struct msc_cli_call *call,
                                        const struct run_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    MSC_TRY(msc_cli_fill_options(&o, call, &v->common));
    o.allow_plugins = v->allow_plugins;
    MSC_TRY(msc_subject_open(out, v->model, &o));
    if (!out->model) {
        return MSC_FAIL(MSC_E_INVALID,
                        "run: %s is a strategy file: expected a model, and this file with "
                        "--strategy",
                        v->model);
    }
    return out->strategy && v->strategy
               ? MSC_FAIL(MSC_E_INVALID, "run: %s is already compressed: remove --strategy %s",
                          v->model, v->strategy)
               : MSC_OK;
}

static enum msc_status collect_model(const struct msc_cli_call *call, const struct run_values *v) {
    struct msc_model *m = NULL;
    struct msc_strategy *strategy = NULL;
    struct msc_subject subject = {.model = NULL};
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_file_set files = {0};
    struct msc_collect collect = {
        .patterns = v->tensors.items, .n_patterns = v->tensors.n, .path = v->output};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(check_collect(v));
    MSC_TRY_OUT(run_open_subject(&subject, call, v));
    MSC_TRY_OUT(msc_output_read_model(&files, subject.model));
    MSC_TRY_OUT(msc_file_set_read(&files, "the model or its search", v->model));
    MSC_TRY_OUT(msc_file_set_read(&files, "the strategy", v->strategy));
    MSC_TRY_OUT(msc_file_set_read(&files, "the inputs", v->dataset));
    MSC_TRY_OUT(msc_output_claim(&files, MSC_OUTPUT_ANY, "--output", v->output));
    if (v->strategy) {
        MSC_TRY_OUT(msc_strategy_load(&strategy, v->strategy));
    }
    MSC_TRY_OUT(msc_cli_fill_model_options(&o, call, &v->common));
    if (o.n_bindings == 0 && subject.config) {
        o.bindings = subject.config->bindings;
        o.n_bindings = subject.config->n_bindings;
    }
    o.keeps_types = !strategy && !subject.strategy;
    MSC_TRY_OUT(msc_model_open(&m, subject.model, &o));
    MSC_TRY_OUT(set_states(m, v, call->arena));
    MSC_TRY_OUT(load_samples(m, v));
    collect.strategy = strategy ? strategy : subject.strategy;
    MSC_TRY_OUT(msc_collect(m, &collect));
    status = print_collected(m, &collect, v->common.json);
out:
    msc_file_set_finish(&files);
    msc_strategy_destroy(strategy);
    msc_model_close(m);
    msc_subject_close(&subject);
    return status;
}

// ---- Pieces -----------------------------------------------------------------------------------

static enum msc_status run_pieces(const struct msc_cli_call *call, const struct run_values *v) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_pieces *pieces = NULL;
    struct msc_pieces_run run = {.inputs = v->dataset,
                                 .output = v->output,
                                 .keep = v->keep,
                                 .allow_plugins = v->allow_plugins,
                                 .options = &o};
    if (!v->dataset || v->strategy || v->states.n > 0 || v->tensors.n > 0 || v->samples >= 0) {
        return MSC_FAIL(MSC_E_INVALID, "run: a manifest needs --inputs FILE and --output FILE, and "
                                       "takes no --strategy, --state, --tensor or --samples");
    }
    MSC_TRY(check_collect(v));
    MSC_TRY(msc_cli_fill_model_options(&o, call, &v->common));
    MSC_TRY(msc_pieces_load(&pieces, v->model));
    enum msc_status status = msc_pieces_run(pieces, &run);
    msc_pieces_close(pieces);
    return status;
}

static enum msc_status run_any(const struct msc_cli_call *call, const struct run_values *v) {
    if (msc_pieces_is_manifest(v->model)) {
        return run_pieces(call, v);
    }
    if (v->keep) {
        return MSC_FAIL(MSC_E_INVALID, "run: --keep needs a manifest of mscgym split");
    }
    return v->dataset ? collect_model(call, v) : run_model(call, v);
}

static int cmd_run(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = run_any(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_run = {
    .name = "run",
    .summary = "runs a network, writes outputs or any tensors, measures latency",
    .usage = "MODEL --input NAME=FILE.npy ... [--output FOLDER] [options]\nMODEL --inputs FILE "
             "--output FILE [options]",
    .description =
        "Without a strategy the threads share each kernel. With a strategy, each kernel runs "
        "on one thread, as in the search.",
    .examples = "  mscgym run digits.onnx --input image=image.npy --output out\n"
                "  mscgym run digits.onnx --input image=image.npy --output out \\\n"
                "      --strategy msc_workspace/msc_quantize.json --repeat 1000\n"
                "  mscgym run vad.onnx --input input=chunks.npy --input sr=rate.npy \\\n"
                "      --state state=stateN --output out\n"
                "  mscgym run digits.onnx --inputs calibration.npz --tensor '*' -o tensors.npz\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct run_values),
    .run = cmd_run,
};
