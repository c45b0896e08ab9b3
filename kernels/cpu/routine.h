// Dense linear algebra below the cpu backend: convolutions, linear layers and matrix products of
// one fixed shape. Two sources implement it: routine_onednn.c, and routine_plain.c for builds
// without oneDNN (MSC_ONEDNN=OFF).
//
// Activations are NHWC: [batch, spatial..., channels] or [rows, channels]. Weights are packed once,
// in a form that the routine chooses. There are two kinds of routines: float32 throughout, or uint8
// activations with int8 weights and exact int32 sums. A float32 routine is also exact for integers
// whose sums stay below 2^24.
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

// Threads that call msc_routine_run are numbered 0 ... n_threads - 1; each call uses
// `kernel_threads`.
enum msc_status msc_routine_open(struct msc_routine_engine **out, int n_threads,
                                 int kernel_threads);
void msc_routine_close(struct msc_routine_engine *engine); // accepts NULL
// Names everything that can change a bit of a float32 result: "onednn-2.6.3 avx512_core".
const char *msc_routine_name(const struct msc_routine_engine *engine);
// The instructions that the engine may use. Users can limit them (msc_routine_set_isa,
// ONEDNN_MAX_CPU_ISA). They depend only on the level, so that all machines give the same results at
// one level.
struct msc_routine_isa {
    bool has_avx512; // AVX-512 with VNNI, which products of our own need
    bool has_int8;   // has integer instructions whose sums are exact
    bool has_tiles;
};
struct msc_routine_isa msc_routine_isa(const struct msc_routine_engine *engine);
// See msc_backend_set_isa and msc_backend_isa (kernels/engine/backends.h).
enum msc_status msc_routine_set_isa(const char *level);
const char *msc_routine_isa_level(size_t i);

// MSC_E_UNSUPPORTED: there is no fast routine for this description (only for int8). *out is owned
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
    const float *bias; // replaces desc.bias, if that is given; NULL: desc.bias is used
    void *out;         // float or int32_t
    void *scratch;     // msc_routine_scratch_bytes, aligned to 64 bytes
};
enum msc_status msc_routine_run(const struct msc_routine *d, const struct msc_routine_call *call,
                                int thread);

// Shared by the sources of this header: the bias of a call.
static inline const float *msc_routine_bias(const struct msc_gemm_desc *desc,
                                            const struct msc_routine_call *call) {
    return desc->bias && call->bias ? call->bias : desc->bias;
}
// Adds a bias (NULL: none) to [n_positions][out_channels] float results and applies the
// description's limits.
void msc_routine_finish(const struct msc_gemm_desc *desc, const float bias[], float out[],
                        int64_t n_positions);

#endif
