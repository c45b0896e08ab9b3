// Steps whose anchor (first joint) multiplies activations with constant weights: convolutions and
// linear layers.
//
// A step runs in chunks, so that a chunk's input, sums and output stay in the processor's cache. A
// chunk is several images (or positions, if each is computed independently), or a band of rows of
// one image. A band is copied with its padding and the rows that it shares with its neighbours.
//
// A unit is a way to compute a step. There are three kinds of units (q: an integer of the input,
// z: the input's zero point, w: an integer of the weight minus the weight's zero point):
//
//     float    computes in float32; integer inputs are dequantised first
//     integer  multiplies q - z and w as float32, which is exact while every sum is below 2^24. If
//              sums may be larger, q - z is split into digits (groups of bits,
//              kernels/lowering/digits.h); each digit is multiplied in a pass of its own, and the
//              products are added as int32
//     int8     multiplies q as uint8 and w as int8 into int32, then subtracts z * sum (w), which
//              gives the same sums
//
// Routines (routine.h: oneDNN or plain C) multiply, except in the units that use our own kernels.
// Depthwise int8 convolutions use our own loops. Most other int8 products use indirect GEMM, if the
// machine has its instructions. Large convolutions of 3 x 3 windows use Winograd's algorithm. All
// three can apply the epilogue before they store the sums. The depthwise loops apply scale, bias
// and clip bounds, and quantise to bytes. The others can also apply chains of element-wise joints
// (such as a residual), write float32 outputs, and write several quantised variants.
//
// Whether a call computes in integers depends only on the edits of its input and its weight. The
// units integer and int8 give the same bits.
#ifndef MSC_KERNELS_CPU_CPU_GEMM_H
#define MSC_KERNELS_CPU_CPU_GEMM_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ewise_run.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/lowering/gemm.h"

#include <stdatomic.h>

enum msc_cpu_gemm_unit {
    MSC_CPU_GEMM_FLOAT,
    MSC_CPU_GEMM_FLOAT_INDIRECT,  // uses cpu_gemm_indirect.c instead of a routine
    MSC_CPU_GEMM_FLOAT_DEPTHWISE, // uses cpu_gemm_weigh.c instead of a routine
    MSC_CPU_GEMM_INTEGER,
    MSC_CPU_GEMM_INT8,
    MSC_CPU_GEMM_INT8_PADDED, // the input is copied with padding, filled with the zero point
    MSC_CPU_GEMM_DEPTHWISE,   // int8; uses cpu_gemm_depthwise.c instead of a routine
    MSC_CPU_GEMM_INDIRECT,    // int8; uses cpu_gemm_indirect.c instead of a routine; copies the
                              // input with padding for convolutions that are not pointwise
    MSC_CPU_GEMM_WINOGRAD,    // int8; uses cpu_gemm_winograd.c instead of a routine; only if every
                              // sum is below 2^25
    MSC_CPU_GEMM_UNIT_COUNT
};
static inline bool msc_cpu_gemm_is_float(enum msc_cpu_gemm_unit unit) {
    return unit < MSC_CPU_GEMM_INTEGER;
}
static inline bool msc_cpu_gemm_is_indirect(enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT || unit == MSC_CPU_GEMM_FLOAT_INDIRECT;
}

// The bias that is added to sums: as floats, as integers, or none.
struct msc_cpu_gemm_bias {
    const float *floats;     // [channels] added to scaled sums; NULL: none
    const int32_t *integers; // [channels] added to integer sums; NULL: none
    float largest;           // largest magnitude of floats; infinite if one is NaN
    int64_t largest_integer;
};

// The operands of a step: activations, weight and bias. All pointers are borrowed.
struct msc_cpu_gemm_source {
    int32_t input; // index of the step input with the activations
    const struct msc_array *weight;
    const struct msc_array *bias; // [channels], added to scaled sums; may be NULL
    // [channels] Only for integer joints (cpu_integer.c): added to the integer sums; may be NULL.
    const int32_t *integer_bias;
    bool gives_sums;                // the output is the int32 sums, with nothing applied to them
    int32_t weight_slot, bias_slot; // slots of the edits; MSC_NO_ID: none
};

// How a unit divides a step into chunks.
struct msc_cpu_gemm_chunks {
    struct msc_gemm_desc desc; // describes one chunk
    int64_t n;
    int64_t bands;   // chunks per image; 1 if chunks are whole images
    bool is_padded;  // the input is copied with its padding
    int64_t in, out; // elements that the routine reads and writes per chunk
    int64_t images;  // images per chunk; 1 for bands, and for positions of a pointwise convolution
};

// A way to compute a step, one of those that give the same bits (cpu_gemm_ways.c).
struct msc_cpu_gemm_way {
    const char *name;
    enum msc_cpu_gemm_unit unit;
    int64_t block; // for our own products: bytes of windows between changes of the block of
                   // channels; 0: as many as fit a first-level cache
};
enum { MSC_CPU_GEMM_WAYS = 5 };
struct msc_cpu_gemm_ways {
    struct msc_work work;
    int n;
    const struct msc_cpu_gemm_way *list[MSC_CPU_GEMM_WAYS];
    int by_rule, kept, chosen;
    atomic_bool was_used;
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
    struct msc_gemm_desc desc;                                // copied from msc_gemm_spec
    bool is_depthwise;                                        // the unit DEPTHWISE is possible
    bool weighs;                                              // uses the unit FLOAT_DEPTHWISE
    const struct msc_simd_product *indirect, *float_indirect; // products of the two indirect units;
                                                              // NULL: none
    const struct msc_simd_winograd
        *winograd;                  // of the unit WINOGRAD; NULL: the unit is not possible
    struct msc_cpu_gemm_ways *ways; // [2] of calls that compute floats, and integers
    struct msc_cpu_gemm_chunks chunks[MSC_CPU_GEMM_UNIT_COUNT];
    struct msc_cpu_gemm_routine *routines; // [MSC_CPU_GEMM_UNIT_COUNT]
    struct msc_cpu_ewise
        *epilogues[3]; // one each for float32 results, float32 sums and int32 sums; NULL: none
};

// The unit of all calls that do not compute in integer arithmetic.
static inline enum msc_cpu_gemm_unit msc_cpu_gemm_float_unit(const struct msc_cpu_gemm *k) {
    if (k->weighs) {
        return MSC_CPU_GEMM_FLOAT_DEPTHWISE;
    }
    return k->float_indirect ? MSC_CPU_GEMM_FLOAT_INDIRECT : MSC_CPU_GEMM_FLOAT;
}

// Makes the kernel of a step from a source. If the source is an integer joint (cpu_integer.c), the
// step has no other joints.
enum msc_status msc_cpu_gemm_create(struct msc_cpu_gemm **out, struct msc_cpu_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step,
                                    const struct msc_gemm_spec *spec,
                                    const struct msc_cpu_gemm_source *source);

// The next five functions implement the family. An int32 output receives the sums themselves.
enum msc_status msc_cpu_gemm_prepare(void **kernel, struct msc_cpu_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step);
void msc_cpu_gemm_release(void *kernel);
enum msc_status msc_cpu_gemm_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread);
enum msc_status msc_cpu_gemm_weights(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes);
void msc_cpu_gemm_release_weights(void *weights);

// The routine of a unit; the first caller creates it. MSC_E_UNSUPPORTED (only for int8 units):
// there is no fast routine. The answer never changes.
enum msc_status msc_cpu_gemm_routine(const struct msc_routine **out, const struct msc_cpu_gemm *k,
                                     enum msc_cpu_gemm_unit unit);
// Sets *out to whether an int8 routine returns sums beyond 2^24 exactly. oneDNN may convert sums to
// float32 and back at the end. The first call runs the routine once to find out. The answer never
// changes.
enum msc_status msc_cpu_gemm_is_exact(bool *out, const struct msc_cpu_gemm *k,
                                      enum msc_cpu_gemm_unit unit, int thread);
enum msc_status msc_cpu_gemm_create_routines(struct msc_cpu_gemm *k);
void msc_cpu_gemm_destroy_routines(struct msc_cpu_gemm *k);

// A variant of a step: its weights and bias under edits. The weights are packed for each unit when
// that unit first needs them.
struct msc_cpu_gemm_variant;

struct msc_cpu_gemm_bias msc_cpu_gemm_bias_of(const float floats[], const int32_t integers[],
                                              int64_t n);
// The bias that a variant adds to scaled sums.
struct msc_cpu_gemm_bias msc_cpu_gemm_float_bias(const struct msc_cpu_gemm *k,
                                                 const struct msc_cpu_gemm_variant *v);
// True if the bias is rounded to multiples of exactly the scale of the integer sums (the input's
// `scale` times the weight's). *out then has the integers to add to these sums.
bool msc_cpu_gemm_integer_bias(struct msc_cpu_gemm_bias *out, const struct msc_cpu_gemm_variant *v,
                               float scale);

struct msc_cpu_gemm_pack {
    struct msc_routine_weights *weights;
    void *own;       // packed weights of units without a routine, instead of `weights`
    int64_t largest; // largest sum |w| of an output channel; 0 for float
    int32_t *sums;   // [channels] sum (w)
};

// True if these weights can be multiplied as integers; is_int8: if the integers also fit int8.
bool msc_cpu_gemm_is_integer(const struct msc_cpu_gemm_variant *v);
bool msc_cpu_gemm_is_int8(const struct msc_cpu_gemm_variant *v);
// The scales of the sums of n output channels: the weight's scale times the input's scale. If the
// input has one scale per channel, the scale of the corresponding input channel is used.
void msc_cpu_gemm_scales(float out[], const struct msc_cpu_gemm_variant *v, int64_t n,
                         const struct msc_quant *input);
float msc_cpu_gemm_largest_scale(const struct msc_cpu_gemm_variant *v);
enum msc_status msc_cpu_gemm_pack(const struct msc_cpu_gemm_pack **out,
                                  const struct msc_cpu_gemm *k,
                                  const struct msc_cpu_gemm_variant *v,
                                  enum msc_cpu_gemm_unit unit);

// ---- cpu_gemm_depthwise.c ---------------------------------------------------------------------

// True if each channel has a single filter of its own, along one or two spatial axes.
bool msc_cpu_gemm_is_depthwise(const struct msc_gemm_desc *d);
// Packs weights [channels][window] for msc_cpu_gemm_depthwise. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_depthwise(void **out, const struct msc_cpu_gemm *k,
                                            const int8_t weights[]);

struct msc_cpu_gemm_depthwise {
    const struct msc_cpu_gemm *k;
    const void *weights;           // packed
    const uint8_t *in;             // stored integers
    uint8_t flip;                  // 0x80 for int8
    const uint8_t **taps;          // where in the input each tap, or each row of taps, starts
    uint8_t *blank;                // [columns][channels] zero points: a row outside of the image
    struct msc_simd_finish finish; // its arrays are repeated like the packed weights
};
size_t msc_cpu_gemm_depthwise_scratch(const struct msc_cpu_gemm *k);
// `memory` has msc_cpu_gemm_depthwise_scratch bytes. `q` is the input's quantisation. `finish` has
// arrays of [channels]; it is NULL if only sums are needed.
void msc_cpu_gemm_depthwise_begin(struct msc_cpu_gemm_depthwise *d, const struct msc_quant *q,
                                  const struct msc_simd_finish *finish, void *memory);
void msc_cpu_gemm_depthwise_sums(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                 int32_t sums[]);
// Computes and quantises a chunk. `out` is the start of the chunk's output.
void msc_cpu_gemm_depthwise_quantize(const struct msc_cpu_gemm_depthwise *d, int64_t chunk,
                                     uint8_t out[], const struct msc_simd_bytes *q);

// ---- cpu_gemm_weigh.c --------------------------------------------------------------------------

// True if msc_cpu_gemm_weigh computes this product. The unit FLOAT_DEPTHWISE is then used.
bool msc_cpu_gemm_weighs(const struct msc_gemm_spec *spec, const struct msc_cpu_backend *b);
// Packs weights [channels][window] for msc_cpu_gemm_weigh. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_weigh(void **out, const struct msc_cpu_gemm *k,
                                        const float weights[]);
size_t msc_cpu_gemm_weigh_scratch(const struct msc_cpu_gemm *k);
// Computes a chunk, with the bias (NULL: none) and the limits of the float routine. Uses `memory`
// of msc_cpu_gemm_weigh_scratch bytes.
void msc_cpu_gemm_weigh(float out[], const struct msc_cpu_gemm *k, const float in[],
                        const void *packed, const float bias[], void *memory);

// ---- cpu_gemm_indirect.c -----------------------------------------------------------------------

// Our own product that this unit should use; NULL: none. The unit's chunks must be set.
const struct msc_simd_product *msc_cpu_gemm_choose_product(const struct msc_cpu_gemm *k,
                                                           enum msc_cpu_gemm_unit unit);
static inline const struct msc_simd_product *msc_cpu_gemm_product(const struct msc_cpu_gemm *k,
                                                                  enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_INDIRECT ? k->indirect : k->float_indirect;
}
// True if the product may read up to MSC_SIMD_GROUP - 1 bytes after the end of a chunk's input.
bool msc_cpu_gemm_indirect_read_beyond(const struct msc_cpu_gemm *k);
// Packs plain weights for the unit. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_indirect(void **out, const struct msc_cpu_gemm *k,
                                           enum msc_cpu_gemm_unit unit, const void *weights);
// msc_cpu_gemm_indirect describes the windows of a chunk; the caller sets `in` of the result.
// `memory` has msc_cpu_gemm_indirect_scratch bytes and must outlive the result.
size_t msc_cpu_gemm_indirect_scratch(const struct msc_cpu_gemm *k, enum msc_cpu_gemm_unit unit);
struct msc_simd_indirect msc_cpu_gemm_indirect(const struct msc_cpu_gemm *k,
                                               enum msc_cpu_gemm_unit unit, const void *packed,
                                               void *memory);

// ---- cpu_gemm_winograd.c -----------------------------------------------------------------------

// Winograd's algorithm, if it can compute this; otherwise NULL.
const struct msc_simd_winograd *msc_cpu_gemm_choose_winograd(const struct msc_cpu_gemm *k);
// True if it is probably faster than the other units, whose products must be set.
bool msc_cpu_gemm_prefers_winograd(const struct msc_cpu_gemm *k);
// True if the algorithm gives the sums of these weights. `largest` is the largest sum of |w| of an
// output channel.
bool msc_cpu_gemm_winograd_fits(int64_t largest);
// Packs weights for the unit. *out is freed by msc_free_aligned.
enum msc_status msc_cpu_gemm_pack_winograd(void **out, const struct msc_cpu_gemm *k,
                                           const int8_t weights[]);
size_t msc_cpu_gemm_winograd_scratch(const struct msc_cpu_gemm *k);
// Describes a chunk; the caller sets `in` of the result. `q` is the input's quantisation. `memory`
// has msc_cpu_gemm_winograd_scratch bytes and must outlive the result.
struct msc_simd_image_windows msc_cpu_gemm_winograd(const struct msc_cpu_gemm *k,
                                                    const struct msc_quant *q, const void *packed,
                                                    void *memory);

// ---- cpu_gemm_ways.c ---------------------------------------------------------------------------

// Finds the ways, once the units that are possible are known, and chooses among them.
enum msc_status msc_cpu_gemm_create_ways(struct msc_cpu_gemm *k);
// The chosen way of a call that computes integers or floats, and notes that there was such a call;
// NULL: there is no choice.
const struct msc_cpu_gemm_way *msc_cpu_gemm_way(const struct msc_cpu_gemm *k, bool is_integer);
// The functions `variants` and `choose` of the family.
bool msc_cpu_gemm_variants(const void *kernel, struct msc_variants *out);
void msc_cpu_gemm_choose(void *kernel, int variant);

#endif
