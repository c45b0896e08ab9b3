// Small graphs with random weights, which of their indices go together, and whether masks and
// surgery agree on them.
#ifndef MSC_TESTS_GRAPH_CHANNELS_CASE_H
#define MSC_TESTS_GRAPH_CHANNELS_CASE_H

#include "base/rng.h"
#include "graph/channels.h"
#include "graph/passes/prune.h"

#include "tests/graph/graph_samples.h"

// A graph as it is built.
struct net {
    struct msc_graph *g;
    struct msc_rng rng;
};

struct net net_begin(uint64_t seed);
// Weights of -1 ... 1; variances of a batch_norm are the squares of these and a half.
int32_t net_weight(struct net *n, const char *name, const char *layout, int n_dims,
                   const int64_t dims[]);
int32_t net_indices(struct net *n, const char *name, int64_t count, const int64_t values[]);
// A `constant` joint that holds such a weight, "<name>.value".
int32_t net_constant(struct net *n, const char *name, int n_dims, const int64_t dims[]);
// Joints that read x alone, by two attributes at most (keys NULL: fewer).
int32_t net_unary(struct net *n, enum msc_op op, const char *name, int32_t x, const char *key,
                  const char *value, const char *other_key, const char *other_value);
int32_t net_joint(struct net *n, enum msc_op op, const char *name, int32_t n_inputs,
                  const int32_t inputs[], const char *key, const char *value);
// With a bias; weights "<name>.weight", "<name>.bias".
int32_t net_conv(struct net *n, const char *name, int32_t x, int64_t out, int64_t kernel,
                 int64_t groups);
int32_t net_linear(struct net *n, const char *name, int32_t x, int64_t out);
int32_t net_batch_norm(struct net *n, const char *name, int32_t x);
void net_end(struct net *n, int32_t n_outputs, const int32_t outputs[]);

// Indices of an axis: equal letters are one unit, '-' is frozen. Letters hold for all rows.
struct channels_row {
    const char *tensor;
    int axis;
    const char *units;
};
// Checks the rows, that there are just these units, and masks against surgery; destroys the graph.
void check_channels(struct net *n, int32_t n_units, const struct channels_row rows[]);
#define CHECK_CHANNELS(net, n_units, ...)                                                          \
    check_channels(net, n_units, (const struct channels_row[]){__VA_ARGS__, {NULL, 0, NULL}})

// Random units go, at several densities: the whole graph under masks and the pruned one must give
// the same, of reference kernels, within 1e-5 of the largest.
void check_masked_and_pruned(const struct msc_graph *g, uint64_t seed);

#endif
