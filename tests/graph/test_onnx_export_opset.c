// The opset of an exported model: the lowest that has its operator, types and attributes. Expected
// numbers are from onnx.defs of onnx 1.23, IR versions from onnx.helper.VERSION_TABLE.
#include "tests/graph/onnx_nets.h"

struct row {
    enum msc_op op;
    enum msc_dtype dtype;
    int n_inputs;
    struct msc_attr attrs[4];
    int noted; // the opset in the notes of the graph; 0: none
    int opset, ir_version;
};

static const struct row rows[] = {
    {MSC_OP_RELU, MSC_DTYPE_F32, 1, {{0}}, 0, 13, 7},
    {MSC_OP_RELU, MSC_DTYPE_F32, 1, {{0}}, 18, 18, 8},
    {MSC_OP_RELU, MSC_DTYPE_F32, 1, {{0}}, 28, 21, 10}, // newer opsets are not kept
    {MSC_OP_CUMPROD, MSC_DTYPE_F32, 1, {{"axis", "1"}}, 0, 26, 13},
    {MSC_OP_BIT_CAST, MSC_DTYPE_F32, 1, {{"dtype", "int32"}}, 28, 26, 13},
    {MSC_OP_TENSOR_SCATTER, MSC_DTYPE_F32, 2, {{0}}, 0, 24, 12},
    {MSC_OP_SPACE_TO_DEPTH, MSC_DTYPE_F32, 1, {{"blocksize", "2"}}, 0, 13, 7},
    {MSC_OP_SPACE_TO_DEPTH, MSC_DTYPE_F32, 1, {{"blocksize", "2"}, {"mode", "CRD"}}, 0, 28, 14},
    {MSC_OP_RIGHT_SHIFT, MSC_DTYPE_U8, 2, {{0}}, 0, 13, 7},
    {MSC_OP_RIGHT_SHIFT, MSC_DTYPE_I8, 2, {{0}}, 0, 28, 14},
    {MSC_OP_FLOOR_MOD, MSC_DTYPE_I32, 2, {{0}}, 0, 13, 7},
    {MSC_OP_FLOOR_MOD, MSC_DTYPE_F32, 2, {{0}}, 0, 28, 14},
    {MSC_OP_ELU, MSC_DTYPE_BF16, 1, {{0}}, 0, 22, 10},
    {MSC_OP_ABS, MSC_DTYPE_BF16, 1, {{0}}, 0, 16, 8},
    {MSC_OP_CELU, MSC_DTYPE_F16, 1, {{0}}, 0, 28, 14},
    {MSC_OP_MAX_POOL2D,
     MSC_DTYPE_F32,
     1,
     {{"pool_size", "2,2"}, {"strides", "3,3"}, {"ceil_mode", "1"}},
     0,
     13,
     7},
    // A second window would begin in the padding.
    {MSC_OP_MAX_POOL2D,
     MSC_DTYPE_F32,
     1,
     {{"pool_size", "3,3"}, {"strides", "5,5"}, {"ceil_mode", "1"}, {"padding", "1,1,2,2"}},
     0,
     22,
     10},
};

static int n_attrs(const struct row *row) {
    int n = 0;
    while (n < 4 && row->attrs[n].key != NULL) {
        n++;
    }
    return n;
}

static struct msc_graph *make_graph(const struct row *row) {
    struct msc_graph *g;
    int32_t x;
    assert_ok(msc_graph_create(&g, "one"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, row->dtype, "NCHW", 4, DIMS(1, 2, 4, 4)));
    int32_t y = add_joint(g, &(struct msc_joint_spec){.op = row->op,
                                                      .name = "last",
                                                      .n_inputs = row->n_inputs,
                                                      .inputs = IDS(x, x),
                                                      .n_attrs = n_attrs(row),
                                                      .attrs = row->attrs});
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    const struct msc_graph_notes notes = {.opset = row->noted};
    assert_ok(msc_graph_set_notes(g, &notes));
    return g;
}

static void test_graph_onnx_export_opset__least(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_graph *g = make_graph(&rows[i]);
        Onnx__ModelProto *model;
        assert_ok(msc_onnx_save(g, scratch, &(struct msc_onnx_export_options){0}));
        assert_ok(msc_onnx_model_read(&model, scratch));
        if (model->opset_import[0]->version != rows[i].opset) {
            print_error("row %zu: opset %lld, expected %d\n", i,
                        (long long)model->opset_import[0]->version, rows[i].opset);
            fail();
        }
        assert_int_equal(model->ir_version, rows[i].ir_version);
        msc_onnx_model_free(model);
        msc_graph_destroy(g);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export_opset__least),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
