// Convolutions, linear layers and matrix products described as products: what a backend packs and
// multiplies.
//
// "gemm" are such products in all names, convolutions among them (conv/GEMM). Of the cpu backend,
// cpu_gemm*.c run steps whose anchor multiplies with constant weights, cpu_matmul.c those of two
// activations, and routine*.c are the library's (oneDNN's, or plain ones) for one fixed shape; of
// the vulkan backend, vk_conv_gemm.c and vk_matmul.c run the steps, and vk_gemm.c is the product.
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
    MSC_GEMM_LINEAR, // batch rows
    MSC_GEMM_MATMUL, // batch products of [rows, in_channels] and [in_channels, out_channels]
};

// Activations lie in NHWC, [batch, spatial..., channels] or [rows, channels].
struct msc_gemm_desc {
    enum msc_gemm_kind kind;
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

// What there is to know about a joint that multiplies with a constant weight: its whole batch as
// one product.
struct msc_gemm_spec {
    struct msc_gemm_desc desc; // float32, without bias and limits
    int out_axis;              // of the weight: output channels
    int channel_axis;          // of the output
    bool is_pointwise;         // every position of the batch is computed by itself
};

// Of a joint of MSC_FAMILY_CONV or MSC_FAMILY_LINEAR. False when they do not take it.
bool msc_gemm_describe(struct msc_gemm_spec *out, const struct msc_graph *g,
                       const struct msc_joint *joint);
bool msc_gemm_describe_conv(struct msc_gemm_spec *out, const struct msc_graph *g,
                            const struct msc_joint *joint);
bool msc_gemm_describe_linear(struct msc_gemm_spec *out, const struct msc_graph *g,
                              const struct msc_joint *joint);
// What a convolution's attributes and shapes say, whatever its types. False: as above.
bool msc_gemm_describe_window(struct msc_gemm_spec *out, const struct msc_joint *joint,
                              const struct msc_tensor *x, const struct msc_tensor *w,
                              const struct msc_tensor *y);

// Is a weight under this quantisation multiplied as integers, where the input comes as such? It has
// one scale, or one for each output channel.
bool msc_gemm_is_integer(const struct msc_quant *weight, int out_axis);

// Does each output channel sum up elements of one input channel (depthwise), of which there are as
// many as scales of this input? Then it may come under a quantisation by channel.
bool msc_gemm_reads_channels(const struct msc_gemm_desc *d, const struct msc_quant *input);

// A product of two activations, or of one with a constant on either side, and how many products
// there are that one routine cannot take together. False when MSC_FAMILY_MATMUL does not take it.
bool msc_gemm_describe_matmul(struct msc_gemm_desc *out, int64_t *n_products,
                              const struct msc_graph *g, const struct msc_joint *joint);

// A relu or clip right behind the anchor is done together with it when nobody else reads the
// anchor's result. Returns the first joint that is not: 2, or 1 with infinite limits.
int32_t msc_gemm_limits(float *low, float *high, const struct msc_step *step);

#endif
