#include "kernels/cpu/routine_onednn.h"

#include <math.h>
#include <string.h>

enum msc_status msc_routine__check(dnnl_status_t status, const char *what) {
    switch (status) {
    case dnnl_success:
        return MSC_OK;
    case dnnl_out_of_memory:
        return MSC_FAIL(MSC_E_NOMEM, "oneDNN: out of memory to %s", what);
    case dnnl_unimplemented:
        return MSC_FAIL(MSC_E_UNSUPPORTED, "oneDNN: no way to %s", what);
    default:
        return MSC_FAIL(MSC_E_DEVICE, "oneDNN: cannot %s (status %d)", what, (int)status);
    }
}

static bool is_conv(const struct msc_gemm_desc *desc) {
    return desc->kind == MSC_GEMM_CONV || desc->kind == MSC_GEMM_CONV_TRANSPOSE;
}

// [batch, channels, spatial...] with channels last in memory.
static enum msc_status activations(dnnl_memory_desc_t *out, const struct msc_gemm_desc *desc,
                                   bool is_out) {
    static const dnnl_format_tag_t tags[] = {dnnl_ab, dnnl_acb, dnnl_acdb, dnnl_acdeb};
    dnnl_data_type_t type = dnnl_f32;
    if (desc->is_int8) {
        type = is_out ? dnnl_s32 : dnnl_u8;
    }
    int n = is_conv(desc) ? desc->n_spatial : 0;
    dnnl_dims_t dims = {desc->batch, is_out ? desc->out_channels : desc->in_channels};
    for (int i = 0; i < n; i++) {
        dims[2 + i] = is_out ? desc->out[i] : desc->in[i];
    }
    if (desc->kind != MSC_GEMM_MATMUL) {
        return msc_routine__check(dnnl_memory_desc_init_by_tag(out, 2 + n, dims, type, tags[n]),
                                  "describe activations");
    }
    dims[1] = desc->rows;
    dims[2] = is_out ? desc->out_channels : desc->in_channels;
    return msc_routine__check(dnnl_memory_desc_init_by_tag(out, 3, dims, type, dnnl_abc),
                              "describe a matrix");
}

// [groups,] out, in, kernel...
static int weight_dims(dnnl_dims_t dims, const struct msc_gemm_desc *desc) {
    int n = 0;
    if (desc->kind == MSC_GEMM_MATMUL) {
        dims[n++] = desc->batch;
        dims[n++] = desc->in_channels;
        dims[n++] = desc->out_channels;
        return n;
    }
    if (desc->groups > 1) {
        dims[n++] = desc->groups;
    }
    dims[n++] = desc->out_channels / desc->groups;
    dims[n++] = desc->in_channels / desc->groups;
    for (int i = 0; is_conv(desc) && i < desc->n_spatial; i++) {
        dims[n++] = desc->kernel[i];
    }
    return n;
}

enum msc_status msc_routine__plain_weights(dnnl_memory_desc_t *out,
                                           const struct msc_gemm_desc *desc) {
    dnnl_dims_t dims, strides;
    int n = weight_dims(dims, desc);
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
    if (desc->kind == MSC_GEMM_CONV_TRANSPOSE || desc->is_input_first) {
        // In memory `in` comes before `out`; what is inside and outside the two stays.
        int o = desc->groups > 1 ? 1 : 0;
        strides[o] = strides[o + 1];
        strides[o + 1] = dims[o] * strides[o];
    }
    return msc_routine__check(
        dnnl_memory_desc_init_by_strides(out, n, dims, desc->is_int8 ? dnnl_s8 : dnnl_f32, strides),
        "describe weights");
}

static enum msc_status any_weights(dnnl_memory_desc_t *out, const struct msc_gemm_desc *desc) {
    dnnl_dims_t dims;
    int n = weight_dims(dims, desc);
    dnnl_format_tag_t tag = desc->kind == MSC_GEMM_MATMUL ? dnnl_abc : dnnl_format_tag_any;
    return msc_routine__check(
        dnnl_memory_desc_init_by_tag(out, n, dims, desc->is_int8 ? dnnl_s8 : dnnl_f32, tag),
        "describe weights");
}

enum msc_status msc_routine__bias(dnnl_memory_desc_t *out, const struct msc_gemm_desc *desc) {
    return msc_routine__check(
        dnnl_memory_desc_init_by_tag(out, 1, (dnnl_dims_t){desc->out_channels}, dnnl_f32, dnnl_a),
        "describe a bias");
}

union op_desc {
    dnnl_convolution_desc_t conv;
    dnnl_deconvolution_desc_t transposed;
    dnnl_inner_product_desc_t linear;
    dnnl_matmul_desc_t matmul;
};

// Only the direct algorithm: Winograd's transform would round integers.
static dnnl_status_t init_op(union op_desc *op, const struct msc_gemm_desc *desc,
                             const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *w,
                             const dnnl_memory_desc_t *bias, const dnnl_memory_desc_t *out) {
    // oneDNN counts the gaps between taps.
    dnnl_dims_t strides = {0}, dilation = {0}, begin = {0}, end = {0};
    for (int i = 0; i < 3; i++) {
        strides[i] = desc->strides[i];
        dilation[i] = desc->dilation[i] - 1;
        begin[i] = desc->pad_begin[i];
        end[i] = desc->pad_end[i];
    }
    switch (desc->kind) {
    case MSC_GEMM_CONV:
        return dnnl_dilated_convolution_forward_desc_init(&op->conv, dnnl_forward_inference,
                                                          dnnl_convolution_direct, a, w, bias, out,
                                                          strides, dilation, begin, end);
    case MSC_GEMM_CONV_TRANSPOSE:
        return dnnl_dilated_deconvolution_forward_desc_init(&op->transposed, dnnl_forward_inference,
                                                            dnnl_deconvolution_direct, a, w, bias,
                                                            out, strides, dilation, begin, end);
    case MSC_GEMM_LINEAR:
        return dnnl_inner_product_forward_desc_init(&op->linear, dnnl_forward_inference, a, w, bias,
                                                    out);
    case MSC_GEMM_MATMUL:
        return dnnl_matmul_desc_init(&op->matmul, a, w, NULL, out);
    }
    return dnnl_invalid_arguments;
}

static dnnl_status_t init_attributes(dnnl_primitive_attr_t *out, const struct msc_gemm_desc *desc) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status != dnnl_success) {
        return status;
    }
    status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || !desc->has_clip) {
        return status;
    }
    status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success) {
        bool is_relu = desc->low == 0.0f && desc->high == INFINITY;
        status = is_relu ? dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f)
                         : dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_clip, desc->low,
                                                        desc->high);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(*out, ops);
    }
    dnnl_post_ops_destroy(ops);
    return status;
}

enum msc_status msc_routine__primitive_desc(dnnl_primitive_desc_t *out,
                                            const struct msc_gemm_desc *desc,
                                            dnnl_engine_t engine) {
    dnnl_memory_desc_t a, w, bias, result;
    union op_desc op;
    dnnl_primitive_attr_t attributes = NULL;
    MSC_TRY(activations(&a, desc, false));
    MSC_TRY(activations(&result, desc, true));
    MSC_TRY(any_weights(&w, desc));
    MSC_TRY(msc_routine__bias(&bias, desc));
    MSC_TRY(msc_routine__check(init_op(&op, desc, &a, &w, desc->bias ? &bias : NULL, &result),
                               "describe this shape"));
    dnnl_status_t status = init_attributes(&attributes, desc);
    if (status == dnnl_success) {
        status = dnnl_primitive_desc_create(out, &op, attributes, engine, NULL);
    }
    dnnl_primitive_attr_destroy(attributes);
    return msc_routine__check(status, "compute this shape");
}
