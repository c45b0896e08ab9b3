// State and functions shared by the files of binding, which rebuild a graph with more information.
// Only graph/ includes this header.
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
    struct msc_value **values; // [n_tensors] new value of each tensor of `from`
    int64_t *symbols;          // [n_prims] value of each prim of `from`; -1: unbound
    // [n_inputs] elements of each input; NULL unless the graph is bound to arrays
    const struct msc_array *const *arrays;
    // [n_tensors] set by bind_marks.c. is_parameter: a consumer needs the tensor's elements in
    // advance. is_data: a consumer reads the tensor as data. Both may be true.
    bool *is_parameter, *is_data;
    // [n_tensors] a constant with the tensor's elements if both flags are true; `values` then has
    // the value that is read as data
    struct msc_value **known;
    bool keeps_symbols;  // symbols without a value remain
    bool takes_branches; // branches with a constant condition are inlined
    int32_t *n_taken;    // counts inlined branches
    const char *prefix;  // prefix of joint names if `from` is an inlined body, else NULL
};

// Set `symbols` from bindings by name or from the shapes of inputs. MSC_E_INVALID if a name is not
// a symbol or a length does not fit.
enum msc_status msc_bind__names(struct msc_bind *b, const struct msc_binding bindings[], size_t n);
enum msc_status msc_bind__shapes(struct msc_bind *b, const struct msc_input_shape shapes[],
                                 size_t n);
// Copies an `input` joint and replaces bound symbols by numbers.
enum msc_status msc_bind__copy_input(struct msc_bind *b, const struct msc_joint *j);
// Copies a joint, or replaces it by its constant result or its body. The joint's operands must
// already be copied.
enum msc_status msc_bind__copy_joint(struct msc_bind *b, const struct msc_joint *j);
// True for an If with a constant condition; msc_bind__take_branch adds the joints of the branch
// taken.
bool msc_bind__is_decided(const struct msc_bind *b, const struct msc_joint *j);
enum msc_status msc_bind__take_branch(struct msc_bind *b, const struct msc_joint *j);
// True for a joint that msc_bind__split replaces by the joints that it contains: a fused joint and,
// in a graph that is bound to be computed, an external joint that has a body and no plug-in.
bool msc_bind__holds_joints(const struct msc_bind *b, const struct msc_joint *j);
enum msc_status msc_bind__split(struct msc_bind *b, const struct msc_joint *j);
// Makes split copies of a joint's bodies. The caller owns `bodies`, which may contain NULL. If all
// lengths of the operands of an If are known, its bodies are also bound to these lengths.
enum msc_status msc_bind__copy_bodies(struct msc_graph *bodies[2], const struct msc_bind *b,
                                      const struct msc_joint *j);
// True if the joint needs the elements of the operand in advance: to infer the lengths of its
// outputs or, if `takes_branches` is set, to select the branch of an If.
bool msc_bind__needs_contents(const struct msc_bind *b, const struct msc_joint *j, int32_t operand);
// Computes is_parameter and is_data of `from`, and clears `known`. `arrays` is NULL if `from` is a
// body.
enum msc_status msc_bind__mark(struct msc_bind *b);

#endif
