#include "graph/reference/reference_internal.h"

// The functions named in ops.def; sources have none.
#define msc_reference__none NULL
static const msc_reference_fn kernels[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = msc_reference__##kernel,
#include "graph/ops.def"
#undef MSC_OP
};
#undef msc_reference__none

msc_reference_fn msc_reference_find(enum msc_op op) {
    return kernels[op];
}
