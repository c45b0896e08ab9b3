// Max and average pooling over one to three spatial axes.
#ifndef MSC_KERNELS_LOWERING_POOL_H
#define MSC_KERNELS_LOWERING_POOL_H

#include "graph/graph.h"

// One spatial axis.
struct msc_pool_axis {
    int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
};

struct msc_pool {
    bool is_max;
    bool counts_padding;
    struct msc_pool_axis axes[3]; // planes, rows, columns; missing axes come first, with length 1
};

// Describes a pooling joint. False if MSC_FAMILY_POOL does not accept it.
bool msc_pool_describe(struct msc_pool *out, const struct msc_graph *g,
                       const struct msc_joint *joint);

#endif
