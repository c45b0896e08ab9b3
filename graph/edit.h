// Edits: what a trial does at a slot (graph/site.h), as plain data.
//
// An edit is of a kind, and may have another one behind it, which is applied to what it gives:
// first the elements are replaced, then channels are masked, at last what is left is quantised, or
// rounded where it is a bias.
//
//     kind             of                          gives
//     replace          weights, biases             other elements of the same shape
//     keep channels    weights, biases,            x where the channel is kept, else 0
//                      activations
//     quantise         weights, activations        as graph/quant.h has it
//     round a bias     biases                      b' = (float)q * step - shift,
//                                                  q = clamp(rint((b + shift) / step)) to int32
//
// all of it in float32. Where a joint computes over integers, and a bias is rounded to just the step
// of its sums without a shift, q itself is added to these (kernels/backend.h).
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
    int32_t n;          // of steps: 1, or the length of the bias' last axis
    const float *steps; // [n], positive
    // What a runtime makes part of the bias that is added behind it (graph/tail.h), in its units: the
    // two of them together are whole steps.
    float shift;
};

struct msc_channel_mask {
    int32_t axis;        // in the tensor's own shape
    int32_t n;           // its length
    const bool *is_kept; // [n]
};

// Constant once made, as are what it points to and `next`; equal content has equal `hash`. All of it
// is borrowed for as long as the edit is in use, which is the call that it is handed to.
struct msc_edit {
    enum msc_edit_kind kind;
    union {
        struct msc_quant quant;
        struct msc_bias_rounding rounding;
        struct msc_channel_mask mask;
        // Of MSC_EDIT_REPLACE, told apart by its hash. References to it are kept beyond the call, so
        // that it has elements of its own.
        const struct msc_array *elements;
    };
    const struct msc_edit *next; // applied behind this one; NULL: nothing is
    struct msc_hash hash;        // of this one and all behind it
};

// Fills `hash` from the other members; `next` is sealed already.
void msc_edit_seal(struct msc_edit *e);
// Sealed, with nothing behind it; the parameters of `quant` are borrowed.
struct msc_edit msc_edit_quantize(struct msc_quant quant);

// Does the edit, with all behind it, fit the slot? MSC_E_INVALID names its tensor and what does not
// fit. Lengths that are not known yet (-1) fit. The parameters of a quantisation are checked where
// they are used.
enum msc_status msc_edit_check(const struct msc_edit *e, const struct msc_graph *g,
                               const struct msc_slot *slot);

// A whole array under an edit and all behind it. *out is float32 of the same shape, owned by the
// caller.
enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e);
// The same without the quantisation or rounding at its end: what these start from. *out is a
// reference, to x itself where that is left as it is (also where e is NULL).
enum msc_status msc_edit_elements(struct msc_array **out, const struct msc_array *x,
                                  const struct msc_edit *e);
// What an edit ends in; NULL where it does not, or is NULL.
const struct msc_quant *msc_edit_quant(const struct msc_edit *e);
const struct msc_bias_rounding *msc_edit_rounding(const struct msc_edit *e);

// q of one number of a bias, of which shift is 0; NaN gives 0.
int32_t msc_bias_round(float bias, float step);
// q of channel c.
int32_t msc_bias_round_channel(const struct msc_bias_rounding *r, float bias, int64_t c);
// The step of channel c.
static inline float msc_bias_step(const struct msc_bias_rounding *r, int64_t c) {
    return r->steps[r->n > 1 ? c : 0];
}
// The number that its q stands for.
static inline float msc_bias_value(const struct msc_bias_rounding *r, int32_t q, int64_t c) {
    return (float)q * msc_bias_step(r, c) - r->shift;
}
// Elements that lie as [outer, mask.n, inner]; out may equal x.
void msc_mask_run(float out[], const float x[], int64_t outer, int64_t inner,
                  const struct msc_channel_mask *mask);

MSC_PUBLIC_END

#endif
