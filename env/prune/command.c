// The metric `command` of the `prune` environment. The trial's model is written with its channels
// removed, not masked.
#include "base/alloc.h"
#include "env/metric_command.h"
#include "env/prune/internal.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/prune.h"

struct model {
    const struct msc_prune_env *z;
    const struct msc_graph *graph;
    const uint32_t *choices; // NULL: the float model
};

// Repaired weights without their removed channels.
struct left {
    const struct msc_channels *channels;
    const bool *is_gone;
    struct msc_array **elements; // [n_tensors]
};

static enum msc_status keep_left(void *payload, int32_t tensor, const struct msc_array *elements) {
    const struct left *l = payload;
    return msc_graph_prune_array(&l->elements[tensor], elements, l->channels, tensor, l->is_gone);
}

static enum msc_status save_pruned(const char *path, const struct model *m,
                                   struct msc_array *elements[], struct msc_arena *arena) {
    const struct msc_pruner *p = m->z->pruner;
    const struct msc_channels *channels = msc_pruner_channels(p);
    uint32_t *cuts = msc_arena_array(arena, (size_t)msc_pruner_n_parts(p) + 1, sizeof(cuts[0]));
    bool *is_gone = msc_arena_array(arena, (size_t)channels->n_units + 1, sizeof(is_gone[0]));
    struct msc_graph *small;
    MSC_TRY(MSC_ALLOCATED(cuts && is_gone));
    msc_prune_env__cuts(cuts, m->z, m->choices);
    msc_pruner_mark(p, cuts, is_gone);
    struct left left = {channels, is_gone, elements};
    MSC_TRY(msc_pruner_each_replaced(p, cuts, keep_left, &left));
    MSC_TRY(msc_graph_prune(&small, m->graph, channels, is_gone,
                            (const struct msc_array *const *)elements));
    enum msc_status status = msc_onnx_save(small, path, NULL);
    msc_graph_destroy(small);
    return status;
}

static enum msc_status save_model(const char *path, void *payload) {
    const struct model *m = payload;
    if (!m->choices) {
        return msc_onnx_save(m->graph, path, NULL);
    }
    size_t n = (size_t)msc_graph_n_tensors(m->graph);
    struct msc_arena arena = {0};
    struct msc_array **elements = msc_arena_array(&arena, n + 1, sizeof(elements[0]));
    enum msc_status status =
        elements ? save_pruned(path, m, elements, &arena) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; elements && i < n; i++) {
        msc_array_release(elements[i]);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_prune_env__run_command(double *out, const struct msc_env *env,
                                           const uint32_t choices[],
                                           const struct msc_edit *const edits[]) {
    const struct msc_prune_env *z = msc_env_state(env);
    struct model model = {z, msc_env_host(env)->graph, choices};
    const struct msc_metric_command c = {.command = &z->command,
                                         .distill = z->runs.distill,
                                         .edits = edits,
                                         .save = save_model,
                                         .payload = &model};
    return msc_metric_command_run(out, &c, msc_env_host(env));
}
