// Passes over a finalized graph that put one joint in the place of several, without changing what
// it computes (but for the last bits of floats). They run after import, in the order of the table
// in fuse.c; docs/graph.md names them.
//
// A pass looks at one joint at a time, whether a pattern of its ends there. The new joint has the
// name of the one whose place it takes, so that names of sites further on stay. What a joint
// between them made is no tensor any more; a pattern with such a tensor that others read, or that
// is an output, is left alone.
//
// To add one: a file fuse_<name>.c with its patterns, a row in the table, a case in
// tests/graph/test_fuse.c. Nobody outside graph/ includes this.
#ifndef MSC_GRAPH_PASSES_FUSE_INTERNAL_H
#define MSC_GRAPH_PASSES_FUSE_INTERNAL_H

#include "graph/passes/match_internal.h"

struct msc_fuse {
    struct msc_graph *graph;
    int32_t n_old; // joints that were there when links were last made; no others are looked at
};

// Fuses what ends in `joint`, an old one, if anything does: then *done is true.
typedef enum msc_status (*msc_fuse_fn)(bool *done, struct msc_fuse *f, int32_t joint);

enum msc_status msc_fuse_einsum(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_pad(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_bias(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_hard_swish(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_gelu(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_layer_norm(bool *done, struct msc_fuse *f, int32_t joint);
enum msc_status msc_fuse_attention(bool *done, struct msc_fuse *f, int32_t joint);

// All passes, and folding (fold_internal.h) where it belongs. The graph is left finalized.
struct msc_fuse_options {
    bool keep_batch_norm;
};
enum msc_status msc_fuse_all(struct msc_graph *g, const struct msc_fuse_options *options);

// The first of `n` patterns that ends in the joint.
bool msc_fuse__find(struct msc_match *m, const struct msc_fuse *f, const char *const patterns[],
                    size_t n, int32_t joint);
// Is it of floats, and of the same shape as the joint's output?
bool msc_fuse__same_shape(const struct msc_fuse *f, int32_t tensor, int32_t joint);
// Puts a joint in the place of those of the match. `spec` has its operands and attributes; name,
// scope and alias are those of the joint `place`.
enum msc_status msc_fuse__replace(struct msc_fuse *f, const struct msc_match *m, int32_t place,
                                  struct msc_joint_spec *spec);
// The same, but the joints of the match become the body of the new one, unchanged; its name is that
// of the last. Operands are `inputs` [n], under their names there in the body, then whatever else
// the match reads. Nothing is done when a weight is among these, when an input is made by the match
// itself, or when a length of the result would be lost.
struct msc_fuse_input {
    const char *name;
    int32_t tensor;
};
enum msc_status msc_fuse__hold(bool *done, struct msc_fuse *f, const struct msc_match *m,
                               const struct msc_fuse_input inputs[], int n,
                               struct msc_joint_spec *spec);

#endif
