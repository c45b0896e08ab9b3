// Edits: the changes that a trial makes at slots (graph/site.h), as plain data.
//
// An edit may have a next edit, which is applied to its result. The order is fixed: replace the
// elements, mask channels, then quantise (a weight or activation) or round (a bias).
//
//     kind             applies to                  result
//     replace          weights, biases             other elements of the same shape
//     keep channels    weights, biases,            x if the channel is kept, else 0
//                      activations
//     quantise         weights, activations        see graph/quant.h
//     round a bias     biases                      b' = (float)q * step - shift,
//                                                  q = clamp(rint((b + shift) / step)) to int32
//
// All arithmetic is in float32. If a joint computes in integer arithmetic, its sums have a scale.
// If the bias is rounded to this scale without a shift, the joint adds q itself
// (kernels/backend.h).
//
//     struct msc_edit quantise = msc_edit_quantize(quant);
//     struct msc_edit mask = {.kind = MSC_EDIT_KEEP_CHANNELS,
//                             .mask = {.axis = 1, .n = 64, .is_kept = is_kept},
//                             .next = &quantise};
//     msc_edit_seal(&mask);
//     edits[slot] = &mask;
#ifndef MSC_GRAPH_EDIT_H
#define MSC_GRAPH_EDIT_H

#include "graph/quant.h"
#include "graph/site.h"

MSC_PUBLIC_BEGIN

enum msc_edit_kind {
    MSC_EDIT_QUANTIZE,
    MSC_EDIT_ROUND_BIAS,
    MSC_EDIT_KEEP_CHANNELS,
    MSC_EDIT_REPLACE,
};

struct msc_bias_rounding {
    int32_t n;          // number of steps: 1, or the length of the bias' last axis
    const float *steps; // [n], positive
    // A constant that is added downstream and that a runtime folds into the bias (graph/tail.h), in
    // units of the bias. The sum of bias and shift is rounded to whole steps.
    float shift;
};

struct msc_channel_mask {
    int32_t axis;        // axis of the tensor along which channels are masked
    int32_t n;           // length of the axis
    const bool *is_kept; // [n]
};

// Once an edit is sealed, neither the edit nor anything that it points to may change. Equal edits
// have equal hashes. A function that takes an edit borrows the edit and all that it points to for
// the duration of the call.
struct msc_edit {
    enum msc_edit_kind kind;
    union {
        struct msc_quant quant;
        struct msc_bias_rounding rounding;
        struct msc_channel_mask mask;
        // MSC_EDIT_REPLACE: the new elements, identified by their hash. References to the array are
        // kept after the call, so the array must own its elements.
        const struct msc_array *elements;
    };
    const struct msc_edit *next; // edit applied after this one; NULL if none
    struct msc_hash hash;        // hash of this edit and all later ones
};

// Computes `hash` from the other members; `next` must already be sealed.
void msc_edit_seal(struct msc_edit *e);
// Returns a sealed quantisation without a next edit. Borrows the parameters of `quant`.
struct msc_edit msc_edit_quantize(struct msc_quant quant);

// The part of an edit of a site that applies to one of its slots: a dynamic quantisation applies
// only to slots that take it. NULL if nothing applies or e is NULL.
const struct msc_edit *msc_edit_at_slot(const struct msc_edit *e, const struct msc_slot *slot);

// Checks that the edit and all later ones fit the slot. Unknown lengths (-1) fit. The message of
// MSC_E_INVALID names the slot's tensor and the mismatch. The parameters of a quantisation are
// checked only when they are used.
enum msc_status msc_edit_check(const struct msc_edit *e, const struct msc_graph *g,
                               const struct msc_slot *slot);

// Applies an edit and all later ones to a whole array. *out is a float32 array of the same shape,
// owned by the caller.
enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e);
// Like msc_edit_apply, but without the final quantisation or rounding. *out is a reference that the
// caller releases. If nothing changes or e is NULL, *out is x itself.
enum msc_status msc_edit_elements(struct msc_array **out, const struct msc_array *x,
                                  const struct msc_edit *e);
// The quantisation or rounding that an edit ends with; NULL if there is none or e is NULL.
const struct msc_quant *msc_edit_quant(const struct msc_edit *e);
const struct msc_bias_rounding *msc_edit_rounding(const struct msc_edit *e);

// Rounds one element of a bias to an integer number of steps (q above), without a shift; NaN gives
// 0.
int32_t msc_bias_round(float bias, float step);
// Rounds one element of channel c of a bias to an integer number of steps (q above), with the shift
// of `r`.
int32_t msc_bias_round_channel(const struct msc_bias_rounding *r, float bias, int64_t c);
// The step of channel c.
static inline float msc_bias_step(const struct msc_bias_rounding *r, int64_t c) {
    return r->steps[r->n > 1 ? c : 0];
}
// The bias that q steps represent in channel c.
static inline float msc_bias_value(const struct msc_bias_rounding *r, int32_t q, int64_t c) {
    return (float)q * msc_bias_step(r, c) - r->shift;
}
// Masks elements laid out as [outer, mask.n, inner]; out may equal x.
void msc_mask_run(float out[], const float x[], int64_t outer, int64_t inner,
                  const struct msc_channel_mask *mask);

MSC_PUBLIC_END

#endif
