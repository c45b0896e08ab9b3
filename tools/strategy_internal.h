// What the files about strategies share.
#ifndef MSC_TOOLS_STRATEGY_INTERNAL_H
#define MSC_TOOLS_STRATEGY_INTERNAL_H

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/strategy.h"

struct msc_strategy_edit {
    const char *site, *tensor, *label;
    size_t n_joints; // 0: all that read the tensor
    const char **joints;
    bool has_origin;
    struct msc_strategy_origin origin;
    struct msc_edit edit;
};

struct msc_strategy {
    struct msc_arena arena;
    const char *name;                // begins error texts; NULL: it was read from nowhere
    const struct msc_target *target; // of the sites' scheme
    bool has_weights;                // hash of those that it was found with
    struct msc_hash weights;
    struct msc_strategy_edit *edits;
    size_t n, capacity;
    struct msc_array **arrays; // references of the edits'
    size_t n_arrays, arrays_capacity;
};

// Copies an edit whose text and numbers belong to somebody else, over those that are there.
enum msc_status msc_strategy__add(struct msc_strategy *s, const struct msc_strategy_edit *model);
// An edit whose numbers are copies, the strategy's.
enum msc_status msc_strategy__copy_quant(struct msc_strategy *s, struct msc_edit *out,
                                         const struct msc_quant *in);

#endif
