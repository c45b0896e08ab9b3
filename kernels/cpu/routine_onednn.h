// oneDNN's side of routine.h: what routine_onednn.c and routine_onednn_desc.c share.
#ifndef MSC_KERNELS_CPU_ROUTINE_ONEDNN_H
#define MSC_KERNELS_CPU_ROUTINE_ONEDNN_H

#include "kernels/cpu/routine.h"

#include <dnnl.h>

// "oneDNN cannot <what>: <status>", or MSC_OK.
enum msc_status msc_routine__check(dnnl_status_t status, const char *what);

// The layouts that callers of routine.h see: of the plain weights and of the bias.
enum msc_status msc_routine__plain_weights(dnnl_memory_desc_t *out,
                                           const struct msc_gemm_desc *desc);
enum msc_status msc_routine__bias(dnnl_memory_desc_t *out, const struct msc_gemm_desc *desc);
// *out is owned by the caller.
enum msc_status msc_routine__primitive_desc(dnnl_primitive_desc_t *out,
                                            const struct msc_gemm_desc *desc, dnnl_engine_t engine);

#endif
