// Embedding tables of integers, from which Gather takes rows. Expected bytes are worked out by
// hand.
#include "tests/graph/onnx_nets.h"

static const float half = 0.5f;
static const int32_t zero = 0;

enum { COLUMNS = 1 << 15 }; // two rows of so many columns are not a small table

static int8_t clipped(int value) {
    return (int8_t)(value < 127 ? value : 127);
}

// Adds a table of two rows with the elements 0, 1, 2, ... and returns its tensor.
static int32_t start_table(struct net *n, int64_t columns) {
    *n = (struct net){0};
    assert_ok(msc_graph_create(&n->g, "table"));
    int32_t table = add_weight(n->g, "table", "", 2, DIMS(2, columns));
    return add_joint(
        n->g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                       .name = "held",
                                       .n_weights = 1,
                                       .weights = &(struct msc_weight_spec){"const", table}});
}

// Takes rows of the table by indices from a model input.
static int32_t add_take(struct msc_graph *g, const char *name, const char *input, int32_t table) {
    int32_t indices;
    assert_ok(msc_graph_add_input(&indices, g, input, NULL, MSC_DTYPE_I64, "", 1, DIMS(3)));
    return add_joint(
        g, &(struct msc_joint_spec){
               .op = MSC_OP_TAKE, .name = name, .n_inputs = 2, .inputs = IDS(table, indices)});
}

// The rows have scales of 0.5 and 1.
static void test_graph_onnx_export_table__rows(void **state) {
    (void)state;
    struct net n;
    int32_t table = start_table(&n, COLUMNS);
    finish_graph(&n, add_take(n.g, "take", "i", table), "onnxruntime");
    struct msc_edit rows =
        msc_edit_quantize((struct msc_quant){.bits = 8,
                                             .low = -127,
                                             .high = 127,
                                             .axis = 0,
                                             .n = 2,
                                             .scales = (const float[]){0.5f, 1},
                                             .zero_points = (const int32_t[]){0, 0}});
    edit_tensor(&n, "table", &rows);
    export_net(&n);
    assert_int_equal(count(&n, "DequantizeLinear"), 0);
    const Onnx__NodeProto *scale = maker(&n, "take");
    assert_string_equal(scale->op_type, "Mul");
    const Onnx__NodeProto *integers = maker(&n, maker(&n, scale->input[0])->input[0]);
    assert_string_equal(integers->op_type, "Gather");
    static int8_t elements[2 * COLUMNS];
    for (int i = 0; i < 2 * COLUMNS; i++) {
        elements[i] = clipped(i < COLUMNS ? 2 * i : i);
    }
    check_bytes(&n, integers->input[0], MSC_ONNX_INT8, sizeof elements, elements);
    check_bytes(&n, maker(&n, scale->input[1])->input[0], MSC_ONNX_FLOAT, 8,
                (const float[]){0.5f, 1});
    finish_net(&n);
}

// A table that two joints read is stored once.
static void test_graph_onnx_export_table__shared(void **state) {
    (void)state;
    struct net n;
    int32_t table = start_table(&n, COLUMNS);
    int32_t y = add_joint(
        n.g, &(struct msc_joint_spec){.op = MSC_OP_ADD,
                                      .name = "both",
                                      .n_inputs = 2,
                                      .inputs = IDS(add_take(n.g, "first", "i", table),
                                                    add_take(n.g, "second", "k", table))});
    finish_graph(&n, y, "onnxruntime");
    struct msc_edit whole = make_edit(8, -128, 127, &half, &zero);
    edit_tensor(&n, "table", &whole);
    export_net(&n);
    const Onnx__NodeProto *sum = maker(&n, "both");
    const Onnx__NodeProto *taken[2];
    for (int i = 0; i < 2; i++) {
        const Onnx__NodeProto *scale = maker(&n, sum->input[i]);
        assert_string_equal(scale->op_type, "Mul");
        taken[i] = maker(&n, maker(&n, scale->input[0])->input[0]);
        assert_string_equal(taken[i]->op_type, "Gather");
    }
    assert_string_equal(taken[0]->input[0], taken[1]->input[0]);
    assert_string_not_equal(taken[0]->input[1], taken[1]->input[1]);
    static int8_t elements[2 * COLUMNS];
    for (int i = 0; i < 2 * COLUMNS; i++) {
        elements[i] = clipped(2 * i);
    }
    check_bytes(&n, taken[0]->input[0], MSC_ONNX_INT8, sizeof elements, elements);
    finish_net(&n);
}

// The runtime converts a small table to floats at load.
static void test_graph_onnx_export_table__small(void **state) {
    (void)state;
    struct net n;
    int32_t table = start_table(&n, 2);
    finish_graph(&n, add_take(n.g, "take", "i", table), "onnxruntime");
    struct msc_edit whole = make_edit(8, -128, 127, &half, &zero);
    edit_tensor(&n, "table", &whole);
    export_net(&n);
    const Onnx__NodeProto *take = maker(&n, "take");
    assert_string_equal(take->op_type, "Gather");
    const Onnx__NodeProto *scale = maker(&n, take->input[0]);
    assert_string_equal(scale->op_type, "Mul");
    const Onnx__NodeProto *cast = maker(&n, scale->input[0]);
    assert_string_equal(cast->op_type, "Cast");
    check_bytes(&n, cast->input[0], MSC_ONNX_INT8, 4, "\0\2\4\6");
    finish_net(&n);
}

// Rows that a convolution reads as integers, for a target that moves integers: only the rows are
// quantised, because no tensor of integers comes before them.
static void test_graph_onnx_export_table__moved(void **state) {
    (void)state;
    struct net n;
    int32_t rows = add_take(n.g, "take", "i", start_table(&n, 2));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 1, 1, 1));
    int32_t image = add_joint(n.g, &(struct msc_joint_spec){
                                       .op = MSC_OP_EXPAND_DIMS,
                                       .name = "image",
                                       .n_inputs = 1,
                                       .inputs = &rows,
                                       .n_attrs = 1,
                                       .attrs = &(struct msc_attr){"axis", "0,1"},
                                   });
    finish_graph(&n, add_conv(n.g, "conv", image, w), "openvino");
    struct msc_edit whole = make_edit(8, -128, 127, &half, &zero);
    for (int32_t i = 0; i < n.sites.n_slots; i++) {
        bool is_moved = n.sites.slots[i].kind == MSC_SITE_ACTIVATION;
        n.edits[i] = is_moved ? &whole : NULL;
    }
    export_net(&n);
    const Onnx__NodeProto *pair = maker(&n, node_of(&n, "Conv")->input[0]);
    assert_string_equal(pair->op_type, "DequantizeLinear");
    const Onnx__NodeProto *moved = maker(&n, pair->input[0]);
    assert_string_equal(moved->op_type, "Unsqueeze");
    assert_string_equal(maker(&n, moved->input[0])->op_type, "QuantizeLinear");
    assert_string_equal(maker(&n, maker(&n, moved->input[0])->input[0])->op_type, "Gather");
    assert_int_equal(count(&n, "QuantizeLinear"), 1);
    finish_net(&n);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export_table__rows),
        cmocka_unit_test(test_graph_onnx_export_table__shared),
        cmocka_unit_test(test_graph_onnx_export_table__small),
        cmocka_unit_test(test_graph_onnx_export_table__moved),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
