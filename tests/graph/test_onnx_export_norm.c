// Euclidean norms, sqrt(sum(x * x)): one node for ONNX Runtime, unless another joint reads a part.
#include "tests/graph/onnx_nets.h"

static void make_norm(struct net *n, const char *target, bool shows_sum) {
    *n = (struct net){0};
    const struct msc_attr axes[] = {{"axis", "-1"}, {"keepdims", "1"}};
    assert_ok(msc_graph_create(&n->g, "norm"));
    int32_t x = add_input(n->g, "x", "", 2, DIMS(3, 4));
    int32_t square = add_joint(
        n->g, &(struct msc_joint_spec){
                  .op = MSC_OP_MULTIPLY, .name = "square", .n_inputs = 2, .inputs = IDS(x, x)});
    int32_t sum = add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_SUM,
                                                           .name = "sum",
                                                           .n_inputs = 1,
                                                           .inputs = &square,
                                                           .n_attrs = 2,
                                                           .attrs = axes});
    int32_t root = add_unary(n->g, MSC_OP_SQRT, "root", sum);
    int32_t y = add_unary(n->g, MSC_OP_NEGATIVE, "y", root);
    if (shows_sum) {
        y = add_joint(n->g,
                      &(struct msc_joint_spec){
                          .op = MSC_OP_ADD, .name = "both", .n_inputs = 2, .inputs = IDS(y, sum)});
    }
    finish_graph(n, y, target);
    export_net(n);
}

static void test_graph_onnx_export_norm__fused(void **state) {
    (void)state;
    struct net n;
    make_norm(&n, "onnxruntime", false);
    const Onnx__NodeProto *norm = node_of(&n, "ReduceL2");
    assert_string_equal(norm->input[0], "x");
    assert_string_equal(norm->output[0], "root:0");
    assert_int_equal(n.model->graph->n_node, 2);
    finish_net(&n);
}

static void test_graph_onnx_export_norm__kept(void **state) {
    (void)state;
    static const struct {
        const char *target;
        bool shows_sum;
    } rows[] = {{"generic", false}, {"onnxruntime", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct net n;
        make_norm(&n, rows[i].target, rows[i].shows_sum);
        assert_int_equal(count(&n, "ReduceL2"), 0);
        assert_int_equal(count(&n, "ReduceSum"), 1);
        assert_int_equal(count(&n, "Sqrt"), 1);
        finish_net(&n);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export_norm__fused),
        cmocka_unit_test(test_graph_onnx_export_norm__kept),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
