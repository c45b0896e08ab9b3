// Like test_channels.c, but for products of activations, recurrent layers and computed shapes.
// Tests which heads, hidden units and Einsum axes must be pruned together.
#include "tests/graph/channels_case.h"

#include <stdio.h>

// ---- Attention --------------------------------------------------------------------------------

static int32_t turn(struct net *n, const char *name, int32_t x, const char *shape,
                    const char *axes) {
    char reshape[32];
    snprintf(reshape, sizeof reshape, "%s.heads", name);
    int32_t heads = net_unary(n, MSC_OP_RESHAPE, reshape, x, "shape", shape, NULL, NULL);
    return net_unary(n, MSC_OP_PERMUTE_DIMS, name, heads, "axes", axes, NULL, NULL);
}

// Attention over three rows with two heads of size 3.
static int32_t attend(struct net *n, int32_t q, int32_t k, int32_t v) {
    int32_t scores = net_joint(n, MSC_OP_MATMUL, "scores", 2, IDS(q, k), NULL, NULL);
    int32_t soft = net_unary(n, MSC_OP_SOFTMAX, "soft", scores, "axis", "-1", NULL, NULL);
    int32_t mixed = net_joint(n, MSC_OP_MATMUL, "mixed", 2, IDS(soft, v), NULL, NULL);
    int32_t back = net_unary(n, MSC_OP_PERMUTE_DIMS, "back", mixed, "axes", "0,2,1,3", NULL, NULL);
    return net_unary(n, MSC_OP_RESHAPE, "joined", back, "shape", "0,0,-1", NULL, NULL);
}

// A whole head is one unit of query, key, value and the layer that reads them.
static void test_graph_channels_sum__heads(void **state) {
    (void)state;
    struct net n = net_begin(1);
    int32_t x = add_input(n.g, "x", "", 3, DIMS(2, 3, 4));
    int32_t q = turn(&n, "q", net_linear(&n, "query", x, 6), "2,3,2,3", "0,2,1,3");
    int32_t k = turn(&n, "k", net_linear(&n, "key", x, 6), "0,0,2,-1", "0,2,3,1");
    int32_t v = turn(&n, "v", net_linear(&n, "value", x, 6), "2,3,2,3", "0,2,1,3");
    net_end(&n, 1, IDS(net_linear(&n, "out", attend(&n, q, k, v), 4)));
    CHECK_CHANNELS(&n, 2, {"query.weight", 0, "aaabbb"}, {"query.bias", 0, "aaabbb"},
                   {"key.weight", 0, "aaabbb"}, {"value.weight", 0, "aaabbb"}, {"q:0", 1, "ab"},
                   {"q:0", 3, "---"}, {"scores:0", 1, "ab"}, {"out.weight", 1, "aaabbb"});
}

// If another input fixes the number of heads, only positions within heads can be pruned, in all
// heads at once. Queries and keys share one unit per position. Values have another unit.
static void test_graph_channels_sum__places_of_heads(void **state) {
    (void)state;
    struct net n = net_begin(2);
    int32_t x = add_input(n.g, "x", "", 3, DIMS(2, 3, 4));
    int32_t mask = add_input(n.g, "mask", "", 4, DIMS(2, 2, 3, 3));
    int32_t q = turn(&n, "q", net_linear(&n, "query", x, 6), "2,3,2,3", "0,2,1,3");
    int32_t k = turn(&n, "k", net_linear(&n, "key", x, 6), "2,3,2,3", "0,2,3,1");
    int32_t v = turn(&n, "v", net_linear(&n, "value", x, 6), "2,3,2,3", "0,2,1,3");
    int32_t scores = net_joint(&n, MSC_OP_MATMUL, "scores", 2, IDS(q, k), NULL, NULL);
    int32_t masked = net_joint(&n, MSC_OP_ADD, "masked", 2, IDS(scores, mask), NULL, NULL);
    int32_t mixed = net_joint(&n, MSC_OP_MATMUL, "mixed", 2, IDS(masked, v), NULL, NULL);
    int32_t back = net_unary(&n, MSC_OP_PERMUTE_DIMS, "back", mixed, "axes", "0,2,1,3", NULL, NULL);
    int32_t y = net_unary(&n, MSC_OP_RESHAPE, "joined", back, "shape", "2,3,6", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "out", y, 4)));
    CHECK_CHANNELS(&n, 3 + 3, {"query.weight", 0, "abcabc"}, {"key.weight", 0, "abcabc"},
                   {"value.weight", 0, "xyzxyz"}, {"q:0", 1, "--"}, {"q:0", 3, "abc"},
                   {"out.weight", 1, "xyzxyz"});
}

// A single product makes queries, keys and values, which are then selected by index. The batch is
// symbolic.
static void test_graph_channels_sum__fused_heads(void **state) {
    (void)state;
    struct net n = net_begin(3);
    int32_t x, symbol, parts[3];
    assert_ok(msc_graph_add_symbol(&symbol, n.g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, n.g, "x", NULL, MSC_DTYPE_F32, "", 3, DIMS(-1, 3, 4),
                                           IDS(symbol, MSC_NO_ID, MSC_NO_ID)));
    int32_t all = turn(&n, "all", net_linear(&n, "qkv", x, 18), "0,3,3,2,3", "2,0,3,1,4");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"q", "k", "v"};
        char which[16];
        snprintf(which, sizeof which, "which.%s", names[i]);
        struct msc_array *index;
        int32_t weight;
        assert_ok(msc_array_create_from(&index, MSC_DTYPE_I64, 0, NULL, DIMS(i)));
        assert_ok(msc_graph_add_weight(&weight, n.g, which, NULL, "", index));
        msc_array_release(index);
        parts[i] = add_joint(
            n.g, &(struct msc_joint_spec){.op = MSC_OP_TAKE,
                                          .name = names[i],
                                          .n_inputs = 1,
                                          .inputs = &all,
                                          .n_weights = 1,
                                          .weights = &(struct msc_weight_spec){"indices", weight},
                                          .n_attrs = 1,
                                          .attrs = &(struct msc_attr){"axis", "0"}});
    }
    int32_t k =
        net_unary(&n, MSC_OP_PERMUTE_DIMS, "turned", parts[1], "axes", "0,1,3,2", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "out", attend(&n, parts[0], k, parts[2]), 4)));
    CHECK_CHANNELS(&n, 2, {"qkv.weight", 0, "aaabbbaaabbbaaabbb"}, {"out.weight", 1, "aaabbb"});
}

// The heads of all samples share one axis, [samples * heads]. A pruned head is removed from every
// sample.
static void check_heads_of_a_batch(struct net n, int32_t x, const char *shape) {
    int32_t parts[3];
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"query", "key", "value"};
        static const char *const axes[] = {"1,0,2", "1,2,0", "1,0,2"};
        char reshape[32], turned[32];
        snprintf(reshape, sizeof reshape, "%s.heads", names[i]);
        snprintf(turned, sizeof turned, "%s.turned", names[i]);
        int32_t a = net_linear(&n, names[i], x, 6);
        a = net_unary(&n, MSC_OP_RESHAPE, reshape, a, "shape", shape, NULL, NULL);
        parts[i] = net_unary(&n, MSC_OP_PERMUTE_DIMS, turned, a, "axes", axes[i], NULL, NULL);
    }
    int32_t scores = net_joint(&n, MSC_OP_MATMUL, "scores", 2, IDS(parts[0], parts[1]), NULL, NULL);
    int32_t soft = net_unary(&n, MSC_OP_SOFTMAX, "soft", scores, "axis", "-1", NULL, NULL);
    int32_t mixed = net_joint(&n, MSC_OP_MATMUL, "mixed", 2, IDS(soft, parts[2]), NULL, NULL);
    int32_t back = net_unary(&n, MSC_OP_PERMUTE_DIMS, "back", mixed, "axes", "1,0,2", NULL, NULL);
    int32_t flat = net_unary(&n, MSC_OP_RESHAPE, "flat", back, "shape", "-1,6", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "out", flat, 4)));
    CHECK_CHANNELS(&n, 2, {"query.weight", 0, "aaabbb"}, {"key.weight", 0, "aaabbb"},
                   {"value.weight", 0, "aaabbb"}, {"out.weight", 1, "aaabbb"});
}

static void test_graph_channels_sum__heads_of_a_batch(void **state) {
    (void)state;
    struct net n = net_begin(10);
    int32_t x, symbol;
    assert_ok(msc_graph_add_symbol(&symbol, n.g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, n.g, "x", NULL, MSC_DTYPE_F32, "", 3, DIMS(3, -1, 4),
                                           IDS(MSC_NO_ID, symbol, MSC_NO_ID)));
    check_heads_of_a_batch(n, x, "3,-1,3");
}

// With a fixed batch of 2, the combined axis has a constant length that must be rewritten, too.
static void test_graph_channels_sum__heads_of_a_fixed_batch(void **state) {
    (void)state;
    struct net n = net_begin(16);
    check_heads_of_a_batch(n, add_input(n.g, "x", "", 3, DIMS(3, 2, 4)), "3,4,3");
}

// ---- Products of activations ------------------------------------------------------------------

// The axis that two products sum over is pruned in both operands. Constants are treated as
// weights.
static void test_graph_channels_sum__products(void **state) {
    (void)state;
    struct net n = net_begin(4);
    int32_t x = add_input(n.g, "x", "", 2, DIMS(3, 4));
    int32_t a = net_linear(&n, "a", x, 5), b = net_linear(&n, "b", x, 5);
    int32_t turned = net_unary(&n, MSC_OP_PERMUTE_DIMS, "turned", b, "axes", "1,0", NULL, NULL);
    int32_t ab = net_joint(&n, MSC_OP_MATMUL, "ab", 2, IDS(a, turned), NULL, NULL);
    int32_t c = net_constant(&n, "c", 2, DIMS(4, 3)), d = net_constant(&n, "d", 2, DIMS(2, 4));
    int32_t abc = net_joint(&n, MSC_OP_GEMM, "abc", 2, IDS(ab, c), "trans_b", "1");
    net_end(&n, 1, IDS(net_joint(&n, MSC_OP_GEMM, "y", 2, IDS(abc, d), "trans_b", "1")));
    CHECK_CHANNELS(&n, 5 + 4, {"a.weight", 0, "abcde"}, {"b.weight", 0, "abcde"},
                   {"c.value", 0, "pqrs"}, {"c.value", 1, "---"}, {"d.value", 1, "pqrs"},
                   {"d.value", 0, "--"});
}

// Axes that Einsum sums over cannot be pruned, because no mask can express the pruning; its other
// axes can.
static void test_graph_channels_sum__einsum(void **state) {
    (void)state;
    struct net n = net_begin(5);
    int32_t x = add_input(n.g, "x", "", 2, DIMS(3, 4));
    int32_t a = net_linear(&n, "a", x, 5), b = net_linear(&n, "b", x, 2);
    int32_t y = net_joint(&n, MSC_OP_EINSUM, "y", 2, IDS(a, b), "equation", "ni,nj->ji");
    net_end(&n, 1, IDS(net_linear(&n, "c", y, 3)));
    CHECK_CHANNELS(&n, 5, {"a.weight", 0, "abcde"}, {"b.weight", 0, "--"},
                   {"c.weight", 1, "abcde"});
}

// ---- Helpers for symbolic shapes
// ----------------------------------------------------------------

static int32_t net_symbolic(struct net *n, int n_dims, const int64_t dims[]) {
    int32_t x, prims[MSC_MAX_DIMS];
    for (int i = 0; i < n_dims; i++) {
        const char name[] = {(char)('N' + i), '\0'};
        prims[i] = MSC_NO_ID;
        if (dims[i] < 0) {
            assert_ok(msc_graph_add_symbol(&prims[i], n->g, name));
        }
    }
    assert_ok(
        msc_graph_add_symbolic_input(&x, n->g, "x", NULL, MSC_DTYPE_F32, "", n_dims, dims, prims));
    return x;
}

// A slice of a shape, from `begin` up to but not including `end`.
static int32_t net_part(struct net *n, const char *name, int32_t shape, const char *begin,
                        const char *end) {
    const struct msc_attr cut[] = {{"begin", begin}, {"end", end}};
    return add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &shape,
                                                    .n_attrs = 2,
                                                    .attrs = cut});
}

static int32_t net_number(struct net *n, const char *name, int64_t number) {
    char weight[32];
    snprintf(weight, sizeof weight, "%s.value", name);
    int32_t id = net_indices(n, weight, 1, &number);
    return add_joint(n->g,
                     &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                              .name = name,
                                              .n_weights = 1,
                                              .weights = &(struct msc_weight_spec){"const", id}});
}

// ---- Recurrent layers -------------------------------------------------------------------------

// Adds a recurrent layer with weights "w", "r" and "bias"; `which` is appended to their names.
static int32_t add_recurrent(struct net *n, const char *which, enum msc_op op, int32_t x,
                             int64_t in, int64_t hidden, int64_t gates, int64_t directions,
                             int32_t states[2]) {
    int32_t joint;
    char w[8], r[8], b[8], name[16];
    snprintf(w, sizeof w, "w%s", which);
    snprintf(r, sizeof r, "r%s", which);
    snprintf(b, sizeof b, "bias%s", which);
    snprintf(name, sizeof name, "layer%s", which);
    const struct msc_weight_spec weights[] = {
        {"weight", net_weight(n, w, "", 3, DIMS(directions, gates * hidden, in))},
        {"recurrence", net_weight(n, r, "", 3, DIMS(directions, gates * hidden, hidden))},
        {"bias", net_weight(n, b, "", 2, DIMS(directions, 2 * gates * hidden))}};
    const struct msc_attr attr = {"direction", directions == 2 ? "bidirectional" : "forward"};
    const int32_t inputs[] = {x, MSC_NO_ID, states[0], states[1]};
    assert_ok(msc_graph_add_joint(&joint, n->g,
                                  &(struct msc_joint_spec){.op = op,
                                                           .name = name,
                                                           .n_inputs = op == MSC_OP_LSTM ? 4 : 3,
                                                           .inputs = inputs,
                                                           .n_weights = 3,
                                                           .weights = weights,
                                                           .n_attrs = 1,
                                                           .attrs = &attr}));
    return msc_graph_joint(n->g, joint)->outputs[0];
}

// A hidden unit is pruned with all its gates, its initial state and the weights that read it.
static void test_graph_channels_sum__lstm(void **state) {
    (void)state;
    struct net n = net_begin(6);
    int32_t x = add_input(n.g, "x", "", 3, DIMS(4, 2, 3));
    int32_t before = net_linear(&n, "before", x, 2);
    int32_t first[] = {net_constant(&n, "h", 3, DIMS(1, 2, 3)),
                       net_constant(&n, "c", 3, DIMS(1, 2, 3))};
    int32_t y = add_recurrent(&n, "", MSC_OP_LSTM, before, 2, 3, 4, 1, first);
    int32_t flat = net_unary(&n, MSC_OP_SQUEEZE, "flat", y, "axis", "1,", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "after", flat, 2)));
    CHECK_CHANNELS(&n, 2 + 3, {"before.weight", 0, "pq"}, {"w", 2, "pq"}, {"w", 1, "abcabcabcabc"},
                   {"r", 1, "abcabcabcabc"}, {"r", 2, "abc"},
                   {"bias", 1, "abcabcabcabcabcabcabcabc"}, {"h.value", 2, "abc"},
                   {"c.value", 2, "abc"}, {"after.weight", 1, "abc"});
}

// Both directions have the same units. The next layer reads their concatenated outputs.
static void test_graph_channels_sum__gru_both_ways(void **state) {
    (void)state;
    struct net n = net_begin(7);
    int32_t x = add_input(n.g, "x", "", 3, DIMS(4, 2, 3)), none[] = {MSC_NO_ID, MSC_NO_ID};
    int32_t y = add_recurrent(&n, "", MSC_OP_GRU, x, 3, 3, 3, 2, none);
    int32_t t = net_unary(&n, MSC_OP_PERMUTE_DIMS, "t", y, "axes", "0,2,1,3", NULL, NULL);
    int32_t flat = net_unary(&n, MSC_OP_RESHAPE, "flat", t, "shape", "0,0,-1", NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "after", flat, 2)));
    CHECK_CHANNELS(&n, 3, {"w", 1, "abcabcabc"}, {"r", 2, "abc"}, {"w", 2, "---"},
                   {"after.weight", 1, "abcabc"});
}

// If an initial state is a model input, its length does not change. The layer reads the elements of
// the remaining units.
static void test_graph_channels_sum__state_from_outside(void **state) {
    (void)state;
    struct net n = net_begin(8);
    int32_t x = add_input(n.g, "x", "", 3, DIMS(4, 2, 3));
    int32_t first[] = {add_input(n.g, "h", "", 3, DIMS(1, 2, 3)), MSC_NO_ID};
    int32_t y = add_recurrent(&n, "", MSC_OP_RNN, x, 3, 3, 1, 1, first);
    net_end(&n, 1, IDS(net_linear(&n, "after", y, 2)));
    CHECK_CHANNELS(&n, 3, {"h:0", 2, "---"}, {"w", 1, "abc"}, {"r", 2, "abc"},
                   {"after.weight", 1, "abc"});
}

// A state [1, N, 3] broadcast from one number. N is read from the shape of x [rows, N, ...].
static int32_t net_spread(struct net *n, int32_t x) {
    int32_t shape = net_unary(n, MSC_OP_SHAPE_OF, "x.shape", x, NULL, NULL, NULL, NULL);
    int32_t batch = net_part(n, "x.batch", shape, "1,", "2,");
    int32_t to =
        net_joint(n, MSC_OP_CONCAT, "state.shape", 3,
                  IDS(net_number(n, "one", 1), batch, net_number(n, "three", 3)), "axis", "0");
    int32_t number = net_constant(n, "number", 1, DIMS(1));
    return net_joint(n, MSC_OP_BROADCAST_TO, "state", 2, IDS(number, to), NULL, NULL);
}

// A state broadcast from one number, as exporters write zeros, gets the length of the remaining
// units.
static void test_graph_channels_sum__state_of_a_number(void **state) {
    (void)state;
    struct net n = net_begin(13);
    int32_t x = net_symbolic(&n, 3, DIMS(4, -1, 3));
    int32_t both = net_spread(&n, x), first[] = {both, both};
    int32_t y = add_recurrent(&n, "", MSC_OP_LSTM, x, 3, 3, 4, 1, first);
    net_end(&n, 1, IDS(net_linear(&n, "after", y, 2)));
    CHECK_CHANNELS(&n, 3, {"state:0", 2, "abc"}, {"w", 1, "abcabcabcabc"}, {"r", 2, "abc"},
                   {"after.weight", 1, "abc"});
}

// Two layers that start from the same broadcast state still have separate units.
static void test_graph_channels_sum__layers_of_a_number(void **state) {
    (void)state;
    struct net n = net_begin(14);
    int32_t x = net_symbolic(&n, 3, DIMS(4, -1, 3));
    int32_t first[] = {net_spread(&n, x), MSC_NO_ID};
    int32_t y = add_recurrent(&n, "", MSC_OP_GRU, x, 3, 3, 3, 1, first);
    int32_t between = net_unary(&n, MSC_OP_SQUEEZE, "between", y, "axis", "1,", NULL, NULL);
    int32_t z = add_recurrent(&n, "2", MSC_OP_GRU, between, 3, 3, 3, 1, first);
    net_end(&n, 1, IDS(net_linear(&n, "after", z, 2)));
    CHECK_CHANNELS(&n, 3 + 3, {"state:0", 2, "---"}, {"r", 2, "abc"}, {"w2", 2, "abc"},
                   {"r2", 2, "xyz"}, {"after.weight", 1, "xyz"});
}

// ---- Shared constants -------------------------------------------------------------------------

// Exporters store equal biases once. A shared bias does not tie the channels of its layers, and
// cannot be pruned itself.
static void test_graph_channels_sum__shared_bias(void **state) {
    (void)state;
    struct net n = net_begin(15);
    int32_t x = add_input(n.g, "x", "", 2, DIMS(2, 3));
    int32_t bias = MSC_NO_ID, y = x;
    for (int i = 0; i < 4; i++) {
        char name[16], weight[32];
        snprintf(name, sizeof name, "layer%d", i);
        snprintf(weight, sizeof weight, "%s.weight", name);
        int32_t own = net_weight(&n, weight, "OI", 2, DIMS(3, 3));
        bias = i == 0 ? net_weight(&n, "equal", "O", 1, DIMS(3)) : bias;
        const struct msc_weight_spec weights[] = {{"weight", own}, {"bias", bias}};
        y = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_LINEAR_BIAS,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &y,
                                                    .n_weights = 2,
                                                    .weights = weights});
    }
    net_end(&n, 1, IDS(y));
    CHECK_CHANNELS(&n, 3 * 3, {"equal", 0, "---"}, {"layer0.weight", 0, "abc"},
                   {"layer1.weight", 0, "klm"}, {"layer2.weight", 0, "xyz"},
                   {"layer3.weight", 0, "---"});
}

// ---- Lengths known only at run time -----------------------------------------------------------

// A reshape target computed from another tensor's shape is rewritten for the pruned channels.
static void test_graph_channels_sum__shapes(void **state) {
    (void)state;
    struct net n = net_begin(9);
    int32_t x, symbol;
    assert_ok(msc_graph_add_symbol(&symbol, n.g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, n.g, "x", NULL, MSC_DTYPE_F32, "NCHW", 4,
                                           DIMS(-1, 2, 3, 3),
                                           IDS(symbol, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID)));
    int32_t a = net_conv(&n, "a", x, 3, 1, 1);
    int32_t shape = net_unary(&n, MSC_OP_SHAPE_OF, "shape", a, NULL, NULL, NULL, NULL);
    int32_t batch = net_part(&n, "batch", shape, "0,", "1,");
    int32_t to =
        net_joint(&n, MSC_OP_CONCAT, "to", 2, IDS(batch, net_number(&n, "rest", 27)), "axis", "0");
    int32_t flat = net_joint(&n, MSC_OP_RESHAPE, "flat", 2, IDS(a, to), NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "b", flat, 2)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"b.weight", 1, "aaaaaaaaabbbbbbbbbccccccccc"});
}

// Keys are transposed in the form [samples * heads, rows, size], as torch.export writes it. The
// shapes are computed from the keys' own shape, including the number of heads, so they cannot
// become attributes.
static void test_graph_channels_sum__heads_by_shapes(void **state) {
    (void)state;
    struct net n = net_begin(11);
    int32_t x = net_symbolic(&n, 3, DIMS(-1, -1, 4));
    int32_t q = turn(&n, "q", net_linear(&n, "query", x, 6), "0,0,2,3", "0,2,1,3");
    int32_t k = turn(&n, "k", net_linear(&n, "key", x, 6), "0,0,2,3", "0,2,1,3");
    int32_t v = turn(&n, "v", net_linear(&n, "value", x, 6), "0,0,2,3", "0,2,1,3");
    int32_t shape = net_unary(&n, MSC_OP_SHAPE_OF, "shape", k, NULL, NULL, NULL, NULL);
    int32_t outer = net_part(&n, "outer", shape, "0,", "2,");
    int32_t rows = net_part(&n, "rows", shape, "2,", "3,");
    int32_t size = net_part(&n, "size", shape, "3,", "4,");
    int32_t to = net_joint(&n, MSC_OP_CONCAT, "to", 3, IDS(net_number(&n, "rest", -1), rows, size),
                           "axis", "0");
    int32_t back = net_joint(&n, MSC_OP_CONCAT, "back_to", 3, IDS(outer, size, rows), "axis", "0");
    int32_t flat = net_joint(&n, MSC_OP_RESHAPE, "flat", 2, IDS(k, to), NULL, NULL);
    int32_t turned =
        net_unary(&n, MSC_OP_PERMUTE_DIMS, "turned", flat, "axes", "0,2,1", NULL, NULL);
    int32_t keys = net_joint(&n, MSC_OP_RESHAPE, "keys", 2, IDS(turned, back), NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "out", attend(&n, q, keys, v), 4)));
    CHECK_CHANNELS(&n, 2, {"query.weight", 0, "aaabbb"}, {"key.weight", 0, "aaabbb"},
                   {"value.weight", 0, "aaabbb"}, {"keys:0", 1, "ab"}, {"out.weight", 1, "aaabbb"});
}

// If the number of channels is used as data, and not only in a shape, the channels cannot be
// pruned.
static void test_graph_channels_sum__lengths_that_are_read(void **state) {
    (void)state;
    struct net n = net_begin(12);
    int32_t x = net_symbolic(&n, 2, DIMS(-1, 4));
    int32_t a = net_linear(&n, "a", x, 3);
    int32_t shape = net_unary(&n, MSC_OP_SHAPE_OF, "shape", a, NULL, NULL, NULL, NULL);
    int32_t units = net_part(&n, "units", shape, "1,", "2,");
    int32_t number = net_unary(&n, MSC_OP_CAST, "number", units, "dtype", "float32", NULL, NULL);
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, IDS(a, number), NULL, NULL);
    net_end(&n, 1, IDS(net_linear(&n, "b", sum, 2)));
    CHECK_CHANNELS(&n, 0, {"a.weight", 0, "---"}, {"b.weight", 1, "---"});
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_channels_sum__heads),
        cmocka_unit_test(test_graph_channels_sum__places_of_heads),
        cmocka_unit_test(test_graph_channels_sum__fused_heads),
        cmocka_unit_test(test_graph_channels_sum__heads_of_a_batch),
        cmocka_unit_test(test_graph_channels_sum__heads_of_a_fixed_batch),
        cmocka_unit_test(test_graph_channels_sum__products),
        cmocka_unit_test(test_graph_channels_sum__einsum),
        cmocka_unit_test(test_graph_channels_sum__lstm),
        cmocka_unit_test(test_graph_channels_sum__gru_both_ways),
        cmocka_unit_test(test_graph_channels_sum__state_from_outside),
        cmocka_unit_test(test_graph_channels_sum__state_of_a_number),
        cmocka_unit_test(test_graph_channels_sum__layers_of_a_number),
        cmocka_unit_test(test_graph_channels_sum__shared_bias),
        cmocka_unit_test(test_graph_channels_sum__shapes),
        cmocka_unit_test(test_graph_channels_sum__heads_by_shapes),
        cmocka_unit_test(test_graph_channels_sum__lengths_that_are_read),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
