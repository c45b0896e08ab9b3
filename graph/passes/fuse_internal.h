// Passes over a finalized graph that replace several joints by one. Results change at most in the
// last bits of floats. The passes run after import, in the order of the table in fuse.c;
// docs/graph.md describes them.
//
// A pass visits one joint at a time and checks whether one of its patterns ends at this joint. The
// new joint takes the name of the joint that it replaces, so that names of sites downstream do not
// change. Tensors inside the pattern are removed. So a pattern does not match if such a tensor is
// an output or another joint reads it.
//
// To add a pass, write a file fuse_<name>.c with its patterns, a row in the table, and a case in
// tests/graph/test_fuse.c. Only graph/ includes this header.
#ifndef MSC_GRAPH_PASSES_FUSE_INTERNAL_H
#define MSC_GRAPH_PASSES_FUSE_INTERNAL_H

#include "graph/passes/match_internal.h"

struct msc_fuse {
    struct msc_graph *graph;
    // number of joints when the graph was last finalized; later joints are not visited
    int32_t n_old;
};

// Fuses the pattern that ends in `joint` (below n_old), if there is one; then *done is true.
typedef enum msc_status (*msc_fuse_fn)(bool *done, struct msc_fuse *f, int32_t joint);

enum msc_status msc_fuse_einsum(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_pad(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_bias(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_hard_swish(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_gelu(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_layer_norm(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_attention(bool *done, struct msc_fuse *f, int32_t joint);

// msc_fuse_all runs all passes, including those of fold_internal.h, and leaves the graph finalized.
struct msc_fuse_options {
    bool keep_batch_norm;
};
enum msc_status msc_fuse_all(struct msc_graph *g, const struct msc_fuse_options *options);

// Defined in fuse_common.c.

// Finds the first of `n` patterns that matches and ends at the joint; false if there is none.
bool msc_fuse__find(struct msc_match *m, const struct msc_fuse *f, const char *const patterns[],
                    size_t n, int32_t joint);
// True if the tensor is float and has the same shape as the joint's output.
bool msc_fuse__same_shape(const struct msc_fuse *f, int32_t tensor, int32_t joint);
// Replaces the joints of the match by a new joint. `spec` has the operands and attributes of the
// new joint. Name, scope and alias are taken from the joint `place`.
enum msc_status msc_fuse__replace(struct msc_fuse *f, const struct msc_match *m, int32_t place,
                                  struct msc_joint_spec *spec);
// Defined in fuse_body.c. Like msc_fuse__replace, but the joints of the match become the body of
// the new joint. The new joint takes the name of the last joint of the match. Its operands are
// first `inputs` [n], then the other tensors that the match reads. Does nothing and leaves *done
// false if an operand is a weight, if the match itself produces one of `inputs`, or if a length of
// the result would become unknown.
struct msc_fuse_input {
    const char *name; // name of the input in the body
    int32_t tensor;
};
enum msc_status msc_fuse__hold(bool *done, struct msc_fuse *f, const struct msc_match *m,
                               const struct msc_fuse_input inputs[], int n,
                               struct msc_joint_spec *spec);

#endif
