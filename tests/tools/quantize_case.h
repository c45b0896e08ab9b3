// The small network of tests/env/make_quantize_expected.py with its samples, for tests of the
// quantizer and of the quantize environment:
//
//     x [N,2,6,6] -> conv1 (conv1.w) -> relu -> conv2 (conv2.w) -> pool -> flat -> head (head.w)
#ifndef MSC_TESTS_QUANTIZE_CASE_H
#define MSC_TESTS_QUANTIZE_CASE_H

#include "kernels/engine/evaluator.h"
#include "tools/quantizer.h"

#include "tests/msc_test.h"

enum { QUANTIZE_SAMPLES = 10 };

struct quantize_case {
    struct msc_graph *g;
    struct msc_dataset *data;
    struct msc_backend *backend;
    struct msc_evaluator *ev;
};

// An array of sums of four uniform numbers. Its elements equal the elements of `values` in
// make_quantize_expected.py.
struct msc_array *quantize_array(int n_dims, const int64_t dims[], uint64_t seed);

void quantize_case_open(struct quantize_case *c, int n_threads, int64_t batch);
// Like quantize_case_open, but with other inputs [n,2,6,6], which the caller owns.
void quantize_case_open_with(struct quantize_case *c, int n_threads, int64_t batch,
                             struct msc_array *inputs);
// Like quantize_case_open, but with another graph and with all sites that `target` quantises. The
// case takes ownership of the graph.
void quantize_case_open_graph(struct quantize_case *c, struct msc_graph *g, const char *target);
void quantize_case_open_graph_with(struct quantize_case *c, struct msc_graph *g, const char *target,
                                   struct msc_array *inputs);
void quantize_case_close(struct quantize_case *c);

// Graphs for quantize_case_open_graph. w is [2,2], b is [2], and w2 is the identity.
//
//     x [N,2,6,6] -> conv (w, b) -> act (op) -> conv2 (w2)
//     x [N,2,6,6] -> conv (w, b) -> less (* factor) -> more (+ number) -> conv2 (w2)
struct msc_graph *quantize_make_activation(enum msc_op op, const float w[4], const float b[2]);
struct msc_graph *quantize_make_sum(const float w[4], const float b[2], float factor, float number);

// Creates a quantizer from the JSON text of an environment's configuration.
enum msc_status quantize_create(struct msc_quantizer **out, const struct msc_graph *g,
                                const char *config);

#endif
