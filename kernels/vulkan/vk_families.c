// Finds the shader family that computes a step.
#include "kernels/lowering/families.h"
#include "kernels/vulkan/vk_joint.h"

// Shader families by family of joints (kernels/lowering/families.h).
static const struct msc_vk_family *const by_family[MSC_FAMILY_COUNT] = {
    [MSC_FAMILY_CONV] = &msc_vk_conv,
    [MSC_FAMILY_LINEAR] = &msc_vk_linear,
    [MSC_FAMILY_MATMUL] = &msc_vk_matmul,
    [MSC_FAMILY_EWISE] = &msc_vk_ewise,
    [MSC_FAMILY_PERMUTE] = &msc_vk_permute,
    [MSC_FAMILY_CONCAT] = &msc_vk_concat,
    [MSC_FAMILY_SPLIT] = &msc_vk_split,
    [MSC_FAMILY_SLICE] = &msc_vk_slice,
    [MSC_FAMILY_PAD] = &msc_vk_pad,
    [MSC_FAMILY_POOL] = &msc_vk_pool,
    [MSC_FAMILY_REDUCE] = &msc_vk_reduce,
    [MSC_FAMILY_SOFTMAX] = &msc_vk_softmax,
    [MSC_FAMILY_RESIZE] = &msc_vk_resize,
    [MSC_FAMILY_LAYER_NORM] = &msc_vk_layer_norm,
    [MSC_FAMILY_DEPTH_SPACE] = &msc_vk_depth_space,
};

// Shader families by operator: used if by_family has no entry, for example for the reference
// family.
static const struct msc_vk_family *const by_op[MSC_OP_COUNT] = {
    [MSC_OP_RNN] = &msc_vk_recurrent,
    [MSC_OP_GRU] = &msc_vk_recurrent,
    [MSC_OP_LSTM] = &msc_vk_recurrent,
    [MSC_OP_CONV1D] = &msc_vk_conv_plain,
    [MSC_OP_CONV2D] = &msc_vk_conv_plain,
    [MSC_OP_CONV3D] = &msc_vk_conv_plain,
    [MSC_OP_CONV1D_BIAS] = &msc_vk_conv_plain,
    [MSC_OP_CONV2D_BIAS] = &msc_vk_conv_plain,
    [MSC_OP_CONV3D_BIAS] = &msc_vk_conv_plain,
    [MSC_OP_CONV1D_TRANSPOSE] = &msc_vk_conv_plain,
    [MSC_OP_CONV2D_TRANSPOSE] = &msc_vk_conv_plain,
    [MSC_OP_CONV3D_TRANSPOSE] = &msc_vk_conv_plain,
    [MSC_OP_MAX_POOL1D] = &msc_vk_pool_plain,
    [MSC_OP_MAX_POOL2D] = &msc_vk_pool_plain,
    [MSC_OP_MAX_POOL3D] = &msc_vk_pool_plain,
    [MSC_OP_AVG_POOL1D] = &msc_vk_pool_plain,
    [MSC_OP_AVG_POOL2D] = &msc_vk_pool_plain,
    [MSC_OP_AVG_POOL3D] = &msc_vk_pool_plain,
    [MSC_OP_MAX_POOL_INDICES] = &msc_vk_pool_plain,
    [MSC_OP_LP_POOL] = &msc_vk_pool_plain,
    [MSC_OP_LINEAR] = &msc_vk_contract,
    [MSC_OP_LINEAR_BIAS] = &msc_vk_contract,
    [MSC_OP_MATMUL] = &msc_vk_contract,
    [MSC_OP_GEMM] = &msc_vk_contract,
    [MSC_OP_EINSUM] = &msc_vk_contract,
    [MSC_OP_INSTANCE_NORM] = &msc_vk_norm,
    [MSC_OP_GROUP_NORM] = &msc_vk_norm,
    [MSC_OP_LRN] = &msc_vk_lrn,
    [MSC_OP_SUM] = &msc_vk_along,
    [MSC_OP_MEAN] = &msc_vk_along,
    [MSC_OP_MAX] = &msc_vk_along,
    [MSC_OP_MIN] = &msc_vk_along,
    [MSC_OP_PROD] = &msc_vk_along,
    [MSC_OP_ARGMAX] = &msc_vk_along,
    [MSC_OP_ARGMIN] = &msc_vk_along,
    [MSC_OP_CUMSUM] = &msc_vk_along,
    [MSC_OP_CUMPROD] = &msc_vk_along,
    [MSC_OP_HARDMAX] = &msc_vk_along,
    [MSC_OP_SOFTMAX] = &msc_vk_along,
    [MSC_OP_LOG_SOFTMAX] = &msc_vk_along,
    [MSC_OP_TOPK] = &msc_vk_along,
    [MSC_OP_TAKE] = &msc_vk_gather,
    [MSC_OP_GATHER_ELEMENTS] = &msc_vk_gather,
    [MSC_OP_GATHER_ND] = &msc_vk_gather,
    [MSC_OP_BROADCAST_TO] = &msc_vk_gather,
    [MSC_OP_TILE] = &msc_vk_gather,
    [MSC_OP_CENTER_CROP_PAD] = &msc_vk_gather,
    [MSC_OP_PAD] = &msc_vk_gather,
    [MSC_OP_SCATTER_ELEMENTS] = &msc_vk_scatter,
    [MSC_OP_SCATTER_ND] = &msc_vk_scatter,
    [MSC_OP_MAX_UNPOOL] = &msc_vk_scatter,
    [MSC_OP_TRIL] = &msc_vk_pick,
    [MSC_OP_TRIU] = &msc_vk_pick,
    [MSC_OP_REVERSE_SEQUENCE] = &msc_vk_pick,
    [MSC_OP_ONE_HOT] = &msc_vk_pick,
    [MSC_OP_GRID_SAMPLE] = &msc_vk_grid_sample,
    [MSC_OP_ROI_ALIGN] = &msc_vk_roi_align,
    [MSC_OP_COL2IM] = &msc_vk_image,
    [MSC_OP_AFFINE_GRID] = &msc_vk_image,
    [MSC_OP_DEFORM_CONV] = &msc_vk_image,
    [MSC_OP_RESIZE] = &msc_vk_resize_plain,
    [MSC_OP_RESIZE_ANTIALIAS] = &msc_vk_resize_plain,
    [MSC_OP_DFT] = &msc_vk_fourier,
    [MSC_OP_STFT] = &msc_vk_fourier,
    [MSC_OP_QUANTIZE] = &msc_vk_linear_quant,
    [MSC_OP_DEQUANTIZE] = &msc_vk_linear_quant,
    [MSC_OP_DYNAMIC_QUANTIZE] = &msc_vk_dynamic_quant,
    [MSC_OP_CONV_INTEGER] = &msc_vk_integer_conv,
    [MSC_OP_QLINEAR_CONV] = &msc_vk_integer_conv,
    [MSC_OP_MATMUL_INTEGER] = &msc_vk_integer_matmul,
    [MSC_OP_QLINEAR_MATMUL] = &msc_vk_integer_matmul,
};

const struct msc_vk_family *msc_vk_family_of(const struct msc_graph *g,
                                             const struct msc_step *step) {
    const struct msc_vk_family *family = by_family[msc_family_of_step(g, step)];
    if (family) {
        return family;
    }
    enum msc_op op = step->joints[0].joint->op;
    return by_op[op] ? by_op[op] : &msc_vk_typed;
}
