#include "kernels/cpu/routine_onednn.h"

#include <math.h>
#include <string.h>

enum msc_status msc_routine__check(dnnl_status_t status, const char *what) {
    switch (status) {
    case dnnl_success:
        return MSC_OK;
    case dnnl_out_of_memory:
        return MSC_FAIL(MSC_E_NOMEM, "oneDNN: not enough memory to %s", what);
    case dnnl_unimplemented:
        return MSC_FAIL(MSC_E_UNSUPPORTED, "oneDNN cannot %s: not implemented", what);
    default:
        return MSC_FAIL(MSC_E_DEVICE, "oneDNN cannot %s: status %d", what, (int)status);
    }
}

static bool is_conv(const struct msc_gemm_desc *desc) {
    return desc->kind == MSC_GEMM_CONV || desc->kind == MSC_GEMM_CONV_TRANSPOSE;
}

// Sets row-major strides.
static void set_strides(struct msc_routine__layout *l) {
    int64_t stride = 1;
    for (int i = l->n_dims - 1; i >= 0; i--) {
        l->strides[i] = stride;
        stride *= l->dims[i];
    }
}

// The layout of activations: [batch, channels, spatial...] with channels last in memory, or the
// matrices of MSC_GEMM_MATMUL.
static struct msc_routine__layout activations(const struct msc_gemm_desc *desc, int64_t channels,
                                              const int64_t spatial[], dnnl_data_type_t type) {
    struct msc_routine__layout l = {.type = type};
    l.dims[l.n_dims++] = desc->batch;
    if (desc->kind == MSC_GEMM_MATMUL) {
        l.dims[l.n_dims++] = desc->rows;
    }
    l.dims[l.n_dims++] = channels;
    int first = l.n_dims;
    for (int i = 0; is_conv(desc) && i < desc->n_spatial; i++) {
        l.dims[l.n_dims++] = spatial[i];
    }
    set_strides(&l);
    if (is_conv(desc)) { // channels last
        for (int i = first; i < l.n_dims; i++) {
            l.strides[i] *= channels;
        }
        l.strides[first - 1] = 1;
    }
    return l;
}

struct msc_routine__layout msc_routine__weights_layout(const struct msc_gemm_desc *desc) {
    struct msc_routine__layout l = {.type = desc->is_int8 ? dnnl_s8 : dnnl_f32};
    if (desc->kind == MSC_GEMM_MATMUL) {
        l.dims[l.n_dims++] = desc->batch;
        l.dims[l.n_dims++] = desc->in_channels;
        l.dims[l.n_dims++] = desc->out_channels;
        set_strides(&l);
        return l;
    }
    if (desc->groups > 1) {
        l.dims[l.n_dims++] = desc->groups;
    }
    int o = l.n_dims;
    l.dims[l.n_dims++] = desc->out_channels / desc->groups;
    l.dims[l.n_dims++] = desc->in_channels / desc->groups;
    for (int i = 0; is_conv(desc) && i < desc->n_spatial; i++) {
        l.dims[l.n_dims++] = desc->kernel[i];
    }
    set_strides(&l);
    if (desc->kind == MSC_GEMM_CONV_TRANSPOSE || desc->is_input_first) {
        // In memory, the input channels are the axis before the output channels. The other axes
        // keep their strides.
        l.strides[o] = l.strides[o + 1];
        l.strides[o + 1] = l.dims[o] * l.strides[o];
    }
    return l;
}

struct msc_routine__layout msc_routine__bias_layout(const struct msc_gemm_desc *desc) {
    return (struct msc_routine__layout){
        .n_dims = 1, .dims = {desc->out_channels}, .strides = {1}, .type = dnnl_f32};
}

// Describes the operands. `bias` is described only if the product has a bias.
static dnnl_status_t describe_operands(struct msc_routine__operands *out,
                                       const struct msc_gemm_desc *desc, dnnl_data_type_t result) {
    const struct msc_routine__layout in =
        activations(desc, desc->in_channels, desc->in, desc->is_int8 ? dnnl_u8 : dnnl_f32);
    const struct msc_routine__layout y = activations(desc, desc->out_channels, desc->out, result);
    const struct msc_routine__layout bias = msc_routine__bias_layout(desc);
    struct msc_routine__layout weights = msc_routine__weights_layout(desc);
    // A product of two activations reads both in the given layouts.
    weights.is_any = desc->kind != MSC_GEMM_MATMUL;
    dnnl_status_t status = msc_routine__describe(&out->in, &in);
    status = status == dnnl_success ? msc_routine__describe(&out->out, &y) : status;
    status = status == dnnl_success ? msc_routine__describe(&out->weights, &weights) : status;
    return status == dnnl_success && desc->bias ? msc_routine__describe(&out->bias, &bias) : status;
}

static struct msc_routine__window window_of(const struct msc_gemm_desc *desc) {
    struct msc_routine__window w = {.strides = {0}};
    for (int i = 0; i < 3; i++) {
        w.strides[i] = desc->strides[i];
        w.dilation[i] = desc->dilation[i] - 1;
        w.begin[i] = desc->pad_begin[i];
        w.end[i] = desc->pad_end[i];
    }
    return w;
}

static dnnl_status_t append_limits(dnnl_primitive_attr_t attributes,
                                   const struct msc_gemm_desc *desc) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success) {
        bool is_relu = desc->low == 0.0f && desc->high == INFINITY;
        status = is_relu
                     ? msc_routine__append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f)
                     : msc_routine__append_eltwise(ops, dnnl_eltwise_clip, desc->low, desc->high);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(attributes, ops);
    }
    dnnl_post_ops_destroy(ops);
    return status;
}

// Attributes of a primitive. The caller of the primitive provides its scratchpad. The primitive
// clips its results if the product has clip bounds. *out is owned by the caller, even if this call
// fails.
static dnnl_status_t create_attributes(dnnl_primitive_attr_t *out,
                                       const struct msc_gemm_desc *desc) {
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    }
    return status == dnnl_success && desc->has_clip ? append_limits(*out, desc) : status;
}

enum msc_status msc_routine__primitive_desc(dnnl_primitive_desc_t *out,
                                            const struct msc_gemm_desc *desc,
                                            dnnl_data_type_t result, dnnl_engine_t engine) {
    const struct msc_routine__window w = window_of(desc);
    struct msc_routine__operands o;
    dnnl_primitive_attr_t attributes = NULL;
    memset(&o, 0, sizeof(o));
    dnnl_status_t status = describe_operands(&o, desc, result);
    status = status == dnnl_success ? create_attributes(&attributes, desc) : status;
    status = status == dnnl_success
                 ? msc_routine__create_desc(out, desc, &o, &w, attributes, engine)
                 : status;
    dnnl_primitive_attr_destroy(attributes);
    msc_routine__forget(&o.in);
    msc_routine__forget(&o.weights);
    msc_routine__forget(&o.bias);
    msc_routine__forget(&o.out);
    return msc_routine__check(status, "compute this shape");
}
