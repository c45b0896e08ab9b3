// Building a graph anew from another with more known about it: what graph/bind.c and
// graph/bind_branch.c share. Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_BIND_INTERNAL_H
#define MSC_GRAPH_BIND_INTERNAL_H

#include "graph/builder_internal.h"

struct msc_bind {
    const struct msc_graph *from;
    struct msc_builder *builder;
    struct msc_value **values; // [n_tensors] by id in `from`
    int64_t *symbols;          // [n_prims] by id in `from`; -1: not bound
    // With arrays: their contents, one for each input, and [n_tensors] whether a parameter comes
    // from the tensor. NULL without.
    const struct msc_array *const *arrays;
    bool *is_parameter;
    bool keeps_symbols;  // those without a value stay
    bool takes_branches; // where the condition is a constant
    int32_t *n_taken;    // how many
    const char *prefix;  // of joints' names; NULL: `from` is no body
};

// Copies a joint, or what it stands for. Its operands are there.
enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j);
// If over a constant condition: the joints of the branch it takes.
bool msc_bind__is_decided(const struct msc_bind *b, const struct msc_joint *j);
enum msc_status msc_bind__take_branch(struct msc_bind *b, const struct msc_joint *j);
// The bodies of an If for what they read, as far as that makes lengths known: bodies[i] [2] are
// owned by the caller, or both NULL: as they are.
enum msc_status msc_bind__bind_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                      const struct msc_joint *j);
// Marks the inputs that conditions of branches are computed from, as far as that is computed at
// once.
enum msc_status msc_bind__find_conditions(struct msc_bind *b);

#endif
