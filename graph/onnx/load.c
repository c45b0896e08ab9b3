#include "graph/onnx/load.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "graph/gguf/decoder.h"
#include "graph/graph_internal.h"
#include "graph/onnx/graph_weights.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/passes/simplify.h"

#include <string.h>

// Reads a form of MSCGraph, as msc_graph_read_json does.
typedef enum msc_status (*read_form)(struct msc_graph **out, const char *text, size_t length,
                                     const char *name, const struct msc_array_list *weights,
                                     struct msc_operators *operators);

// The formats of model files. `read` is NULL for ONNX; all others are read as forms of MSCGraph.
// The weights are in a file next to them, unless the format holds `to_text`, which makes the text
// and finds the weights.
static const struct format {
    const char *ending;
    read_form read;
    enum msc_status (*to_text)(char **text, size_t *n_bytes, struct msc_array_list *weights,
                               const char *path);
} formats[] = {
    {".onnx", NULL, NULL},
    {".json", msc_graph_read_json, NULL},
    {".msc", msc_graph_read_text, NULL},
    {".gguf", msc_graph_read_text, msc_gguf_to_text},
};

static const struct format *find_format(const char *path) {
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (msc_path_ends_in(path, formats[i].ending)) {
            return &formats[i];
        }
    }
    return NULL;
}

static enum msc_status fail_format(const char *path) {
    return MSC_FAIL(MSC_E_UNSUPPORTED,
                    "%s: expected a model file that ends in .onnx, .json, .msc or .gguf", path);
}

// ---- Forms of MSCGraph ------------------------------------------------------------------------

// The weights file next to the file of a form; NULL if memory is short.
static char *weights_beside(struct msc_arena *arena, const char *path) {
    int n_stem = (int)(strlen(path) - strlen(find_format(path)->ending));
    return msc_arena_printf(arena, "%.*s.safetensors", n_stem, path);
}

// Replaces the graph by the graph that a search uses: computes joints whose operands are constant,
// and runs the passes. If `keep_joints` is true, only checks the weights.
static enum msc_status simplify(struct msc_graph **g, bool keep_joints) {
    struct msc_graph *computed;
    const struct msc_simplify_options options = {.keep_joints = keep_joints};
    if (!keep_joints) {
        MSC_TRY(msc_graph_compute_constants(&computed, *g));
        msc_graph_destroy(*g);
        *g = computed;
    }
    return msc_graph_simplify(*g, &options);
}

// A form while it is read.
struct form {
    const char *path;
    read_form read;
    struct msc_operators *operators;
    char *text;
    size_t n_bytes;
    struct msc_array_list weights;
    struct msc_arena arena;
    struct msc_graph *graph;
};

// Reads a graph that has no weights file, which a graph without weights does not need. For other
// graphs, *has_weights is false, or the message `why` is the error if `has_weights` is NULL.
static enum msc_status read_alone(struct form *f, bool *has_weights, const char *why) {
    enum msc_status status =
        f->read(&f->graph, f->text, f->n_bytes, f->path, &f->weights, f->operators);
    if (status != MSC_E_NOT_FOUND) {
        return status;
    }
    if (has_weights == NULL) {
        return msc_status_restore(MSC_E_NOT_FOUND, why);
    }
    *has_weights = false;
    return f->read(&f->graph, f->text, f->n_bytes, f->path, NULL, f->operators);
}

static enum msc_status read_with_weights(struct form *f, bool *has_weights) {
    const struct format *format = find_format(f->path);
    if (format->to_text != NULL) {
        MSC_TRY(format->to_text(&f->text, &f->n_bytes, &f->weights, f->path));
        return f->read(&f->graph, f->text, f->n_bytes, f->path, &f->weights, f->operators);
    }
    char *weights_path = weights_beside(&f->arena, f->path);
    MSC_TRY(MSC_ALLOCATED(weights_path));
    MSC_TRY(msc_file_read(&f->text, &f->n_bytes, f->path));
    enum msc_status status = msc_safetensors_load(&f->weights, weights_path);
    if (status == MSC_OK) {
        return f->read(&f->graph, f->text, f->n_bytes, f->path, &f->weights, f->operators);
    }
    status = msc_status_prefix(status, "%s: reading its weights", f->path);
    if (status != MSC_E_NOT_FOUND) {
        return status;
    }
    const char *why = msc_arena_strdup(&f->arena, msc_status_message());
    MSC_TRY(MSC_ALLOCATED(why));
    return read_alone(f, has_weights, why);
}

// If `has_weights` is NULL, the weights must exist. `new_weights` replaces weights of the file; it
// may be NULL.
static enum msc_status load_form(struct msc_graph **out, bool *has_weights, const char *path,
                                 const struct msc_array_list *new_weights,
                                 struct msc_operators *operators, bool keep_joints) {
    struct form f = {.path = path, .read = find_format(path)->read, .operators = operators};
    enum msc_status status = MSC_OK;
    bool can_run = true;
    MSC_TRY_OUT(read_with_weights(&f, has_weights == NULL ? NULL : &can_run));
    if (has_weights != NULL) {
        *has_weights = can_run;
    }
    status = new_weights == NULL ? MSC_OK : msc_graph__set_weights(f.graph, new_weights);
    status = status == MSC_OK && can_run ? simplify(&f.graph, keep_joints) : status;
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s", path);
        goto out;
    }
    *out = f.graph;
    f.graph = NULL;
out:
    msc_graph_destroy(f.graph);
    msc_free(f.text);
    msc_array_list_finish(&f.weights);
    msc_arena_finish(&f.arena);
    return status;
}

static enum msc_status list_form(const char *const **out, size_t *n, struct msc_arena *arena,
                                 const char *path) {
    const char **list = msc_arena_array(arena, 1, sizeof(list[0]));
    if (list == NULL || (list[0] = weights_beside(arena, path)) == NULL) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    *out = list;
    *n = find_format(path)->to_text == NULL;
    return MSC_OK;
}

// ---- Any format -------------------------------------------------------------------------------

static enum msc_status load_format(struct msc_graph **out, const char *path,
                                   struct msc_operators *operators) {
    const struct format *format = find_format(path);
    const struct msc_onnx_import_options options = {.operators = operators};
    return format == NULL         ? fail_format(path)
           : format->read != NULL ? load_form(out, NULL, path, NULL, operators, false)
                                  : msc_onnx_load(out, path, &options);
}

enum msc_status msc_graph_load(struct msc_graph **out, const char *path) {
    return load_format(out, path, NULL);
}

enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path) {
    const struct format *format = find_format(path);
    return format == NULL         ? fail_format(path)
           : format->read != NULL ? list_form(out, n, arena, path)
                                  : msc_onnx_locations(out, n, arena, path);
}

enum msc_status msc_graph_load_plain(struct msc_graph **out, const char *path) {
    const struct format *format = find_format(path);
    const struct msc_onnx_import_options options = {.keep_joints = true};
    return format == NULL         ? fail_format(path)
           : format->read != NULL ? load_form(out, NULL, path, NULL, NULL, true)
                                  : msc_onnx_load(out, path, &options);
}

static bool is_form(const char *path) {
    const struct format *format = find_format(path);
    return format != NULL && format->read != NULL;
}

enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path,
                                    struct msc_operators *operators) {
    *has_weights = true;
    return is_form(path) ? load_form(out, has_weights, path, NULL, operators, false)
                         : load_format(out, path, operators);
}

// True if a binding names an input rather than a symbol.
static bool names_input(const struct msc_graph *g, const struct msc_binding bindings[], size_t n) {
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        const char *alias = msc_graph_tensor(g, msc_graph_input(g, i))->alias;
        for (size_t b = 0; b < n; b++) {
            if (strcmp(bindings[b].symbol, alias) == 0 &&
                msc_graph_find_prim(g, alias) == MSC_NO_ID) {
                return true;
            }
        }
    }
    return false;
}

static bool is_readable(enum msc_status status) {
    return status == MSC_OK || status == MSC_E_INVALID || status == MSC_E_UNSUPPORTED;
}

enum msc_status msc_graph_load_for(struct msc_graph **out, const char *path,
                                   const struct msc_array_list *feeds,
                                   struct msc_operators *operators) {
    const struct msc_onnx_import_options options = {.feeds = feeds, .operators = operators};
    enum msc_status status = load_format(out, path, operators);
    if (status == MSC_OK || !is_readable(status) || !msc_path_ends_in(path, ".onnx")) {
        return status;
    }
    return msc_onnx_load(out, path, &options);
}

static enum msc_status load_plain(struct msc_graph **out, const char *path,
                                  const struct msc_array_list *weights,
                                  struct msc_operators *operators) {
    if (weights && msc_path_ends_in(path, ".onnx")) {
        return msc_onnx_load(
            out, path,
            &(struct msc_onnx_import_options){.weights = weights, .operators = operators});
    }
    return weights && is_form(path) ? load_form(out, NULL, path, weights, operators, false)
                                    : load_format(out, path, operators);
}

enum msc_status msc_graph_load_bound(struct msc_graph **out, bool *is_bound, const char *path,
                                     const struct msc_binding bindings[], size_t n,
                                     struct msc_operators *operators) {
    return msc_graph_load_weights(out, is_bound, path, bindings, n, NULL, operators);
}

enum msc_status msc_graph_load_weights(struct msc_graph **out, bool *is_bound, const char *path,
                                       const struct msc_binding bindings[], size_t n,
                                       const struct msc_array_list *weights,
                                       struct msc_operators *operators) {
    struct msc_graph *plain = NULL;
    *is_bound = false;
    enum msc_status status = load_plain(&plain, path, weights, operators);
    bool helps = status != MSC_OK || names_input(plain, bindings, n);
    if (n == 0 || !msc_path_ends_in(path, ".onnx") || !is_readable(status) || !helps) {
        *out = plain;
        return status;
    }
    const struct msc_onnx_import_options options = {
        .bindings = bindings, .n_bindings = n, .weights = weights, .operators = operators};
    msc_graph_destroy(plain);
    *is_bound = true;
    return msc_onnx_load(out, path, &options);
}
