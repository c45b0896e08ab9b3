// Multiply-accumulates of a recurrent layer and a convolution. Expected values are worked out by
// hand.
#include "graph/cost.h"

#include "tests/graph/graph_samples.h"

static int32_t add_lstm(struct msc_graph *g, int32_t x) {
    const struct msc_weight_spec weights[2] = {
        {"weight", add_weight(g, "w", "", 3, DIMS(2, 16, 3))},
        {"recurrence", add_weight(g, "r", "", 3, DIMS(2, 16, 4))}};
    const struct msc_attr attrs[2] = {{"direction", "bidirectional"}, {"hidden_size", "4"}};
    return add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_LSTM,
                                                 .name = "lstm",
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_weights = 2,
                                                 .weights = weights,
                                                 .n_attrs = 2,
                                                 .attrs = attrs});
}

// Products are counted for 5 steps, 2 samples, 2 directions and 4 gates of 4 units. This count is
// multiplied by the number of inputs: 3 in the first product, and 4 units of the state in the
// second.
static void test_graph_cost__recurrent(void **state) {
    struct msc_graph *g;
    struct msc_product products[2];
    (void)state;
    assert_ok(msc_graph_create(&g, "recurrent"));
    int32_t y = add_lstm(g, add_input(g, "x", "", 3, DIMS(5, 2, 3)));
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    const struct msc_joint *lstm = msc_graph_joint(g, find(g, "lstm"));
    assert_int_equal(msc_joint_products(products, g, lstm), 2);
    assert_true(products[0].macs == 10.0 * 2 * 16 * 3);
    assert_int_equal(products[0].operands[0], 0);
    assert_int_equal(products[0].operands[1], 1);
    assert_true(products[1].macs == 10.0 * 2 * 16 * 4);
    assert_int_equal(products[1].operands[0], MSC_NO_ID);
    assert_int_equal(products[1].operands[1], 2);
    assert_true(msc_joint_macs(g, lstm) == 10.0 * 2 * 16 * 7);
    msc_graph_destroy(g);
}

// A 3 x 3 convolution from 3 to 8 channels with 8 x 8 positions. The relu has no
// multiply-accumulates.
static void test_graph_cost__convolution(void **state) {
    struct msc_graph *g;
    (void)state;
    assert_ok(msc_graph_create(&g, "convolution"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(2, 3, 10, 10));
    x = add_conv(g, "conv", x, add_weight(g, "w", "OIHW", 4, DIMS(8, 3, 3, 3)));
    x = add_unary(g, MSC_OP_RELU, "relu", x);
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    struct msc_product products[2];
    double macs = msc_joint_macs(g, msc_graph_joint(g, find(g, "conv")));
    double padded = (double)msc_graph_tensor(g, msc_graph_find_tensor(g, "conv:0"))->dims[2];
    assert_true(macs == 2.0 * 8 * padded * padded * 27);
    assert_int_equal(msc_joint_products(products, g, msc_graph_joint(g, find(g, "relu"))), 0);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_cost__recurrent),
        cmocka_unit_test(test_graph_cost__convolution),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
