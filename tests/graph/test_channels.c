// Which channels must be pruned together, for each operator. Expected units follow from the
// operators' definitions and are written as tables for small graphs. For each graph, masking and
// pruning must also agree.
#include "tests/graph/channels_case.h"

#include <stdio.h>

#define IMAGE(n, channels) add_input((n)->g, "x", "NCHW", 4, DIMS(2, channels, 3, 3))

// ---- Layers in a row --------------------------------------------------------------------------

// Channels of inputs and outputs cannot be pruned. A filter's bias belongs to the filter's unit.
static void test_graph_channels__conv_and_linear(void **state) {
    (void)state;
    struct net n = net_begin(1);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 4, 3, 1);
    int32_t r = add_unary(n.g, MSC_OP_SIGMOID, "r", a);
    int32_t f = net_unary(&n, MSC_OP_FLATTEN, "f", r, NULL, NULL, NULL, NULL);
    int32_t b = net_linear(&n, "b", f, 3);
    net_end(&n, 1, IDS(net_linear(&n, "c", b, 2)));
    CHECK_CHANNELS(&n, 4 + 3, {"a.weight", 0, "abcd"}, {"a.weight", 1, "--"}, {"a.bias", 0, "abcd"},
                   {"r:0", 1, "abcd"}, {"b.weight", 1, "aaaaaaaaabbbbbbbbbcccccccccddddddddd"},
                   {"b.weight", 0, "xyz"}, {"b.bias", 0, "xyz"}, {"c.weight", 1, "xyz"},
                   {"c.weight", 0, "--"}, {"c.bias", 0, "--"});
}

static void test_graph_channels__batch_norm_and_slope(void **state) {
    (void)state;
    struct net n = net_begin(2);
    int32_t a = net_batch_norm(&n, "norm", net_conv(&n, "a", IMAGE(&n, 2), 3, 1, 1));
    int32_t slope = net_weight(&n, "slope", "", 3, DIMS(3, 1, 1));
    int32_t p = add_joint(
        n.g, &(struct msc_joint_spec){.op = MSC_OP_PRELU,
                                      .name = "p",
                                      .n_inputs = 1,
                                      .inputs = &a,
                                      .n_weights = 1,
                                      .weights = &(struct msc_weight_spec){"slope", slope}});
    net_end(&n, 1, IDS(net_conv(&n, "b", p, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"norm.gamma", 0, "abc"}, {"norm.var", 0, "abc"},
                   {"slope", 0, "abc"}, {"b.weight", 1, "abc"});
}

// ---- Sums, concatenations and splits ----------------------------------------------------------

static void test_graph_channels__residual(void **state) {
    (void)state;
    struct net n = net_begin(3);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 3, 1, 1);
    int32_t b = net_conv(&n, "b", a, 3, 3, 1);
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, IDS(a, b), NULL, NULL);
    net_end(&n, 1, IDS(net_conv(&n, "c", sum, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"b.weight", 0, "abc"}, {"b.weight", 1, "abc"},
                   {"c.weight", 1, "abc"});
}

// Channels of a network output cannot be pruned, nor can channels that are added into them.
static void test_graph_channels__outputs(void **state) {
    (void)state;
    struct net n = net_begin(4);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 3, 1, 1);
    int32_t b = net_conv(&n, "b", a, 3, 3, 1);
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, IDS(a, b), NULL, NULL);
    net_end(&n, 1, IDS(sum));
    CHECK_CHANNELS(&n, 0, {"a.weight", 0, "---"}, {"b.weight", 0, "---"}, {"b.weight", 1, "---"});
}

// An add broadcasts a single channel to three. A gate has one value per channel.
static void test_graph_channels__broadcast(void **state) {
    (void)state;
    struct net n = net_begin(5);
    int32_t x = IMAGE(&n, 2);
    int32_t a = net_conv(&n, "a", x, 3, 1, 1), one = net_conv(&n, "one", x, 1, 1, 1);
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, IDS(a, one), NULL, NULL);
    int32_t pooled = add_unary(n.g, MSC_OP_GLOBAL_AVG_POOL, "pooled", sum);
    int32_t gate = add_unary(n.g, MSC_OP_SIGMOID, "open", net_conv(&n, "gate", pooled, 3, 1, 1));
    int32_t y = net_joint(&n, MSC_OP_MULTIPLY, "gated", 2, IDS(sum, gate), NULL, NULL);
    net_end(&n, 1, IDS(net_conv(&n, "b", y, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"one.weight", 0, "-"}, {"gate.weight", 0, "abc"},
                   {"gate.weight", 1, "abc"}, {"b.weight", 1, "abc"});
}

// The split's first part has a single channel, which cannot be pruned.
static void test_graph_channels__concat_split_slice(void **state) {
    (void)state;
    struct net n = net_begin(6);
    int32_t x = IMAGE(&n, 2), first, joint;
    int32_t a = net_conv(&n, "a", x, 2, 1, 1), b = net_conv(&n, "b", x, 3, 1, 1);
    int32_t both = net_joint(&n, MSC_OP_CONCAT, "both", 2, IDS(a, b), "axis", "1");
    const struct msc_attr cuts[] = {{"axis", "1"}, {"indices_or_sections", "1,"}};
    assert_ok(msc_graph_add_joint(&joint, n.g,
                                  &(struct msc_joint_spec){.op = MSC_OP_SPLIT,
                                                           .name = "parts",
                                                           .n_inputs = 1,
                                                           .inputs = &both,
                                                           .n_attrs = 2,
                                                           .attrs = cuts,
                                                           .n_outputs = 2}));
    first = msc_graph_joint(n.g, joint)->outputs[0];
    int32_t rest = msc_graph_joint(n.g, joint)->outputs[1];
    const struct msc_attr ends[] = {{"axes", "1,"}, {"begin", "1,"}, {"end", "-1,"}};
    int32_t middle = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_STRIDED_SLICE,
                                                             .name = "middle",
                                                             .n_inputs = 1,
                                                             .inputs = &rest,
                                                             .n_attrs = 3,
                                                             .attrs = ends});
    int32_t c = net_conv(&n, "c", middle, 2, 1, 1), d = net_conv(&n, "d", rest, 2, 1, 1);
    net_end(&n, 3, IDS(c, d, net_conv(&n, "e", first, 2, 1, 1)));
    CHECK_CHANNELS(&n, 4, {"a.weight", 0, "-b"}, {"b.weight", 0, "cde"}, {"e.weight", 1, "-"},
                   {"d.weight", 1, "bcde"}, {"c.weight", 1, "cd"});
}

// ---- Grouped convolutions ---------------------------------------------------------------------

static void test_graph_channels__depthwise(void **state) {
    (void)state;
    struct net n = net_begin(7);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 3, 1, 1);
    int32_t deep = net_conv(&n, "deep", a, 6, 3, 3);
    net_end(&n, 1, IDS(net_conv(&n, "b", deep, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"deep.weight", 0, "aabbcc"},
                   {"deep.bias", 0, "aabbcc"}, {"b.weight", 1, "aabbcc"});
}

// A whole group of a grouped convolution is one unit, together with the channels that the group
// reads and produces.
static void test_graph_channels__groups(void **state) {
    (void)state;
    struct net n = net_begin(8);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 6, 1, 1);
    int32_t wide = net_conv(&n, "wide", a, 9, 3, 3);
    net_end(&n, 1, IDS(net_conv(&n, "b", wide, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "aabbcc"}, {"wide.weight", 0, "aaabbbccc"},
                   {"wide.weight", 1, "--"}, {"b.weight", 1, "aaabbbccc"});
}

// If the output channels cannot be pruned, the input channels at the same position in every group
// form one unit.
static void test_graph_channels__positions(void **state) {
    (void)state;
    struct net n = net_begin(9);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 6, 1, 1);
    net_end(&n, 1, IDS(net_conv(&n, "wide", a, 9, 3, 3)));
    CHECK_CHANNELS(&n, 2, {"a.weight", 0, "ababab"}, {"wide.weight", 0, "---------"},
                   {"wide.weight", 1, "ab"});
}

static int32_t add_transposed(struct net *n, const char *name, int32_t x, int64_t in, int64_t each,
                              const char *groups) {
    char weight[32], bias[32];
    int64_t out = each * (groups[0] - '0');
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    const struct msc_weight_spec weights[] = {
        {"weight", net_weight(n, weight, "IOHW", 4, DIMS(in, each, 2, 2))},
        {"bias", net_weight(n, bias, "O", 1, &out)}};
    const struct msc_attr attr = {"groups", groups};
    return add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_CONV2D_TRANSPOSE,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .n_weights = 2,
                                                    .weights = weights,
                                                    .n_attrs = 1,
                                                    .attrs = &attr});
}

static void test_graph_channels__transposed(void **state) {
    (void)state;
    struct net n = net_begin(10);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 3, 1, 1);
    int32_t t = add_transposed(&n, "t", a, 3, 4, "1");
    int32_t u = add_transposed(&n, "u", t, 4, 3, "2");
    net_end(&n, 1, IDS(net_conv(&n, "b", u, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3 + 2, {"a.weight", 0, "abc"}, {"t.weight", 0, "abc"},
                   {"t.weight", 1, "ppqq"}, {"t.bias", 0, "ppqq"}, {"u.weight", 0, "ppqq"},
                   {"u.weight", 1, "---"}, {"u.bias", 0, "pppqqq"}, {"b.weight", 1, "pppqqq"});
}

// ---- Moved channels ---------------------------------------------------------------------------

// Channels [2, 3] transposed to [3, 2] are reordered but stay separate units.
static void test_graph_channels__shuffle(void **state) {
    (void)state;
    struct net n = net_begin(11);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 6, 1, 1);
    int32_t s = net_unary(&n, MSC_OP_RESHAPE, "s", a, "shape", "2,2,3,3,3", NULL, NULL);
    int32_t t = net_unary(&n, MSC_OP_PERMUTE_DIMS, "t", s, "axes", "0,2,1,3,4", NULL, NULL);
    int32_t m = net_unary(&n, MSC_OP_RESHAPE, "m", t, "shape", "2,6,3,3", NULL, NULL);
    net_end(&n, 1, IDS(net_conv(&n, "b", m, 2, 1, 1)));
    CHECK_CHANNELS(&n, 6, {"a.weight", 0, "abcdef"}, {"b.weight", 1, "adbecf"});
}

// A list of indices with repeats selects channels. A channel that is not selected is a unit, too.
static void test_graph_channels__take(void **state) {
    (void)state;
    struct net n = net_begin(12);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 6, 1, 1);
    int32_t indices = net_indices(&n, "which", 6, DIMS(-1, 1, 1, 0, 2, 2));
    int32_t taken = add_joint(
        n.g, &(struct msc_joint_spec){.op = MSC_OP_TAKE,
                                      .name = "taken",
                                      .n_inputs = 1,
                                      .inputs = &a,
                                      .n_weights = 1,
                                      .weights = &(struct msc_weight_spec){"indices", indices},
                                      .n_attrs = 1,
                                      .attrs = &(struct msc_attr){"axis", "1"}});
    net_end(&n, 1, IDS(net_conv(&n, "b", taken, 2, 1, 1)));
    CHECK_CHANNELS(&n, 6, {"a.weight", 0, "abcdef"}, {"which", 0, "fbbacc"},
                   {"b.weight", 1, "fbbacc"});
}

// Padding makes new channels. In the sum, each of them belongs to the same unit as the channel that
// it is added to.
static void test_graph_channels__pad(void **state) {
    (void)state;
    struct net n = net_begin(13);
    int32_t x = IMAGE(&n, 2);
    int32_t a = net_conv(&n, "a", x, 2, 1, 1), b = net_conv(&n, "b", x, 5, 1, 1);
    int32_t p = net_unary(&n, MSC_OP_PAD, "p", a, "pad_width", "0,1,0,0,0,2,0,0", "pad_value", "2");
    int32_t sum = net_joint(&n, MSC_OP_ADD, "sum", 2, IDS(p, b), NULL, NULL);
    int32_t edge =
        net_unary(&n, MSC_OP_PAD, "edge", sum, "pad_width", "0,0,1,1,0,0,1,1", "pad_mode", "edge");
    net_end(&n, 1, IDS(net_conv(&n, "c", edge, 2, 1, 1)));
    CHECK_CHANNELS(&n, 5, {"a.weight", 0, "bc"}, {"b.weight", 0, "abcde"},
                   {"c.weight", 1, "abcde"});
}

static void test_graph_channels__repeated(void **state) {
    (void)state;
    struct net n = net_begin(14);
    int32_t a = net_conv(&n, "a", IMAGE(&n, 2), 2, 1, 1);
    int32_t t = net_unary(&n, MSC_OP_TILE, "t", a, "repeats", "1,2,1,1", NULL, NULL);
    int32_t b = net_conv(&n, "b", t, 8, 1, 1);
    int32_t space = net_unary(&n, MSC_OP_DEPTH_TO_SPACE, "space", b, "blocksize", "2", NULL, NULL);
    int32_t inner =
        net_unary(&n, MSC_OP_DEPTH_TO_SPACE, "inner", b, "blocksize", "2", "mode", "CRD");
    int32_t c = net_conv(&n, "c", space, 2, 1, 1);
    net_end(&n, 2, IDS(c, net_conv(&n, "d", inner, 2, 1, 1)));
    // Depth-to-space ties channels with equal i % 2 in DCR mode, and with equal i / 4 in CRD mode.
    // Together, one joint of each mode ties all channels of b into one unit, which cannot be
    // pruned.
    CHECK_CHANNELS(&n, 2 + 1, {"a.weight", 0, "ab"}, {"b.weight", 1, "abab"},
                   {"b.weight", 0, "xxxxxxxx"});
}

static void test_graph_channels__space(void **state) {
    (void)state;
    struct net n = net_begin(15);
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 4, 4));
    int32_t a = net_conv(&n, "a", x, 2, 1, 1);
    int32_t deep = net_unary(&n, MSC_OP_SPACE_TO_DEPTH, "deep", a, "blocksize", "2", NULL, NULL);
    int32_t inner =
        net_unary(&n, MSC_OP_SPACE_TO_DEPTH, "inner", a, "blocksize", "2", "mode", "CRD");
    net_end(&n, 2, IDS(net_conv(&n, "b", deep, 2, 1, 1), net_conv(&n, "c", inner, 2, 1, 1)));
    CHECK_CHANNELS(&n, 2, {"a.weight", 0, "ab"}, {"b.weight", 1, "abababab"},
                   {"c.weight", 1, "aaaabbbb"});
}

// ---- Reductions -------------------------------------------------------------------------------

// A mean over positions keeps channels apart. A mean or a softmax over channels needs all channels.
static void test_graph_channels__reductions(void **state) {
    (void)state;
    struct net n = net_begin(16);
    int32_t x = IMAGE(&n, 2);
    int32_t a = net_conv(&n, "a", x, 3, 1, 1), b = net_conv(&n, "b", x, 3, 1, 1);
    int32_t mean = net_unary(&n, MSC_OP_MEAN, "mean", a, "axis", "2,3", NULL, NULL);
    int32_t soft = net_unary(&n, MSC_OP_SOFTMAX, "soft", b, "axis", "1", NULL, NULL);
    int32_t most = net_unary(&n, MSC_OP_MAX, "most", b, "axis", "-1,", "keepdims", "1");
    net_end(&n, 3, IDS(net_linear(&n, "c", mean, 2), net_conv(&n, "d", soft, 2, 1, 1), most));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"c.weight", 1, "abc"}, {"b.weight", 0, "---"},
                   {"d.weight", 1, "---"});
}

static void test_graph_channels__norms(void **state) {
    (void)state;
    struct net n = net_begin(17);
    int32_t x = IMAGE(&n, 2);
    int32_t a = net_conv(&n, "a", x, 3, 1, 1), b = net_conv(&n, "b", x, 3, 1, 1);
    int64_t three = 3;
    const struct msc_weight_spec alone[] = {
        {"gamma", net_weight(&n, "alone.gamma", "O", 1, &three)},
        {"beta", net_weight(&n, "alone.beta", "O", 1, &three)}};
    int32_t i = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_INSTANCE_NORM,
                                                        .name = "alone",
                                                        .n_inputs = 1,
                                                        .inputs = &a,
                                                        .n_weights = 2,
                                                        .weights = alone});
    int32_t near = net_unary(&n, MSC_OP_LRN, "near", b, "size", "3", NULL, NULL);
    net_end(&n, 2, IDS(net_conv(&n, "c", i, 2, 1, 1), net_conv(&n, "d", near, 2, 1, 1)));
    CHECK_CHANNELS(&n, 3, {"a.weight", 0, "abc"}, {"alone.gamma", 0, "abc"},
                   {"b.weight", 0, "---"});
}

// ---- Groups of units --------------------------------------------------------------------------

// Compares a group with items "tensor@axis*indices". Each ends in m if the weight produces the
// units, or in r if the weight reads them.
static void check_group(const struct msc_graph *g, const struct msc_channel_group *group,
                        const char *expected) {
    struct msc_str text = {0};
    msc_str_printf(&text, "%s: %d of", group->name, (int)group->n_units);
    for (int32_t i = 0; i < group->n_axes; i++) {
        const struct msc_channel_axis *a = &group->axes[i];
        const struct msc_tensor *t = msc_graph_tensor(g, a->tensor);
        if (t->producer == MSC_NO_ID) {
            msc_str_printf(&text, " %s@%d*%d%s%s", t->name, a->axis, (int)a->n,
                           a->roles & MSC_CHANNEL_MAKES ? "m" : "",
                           a->roles & MSC_CHANNEL_READS ? "r" : "");
        }
    }
    assert_string_equal(msc_str_text(&text), expected);
    msc_str_finish(&text);
}

// The two halves of one layer's channels are used differently and form two groups.
static void test_graph_channels__groups_of_units(void **state) {
    (void)state;
    struct net n = net_begin(18);
    struct msc_sites sites;
    struct msc_channels c;
    struct msc_graph *small;
    bool is_gone[4] = {true, false, true, true};
    int32_t joint, a = net_conv(&n, "a", IMAGE(&n, 2), 4, 1, 1);
    const struct msc_attr cuts[] = {{"axis", "1"}, {"indices_or_sections", "2,"}};
    assert_ok(msc_graph_add_joint(&joint, n.g,
                                  &(struct msc_joint_spec){.op = MSC_OP_SPLIT,
                                                           .name = "halves",
                                                           .n_inputs = 1,
                                                           .inputs = &a,
                                                           .n_attrs = 2,
                                                           .attrs = cuts,
                                                           .n_outputs = 2}));
    int32_t deep = net_conv(&n, "deep", msc_graph_joint(n.g, joint)->outputs[0], 4, 3, 2);
    int32_t b = net_conv(&n, "b", deep, 2, 1, 1);
    net_end(&n, 2, IDS(b, net_conv(&n, "c", msc_graph_joint(n.g, joint)->outputs[1], 3, 1, 1)));
    assert_ok(msc_sites_find(&sites, n.g, NULL));
    assert_ok(msc_channels_find(&c, n.g, &sites));
    assert_int_equal(c.n_groups, 2);
    check_group(n.g, &c.groups[0],
                "a.weight: 2 of a.weight@0*1m a.bias@0*1 deep.weight@0*2 deep.bias@0*2 "
                "b.weight@1*2r");
    check_group(n.g, &c.groups[1], "a.weight_1: 2 of a.weight@0*1m a.bias@0*1 c.weight@1*1r");
    assert_int_equal(msc_graph_prune(&small, n.g, &c, is_gone, NULL), MSC_E_INVALID);
    assert_message("channels of a.weight_1: all 2 would be pruned, at least one must remain");
    // Parameters before pruning: 8 + 4 of a, 36 + 4 of deep, 8 + 2 of b, and 6 + 3 of c. There are
    // 18 output positions.
    struct msc_channel_cost cost;
    is_gone[3] = false;
    assert_ok(msc_channels_cost(&cost, &c, n.g, is_gone));
    assert_true(cost.parameters == (4 + 2) + (18 + 2) + (4 + 2) + (3 + 3));
    assert_true(cost.macs == 18 * (4 + 18 + 4 + 3));
    msc_channels_finish(&c);
    msc_channels_finish(&c);
    msc_sites_finish(&sites);
    check_masked_and_pruned(n.g, 5);
    msc_graph_destroy(n.g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_channels__conv_and_linear),
        cmocka_unit_test(test_graph_channels__batch_norm_and_slope),
        cmocka_unit_test(test_graph_channels__residual),
        cmocka_unit_test(test_graph_channels__outputs),
        cmocka_unit_test(test_graph_channels__broadcast),
        cmocka_unit_test(test_graph_channels__concat_split_slice),
        cmocka_unit_test(test_graph_channels__depthwise),
        cmocka_unit_test(test_graph_channels__groups),
        cmocka_unit_test(test_graph_channels__positions),
        cmocka_unit_test(test_graph_channels__transposed),
        cmocka_unit_test(test_graph_channels__shuffle),
        cmocka_unit_test(test_graph_channels__take),
        cmocka_unit_test(test_graph_channels__pad),
        cmocka_unit_test(test_graph_channels__repeated),
        cmocka_unit_test(test_graph_channels__space),
        cmocka_unit_test(test_graph_channels__reductions),
        cmocka_unit_test(test_graph_channels__norms),
        cmocka_unit_test(test_graph_channels__groups_of_units),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
