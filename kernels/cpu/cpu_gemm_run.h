// Internal header of the files that run conv/GEMM steps: cpu_gemm_run.c and cpu_gemm_input.c.
#ifndef MSC_KERNELS_CPU_CPU_GEMM_RUN_H
#define MSC_KERNELS_CPU_CPU_GEMM_RUN_H

#include "kernels/cpu/cpu_gemm.h"

// The state of one call, with its parts of scratch.
struct msc_cpu_gemm_run {
    const struct msc_cpu_gemm *k;
    const struct msc_call *call;
    const struct msc_cpu_gemm_chunks *chunks;
    const struct msc_cpu_gemm_pack *pack;
    const struct msc_routine *routine;
    const struct msc_cpu_gemm_way *way; // chosen for the call; NULL: there is no choice
    enum msc_cpu_gemm_unit unit;
    const struct msc_quant *quant; // quantisation of the input; NULL: float32
    const struct msc_cpu_ewise *epilogue;
    struct msc_digits digits;
    void *routine_scratch, *ewise_scratch;
    char *input;      // a chunk's input, converted for `unit`; NULL: the input is read in place
    int32_t *sums;    // a chunk's int32 sums
    int32_t *product; // a chunk's int32 sums of one digit
    float *floats;    // a chunk's float results if the call has no float output; otherwise NULL
    float *scales;
    int32_t *offsets;
    struct msc_cpu_gemm_depthwise depthwise; // for the unit DEPTHWISE
    struct msc_simd_indirect indirect;       // for the indirect units
    struct msc_simd_image_windows windows;   // for the unit WINOGRAD
    void *own_scratch;                       // for the units of our own
    bool is_direct;                          // a kernel of our own also computes everything after
                                             // its sums
    struct msc_simd_epilogue own_epilogue;   // for the units of our own
    struct msc_simd_quantized quantized[MSC_SIMD_MAX_QUANTIZED];
    struct msc_cpu_gemm_bias bias;
    float *channel_bias; // [channels] bias.floats, or -0 if there is no bias
};

// The zero point of stored integers that are read as uint8. If the integers are int8, both the
// integers and the zero point are increased by 128. `i` is the index of the scale.
int32_t msc_cpu_gemm__zero_point(const struct msc_quant *q, int64_t i);

// ---- cpu_gemm_input.c -------------------------------------------------------------------------

// True if the unit needs a converted copy of the input.
bool msc_cpu_gemm__copies_input(const struct msc_cpu_gemm_run *r);
// The input of a chunk for the unit: one digit of it, if integers are split into digits. A
// converted copy is stored in r->input.
const void *msc_cpu_gemm__input(const struct msc_cpu_gemm_run *r, int64_t chunk, int digit);

#endif
