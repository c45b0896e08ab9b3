// What the files that run conv/GEMM steps share; nobody else includes this.
#ifndef MSC_KERNELS_CPU_CPU_GEMM_RUN_H
#define MSC_KERNELS_CPU_CPU_GEMM_RUN_H

#include "kernels/cpu/cpu_gemm.h"

// What one call multiplies, and its places in scratch.
struct msc_cpu_gemm_run {
    const struct msc_cpu_gemm *k;
    const struct msc_call *call;
    const struct msc_cpu_gemm_chunks *chunks;
    const struct msc_cpu_gemm_pack *pack;
    const struct msc_routine *routine;
    enum msc_cpu_gemm_unit unit;
    const struct msc_quant *quant; // of the input; NULL: float32
    const struct msc_cpu_ewise *epilogue;
    struct msc_digits digits;
    void *routine_scratch, *ewise_scratch;
    char *input;      // a chunk in the form the routine reads; NULL: as it is
    int32_t *sums;    // a chunk of digits added up, or the int8 routine's output
    int32_t *product; // a chunk of one digit's sums
    float *floats;    // a chunk of float results, when no one wants them; else NULL
    float *scales;
    int32_t *offsets;
    struct msc_cpu_gemm_depthwise depthwise; // of that unit
    struct msc_simd_indirect indirect;       // of that unit
    void *own_scratch;                       // of these two
    bool is_direct;                          // a kernel of our own does all that follows its sums
    struct msc_simd_epilogue own_epilogue;   // then
    struct msc_simd_quantized quantized[MSC_SIMD_MAX_QUANTIZED];
    struct msc_cpu_gemm_bias bias;
    float *channel_bias; // of floats, for kernels of our own
};

// Zero point of stored values as uint8: int8 ones are moved up by 128, and it with them. Scale i, of
// those that there are.
int32_t msc_cpu_gemm__zero_point(const struct msc_quant *q, int64_t i);

// ---- cpu_gemm_input.c -------------------------------------------------------------------------

// Is the input read from a copy in the form that the unit reads?
bool msc_cpu_gemm__copies_input(const struct msc_cpu_gemm_run *r);
// One digit of a chunk as the unit reads it; the copy is in r->input.
const void *msc_cpu_gemm__input(const struct msc_cpu_gemm_run *r, int64_t chunk, int digit);

#endif
