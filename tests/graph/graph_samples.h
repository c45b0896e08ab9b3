// Small graphs that several tests share, built through the API.
#ifndef MSC_TESTS_GRAPH_SAMPLES_H
#define MSC_TESTS_GRAPH_SAMPLES_H

#include "base/str.h"
#include "data/npy.h"
#include "graph/graph.h"

#include "tests/msc_test.h"

#define IDS(...)                                                                                   \
    (const int32_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }
#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

// A float32 weight with elements 0, 1, 2, ...
static inline int32_t add_weight(struct msc_graph *g, const char *name, const char *layout,
                                 int n_dims, const int64_t dims[]) {
    struct msc_array *data;
    int32_t tensor;
    assert_ok(msc_array_create(&data, MSC_DTYPE_F32, n_dims, dims));
    float *x = msc_array_data(data);
    for (int64_t i = 0; i < msc_array_n_elements(data); i++) {
        x[i] = (float)i;
    }
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, layout, data));
    msc_array_release(data);
    return tensor;
}

static inline int32_t add_input(struct msc_graph *g, const char *name, const char *layout,
                                int n_dims, const int64_t dims[]) {
    int32_t tensor;
    assert_ok(msc_graph_add_input(&tensor, g, name, NULL, MSC_DTYPE_F32, layout, n_dims, dims));
    return tensor;
}

// Adds a joint and returns its first output.
static inline int32_t add_joint(struct msc_graph *g, const struct msc_joint_spec *spec) {
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, g, spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

static inline int32_t add_unary(struct msc_graph *g, enum msc_op op, const char *name,
                                int32_t input) {
    return add_joint(
        g, &(struct msc_joint_spec){.op = op, .name = name, .n_inputs = 1, .inputs = &input});
}

static inline int32_t add_conv(struct msc_graph *g, const char *name, int32_t input,
                               int32_t weight) {
    return add_joint(g, &(struct msc_joint_spec){
                            .op = MSC_OP_CONV2D,
                            .name = name,
                            .n_inputs = 1,
                            .inputs = &input,
                            .n_weights = 1,
                            .weights = &(struct msc_weight_spec){"weight", weight},
                        });
}

// Lists the weights of a graph with their elements. Call msc_array_list_finish.
static inline void list_weights(struct msc_array_list *list, const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        if (t->data != NULL) {
            assert_ok(msc_array_list_add(list, t->name, t->data));
        }
    }
}

static inline int32_t find(const struct msc_graph *g, const char *name) {
    int32_t joint = msc_graph_find_joint(g, name);
    assert_int_not_equal(joint, MSC_NO_ID);
    return joint;
}

// The network of the MSC tutorial: a 1x1 convolution from 3 to 6 channels, then relu.
static inline struct msc_graph *make_conv_relu(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "main"));
    int32_t x = add_input(g, "inp_0", "NCHW", 4, DIMS(1, 3, 4, 4));
    int32_t w = add_weight(g, "const", "OIHW", 4, DIMS(6, 3, 1, 1));
    int32_t y = add_unary(g, MSC_OP_RELU, NULL, add_conv(g, NULL, x, w));
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// Two convolutions that share a weight, a split with two differently used halves, a symbolic
// batch, a scope, two outputs and a constant:
//
//     x ── conv_a ── conv_b ── split ─┬─ :0 ── relu ── add ── (out) sum
//                                     └─ :1 ───────────┘ │
//                                     └─ :1 ── tanh ── (out) act
static inline struct msc_graph *make_branches(void) {
    struct msc_graph *g;
    int32_t batch, x;
    assert_ok(msc_graph_create(&g, "branches"));
    assert_ok(msc_graph_add_symbol(&batch, g, "batch"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", "data", MSC_DTYPE_F32, "NCHW", 4,
                                           DIMS(-1, 4, 5, 5), IDS(batch, -1, -1, -1)));
    int32_t w = add_weight(g, "shared.weight", "OIHW", 4, DIMS(4, 4, 1, 1));
    int32_t b = add_conv(g, "conv_b", add_conv(g, "conv_a", x, w), w);
    int32_t split;
    assert_ok(msc_graph_add_joint(
        &split, g,
        &(struct msc_joint_spec){
            .op = MSC_OP_SPLIT,
            .name = "split",
            .scope = "body.0",
            .n_inputs = 1,
            .inputs = &b,
            .n_attrs = 2,
            .attrs = (const struct msc_attr[]){{"indices_or_sections", "2"}, {"axis", "1"}},
            .n_outputs = 2,
        }));
    int32_t first = msc_graph_joint(g, split)->outputs[0];
    int32_t second = msc_graph_joint(g, split)->outputs[1];
    int32_t relu = add_unary(g, MSC_OP_RELU, "relu", first);
    int32_t sum = add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_ADD,
                                                        .name = "add",
                                                        .n_inputs = 2,
                                                        .inputs = IDS(relu, second),
                                                        .aliases = (const char *const[]){"sum"},
                                                        .n_outputs = 1});
    int32_t act = add_unary(g, MSC_OP_TANH, "tanh", second);
    assert_ok(msc_graph_set_alias(g, act, "act"));
    assert_ok(msc_graph_set_outputs(g, 2, IDS(sum, act)));
    assert_ok(msc_graph_finalize(g));
    return g;
}

#endif
