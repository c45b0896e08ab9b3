// Widens the scales of weights to leave room for biases (tools/weight_steps.h), for any choice
// that a trial may make for the activation.
#include "tools/quantizer_internal.h"

#include "kernels/backend.h"
#include "tools/weight_steps.h"

#include <math.h>

// The smallest scale, over all choices, of the activation that a joint multiplies by the weight; 0:
// the activation is not an integer.
static double least_scale(const void *payload, int32_t joint) {
    const struct msc_quantizer *q = payload;
    double least = 0;
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        const struct msc_site *s = &q->sites.sites[i];
        bool is_read = false;
        for (int32_t k = 0; k < s->n_slots && s->kind == MSC_SITE_ACTIVATION; k++) {
            is_read = is_read || q->sites.slots[s->slots[k]].joint == joint;
        }
        for (size_t c = 0; is_read && c < q->n_choices; c++) {
            const struct msc_quant *quant = msc_quantizer_quant(q, i, (int32_t)c);
            double scale = msc_quant_is_static(quant) ? (double)quant->scales[0] : INFINITY;
            least = least == 0 || scale < least ? scale : least;
        }
    }
    return isfinite(least) ? least : 0;
}

enum msc_status msc_quantizer__widen_quant(struct msc_quant *out, const struct msc_quantizer *q,
                                           int32_t site, const struct msc_quant *quant,
                                           const struct msc_array *bias) {
    const struct msc_weight_steps beside = {.graph = q->graph,
                                            .sites = &q->sites,
                                            .site = site,
                                            .scale_of = least_scale,
                                            .payload = q,
                                            .bias = bias};
    return msc_weight_steps_widen(out, quant, &beside);
}

static enum msc_status widen_choice(struct msc_quantizer *q, int32_t site, int32_t choice) {
    const struct msc_quant *quant = msc_quantizer_quant(q, site, choice);
    struct msc_quant wider;
    if (!quant) {
        return MSC_OK;
    }
    MSC_TRY(msc_quantizer__widen_quant(&wider, q, site, quant, NULL));
    enum msc_status status = wider.n > 0 ? msc_quantizer__set(q, site, choice, &wider) : MSC_OK;
    msc_quant_finish(&wider);
    return status;
}

enum msc_status msc_quantizer__widen(struct msc_quantizer *q) {
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        for (size_t c = 0; q->sites.sites[i].kind == MSC_SITE_WEIGHT && c < q->n_choices; c++) {
            MSC_TRY(widen_choice(q, i, (int32_t)c));
        }
    }
    return MSC_OK;
}
