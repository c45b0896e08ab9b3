// Steps whose anchor multiplies activations with constant weights: convolutions and linear layers.
//
// A step runs in chunks, so that a chunk's input, sums and output stay in the processor's cache
// while they are expanded, multiplied and followed by element-wise joints. A chunk is several
// images (or positions, if each is computed independently), or a band of rows of one image, copied
// with its padding and the rows that it shares with its neighbours. There are three ways to compute
// (units):
//
//     float    float32, also under wide or float edits: integer inputs are dequantised first
//     integer  float32 products of the integers q - z, exact while every sum stays below 2^24. For
//              larger weights, q - z is split into digits (powers of two); each digit takes one
//              pass, and the passes are added as int32
//     int8     uint8 x int8 -> int32 on q; z is then subtracted from the sums: same integers.
//              Depthwise convolutions use loops of our own. Most others use indirect GEMM, if the
//              machine has the instructions. Both apply the epilogue before sums are stored: the
//              loops apply scale, bias, limits and bytes; indirect GEMM also chains of element-wise
//              joints (a residual, say), float32 outputs and bytes in several quantised variants
//
// Whether a call computes in integers depends only on the edits of its input and its weight. The
// units integer and int8 give the same bits.
#ifndef MSC_KERNELS_CPU_CPU_GEMM_H
#define MSC_KERNELS_CPU_CPU_GEMM_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/lowering/gemm.h"

enum msc_cpu_gemm_unit {
    MSC_CPU_GEMM_FLOAT,
    MSC_CPU_GEMM_FLOAT_INDIRECT, // by cpu_gemm_indirect.c, without a routine
    MSC_CPU_GEMM_INTEGER,
    MSC_CPU_GEMM_INT8,
    MSC_CPU_GEMM_INT8_PADDED, // the input is copied with padding, filled with the zero point
    MSC_CPU_GEMM_DEPTHWISE,   // int8 by cpu_gemm_depthwise.c, without a routine
    MSC_CPU_GEMM_INDIRECT,    // int8 by cpu_gemm_indirect.c, without a routine; copies the input if
                              // windows overlap
    MSC_CPU_GEMM_UNIT_COUNT
};
static inline bool msc_cpu_gemm_is_float(enum msc_cpu_gemm_unit unit) {
    return unit < MSC_CPU_GEMM_INTEGER;
}
static inline bool msc_cpu_gemm_is_indirect(enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT || unit == MSC_CPU_GEMM_FLOAT_INDIRECT;
}

// The bias added to sums.
struct msc_cpu_gemm_bias {
    const float *floats;     // [channels] added to scaled sums; NULL: none
    const int32_t *integers; // [channels] added to integer sums; NULL: none
    float largest;           // largest magnitude of floats; infinite if one is NaN
    int64_t largest_integer;
};

// The factors of a step, and the bias added to its sums.
struct msc_cpu_gemm_source {
    int32_t input;                  // index of the step input with the activations
    const struct msc_array *weight; // borrowed, like all pointers here
    const struct msc_array *bias;   // [channels], added to scaled sums; may be NULL
    // For integer joints (cpu_integer.c): added to the integer sums; may be NULL.
    const int32_t *integer_bias;
    bool gives_sums;                // the output is the int32 sums, with nothing applied to them
    int32_t weight_slot, bias_slot; // slots of their edits; MSC_NO_ID: none
};

// How a unit divides a step into chunks.
struct msc_cpu_gemm_chunks {
    struct msc_gemm_desc desc; // of one chunk
    int64_t n;
    int64_t bands;   // chunks per image; 1 if chunks are whole images
    bool is_padded;  // the input is copied with its padding
    int64_t in, out; // elements that the routine reads and writes per chunk
    int64_t images;  // images per chunk, or 1
};

struct msc_cpu_gemm_routine; // an msc_routine made when it is first needed

struct msc_cpu_gemm {
    struct msc_cpu_backend *backend;
    const char *name; // the anchor's name
    int32_t input;    // index of the step input with the activations
    const struct msc_array *weight;
    const struct msc_array *bias_array; // may be NULL
    struct msc_cpu_gemm_bias bias;      // the elements of bias_array
    int32_t weight_slot, bias_slot;
    bool gives_sums;
    int out_axis;
    int64_t channels;
    struct msc_gemm_desc desc;                                // copy of the spec's
    bool is_depthwise;                                        // the unit DEPTHWISE can compute it
    const struct msc_simd_product *indirect, *float_indirect; // products of the two indirect units;
                                                              // NULL: none
    struct msc_cpu_gemm_chunks chunks[MSC_CPU_GEMM_UNIT_COUNT];
    struct msc_cpu_gemm_routine *routines; // [MSC_CPU_GEMM_UNIT_COUNT]
    struct msc_cpu_ewise
        *epilogues[3]; // that follow float32, sums as float32, sums as int32; may be NULL
};

// The unit of every call that does not compute in integers.
static inline enum msc_cpu_gemm_unit msc_cpu_gemm_float_unit(const struct msc_cpu_gemm *k) {
    return k->float_indirect ? MSC_CPU_GEMM_FLOAT_INDIRECT : MSC_CPU_GEMM_FLOAT;
}

// Makes a kernel from a source. If the source is an integer joint, `step` has no other joints.
enum msc_status msc_cpu_gemm_create(struct msc_cpu_gemm **out, struct msc_cpu_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step,
                                    const struct msc_gemm_spec *spec,
                                    const struct msc_cpu_gemm_source *source);

// The next five functions implement a family. An output of type int32 gets the sums.
enum msc_status msc_cpu_gemm_prepare(void **kernel, struct msc_cpu_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step);
void msc_cpu_gemm_release(void *kernel);
enum msc_status msc_cpu_gemm_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread);
enum msc_status msc_cpu_gemm_weights(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes);
void msc_cpu_gemm_release_weights(void *weights);

// The routine of a unit, created by the first caller. MSC_E_UNSUPPORTED if there is none for int8;
// the answer never changes.
enum msc_status msc_cpu_gemm_routine(const struct msc_routine **out, const struct msc_cpu_gemm *k,
                                     enum msc_cpu_gemm_unit unit);
// Does an int8 routine return sums beyond 2^24 exactly? oneDNN may convert them to float32 and back
// at the end. Running the routine once finds out. The answer never changes.
enum msc_status msc_cpu_gemm_is_exact(bool *out, const struct msc_cpu_gemm *k,
                                      enum msc_cpu_gemm_unit unit, int thread);
enum msc_status msc_cpu_gemm_create_routines(struct msc_cpu_gemm *k);
void msc_cpu_gemm_destroy_routines(struct msc_cpu_gemm *k);

// Weights and bias under edits, packed for each unit when it is first needed.
struct msc_cpu_gemm_variant;

struct msc_cpu_gemm_bias msc_cpu_gemm_bias_of(const float floats[], const int32_t integers[],
                                              int64_t n);
// The bias that a variant adds to scaled sums.
struct msc_cpu_gemm_bias msc_cpu_gemm_float_bias(const struct msc_cpu_gemm *k,
                                                 const struct msc_cpu_gemm_variant *v);
// Is the bias rounded to exactly the step of integer sums with this input scale? Then *out holds
// the integers to add to these sums.
bool msc_cpu_gemm_integer_bias(struct msc_cpu_gemm_bias *out, const struct msc_cpu_gemm_variant *v,
                               float scale);

struct msc_cpu_gemm_pack {
    struct msc_routine_weights *weights;
    void *own;       // packed weights of units without a routine, instead of `weights`
    int64_t largest; // maximum over channels of sum |q - z|; 0 for float
    int32_t *sums;   // [channels] sum (q - z)
};

// Can these weights be multiplied as integers? As int8?
bool msc_cpu_gemm_is_integer(const struct msc_cpu_gemm_variant *v);
bool msc_cpu_gemm_is_int8(const struct msc_cpu_gemm_variant *v);
// The scales of n output channels, times the input's scale or, if it has one per channel, the scale
// of their input channel.
void msc_cpu_gemm_scales(float out[], const struct msc_cpu_gemm_variant *v, int64_t n,
                         const struct msc_quant *input);
float msc_cpu_gemm_largest_scale(const struct msc_cpu_gemm_variant *v);
enum msc_status msc_cpu_gemm_pack(const struct msc_cpu_gemm_pack **out,
                                  const struct msc_cpu_gemm *k,
                                  const struct msc_cpu_gemm_variant *v,
                                  enum msc_cpu_gemm_unit unit);

// ---- cpu_gemm_depthwise.c ---------------------------------------------------------------------

// Is there one filter per channel, along one or two spatial axes?
bool msc_cpu_gemm_is_depthwise(const struct msc_gemm_desc *d);
// Packs weights [channels][window] for msc_cpu_gemm_depthwise. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_depthwise(void **out, const struct msc_cpu_gemm *k,
                                            const int8_t weights[]);

struct msc_cpu_gemm_depthwise {
    const struct msc_cpu_gemm *k;
    const void *weights;           // packed
    const uint8_t *in;             // stored integers
    uint8_t flip;                  // 0x80 for int8
    const uint8_t **taps;          // taps of the current run
    uint8_t *blank;                // padding for one row
    struct msc_simd_finish finish; // repeated to fill the period
};
size_t msc_cpu_gemm_depthwise_scratch(const struct msc_cpu_gemm *k);
// Uses `memory` of the size above; `q` is the input's quantisation. `finish` has arrays of
// [channels]; NULL: only sums are needed.
void msc_cpu_gemm_depthwise_begin(struct msc_cpu_gemm_depthwise *d, const struct msc_quant *q,
                                  const struct msc_simd_finish *finish, void *memory);
void msc_cpu_gemm_depthwise_sums(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                 int32_t sums[]);
// `out` is the start of the chunk's output.
void msc_cpu_gemm_depthwise_quantize(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                     uint8_t out[], const struct msc_simd_bytes *q);

// ---- cpu_gemm_indirect.c -----------------------------------------------------------------------

// Our best product for windows of this unit; NULL: none. The unit's chunks must be set.
const struct msc_simd_product *msc_cpu_gemm_choose_product(const struct msc_cpu_gemm *k,
                                                           enum msc_cpu_gemm_unit unit);
static inline const struct msc_simd_product *msc_cpu_gemm_product(const struct msc_cpu_gemm *k,
                                                                  enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT ? k->indirect : k->float_indirect;
}
// Does the product read up to MSC_SIMD_GROUP - 1 bytes after the end of a chunk's input?
bool msc_cpu_gemm_indirect_read_beyond(const struct msc_cpu_gemm *k);
// Packs plain weights for the unit. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_indirect(void **out, const struct msc_cpu_gemm *k,
                                           enum msc_cpu_gemm_unit unit, const void *weights);
// A chunk's windows, without `in`; uses `memory` of the size above.
size_t msc_cpu_gemm_indirect_scratch(const struct msc_cpu_gemm *k, enum msc_cpu_gemm_unit unit);
struct msc_simd_indirect msc_cpu_gemm_indirect(const struct msc_cpu_gemm *k,
                                               enum msc_cpu_gemm_unit unit, const void *packed,
                                               void *memory);

#endif
