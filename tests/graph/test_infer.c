// Shape inference of every operator. Expected shapes come from torch 1.13 and numpy 1.24 on
// arrays of these shapes, or follow from the operator's definition.
#include "graph/infer.h"

#include "graph/graph_internal.h"
#include "tests/graph/graph_samples.h"
#include "tests/joint_attrs.h"

#define MAX_OPERANDS 4

struct shape {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
};
#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {                                      \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

struct shape_case {
    enum msc_op op;
    struct shape operands[MAX_OPERANDS];
    const char *attrs;    // "key=value;key=value"
    const char *expected; // shapes of the outputs, or part of the error message
    enum msc_dtype dtype; // type of the inputs; NONE: float32
};

static const struct shape_case cases[] = {
    {MSC_OP_CONV1D,
     {S(2, 4, 17), S(6, 2, 5)},
     "strides=3,;padding=2,2;dilation=2,;groups=2",
     "[2,6,5]",
     0},
    {MSC_OP_CONV2D,
     {S(1, 3, 11, 14), S(8, 3, 3, 5)},
     "strides=2,3;padding=1,2,1,2",
     "[1,8,6,5]",
     0},
    {MSC_OP_CONV2D, {S(1, 4, 20, 21), S(4, 1, 3, 3)}, "dilation=3,4;groups=4", "[1,4,14,13]", 0},
    {MSC_OP_CONV2D,
     {S(1, 14, 11, 3), S(8, 3, 3, 5)},
     "data_layout=NWHC;out_layout=NWHC;strides=2,3;padding=1,2,1,2",
     "[1,5,6,8]",
     0},
    {MSC_OP_CONV3D, {S(1, 2, 7, 8, 9), S(5, 2, 3, 2, 1)}, "strides=2,1,3", "[1,5,3,7,3]", 0},
    {MSC_OP_CONV2D,
     {S(1, 3, 8, 8), S(8, 4, 3, 3)},
     "",
     "input has 3 channels, but the weight expects 4",
     0},
    {MSC_OP_CONV2D,
     {S(1, 3, 2, 8), S(8, 3, 3, 3)},
     "",
     "a window of 3 does not fit in a length of 2",
     0},
    {MSC_OP_CONV2D_BIAS,
     {S(1, 3, 8, 8), S(8, 3, 3, 3), S(7)},
     "",
     "bias has 7 elements, expected 8",
     0},
    {MSC_OP_CONV2D_TRANSPOSE,
     {S(1, 4, 5, 6), S(4, 3, 3, 4)},
     "strides=2,3;padding=1,0,1,0;output_padding=1,2;groups=2;dilation=2,1",
     "[1,6,12,21]",
     0},
    {MSC_OP_MAX_POOL2D,
     {S(1, 3, 10, 13)},
     "pool_size=3,2;strides=2,3;padding=1,0,1,0",
     "[1,3,5,4]",
     0},
    // In torch, with ceil_mode, no window may start inside the padding at the end.
    {MSC_OP_MAX_POOL2D,
     {S(1, 1, 5, 7)},
     "pool_size=2,2;strides=3,3;padding=1,1,1,1;ceil_mode=1",
     "[1,1,2,3]",
     0},
    {MSC_OP_AVG_POOL2D,
     {S(1, 1, 7, 8)},
     "pool_size=3,3;strides=4,4;padding=1,1,1,1;ceil_mode=1",
     "[1,1,2,3]",
     0},
    {MSC_OP_GLOBAL_AVG_POOL, {S(2, 3, 4, 5)}, "", "[2,3,1,1]", 0},
    {MSC_OP_LINEAR, {S(7, 5, 3), S(4, 3)}, "", "[7,5,4]", 0},
    {MSC_OP_LINEAR, {S(7, 5, 4), S(4, 3)}, "", "cannot be multiplied", 0},
    {MSC_OP_MATMUL, {S(2, 1, 3, 4), S(5, 4, 6)}, "", "[2,5,3,6]", 0},
    {MSC_OP_MATMUL, {S(4), S(5, 4, 6)}, "", "[5,6]", 0},
    {MSC_OP_MATMUL, {S(5, 4, 6), S(6)}, "", "[5,4]", 0},
    {MSC_OP_MATMUL, {S(5, 4), S(5, 4)}, "", "[5,4] and [5,4] cannot be multiplied", 0},
    {MSC_OP_GEMM, {S(3, 2), S(4, 3), S(4)}, "trans_a=1;trans_b=1", "[2,4]", 0},
    {MSC_OP_GEMM, {S(3, 2), S(4, 3), S(3)}, "trans_a=1;trans_b=1", "broadcast", 0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "scales=1,1,0.6,2.5", "[1,2,3,17]", 0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "size=1,2,3,4", "[1,2,3,4]", 0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "axes=2,3;size=3,4", "[1,2,3,4]", 0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "axes=-1,;scales=2.5,", "[1,2,5,17]", 0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "scales=1,1,inf,1", "expected numbers separated by commas", 0},
    {MSC_OP_PAD, {S(2, 3)}, "pad_width=0,1,0,1;pad_value=-inf", "[2,5]", 0},
    {MSC_OP_PAD, {S(2, 3)}, "pad_width=0,1,0,1;pad_value=nan", "expected a number", 0},
    {MSC_OP_STRIDED_SLICE,
     {S(2, 0)},
     "begin=-1,;end=-9223372036854775807,;axes=1,;strides=-1,",
     "[2,0]",
     0},
    {MSC_OP_STRIDED_SLICE,
     {S(2, 3)},
     "begin=-1,;end=-9223372036854775807,;axes=1,;strides=-2,",
     "[2,2]",
     0},
    {MSC_OP_SPACE_TO_DEPTH, {S(1, 3, 4, 6)}, "blocksize=2;mode=CRD", "[1,12,2,3]", 0},
    {MSC_OP_CUMPROD, {S(2, 3)}, "axis=1", "[2,3]", 0},
    {MSC_OP_BIT_CAST, {S(2, 3)}, "dtype=int32", "[2,3]", 0},
    {MSC_OP_BIT_CAST,
     {S(2, 3)},
     "dtype=float64",
     "the bits of float32 cannot become 'float64', expected a type of 32 bits",
     0},
    {MSC_OP_TENSOR_SCATTER, {S(2, 4, 5), S(2, 3, 5)}, "", "[2,4,5]", 0},
    {MSC_OP_TENSOR_SCATTER,
     {S(2, 4, 5), S(2, 3, 4)},
     "",
     "updates of [2,3,4] do not fit [2,4,5] along axis 1",
     0},
    {MSC_OP_TENSOR_SCATTER,
     {S(2, 4, 5), S(2, 6, 5)},
     "",
     "updates of [2,6,5] do not fit [2,4,5] along axis 1",
     0},
    {MSC_OP_TENSOR_SCATTER,
     {S(2, 4, 5), S(2, 3, 5)},
     "mode=round",
     "mode is 'round', expected linear or circular",
     0},
    {MSC_OP_LINEAR_ATTENTION,
     {S(2, 7, 12), S(2, 7, 6), S(2, 7, 10)},
     "q_num_heads=4;kv_num_heads=2;update_rule=linear",
     "[2,7,20]",
     0},
    {MSC_OP_LINEAR_ATTENTION,
     {S(2, 7, 12), S(2, 7, 6), S(2, 7, 10), S(2, 2, 3, 4)},
     "q_num_heads=4;kv_num_heads=2;update_rule=linear",
     "its operands have shapes that do not fit each other",
     0},
    {MSC_OP_LINEAR_ATTENTION,
     {S(2, 7, 12), S(2, 7, 6), S(2, 7, 10)},
     "q_num_heads=4;kv_num_heads=3;update_rule=linear",
     "4 query heads cannot share 3 heads of keys and values",
     0},
    {MSC_OP_DFT, {S(2, 5, 2)}, "axis=1;inverse=1;onesided=1", "[2,8,1]", 0},
    {MSC_OP_DFT, {S(2, 5, 2)}, "axis=1;inverse=1;onesided=1;dft_length=9", "[2,9,1]", 0},
    {MSC_OP_PRELU, {S(1), S(3)}, "", "the slope has length 3 along axis 0, but the input has 1", 0},
    {MSC_OP_ARANGE,
     {S(1), S(3, 1), S(1)},
     "",
     "operand 1 is float32 [3,1], expected a single float32",
     0},
    {MSC_OP_ARANGE,
     {S(1), S(1), S(0)},
     "",
     "operand 2 is float32 [0], expected a single float32",
     0},
    {MSC_OP_GRID_SAMPLE, {S(1, 2, 4, 4), S(3, 5, 5, 2)}, "", "a grid of [3,5,5,2]", 0},
    {MSC_OP_ROI_ALIGN,
     {S(1, 2, 4, 4), S(3, 4), S(2)},
     "output_height=2;output_width=2",
     "regions of [3,4] do not match batch indices of [2]",
     0},
    {MSC_OP_ROI_ALIGN,
     {S(1, 2, 4, 4), S(3, 4), S(3)},
     "output_height=2;output_width=2;sampling_ratio=4294967297",
     "4294967297 samples per bin and axis, expected at most 4096",
     0},
    {MSC_OP_MAX_UNPOOL,
     {S(1, 1, 2, 2), S(1, 1, 2, 1)},
     "kernel_shape=2,2;strides=2,2;pads=0,0,0,0",
     "axis 3 of the indices has length 1, but 2 in the input",
     0},
    {MSC_OP_GROUP_NORM,
     {S(1, 4, 2), S(4), S(2)},
     "num_groups=2",
     "2 groups do not fit the channels of [1,4,2]",
     0},
    {MSC_OP_LRN, {S(2, 3)}, "size=3", "[2,3]", 0},
    {MSC_OP_LRN, {S(3)}, "size=3", "windows of 3 channels do not fit [3]", 0},
    {MSC_OP_LRN, {S(2, 3)}, "size=0", "windows of 0 channels do not fit [2,3]", 0},
    {MSC_OP_MATMUL_INTEGER,
     {S(2, 3), S(3, 4), S(1), S(3)},
     "",
     "operand 3 is [3], expected one element or one for each row or channel",
     MSC_DTYPE_I8},
    {MSC_OP_DEFORM_CONV,
     {S(1, 2, 4, 4), S(3, 2, 2, 2), S(1, 4, 3, 3)},
     "group=1;offset_group=1",
     "offsets of [1,4,3,3]",
     0},
    {MSC_OP_COL2IM,
     {S(1, 5, 4)},
     "image_shape=3,3;block_shape=2,2",
     "5 rows are not divisible into blocks of 4",
     0},
    {MSC_OP_AFFINE_GRID, {S(2, 2, 2)}, "size=2,3,5,5", "maps of [2,2,2]", 0},
    {MSC_OP_GATHER_ND,
     {S(2, 3), S(5, 1)},
     "batch_dims=1",
     "batch dimension 0 has length 2, but 5 in the indices",
     MSC_DTYPE_I64},
    {MSC_OP_GATHER_ND,
     {S(2, 3), S(5, 1)},
     "batch_dims=4294967296",
     "4294967296 batch dimensions",
     MSC_DTYPE_I64},
    {MSC_OP_ONE_HOT, {S(3), S(1), S(1)}, "", "values are [1], expected [2]", MSC_DTYPE_I64},
    {MSC_OP_NON_MAX_SUPPRESSION,
     {S(1, 6, 4), S(1, 2, 7)},
     "",
     "boxes of [1,6,4] do not match scores of [1,2,7]",
     0},
    {MSC_OP_STRIDED_SLICE,
     {S(10, 10)},
     "begin=9,9;end=10,10;axes=0,-2",
     "axis 0 is given twice",
     0},
    {MSC_OP_RESIZE, {S(1, 2, 5, 7)}, "size=3,4", "size has 2 numbers, expected 4", 0},
    {MSC_OP_BATCH_NORM,
     {S(1, 3, 2, 2), S(3), S(3), S(3)},
     "",
     "lacks its required operand 'var'",
     0},
    {MSC_OP_SOFTMAX, {S(2, 3)}, "axis=2", "axis 2 is out of range", 0},
    {MSC_OP_CAST, {S(2, 3)}, "dtype=int7", "unknown element type 'int7'", 0},
    {MSC_OP_ADD, {S(2, 1, 4), S(3, 1)}, "", "[2,3,4]", 0},
    {MSC_OP_ADD, {S(2, 4), S(3)}, "", "shapes [2,4] and [3] cannot be broadcast", 0},
    {MSC_OP_MAXIMUM, {S(4), S(3, 1), S(2, 1, 1)}, "", "[2,3,4]", 0},
    {MSC_OP_MEAN, {S(2, 3, 4)}, "axis=-1,0;keepdims=1", "[1,3,1]", 0},
    {MSC_OP_SUM, {S(2, 3, 4)}, "axis=1,", "[2,4]", 0},
    {MSC_OP_MAX, {S(2, 3, 4)}, "", "[]", 0},
    {MSC_OP_MIN, {S(2, 3, 4)}, "axis=1,-2", "axis 1 is given twice", 0},
    {MSC_OP_ARGMAX, {S(2, 3, 4)}, "axis=1", "[2,4]", 0},
    {MSC_OP_SHAPE_OF, {S(2, 3, 4)}, "start=-2", "[2]", 0},
    {MSC_OP_RESHAPE, {S(2, 3, 4)}, "shape=0,-1", "[2,12]", 0},
    {MSC_OP_RESHAPE, {S(2, 3, 4)}, "shape=5,-1", "are not divisible", 0},
    {MSC_OP_RESHAPE, {S(2, 3, 4)}, "shape=4,5", "[2,3,4] cannot be reshaped to [4,5]", 0},
    {MSC_OP_RESHAPE, {S(0, 3)}, "shape=3,0;allowzero=1", "[3,0]", 0},
    {MSC_OP_FLATTEN, {S(2, 3, 4)}, "axis=-1", "[6,4]", 0},
    {MSC_OP_FLATTEN, {S(2, 3, 4)}, "axis=0", "[1,24]", 0},
    {MSC_OP_PERMUTE_DIMS, {S(2, 3, 4)}, "axes=2,0,1", "[4,2,3]", 0},
    {MSC_OP_PERMUTE_DIMS, {S(2, 3, 4)}, "axes=2,0,2", "axis 2 is given twice", 0},
    {MSC_OP_EXPAND_DIMS, {S(2, 3)}, "axis=0,-1", "[1,2,3,1]", 0},
    {MSC_OP_SQUEEZE, {S(1, 3, 1)}, "axis=-1,", "[1,3]", 0},
    {MSC_OP_SQUEEZE, {S(1, 3, 1)}, "", "[3]", 0},
    {MSC_OP_SQUEEZE, {S(1, 3, 1)}, "axis=1,", "axis 1 has length 3, expected 1", 0},
    {MSC_OP_CONCAT, {S(2, 3), S(2, 5), S(2, 1)}, "axis=-1", "[2,9]", 0},
    {MSC_OP_CONCAT, {S(2, 3), S(3, 5)}, "axis=1", "cannot be concatenated", 0},
    {MSC_OP_SPLIT, {S(7, 2)}, "indices_or_sections=2", "[4,2][3,2]", 0},
    {MSC_OP_SPLIT, {S(7, 2)}, "indices_or_sections=2,", "[2,2][5,2]", 0},
    {MSC_OP_SPLIT, {S(7, 2)}, "indices_or_sections=9,", "has length", 0},
    {MSC_OP_STRIDED_SLICE,
     {S(9, 10, 11)},
     "begin=8,-3,0;end=1,100,11;strides=-2,1,4",
     "[4,3,3]",
     0},
    {MSC_OP_STRIDED_SLICE, {S(9, 10)}, "begin=100,5;end=200,5", "[0,0]", 0},
    {MSC_OP_STRIDED_SLICE, {S(9, 10)}, "begin=;end=", "[9,10]", 0},
    {MSC_OP_STRIDED_SLICE, {S(9, 10)}, "begin=1,1;end=", "begin has 2 numbers, end 0", 0},
    {MSC_OP_STRIDED_SLICE,
     {S(9, 10)},
     "begin=-1,;end=-9223372036854775807,;axes=1,;strides=-1,",
     "[9,10]",
     0},
    {MSC_OP_PAD, {S(2, 3)}, "pad_width=1,0,2,-1", "[5,2]", 0},
    {MSC_OP_PAD, {S(2, 3)}, "pad_width=1,0", "pad_width has 2 numbers, expected 4", 0},
    {MSC_OP_BROADCAST_TO, {S(3, 1)}, "shape=2,1,4", "[2,3,4]", 0},
    {MSC_OP_TILE, {S(2, 3)}, "repeats=3,1", "[6,3]", 0},
    {MSC_OP_POWER, {S(2, 3), S(1)}, "", "[2,3]", MSC_DTYPE_I64},
    {MSC_OP_LINEAR,
     {S(7, 3), S(4, 3)},
     "",
     "operand 0 is int64, expected a float type",
     MSC_DTYPE_I64},
};

static void format_outputs(struct msc_str *out, const struct msc_graph *g, int32_t joint) {
    const struct msc_joint *j = msc_graph_joint(g, joint);
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, j->outputs[i]);
        char text[MSC_DIMS_TEXT_BYTES];
        msc_str_append(out, msc_dims_format(text, t->n_dims, t->dims));
    }
}

static void check_case(const struct shape_case *c) {
    struct msc_str found = {0};
    struct msc_graph *g;
    struct joint_attrs attrs;
    int32_t inputs[MAX_OPERANDS], joint;
    assert_ok(msc_graph_create(&g, "g"));
    joint_attrs_read(&attrs, c->attrs);
    struct msc_joint_spec spec = {
        .op = c->op, .inputs = inputs, .n_attrs = attrs.n, .attrs = attrs.rows};
    spec.n_outputs = c->op == MSC_OP_SPLIT ? 2 : 1;
    enum msc_dtype dtype = c->dtype == MSC_DTYPE_NONE ? MSC_DTYPE_F32 : c->dtype;
    while (spec.n_inputs < MAX_OPERANDS && c->operands[spec.n_inputs].n_dims > 0) {
        const struct shape *s = &c->operands[spec.n_inputs];
        char name[8] = {'i', (char)('0' + spec.n_inputs), '\0'};
        assert_ok(msc_graph_add_input(&inputs[spec.n_inputs++], g, name, NULL, dtype, "", s->n_dims,
                                      s->dims));
    }
    if (msc_graph_add_joint(&joint, g, &spec) == MSC_OK) {
        format_outputs(&found, g, joint);
        assert_string_equal(msc_str_text(&found), c->expected);
    } else {
        assert_message(c->expected);
    }
    msc_graph_destroy(g);
    msc_str_finish(&found);
}

static void test_graph_infer__shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i]);
    }
}

// An input [N, 3, H, W] whose symbols are prims 0, 1 and 2.
static struct msc_graph *symbolic_graph(int32_t *x) {
    struct msc_graph *g;
    int32_t prims[4] = {0, MSC_NO_ID, 0, 0};
    assert_ok(msc_graph_create(&g, "g"));
    assert_ok(msc_graph_add_symbol(&prims[0], g, "N"));
    assert_ok(msc_graph_add_symbol(&prims[2], g, "H"));
    assert_ok(msc_graph_add_symbol(&prims[3], g, "W"));
    assert_ok(msc_graph_add_symbolic_input(x, g, "x", NULL, MSC_DTYPE_F32, "NCHW", 4,
                                           DIMS(-1, 3, -1, -1), prims));
    return g;
}

// Evaluates the tensor's dimensions for N = 2, H = 37, W = 50, the first three prims.
static void check_evaluated(const struct msc_graph *g, int32_t tensor, const char *expected) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    int64_t symbols[64] = {2, 37, 50};
    int64_t dims[MSC_MAX_DIMS];
    char text[MSC_DIMS_TEXT_BYTES];
    assert_true(msc_graph_n_prims(g) <= 64);
    for (int i = 3; i < 64; i++) {
        symbols[i] = -1;
    }
    for (int i = 0; i < t->n_dims; i++) {
        dims[i] = msc_dim_evaluate(g, (struct msc_dim){t->dims[i], t->prims[i]}, symbols);
    }
    assert_string_equal(msc_dims_format(text, t->n_dims, dims), expected);
}

static int32_t add_windowed(struct msc_graph *g, enum msc_op op, int32_t x, int32_t w,
                            const struct msc_attr attrs[], int32_t n_attrs) {
    struct msc_weight_spec weight = {"weight", w};
    return add_joint(g, &(struct msc_joint_spec){.op = op,
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_weights = w == MSC_NO_ID ? 0 : 1,
                                                 .weights = &weight,
                                                 .n_attrs = n_attrs,
                                                 .attrs = attrs});
}

// Symbolic lengths, evaluated, equal the lengths of a bound graph (checked against torch for 37 x
// 50).
static void test_graph_infer__symbolic(void **state) {
    (void)state;
    int32_t x;
    struct msc_graph *g = symbolic_graph(&x);
    int32_t w = add_weight(g, "w", "OIHW", 4, DIMS(8, 3, 3, 3));
    int32_t v = add_weight(g, "v", "OIHW", 4, DIMS(8, 8, 3, 3));
    const struct msc_attr conv[] = {{"padding", "1,1,1,1"}, {"strides", "2,2"}};
    const struct msc_attr pool[] = {
        {"ceil_mode", "1"}, {"padding", "0,1,0,1"}, {"pool_size", "3,3"}, {"strides", "2,2"}};
    int32_t a = add_windowed(g, MSC_OP_CONV2D, x, w, conv, 2);
    int32_t b = add_windowed(g, MSC_OP_CONV2D, a, v, conv, 2);
    int32_t c = add_windowed(g, MSC_OP_MAX_POOL2D, b, MSC_NO_ID, pool, 4);
    check_evaluated(g, a, "[2,8,19,25]");
    check_evaluated(g, b, "[2,8,10,13]");
    check_evaluated(g, c, "[2,8,5,7]");
    // ((H + 1) / 2 + 1) / 2 is simplified to one division of H.
    const struct msc_prim *p = msc_graph_prim(g, msc_graph_tensor(g, b)->prims[2]);
    assert_string_equal(p->optype, "FloorDiv");
    p = msc_graph_prim(g, p->parents[0]);
    assert_string_equal(p->optype, "Add");
    assert_int_equal(p->parents[0], msc_graph_find_prim(g, "H"));
    msc_graph_destroy(g);
}

static void test_graph_infer__symbolic_reshape(void **state) {
    (void)state;
    int32_t x;
    struct msc_graph *g = symbolic_graph(&x);
    const struct msc_attr rows = {"shape", "0,3,-1"};
    const struct msc_attr all = {"shape", "-1,6"};
    const struct msc_attr swap = {"axes", "0,2,3,1"};
    int32_t a = add_windowed(g, MSC_OP_RESHAPE, x, MSC_NO_ID, &rows, 1);
    int32_t b = add_windowed(g, MSC_OP_RESHAPE, x, MSC_NO_ID, &all, 1);
    int32_t c = add_windowed(g, MSC_OP_PERMUTE_DIMS, x, MSC_NO_ID, &swap, 1);
    int32_t d =
        add_joint(g, &(struct msc_joint_spec){.op = MSC_OP_FLATTEN, .n_inputs = 1, .inputs = &x});
    check_evaluated(g, a, "[2,3,1850]");
    check_evaluated(g, b, "[1850,6]");
    check_evaluated(g, c, "[2,37,50,3]");
    check_evaluated(g, d, "[2,5550]");
    assert_string_equal(msc_graph_tensor(g, c)->layout, "NHWC");
    assert_string_equal(msc_graph_tensor(g, d)->layout, "NC");
    msc_graph_destroy(g);
}

static struct msc_dim number(int64_t value) {
    return (struct msc_dim){value, MSC_NO_ID};
}

static struct msc_dim binary(struct msc_graph *g, const char *op, struct msc_dim a,
                             struct msc_dim b) {
    struct msc_dim out;
    assert_ok(msc_dim_binary(&out, g, op, a, b));
    return out;
}

static void test_graph_infer__dimensions_fold(void **state) {
    (void)state;
    int32_t x;
    struct msc_graph *g = symbolic_graph(&x);
    struct msc_dim n = {-1, 0}, h = {-1, 1};
    assert_int_equal(binary(g, "FloorDiv", number(-7), number(2)).value, -4);
    assert_int_equal(binary(g, "CeilDiv", number(-7), number(2)).value, -3);
    assert_int_equal(binary(g, "FloorMod", number(-7), number(3)).value, 2);
    assert_int_equal(binary(g, "Mul", n, number(1)).prim, n.prim);
    assert_int_equal(binary(g, "Add", number(0), n).prim, n.prim);
    struct msc_dim n4 = binary(g, "Mul", n, number(4));
    assert_int_equal(binary(g, "FloorDiv", n4, number(4)).prim, n.prim);
    assert_int_equal(binary(g, "FloorDiv", n4, number(2)).prim,
                     binary(g, "Mul", n, number(2)).prim);
    struct msc_dim nh = binary(g, "Mul", n, h);
    assert_int_equal(binary(g, "Mul", h, n).prim, nh.prim);
    assert_int_equal(binary(g, "FloorDiv", nh, h).prim, n.prim);
    assert_int_equal(binary(g, "Sub", nh, nh).value, 0);
    struct msc_dim sum = binary(g, "Add", n, number(5));
    assert_int_equal(binary(g, "Sub", sum, number(5)).prim, n.prim);
    struct msc_dim out;
    assert_int_equal(msc_dim_binary(&out, g, "FloorDiv", n, number(0)), MSC_E_INVALID);
    assert_int_equal(msc_dim_binary(&out, g, "Mul", number(INT64_MAX), number(2)), MSC_E_INVALID);
    assert_int_equal(msc_dim_binary(&out, g, "And", n, h), MSC_E_INVALID);
    struct msc_dim most = binary(g, "Mul", n, number(INT64_MIN));
    assert_int_equal(msc_dim_binary(&out, g, "FloorDiv", most, number(-1)), MSC_E_INVALID);
    // n - INT64_MIN, which can come only from a file, must not be turned into an
    // addition.
    const struct msc_attr least = {"value", "-9223372036854775808"};
    int32_t parents[2] = {n.prim, 0};
    assert_ok(msc_graph__add_prim(&parents[1], g, NULL, "Int", 0, NULL, 1, &least));
    struct msc_dim difference = {-1, 0};
    assert_ok(msc_graph__add_prim(&difference.prim, g, NULL, "Sub", 2, parents, 0, NULL));
    assert_int_not_equal(binary(g, "Add", difference, number(1)).prim, n.prim);
    msc_graph_destroy(g);
}

static void test_graph_infer__layouts(void **state) {
    (void)state;
    static const struct {
        enum msc_op op;
        struct shape in;
        const char *layout;
        const char *key, *value;
        const char *expected;
    } rows[] = {
        {MSC_OP_RELU, S(1, 2, 3, 4), "NCHW", NULL, NULL, "NCHW"},
        {MSC_OP_MEAN, S(1, 2, 3, 4), "NCHW", "axis", "2,3", "NC"},
        {MSC_OP_EXPAND_DIMS, S(1, 2), "NC", "axis", "1,", "NHC"},
        {MSC_OP_SQUEEZE, S(1, 2, 1, 4), "NCHW", "axis", "2,", "NCW"},
        {MSC_OP_RESHAPE, S(1, 2, 3, 4), "NCHW", "shape", "1,24", "NC"},
        {MSC_OP_RESHAPE, S(1, 2, 3, 4), "NCHW", "shape", "1,2,12", "NCH"},
        {MSC_OP_RESHAPE, S(1, 2, 3, 4), "NCHW", "shape", "1,-1,3,4", "NCHW"},
        {MSC_OP_RESHAPE, S(1, 1, 3, 4), "NCHW", "shape", "1,3,4,1", "NHWC"},
        {MSC_OP_RESHAPE, S(1, 8, 3, 4), "NCHW", "shape", "1,2,4,3,4", "NCAHW"},
        {MSC_OP_FLATTEN, S(1, 2, 1, 1), "NCHW", NULL, NULL, "NC"},
        {MSC_OP_TILE, S(1, 2, 3, 4), "", "repeats", "1,1,1,2", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msc_graph *g;
        int32_t x;
        struct msc_attr attr = {rows[i].key, rows[i].value};
        assert_ok(msc_graph_create(&g, "g"));
        assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, rows[i].layout,
                                      rows[i].in.n_dims, rows[i].in.dims));
        int32_t y = add_windowed(g, rows[i].op, x, MSC_NO_ID, &attr, rows[i].key == NULL ? 0 : 1);
        assert_string_equal(msc_graph_tensor(g, y)->layout, rows[i].expected);
        msc_graph_destroy(g);
    }
}

// The Resize scale of a symbolic length must be refused if 64-bit numbers cannot express it.
static void test_graph_infer__symbolic_scales(void **state) {
    (void)state;
    static const char *const wrong[] = {"1,1,1,1e-30", "1,1,5e-20,1", "1,1,1,1e7",
                                        "0,1,1,1",     "1,1,nan,1",   "1,1,1,inf"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int32_t x, joint;
        struct msc_graph *g = symbolic_graph(&x);
        struct msc_joint_spec spec = {.op = MSC_OP_RESIZE,
                                      .n_inputs = 1,
                                      .inputs = &x,
                                      .n_attrs = 1,
                                      .attrs = &(struct msc_attr){"scales", wrong[i]}};
        assert_int_equal(msc_graph_add_joint(&joint, g, &spec), MSC_E_INVALID);
        msc_graph_destroy(g);
    }
}

// An axis that is split keeps its letter at the symbolic part, which is the batch.
static void test_graph_infer__split_batch(void **state) {
    (void)state;
    static const int64_t dims[] = {7, -1, 32};
    static const struct msc_attr merge = {"shape", "-1,32"}, split = {"shape", "7,-1,32"};
    int32_t prims[] = {MSC_NO_ID, MSC_NO_ID, MSC_NO_ID}, x;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "g"));
    assert_ok(msc_graph_add_symbol(&prims[1], g, "n"));
    assert_ok(msc_graph_add_symbolic_input(&x, g, "x", NULL, MSC_DTYPE_F32, "ANC", 3, dims, prims));
    int32_t merged = add_windowed(g, MSC_OP_RESHAPE, x, MSC_NO_ID, &merge, 1);
    assert_string_equal(msc_graph_tensor(g, merged)->layout, "NC");
    int32_t y = add_windowed(g, MSC_OP_RESHAPE, merged, MSC_NO_ID, &split, 1);
    assert_string_equal(msc_graph_tensor(g, y)->layout, "ANC");
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_infer__shapes),
        cmocka_unit_test(test_graph_infer__symbolic),
        cmocka_unit_test(test_graph_infer__symbolic_reshape),
        cmocka_unit_test(test_graph_infer__dimensions_fold),
        cmocka_unit_test(test_graph_infer__layouts),
        cmocka_unit_test(test_graph_infer__split_batch),
        cmocka_unit_test(test_graph_infer__symbolic_scales),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
