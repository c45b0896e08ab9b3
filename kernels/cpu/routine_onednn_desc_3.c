// oneDNN 3.x: descriptions of memory are objects, and one call describes a primitive.
#include "kernels/cpu/routine_onednn.h"

#if DNNL_VERSION_MAJOR != 3 || DNNL_VERSION_MINOR < 5
#error "routine_onednn_desc_3.c is for oneDNN 3.5 and later 3.x"
#endif

const struct msc_routine__isa msc_routine__isas[] = {
    {.isa = dnnl_cpu_isa_sse41, .name = "sse41"},
    {.isa = dnnl_cpu_isa_avx, .name = "avx"},
    {.isa = dnnl_cpu_isa_avx2, .name = "avx2", .has = {MSC_ROUTINE_AVX2}},
    {.isa = dnnl_cpu_isa_avx2_vnni, .name = "avx2_vnni", .has = {MSC_ROUTINE_AVX2_VNNI}},
    {.isa = dnnl_cpu_isa_avx2_vnni_2, .name = "avx2_vnni_2", .has = {MSC_ROUTINE_AVX2_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core, .name = "avx512_core", .has = {MSC_ROUTINE_AVX512}},
    {.isa = dnnl_cpu_isa_avx512_core_vnni,
     .name = "avx512_core_vnni",
     .has = {MSC_ROUTINE_AVX512_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core_bf16,
     .name = "avx512_core_bf16",
     .has = {MSC_ROUTINE_AVX512_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core_fp16,
     .name = "avx512_core_fp16",
     .has = {MSC_ROUTINE_AVX512_VNNI}},
    {.isa = dnnl_cpu_isa_avx512_core_amx,
     .name = "avx512_core_amx",
     .has = {MSC_ROUTINE_AVX512_VNNI, .has_tiles = true}},
    {.isa = dnnl_cpu_isa_avx512_core_amx_fp16,
     .name = "avx512_core_amx_fp16",
     .has = {MSC_ROUTINE_AVX512_VNNI, .has_tiles = true}},
    {.name = NULL},
};

dnnl_status_t msc_routine__describe(dnnl_memory_desc_t *out, const struct msc_routine__layout *l) {
    return l->is_any
               ? dnnl_memory_desc_create_with_tag(out, l->n_dims, l->dims, l->type,
                                                  dnnl_format_tag_any)
               : dnnl_memory_desc_create_with_strides(out, l->n_dims, l->dims, l->type, l->strides);
}

void msc_routine__forget(dnnl_memory_desc_t *desc) {
    dnnl_memory_desc_destroy(*desc);
    *desc = NULL;
}

// Uses only the direct algorithm, because Winograd's transform would round integers.
dnnl_status_t msc_routine__create_desc(dnnl_primitive_desc_t *out, const struct msc_gemm_desc *desc,
                                       const struct msc_routine__operands *o,
                                       const struct msc_routine__window *w,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_engine_t engine) {
    switch (desc->kind) {
    case MSC_GEMM_CONV:
        return dnnl_convolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_inference, dnnl_convolution_direct, o->in, o->weights,
            o->bias, o->out, w->strides, w->dilation, w->begin, w->end, attributes);
    case MSC_GEMM_CONV_TRANSPOSE:
        return dnnl_deconvolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_inference, dnnl_deconvolution_direct, o->in, o->weights,
            o->bias, o->out, w->strides, w->dilation, w->begin, w->end, attributes);
    case MSC_GEMM_LINEAR:
        return dnnl_inner_product_forward_primitive_desc_create(
            out, engine, dnnl_forward_inference, o->in, o->weights, o->bias, o->out, attributes);
    case MSC_GEMM_MATMUL:
        return dnnl_matmul_primitive_desc_create(out, engine, o->in, o->weights, NULL, o->out,
                                                 attributes);
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t msc_routine__reorder_desc(dnnl_primitive_desc_t *out,
                                        const struct msc_routine__layout *l,
                                        const_dnnl_primitive_desc_t to, dnnl_engine_t engine) {
    dnnl_memory_desc_t from = NULL;
    dnnl_status_t status = msc_routine__describe(&from, l);
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(
            out, from, engine, dnnl_primitive_desc_query_md(to, dnnl_query_weights_md, 0), engine,
            NULL);
    }
    msc_routine__forget(&from);
    return status;
}

dnnl_status_t msc_routine__plain_memory(dnnl_memory_t *out, const struct msc_routine__layout *l,
                                        dnnl_engine_t engine, void *data) {
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status = msc_routine__describe(&md, l);
    if (status == dnnl_success) {
        status = dnnl_memory_create(out, md, engine, data);
    }
    msc_routine__forget(&md);
    return status;
}

dnnl_status_t msc_routine__append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha,
                                          float beta) {
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, beta);
}

dnnl_status_t msc_routine__set_data(dnnl_memory_t memory, void *data, dnnl_stream_t stream) {
    (void)stream;
    return dnnl_memory_set_data_handle(memory, data);
}
