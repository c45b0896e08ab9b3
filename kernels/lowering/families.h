// Families of joints: what both backends plan in the same way before they compute.
//
// A joint belongs to a family, by its operator and by what the family takes of it; what no family
// takes is MSC_FAMILY_REFERENCE. The family says which element-wise joints may follow in a step and
// which layouts the step wants. How its steps are computed is a backend's own: each has a table of
// kernels by family (kernels/cpu/cpu_families.c, kernels/vulkan/vk_families.c).
//
// To add a family: 1 give it a number below, 2 write its `const struct msc_family_def` in a
// family_<name>.c, 3 declare it in families_internal.h and name it and its operators in the tables
// of families.c, 4 write kernels for it: kernels/cpu/cpu.h says how; a backend without any hands
// its steps to the fallback.
#ifndef MSC_KERNELS_LOWERING_FAMILIES_H
#define MSC_KERNELS_LOWERING_FAMILIES_H

#include "kernels/backend.h"

enum msc_family {
    MSC_FAMILY_REFERENCE, // everything else: one joint, everything NCHW
    MSC_FAMILY_EWISE,     // element-wise chains, batch_norm
    MSC_FAMILY_CONV,      // and transposed
    MSC_FAMILY_LINEAR,
    MSC_FAMILY_INTEGER, // both, between integers of the model's own
    MSC_FAMILY_MATMUL,
    MSC_FAMILY_POOL,
    MSC_FAMILY_REDUCE, // and global pools
    MSC_FAMILY_SOFTMAX,
    MSC_FAMILY_LAYER_NORM,
    MSC_FAMILY_GROUP_NORM, // and over single channels
    MSC_FAMILY_RESIZE,
    MSC_FAMILY_LINEAR_QUANT, // QuantizeLinear and its kin
    MSC_FAMILY_RENAME,       // reshape and its kin: always an alias
    MSC_FAMILY_PERMUTE,      // and reorders between layouts
    MSC_FAMILY_DEPTH_SPACE,  // both ways
    MSC_FAMILY_CONCAT,
    MSC_FAMILY_SPLIT,
    MSC_FAMILY_SLICE,
    MSC_FAMILY_PAD,
    MSC_FAMILY_COUNT
};

enum msc_family msc_family_of(const struct msc_graph *g, const struct msc_joint *joint);
// That of the step's anchor; a reorder's is MSC_FAMILY_PERMUTE.
enum msc_family msc_family_of_step(const struct msc_graph *g, const struct msc_step *step);
const char *msc_family_name(enum msc_family family); // as msc_placement.kernel

// What backends give as msc_backend_def.fuses and .layouts; `b` is not looked at.
bool msc_family_fuses(const struct msc_backend *b, const struct msc_graph *g,
                      const struct msc_joint *anchor, const struct msc_joint *joint);
void msc_family_layouts(const struct msc_backend *b, const struct msc_graph *g,
                        const struct msc_step *step, const enum msc_layout coming[],
                        struct msc_step_layouts *out);

#endif
