// Kernels of single joints that no family of kernels/lowering/ takes, and of those that have no
// faster shader: one joint to a step, elements of any type, everything NCHW but where a family takes
// other layouts.
//
// A family says in one function which shader computes the joint; what all of them share is here:
// operands that are constants on the device, some perhaps under an edit, and the dispatch.
//
//     static enum msc_status init(struct msc_vk_joint *k, struct msc_vk_backend *b,
//                                 const struct msc_vk_joint_desc *d) {
//         const uint32_t constants[] = {b->vk->tuning.lanes, 0, msc_vk_element(d->x[0].dtype)};
//         struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 1);
//         return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_SOMETHING, constants, 3);
//     }
//
//     const struct msc_vk_family msc_vk_something = {
//         .name = "something", .init = init, MSC_VK_JOINT_FUNCTIONS};
//
// A shader binds its operands (those that are absent have zeros), all outputs, the call's scratch
// memory and numbers that all calls share, in this order; its push constants begin with {n,
// per_lane}. An index read on the device that lies outside of its axis is taken for the nearest
// inside.
#ifndef MSC_KERNELS_VULKAN_VK_JOINT_H
#define MSC_KERNELS_VULKAN_VK_JOINT_H

#include "graph/reference/reference.h"
#include "kernels/vulkan/vk_kernels.h"

#define MSC_VK_JOINT_OPERANDS 9
#define MSC_VK_JOINT_OUTPUTS 3
#define MSC_VK_JOINT_PUSH 24 // words behind {n, per_lane}

// What a joint is about, for planning. Views have data where an operand is constant.
struct msc_vk_joint_desc {
    const struct msc_plan *plan;
    const struct msc_joint *joint;
    int n_x, n_y;
    struct msc_view x[MSC_VK_JOINT_OPERANDS]; // dtype MSC_DTYPE_NONE: absent
    struct msc_view y[MSC_VK_JOINT_OUTPUTS];
    struct msc_reference_call call; // the same for functions that take it; without data of inputs
};

// One dispatch of a kernel.
struct msc_vk_stage {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *numbers; // owned; NULL: the shader has none
    int n_in;                     // operands that the shader binds
    int in[MSC_VK_JOINT_OPERANDS];
    uint64_t n; // elements, or rows, of which invocations take one after the other
    uint64_t
        turns; // of loops that one takes, about; where it is by groups, that an invocation takes
    uint32_t push[MSC_VK_JOINT_PUSH];
    int n_push;
    bool is_by_groups; // n counts workgroups
};
#define MSC_VK_JOINT_STAGES 3
#define MSC_VK_JOINT_ABSENT MSC_VK_JOINT_OPERANDS // among a stage's operands: zeros

struct msc_vk_joint {
    struct msc_vk_stage stages[MSC_VK_JOINT_STAGES]; // added by the family
    int n_stages;
    uint64_t scratch_bytes; // memory of each call that all stages bind; 0: none
    int n_operands, n_outputs;
    struct msc_vk_joint_operand {
        struct msc_vk_block *constant;
        int32_t input; // of the step; MSC_NO_ID: constant or absent
    } operands[MSC_VK_JOINT_OPERANDS];
    int n_edited; // operands that weight edits replace
    int edited[MSC_STEP_MAX_WEIGHTS];
    const struct msc_array *weights[MSC_STEP_MAX_WEIGHTS];
};

// The functions of a family.
#define MSC_VK_JOINT_FUNCTIONS                                                                     \
    .prepare = msc_vk_joint_prepare, .release = msc_vk_joint_release, .run = msc_vk_joint_run,     \
    .weights = msc_vk_joint_weights, .release_weights = msc_vk_joint_release_weights
enum msc_status msc_vk_joint_prepare(void **out, struct msc_vk_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step);
void msc_vk_joint_release(void *kernel, struct msc_vk_backend *b);
enum msc_status msc_vk_joint_run(void *kernel, struct msc_vk_backend *b,
                                 const struct msc_call calls[], int n);
enum msc_status msc_vk_joint_weights(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes);
void msc_vk_joint_release_weights(void *weights, struct msc_vk_backend *b);

// "joint x: not for shaders", MSC_E_UNSUPPORTED.
enum msc_status msc_vk_joint_refuse(const struct msc_vk_joint_desc *d);
// The next stage, over n elements and the first n_in operands; 16 turns for each element.
struct msc_vk_stage *msc_vk_joint_stage(struct msc_vk_joint *k, uint64_t n, int n_in);
// Sets s->numbers.
enum msc_status msc_vk_joint_numbers(struct msc_vk_stage *s, struct msc_vk_backend *b,
                                     const void *numbers, size_t n_bytes);

// The type of elements as shaders/elements.glsl has it; MSC_VK_NO_ELEMENT for others.
#define MSC_VK_NO_ELEMENT 255u
uint32_t msc_vk_element(enum msc_dtype dtype);
// Can shaders of elements.glsl take the operands and outputs of the joint?
bool msc_vk_joint_has_elements(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d);
bool msc_vk_is_real(enum msc_dtype dtype); // float32, float16, bfloat16

// Attributes; false when there is none.
bool msc_vk_joint_i64(int64_t *out, const struct msc_vk_joint_desc *d, const char *key);
// An axis counted from the front; -1 when absent or out of range.
int msc_vk_joint_axis(const struct msc_vk_joint_desc *d, const char *key, int n_dims);

// Strides of an NCHW view, and of one that is broadcast to other dims.
void msc_vk_strides(int32_t strides[], int n_dims, const int64_t dims[]);
void msc_vk_broadcast_strides(int32_t strides[], const struct msc_view *v, int n_dims);

extern const struct msc_vk_family msc_vk_typed;  // element-wise, over any type
extern const struct msc_vk_family msc_vk_gather; // elements of any type put elsewhere
extern const struct msc_vk_family msc_vk_scatter;
extern const struct msc_vk_family msc_vk_pick;       // elements that stay by their coordinates
extern const struct msc_vk_family msc_vk_conv_plain; // convolutions of all kinds
extern const struct msc_vk_family msc_vk_pool_plain;
extern const struct msc_vk_family msc_vk_contract; // products of matrices, Einsum
extern const struct msc_vk_family msc_vk_along;    // reductions and what else goes along an axis
extern const struct msc_vk_family msc_vk_norm;
extern const struct msc_vk_family msc_vk_lrn;
extern const struct msc_vk_family msc_vk_recurrent;
extern const struct msc_vk_family msc_vk_grid_sample;
extern const struct msc_vk_family msc_vk_roi_align;
extern const struct msc_vk_family msc_vk_image; // columns put back, grids, deformable windows
extern const struct msc_vk_family msc_vk_resize_plain;
extern const struct msc_vk_family msc_vk_linear_quant; // QuantizeLinear and back
extern const struct msc_vk_family msc_vk_dynamic_quant;
extern const struct msc_vk_family msc_vk_fourier;
extern const struct msc_vk_family msc_vk_integer_conv; // of bytes
extern const struct msc_vk_family msc_vk_integer_matmul;

#endif
