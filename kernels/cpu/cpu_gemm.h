// Steps whose anchor multiplies activations with constant weights: convolutions and linear layers.
//
// A step runs in chunks, so that a chunk's input, sums and output stay in the cache while they are
// expanded, multiplied and followed by element-wise joints. A chunk is some images (or positions,
// where each is computed by itself) or a band of rows of one image, copied with its padding and
// what neighbouring bands share. Three ways (units):
//
//     float    float32, also under wide or float edits: integers coming in are dequantised first
//     integer  float32 over integers q - z: exact while every sum stays below 2^24. Where weights
//              are too large for that, q - z is cut into digits (powers of two), one pass each,
//              added as int32
//     int8     uint8 x int8 -> int32, with z taken off the sums afterwards: the same integers. By
//              loops of our own for depthwise convolutions and, where the machine has the
//              instructions, by indirect GEMM for most others. The epilogue then happens before
//              sums are stored: for the former scale, bias, limits and bytes, for the latter chains
//              of element-wise joints (a residual, say), float32 and bytes in several quantised
//              variants, too
//
// Whether a call computes over integers depends on its input's and its weight's edit alone; integer
// and int8 give the same bits.
#ifndef MSC_KERNELS_CPU_CPU_GEMM_H
#define MSC_KERNELS_CPU_CPU_GEMM_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/lowering/gemm.h"

enum msc_cpu_gemm_unit {
    MSC_CPU_GEMM_FLOAT,
    MSC_CPU_GEMM_FLOAT_INDIRECT, // by cpu_gemm_indirect.c: no routine
    MSC_CPU_GEMM_INTEGER,
    MSC_CPU_GEMM_INT8,
    MSC_CPU_GEMM_INT8_PADDED, // over an input copied with its padding, which is the zero point
    MSC_CPU_GEMM_DEPTHWISE,   // int8 by cpu_gemm_depthwise.c: no routine
    MSC_CPU_GEMM_INDIRECT, // by cpu_gemm_indirect.c: neither; over such a copy where windows overlap
    MSC_CPU_GEMM_UNIT_COUNT
};
static inline bool msc_cpu_gemm_is_float(enum msc_cpu_gemm_unit unit) {
    return unit < MSC_CPU_GEMM_INTEGER;
}
static inline bool msc_cpu_gemm_is_indirect(enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT || unit == MSC_CPU_GEMM_FLOAT_INDIRECT;
}

// What is added to sums.
struct msc_cpu_gemm_bias {
    const float *floats;     // [channels] to scaled ones; NULL: nothing
    const int32_t *integers; // [channels] to integer ones themselves; NULL: nothing
    float largest;           // of the sizes of floats; infinite, where one is no number
    int64_t largest_integer;
};

// What a step multiplies and what follows its sums.
struct msc_cpu_gemm_source {
    int32_t input;                  // of the step: the activations
    const struct msc_array *weight; // borrowed, as everything here
    const struct msc_array *bias;   // [channels], added to scaled sums; may be NULL
    // Of joints between integers (cpu_integer.c): added to the sums themselves; may be NULL.
    const int32_t *integer_bias;
    bool gives_sums;                // int32 sums are the output: nothing follows
    int32_t weight_slot, bias_slot; // whose edits they have; MSC_NO_ID: none
};

// How a unit divides a step.
struct msc_cpu_gemm_chunks {
    struct msc_gemm_desc desc; // of one chunk
    int64_t n;
    int64_t bands;   // chunks that make an image; else 1
    bool is_padded;  // input is copied with its padding
    int64_t in, out; // elements that the routine reads and writes
    int64_t images;  // in one chunk, or 1
};

struct msc_cpu_gemm_routine; // a msc_routine made when it is first needed

struct msc_cpu_gemm {
    struct msc_cpu_backend *backend;
    const char *name; // the anchor's
    int32_t input;    // of the step: the activations
    const struct msc_array *weight;
    const struct msc_array *bias_array; // may be NULL
    struct msc_cpu_gemm_bias bias;      // its numbers
    int32_t weight_slot, bias_slot;
    bool gives_sums;
    int out_axis;
    int64_t channels;
    struct msc_gemm_desc desc;                                // the spec's
    bool is_depthwise;                                        // that unit can do it
    const struct msc_simd_product *indirect, *float_indirect; // of those two; NULL: none
    struct msc_cpu_gemm_chunks chunks[MSC_CPU_GEMM_UNIT_COUNT];
    struct msc_cpu_gemm_routine *routines; // [MSC_CPU_GEMM_UNIT_COUNT]
    struct msc_cpu_ewise
        *epilogues[3]; // behind float32, sums as float32, sums as int32; may be NULL
};

// The unit of every call that does not compute over integers.
static inline enum msc_cpu_gemm_unit msc_cpu_gemm_float_unit(const struct msc_cpu_gemm *k) {
    return k->float_indirect ? MSC_CPU_GEMM_FLOAT_INDIRECT : MSC_CPU_GEMM_FLOAT;
}

// What `prepare` makes of a source. `step` has no other joints where the source is of integers.
enum msc_status msc_cpu_gemm_create(struct msc_cpu_gemm **out, struct msc_cpu_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step,
                                    const struct msc_gemm_spec *spec,
                                    const struct msc_cpu_gemm_source *source);

// These five are a family's functions. An output of int32 gets the sums.
enum msc_status msc_cpu_gemm_prepare(void **kernel, struct msc_cpu_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step);
void msc_cpu_gemm_release(void *kernel);
enum msc_status msc_cpu_gemm_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread);
enum msc_status msc_cpu_gemm_weights(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes);
void msc_cpu_gemm_release_weights(void *weights);

// The routine of a unit, created by the first caller. MSC_E_UNSUPPORTED for int8 where there is
// none; the answer never changes.
enum msc_status msc_cpu_gemm_routine(const struct msc_routine **out, const struct msc_cpu_gemm *k,
                                     enum msc_cpu_gemm_unit unit);
// Does an int8 routine hand on sums beyond 2^24 as they are? oneDNN may convert them to float32 and
// back on their way out; which routine does is found by running it once. The answer never changes.
enum msc_status msc_cpu_gemm_is_exact(bool *out, const struct msc_cpu_gemm *k,
                                      enum msc_cpu_gemm_unit unit, int thread);
enum msc_status msc_cpu_gemm_create_routines(struct msc_cpu_gemm *k);
void msc_cpu_gemm_destroy_routines(struct msc_cpu_gemm *k);

// Weights and bias under edits, packed for each unit when it is first needed.
struct msc_cpu_gemm_variant;

struct msc_cpu_gemm_bias msc_cpu_gemm_bias_of(const float floats[], const int32_t integers[],
                                              int64_t n);
// What is added to the scaled sums of a variant.
struct msc_cpu_gemm_bias msc_cpu_gemm_float_bias(const struct msc_cpu_gemm *k,
                                                 const struct msc_cpu_gemm_variant *v);
// Is the bias rounded to just the step of the sums of integers with this scale? Then it is added to
// these themselves.
bool msc_cpu_gemm_integer_bias(struct msc_cpu_gemm_bias *out, const struct msc_cpu_gemm_variant *v,
                               float scale);

struct msc_cpu_gemm_pack {
    struct msc_routine_weights *weights;
    void *own;       // of units without a routine, in place of `weights`
    int64_t largest; // over channels, of sum |q - z|; 0 for float
    int32_t *sums;   // [channels] of sum (q - z)
};

// May these weights be multiplied as integers? And as int8?
bool msc_cpu_gemm_is_integer(const struct msc_cpu_gemm_variant *v);
bool msc_cpu_gemm_is_int8(const struct msc_cpu_gemm_variant *v);
// The scales of n output channels, times that of the input, or of each one's channel of the input.
void msc_cpu_gemm_scales(float out[], const struct msc_cpu_gemm_variant *v, int64_t n,
                         const struct msc_quant *input);
float msc_cpu_gemm_largest_scale(const struct msc_cpu_gemm_variant *v);
enum msc_status msc_cpu_gemm_pack(const struct msc_cpu_gemm_pack **out,
                                  const struct msc_cpu_gemm *k,
                                  const struct msc_cpu_gemm_variant *v,
                                  enum msc_cpu_gemm_unit unit);

// ---- cpu_gemm_depthwise.c ---------------------------------------------------------------------

// One filter for each channel, along one or two spatial axes.
bool msc_cpu_gemm_is_depthwise(const struct msc_gemm_desc *d);
// Weights [channels][window] for msc_cpu_gemm_depthwise. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_depthwise(void **out, const struct msc_cpu_gemm *k,
                                            const int8_t weights[]);

struct msc_cpu_gemm_depthwise {
    const struct msc_cpu_gemm *k;
    const void *weights;           // packed
    const uint8_t *in;             // integers as they are stored
    uint8_t flip;                  // 0x80 for int8
    const uint8_t **taps;          // of a run
    uint8_t *blank;                // padding, as much as a row needs
    struct msc_simd_finish finish; // repeated
};
size_t msc_cpu_gemm_depthwise_scratch(const struct msc_cpu_gemm *k);
// Fills `memory` of that many bytes; `q` is the input's. `finish` has arrays of [channels]; NULL:
// only sums are wanted.
void msc_cpu_gemm_depthwise_begin(struct msc_cpu_gemm_depthwise *d, const struct msc_quant *q,
                                  const struct msc_simd_finish *finish, void *memory);
void msc_cpu_gemm_depthwise_sums(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                 int32_t sums[]);
// `out` is where the chunk begins.
void msc_cpu_gemm_depthwise_quantize(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                     uint8_t out[], const struct msc_simd_bytes *q);

// ---- cpu_gemm_indirect.c -----------------------------------------------------------------------

// What multiplies windows of this unit best; NULL: nothing. Its chunks are known.
const struct msc_simd_product *msc_cpu_gemm_choose_product(const struct msc_cpu_gemm *k,
                                                           enum msc_cpu_gemm_unit unit);
static inline const struct msc_simd_product *msc_cpu_gemm_product(const struct msc_cpu_gemm *k,
                                                                  enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT ? k->indirect : k->float_indirect;
}
// Bytes behind a chunk's input are read, up to MSC_SIMD_GROUP - 1 of them.
bool msc_cpu_gemm_indirect_read_beyond(const struct msc_cpu_gemm *k);
// Plain weights for the unit. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_indirect(void **out, const struct msc_cpu_gemm *k,
                                           enum msc_cpu_gemm_unit unit, const void *weights);
// A chunk's windows, but for `in`; fills `memory` of that many bytes.
size_t msc_cpu_gemm_indirect_scratch(const struct msc_cpu_gemm *k, enum msc_cpu_gemm_unit unit);
struct msc_simd_indirect msc_cpu_gemm_indirect(const struct msc_cpu_gemm *k,
                                               enum msc_cpu_gemm_unit unit, const void *packed,
                                               void *memory);

#endif
