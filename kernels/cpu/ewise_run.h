// Runs element-wise programs (kernels/lowering/ewise.h) block by block.
//
// Every instruction is one vectorised loop over a block of some thousand floats, so that what lies
// between two instructions never leaves the first-level cache. An operand is read in place where
// its elements lie as the output's do; anything broadcast (one number, one for each channel, any
// strides) is expanded into a block first, once and for all where it is constant. Inputs may come as
// integers: these become floats as they are loaded, or block by block. A program behind an anchor's
// result follows it block by block while that is still in the cache.
//
//     struct msc_cpu_ewise *e;
//     MSC_TRY(msc_cpu_ewise_create(&e, plan, step, &options));
//     msc_cpu_ewise_run(e, &(struct msc_cpu_ewise_call){.inputs = inputs, .out = y, .end = n, ...});
#ifndef MSC_KERNELS_CPU_EWISE_RUN_H
#define MSC_KERNELS_CPU_EWISE_RUN_H

#include "kernels/lowering/ewise.h"

struct msc_cpu_ewise;
struct msc_simd_epilogue;

// *out is owned by the caller; NULL when there is nothing to do.
enum msc_status msc_cpu_ewise_create(struct msc_cpu_ewise **out, const struct msc_plan *plan,
                                     const struct msc_step *step,
                                     const struct msc_ewise_options *options);
void msc_cpu_ewise_destroy(struct msc_cpu_ewise *e);               // accepts NULL
size_t msc_cpu_ewise_scratch_bytes(const struct msc_cpu_ewise *e); // 0 for NULL

// Programs behind an anchor that are a chain without a saved result, whose arrays all lie as the
// output does: a kernel may do all of it itself, while results are in registers. Sets out's
// instructions; false where the program is something else.
bool msc_cpu_ewise_get_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e);
// Of those behind int32 sums, with the limits of what is made of them.
bool msc_cpu_ewise_get_sums_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e);
// Sets out's arrays, of whole tensors: they are in scratch of msc_cpu_ewise_scratch_bytes.
void msc_cpu_ewise_set_arrays(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e,
                              const struct msc_view inputs[], void *scratch);

struct msc_cpu_ewise_call {
    const struct msc_view *inputs; // the step's
    const void *anchor;            // element `begin` of the anchor's result; may equal `out`
    const float *scales;           // [channels] or [1]
    const int32_t *offsets;        // [channels]
    const float *bias;             // [channels], in the place of the options'; NULL: these
    float *out;                    // element `begin`; NULL: only the quantised variants
    const struct msc_quantized *quantized; // of the whole output, written besides; [n_quantized]
    int32_t n_quantized;
    int64_t begin, end; // elements: any, such as those of a chunk
    void *scratch;      // msc_cpu_ewise_scratch_bytes, aligned to 64 bytes
};
void msc_cpu_ewise_run(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call);

#endif
