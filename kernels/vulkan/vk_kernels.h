// The kernels of the vulkan backend: declarations shared by its files.
//
// Planning is shared with the cpu backend (kernels/lowering/families.h): steps and layouts are the
// same, so that either backend can run any step. A step runs on the device if its family has
// shaders that support it. All other steps run on the host: the inputs are downloaded, the fallback
// backend computes the step, and the outputs are uploaded.
//
// To add shaders of a family: 1 write kernels/vulkan/vk_<name>.c ending in its `const struct
// msc_vk_family`, 2 declare it below, 3 add it to a table of vk_families.c: by family or, for
// single joints (vk_joint.h), by operator, 4 add the file to kernels/vulkan/vulkan.cmake and a case
// to tests/kernels/test_cpu_<name>.c, which runs on both backends.
#ifndef MSC_KERNELS_VULKAN_VK_KERNELS_H
#define MSC_KERNELS_VULKAN_VK_KERNELS_H

#include "kernels/lowering/ewise.h"
#include "kernels/vulkan/vk.h"

// Increase it with every change to a kernel of the vulkan backend that changes a bit of some
// result.
#define MSC_VK_KERNELS_VERSION 1

struct msc_vk_backend {
    struct msc_backend base;
    struct msc_vk *vk;
    struct msc_backend *host;     // the fallback backend, for steps without a shader
    struct msc_vk_block *nothing; // bound in place of buffers that a call does not use
    // Whether the device's sums of squares have the bits of the host's; tested at the first use.
    enum { MSC_VK_SQUARES_UNKNOWN, MSC_VK_SQUARES_EXACT, MSC_VK_SQUARES_INEXACT } squares;
    char numerics[768];
};

static inline struct msc_vk_backend *msc_vk_from(const struct msc_backend *b) {
    return (struct msc_vk_backend *)b;
}

struct msc_vk_joint;
struct msc_vk_joint_desc;
typedef enum msc_status (*msc_vk_joint_init)(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                             const struct msc_vk_joint_desc *d);

// All functions except `weights` are called with the device's lock held.
struct msc_vk_gemm;
struct msc_vk_family {
    const char *name;
    // MSC_E_UNSUPPORTED: no shader supports the step, so it runs on the host. NULL for families of
    // single joints: msc_vk_joint_prepare prepares their steps.
    enum msc_status (*prepare)(void **kernel, struct msc_vk_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step);
    void (*release)(void *kernel, struct msc_vk_backend *b);
    // Runs at most MSC_VK_MAX_CALLS calls, which share their dispatches.
    enum msc_status (*run)(void *kernel, struct msc_vk_backend *b, const struct msc_call calls[],
                           int n);
    // True: `run` also accepts float32 inputs that are stored as integers. False: such inputs are
    // dequantised first.
    bool reads_integers;
    // Optional: true if the kernel can read this input as integers that have one scale per channel.
    bool (*reads_channels)(const void *kernel, int32_t input, const struct msc_quant *q);
    // True: `run` writes call->quantized if msc_vk_can_write accepts the variants. Variants that
    // `run` does not write are made from the output after the run.
    bool writes_quantized;
    // Optional: packs weights.
    enum msc_status (*weights)(void *kernel, struct msc_vk_backend *b,
                               const struct msc_edit *const edits[], void **out, size_t *n_bytes);
    void (*release_weights)(void *weights, struct msc_vk_backend *b);
    // Optional: the product of the kernel, whose tiles are the variants of the step.
    struct msc_vk_gemm *(*gemm)(void *kernel);
    // For families of single joints (vk_joint.h).
    msc_vk_joint_init init;
    bool takes_layouts; // `init` also supports layouts other than NCHW
};

// The shader family for a step; its shaders may still not support the step.
const struct msc_vk_family *msc_vk_family_of(const struct msc_graph *g,
                                             const struct msc_step *step);

extern const struct msc_vk_family msc_vk_conv;
extern const struct msc_vk_family msc_vk_linear;
extern const struct msc_vk_family msc_vk_matmul;
extern const struct msc_vk_family msc_vk_ewise;
extern const struct msc_vk_family msc_vk_permute; // transposes, and reorders between layouts
extern const struct msc_vk_family msc_vk_depth_space;
extern const struct msc_vk_family msc_vk_concat;
extern const struct msc_vk_family msc_vk_split;
extern const struct msc_vk_family msc_vk_slice;
extern const struct msc_vk_family msc_vk_pad;
extern const struct msc_vk_family msc_vk_pool;
extern const struct msc_vk_family msc_vk_reduce; // reductions and global pools
extern const struct msc_vk_family msc_vk_softmax;
extern const struct msc_vk_family msc_vk_layer_norm;
extern const struct msc_vk_family msc_vk_resize;

static inline struct msc_vk_block *msc_vk_block_of(const struct msc_view *v) {
    return (struct msc_vk_block *)v->data;
}

// True if shaders can address a block of this size.
static inline bool msc_vk_fits(const struct msc_vk_backend *b, int64_t n_bytes) {
    return (uint64_t)n_bytes <= b->vk->block_limit;
}

// Allocates temporary memory, one block for each of n calls. The memory may be freed as soon as its
// last use is recorded. MSC_E_NOMEM: not enough memory; all blocks are then NULL.
enum msc_status msc_vk_take(struct msc_vk_block *out[], struct msc_vk_backend *b, int n,
                            uint64_t n_bytes);
void msc_vk_give(struct msc_vk_block *blocks[], struct msc_vk_backend *b, int n); // accepts NULLs

// Returns the number of workgroups of a kernel over n elements. *per_lane is the number of elements
// that each invocation computes; it is smaller if an element takes many loop iterations (`turns`).
uint32_t msc_vk_spread(const struct msc_vk *vk, uint64_t n, uint64_t turns, uint32_t *per_lane);
// True if an invocation may take this many loop iterations. A loop of n iterations counts as n + 1,
// because its condition is checked once more. The iterations of an inner loop count in every
// iteration of the outer loop.
bool msc_vk_can_turn(const struct msc_vk *vk, uint64_t turns);
// True if an invocation may take `turns` loop iterations for each of the elements that
// msc_vk_spread gives it.
bool msc_vk_can_spread(const struct msc_vk *vk, uint64_t n, uint64_t turns);

// A kernel that reads one input and writes output 0. All calls share `numbers`, which may be NULL.
struct msc_vk_simple {
    const struct msc_vk_pipeline *pipeline;
    int32_t input;
    const struct msc_vk_block *numbers;
    const void *push;
    uint32_t push_bytes;
    uint32_t groups; // workgroups per call
    double turns;    // approximate loop iterations over all invocations
};
enum msc_status msc_vk_simple_run(const struct msc_vk_simple *s, struct msc_vk_backend *b,
                                  const struct msc_call calls[], int n);

// ---- vk_quantize.c ----------------------------------------------------------------------------

// The maximum number of quantised variants that one shader writes, and the number of words of a row
// that describe them (shaders/forms.glsl).
#define MSC_VK_MAX_QUANTIZED 4
#define MSC_VK_QUANTIZED_WORDS (1 + 6 * MSC_VK_MAX_QUANTIZED)

// True if a shader can write these variants together with its output. It cannot if there are too
// many variants or if they are too far apart in memory.
bool msc_vk_can_write(const struct msc_quantized quantized[], int32_t n);
// Sets c->quantized (a block that covers all variants) and the words of `row` that describe the
// variants.
void msc_vk_put_quantized(struct msc_vk_call *c, uint32_t row[],
                          const struct msc_quantized quantized[], int32_t n);

// How a shader reads stored bytes (shaders/bytes.glsl).
struct msc_vk_bytes {
    bool is_signed;
    int32_t zero, shift, mask;
    float factor;
};
#define MSC_VK_BYTES_WORDS 5

// The next three functions describe how a shader reads bytes: as integers, as one digit of the
// integers (some of their bits, kernels/lowering/digits.h), or as the numbers that they represent.
struct msc_vk_bytes msc_vk_bytes_integer(const struct msc_view *in);
struct msc_vk_bytes msc_vk_bytes_digit(const struct msc_view *in, int shift, int32_t mask);
struct msc_vk_bytes msc_vk_bytes_value(const struct msc_view *in);
void msc_vk_put_bytes(uint32_t row[], const struct msc_vk_bytes *bytes);

// A tensor to convert. A call converts at most MSC_VK_MAX_CALLS tensors of n_elements each.
struct msc_vk_quantizing {
    const struct msc_vk_block *in;
    struct msc_quantized out;
};
enum msc_status msc_vk_quantize(struct msc_vk_backend *b, const struct msc_vk_quantizing items[],
                                int n, uint64_t n_elements);
// Makes the quantised variants of the results of n calls.
enum msc_status msc_vk_quantize_results(struct msc_vk_backend *b, const struct msc_call calls[],
                                        const struct msc_vk_block *const results[], int n,
                                        uint64_t n_elements);

struct msc_vk_expanding {
    const struct msc_vk_block *in, *out;
    struct msc_vk_bytes bytes;
};
enum msc_status msc_vk_expand(struct msc_vk_backend *b, const struct msc_vk_expanding items[],
                              int n, uint64_t n_elements);

// Converts one input of n calls to floats. made[i] is the new block if the input of call i is
// stored as integers, otherwise NULL. The caller frees `made` (msc_vk_give), also on failure.
enum msc_status msc_vk_expand_input(struct msc_vk_block *made[], struct msc_vk_backend *b,
                                    const struct msc_call calls[], int n, int32_t input);

// How a bias is added: to the float result, or to the integer sum before scaling
// (kernels/backend.h).
enum msc_vk_bias {
    MSC_VK_NO_BIAS,
    MSC_VK_FLOAT_BIAS,
    MSC_VK_INTEGER_BIAS,
};

// The int32 sums of one call. Integers are split into digits (kernels/lowering/digits.h); `product`
// holds the product of one digit, `sums` the sum over all digits. `tail` holds scales and biases
// per channel, laid out as in shaders/conv.glsl. It is NULL if all channels use `scale` and there
// is no bias. Either all items of a call have a tail or none has.
struct msc_vk_summing {
    const struct msc_vk_block *product, *sums, *tail;
    float scale;
};
// sums += product * 2^shift; if is_first, sums = product * 2^shift.
enum msc_status msc_vk_add_digits(struct msc_vk_backend *b, const struct msc_vk_summing items[],
                                  int n, uint64_t n_elements, int shift, bool is_first);
// Writes the scaled sums, with the bias, to `product`.
enum msc_status msc_vk_finish_sums(struct msc_vk_backend *b, const struct msc_vk_summing items[],
                                   int n, uint64_t n_elements, int64_t channels,
                                   enum msc_vk_bias bias);

// ---- vk_channels.c ----------------------------------------------------------------------------

// Implements msc_backend_def.quantize for one scale per channel.
enum msc_status msc_vk_quantize_channels(struct msc_vk_backend *b, const struct msc_view *in,
                                         const struct msc_view *out, const struct msc_quant *q);
// Converts bytes that have one scale per channel to float32. If is_value, the results are the
// numbers that the bytes represent; otherwise they are q - zero point.
enum msc_status msc_vk_expand_channels(struct msc_vk_backend *b, const struct msc_view *in,
                                       struct msc_vk_block *out, bool is_value);

// ---- vk_compare.c -----------------------------------------------------------------------------

// Implement msc_backend_def.compares and msc_backend_def.compare.
bool msc_vk_compares(struct msc_vk_backend *b, const struct msc_view *z, int64_t n);
enum msc_status msc_vk_compare(struct msc_vk_backend *b, const struct msc_comparison items[],
                               size_t n);

// ---- vk_linear_quant.c ------------------------------------------------------------------------

// Implements msc_backend_def.range.
enum msc_status msc_vk_range(float *least, float *greatest, struct msc_vk_backend *b,
                             const struct msc_view *in);

// ---- vk_mask.c --------------------------------------------------------------------------------

// Implements msc_backend_def.mask.
enum msc_status msc_vk_mask(struct msc_vk_backend *b, const struct msc_view *in,
                            const struct msc_view *out, const struct msc_channel_mask *mask);

// ---- vk_ewise.c -------------------------------------------------------------------------------

struct msc_vk_program;

// Makes an element-wise program for the device. *out is NULL if there is nothing to compute.
// MSC_E_UNSUPPORTED: the program is too long, or the shader does not have one of its instructions.
enum msc_status msc_vk_program_create(struct msc_vk_program **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step,
                                      const struct msc_ewise_options *options);
void msc_vk_program_destroy(struct msc_vk_program *p, struct msc_vk_backend *b); // accepts NULL
// Runs a program for n calls; does nothing if p is NULL. anchors[i] is, for call i, the result of
// the step's first joint, which precedes the program; `anchors` is NULL if the program is the whole
// step.
enum msc_status msc_vk_program_run(const struct msc_vk_program *p, struct msc_vk_backend *b,
                                   const struct msc_call calls[],
                                   const struct msc_vk_block *const anchors[], int n);

#endif
