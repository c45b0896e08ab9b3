// Building a graph anew from another with more known about it: what the files of binding share.
// Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_BIND_INTERNAL_H
#define MSC_GRAPH_PASSES_BIND_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/passes/bind.h"

struct msc_bind {
    const struct msc_graph *from;
    struct msc_builder *builder;
    struct msc_value **values; // [n_tensors] by id in `from`
    int64_t *symbols;          // [n_prims] by id in `from`; -1: not bound
    // With arrays: their contents, one for each input; [n_tensors] who reads what (bind_marks.c),
    // and constants for those who need contents, where others read data. NULL without.
    const struct msc_array *const *arrays;
    bool *is_parameter, *is_data;
    struct msc_value **known;
    bool keeps_symbols;  // those without a value stay
    bool takes_branches; // where the condition is a constant
    int32_t *n_taken;    // how many
    const char *prefix;  // of joints' names; NULL: `from` is no body
};

// Fills `symbols` with what is bound by name, or by the shapes of the inputs. Refuses what is no
// symbol, and lengths that do not fit.
enum msc_status msc_bind__names(struct msc_bind *b, const struct msc_binding bindings[], size_t n);
enum msc_status msc_bind__shapes(struct msc_bind *b, const struct msc_input_shape shapes[],
                                 size_t n);
// Copies an `input` joint with numbers in place of symbols.
enum msc_status msc_bind__copy_input(struct msc_bind *b, const struct msc_joint *j);
// Copies a joint, or what it stands for. Its operands are there.
enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j);
// If over a constant condition: the joints of the branch it takes.
bool msc_bind__is_decided(const struct msc_bind *b, const struct msc_joint *j);
enum msc_status msc_bind__take_branch(struct msc_bind *b, const struct msc_joint *j);
// A joint that holds others: these in its place.
bool msc_bind__holds_joints(const struct msc_joint *j);
enum msc_status msc_bind__split(struct msc_bind *b, const struct msc_joint *j);
// The bodies of a joint, split: bodies[i] [2] are owned by the caller, NULL beyond. Those of an If
// are bound to what they read, as far as that makes lengths known.
enum msc_status msc_bind__copy_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                      const struct msc_joint *j);
// Does the joint need the contents of the operand? For lengths, or with `takes_branches` for
// conditions.
bool msc_bind__needs_contents(const struct msc_bind *b, const struct msc_joint *j, int32_t operand);
// Fills is_parameter, is_data and an empty `known` for `from`; without arrays it is a body.
enum msc_status msc_bind__mark(struct msc_bind *b);

#endif
