// Names joints after the modules of the network. torch's exporter writes into a node's metadata
// which module computed it:
//
//     pkg.torch.onnx.name_scopes: ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_1']
//
// The last string is the node's own name, and the string before it is the path of the module. The
// first layer of a module that reads a weight is named PATH. A node that is the only one of its
// module is also named PATH. Other joints of the module are named "PATH/NAME".
//
// In two cases, the path is taken from the name of the layer's weight instead. If the exporter
// merged a convolution with a batch normalisation, the metadata name the module of the
// normalisation. If a module computes with the weight of a child, as nn.MultiheadAttention does,
// the metadata name the parent.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

#define KEY "pkg.torch.onnx.name_scopes"
#define NOWHERE "_empty_nn_module_stack_from_metadata_hook" // torch's path for "no module"

static const char *find_scopes(const Onnx__NodeProto *node) {
    for (size_t i = 0; i < node->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = node->metadata_props[i];
        if (entry->key != NULL && strcmp(entry->key, KEY) == 0) {
            return entry->value;
        }
    }
    return NULL;
}

// Finds the next quoted string in a list as Python prints it; *n is the number of bytes between the
// quotes. Returns the rest of the list, or NULL if it contains no quoted string.
static const char *next_text(const char **text, size_t *n, const char *list) {
    const char *quote = strpbrk(list, "'\"");
    const char *end = quote == NULL ? NULL : strchr(quote + 1, *quote);
    if (end == NULL) {
        return NULL;
    }
    *text = quote + 1;
    *n = (size_t)(end - quote - 1);
    return end + 1;
}

// Reads the module from the node's metadata. False if there is none.
static bool read_module(struct msc_onnx_module *out, struct msc_arena *arena,
                        const Onnx__NodeProto *node) {
    const char *list = find_scopes(node), *text, *path = NULL, *name = NULL;
    size_t n, n_path = 0, n_name = 0;
    while (list != NULL && (list = next_text(&text, &n, list)) != NULL) {
        path = name;
        n_path = n_name;
        name = text;
        n_name = n;
    }
    if (name == NULL || n_name == 0 || memchr(name, '\\', n_name) != NULL) {
        return false; // no metadata, or names that Python had to escape
    }
    bool is_nowhere = n_path == strlen(NOWHERE) && memcmp(path, NOWHERE, n_path) == 0;
    n_path = is_nowhere ? 0 : n_path;
    *out = (struct msc_onnx_module){msc_arena_strndup(arena, path == NULL ? "" : path, n_path),
                                    msc_arena_strndup(arena, name, n_name), NULL};
    return out->path != NULL && out->name != NULL;
}

// Layers, and the index of their weight's input.
static const struct {
    const char *op;
    size_t weight;
} layers[] = {
    {"BatchNormalization", 1},
    {"Conv", 1},
    {"ConvTranspose", 1},
    {"DeformConv", 1},
    {"GRU", 1},
    {"Gather", 0},
    {"Gemm", 1},
    {"Gemm", 0},
    {"GroupNormalization", 1},
    {"InstanceNormalization", 1},
    {"LSTM", 1},
    {"LayerNormalization", 1},
    {"MatMul", 1},
    {"MatMul", 0},
    {"PRelu", 1},
    {"RMSNormalization", 1},
    {"RNN", 1},
};

// The name of the initialiser that is the layer's weight, or NULL.
static const char *find_weight(struct msc_onnx_import *im, const Onnx__NodeProto *node) {
    for (size_t i = 0; node->op_type != NULL && i < sizeof layers / sizeof layers[0]; i++) {
        size_t input = layers[i].weight;
        if (strcmp(layers[i].op, node->op_type) == 0 && input < node->n_input &&
            node->input[input][0] != '\0' && msc_onnx__is_initializer(im, node->input[input])) {
            return node->input[input];
        }
    }
    return NULL;
}

// The length of the component at `text`, up to the next dot.
static size_t component(const char *text) {
    return strcspn(text, ".");
}

static bool is_number(const char *text, size_t n) {
    return n > 0 && strspn(text, "0123456789") >= n;
}

// Skips the components of `path` at the start of `name`, and the dot after them. Returns the rest
// of `name`, or NULL if the components differ. Components that are numbers may differ, because
// exporters let equal blocks share one weight.
static const char *skip_path(const char *name, const char *path, size_t n_path) {
    const char *end = path + n_path;
    while (path < end) {
        size_t n = component(name), m = component(path);
        m = path + m > end ? (size_t)(end - path) : m;
        bool is_same = n == m && memcmp(name, path, n) == 0;
        if ((!is_same && !(is_number(name, n) && is_number(path, m))) || name[n] != '.') {
            return NULL;
        }
        name += n + 1;
        path += m < (size_t)(end - path) ? m + 1 : m;
    }
    return name;
}

// Replaces the module's path by the path in the weight's name, "PATH.weight", if PATH is a child of
// the module. For a merged batch normalisation, PATH must be a sibling of the module.
static bool take_weight_path(struct msc_onnx_module *m, struct msc_arena *arena,
                             const char *weight) {
    bool is_merged = strstr(m->name, "batch_norm") != NULL;
    const char *last = strrchr(m->path, '.');
    size_t n_around = !is_merged ? strlen(m->path) : last == NULL ? 0 : (size_t)(last - m->path);
    const char *rest = weight == NULL ? NULL : skip_path(weight, m->path, n_around);
    const char *end = rest == NULL ? NULL : strrchr(rest, '.');
    if (end == NULL) {
        return true; // the weight belongs to the module itself, or is named otherwise
    }
    m->path = msc_arena_printf(arena, "%.*s%s%.*s", (int)n_around, m->path, n_around > 0 ? "." : "",
                               (int)(end - rest), rest);
    return m->path != NULL;
}

// The module of a node, with the path that its weight's name gives. False if there is none.
static bool find_module(struct msc_onnx_module *out, struct msc_onnx_import *im,
                        const Onnx__NodeProto *node) {
    return read_module(out, &im->builder.arena, node) &&
           take_weight_path(out, &im->builder.arena, find_weight(im, node));
}

// Counts the nodes of each module, and finds the node that gets the module's path as its name.
static enum msc_status find_owners(struct msc_graph_names *owners, struct msc_onnx_import *im,
                                   const struct msc_onnx_module modules[]) {
    const Onnx__GraphProto *g = im->proto;
    struct msc_graph_names counts = {0};
    enum msc_status status = MSC_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->n_node; i++) {
            const char *path = modules[i].path;
            if (path == NULL || path[0] == '\0') {
                continue;
            }
            int32_t n = msc_graph__names_find(&counts, path);
            if (pass == 0) {
                MSC_TRY_OUT(msc_graph__names_put(&counts, path, n == MSC_NO_ID ? 1 : n + 1));
            }
            bool is_owner = pass == 0 ? find_weight(im, g->node[i]) != NULL : n == 1;
            if (is_owner && msc_graph__names_find(owners, path) == MSC_NO_ID) {
                MSC_TRY_OUT(msc_graph__names_put(owners, path, (int32_t)i));
            }
        }
    }
out:
    msc_graph__names_finish(&counts);
    return status;
}

// "PATH", "PATH/NAME" or "NAME". Appends a number if another node has this name.
static enum msc_status make_name(const char **out, struct msc_graph_names *taken,
                                 struct msc_arena *arena, const struct msc_onnx_module *m,
                                 bool is_owner) {
    const char *name = is_owner             ? m->path
                       : m->path[0] == '\0' ? m->name
                                            : msc_arena_printf(arena, "%s/%s", m->path, m->name);
    MSC_TRY(MSC_ALLOCATED(name));
    int32_t n = msc_graph__names_find(taken, name);
    MSC_TRY(msc_graph__names_put(taken, name, n == MSC_NO_ID ? 1 : n + 1));
    *out = n == MSC_NO_ID ? name : msc_arena_printf(arena, "%s_%d", name, (int)n);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_onnx__find_modules(struct msc_onnx_import *im) {
    const Onnx__GraphProto *g = im->proto;
    struct msc_arena *arena = &im->builder.arena;
    struct msc_graph_names owners = {0}, taken = {0};
    enum msc_status status = MSC_OK;
    struct msc_onnx_module *modules = msc_arena_array(arena, g->n_node + 1, sizeof modules[0]);
    MSC_TRY_OUT(MSC_ALLOCATED(modules));
    for (size_t i = 0; i < g->n_node; i++) {
        if (!find_module(&modules[i], im, g->node[i])) {
            modules[i] = (struct msc_onnx_module){NULL, NULL, NULL};
        }
    }
    MSC_TRY_OUT(find_owners(&owners, im, modules));
    for (size_t i = 0; i < g->n_node; i++) {
        if (modules[i].path != NULL) {
            bool is_owner = msc_graph__names_find(&owners, modules[i].path) == (int32_t)i;
            MSC_TRY_OUT(make_name(&modules[i].joint, &taken, arena, &modules[i], is_owner));
        }
    }
    im->modules = modules;
out:
    msc_graph__names_finish(&owners);
    msc_graph__names_finish(&taken);
    return status;
}
