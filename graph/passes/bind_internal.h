// Rebuilding a graph with more information: shared by the files of binding. Only graph/ includes
// this header.
//
// Three files call each other: bind.c binds a graph, bind_joints.c copies its joints, and
// bind_branch.c copies or binds the bodies of joints, which are graphs.
#ifndef MSC_GRAPH_PASSES_BIND_INTERNAL_H
#define MSC_GRAPH_PASSES_BIND_INTERNAL_H

#include "graph/builder_internal.h"
#include "graph/passes/bind.h"

struct msc_bind {
    const struct msc_graph *from;
    struct msc_builder *builder;
    struct msc_value **values; // [n_tensors] by id in `from`
    int64_t *symbols;          // [n_prims] by id in `from`; -1: unbound
    // `arrays` are the contents of each input; NULL unless binding to arrays. The next three are
    // [n_tensors]. The flags tell how consumers read a tensor (bind_marks.c). If some consumers
    // need a tensor's contents and others read it as data, `known` has the constant for the
    // former.
    const struct msc_array *const *arrays;
    bool *is_parameter, *is_data;
    struct msc_value **known;
    bool keeps_symbols;  // symbols without a value remain
    bool takes_branches; // inlines branches whose condition is constant
    int32_t *n_taken;    // number of inlined branches
    const char *prefix;  // prefix of joint names; NULL: `from` is not a body
};

// Fills `symbols` from bindings by name or from shapes of inputs. MSC_E_INVALID for names that
// are not symbols and for lengths that do not fit.
enum msc_status msc_bind__names(struct msc_bind *b, const struct msc_binding bindings[], size_t n);
enum msc_status msc_bind__shapes(struct msc_bind *b, const struct msc_input_shape shapes[],
                                 size_t n);
// Copies an `input` joint and replaces symbols by numbers.
enum msc_status msc_bind__copy_input(struct msc_bind *b, const struct msc_joint *j);
// Copies a joint, or replaces it by its constant result or its body. Its operands have been
// copied.
enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j);
// True for an If with a constant condition; msc_bind__take_branch adds the joints of the branch
// taken.
bool msc_bind__is_decided(const struct msc_bind *b, const struct msc_joint *j);
enum msc_status msc_bind__take_branch(struct msc_bind *b, const struct msc_joint *j);
// True for a fused joint; msc_bind__split replaces it by the joints that it contains.
bool msc_bind__holds_joints(const struct msc_joint *j);
enum msc_status msc_bind__split(struct msc_bind *b, const struct msc_joint *j);
// Splits the bodies of a joint: bodies[i] [2] are owned by the caller, unused ones are NULL.
// Bodies of an If are also bound to the shapes of their inputs, if all their lengths are known.
enum msc_status msc_bind__copy_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                      const struct msc_joint *j);
// True if the joint needs the contents of the operand: for lengths or, with `takes_branches`, for
// conditions.
bool msc_bind__needs_contents(const struct msc_bind *b, const struct msc_joint *j, int32_t operand);
// Fills is_parameter and is_data, and clears `known`, for `from`. Without arrays, `from` is a
// body.
enum msc_status msc_bind__mark(struct msc_bind *b);

#endif
