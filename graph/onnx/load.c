#include "graph/onnx/load.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "graph/onnx/graph_weights.h"
#include "graph/graph_internal.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/passes/fuse_internal.h"

#include <string.h>

// The weights file next to a path that ends in ".json"; NULL if memory is short.
static char *weights_beside(struct msc_arena *arena, const char *path) {
    int n_stem = (int)(strlen(path) - strlen(".json"));
    return msc_arena_printf(arena, "%.*s.safetensors", n_stem, path);
}

// Replaces the graph by the graph that a search uses: computes joints whose operands are constant,
// and runs the passes.
static enum msc_status simplify(struct msc_graph **g) {
    struct msc_graph *computed;
    MSC_TRY(msc_graph_compute_constants(&computed, *g));
    msc_graph_destroy(*g);
    *g = computed;
    return msc_fuse_all(*g, &(struct msc_fuse_options){0});
}

// If `has_weights` is NULL, the weights file must exist. `new_weights` replaces weights of the
// file; it may be NULL.
static enum msc_status load_json_parts(struct msc_graph **out, bool *has_weights, const char *path,
                                       const struct msc_array_list *new_weights,
                                       struct msc_operators *operators) {
    struct msc_graph *g = NULL;
    struct msc_arena arena = {0};
    struct msc_array_list weights = {0};
    char *text = NULL;
    size_t n_bytes;
    enum msc_status status = MSC_OK;
    char *weights_path = weights_beside(&arena, path);
    MSC_TRY_OUT(MSC_ALLOCATED(weights_path));
    MSC_TRY_OUT(msc_file_read(&text, &n_bytes, path));
    status = msc_safetensors_load(&weights, weights_path);
    bool is_absent = status == MSC_E_NOT_FOUND && has_weights;
    if (is_absent) {
        *has_weights = false;
        status = MSC_OK;
    }
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s: reading its weights", path);
        goto out;
    }
    MSC_TRY_OUT(
        msc_graph__read_json(&g, text, n_bytes, path, is_absent ? NULL : &weights, operators));
    status = new_weights == NULL ? MSC_OK : msc_graph__set_weights(g, new_weights);
    status = status == MSC_OK && !is_absent ? simplify(&g) : status;
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s", path);
        goto out;
    }
    *out = g;
    g = NULL;
out:
    msc_graph_destroy(g);
    msc_free(text);
    msc_array_list_finish(&weights);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status load_json(struct msc_graph **out, const char *path,
                                 struct msc_operators *operators) {
    return load_json_parts(out, NULL, path, NULL, operators);
}

static enum msc_status list_json(const char *const **out, size_t *n, struct msc_arena *arena,
                                 const char *path) {
    const char **list = msc_arena_array(arena, 1, sizeof(list[0]));
    if (list == NULL || (list[0] = weights_beside(arena, path)) == NULL) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    *out = list;
    *n = 1;
    return MSC_OK;
}

static enum msc_status load_onnx(struct msc_graph **out, const char *path,
                                 struct msc_operators *operators) {
    return msc_onnx_load(out, path, &(struct msc_onnx_import_options){.operators = operators});
}

static const struct format {
    const char *ending;
    enum msc_status (*load)(struct msc_graph **out, const char *path,
                            struct msc_operators *operators);
    enum msc_status (*list)(const char *const **out, size_t *n, struct msc_arena *arena,
                            const char *path);
} formats[] = {
    {".onnx", load_onnx, msc_onnx_locations},
    {".json", load_json, list_json},
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
    return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: expected a model file that ends in .onnx or .json",
                    path);
}

static enum msc_status load_format(struct msc_graph **out, const char *path,
                                   struct msc_operators *operators) {
    const struct format *format = find_format(path);
    return format != NULL ? format->load(out, path, operators) : fail_format(path);
}

enum msc_status msc_graph_load(struct msc_graph **out, const char *path) {
    return load_format(out, path, NULL);
}

enum msc_status msc_graph_companions(const char *const **out, size_t *n, struct msc_arena *arena,
                                     const char *path) {
    const struct format *format = find_format(path);
    return format != NULL ? format->list(out, n, arena, path) : fail_format(path);
}

enum msc_status msc_graph_load_form(struct msc_graph **out, bool *has_weights, const char *path,
                                    struct msc_operators *operators) {
    *has_weights = true;
    return msc_path_ends_in(path, ".json")
               ? load_json_parts(out, has_weights, path, NULL, operators)
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
    return weights && msc_path_ends_in(path, ".json")
               ? load_json_parts(out, NULL, path, weights, operators)
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
