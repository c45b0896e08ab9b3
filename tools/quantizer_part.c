// Restricts a search to the part of a network that contributes to named tensors.
#include "tools/quantizer_internal.h"

#include <string.h>

// Walks joints in reverse topological order, so that consumers come before producers.
static void mark_needed(bool needed[], const struct msc_graph *g) {
    for (int32_t i = msc_graph_n_joints(g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; needed[i] && k < j->n_parents; k++) {
            needed[j->parents[k]] = true;
        }
    }
}

static enum msc_status find_outputs(bool needed[], const struct msc_quantizer *q,
                                    const char *const outputs[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t tensor = msc_graph_find_tensor(q->graph, outputs[i]);
        int32_t producer =
            tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_tensor(q->graph, tensor)->producer;
        if (producer == MSC_NO_ID) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "env.outputs: the model computes no tensor \"%s\"; `mscgym graph MODEL` "
                "lists them",
                outputs[i]);
        }
        needed[producer] = true;
    }
    mark_needed(needed, q->graph);
    return MSC_OK;
}

enum msc_status msc_quantizer_keep_part(struct msc_quantizer *q, const char *const outputs[],
                                        size_t n) {
    size_t n_joints = (size_t)msc_graph_n_joints(q->graph);
    bool *needed = msc_arena_array(&q->arena, n_joints + 1, sizeof(needed[0]));
    MSC_TRY(MSC_ALLOCATED(needed));
    MSC_TRY(find_outputs(needed, q, outputs, n));
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        const struct msc_site *s = &q->sites.sites[i];
        bool is_read = false;
        for (int32_t k = 0; k < s->n_slots; k++) {
            int32_t joint = q->sites.slots[s->slots[k]].joint;
            is_read = is_read || (joint != MSC_NO_ID && needed[joint]);
        }
        q->included[i] = q->included[i] && is_read;
    }
    return MSC_OK;
}
