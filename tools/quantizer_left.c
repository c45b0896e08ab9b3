// Tensors that hold NaN or infinity in the float model, usually a mask or the values that it
// masks out.
//
// Infinity has no integer: runtimes saturate it, and a softmax then gives weight to masked values
// (docs/quantize.md describes the loss). Runtimes convert NaN to the lowest integer. That is
// harmless for masked values, but not if a later joint tests for NaN.
#include "tools/quantizer_internal.h"

#include <math.h>

static bool asks(const struct msc_joint *j) {
    static const enum msc_op questions[] = {MSC_OP_ISNAN,     MSC_OP_ISINF, MSC_OP_EQUAL,
                                            MSC_OP_GREATER,   MSC_OP_LESS,  MSC_OP_GREATER_EQUAL,
                                            MSC_OP_LESS_EQUAL};
    bool is_question = j->n_graphs > 0; // subgraphs may test for NaN
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        is_question = is_question || j->op == questions[i];
    }
    return is_question;
}

enum msc_status msc_quantizer__find_questions(struct msc_quantizer *q) {
    const struct msc_graph *g = q->graph;
    q->asked = msc_arena_array(&q->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(q->asked[0]));
    MSC_TRY(MSC_ALLOCATED(q->asked));
    for (int32_t i = msc_graph_n_joints(g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        bool is_asked = asks(j);
        for (int32_t k = 0; k < j->n_outputs; k++) {
            is_asked = is_asked || q->asked[j->outputs[k]];
        }
        for (int32_t k = 0; is_asked && k < j->n_inputs; k++) {
            q->asked[j->inputs[k]] = true;
        }
    }
    return MSC_OK;
}

bool msc_quantizer__is_asked(const struct msc_quantizer *q, int32_t site) {
    const struct msc_site *s = &q->sites.sites[site];
    bool is_asked = q->asked[s->tensor];
    for (int32_t k = 0; k < s->n_slots; k++) {
        is_asked = is_asked || q->asked[q->sites.slots[s->slots[k]].tensor];
    }
    return is_asked;
}

enum msc_status msc_quantizer__leave_infinite_weights(struct msc_quantizer *q) {
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        const struct msc_site *s = &q->sites.sites[i];
        if (s->kind != MSC_SITE_WEIGHT || !msc_quantizer__is_used(q, i)) {
            continue;
        }
        const struct msc_array *w = msc_graph_tensor(q->graph, s->tensor)->data;
        const float *x = w ? msc_array_data(w) : NULL;
        if (!x) {
            return MSC_FAIL(MSC_E_INVALID,
                            "weight %s has no elements; exclude it or repair the model", s->name);
        }
        for (int64_t k = 0; k < msc_array_n_elements(w) && !q->left[i]; k++) {
            q->left[i] = !isfinite(x[k]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_quantizer__drop_left(struct msc_quantizer *q) {
    int32_t n_left = 0, n_used = 0;
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        n_left += q->left[i];
        q->included[i] = q->included[i] && !q->left[i];
        n_used += q->included[i];
    }
    return n_left == 0 || n_used > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "no site is left to quantise: all contain NaN or infinity when the float "
                          "model runs on the dataset");
}

bool msc_quantizer_is_left(const struct msc_quantizer *q, int32_t site) {
    return q->left[site];
}
