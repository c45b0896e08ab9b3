// Edits: the changes that a trial makes at slots (graph/site.h), as plain data.
//
// An edit has a kind and may have a next edit, which is applied to its result. The order is
// fixed: replace the elements, mask channels, then quantise (a weight or activation) or round (a
// bias).
//
//     kind             applies to                  result
//     replace          weights, biases             other elements of the same shape
//     keep channels    weights, biases,            x if the channel is kept, else 0
//                      activations
//     quantise         weights, activations        see graph/quant.h
//     round a bias     biases                      b' = (float)q * step - shift,
//                                                  q = clamp(rint((b + shift) / step)) to int32
//
// All arithmetic is in float32. If a joint computes in integer arithmetic, and the bias is
// rounded without a shift to the scale of the joint's sums, q itself is added to the sums
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
    // A summand downstream that a runtime folds into the bias (graph/tail.h), in units of the
    // bias. Bias plus shift is rounded to whole steps.
    float shift;
};

struct msc_channel_mask {
    int32_t axis;        // in the tensor's own shape
    int32_t n;           // its length
    const bool *is_kept; // [n]
};

// Must not change once sealed, nor may anything that it points to; equal content has equal
// `hash`. A function that takes an edit borrows all of this for the duration of the call.
struct msc_edit {
    enum msc_edit_kind kind;
    union {
        struct msc_quant quant;
        struct msc_bias_rounding rounding;
        struct msc_channel_mask mask;
        // MSC_EDIT_REPLACE: identified by its hash. References to the array are kept after the
        // call, so it must own its elements.
        const struct msc_array *elements;
    };
    const struct msc_edit *next; // applied after this one; NULL: none
    struct msc_hash hash;        // of this edit and all after it
};

// Fills `hash` from the other members; `next` must be sealed already.
void msc_edit_seal(struct msc_edit *e);
// Returns a sealed edit without a next one; the parameters of `quant` are borrowed.
struct msc_edit msc_edit_quantize(struct msc_quant quant);

// Checks that the edit and all after it fit the slot. MSC_E_INVALID names the slot's tensor and
// the mismatch. Unknown lengths (-1) fit. The parameters of a quantisation are checked when they
// are used.
enum msc_status msc_edit_check(const struct msc_edit *e, const struct msc_graph *g,
                               const struct msc_slot *slot);

// Applies an edit and all after it to a whole array. *out is float32 of the same shape, owned by
// the caller.
enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e);
// Like msc_edit_apply, but without the quantisation or rounding at the end. *out is a reference;
// if nothing changes or e is NULL, to x itself.
enum msc_status msc_edit_elements(struct msc_array **out, const struct msc_array *x,
                                  const struct msc_edit *e);
// The quantisation or rounding at the end of an edit; NULL if there is none or e is NULL.
const struct msc_quant *msc_edit_quant(const struct msc_edit *e);
const struct msc_bias_rounding *msc_edit_rounding(const struct msc_edit *e);

// The integer q of one bias element (see above), without a shift; NaN gives 0.
int32_t msc_bias_round(float bias, float step);
// The integer q of an element of channel c, with the shift of `r`.
int32_t msc_bias_round_channel(const struct msc_bias_rounding *r, float bias, int64_t c);
// The step of channel c.
static inline float msc_bias_step(const struct msc_bias_rounding *r, int64_t c) {
    return r->steps[r->n > 1 ? c : 0];
}
// The value that q represents.
static inline float msc_bias_value(const struct msc_bias_rounding *r, int32_t q, int64_t c) {
    return (float)q * msc_bias_step(r, c) - r->shift;
}
// Masks elements laid out as [outer, mask.n, inner]; out may equal x.
void msc_mask_run(float out[], const float x[], int64_t outer, int64_t inner,
                  const struct msc_channel_mask *mask);

MSC_PUBLIC_END

#endif
