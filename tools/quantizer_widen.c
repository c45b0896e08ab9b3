// Steps of weights wide enough for the biases beside them: a bias is rounded to int32 in steps of the
// activation times those of the weight, and with a weight of next to nothing it would not fit. What the
// weight loses is nothing beside the bias: half a step of it, times the whole range of the activation,
// is 2^-23 of the bias for each element.
#include "tools/quantizer_internal.h"

#include "graph/tail.h"
#include "kernels/backend.h"

#include <math.h>
#include <string.h>

static const double most_bias = 0x1p30; // leaves room for the products that are added to it

// The least scale of the activation that a joint multiplies, of all choices; 0: it has none.
static double least_scale(const struct msc_quantizer *q, int32_t joint) {
    double least = 0;
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        const struct msc_site *s = &q->sites.sites[i];
        bool is_read = false;
        for (int32_t k = 0; k < s->n_slots && s->kind == MSC_SITE_ACTIVATION; k++) {
            is_read = is_read || q->sites.slots[s->slots[k]].joint == joint;
        }
        for (size_t c = 0; is_read && c < q->n_choices; c++) {
            const struct msc_quant *quant = msc_quantizer_quant(q, i, (int32_t)c);
            double scale =
                quant && msc_quant_is_integer(quant) ? (double)quant->scales[0] : INFINITY;
            least = least == 0 || scale < least ? scale : least;
        }
    }
    return isfinite(least) ? least : 0;
}

// What is added to each output channel of a joint: its bias, and what its tail adds to that.
struct summands {
    const float *bias; // [n]; NULL: none
    int64_t n;
    double shift;
};

static bool find_summands(struct summands *out, const struct msc_quantizer *q, int32_t joint) {
    const struct msc_target *target = q->sites.scheme.target;
    const struct msc_joint *j = msc_graph_joint(q->graph, joint);
    struct msc_tail tail;
    *out = (struct summands){0};
    for (int32_t i = q->sites.n_site_slots; i < q->sites.n_slots; i++) {
        const struct msc_slot *slot = &q->sites.slots[i];
        const struct msc_tensor *t = msc_graph_tensor(q->graph, slot->tensor);
        if (slot->joint == joint && t->data && t->dtype == MSC_DTYPE_F32) {
            out->bias = msc_array_data(t->data);
            out->n = msc_array_n_elements(t->data);
        }
    }
    int32_t end = msc_graph__end_of_tail(q->graph, target, j->outputs[0]);
    if (msc_graph__find_tail(&tail, q->graph, target, end)) {
        out->shift = fabs(tail.shift / tail.factor);
    }
    return out->bias || out->shift != 0;
}

// Widens `scales` [n] for one joint that multiplies with the weight.
static bool widen_for(float scales[], int32_t n, const struct msc_quantizer *q, int32_t joint) {
    struct summands s;
    bool is_wider = false;
    double scale = find_summands(&s, q, joint) ? least_scale(q, joint) : 0;
    int64_t n_summands = s.bias ? s.n : 1;
    bool fits = n == 1 || n_summands == 1 || n == n_summands;
    for (int64_t c = 0; fits && scale > 0 && c < (n_summands > n ? n_summands : n); c++) {
        double bias = s.bias ? fabs((double)s.bias[n_summands > 1 ? c : 0]) : 0;
        float least = (float)((bias + s.shift) / scale / most_bias);
        float *own = &scales[n > 1 ? c : 0];
        is_wider = is_wider || *own < least;
        *own = *own < least ? least : *own;
    }
    return is_wider;
}

// Chosen integers, the nearest ones of wider steps where the steps are wider.
static enum msc_status rescale_integers(struct msc_array **out, const struct msc_quant *quant,
                                        const float scales[], const struct msc_array *weight) {
    struct msc_quant_split split;
    MSC_TRY(msc_array_create(out, msc_array_dtype(quant->integers), msc_array_n_dims(weight),
                             msc_array_dims(weight)));
    if (!msc_quant_split(&split, quant, msc_array_n_dims(weight), msc_array_dims(weight))) {
        return MSC_FAIL(MSC_E_STATE, "%d scales do not fit a weight", (int)quant->n);
    }
    uint8_t *bytes = msc_array_data(*out);
    for (int64_t i = 0; i < msc_array_n_elements(weight); i++) {
        int64_t block = i / split.inner % split.length / split.size;
        int64_t outer = i / split.inner / split.length;
        int64_t at = outer * split.outer_step + block * split.block_step +
                     i % split.inner * split.inner_step;
        double ratio = (double)quant->scales[at] / (double)scales[at];
        double integer = (double)msc_array_get_i64(quant->integers, i);
        bytes[i] = (uint8_t)(int32_t)rint(integer * ratio);
    }
    return MSC_OK;
}

static enum msc_status widen_choice(struct msc_quantizer *q, int32_t site, int32_t choice) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_quant *quant = msc_quantizer_quant(q, site, choice);
    const struct msc_array *weight = msc_graph_tensor(q->graph, s->tensor)->data;
    struct msc_array *integers = NULL;
    bool is_wider = false;
    if (!quant || !msc_quant_is_integer(quant) || quant->group_size > 0) {
        return MSC_OK;
    }
    size_t n = (size_t)quant->n;
    float *scales = msc_alloc(n * sizeof(scales[0]));
    int32_t *zeros = msc_alloc(n * sizeof(zeros[0]));
    enum msc_status status = MSC_OK;
    if (!scales || !zeros) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory for scales of %s", s->name);
        goto out;
    }
    memcpy(scales, quant->scales, n * sizeof(scales[0]));
    for (int32_t k = 0; k < s->n_slots; k++) {
        is_wider = widen_for(scales, quant->n, q, q->sites.slots[s->slots[k]].joint) || is_wider;
    }
    for (size_t i = 0; i < n; i++) {
        double ratio = (double)quant->scales[i] / (double)scales[i];
        zeros[i] = (int32_t)rint(quant->zero_points[i] * ratio);
    }
    if (is_wider && quant->integers) {
        MSC_TRY_OUT(rescale_integers(&integers, quant, scales, weight));
    }
    const struct msc_quant wider = {
        .scales = scales, .zero_points = zeros, .integers = integers, .shifts = quant->shifts};
    status = is_wider ? msc_quantizer__set(q, site, choice, &wider) : MSC_OK;
out:
    msc_array_release(integers);
    msc_free(scales);
    msc_free(zeros);
    return status;
}

enum msc_status msc_quantizer__widen(struct msc_quantizer *q) {
    const struct msc_target *target = q->sites.scheme.target;
    for (int32_t i = 0; target && target->rounds_biases && i < q->sites.n_sites; i++) {
        for (size_t c = 0; q->sites.sites[i].kind == MSC_SITE_WEIGHT && c < q->n_choices; c++) {
            MSC_TRY(widen_choice(q, i, (int32_t)c));
        }
    }
    return MSC_OK;
}
