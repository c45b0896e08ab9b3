// Internal to tools/: shared by the sources of tools/equalizer.h.
#ifndef MSC_TOOLS_EQUALIZER_INTERNAL_H
#define MSC_TOOLS_EQUALIZER_INTERNAL_H

#include "base/alloc.h"
#include "graph/site.h"
#include "tools/equalizer.h"

// A joint that sums over the channels.
struct msc_channel_reader {
    int32_t weight; // tensor id
    int32_t bias;   // tensor id; MSC_NO_ID: the joint cannot add a shift
    int32_t slot;   // of the activation that it reads
    int axis;       // of the channels in that activation
    // Columns of the weight, in its order of elements: [rows, columns], or [columns, rows] if
    // is_input_first. Row `row` reads channel row / rows_per_group * channels_per_group + column /
    // repeat.
    bool is_input_first;
    int64_t n_rows, n_columns, rows_per_group, channels_per_group, repeat;
    int64_t inner; // elements of the activation's axis that belong to one channel
};

// An activation whose channels can be rescaled.
struct msc_channel_link {
    int64_t n_channels;
    int32_t weight, bias;  // of the maker, tensor ids; MSC_NO_ID: no bias
    int32_t multiplied;    // if `weight` is MSC_NO_ID: the tensor to multiply before it is read
    int64_t n_per_channel; // elements of `weight` for one channel
    bool is_input_first;   // the weight is [columns, channels]
    bool takes_shift;
    int32_t n_readers;
    struct msc_channel_reader *readers;
};

// Finds the links of a graph that the bits allow, in the order of their makers, and then those that
// need a multiplication. They are in the arena.
enum msc_status msc_equalizer__find(struct msc_channel_link **links, size_t *n,
                                    const struct msc_graph *g, const struct msc_sites *sites,
                                    const struct msc_equalize_bits *bits, struct msc_arena *arena);

// Sets the maker of a link to a linear layer. False if the joint is none, or its weight or bias
// belongs to others too.
bool msc_equalizer__set_linear(struct msc_channel_link *link, const struct msc_graph *g,
                               const struct msc_sites *sites, const struct msc_joint *j);

#endif
