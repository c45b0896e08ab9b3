// Finds the files next to an ONNX model that hold its weights.
#include "base/alloc.h"
#include "base/file.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_file_internal.h"

#include <string.h>

struct collecting {
    const char **paths; // in the arena
    size_t n, capacity;
    struct msc_arena *arena;
    const char *folder;
};

static enum msc_status add_path(struct collecting *c, const char *location) {
    const char *path = msc_path_join(c->arena, c->folder, location);
    MSC_TRY(MSC_ALLOCATED(path));
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->paths[i], path) == 0) {
            return MSC_OK;
        }
    }
    MSC_TRY(msc_grow(&c->paths, &c->capacity, c->n + 1, sizeof(c->paths[0])));
    c->paths[c->n++] = path;
    return MSC_OK;
}

static enum msc_status walk_tensor(struct collecting *c, const Onnx__TensorProto *t) {
    for (size_t i = 0; t != NULL && i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = t->external_data[i];
        if (e->key != NULL && e->value != NULL && strcmp(e->key, "location") == 0) {
            MSC_TRY(add_path(c, e->value));
        }
    }
    return MSC_OK;
}

static enum msc_status walk_graph(struct collecting *c, const Onnx__GraphProto *g);

static enum msc_status walk_attribute(struct collecting *c, const Onnx__AttributeProto *a) {
    MSC_TRY(walk_tensor(c, a->t));
    MSC_TRY(walk_graph(c, a->g));
    for (size_t i = 0; i < a->n_tensors; i++) {
        MSC_TRY(walk_tensor(c, a->tensors[i]));
    }
    for (size_t i = 0; i < a->n_graphs; i++) {
        MSC_TRY(walk_graph(c, a->graphs[i]));
    }
    return MSC_OK;
}

static enum msc_status walk_nodes(struct collecting *c, Onnx__NodeProto *const nodes[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            MSC_TRY(walk_attribute(c, nodes[i]->attribute[k]));
        }
    }
    return MSC_OK;
}

static enum msc_status walk_graph(struct collecting *c, const Onnx__GraphProto *g) {
    for (size_t i = 0; g != NULL && i < g->n_initializer; i++) {
        MSC_TRY(walk_tensor(c, g->initializer[i]));
    }
    return g == NULL ? MSC_OK : walk_nodes(c, g->node, g->n_node);
}

enum msc_status msc_onnx_locations(const char *const **out, size_t *n, struct msc_arena *arena,
                                   const char *path) {
    struct collecting c = {.arena = arena, .folder = msc_path_folder(arena, path)};
    Onnx__ModelProto *model = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(c.folder));
    MSC_TRY(msc_onnx_model_read(&model, path));
    MSC_TRY_OUT(walk_graph(&c, model->graph));
    for (size_t i = 0; i < model->n_functions; i++) {
        MSC_TRY_OUT(walk_nodes(&c, model->functions[i]->node, model->functions[i]->n_node));
    }
    const char **kept = msc_arena_array(arena, c.n + 1, sizeof(kept[0]));
    MSC_TRY_OUT(MSC_ALLOCATED(kept));
    for (size_t i = 0; i < c.n; i++) {
        kept[i] = c.paths[i];
    }
    *out = kept;
    *n = c.n;
out:
    msc_free(c.paths);
    msc_onnx_model_free(model);
    return status;
}
