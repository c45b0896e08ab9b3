// Exported forms that ONNX Runtime turns into integer kernels. tests/long/check_forms.py shows that
// it does so. These tests check the exported numbers against numbers worked out by hand.
#include "tests/graph/onnx_nets.h"

static const float half = 0.5f, tenth = 0.1f, one = 1;
static const int32_t zero = 0;

// x ── conv ── limit ── conv2 ── y
static void make_limited(struct net *n, const struct msc_joint_spec *limit, const char *target) {
    *n = (struct net){0};
    assert_ok(msc_graph_create(&n->g, "limited"));
    int32_t x = add_input(n->g, "x", "NCHW", 4, DIMS(1, 2, 2, 2));
    int32_t w = add_weight(n->g, "w", "OIHW", 4, DIMS(2, 2, 1, 1));
    int32_t conv = add_conv(n->g, "conv", x, w);
    struct msc_joint_spec spec = *limit;
    spec.name = "limit";
    spec.n_inputs = 1;
    spec.inputs = &conv;
    finish_graph(n, add_conv(n->g, "conv2", add_joint(n->g, &spec), w), target);
}

// A relu becomes a Clip of bytes, whose lower bound is rint(0 / scale) + zero_point. Signed
// integers are written with an offset of 128.
static void test_graph_onnx_export_form__bytes(void **state) {
    (void)state;
    struct net n;
    static const int32_t low_zero = -4;
    struct msc_edit six = make_edit(6, -32, 31, &half, &low_zero);
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    make_limited(&n, &(struct msc_joint_spec){.op = MSC_OP_RELU}, "onnxruntime");
    edit_tensor(&n, "limit:0", &six);
    edit_tensor(&n, "x:0", &whole);
    export_net(&n);
    assert_int_equal(count(&n, "Relu"), 0);
    assert_int_equal(count(&n, "Clip"), 1);
    const Onnx__NodeProto *clip = node_of(&n, "Clip");
    check_bytes(&n, clip->input[1], MSC_ONNX_UINT8, 1, "\x7c"); // lower bound: 128 - 4
    check_bytes(&n, clip->input[2], MSC_ONNX_UINT8, 1, "\x9f"); // upper bound: 128 + 31
    const Onnx__NodeProto *q = maker(&n, clip->input[0]);
    assert_string_equal(q->op_type, "QuantizeLinear");
    assert_string_equal(q->input[0], "conv:0");
    check_bytes(&n, q->input[2], MSC_ONNX_UINT8, 1, "\x7c");
    finish_net(&n);
    const struct msc_attr limits[] = {{"min", "0"}, {"max", "6"}};
    make_limited(&n, &(struct msc_joint_spec){.op = MSC_OP_CLIP, .n_attrs = 2, .attrs = limits},
                 "onnxruntime");
    struct msc_edit tenths = make_edit(8, 0, 255, &tenth, &zero);
    edit_tensor(&n, "limit:0", &tenths);
    export_net(&n);
    assert_int_equal(count(&n, "Clip"), 1);
    check_bytes(&n, node_of(&n, "Clip")->input[2], MSC_ONNX_UINT8, 1, "\x3c"); // 6 in steps of 0.1
    finish_net(&n);
}

// A relu is exported as a Relu if the target wants no special forms or the relu's output is not
// quantised.
static void test_graph_onnx_export_form__usual(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    make_limited(&n, &(struct msc_joint_spec){.op = MSC_OP_RELU}, "generic");
    edit_tensor(&n, "limit:0", &whole);
    export_net(&n);
    assert_int_equal(count(&n, "Relu"), 1);
    finish_net(&n);
    make_limited(&n, &(struct msc_joint_spec){.op = MSC_OP_RELU}, "onnxruntime");
    edit_tensor(&n, "x:0", &whole);
    export_net(&n);
    assert_int_equal(count(&n, "Relu"), 1);
    finish_net(&n);
}

// w is 0 ... 3. 4-bit weights become bytes for targets with integer kernels. 16-bit weights stay
// float, and an identity LeakyRelu keeps ONNX Runtime from fusing the QDQ pairs around the layer.
static void test_graph_onnx_export_form__weights(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    struct msc_edit four = make_edit(4, -7, 7, &one, &zero);
    struct msc_edit wide = make_edit(16, -32767, 32767, &one, &zero);
    const struct msc_joint_spec relu = {.op = MSC_OP_RELU};
    make_limited(&n, &relu, "onnxruntime");
    edit_tensor(&n, "x:0", &whole);
    edit_tensor(&n, "limit:0", &whole);
    edit_tensor(&n, "w", &four);
    export_net(&n);
    const Onnx__NodeProto *dequantize = maker(&n, node_of(&n, "Conv")->input[1]);
    assert_string_equal(dequantize->op_type, "DequantizeLinear");
    check_bytes(&n, dequantize->input[2], MSC_ONNX_INT8, 1, "\0");
    const Onnx__NodeProto *cast = maker(&n, dequantize->input[0]);
    assert_string_equal(cast->op_type, "Cast");
    check_bytes(&n, cast->input[0], MSC_ONNX_INT4, 2, "\x10\x32");
    assert_int_equal(count(&n, "LeakyRelu"), 0);
    finish_net(&n);
    make_limited(&n, &relu, "onnxruntime");
    edit_tensor(&n, "x:0", &whole);
    edit_tensor(&n, "limit:0", &whole);
    edit_tensor(&n, "w", &wide);
    export_net(&n);
    assert_string_equal(maker(&n, node_of(&n, "Conv")->input[1])->op_type, "Mul");
    assert_int_equal(count(&n, "DequantizeLinear"), 2);
    assert_int_equal(count(&n, "LeakyRelu"), 2);
    const Onnx__NodeProto *shield = node_of(&n, "LeakyRelu");
    assert_string_equal(maker(&n, shield->input[0])->op_type, "Conv");
    assert_string_equal(shield->output[0], "conv:0");
    assert_true(shield->attribute[0]->f == 1.0f);
    finish_net(&n);
}

// w is 0 ... 3. 8-bit weights are unsigned for the target whose sums of signed bytes saturate.
static void test_graph_onnx_export_form__unsigned_weights(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    struct msc_edit eight = make_edit(8, -127, 127, &one, &zero);
    const struct msc_joint_spec relu = {.op = MSC_OP_RELU};
    for (int i = 0; i < 2; i++) {
        make_limited(&n, &relu, i == 0 ? "onnxruntime_avx2" : "onnxruntime");
        edit_tensor(&n, "x:0", &whole);
        edit_tensor(&n, "limit:0", &whole);
        edit_tensor(&n, "w", &eight);
        export_net(&n);
        const Onnx__NodeProto *dequantize = maker(&n, node_of(&n, "Conv")->input[1]);
        int type = i == 0 ? MSC_ONNX_UINT8 : MSC_ONNX_INT8;
        check_bytes(&n, dequantize->input[0], type, 4, i == 0 ? "\x80\x81\x82\x83" : "\0\1\2\3");
        check_bytes(&n, dequantize->input[2], type, 1, i == 0 ? "\x80" : "\0");
        finish_net(&n);
    }
    assert_string_equal(msc_target_by_default(true)->name, "onnxruntime");
    assert_string_equal(msc_target_by_default(false)->name, "onnxruntime_avx2");
}

// x ── joint ── conv ── y, with x and the joint's output as bytes of scale 0.5, plus the test's
// own edit.
static void make_joint(struct net *n, const struct msc_joint_spec *joint,
                       const struct msc_edit *edit) {
    int32_t x = msc_graph_find_tensor(n->g, "x:0");
    struct msc_joint_spec spec = *joint;
    spec.name = "joint";
    spec.n_inputs = 1;
    spec.inputs = &x;
    int32_t w = add_weight(n->g, "w", "OIHW", 4, DIMS(2, 4, 1, 1));
    finish_graph(n, add_conv(n->g, "conv", add_joint(n->g, &spec), w), "onnxruntime");
    edit_tensor(n, "x:0", edit);
    edit_tensor(n, "joint:0", edit);
    edit_tensor(n, "w", edit);
    export_net(n);
}

static void start_joint(struct net *n) {
    *n = (struct net){0};
    assert_ok(msc_graph_create(&n->g, "joint"));
    add_input(n->g, "x", "NCHW", 4, DIMS(1, 4, 4, 4));
}

static void test_graph_onnx_export_form__pooling(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    const struct msc_attr attrs[] = {{"pool_size", "2,2"}, {"strides", "2,2"}};
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_AVG_POOL2D, .n_attrs = 2, .attrs = attrs},
               &whole);
    const Onnx__NodeProto *pool = maker(&n, "joint:0");
    assert_string_equal(pool->op_type, "Conv");
    const Onnx__NodeProto *ones = maker(&n, pool->input[1]);
    check_bytes(&n, ones->input[0], MSC_ONNX_INT8, 16, "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1");
    check_bytes(&n, ones->input[1], MSC_ONNX_FLOAT, 4, (const float[]){0.25f});
    finish_net(&n);
    const struct msc_attr axes[] = {{"axis", "-2,-1"}, {"keepdims", "1"}};
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_MEAN, .n_attrs = 2, .attrs = axes},
               &whole);
    assert_string_equal(maker(&n, "joint:0")->op_type, "GlobalAveragePool");
    finish_net(&n);
}

static struct msc_weight_spec add_channels(struct msc_graph *g, const char *role,
                                           const float values[4]) {
    struct msc_array *data;
    int32_t tensor;
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 1, DIMS(4), values));
    assert_ok(msc_graph_add_weight(&tensor, g, role, NULL, "O", data));
    msc_array_release(data);
    return (struct msc_weight_spec){role, tensor};
}

// In the four channels, gamma / sqrt(var) is 127, -63.5, 0 and 1, and beta - mean * gamma /
// sqrt(var) is 1, 65.5, 2 and 2^40. The scales are 1, 0.5, 2 / 0.5 / 2^30 and 2^40 / 0.5 / 2^30.
// The last two scales keep the sums of their channels within int32.
static void test_graph_onnx_export_form__batch_norm(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    start_joint(&n);
    const struct msc_weight_spec weights[] = {
        add_channels(n.g, "gamma", (const float[]){127, -127, 0, 1}),
        add_channels(n.g, "beta", (const float[]){1, 2, 2, 0x1p40f}),
        add_channels(n.g, "mean", (const float[]){0, 1, 5, 0}),
        add_channels(n.g, "var", (const float[]){1, 4, 1, 1}),
    };
    const struct msc_attr attrs[] = {{"epsilon", "0"}};
    make_joint(&n,
               &(struct msc_joint_spec){.op = MSC_OP_BATCH_NORM,
                                        .n_weights = 4,
                                        .weights = weights,
                                        .n_attrs = 1,
                                        .attrs = attrs},
               &whole);
    const Onnx__NodeProto *norm = maker(&n, "joint:0");
    assert_string_equal(norm->op_type, "Conv");
    const Onnx__NodeProto *factor = maker(&n, norm->input[1]), *sum = maker(&n, norm->input[2]);
    check_bytes(&n, factor->input[0], MSC_ONNX_INT8, 4, "\x7f\x81\0\0");
    check_bytes(&n, factor->input[1], MSC_ONNX_FLOAT, 16,
                (const float[]){1, 0.5f, 0x1p-28f, 0x1p11f});
    check_bytes(&n, sum->input[0], MSC_ONNX_INT32, 16, (const int32_t[]){2, 262, 1 << 30, 1 << 30});
    check_bytes(&n, sum->input[1], MSC_ONNX_FLOAT, 16,
                (const float[]){0.5f, 0.25f, 0x1p-29f, 0x1p10f});
    finish_net(&n);
}

// 0.2 * x + 0.5 with x = 0.5 * q is 0.1 * q + 0.5, clipped to 0 ... 1 in steps of 0.5.
static void test_graph_onnx_export_form__hard_sigmoid(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_HARD_SIGMOID}, &whole);
    const Onnx__NodeProto *add = maker(&n, "joint:0");
    assert_string_equal(add->op_type, "Add");
    const Onnx__NodeProto *scaled = maker(&n, add->input[0]), *beta = maker(&n, add->input[1]);
    assert_string_equal(maker(&n, scaled->input[0])->op_type, "QuantizeLinear");
    check_bytes(&n, scaled->input[1], MSC_ONNX_FLOAT, 4, (const float[]){0.2f * 0.5f});
    check_bytes(&n, beta->input[0], MSC_ONNX_UINT8, 1, "\1");
    check_bytes(&n, beta->input[1], MSC_ONNX_FLOAT, 4, (const float[]){0.5f});
    check_bytes(&n, node_of(&n, "Clip")->input[2], MSC_ONNX_UINT8, 1, "\2");
    finish_net(&n);
}

// Since x = (q - 40) * 0.25, the number 3 is 12 steps. So bytes are clipped to c in 28 ... 52, and
// the gate is (c - 28) * 0.25 / 6.
static void test_graph_onnx_export_form__hard_swish(void **state) {
    (void)state;
    struct net n;
    static const float quarter = 0.25f;
    static const int32_t forty = 40, ten = 10;
    struct msc_edit fits = make_edit(8, 0, 255, &quarter, &forty);
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_HARD_SWISH}, &fits);
    const Onnx__NodeProto *mul = maker(&n, "joint:0");
    assert_string_equal(mul->op_type, "Mul");
    const Onnx__NodeProto *x = maker(&n, mul->input[0]), *gate = maker(&n, mul->input[1]);
    const Onnx__NodeProto *clip = maker(&n, gate->input[0]);
    assert_string_equal(clip->op_type, "Clip");
    assert_string_equal(clip->input[0], x->input[0]);
    check_bytes(&n, clip->input[1], MSC_ONNX_UINT8, 1, "\x1c");
    check_bytes(&n, clip->input[2], MSC_ONNX_UINT8, 1, "\x34");
    check_bytes(&n, gate->input[1], MSC_ONNX_FLOAT, 4, (const float[]){0.25f / 6});
    check_bytes(&n, gate->input[2], MSC_ONNX_UINT8, 1, "\x1c");
    finish_net(&n);
    // The usual form is kept if 3 is not a multiple of the step (0.1001) or the range starts above
    // -3.
    static const float odd = 0.1001f;
    struct msc_edit uneven = make_edit(8, 0, 255, &odd, &forty);
    struct msc_edit narrow = make_edit(8, 0, 255, &quarter, &ten);
    for (int i = 0; i < 2; i++) {
        start_joint(&n);
        make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_HARD_SWISH},
                   i == 0 ? &uneven : &narrow);
        assert_string_equal(maker(&n, "joint:0")->op_type, "HardSwish");
        finish_net(&n);
    }
}

static int32_t add_number(struct msc_graph *g, const char *name, float value) {
    struct msc_array *data;
    int32_t tensor;
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, 1, DIMS(1), &value));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, "", data));
    msc_array_release(data);
    return add_joint(
        g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){"const", tensor}});
}

static int32_t add_pair(struct msc_graph *g, enum msc_op op, const char *name, int32_t a,
                        int32_t b) {
    return add_joint(
        g, &(struct msc_joint_spec){.op = op, .name = name, .n_inputs = 2, .inputs = IDS(a, b)});
}

// x ── conv ── * 2 ── + 3 ── relu ── * 0.25 ── conv2. The factors merge into the scale: q =
// rint(conv / (0.5 / 0.5)). The 3 becomes a bias of 3 / 2 in steps of 0.5 * 1.
static void test_graph_onnx_export_form__tail(void **state) {
    (void)state;
    struct net n = {0};
    assert_ok(msc_graph_create(&n.g, "tail"));
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 2, 2));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 2, 1, 1));
    int32_t t = add_conv(n.g, "conv", x, w);
    t = add_pair(n.g, MSC_OP_MULTIPLY, "twice", t, add_number(n.g, "two", 2));
    t = add_pair(n.g, MSC_OP_ADD, "more", add_number(n.g, "three", 3), t);
    t = add_joint(n.g, &(struct msc_joint_spec){
                           .op = MSC_OP_RELU, .name = "relu", .n_inputs = 1, .inputs = &t});
    t = add_pair(n.g, MSC_OP_MULTIPLY, "less", t, add_number(n.g, "quarter", 0.25f));
    finish_graph(&n, add_conv(n.g, "conv2", t, w), "onnxruntime");
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    struct msc_edit weight = make_edit(8, -127, 127, &one, &zero);
    edit_tensor(&n, "x:0", &whole);
    edit_tensor(&n, "w", &weight);
    edit_tensor(&n, "less:0", &whole);
    export_net(&n);
    assert_int_equal(count(&n, "Mul") + count(&n, "Add") + count(&n, "Relu"), 0);
    const Onnx__NodeProto *conv = maker(&n, "conv:0");
    assert_int_equal(conv->n_input, 3);
    const Onnx__NodeProto *bias = maker(&n, conv->input[2]);
    check_bytes(&n, bias->input[0], MSC_ONNX_INT32, 8, (const int32_t[]){3, 3});
    check_bytes(&n, bias->input[1], MSC_ONNX_FLOAT, 8, (const float[]){half, half});
    const Onnx__NodeProto *q = NULL;
    for (size_t i = 0; i < n.model->graph->n_node; i++) {
        q = strcmp(n.model->graph->node[i]->input[0], "conv:0") == 0 ? n.model->graph->node[i] : q;
    }
    assert_string_equal(q->op_type, "QuantizeLinear");
    check_bytes(&n, q->input[1], MSC_ONNX_FLOAT, 4, (const float[]){1});
    const Onnx__NodeProto *last = n.model->graph->node[n.model->graph->n_node - 1];
    assert_string_equal(last->name, "conv2");
    check_bytes(&n, maker(&n, last->input[0])->input[1], MSC_ONNX_FLOAT, 4, &half);
    finish_net(&n);
}

// x ── conv ── + 3 ── conv2, with the bias of conv replaced by 1.5 and 2.6. The sum of bias and 3
// is rounded once, to 9 and 11 steps of 0.5 * 1. If the bias is rounded by itself, the addition
// remains.
static void test_graph_onnx_export_form__replaced_bias(void **state) {
    (void)state;
    struct net n = {0};
    static const float values[2] = {1.5f, 2.6f}, steps[2] = {0.5f, 0.5f};
    struct msc_array *elements;
    assert_ok(msc_graph_create(&n.g, "replaced"));
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 2, 2));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 2, 1, 1));
    int32_t b = add_weight(n.g, "b", "O", 1, DIMS(2));
    const struct msc_weight_spec weights[] = {{"weight", w}, {"bias", b}};
    int32_t t = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_CONV2D_BIAS,
                                                        .name = "conv",
                                                        .n_inputs = 1,
                                                        .inputs = &x,
                                                        .n_weights = 2,
                                                        .weights = weights});
    t = add_pair(n.g, MSC_OP_ADD, "more", t, add_number(n.g, "three", 3));
    finish_graph(&n, add_conv(n.g, "conv2", t, w), "onnxruntime");
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    struct msc_edit weight = make_edit(8, -127, 127, &one, &zero);
    struct msc_edit rounded = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {2, steps, 3}};
    assert_ok(msc_array_create_from(&elements, MSC_DTYPE_F32, 1, DIMS(2), values));
    struct msc_edit replaced = {.kind = MSC_EDIT_REPLACE, .elements = elements, .next = &rounded};
    msc_edit_seal(&rounded);
    msc_edit_seal(&replaced);
    edit_tensor(&n, "x:0", &whole);
    edit_tensor(&n, "w", &weight);
    edit_tensor(&n, "b", &replaced);
    edit_tensor(&n, "more:0", &whole);
    export_net(&n);
    assert_int_equal(count(&n, "Add"), 0);
    const Onnx__NodeProto *bias = maker(&n, maker(&n, "conv:0")->input[2]);
    check_bytes(&n, bias->input[0], MSC_ONNX_INT32, 8, (const int32_t[]){9, 11});
    check_bytes(&n, bias->input[1], MSC_ONNX_FLOAT, 8, (const float[]){half, half});
    rounded.rounding.shift = 0;
    msc_edit_seal(&rounded);
    msc_edit_seal(&replaced);
    export_net(&n);
    assert_int_equal(count(&n, "Add"), 1);
    bias = maker(&n, maker(&n, "conv:0")->input[2]);
    check_bytes(&n, bias->input[0], MSC_ONNX_INT32, 8, (const int32_t[]){3, 5});
    finish_net(&n);
    msc_array_release(elements);
}

// A number that cannot merge into a bias is stored as a byte: -3 is the byte 0 with zero point 1
// and scale 3. A value read only as bytes is not dequantised: every node's output has a consumer.
static void test_graph_onnx_export_form__number(void **state) {
    (void)state;
    struct net n = {0};
    static const int32_t twelve = 12;
    static const float quarter = 0.25f;
    assert_ok(msc_graph_create(&n.g, "number"));
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 2, 2));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 2, 1, 1));
    int32_t t = add_conv(n.g, "conv", x, w);
    t = add_joint(n.g, &(struct msc_joint_spec){
                           .op = MSC_OP_HARD_SIGMOID, .name = "gate", .n_inputs = 1, .inputs = &t});
    t = add_pair(n.g, MSC_OP_ADD, "less", t, add_number(n.g, "three", -3));
    finish_graph(&n, add_conv(n.g, "conv2", t, w), "onnxruntime");
    struct msc_edit whole = make_edit(8, 0, 255, &quarter, &twelve);
    struct msc_edit weight = make_edit(8, -127, 127, &one, &zero);
    edit_tensor(&n, "x:0", &whole);
    edit_tensor(&n, "w", &weight);
    edit_tensor(&n, "conv:0", &whole);
    edit_tensor(&n, "gate:0", &whole);
    edit_tensor(&n, "less:0", &whole);
    export_net(&n);
    const Onnx__NodeProto *number = maker(&n, maker(&n, "less:0")->input[1]);
    check_bytes(&n, number->input[0], MSC_ONNX_UINT8, 1, "\0");
    check_bytes(&n, number->input[1], MSC_ONNX_FLOAT, 4, (const float[]){3});
    check_bytes(&n, number->input[2], MSC_ONNX_UINT8, 1, "\1");
    for (size_t i = 0; i + 1 < n.model->graph->n_node; i++) {
        const Onnx__NodeProto *node = n.model->graph->node[i];
        int n_read = 0;
        for (size_t k = 0; k < n.model->graph->n_node; k++) {
            for (size_t m = 0; m < n.model->graph->node[k]->n_input; m++) {
                n_read += strcmp(n.model->graph->node[k]->input[m], node->output[0]) == 0;
            }
        }
        assert_int_not_equal(n_read, 0);
    }
    finish_net(&n);
}

static void test_graph_onnx_export_form__padding(void **state) {
    (void)state;
    struct net n;
    static const int32_t seven = 7;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &seven);
    const struct msc_attr some[] = {{"pad_width", "0,0,1,1,0,0,1,1"}};
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_PAD, .n_attrs = 1, .attrs = some}, &whole);
    const Onnx__NodeProto *pad = node_of(&n, "Pad");
    assert_string_equal(maker(&n, pad->input[0])->op_type, "QuantizeLinear");
    check_bytes(&n, pad->input[2], MSC_ONNX_UINT8, 1, "\7");
    assert_string_equal(maker(&n, "joint:0")->op_type, "DequantizeLinear");
    finish_net(&n);
    const struct msc_attr none[] = {{"pad_width", "0,0,0,0,0,0,0,0"}};
    start_joint(&n);
    make_joint(&n, &(struct msc_joint_spec){.op = MSC_OP_PAD, .n_attrs = 1, .attrs = none}, &whole);
    assert_int_equal(count(&n, "Pad"), 0);
    finish_net(&n);
}

// Quantised values are resized in the model's layout. Floats are interpolated in the runtime's
// layout. The exception is cubic interpolation to a smaller size, because ONNX Runtime refuses it
// in the runtime's layout.
static void test_graph_onnx_export_form__resize(void **state) {
    (void)state;
    static const struct {
        const char *method, *size, *target;
        int n_reshapes;
    } rows[] = {
        {"nearest_neighbor", "1,4,8,8", "onnxruntime", 1},
        {"linear", "1,4,8,8", "onnxruntime", 0},
        {"linear", "1,4,2,2", "onnxruntime", 0},
        {"cubic", "1,4,8,8", "onnxruntime", 0},
        {"cubic", "1,4,8,2", "onnxruntime", 1},
        {"cubic", "1,4,2,2", "generic", 0},
    };
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct net n;
        const struct msc_attr attrs[] = {{"method", rows[i].method}, {"size", rows[i].size}};
        start_joint(&n);
        int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(4, 4, 1, 1));
        int32_t conv = add_conv(n.g, "conv", msc_graph_find_tensor(n.g, "x:0"), w);
        int32_t resize = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_RESIZE,
                                                                 .name = "resize",
                                                                 .n_inputs = 1,
                                                                 .inputs = &conv,
                                                                 .n_attrs = 2,
                                                                 .attrs = attrs});
        finish_graph(&n, add_conv(n.g, "conv2", resize, w), rows[i].target);
        for (int32_t k = 0; k < n.sites.n_slots; k++) {
            n.edits[k] = n.sites.slots[k].kind == MSC_SITE_ACTIVATION ? &whole : NULL;
        }
        export_net(&n);
        assert_int_equal(count(&n, "Resize"), 1);
        assert_int_equal(count(&n, "Reshape"), rows[i].n_reshapes);
        finish_net(&n);
    }
}

// The shuffle transposes four channels as two groups of two: 0 2 1 3.
static void test_graph_onnx_export_form__shuffle(void **state) {
    (void)state;
    struct net n;
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    start_joint(&n);
    int32_t x = msc_graph_find_tensor(n.g, "x:0");
    const struct msc_attr parts[] = {{"shape", "1,2,2,4,4"}}, axes[] = {{"axes", "0,2,1,3,4"}};
    const struct msc_attr merged[] = {{"shape", "1,4,4,4"}};
    int32_t split = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_RESHAPE,
                                                            .name = "split",
                                                            .n_inputs = 1,
                                                            .inputs = &x,
                                                            .n_attrs = 1,
                                                            .attrs = parts});
    int32_t turn = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_PERMUTE_DIMS,
                                                           .name = "turn",
                                                           .n_inputs = 1,
                                                           .inputs = &split,
                                                           .n_attrs = 1,
                                                           .attrs = axes});
    int32_t merge = add_joint(n.g, &(struct msc_joint_spec){.op = MSC_OP_RESHAPE,
                                                            .name = "merge",
                                                            .n_inputs = 1,
                                                            .inputs = &turn,
                                                            .n_attrs = 1,
                                                            .attrs = merged});
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 4, 1, 1));
    finish_graph(&n, add_conv(n.g, "conv", merge, w), "onnxruntime");
    for (int32_t i = 0; i < n.sites.n_slots; i++) {
        n.edits[i] = n.sites.slots[i].kind == MSC_SITE_ACTIVATION ? &whole : NULL;
    }
    export_net(&n);
    assert_int_equal(count(&n, "Reshape") + count(&n, "Transpose"), 0);
    const Onnx__NodeProto *gather = maker(&n, "merge:0");
    assert_string_equal(gather->op_type, "Gather");
    check_bytes(&n, gather->input[1], MSC_ONNX_INT64, 32, (const int64_t[]){0, 2, 1, 3});
    finish_net(&n);
}

// A channel shuffle becomes a Gather, so some joints lose their consumers and are not written. The
// bodies of a Loop and an If after the shuffle are still written completely, with 40 and 30 joints.
static void test_graph_onnx_export_form__bodies(void **state) {
    (void)state;
    struct net n = {.g = load_file(MSC_TESTS_MODEL("bodies"))};
    struct msc_edit whole = make_edit(8, 0, 255, &half, &zero);
    find_sites(&n, "onnxruntime");
    for (int32_t i = 0; i < n.sites.n_slots; i++) {
        n.edits[i] = n.sites.slots[i].kind == MSC_SITE_ACTIVATION ? &whole : NULL;
    }
    export_net(&n);
    assert_int_equal(count(&n, "Transpose"), 0);
    assert_int_equal(node_of(&n, "Loop")->attribute[0]->g->n_node, 40);
    const Onnx__NodeProto *branches = node_of(&n, "If");
    assert_int_equal(branches->attribute[0]->g->n_node, 30);
    assert_int_equal(branches->attribute[1]->g->n_node, 30);
    finish_net(&n);
}

// The square before a mean is a power of 2, by which ONNX Runtime recognises a normalisation.
static void test_graph_onnx_export_form__mean_square(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct net n;
        const struct msc_attr axes[] = {{"axis", "-1"}, {"keepdims", "1"}};
        start_joint(&n);
        int32_t x = msc_graph_input(n.g, 0), same[2] = {x, x};
        int32_t square = add_joint(
            n.g, &(struct msc_joint_spec){
                     .name = "square", .op = MSC_OP_MULTIPLY, .n_inputs = 2, .inputs = same});
        finish_graph(&n,
                     add_joint(n.g, &(struct msc_joint_spec){.name = "mean",
                                                             .op = MSC_OP_MEAN,
                                                             .n_inputs = 1,
                                                             .inputs = &square,
                                                             .n_attrs = 2,
                                                             .attrs = axes}),
                     i == 0 ? "onnxruntime" : "generic");
        export_net(&n);
        assert_int_equal(count(&n, "Pow"), i == 0);
        assert_int_equal(count(&n, "Mul"), i == 1);
        if (i == 0) {
            check_bytes(&n, node_of(&n, "Pow")->input[1], MSC_ONNX_FLOAT, 4, (const float[]){2});
        }
        finish_net(&n);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export_form__bytes),
        cmocka_unit_test(test_graph_onnx_export_form__usual),
        cmocka_unit_test(test_graph_onnx_export_form__weights),
        cmocka_unit_test(test_graph_onnx_export_form__unsigned_weights),
        cmocka_unit_test(test_graph_onnx_export_form__pooling),
        cmocka_unit_test(test_graph_onnx_export_form__batch_norm),
        cmocka_unit_test(test_graph_onnx_export_form__hard_sigmoid),
        cmocka_unit_test(test_graph_onnx_export_form__hard_swish),
        cmocka_unit_test(test_graph_onnx_export_form__tail),
        cmocka_unit_test(test_graph_onnx_export_form__replaced_bias),
        cmocka_unit_test(test_graph_onnx_export_form__number),
        cmocka_unit_test(test_graph_onnx_export_form__padding),
        cmocka_unit_test(test_graph_onnx_export_form__resize),
        cmocka_unit_test(test_graph_onnx_export_form__shuffle),
        cmocka_unit_test(test_graph_onnx_export_form__bodies),
        cmocka_unit_test(test_graph_onnx_export_form__mean_square),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
