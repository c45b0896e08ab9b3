// Joints that only move data (transpose, concat), for targets that pass integers through them.
// Expected counts are worked out by hand.
#include "tests/graph/onnx_nets.h"

// x and its transpose are concatenated. A convolution reads the result, which is also a model
// output.
static void make_moved(struct net *n, const char *target) {
    static const float half = 0.5f;
    static const int32_t seven = 7;
    static struct msc_edit whole;
    whole = make_edit(8, 0, 255, &half, &seven);
    *n = (struct net){0};
    assert_ok(msc_graph_create(&n->g, "moved"));
    add_input(n->g, "x", "NCHW", 4, DIMS(1, 4, 4, 4));
    int32_t x = msc_graph_find_tensor(n->g, "x:0");
    int32_t w = add_weight(n->g, "w", "OIHW", 4, DIMS(2, 8, 1, 1));
    int32_t turned =
        add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_PERMUTE_DIMS,
                                                 .name = "turned",
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_attrs = 1,
                                                 .attrs = &(struct msc_attr){"axes", "0,1,3,2"}});
    int32_t both =
        add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_CONCAT,
                                                 .name = "both",
                                                 .n_inputs = 2,
                                                 .inputs = IDS(x, turned),
                                                 .n_attrs = 1,
                                                 .attrs = &(struct msc_attr){"axis", "1"}});
    finish_outputs(n, 2, IDS(both, add_conv(n->g, "conv", both, w)), target);
    for (int32_t i = 0; i < n->sites.n_slots; i++) {
        n->edits[i] = n->sites.slots[i].kind == MSC_SITE_ACTIVATION ? &whole : NULL;
    }
}

// Integers are moved, then dequantised. The result has the name of the float value.
static void test_graph_onnx_export_moved__integers(void **state) {
    (void)state;
    struct net n;
    make_moved(&n, "openvino");
    export_net(&n);
    assert_int_equal(count(&n, "QuantizeLinear"), 1);
    assert_int_equal(count(&n, "DequantizeLinear"), 1);
    const Onnx__NodeProto *pair = maker(&n, node_of(&n, "Conv")->input[0]);
    const Onnx__NodeProto *both = maker(&n, pair->input[0]);
    assert_string_equal(pair->op_type, "DequantizeLinear");
    assert_string_equal(pair->output[0], "both");
    assert_string_equal(n.model->graph->output[0]->name, "both");
    check_bytes(&n, pair->input[2], MSC_ONNX_UINT8, 1, "\7");
    assert_string_equal(both->op_type, "Concat");
    assert_string_equal(maker(&n, both->input[0])->op_type, "QuantizeLinear");
    assert_string_equal(maker(&n, both->input[1])->op_type, "Transpose");
    assert_string_equal(maker(&n, both->input[1])->input[0], both->input[0]);
    finish_net(&n);
}

// Values are moved as floats if another consumer reads them as floats or with another range. If a
// target wants QDQ pairs after moves, all values are moved as floats.
static void test_graph_onnx_export_moved__floats(void **state) {
    (void)state;
    struct net n;
    static const float tenth = 0.1f;
    static const int32_t zero = 0;
    struct msc_edit other = make_edit(8, 0, 255, &tenth, &zero);
    const struct msc_edit *edits[] = {&other, NULL};
    for (int i = 0; i < 2; i++) {
        make_moved(&n, "openvino");
        edit_tensor(&n, "turned:0", edits[i]);
        export_net(&n);
        const Onnx__NodeProto *turned = node_of(&n, "Transpose"), *both = node_of(&n, "Concat");
        assert_string_equal(maker(&n, turned->input[0])->op_type, "DequantizeLinear");
        assert_string_equal(maker(&n, both->input[0])->op_type, "DequantizeLinear");
        assert_int_equal(count(&n, "QuantizeLinear"), 3 - i);
        finish_net(&n);
    }
    make_moved(&n, "tflite");
    export_net(&n);
    assert_int_equal(count(&n, "QuantizeLinear"), 4); // one quantises conv's output
    finish_net(&n);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export_moved__integers),
        cmocka_unit_test(test_graph_onnx_export_moved__floats),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
