// Helpers of the channel tests. They build small graphs with random weights, and compare the units
// (channels that are pruned together) with a table written by hand. They also check that masking
// and pruning give the same outputs.
#ifndef MSC_TESTS_GRAPH_CHANNELS_CASE_H
#define MSC_TESTS_GRAPH_CHANNELS_CASE_H

#include "base/rng.h"
#include "graph/channels.h"
#include "graph/passes/prune.h"

#include "tests/graph/graph_samples.h"

// A graph under construction.
struct net {
    struct msc_graph *g;
    struct msc_rng rng;
};

struct net net_begin(uint64_t seed);
// A weight with elements in [-1, 1]. Variances of a batch_norm are squares of such elements plus
// 1/2.
int32_t net_weight(struct net *n, const char *name, const char *layout, int n_dims,
                   const int64_t dims[]);
int32_t net_indices(struct net *n, const char *name, int64_t count, const int64_t values[]);
// A `constant` joint that holds a weight as made by net_weight, named "<name>.value".
int32_t net_constant(struct net *n, const char *name, int n_dims, const int64_t dims[]);
// Adds a joint with up to two attributes; a NULL key means none. The only input of net_unary is x.
int32_t net_unary(struct net *n, enum msc_op op, const char *name, int32_t x, const char *key,
                  const char *value, const char *other_key, const char *other_value);
int32_t net_joint(struct net *n, enum msc_op op, const char *name, int32_t n_inputs,
                  const int32_t inputs[], const char *key, const char *value);
// Layers with a bias. Their weights are called "<name>.weight" and "<name>.bias".
int32_t net_conv(struct net *n, const char *name, int32_t x, int64_t out, int64_t kernel,
                 int64_t groups);
int32_t net_linear(struct net *n, const char *name, int32_t x, int64_t out);
int32_t net_batch_norm(struct net *n, const char *name, int32_t x);
void net_end(struct net *n, int32_t n_outputs, const int32_t outputs[]);

// The unit of each index along an axis. Equal letters mean the same unit, in all rows; '-' is an
// index that cannot be pruned.
struct channels_row {
    const char *tensor;
    int axis;
    const char *units;
};
// Checks the rows and the number of units, compares masked and pruned outputs, and destroys the
// graph.
void check_channels(struct net *n, int32_t n_units, const struct channels_row rows[]);
#define CHECK_CHANNELS(net, n_units, ...)                                                          \
    check_channels(net, n_units, (const struct channels_row[]){__VA_ARGS__, {NULL, 0, NULL}})

// Removes random units at several densities. The masked graph and the pruned one must give the
// same outputs with reference kernels, within 1e-5 of the largest output.
void check_masked_and_pruned(const struct msc_graph *g, uint64_t seed);

#endif
