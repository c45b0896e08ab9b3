// What the kernels of a target require of scales.
#include "tools/quantizer_internal.h"

float msc_quantizer__cut(const struct msc_quantizer *q, int32_t site) {
    const struct msc_target *target = q->sites.scheme.target;
    const struct msc_site *s = &q->sites.sites[site];
    if (!target || !target->has_forms) {
        return 0;
    }
    for (int32_t i = 0; i < s->n_slots; i++) {
        int32_t joint = q->sites.slots[s->slots[i]].joint;
        if (joint == MSC_NO_ID || msc_graph_joint(q->graph, joint)->op != MSC_OP_HARD_SWISH) {
            return 0;
        }
    }
    return MSC_HARD_SWISH_CUT;
}

void msc_quantizer__fix_scale(float *scale, int32_t *zero_point, const struct msc_quantizer *q,
                              int32_t site, const struct msc_quant *form) {
    const struct msc_target *target = q->sites.scheme.target;
    const struct msc_site *s = &q->sites.sites[site];
    float fixed;
    int32_t zero;
    if (s->kind != MSC_SITE_ACTIVATION || !target || q->activations.is_symmetric) {
        return;
    }
    int32_t producer = msc_graph_producer(q->graph, s->tensor);
    if (msc_target_fixed_scale(target, msc_graph_joint(q->graph, producer)->op, &fixed, &zero)) {
        *scale = fixed;
        *zero_point = zero + form->low - INT8_MIN;
    }
}
