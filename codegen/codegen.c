#include "codegen/codegen.h"

#include "base/file.h"
#include "base/str.h"
#include "codegen/codegen_internal.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "graph/onnx/onnx.h"
#include "graph/wide.h"
#include "model/export.h"
#include "model/latency.h"
#include "tools/strategy.h"

#include <stdio.h>
#include <string.h>

#define STRATEGY_FILE "strategy.json"
#define MODEL_FILE "model.onnx"
#define LONGEST_NAME 64

// Texts that the build makes of files of this folder.
extern const char msc_codegen_c_cmake[];
extern const char msc_codegen_c_main[];
extern const char msc_codegen_c_builder[];
extern const char msc_codegen_c_builder_header[];
extern const char msc_codegen_ort_cmake[];
extern const char msc_codegen_ort_main[];
// One statement for a line in network.c, however long the names are.
static const char c_format[] = "BasedOnStyle: LLVM\nIndentWidth: 4\nColumnLimit: 0\n";
static const char ort_format[] = "BasedOnStyle: LLVM\nIndentWidth: 4\nColumnLimit: 100\n"
                                 "AllowShortFunctionsOnASingleLine: Empty\n";

struct text_file {
    const char *name;
    const char *text; // NULL: written by a function
};

// All files of a program; folders have a file for each array.
static const struct text_file c_files[] = {
    {".clang-format", c_format},
    {"CMakeLists.txt", msc_codegen_c_cmake},
    {"main.c", msc_codegen_c_main},
    {"builder.c", msc_codegen_c_builder},
    {"builder.h", msc_codegen_c_builder_header},
    {"network.c", NULL},
    {"weights.safetensors", NULL},
    {"inputs.safetensors", NULL},
    {"outputs.safetensors", NULL},
    {STRATEGY_FILE, NULL},
    {NULL, NULL},
};
static const struct text_file ort_files[] = {
    {".clang-format", ort_format},
    {"CMakeLists.txt", msc_codegen_ort_cmake},
    {"main.cpp", msc_codegen_ort_main},
    {MODEL_FILE, NULL},
    {"inputs", NULL},
    {"outputs", NULL},
    {NULL, NULL},
};

struct codegen {
    const struct msc_codegen_options *options;
    const struct text_file *files;
    struct msc_arena arena;
    struct msc_model *model;
    struct msc_graph *graph; // the model's graph before samples decide branches
    struct msc_model_run run;
    char name[LONGEST_NAME];
    double tolerance;
};

static char *path_of(struct codegen *c, const char *name) {
    return msc_path_join(&c->arena, c->options->folder, name);
}

// ---- The network and its outputs --------------------------------------------------------------

// "run_" and the name of the model's file, as an identifier. The prefix keeps the name apart from
// names that CMake reserves.
static void choose_name(struct codegen *c) {
    const char *from = msc_path_name(c->options->model);
    const char *dot = strrchr(from, '.');
    size_t length = dot != NULL && dot != from ? (size_t)(dot - from) : strlen(from);
    size_t n = strlen("run_");
    memcpy(c->name, "run_", n);
    for (size_t i = 0; i < length && n + 1 < sizeof c->name; i++) {
        char l = from[i];
        bool is_kept = (l >= 'a' && l <= 'z') || (l >= 'A' && l <= 'Z') || (l >= '0' && l <= '9');
        c->name[n++] = is_kept ? l : '_';
    }
    c->name[n] = '\0';
}

static void raise_tolerance(double *tolerance, const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        bool rounds = j->op == MSC_OP_QUANTIZE || j->op == MSC_OP_DYNAMIC_QUANTIZE;
        *tolerance = rounds ? 5e-2 : *tolerance;
        for (int32_t k = 0; k < j->n_graphs; k++) {
            raise_tolerance(tolerance, j->graphs[k]);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        enum msc_dtype dtype = msc_graph_tensor(g, i)->dtype;
        bool is_narrow = dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
        *tolerance = is_narrow && *tolerance < 1e-2 ? 1e-2 : *tolerance;
    }
}

// Kernels that add in another order change a float by a few units in the last place. If values are
// rounded to integers, such a change can move one of them by a whole step.
static void choose_tolerance(struct codegen *c) {
    c->tolerance = c->options->strategy != NULL ? 5e-2 : 1e-4;
    raise_tolerance(&c->tolerance, msc_graph_own(c->graph));
}

// Opens the model and runs it once, as the program in C will do.
static enum msc_status compute_outputs(struct codegen *c) {
    const struct msc_codegen_options *o = c->options;
    struct msc_model_options options = MSC_MODEL_OPTIONS_INIT;
    options.device = "cpu";
    options.keeps_types = o->strategy == NULL;
    options.bindings = o->bindings;
    options.n_bindings = o->n_bindings;
    options.log = o->log;
    MSC_TRY(msc_model_open(&c->model, o->model, &options));
    c->graph = msc_graph_retain(c->model->graph);
    MSC_TRY(msc_model_load_first(c->model, o->inputs, o->batch));
    const struct msc_array **inputs =
        msc_arena_array(&c->arena, c->model->n_inputs + 1, sizeof inputs[0]);
    MSC_TRY(MSC_ALLOCATED(inputs));
    for (size_t i = 0; i < c->model->n_inputs; i++) {
        inputs[i] = msc_dataset_batch(c->model->dataset, 0, i);
    }
    c->run = (struct msc_model_run){.inputs = inputs, .strategy = o->strategy, .keeps_types = true};
    MSC_TRY(msc_model_run(c->model, &c->run));
    choose_name(c);
    choose_tolerance(c);
    return MSC_OK;
}

// ---- Texts ------------------------------------------------------------------------------------

// Replaces @NAME@ and @TOLERANCE@.
static void fill_in(struct msc_str *out, const struct codegen *c, const char *text) {
    static const char name[] = "@NAME@", tolerance[] = "@TOLERANCE@";
    while (*text != '\0') {
        if (strncmp(text, name, sizeof name - 1) == 0) {
            msc_str_append(out, c->name);
            text += sizeof name - 1;
        } else if (strncmp(text, tolerance, sizeof tolerance - 1) == 0) {
            msc_str_double(out, c->tolerance);
            text += sizeof tolerance - 1;
        } else {
            msc_str_char(out, *text++);
        }
    }
}

static enum msc_status write_text(struct codegen *c, const char *name, struct msc_str *text) {
    char *path = path_of(c, name);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_str_status(text));
    return msc_file_write(path, text->data, text->length);
}

static enum msc_status write_texts(struct codegen *c) {
    for (const struct text_file *f = c->files; f->name != NULL; f++) {
        if (f->text != NULL) {
            struct msc_str text = {0};
            fill_in(&text, c, f->text);
            enum msc_status status = write_text(c, f->name, &text);
            msc_str_finish(&text);
            MSC_TRY(status);
        }
    }
    return MSC_OK;
}

// ---- The program in C -------------------------------------------------------------------------

static const char *output_name(const struct codegen *c, size_t i) {
    return msc_tensor_label(msc_graph_tensor(c->model->graph, c->run.wanted[i]));
}

static enum msc_status write_weights(struct codegen *c, const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_graph_list_weights(&list, &c->arena, msc_graph_own(c->graph), "");
    status = status == MSC_OK ? msc_safetensors_save(path, &list, NULL, 0) : status;
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status write_inputs(struct codegen *c, const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < c->model->n_inputs; i++) {
        status = msc_array_list_add(&list, c->model->specs[i].name, c->run.inputs[i]);
    }
    status = status == MSC_OK ? msc_safetensors_save(path, &list, NULL, 0) : status;
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status write_outputs(struct codegen *c, const char *path) {
    struct msc_array_list list = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < c->run.n_outputs; i++) {
        status = msc_array_list_add(&list, output_name(c, i), c->run.outputs[i]);
    }
    status = status == MSC_OK ? msc_safetensors_save(path, &list, NULL, 0) : status;
    msc_array_list_finish(&list);
    return status;
}

static enum msc_status write_network(struct codegen *c) {
    const struct msc_codegen_network network = {
        .graph = msc_graph_own(c->graph),
        .model = msc_path_name(c->options->model),
        .name = c->name,
        .strategy = c->options->strategy != NULL ? STRATEGY_FILE : NULL,
        .numerics = msc_model_numerics(c->model),
        .tolerance = c->tolerance,
    };
    struct msc_str text = {0};
    enum msc_status status = msc_codegen__network(&text, &network);
    status = status == MSC_OK ? write_text(c, "network.c", &text) : status;
    msc_str_finish(&text);
    return status;
}

static enum msc_status write_c(struct codegen *c) {
    char *weights = path_of(c, "weights.safetensors");
    char *inputs = path_of(c, "inputs.safetensors");
    char *outputs = path_of(c, "outputs.safetensors");
    char *strategy = path_of(c, STRATEGY_FILE);
    MSC_TRY(MSC_ALLOCATED(weights && inputs && outputs && strategy));
    MSC_TRY(write_network(c));
    MSC_TRY(write_weights(c, weights));
    MSC_TRY(write_inputs(c, inputs));
    MSC_TRY(write_outputs(c, outputs));
    return c->options->strategy != NULL
               ? msc_strategy_save(c->options->strategy, c->graph, strategy)
               : MSC_OK;
}

// ---- The program for ONNX Runtime -------------------------------------------------------------

// numpy has no bfloat16.
static enum msc_status check_type(const struct codegen *c, const char *what, const char *name,
                                  const struct msc_array *array) {
    return msc_array_dtype(array) != MSC_DTYPE_BF16
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_UNSUPPORTED,
                     "%s: the program for ONNX Runtime has no bfloat16, the type of %s \"%s\": "
                     "use --to c",
                     c->options->model, what, name);
}

static enum msc_status check_types(const struct codegen *c) {
    for (size_t i = 0; i < c->model->n_inputs; i++) {
        MSC_TRY(check_type(c, "input", c->model->specs[i].name, c->run.inputs[i]));
    }
    for (size_t i = 0; i < c->run.n_outputs; i++) {
        MSC_TRY(check_type(c, "output", output_name(c, i), c->run.outputs[i]));
    }
    return MSC_OK;
}

// Path of array n in a folder; NULL if out of memory.
static char *array_path(struct codegen *c, const char *folder, size_t n) {
    char *name = msc_arena_printf(&c->arena, "%s/%zu.npy", folder, n);
    return name != NULL ? path_of(c, name) : NULL;
}

static enum msc_status write_arrays(struct codegen *c, const char *folder,
                                    const struct msc_array *const arrays[], size_t n) {
    char *path = path_of(c, folder);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_file_make_folders(path));
    for (size_t i = 0; i < n; i++) {
        path = array_path(c, folder, i);
        MSC_TRY(MSC_ALLOCATED(path));
        MSC_TRY(msc_npy_save(path, arrays[i]));
    }
    return MSC_OK;
}

static enum msc_status write_ort(struct codegen *c) {
    char *path = path_of(c, MODEL_FILE);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_export_model(c->graph, c->options->strategy, path, NULL, -1));
    MSC_TRY(write_arrays(c, "inputs", c->run.inputs, c->model->n_inputs));
    return write_arrays(c, "outputs", (const struct msc_array *const *)c->run.outputs,
                        c->run.n_outputs);
}

// ---- The folder -------------------------------------------------------------------------------

// Files of a folder may have been changed, so none is replaced.
static enum msc_status check_folder(struct codegen *c) {
    for (const struct text_file *f = c->files; f->name != NULL; f++) {
        char *path = path_of(c, f->name);
        MSC_TRY(MSC_ALLOCATED(path));
        if (msc_file_exists(path)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "codegen: %s exists: give another folder, or remove this one", path);
        }
    }
    return MSC_OK;
}

// Removes a folder of arrays, if nothing else is in it.
static void remove_arrays(struct codegen *c, const char *folder, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char *path = array_path(c, folder, i);
        if (path != NULL) {
            (void)msc_file_remove(path);
        }
    }
    char *path = path_of(c, folder);
    if (path != NULL) {
        (void)remove(path);
    }
}

// Returns `status`, with its message, after a failure.
static enum msc_status remove_files(struct codegen *c, enum msc_status status) {
    const char *why = msc_arena_strdup(&c->arena, msc_status_message());
    if (c->options->kind == MSC_CODEGEN_ONNXRUNTIME) {
        remove_arrays(c, "inputs", c->model->n_inputs);
        remove_arrays(c, "outputs", c->run.n_outputs);
    }
    for (const struct text_file *f = c->files; f->name != NULL; f++) {
        char *path = path_of(c, f->name);
        if (path != NULL) {
            (void)msc_onnx_remove(path);
        }
    }
    return why != NULL ? msc_status_restore(status, why) : status;
}

static enum msc_status write_folder(struct codegen *c) {
    bool is_c = c->options->kind == MSC_CODEGEN_C;
    MSC_TRY(is_c ? MSC_OK : check_types(c));
    MSC_TRY(msc_file_make_folders(c->options->folder));
    enum msc_status status = write_texts(c);
    if (status == MSC_OK) {
        status = is_c ? write_c(c) : write_ort(c);
    }
    return status == MSC_OK ? MSC_OK : remove_files(c, status);
}

enum msc_status msc_codegen(const struct msc_codegen_options *options) {
    struct codegen c = {
        .options = options,
        .files = options->kind == MSC_CODEGEN_C ? c_files : ort_files,
    };
    enum msc_status status = check_folder(&c);
    if (status == MSC_OK) {
        status = compute_outputs(&c);
    }
    if (status == MSC_OK) {
        status = write_folder(&c);
    }
    msc_model_run_finish(&c.run);
    msc_graph_destroy(c.graph);
    msc_model_close(c.model);
    msc_arena_finish(&c.arena);
    return status;
}
