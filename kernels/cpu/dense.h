// Dense linear algebra below the cpu backend: convolutions, linear layers and matrix products of
// one fixed shape. Two sources give the same functions: dense_onednn.c, and dense_plain.c for
// builds without oneDNN (MSC_ONEDNN=OFF).
//
// Activations are dense with channels last, [batch, spatial..., channels] or [rows, channels].
// Weights are packed once into whatever form the routine likes. Two units: float32 throughout, or
// uint8 activations with int8 weights and exact int32 sums. A float32 unit fed with whole numbers
// whose sums stay below 2^24 is exact too.
//
//     struct msc_dense *d;
//     MSC_TRY(msc_dense_create(&d, engine, &desc));
//     MSC_TRY(msc_dense_pack(&w, d, elements));
//     MSC_TRY(msc_dense_run(d, &(struct msc_dense_call){.a = x, .weights = w, ...}, thread));
#ifndef MSC_KERNELS_CPU_DENSE_H
#define MSC_KERNELS_CPU_DENSE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct msc_dense_engine;
struct msc_dense;
struct msc_dense_weights;

// Callers of msc_dense_run are numbered 0 ... n_threads - 1; each routine uses `kernel_threads`.
enum msc_status msc_dense_open(struct msc_dense_engine **out, int n_threads, int kernel_threads);
void msc_dense_close(struct msc_dense_engine *engine); // accepts NULL
// What can change a bit of a float32 result: "onednn-2.6.3 avx512_core".
const char *msc_dense_name(const struct msc_dense_engine *engine);
// What the engine may use of the machine, which its user can limit (ONEDNN_MAX_CPU_ISA).
struct msc_dense_isa {
    bool has_avx512;
    bool has_int8; // integer units whose sums are exact
    bool has_tiles;
};
struct msc_dense_isa msc_dense_isa(const struct msc_dense_engine *engine);

enum msc_dense_kind {
    MSC_DENSE_CONV,
    MSC_DENSE_CONV_TRANSPOSE,
    MSC_DENSE_LINEAR, // batch rows
    MSC_DENSE_MATMUL, // batch products of [rows, in_channels] and [in_channels, out_channels]
};

struct msc_dense_desc {
    enum msc_dense_kind kind;
    bool is_int8; // uint8 x int8 -> int32; else float32
    int n_spatial;
    int64_t batch, rows;
    int64_t groups, in_channels, out_channels; // channels of all groups together
    int64_t in[3], out[3], kernel[3], strides[3], dilation[3], pad_begin[3], pad_end[3];
    bool is_input_first; // plain weights are [in, out] instead of [out, in]; LINEAR only:
                         // convolutions have [out, in / groups, ...], transposed ones
                         // [in, out / groups, ...]
    const float *bias;   // [out_channels], borrowed; NULL: none. float32 only
    bool has_clip;       // limit the results, after the bias. float32 only
    float low, high;
};

// MSC_E_UNSUPPORTED: no fast routine for this (int8 only). *out is owned by the caller. From any
// thread.
enum msc_status msc_dense_create(struct msc_dense **out, struct msc_dense_engine *engine,
                                 const struct msc_dense_desc *desc);
void msc_dense_destroy(struct msc_dense *d); // accepts NULL
size_t msc_dense_scratch_bytes(const struct msc_dense *d);
size_t msc_dense_weights_bytes(const struct msc_dense *d);

// Packs plain weights, float or int8_t. *out is owned by the caller and may be shared by threads.
// From any thread.
enum msc_status msc_dense_pack(struct msc_dense_weights **out, const struct msc_dense *d,
                               const void *elements);
void msc_dense_weights_destroy(struct msc_dense_weights *w); // accepts NULL

struct msc_dense_call {
    const void *a;
    const struct msc_dense_weights *weights;
    const void *b; // second matrix of MATMUL, plain
    void *out;     // float or int32_t
    void *scratch; // msc_dense_scratch_bytes, aligned to 64 bytes
};
enum msc_status msc_dense_run(const struct msc_dense *d, const struct msc_dense_call *call,
                              int thread);

// What the sources of this header share: bias and limits of a description over [n_positions]
// [out_channels] float results.
void msc_dense_finish(const struct msc_dense_desc *desc, float out[], int64_t n_positions);

#ifdef __cplusplus
}
#endif

#endif
