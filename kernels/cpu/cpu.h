// Internal header of the cpu backend.
//
// Each step belongs to a family of joints (kernels/lowering/families.h), which decides how the step
// is planned. For each family, the cpu backend has kernels that prepare and run the steps:
//
//     msc_cpu_family_of(g, step) -> prepare -> run, run, run ... -> release
//
// To add kernels of a family: 1 write kernels/cpu/cpu_<name>.c ending in its `const struct
// msc_cpu_family`, 2 declare it below, 3 add it to the table of cpu_families.c, 4 add the file to
// kernels/CMakeLists.txt and a test to tests/kernels/.
#ifndef MSC_KERNELS_CPU_CPU_H
#define MSC_KERNELS_CPU_CPU_H

#include "kernels/backend.h"
#include "kernels/cpu/routine.h"
#include "kernels/choices.h"
#include "kernels/lowering/digits.h"
#include "kernels/lowering/lowering.h"

// Increase this number whenever a change to a kernel of the cpu backend changes a bit of a result.
#define MSC_CPU_KERNELS_VERSION 2

// The assumed size of a core's second-level cache. Steps are divided into chunks that fit this
// size. The size is the same on all machines, because the division of a step may change bits of the
// step's result.
#define MSC_CPU_CACHE_BYTES (768 * 1024)

struct msc_cpu_memory;
struct msc_simd_product;
struct msc_simd_winograd;

struct msc_cpu_backend {
    struct msc_backend base;
    struct msc_routine_engine *engine;
    // Our own products; NULL: not available.
    const struct msc_simd_product *tiles, *bytes, *floats;
    const struct msc_simd_winograd *winograd;
    struct msc_cpu_memory *memory; // [n_threads]
    char numerics[160];
    char *kept_path;  // of the file of `kept`; NULL: there is no folder
    char device[256]; // names the processor in this file
    struct msc_choices kept;
};

static inline struct msc_cpu_backend *msc_cpu_from(const struct msc_backend *b) {
    return (struct msc_cpu_backend *)b;
}

// cpu_kept.c: reads the choices kept for this processor, and keeps more (msc_backend_def.keep).
enum msc_status msc_cpu_kept_init(struct msc_cpu_backend *b);
enum msc_status msc_cpu_keep(struct msc_backend *b, const struct msc_kept_choice choices[],
                             size_t n);

enum msc_status msc_cpu_memory_create(struct msc_cpu_memory **out, int n_threads);
void msc_cpu_memory_destroy(struct msc_cpu_memory *memory, int n_threads); // accepts NULL
// Gets temporary memory of a thread, aligned to 64 bytes. It is valid until the thread's next call
// of this function.
enum msc_status msc_cpu_get_scratch(void **out, struct msc_cpu_backend *b, int thread,
                                    size_t n_bytes);
// Each of these functions is like msc_cpu_get_scratch, with a buffer of its own. The result buffer
// holds the output of a family that writes only floats, or inputs that were quantised to be moved.
// The floats buffer holds dequantised inputs.
enum msc_status msc_cpu_get_result(void **out, struct msc_cpu_backend *b, int thread,
                                   size_t n_bytes);
enum msc_status msc_cpu_get_floats(void **out, struct msc_cpu_backend *b, int thread,
                                   size_t n_bytes);
// Rounds up to a multiple of 64 bytes, so that the next part of scratch memory is aligned too.
static inline size_t msc_cpu_round_up(size_t n_bytes) {
    return (n_bytes + 63) / 64 * 64;
}
// Takes n_bytes of scratch memory after the *used bytes already taken, and increases *used. If
// `memory` is NULL, only counts the bytes and returns NULL.
static inline void *msc_cpu_take(char *memory, size_t *used, size_t n_bytes) {
    size_t at = *used;
    *used += msc_cpu_round_up(n_bytes);
    return memory ? memory + at : NULL;
}

struct msc_cpu_family {
    enum msc_status (*prepare)(void **kernel, struct msc_cpu_backend *b,
                               const struct msc_plan *plan, const struct msc_step *step);
    void (*release)(void *kernel);
    enum msc_status (*run)(void *kernel, struct msc_cpu_backend *b, const struct msc_call *call,
                           int thread);
    // True: `run` also accepts float32 inputs that are stored as integers. False: such inputs are
    // first dequantised into memory of the thread.
    bool reads_integers;
    // Optional: true if the kernel can read this input as integers with one scale per channel.
    bool (*reads_channels)(const void *kernel, int32_t input, const struct msc_quant *q);
    // True: `run` writes call->quantized. False: the output is quantised after the run. If the
    // kernel copies elements, the inputs may be quantised instead, before the run.
    bool quantizes;
    bool (*is_movement)(const void *kernel); // see msc_backend_def.is_movement; optional
    // Only for kernels with is_movement. True: every output element is a copy of an input element,
    // and the choice of that element does not depend on the values. False for a maximum: among NaNs
    // and numbers, it may select another element after quantising.
    bool copies;
    // Optional: packs weights. NULL: no packed weights are needed.
    enum msc_status (*weights)(void *kernel, struct msc_cpu_backend *b,
                               const struct msc_edit *const edits[], void **out, size_t *n_bytes);
    void (*release_weights)(void *weights);
    // Optional, both or none: as in msc_backend_def.
    bool (*variants)(const void *kernel, struct msc_variants *out);
    void (*choose)(void *kernel, int variant);
};

const struct msc_cpu_family *msc_cpu_family_of(const struct msc_graph *g,
                                               const struct msc_step *step);

extern const struct msc_cpu_family msc_cpu_ewise;
extern const struct msc_cpu_family msc_cpu_conv_gemm; // convolutions and linear layers
extern const struct msc_cpu_family msc_cpu_integer;
extern const struct msc_cpu_family msc_cpu_matmul;
extern const struct msc_cpu_family msc_cpu_pool;
extern const struct msc_cpu_family msc_cpu_reduce;
extern const struct msc_cpu_family msc_cpu_softmax;
extern const struct msc_cpu_family msc_cpu_layer_norm;
extern const struct msc_cpu_family msc_cpu_group_norm;
extern const struct msc_cpu_family msc_cpu_resize;
extern const struct msc_cpu_family msc_cpu_linear_quant;
extern const struct msc_cpu_family msc_cpu_permute;
extern const struct msc_cpu_family msc_cpu_depth_space;
extern const struct msc_cpu_family msc_cpu_concat;
extern const struct msc_cpu_family msc_cpu_split;
extern const struct msc_cpu_family msc_cpu_slice;
extern const struct msc_cpu_family msc_cpu_pad;
extern const struct msc_cpu_family msc_cpu_recurrent; // GRU, LSTM, … of MSC_FAMILY_REFERENCE
extern const struct msc_cpu_family msc_cpu_reference;

// cpu_quant.c: converts activations that are integers with one scale and zero point. Writes floats:
// q - zero point, or one digit (group of bits, kernels/lowering/digits.h) of this difference:
// ((q - zero point) >> shift) & mask.
void msc_cpu_expand(float out[], const void *q, enum msc_dtype dtype, int64_t n, int32_t zero_point,
                    int shift, int32_t mask);
// Converts elements first, first + 1, ... of an NHWC tensor that has one scale per channel. The
// result is q - zero point or, if `is_value`, (q - zero point) * scale. `q` points to element
// `first`.
void msc_cpu_expand_channels(float out[], const void *q, enum msc_dtype dtype, int64_t first,
                             int64_t n, const struct msc_quant *quant, bool is_value);
// out = (q - zero point) * scale
void msc_cpu_dequantize(float out[], const void *q, enum msc_dtype dtype, int64_t n,
                        const struct msc_quant *quant);
// The quantisation with the full range of u8 or i8. `scale` and `zero_point` are borrowed.
struct msc_quant msc_cpu_byte_quant(enum msc_dtype dtype, const float *scale,
                                    const int32_t *zero_point);
// sums += product * 2^shift, modulo 2^32, because a sum may exceed int32 before all digits are
// added.
void msc_cpu_add_floats(int32_t sums[], const float product[], int64_t n, int shift);
void msc_cpu_add_integers(int32_t sums[], const int32_t product[], int64_t n, int shift);
void msc_cpu_to_floats(float out[], const int32_t sums[], int64_t n);
// out = ((q ^ flip) >> shift) & mask
void msc_cpu_recode(uint8_t out[], const uint8_t q[], int64_t n, uint8_t flip, int shift,
                    uint8_t mask);

enum msc_status msc_cpu_quantize(struct msc_backend *b, const struct msc_view *in,
                                 const struct msc_view *out, const struct msc_quant *q, int thread);
// Fails unless activations can have this quantisation and be stored as `dtype`.
enum msc_status msc_cpu_check_quantized(enum msc_dtype dtype, const struct msc_quant *q);
// Quantises the n elements `x`, which are elements first, first + 1, ... of a tensor, and writes
// them to every quantised variant. The result is the same as that of msc_cpu_quantize.
void msc_cpu_write_quantized(const struct msc_quantized quantized[], int32_t n_quantized,
                             int64_t first, const float x[], int64_t n);

#endif
