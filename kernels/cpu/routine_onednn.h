// The oneDNN side of routine.h: shared by routine_onednn.c and the sources that describe a product
// to oneDNN.
//
// routine_onednn_desc.c describes a product, for all versions of oneDNN. The functions of oneDNN
// that differ between 2.x and 3.x are called by routine_onednn_desc_2.c (oneDNN 2.6 or later 2.x)
// and routine_onednn_desc_3.c (3.5 or later 3.x); a build contains one of these two files.
#ifndef MSC_KERNELS_CPU_ROUTINE_ONEDNN_H
#define MSC_KERNELS_CPU_ROUTINE_ONEDNN_H

#include "kernels/cpu/routine.h"

#include <dnnl.h>

// Fails with "oneDNN cannot <what>: <status>" unless the status is success.
enum msc_status msc_routine__check(dnnl_status_t status, const char *what);

// ---- Layouts ----------------------------------------------------------------------------------

// A dense array: dimensions and strides in elements, in oneDNN's order of axes.
struct msc_routine__layout {
    int n_dims;
    dnnl_dims_t dims, strides;
    dnnl_data_type_t type;
    bool is_any; // oneDNN chooses the layout; strides are ignored
};

// The layout of plain weights, as callers of routine.h provide them, with oneDNN's axes: [groups,]
// out, in, kernel...
struct msc_routine__layout msc_routine__weights_layout(const struct msc_gemm_desc *desc);
struct msc_routine__layout msc_routine__bias_layout(const struct msc_gemm_desc *desc);

// A convolution's window in oneDNN's terms: dilation is the gap between taps.
struct msc_routine__window {
    dnnl_dims_t strides, dilation, begin, end;
};

// Descriptions of a product's operands. `bias` is described only if the product has a bias.
struct msc_routine__operands {
    dnnl_memory_desc_t in, weights, bias, out;
};

// Describes the primitive of a product. `result` is the type of the output's elements. *out is
// owned by the caller.
enum msc_status msc_routine__primitive_desc(dnnl_primitive_desc_t *out,
                                            const struct msc_gemm_desc *desc,
                                            dnnl_data_type_t result, dnnl_engine_t engine);

// ---- Descriptions (one source for each major version) ---------------------------------------

// Levels of instruction sets, lowest first; the last row has no name.
struct msc_routine__isa {
    dnnl_cpu_isa_t isa;
    const char *name;
    struct msc_routine_isa has;
    bool is_unnamed; // users cannot set this level
};
extern const struct msc_routine__isa msc_routine__isas[];
// Members of msc_routine__isa.has that levels of both versions of oneDNN have in common.
#define MSC_ROUTINE_AVX2 .allows_avx2 = true, .uses_bytes = true, .uses_floats = true
#define MSC_ROUTINE_AVX2_VNNI .allows_avx2_vnni = true, MSC_ROUTINE_AVX2, .has_int8 = true
#define MSC_ROUTINE_AVX512 .allows_avx2 = true, .uses_bytes = true
#define MSC_ROUTINE_AVX512_VNNI .allows_avx512 = true, MSC_ROUTINE_AVX2, .has_int8 = true

// Describes memory. The caller releases *out with msc_routine__forget.
dnnl_status_t msc_routine__describe(dnnl_memory_desc_t *out, const struct msc_routine__layout *l);
void msc_routine__forget(dnnl_memory_desc_t *desc);
// *out is owned by the caller.
dnnl_status_t msc_routine__create_desc(dnnl_primitive_desc_t *out, const struct msc_gemm_desc *desc,
                                       const struct msc_routine__operands *o,
                                       const struct msc_routine__window *w,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_engine_t engine);
// Describes the reorder of plain weights with layout `l` to the layout of weights that the
// primitive described by `to` reads. *out is owned by the caller.
dnnl_status_t msc_routine__reorder_desc(dnnl_primitive_desc_t *out,
                                        const struct msc_routine__layout *l,
                                        const_dnnl_primitive_desc_t to, dnnl_engine_t engine);

// Makes a memory object with a layout, stored at `data`. *out is owned by the caller.
dnnl_status_t msc_routine__plain_memory(dnnl_memory_t *out, const struct msc_routine__layout *l,
                                        dnnl_engine_t engine, void *data);
dnnl_status_t msc_routine__append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha,
                                          float beta);
dnnl_status_t msc_routine__set_data(dnnl_memory_t memory, void *data, dnnl_stream_t stream);

#endif
