// Writes a graph's JSON form and its weights to disk.
#include "graph/graph_internal.h"

#include "base/file.h"
#include "base/str.h"
#include "data/safetensors.h"

static enum msc_status list_weights(struct msc_array_list *list, struct msc_arena *arena,
                                    const struct msc_graph *g, const char *prefix) {
    for (int32_t i = 0; i < g->n_tensors; i++) {
        const struct msc_tensor *t = &g->tensors[i]->tensor;
        if (t->producer != MSC_NO_ID) {
            continue;
        }
        if (t->data == NULL) {
            return MSC_FAIL(MSC_E_STATE, "graph '%s': weight '%s' has no elements to save", g->name,
                            t->name);
        }
        const char *name = msc_arena_printf(arena, "%s%s", prefix, t->name);
        MSC_TRY(MSC_ALLOCATED(name));
        MSC_TRY(msc_array_list_add(list, name, t->data));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_graphs; k++) {
            const char *inner = msc_graph__body_prefix(arena, prefix, j->op, j->name, k);
            MSC_TRY(MSC_ALLOCATED(inner));
            MSC_TRY(list_weights(list, arena, j->graphs[k], inner));
        }
    }
    return MSC_OK;
}

enum msc_status msc_graph_save(const struct msc_graph *g, const char *path) {
    struct msc_arena arena = {0};
    struct msc_array_list weights = {0};
    struct msc_str json = {0};
    enum msc_status status = MSC_OK;
    char *weights_path = msc_arena_printf(&arena, "%s.safetensors", path);
    char *json_path = msc_arena_printf(&arena, "%s.json", path);
    MSC_TRY_OUT(MSC_ALLOCATED(weights_path && json_path));
    MSC_TRY_OUT(list_weights(&weights, &arena, g, ""));
    msc_graph_write_json(g, &json);
    msc_str_char(&json, '\n');
    MSC_TRY_OUT(msc_str_status(&json));
    MSC_TRY_OUT(msc_safetensors_save(weights_path, &weights, NULL, 0));
    MSC_TRY_OUT(msc_file_write(json_path, json.data, json.length));
out:
    msc_str_finish(&json);
    msc_array_list_finish(&weights);
    msc_arena_finish(&arena);
    return status;
}
