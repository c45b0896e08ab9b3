// Histograms of activations over the levels of their quantisation, under the strategy.
#include "model/layers_internal.h"

#include "base/alloc.h"

#include <string.h>

// Activations beyond this number, in the order of the network, have no histogram.
#define MOST_ACTIVATIONS 64

struct activations {
    const struct msc_graph *graph; // the model's
    int32_t tensors[MOST_ACTIVATIONS];
    struct msc_layers_levels levels[MOST_ACTIVATIONS];
    size_t n;
};

static bool is_seen(const struct activations *a, int32_t tensor) {
    for (size_t i = 0; i < a->n; i++) {
        if (a->tensors[i] == tensor) {
            return true;
        }
    }
    return false;
}

// Inputs of the network are not computed, and other types have no levels here.
static bool is_computed(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    return t->producer != MSC_NO_ID && !t->data && t->dtype == MSC_DTYPE_F32 &&
           msc_graph_joint(g, t->producer)->op != MSC_OP_INPUT;
}

// Each quantised activation once, by the first slot that reads it.
static void find_activations(struct activations *a, const struct msc_layers_side *side) {
    const struct msc_sites *sites = msc_evaluator_sites(side->runner.ev);
    for (int32_t slot = 0; slot < sites->n_site_slots && a->n < MOST_ACTIVATIONS; slot++) {
        const struct msc_slot *s = &sites->slots[slot];
        const struct msc_quant *q =
            s->kind == MSC_SITE_ACTIVATION ? msc_edit_quant(msc_layers__edit(side, slot)) : NULL;
        int32_t tensor =
            !q || q->type != MSC_DTYPE_NONE || q->is_dynamic
                ? MSC_NO_ID
                : msc_graph_find_tensor(a->graph, msc_graph_tensor(side->graph, s->tensor)->name);
        if (tensor != MSC_NO_ID && is_computed(a->graph, tensor) && !is_seen(a, tensor)) {
            a->tensors[a->n] = tensor;
            msc_layers__levels_init(&a->levels[a->n++], q);
        }
    }
}

static enum msc_status count_batch(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    struct activations *a = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < a->n; i++) {
        MSC_TRY(msc_layers__levels_count(&a->levels[i], values[i].n_dims, values[i].dims,
                                         values[i].data));
    }
    return MSC_OK;
}

enum msc_status msc_layers__activations(cJSON *list, const struct msc_model *model,
                                        const struct msc_strategy *strategy,
                                        const struct msc_layers_side *side) {
    struct activations *a = msc_alloc_zero(1, sizeof *a);
    enum msc_status status = MSC_ALLOCATED(a);
    if (status == MSC_OK) {
        const struct msc_sink sink = {.batch = count_batch, .payload = a};
        a->graph = model->graph;
        find_activations(a, side);
        status = a->n > 0
                     ? msc_model__feed(model, strategy, model->dataset, a->tensors, a->n, &sink)
                     : MSC_OK;
    }
    for (size_t i = 0; status == MSC_OK && i < a->n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(a->graph, a->tensors[i]);
        status = msc_layers__levels_add(list, &a->levels[i], msc_tensor_label(t));
    }
    msc_free(a);
    return status;
}
