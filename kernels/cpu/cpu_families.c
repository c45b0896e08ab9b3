#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_recurrent.h"

#include "kernels/lowering/families.h"

// The kernels of each family. MSC_FAMILY_RENAME has none, because its steps are aliases.
static const struct msc_cpu_family *const families[MSC_FAMILY_COUNT] = {
    [MSC_FAMILY_EWISE] = &msc_cpu_ewise,
    [MSC_FAMILY_CONV] = &msc_cpu_conv_gemm,
    [MSC_FAMILY_LINEAR] = &msc_cpu_conv_gemm,
    [MSC_FAMILY_INTEGER] = &msc_cpu_integer,
    [MSC_FAMILY_MATMUL] = &msc_cpu_matmul,
    [MSC_FAMILY_POOL] = &msc_cpu_pool,
    [MSC_FAMILY_REDUCE] = &msc_cpu_reduce,
    [MSC_FAMILY_SOFTMAX] = &msc_cpu_softmax,
    [MSC_FAMILY_LAYER_NORM] = &msc_cpu_layer_norm,
    [MSC_FAMILY_GROUP_NORM] = &msc_cpu_group_norm,
    [MSC_FAMILY_RESIZE] = &msc_cpu_resize,
    [MSC_FAMILY_LINEAR_QUANT] = &msc_cpu_linear_quant,
    [MSC_FAMILY_PERMUTE] = &msc_cpu_permute,
    [MSC_FAMILY_DEPTH_SPACE] = &msc_cpu_depth_space,
    [MSC_FAMILY_CONCAT] = &msc_cpu_concat,
    [MSC_FAMILY_SPLIT] = &msc_cpu_split,
    [MSC_FAMILY_SLICE] = &msc_cpu_slice,
    [MSC_FAMILY_PAD] = &msc_cpu_pad,
    [MSC_FAMILY_REFERENCE] = &msc_cpu_reference,
};

const struct msc_cpu_family *msc_cpu_family_of(const struct msc_graph *g,
                                               const struct msc_step *step) {
    enum msc_family family = msc_family_of_step(g, step);
    if (family == MSC_FAMILY_REFERENCE && msc_cpu_recurrent_accepts(g, step->joints[0].joint)) {
        return &msc_cpu_recurrent;
    }
    return families[family];
}
