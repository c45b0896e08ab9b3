// Internal header of families.c and family_*.c: the definition of a family of joints.
#ifndef MSC_KERNELS_LOWERING_FAMILIES_INTERNAL_H
#define MSC_KERNELS_LOWERING_FAMILIES_INTERNAL_H

#include "kernels/lowering/families.h"
#include "kernels/lowering/lowering.h"

struct msc_family_def {
    const char *name;
    // True if this joint can be the anchor (first joint) of a step.
    bool (*accepts)(const struct msc_graph *g, const struct msc_joint *joint);
    bool has_followers; // element-wise joints may follow the anchor
    // Optional: see msc_backend_def.layouts. The caller sets all layouts of *out to NCHW first.
    void (*layouts)(const struct msc_graph *g, const struct msc_step *step,
                    const enum msc_layout coming[], struct msc_step_layouts *out);
};

extern const struct msc_family_def msc_family__ewise;
extern const struct msc_family_def msc_family__conv;
extern const struct msc_family_def msc_family__linear;
extern const struct msc_family_def msc_family__integer;
extern const struct msc_family_def msc_family__matmul;
extern const struct msc_family_def msc_family__pool;
extern const struct msc_family_def msc_family__reduce;
extern const struct msc_family_def msc_family__softmax;
extern const struct msc_family_def msc_family__layer_norm;
extern const struct msc_family_def msc_family__group_norm;
extern const struct msc_family_def msc_family__resize;
extern const struct msc_family_def msc_family__linear_quant;
extern const struct msc_family_def msc_family__rename;
extern const struct msc_family_def msc_family__permute;
extern const struct msc_family_def msc_family__depth_space;
extern const struct msc_family_def msc_family__concat;
extern const struct msc_family_def msc_family__split;
extern const struct msc_family_def msc_family__slice;
extern const struct msc_family_def msc_family__pad;

// Sets the layouts of a convolution step: NHWC.
void msc_family__conv_layouts(const struct msc_graph *g, const struct msc_step *step,
                              const enum msc_layout coming[], struct msc_step_layouts *out);

#endif
