#include "tools/weight_steps.h"

#include "base/alloc.h"
#include "graph/tail.h"
#include "kernels/backend.h"

#include <math.h>
#include <string.h>

static const double most_bias = 0x1p30; // greatest bias in steps; leaves room in int32 for the
                                        // products

// The terms added to each output channel of a joint: its bias plus the weight's shifts, and the
// constant that its tail adds.
struct summands {
    const float *bias;              // [n]; NULL: none
    const struct msc_array *shifts; // [n]; NULL: none
    int64_t n;
    double of_tail;
};

static struct summands find_summands(const struct msc_weight_steps *o,
                                     const struct msc_quant *quant, int32_t joint) {
    const struct msc_target *target = o->sites->scheme.target;
    struct summands s = {.n = 1};
    struct msc_tail tail;
    for (int32_t i = o->sites->n_site_slots; i < o->sites->n_slots; i++) {
        const struct msc_slot *slot = &o->sites->slots[i];
        const struct msc_tensor *t = msc_graph_tensor(o->graph, slot->tensor);
        if (slot->joint == joint && t->data && t->dtype == MSC_DTYPE_F32) {
            const struct msc_array *bias = o->bias ? o->bias : t->data;
            s.bias = msc_array_data(bias);
            s.n = msc_array_n_elements(bias);
        }
    }
    if (s.bias && quant->shifts && msc_array_n_elements(quant->shifts) == s.n) {
        s.shifts = quant->shifts;
    }
    int32_t end =
        msc_graph__end_of_tail(o->graph, target, msc_graph_joint(o->graph, joint)->outputs[0]);
    if (msc_graph__find_tail(&tail, o->graph, target, end)) {
        s.of_tail = fabs((double)msc_tail_bias(&tail));
    }
    return s;
}

static double summand_of(const struct summands *s, int64_t c) {
    double bias = s->bias ? (double)s->bias[c] : 0;
    return fabs(bias + (s->shifts ? msc_array_get_double(s->shifts, c) : 0)) + s->of_tail;
}

// Widens `scales` [n] for one joint that multiplies by the weight.
static bool widen_for(float scales[], const struct msc_quant *quant,
                      const struct msc_weight_steps *o, int32_t joint) {
    double scale = o->scale_of(o->payload, joint);
    if (scale <= 0) {
        return false;
    }
    const struct summands s = find_summands(o, quant, joint);
    int64_t n = quant->n, n_channels = s.n > n ? s.n : n;
    bool fits = n == 1 || s.n == 1 || n == s.n, is_wider = false;
    for (int64_t c = 0; fits && c < n_channels; c++) {
        float least = (float)(summand_of(&s, s.n > 1 ? c : 0) / scale / most_bias);
        float *own = &scales[n > 1 ? c : 0];
        is_wider = is_wider || *own < least;
        *own = *own < least ? least : *own;
    }
    return is_wider;
}

// Converts rounded integers to steps of `scales`.
static enum msc_status rescale_integers(struct msc_array **out, const struct msc_quant *quant,
                                        const float scales[]) {
    const struct msc_array *from = quant->integers;
    int n_dims = msc_array_n_dims(from);
    struct msc_quant_split split;
    if (!msc_quant_split(&split, quant, n_dims, msc_array_dims(from))) {
        return MSC_FAIL(MSC_E_STATE, "%d scales do not fit the shape of a weight", (int)quant->n);
    }
    MSC_TRY(msc_array_create(out, msc_array_dtype(from), n_dims, msc_array_dims(from)));
    uint8_t *bytes = msc_array_data(*out);
    for (int64_t i = 0; i < msc_array_n_elements(from); i++) {
        int64_t block = i / split.inner % split.length / split.size;
        int64_t outer = i / split.inner / split.length;
        int64_t at = outer * split.outer_step + block * split.block_step +
                     i % split.inner * split.inner_step;
        double ratio = (double)quant->scales[at] / (double)scales[at];
        bytes[i] = (uint8_t)(int32_t)rint((double)msc_array_get_i64(from, i) * ratio);
    }
    return MSC_OK;
}

// Converts the quantisation to steps of `scales`.
static enum msc_status rescale(struct msc_quant *out, const struct msc_quant *quant,
                               const float scales[]) {
    struct msc_array *integers = NULL;
    struct msc_quant wider = *quant;
    int32_t *zeros = msc_alloc((size_t)quant->n * sizeof(zeros[0]));
    enum msc_status status = MSC_ALLOCATED(zeros);
    if (status == MSC_OK && quant->integers) {
        status = rescale_integers(&integers, quant, scales);
    }
    for (int32_t i = 0; status == MSC_OK && i < quant->n; i++) {
        double ratio = (double)quant->scales[i] / (double)scales[i];
        zeros[i] = (int32_t)rint(quant->zero_points[i] * ratio);
    }
    wider.scales = scales;
    wider.zero_points = zeros;
    wider.integers = integers;
    msc_quant_seal(&wider);
    status = status == MSC_OK ? msc_quant_copy(out, &wider) : status;
    msc_array_release(integers);
    msc_free(zeros);
    return status;
}

enum msc_status msc_weight_steps_widen(struct msc_quant *out, const struct msc_quant *quant,
                                       const struct msc_weight_steps *beside) {
    const struct msc_target *target = beside->sites->scheme.target;
    const struct msc_site *s = &beside->sites->sites[beside->site];
    *out = (struct msc_quant){.n = 0};
    if (!target || !target->rounds_biases || !msc_quant_is_integer(quant) ||
        quant->group_size > 0) {
        return MSC_OK;
    }
    float *scales = msc_alloc((size_t)quant->n * sizeof(scales[0]));
    bool is_wider = false;
    MSC_TRY(MSC_ALLOCATED(scales));
    memcpy(scales, quant->scales, (size_t)quant->n * sizeof(scales[0]));
    for (int32_t k = 0; k < s->n_slots; k++) {
        int32_t joint = beside->sites->slots[s->slots[k]].joint;
        is_wider = widen_for(scales, quant, beside, joint) || is_wider;
    }
    enum msc_status status = is_wider ? rescale(out, quant, scales) : MSC_OK;
    msc_free(scales);
    return status;
}
