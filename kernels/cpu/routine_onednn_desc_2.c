// oneDNN 2.x: descriptions of memory are plain structs, and an operation is described before its
// primitive.
#include "kernels/cpu/routine_onednn.h"

#if DNNL_VERSION_MAJOR != 2
#error "routine_onednn_desc_2.c is for oneDNN 2.x"
#endif

const struct msc_routine__isa msc_routine__isas[] = {
    {.isa = dnnl_cpu_isa_sse41, .name = "sse41"},
    {.isa = dnnl_cpu_isa_avx, .name = "avx"},
    {.isa = dnnl_cpu_isa_avx2, .name = "avx2", .has = {MSC_ROUTINE_AVX2}},
    {.isa = dnnl_cpu_isa_avx2_vnni, .name = "avx2_vnni", .has = {MSC_ROUTINE_AVX2_VNNI}},
    // Xeon Phi
    {.isa = dnnl_cpu_isa_avx512_mic, .name = "avx512_mic", .is_unnamed = true},
    {.isa = dnnl_cpu_isa_avx512_mic_4ops, .name = "avx512_mic_4ops", .is_unnamed = true},
    {.isa = dnnl_cpu_isa_avx512_core, .name = "avx512_core", .has = {MSC_ROUTINE_AVX512}},
    {.isa = dnnl_cpu_isa_avx512_core_vnni,
     .name = "avx512_core_vnni",
     .has = {MSC_ROUTINE_AVX512_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core_bf16,
     .name = "avx512_core_bf16",
     .has = {MSC_ROUTINE_AVX512_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core_amx,
     .name = "avx512_core_amx",
     .has = {MSC_ROUTINE_AVX512_VNNI, .has_tiles = true}},
    {.name = NULL},
};

dnnl_status_t msc_routine__describe(dnnl_memory_desc_t *out, const struct msc_routine__layout *l) {
    return l->is_any
               ? dnnl_memory_desc_init_by_tag(out, l->n_dims, l->dims, l->type, dnnl_format_tag_any)
               : dnnl_memory_desc_init_by_strides(out, l->n_dims, l->dims, l->type, l->strides);
}

// A plain struct owns nothing.
void msc_routine__forget(dnnl_memory_desc_t *desc) {
    (void)desc;
}

union op_desc {
    dnnl_convolution_desc_t conv;
    dnnl_deconvolution_desc_t transposed;
    dnnl_inner_product_desc_t linear;
    dnnl_matmul_desc_t matmul;
};

// Uses only the direct algorithm, because Winograd's transform would round integers.
static dnnl_status_t init_op(union op_desc *op, const struct msc_gemm_desc *desc,
                             const struct msc_routine__operands *o,
                             const struct msc_routine__window *w) {
    const dnnl_memory_desc_t *bias = desc->bias ? &o->bias : NULL;
    switch (desc->kind) {
    case MSC_GEMM_CONV:
        return dnnl_dilated_convolution_forward_desc_init(
            &op->conv, dnnl_forward_inference, dnnl_convolution_direct, &o->in, &o->weights, bias,
            &o->out, w->strides, w->dilation, w->begin, w->end);
    case MSC_GEMM_CONV_TRANSPOSE:
        return dnnl_dilated_deconvolution_forward_desc_init(
            &op->transposed, dnnl_forward_inference, dnnl_deconvolution_direct, &o->in, &o->weights,
            bias, &o->out, w->strides, w->dilation, w->begin, w->end);
    case MSC_GEMM_LINEAR:
        return dnnl_inner_product_forward_desc_init(&op->linear, dnnl_forward_inference, &o->in,
                                                    &o->weights, bias, &o->out);
    case MSC_GEMM_MATMUL:
        return dnnl_matmul_desc_init(&op->matmul, &o->in, &o->weights, NULL, &o->out);
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t msc_routine__create_desc(dnnl_primitive_desc_t *out, const struct msc_gemm_desc *desc,
                                       const struct msc_routine__operands *o,
                                       const struct msc_routine__window *w,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_engine_t engine) {
    union op_desc op;
    dnnl_status_t status = init_op(&op, desc, o, w);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attributes, engine, NULL)
                                  : status;
}

dnnl_status_t msc_routine__reorder_desc(dnnl_primitive_desc_t *out,
                                        const struct msc_routine__layout *l,
                                        const_dnnl_primitive_desc_t to, dnnl_engine_t engine) {
    dnnl_memory_desc_t from;
    dnnl_status_t status = msc_routine__describe(&from, l);
    return status == dnnl_success
               ? dnnl_reorder_primitive_desc_create(
                     out, &from, engine, dnnl_primitive_desc_query_md(to, dnnl_query_weights_md, 0),
                     engine, NULL)
               : status;
}

dnnl_status_t msc_routine__plain_memory(dnnl_memory_t *out, const struct msc_routine__layout *l,
                                        dnnl_engine_t engine, void *data) {
    dnnl_memory_desc_t md;
    dnnl_status_t status = msc_routine__describe(&md, l);
    return status == dnnl_success ? dnnl_memory_create(out, &md, engine, data) : status;
}

dnnl_status_t msc_routine__append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha,
                                          float beta) {
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, alpha, beta);
}

dnnl_status_t msc_routine__set_data(dnnl_memory_t memory, void *data, dnnl_stream_t stream) {
    return dnnl_memory_set_data_handle_v2(memory, data, stream);
}
