// Families of joints: the part of planning that is the same for both backends.
//
// Each operator has a family. A joint belongs to its operator's family, or to MSC_FAMILY_REFERENCE
// if that family does not accept the joint. The family of a step's first joint (the anchor) decides
// which element-wise joints may follow in the step and which layouts the step uses. Each backend
// has its own kernels for the steps: a table with one row per family (kernels/cpu/cpu_families.c,
// kernels/vulkan/vk_families.c).
//
// To add a family: 1 give it a number below, 2 write its `const struct msc_family_def` in
// family_<name>.c, 3 declare it in families_internal.h and add it and its operators to the tables
// of families.c, 4 write kernels for it as kernels/cpu/cpu.h explains. A backend without kernels
// for a family leaves its steps to the fallback.
#ifndef MSC_KERNELS_LOWERING_FAMILIES_H
#define MSC_KERNELS_LOWERING_FAMILIES_H

#include "kernels/backend.h"

enum msc_family {
    MSC_FAMILY_REFERENCE, // joints that no other family accepts: one joint per step, in NCHW
    MSC_FAMILY_EWISE,     // element-wise chains, batch_norm
    MSC_FAMILY_CONV,      // convolutions, also transposed
    MSC_FAMILY_LINEAR,
    MSC_FAMILY_INTEGER, // convolutions and products on integers that the model itself quantises
    MSC_FAMILY_MATMUL,
    MSC_FAMILY_POOL,
    MSC_FAMILY_REDUCE, // reductions and global pools
    MSC_FAMILY_SOFTMAX,
    MSC_FAMILY_LAYER_NORM,
    MSC_FAMILY_GROUP_NORM, // normalisation over groups of channels or single channels
    MSC_FAMILY_RESIZE,
    MSC_FAMILY_LINEAR_QUANT, // QuantizeLinear and similar
    MSC_FAMILY_RENAME,       // reshape and similar: always an alias
    MSC_FAMILY_PERMUTE,      // transposes, and reorders between layouts
    MSC_FAMILY_DEPTH_SPACE,  // depth to space and space to depth
    MSC_FAMILY_CONCAT,
    MSC_FAMILY_SPLIT,
    MSC_FAMILY_SLICE,
    MSC_FAMILY_PAD,
    MSC_FAMILY_COUNT
};

enum msc_family msc_family_of(const struct msc_graph *g, const struct msc_joint *joint);
// The family of the step's anchor; MSC_FAMILY_PERMUTE for a reorder.
enum msc_family msc_family_of_step(const struct msc_graph *g, const struct msc_step *step);
const char *msc_family_name(enum msc_family family); // name for msc_placement.kernel

// Implement msc_backend_def.fuses and .layouts for all backends; `b` is not used.
bool msc_family_fuses(const struct msc_backend *b, const struct msc_graph *g,
                      const struct msc_joint *anchor, const struct msc_joint *joint);
void msc_family_layouts(const struct msc_backend *b, const struct msc_graph *g,
                        const struct msc_step *step, const enum msc_layout coming[],
                        struct msc_step_layouts *out);

#endif
