// Runs element-wise programs (kernels/lowering/ewise.h) block by block.
//
// Every instruction is one vectorised loop over a block of about a thousand floats, so that
// intermediate results never leave the first-level cache. An operand is read in place if its
// elements have the output's order. Any other operand (one number, one number per channel, any
// strides) is expanded into a block first; a constant is expanded only once. Chains (simd.h)
// convert integer inputs to floats in registers; all other programs convert them block by block. An
// epilogue is applied to the result of the step's first joint (the anchor) block by block, while
// the result is in the cache.
//
//     struct msc_cpu_ewise *e;
//     MSC_TRY(msc_cpu_ewise_create(&e, plan, step, &options));
//     msc_cpu_ewise_run(e, &(struct msc_cpu_ewise_call){.inputs = x, .out = y, .end = n, ...});
#ifndef MSC_KERNELS_CPU_EWISE_RUN_H
#define MSC_KERNELS_CPU_EWISE_RUN_H

#include "kernels/lowering/ewise.h"

struct msc_cpu_ewise;
struct msc_simd_epilogue;

// Prepares a program. *out is owned by the caller; NULL if there is nothing to compute.
enum msc_status msc_cpu_ewise_create(struct msc_cpu_ewise **out, const struct msc_plan *plan,
                                     const struct msc_step *step,
                                     const struct msc_ewise_options *options);
void msc_cpu_ewise_destroy(struct msc_cpu_ewise *e);               // accepts NULL
size_t msc_cpu_ewise_scratch_bytes(const struct msc_cpu_ewise *e); // 0 for NULL

// True if a kernel can apply this epilogue itself, while results are in registers. The epilogue
// must be a chain without a saved result, and its arrays must have the output's order of elements.
// Sets the instructions of *out.
bool msc_cpu_ewise_get_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e);
// Like msc_cpu_ewise_get_epilogue, but for an epilogue after int32 sums. Also sets the clip bounds
// of the scaled sums.
bool msc_cpu_ewise_get_sums_epilogue(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e);
// Sets the arrays of *out, for whole tensors. The list of arrays is stored in `scratch`, which has
// msc_cpu_ewise_scratch_bytes.
void msc_cpu_ewise_set_arrays(struct msc_simd_epilogue *out, const struct msc_cpu_ewise *e,
                              const struct msc_view inputs[], void *scratch);

struct msc_cpu_ewise_call {
    const struct msc_view *inputs; // inputs of the step
    const void *anchor;            // for an epilogue: the result of the joint before it, from
                                   // element `begin` on; may equal `out`
    const float *scales;           // [channels] or [1]
    const int32_t *offsets;        // [channels]
    const float *bias;             // [channels] if not NULL, replaces the options' bias
    float *out;                    // element `begin` of the output; NULL: only the quantised
                                   // variants are written
    const struct msc_quantized *quantized; // [n_quantized] variants to write; their views cover
                                           // the whole output
    int32_t n_quantized;
    int64_t begin, end; // any range of elements, such as a chunk
    void *scratch;      // msc_cpu_ewise_scratch_bytes, aligned to 64 bytes
};
void msc_cpu_ewise_run(const struct msc_cpu_ewise *e, const struct msc_cpu_ewise_call *call);

#endif
