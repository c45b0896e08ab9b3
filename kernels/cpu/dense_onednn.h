// oneDNN's side of dense.h: what dense_onednn.c and dense_onednn_desc.c share.
#ifndef MSC_KERNELS_CPU_DENSE_ONEDNN_H
#define MSC_KERNELS_CPU_DENSE_ONEDNN_H

#include "kernels/cpu/dense.h"

#include <dnnl.h>

#ifdef __cplusplus
extern "C" {
#endif

// "oneDNN cannot <what>: <status>", or MSC_OK.
enum msc_status msc_dense__check(dnnl_status_t status, const char *what);

// The layouts that callers of dense.h see: of the plain weights and of the bias.
enum msc_status msc_dense__plain_weights(dnnl_memory_desc_t *out,
                                         const struct msc_dense_desc *desc);
enum msc_status msc_dense__bias(dnnl_memory_desc_t *out, const struct msc_dense_desc *desc);
// *out is owned by the caller.
enum msc_status msc_dense__primitive_desc(dnnl_primitive_desc_t *out,
                                          const struct msc_dense_desc *desc, dnnl_engine_t engine);

#ifdef __cplusplus
}
#endif

#endif
