// Kernels for steps of a single joint: joints that no family of kernels/lowering/ accepts or that
// have no faster shader. Elements may have any type. All tensors are NCHW unless a family accepts
// other layouts.
//
// A family has one function of its own, which chooses the shaders of a joint. The functions that
// upload constant operands, apply edits to them and dispatch the shaders are shared.
//
//     static enum msc_status init(struct msc_vk_joint *k, struct msc_vk_backend *b,
//                                 const struct msc_vk_joint_desc *d) {
//         const uint32_t constants[] = {b->vk->tuning.lanes, 0, msc_vk_element(d->x[0].dtype)};
//         const uint64_t n = (uint64_t)msc_view_n_elements(&d->y[0]);
//         struct msc_vk_stage *s = msc_vk_joint_stage(k, n, 1);
//         return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_SOMETHING, constants);
//     }
//
//     const struct msc_vk_family msc_vk_something = {
//         .name = "something", .init = init, MSC_VK_JOINT_FUNCTIONS};
//
// A shader binds, in this order, its operands (zeros for absent operands), all outputs, the call's
// scratch memory, and numbers that all calls share. Its push constants begin with {n, per_lane}.
// Indices that shaders read from tensors are clamped to their axis.
#ifndef MSC_KERNELS_VULKAN_VK_JOINT_H
#define MSC_KERNELS_VULKAN_VK_JOINT_H

#include "graph/reference/reference.h"
#include "kernels/vulkan/vk_kernels.h"

#define MSC_VK_JOINT_OPERANDS 9
#define MSC_VK_JOINT_OUTPUTS 3
#define MSC_VK_JOINT_PUSH 24 // words after {n, per_lane}

// A joint for which a kernel is prepared. Views of constant operands have data.
struct msc_vk_joint_desc {
    const struct msc_plan *plan;
    const struct msc_joint *joint;
    int n_x, n_y;
    struct msc_view x[MSC_VK_JOINT_OPERANDS]; // dtype MSC_DTYPE_NONE: absent
    struct msc_view y[MSC_VK_JOINT_OUTPUTS];
    struct msc_reference_call call; // of the joint's reference kernel; computed inputs have no data
};

// One dispatch of a kernel.
struct msc_vk_stage {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *numbers; // owned; NULL: the shader has none
    int n_in;                     // number of operands that the shader binds
    int in[MSC_VK_JOINT_OPERANDS];
    uint64_t n;     // elements or rows; each invocation computes one or more
    uint64_t turns; // approximate loop iterations per element or, if is_by_groups, per invocation
    uint32_t push[MSC_VK_JOINT_PUSH];
    int n_push;
    bool is_by_groups; // n is the number of workgroups
};
#define MSC_VK_JOINT_STAGES 3
#define MSC_VK_JOINT_ABSENT MSC_VK_JOINT_OPERANDS // as an operand of a stage, it means zeros

struct msc_vk_joint {
    struct msc_vk_stage stages[MSC_VK_JOINT_STAGES]; // added by the family
    int n_stages;
    uint64_t scratch_bytes; // temporary memory per call, bound by all stages; 0: none
    int n_operands, n_outputs;
    struct msc_vk_joint_operand {
        struct msc_vk_block *constant;
        int32_t input; // index of the step input; MSC_NO_ID: constant or absent
    } operands[MSC_VK_JOINT_OPERANDS];
    int n_edited; // number of operands that weight edits replace
    int edited[MSC_STEP_MAX_WEIGHTS];
    const struct msc_array *weights[MSC_STEP_MAX_WEIGHTS];
};

// The functions that all families of single joints share.
#define MSC_VK_JOINT_FUNCTIONS                                                                     \
    .release = msc_vk_joint_release, .run = msc_vk_joint_run, .weights = msc_vk_joint_weights,     \
    .release_weights = msc_vk_joint_release_weights
// Prepares a step of a family of single joints (family->init).
enum msc_status msc_vk_joint_prepare(void **out, struct msc_vk_backend *b,
                                     const struct msc_vk_family *family,
                                     const struct msc_plan *plan, const struct msc_step *step);
void msc_vk_joint_release(void *kernel, struct msc_vk_backend *b);
enum msc_status msc_vk_joint_run(void *kernel, struct msc_vk_backend *b,
                                 const struct msc_call calls[], int n);
enum msc_status msc_vk_joint_weights(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes);
void msc_vk_joint_release_weights(void *weights, struct msc_vk_backend *b);

// Fails with MSC_E_UNSUPPORTED: "joint x: no shader computes it".
enum msc_status msc_vk_joint_refuse(const struct msc_vk_joint_desc *d);
// Adds a stage over n elements that binds the first n_in operands. `turns` is 16 unless the family
// changes it.
struct msc_vk_stage *msc_vk_joint_stage(struct msc_vk_joint *k, uint64_t n, int n_in);
// Uploads numbers for the stage and sets s->numbers.
enum msc_status msc_vk_joint_numbers(struct msc_vk_stage *s, struct msc_vk_backend *b,
                                     const void *numbers, size_t n_bytes);

// The number of an element type in shaders/elements.glsl; MSC_VK_NO_ELEMENT if shaders do not
// support the type.
#define MSC_VK_NO_ELEMENT 255u
uint32_t msc_vk_element(enum msc_dtype dtype);
// True if shaders that use elements.glsl can read all operands and write all outputs of the joint.
bool msc_vk_joint_has_elements(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d);
bool msc_vk_is_real(enum msc_dtype dtype); // true for float32, float16, bfloat16

// Reads an integer attribute; false if the joint does not have it.
bool msc_vk_joint_i64(int64_t *out, const struct msc_vk_joint_desc *d, const char *key);
// Reads an axis attribute and counts it from the front; -1 if absent or out of range.
int msc_vk_joint_axis(const struct msc_vk_joint_desc *d, const char *key, int n_dims);

// msc_vk_strides gives the strides of contiguous NCHW dims, msc_vk_broadcast_strides those of a
// view that is broadcast to n_dims dims.
void msc_vk_strides(int32_t strides[], int n_dims, const int64_t dims[]);
void msc_vk_broadcast_strides(int32_t strides[], const struct msc_view *v, int n_dims);

extern const struct msc_vk_family msc_vk_typed;  // element-wise, any type
extern const struct msc_vk_family msc_vk_gather; // gathers and similar, any type
extern const struct msc_vk_family msc_vk_scatter;
extern const struct msc_vk_family msc_vk_pick;       // elements kept or changed depending on their
                                                     // coordinates
extern const struct msc_vk_family msc_vk_conv_plain; // convolutions of all kinds
extern const struct msc_vk_family msc_vk_pool_plain;
extern const struct msc_vk_family msc_vk_contract; // matrix products, Einsum
extern const struct msc_vk_family msc_vk_along;    // reductions and other operators along an axis
extern const struct msc_vk_family msc_vk_norm;
extern const struct msc_vk_family msc_vk_lrn;
extern const struct msc_vk_family msc_vk_recurrent;
extern const struct msc_vk_family msc_vk_grid_sample;
extern const struct msc_vk_family msc_vk_roi_align;
extern const struct msc_vk_family msc_vk_image; // col2im, affine grids, deformable convolutions
extern const struct msc_vk_family msc_vk_resize_plain;
extern const struct msc_vk_family msc_vk_linear_quant; // QuantizeLinear and DequantizeLinear
extern const struct msc_vk_family msc_vk_dynamic_quant;
extern const struct msc_vk_family msc_vk_fourier;
extern const struct msc_vk_family msc_vk_integer_conv; // convolutions and products of bytes
extern const struct msc_vk_family msc_vk_integer_matmul;

#endif
