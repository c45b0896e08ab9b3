// Dense linear algebra for the cpu backend. A routine computes a convolution, linear layer or
// matrix product of one fixed shape. Two sources implement routines: routine_onednn.c, and
// routine_plain.c for builds without oneDNN (MSC_ONEDNN=OFF).
//
// Activations are NHWC: [batch, spatial..., channels] or [rows, channels]. Weights are packed once,
// in a layout that the routine chooses. There are two kinds of routines: float32 throughout, or
// uint8 activations with int8 weights and exact int32 sums. A float32 routine is also exact for
// integers whose sums stay below 2^24.
//
//     struct msc_routine *d;
//     MSC_TRY(msc_routine_create(&d, engine, &desc));
//     MSC_TRY(msc_routine_pack(&w, d, elements));
//     MSC_TRY(msc_routine_run(d, &(struct msc_routine_call){.a = x, .weights = w, ...}, thread));
#ifndef MSC_KERNELS_CPU_ROUTINE_H
#define MSC_KERNELS_CPU_ROUTINE_H

#include "kernels/lowering/gemm.h"

struct msc_routine_engine;
struct msc_routine;
struct msc_routine_weights;

// Threads that call msc_routine_run are numbered 0 ... n_threads - 1. Each call runs on
// `kernel_threads` threads.
enum msc_status msc_routine_open(struct msc_routine_engine **out, int n_threads,
                                 int kernel_threads);
void msc_routine_close(struct msc_routine_engine *engine); // accepts NULL
// Names everything that can change a bit of a float32 result: "onednn-2.6.3 avx512_core".
const char *msc_routine_name(const struct msc_routine_engine *engine);
// What this process may compute with. With oneDNN, this depends only on its level, so that all
// machines give the same results at the same level. Users can lower the level (msc_routine_set_isa,
// ONEDNN_MAX_CPU_ISA). On 64-bit Arm the levels are our own (simd_level.h). On other processors
// there are no levels without oneDNN, and no products of our own.
struct msc_routine_isa {
    bool allows_avx512;    // loops may use AVX-512 with VNNI, if the machine has it
    bool allows_avx2_vnni; // loops may use AVX-VNNI, if the machine has it
    bool allows_avx2;      // loops may use AVX2 with FMA, if the machine has it
    bool allows_neon_dotprod, allows_neon_i8mm; // loops may use them, if the machine has them
    bool uses_bytes;  // products of bytes of our own replace routines, which are no faster
    bool uses_floats; // products of floats of our own replace routines
    bool has_int8;    // routines have integer instructions that give exact sums
    bool has_tiles;   // tile registers
};
struct msc_routine_isa msc_routine_isa(void);
// See msc_backend_set_isa and msc_backend_isa (kernels/engine/backends.h).
enum msc_status msc_routine_set_isa(const char *level);
const char *msc_routine_isa_level(size_t i);

// MSC_E_UNSUPPORTED (only for int8): there is no fast routine for this description. *out is owned
// by the caller. Any thread may call this.
enum msc_status msc_routine_create(struct msc_routine **out, struct msc_routine_engine *engine,
                                   const struct msc_gemm_desc *desc);
void msc_routine_destroy(struct msc_routine *d); // accepts NULL
size_t msc_routine_scratch_bytes(const struct msc_routine *d);
size_t msc_routine_weights_bytes(const struct msc_routine *d);

// Packs plain weights, float or int8_t. *out is owned by the caller and may be shared by threads.
// Any thread may call this.
enum msc_status msc_routine_pack(struct msc_routine_weights **out, const struct msc_routine *d,
                                 const void *elements);
void msc_routine_weights_destroy(struct msc_routine_weights *w); // accepts NULL

struct msc_routine_call {
    const void *a;
    const struct msc_routine_weights *weights;
    const void *b;     // second matrix of MATMUL, plain
    const float *bias; // replaces desc.bias if neither of the two is NULL
    void *out;         // float or int32_t
    void *scratch;     // msc_routine_scratch_bytes, aligned to 64 bytes
};
enum msc_status msc_routine_run(const struct msc_routine *d, const struct msc_routine_call *call,
                                int thread);

// The bias that a call uses. Only for the sources that implement this header.
static inline const float *msc_routine_bias(const struct msc_gemm_desc *desc,
                                            const struct msc_routine_call *call) {
    return desc->bias && call->bias ? call->bias : desc->bias;
}
// Adds a bias (NULL: none) to [n_positions][out_channels] float results and applies the
// description's clip bounds.
void msc_routine_finish(const struct msc_gemm_desc *desc, const float bias[], float out[],
                        int64_t n_positions);

#endif
