// Describes convolutions, linear layers and matrix products as products (GEMM) for backends.
//
// In names, "gemm" means any such product, including convolutions. In the cpu backend, cpu_gemm*.c
// run steps whose anchor (first joint) multiplies with constant weights, cpu_matmul.c runs steps
// that multiply two activations, and routine*.c compute products of fixed shape (with oneDNN or in
// plain C). In the vulkan backend, vk_conv_gemm.c and vk_matmul.c run the steps, and vk_gemm.c
// computes the products.
//
//     struct msc_gemm_spec spec;
//     if (msc_gemm_describe(&spec, g, joint)) { ... spec.desc.out_channels ... }
#ifndef MSC_KERNELS_LOWERING_GEMM_H
#define MSC_KERNELS_LOWERING_GEMM_H

#include "graph/graph.h"
#include "kernels/plan.h"

enum msc_gemm_kind {
    MSC_GEMM_CONV,
    MSC_GEMM_CONV_TRANSPOSE,
    MSC_GEMM_LINEAR, // the input has `batch` rows
    MSC_GEMM_MATMUL, // batch products of [rows, in_channels] and [in_channels, out_channels]
};

// Activations are NHWC: [batch, spatial..., channels] or [rows, channels].
struct msc_gemm_desc {
    enum msc_gemm_kind kind;
    bool is_int8; // multiplies uint8 by int8 into int32; otherwise float32
    int n_spatial;
    int64_t batch, rows;
    int64_t groups, in_channels, out_channels; // channel counts include all groups
    int64_t in[3], out[3], kernel[3], strides[3], dilation[3], pad_begin[3], pad_end[3];
    // Only for MSC_GEMM_LINEAR: the weight is [in, out] instead of [out, in]. The weight of a
    // convolution is [out, in / groups, ...], of a transposed convolution [in, out / groups, ...].
    bool is_input_first;
    const float *bias; // [out_channels], borrowed; NULL: none; only for float32
    bool has_clip;     // clips the results after the bias to low … high; only for float32
    float low, high;
};

// Describes a joint that multiplies with a constant weight, as one product for the whole batch.
struct msc_gemm_spec {
    struct msc_gemm_desc desc; // float32, without bias and clip bounds
    int out_axis;              // weight axis of the output channels
    int channel_axis;          // output axis of the channels
    bool is_pointwise;         // each position of the batch is computed independently
};

// Describes a joint of MSC_FAMILY_CONV or MSC_FAMILY_LINEAR. False if the family does not accept
// the joint.
bool msc_gemm_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                       const struct msc_joint *joint);
bool msc_gemm_describe_conv(struct msc_gemm_spec *out, const struct msc_graph *g,
                            const struct msc_joint *joint);
bool msc_gemm_describe_linear(struct msc_gemm_spec *out, const struct msc_graph *g,
                              const struct msc_joint *joint);
// Describes the attributes and shapes of a convolution of any types. False if MSC_FAMILY_CONV does
// not support them.
bool msc_gemm_describe_window(struct msc_gemm_spec *out, const struct msc_joint *joint,
                              const struct msc_tensor *x, const struct msc_tensor *w,
                              const struct msc_tensor *y);

// True if a weight under this quantisation can be multiplied as integers when the input is
// integers. The weight must have one scale, or one per output channel.
bool msc_gemm_is_integer(const struct msc_quant *weight, int out_axis);

// True if the input is quantised per channel and the product can read such integers. Each output
// channel must sum a single input channel (depthwise).
bool msc_gemm_reads_channels(const struct msc_gemm_desc *d, const struct msc_quant *input);

// Describes a product of two activations, or of an activation and a constant on either side. *out
// describes the part that one call of a routine computes; *n_products is the number of such parts.
// False if MSC_FAMILY_MATMUL does not accept the joint.
bool msc_gemm_describe_matmul(struct msc_gemm_desc *out, int64_t *n_products,
                              const struct msc_graph *g, const struct msc_joint *joint);

// Finds clip bounds that a product can apply itself: the bounds of a relu or clip that directly
// follows the anchor and is the only consumer of its result. Returns the index of the first joint
// that is left to compute: 2, or 1 (with infinite bounds) if no such joint follows.
int32_t msc_gemm_limits(float *low, float *high, const struct msc_step *step);

#endif
