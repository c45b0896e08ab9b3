// Element-wise programs: a chain of element-wise joints compiled once and run block by block.
//
// Every instruction is one vectorised loop over a block of some thousand floats, so that what lies
// between two instructions never leaves the first-level cache. An operand is read in place where
// its elements lie as the output's do; anything broadcast (one number, one for each channel, any
// strides) is spread into a block first, once and for all where it is constant.
//
// A program is a whole step (element-wise joints alone) or the end of one: it then begins with the
// anchor's result, block by block while that is still in the cache. Behind integer sums it begins
// with y = t * (float)sum, y += b (docs: design, quantised joints).
//
//     struct msc_ewise *e;
//     MSC_TRY(msc_ewise_create(&e, plan, step, &options));
//     msc_ewise_run(e, &(struct msc_ewise_call){.inputs = inputs, .out = y, .end = n, ...});
#ifndef MSC_KERNELS_LOWERING_EWISE_H
#define MSC_KERNELS_LOWERING_EWISE_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_ewise;
struct msc_simd_epilogue;

enum msc_ewise_start {
    MSC_EWISE_CHAIN,   // all joints of the step
    MSC_EWISE_FLOAT,   // joints behind the anchor's float32 result
    MSC_EWISE_SUM_F32, // the same behind integer sums held as float32
    MSC_EWISE_SUM_I32, // ... or as int32, less an offset for each channel
};

struct msc_ewise_options {
    enum msc_ewise_start start;
    int32_t first;        // first joint to compile; its predecessor's output is the anchor's
    int channel_axis;     // of the output; no longer axis lies behind it in memory
    bool is_scalar_scale; // one scale instead of one for each channel
    float low, high;      // limits of scaled sums, behind the bias
    const float *bias;    // added after the scale; [channels], borrowed; may be NULL
};

// Can this joint be an instruction of a program? It is float32 throughout and its operands
// broadcast to the shape of its output.
bool msc_ewise_accepts(const struct msc_graph *g, const struct msc_joint *joint);

// *out is owned by the caller; NULL when there is nothing to do.
enum msc_status msc_ewise_create(struct msc_ewise **out, const struct msc_plan *plan,
                                 const struct msc_step *step,
                                 const struct msc_ewise_options *options);
void msc_ewise_destroy(struct msc_ewise *e);               // accepts NULL
size_t msc_ewise_scratch_bytes(const struct msc_ewise *e); // 0 for NULL

// Programs behind an anchor that are a chain without a saved result, whose arrays all lie as the
// output does: a kernel may do all of it itself, while results are in registers. Sets out's links;
// false where the program is something else.
bool msc_ewise_get_links(struct msc_simd_epilogue *out, const struct msc_ewise *e);
// Those behind int32 sums, with the limits of what is made of them.
bool msc_ewise_get_end(struct msc_simd_epilogue *out, const struct msc_ewise *e);
// Sets out's arrays, of whole tensors: they are in scratch of msc_ewise_scratch_bytes.
void msc_ewise_set_arrays(struct msc_simd_epilogue *out, const struct msc_ewise *e,
                          const struct msc_view inputs[], void *scratch);

struct msc_ewise_call {
    const struct msc_view *inputs; // the step's
    const void *anchor;            // element `begin` of the anchor's result; may equal `out`
    const float *scales;           // [channels] or [1]
    const int32_t *offsets;        // [channels]
    float *out;                    // element `begin`; NULL: only the forms
    const struct msc_quantized *quantized; // of the whole output, written besides; [n_forms]
    int32_t n_quantized;
    int64_t begin, end; // elements, whole rows of channels
    void *scratch;      // msc_ewise_scratch_bytes, aligned to 64 bytes
};
void msc_ewise_run(const struct msc_ewise *e, const struct msc_ewise_call *call);

#ifdef __cplusplus
}
#endif

#endif
