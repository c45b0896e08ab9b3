// Files for TensorFlow Lite, read back field by field. Expected layouts and integers are worked out
// by hand from the weights 0, 1, 2, ...; tests/long/check_litert.py runs such files in LiteRT.
#include "graph/tflite/tflite.h"

#include "tests/graph/onnx_nets.h"
#include "tests/graph/tflite_file.h"

// Numbers of TensorFlow Lite's schema.
enum {
    DEPTHWISE_CONV_2D = 4,
    CONV_2D = 3,
    DEQUANTIZE = 6,
    SOFTMAX = 25,
    PAD = 34,
    TRANSPOSE = 39,
    PADV2 = 60,
    MAX_POOL_2D = 17,
    QUANTIZE = 114,
};
enum { OF_F32 = 0, OF_I32 = 2, OF_I8 = 9 };
enum { SAME = 0, VALID = 1, NO_ACTIVATION = 0, TO_RELU = 1 };

#define CODES(...)                                                                                 \
    (const int32_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

static void save_net(struct tflite_file *f, const struct net *n) {
    const struct msc_onnx_export_options options = {.sites = &n->sites, .slot_edits = n->edits};
    assert_ok(msc_tflite_save(n->g, scratch, &options));
    open_tflite(f, scratch);
}

static void begin_net(struct net *n) {
    *n = (struct net){0};
    assert_ok(msc_graph_create(&n->g, "net"));
}

static void test_graph_tflite__float_conv(void **state) {
    (void)state;
    struct net n;
    struct tflite_file f;
    begin_net(&n);
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 2, 3));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(3, 2, 1, 2));
    int32_t y = add_unary(n.g, MSC_OP_RELU, "y", add_conv(n.g, "conv", x, w));
    finish_graph(&n, y, "tflite");
    save_net(&f, &n);
    check_codes(&f, 3, CODES(TRANSPOSE, CONV_2D, TRANSPOSE));
    check_name(input_of(&f, 0, 0), "x");
    check_shape(input_of(&f, 0, 0), 4, CODES(1, 2, 2, 3));
    check_data(&f, input_of(&f, 0, 1), OF_I32, CODES(0, 2, 3, 1), 16);
    check_shape(input_of(&f, 1, 0), 4, CODES(1, 2, 3, 2));
    check_shape(input_of(&f, 1, 1), 4, CODES(3, 1, 2, 2));
    const float weights[] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11}, zeros[3] = {0};
    check_data(&f, input_of(&f, 1, 1), OF_F32, weights, sizeof weights);
    check_data(&f, input_of(&f, 1, 2), OF_F32, zeros, sizeof zeros);
    assert_int_equal(byte_field(options_of(&f, 1), 0), VALID);
    assert_int_equal(int_field(options_of(&f, 1), 1), 1);
    assert_int_equal(byte_field(options_of(&f, 1), 3), TO_RELU);
    check_name(output_of_op(&f, 2), "y");
    check_shape(output_of_op(&f, 2), 4, CODES(1, 3, 2, 2));
    close_tflite(&f);
    finish_net(&n);
}

// A depthwise convolution of integers: unsigned activations move by 128, weights have a scale for
// each channel along the last axis, and biases are multiples of the scales' product.
static void test_graph_tflite__int8_depthwise(void **state) {
    (void)state;
    static const float half = 0.5f, tenth = 0.1f, scales[] = {0.5f, 0.25f};
    static const int32_t middle = 128, zero = 0, zeros[] = {0, 0};
    struct msc_edit of_x = make_edit(8, 0, 255, &half, &middle);
    struct msc_edit of_y = make_edit(8, 0, 255, &tenth, &zero);
    struct msc_edit of_w = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                                .low = -127,
                                                                .high = 127,
                                                                .axis = 0,
                                                                .n = 2,
                                                                .scales = scales,
                                                                .zero_points = zeros});
    struct net n;
    struct tflite_file f;
    begin_net(&n);
    int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 2, 2));
    int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(2, 1, 1, 2));
    int32_t b = add_weight(n.g, "b", "O", 1, DIMS(2));
    int32_t conv =
        add_joint(n.g, &(struct msc_joint_spec){
                           .op = MSC_OP_CONV2D_BIAS,
                           .name = "conv",
                           .n_inputs = 1,
                           .inputs = &x,
                           .n_weights = 2,
                           .weights = (const struct msc_weight_spec[]){{"weight", w}, {"bias", b}},
                           .n_attrs = 1,
                           .attrs = &(struct msc_attr){"groups", "2"}});
    finish_graph(&n, add_unary(n.g, MSC_OP_RELU, "y", conv), "tflite");
    edit_tensor(&n, "x:0", &of_x);
    edit_tensor(&n, "w", &of_w);
    edit_tensor(&n, "y:0", &of_y);
    save_net(&f, &n);
    check_codes(&f, 5, CODES(QUANTIZE, TRANSPOSE, DEPTHWISE_CONV_2D, TRANSPOSE, DEQUANTIZE));
    check_quant(output_of_op(&f, 0), 1, &half, (const int64_t[]){0}, 0);
    check_shape(input_of(&f, 2, 1), 4, CODES(1, 1, 2, 2));
    check_data(&f, input_of(&f, 2, 1), OF_I8, (const int8_t[]){0, 8, 2, 12}, 4);
    check_quant(input_of(&f, 2, 1), 2, scales, (const int64_t[]){0, 0}, 3);
    check_data(&f, input_of(&f, 2, 2), OF_I32, CODES(0, 8), 8);
    check_quant(input_of(&f, 2, 2), 2, (const float[]){0.25f, 0.125f}, (const int64_t[]){0, 0}, 0);
    check_quant(output_of_op(&f, 2), 1, &tenth, (const int64_t[]){-128}, 0);
    assert_int_equal(byte_field(options_of(&f, 2), 4), NO_ACTIVATION); // the range begins at 0
    assert_int_equal(int_field(options_of(&f, 2), 3), 1);              // depth_multiplier
    close_tflite(&f);
    // With float weights, the convolution is one of floats.
    edit_tensor(&n, "w", NULL);
    save_net(&f, &n);
    check_codes(
        &f, 7,
        CODES(QUANTIZE, TRANSPOSE, DEQUANTIZE, DEPTHWISE_CONV_2D, QUANTIZE, TRANSPOSE, DEQUANTIZE));
    close_tflite(&f);
    finish_net(&n);
}

static int32_t add_window(struct msc_graph *g, enum msc_op op, int32_t x, int32_t w,
                          const char *strides) {
    const struct msc_attr of_conv[] = {{"padding", "1,1,1,1"}, {"strides", strides}};
    const struct msc_attr of_pool[] = {
        {"padding", "1,1,1,1"}, {"pool_size", "3,3"}, {"strides", strides}};
    bool is_conv = op == MSC_OP_CONV2D;
    return add_joint(g, &(struct msc_joint_spec){.op = op,
                                                 .name = "window",
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_weights = is_conv,
                                                 .weights = &(struct msc_weight_spec){"weight", w},
                                                 .n_attrs = is_conv ? 2 : 3,
                                                 .attrs = is_conv ? of_conv : of_pool});
}

// Padding is written as SAME if TensorFlow pads as much, else as a PAD of what a window reaches: 1
// on each side of 4 pixels is SAME with stride 1, and only 1 before them is read with stride 2.
static void test_graph_tflite__padding(void **state) {
    (void)state;
    const struct {
        enum msc_op op;
        const char *strides;
        int32_t code, pad_code;
    } rows[] = {
        {MSC_OP_CONV2D, "1,1", CONV_2D, -1},
        {MSC_OP_CONV2D, "2,2", CONV_2D, PAD},
        {MSC_OP_MAX_POOL2D, "2,2", MAX_POOL_2D, PADV2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct net n;
        struct tflite_file f;
        begin_net(&n);
        int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 2, 4, 4));
        int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(1, 2, 3, 3));
        finish_graph(&n, add_window(n.g, rows[i].op, x, w, rows[i].strides), "tflite");
        save_net(&f, &n);
        bool is_padded = rows[i].pad_code >= 0;
        uint32_t at = is_padded ? 2 : 1;
        assert_int_equal(code_of(&f, at), rows[i].code);
        assert_int_equal(byte_field(options_of(&f, at), 0), is_padded ? VALID : SAME);
        if (is_padded) {
            assert_int_equal(code_of(&f, 1), rows[i].pad_code);
            check_data(&f, input_of(&f, 1, 1), OF_I32, CODES(0, 0, 1, 0, 1, 0, 0, 0), 32);
            check_shape(output_of_op(&f, 1), 4, CODES(1, 5, 5, 2));
        }
        close_tflite(&f);
        finish_net(&n);
    }
}

// The kernel of softmax has a scale of its own; another scale takes a second rounding.
static void test_graph_tflite__fixed_scale(void **state) {
    (void)state;
    static const float tenth = 0.1f, share = 1.0f / 255, own = 1.0f / 256;
    static const int32_t zero = 0;
    struct msc_edit of_x = make_edit(8, 0, 255, &tenth, &zero);
    struct msc_edit of_y[] = {make_edit(8, 0, 255, &share, &zero),
                              make_edit(8, 0, 255, &own, &zero)};
    for (int i = 0; i < 2; i++) {
        struct net n;
        struct tflite_file f;
        begin_net(&n);
        int32_t x = add_input(n.g, "x", "NC", 2, DIMS(1, 4));
        finish_graph(&n, add_unary(n.g, MSC_OP_SOFTMAX, "y", x), "tflite");
        edit_tensor(&n, "x:0", &of_x);
        edit_tensor(&n, "y:0", &of_y[i]);
        save_net(&f, &n);
        check_codes(&f, i == 0 ? 4 : 3,
                    i == 0 ? CODES(QUANTIZE, SOFTMAX, QUANTIZE, DEQUANTIZE)
                           : CODES(QUANTIZE, SOFTMAX, DEQUANTIZE));
        check_quant(output_of_op(&f, 1), 1, &own, (const int64_t[]){-128}, 0);
        close_tflite(&f);
        finish_net(&n);
    }
}

// The signature and the metadata. A symbolic length is -1 in the signature of shapes.
static void test_graph_tflite__symbols(void **state) {
    (void)state;
    struct net n;
    struct tflite_file f;
    int32_t symbol, x;
    begin_net(&n);
    assert_ok(msc_graph_add_symbol(&symbol, n.g, "N"));
    const int32_t prims[] = {symbol, MSC_NO_ID};
    assert_ok(msc_graph_add_symbolic_input(&x, n.g, "x", "image", MSC_DTYPE_F32, "NC", 2,
                                           DIMS(-1, 4), prims));
    finish_graph(&n, add_unary(n.g, MSC_OP_TANH, "y", x), "tflite");
    const char *const pairs[][2] = {{"mscgym.trial", "7"}};
    const struct msc_onnx_export_options options = {.metadata = pairs, .n_metadata = 1};
    assert_ok(msc_tflite_save(n.g, scratch, &options));
    open_tflite(&f, scratch);
    check_shape(input_of(&f, 0, 0), 2, CODES(1, 4));
    assert_int_equal(int_at(child(input_of(&f, 0, 0), 7), 0), -1);
    const unsigned char *metadata = table_at(child(f.model, 6), 0);
    const unsigned char *text =
        child(table_at(child(f.model, 4), (uint32_t)int_field(metadata, 1)), 0);
    assert_memory_equal(child(metadata, 0) + 4, pairs[0][0], strlen(pairs[0][0]));
    assert_int_equal(length(text), 1);
    assert_memory_equal(text + 4, "7", 1);
    const unsigned char *signature = table_at(child(f.model, 7), 0);
    const unsigned char *input = table_at(child(signature, 0), 0);
    assert_memory_equal(child(input, 0) + 4, "image", 6);
    assert_int_equal(int_field(input, 1), int_at(child(f.graph, 1), 0));
    close_tflite(&f);
    finish_net(&n);
}

// What cannot be written is named, and a file that is there keeps its content.
static void test_graph_tflite__refusals(void **state) {
    (void)state;
    static const float tenth = 0.1f;
    static const int32_t zero = 0;
    struct msc_edit byte = make_edit(8, 0, 255, &tenth, &zero);
    const enum msc_op ops[] = {MSC_OP_ERF, MSC_OP_RELU};
    const char *const messages[] = {
        "joint y (erf) cannot be written for TensorFlow Lite: the operator is not supported",
        "tensors are quantised for another target than tflite"};
    for (size_t i = 0; i < 2; i++) {
        struct net n;
        const void *data;
        size_t n_bytes;
        begin_net(&n);
        int32_t x = add_input(n.g, "x", "NCHW", 4, DIMS(1, 1, 2, 2));
        int32_t w = add_weight(n.g, "w", "OIHW", 4, DIMS(1, 1, 1, 1));
        finish_graph(&n, add_unary(n.g, ops[i], "y", add_conv(n.g, "conv", x, w)), "openvino");
        if (i == 1) {
            edit_tensor(&n, "x:0", &byte);
        }
        assert_ok(msc_file_write(scratch, "old", 3));
        const struct msc_onnx_export_options options = {.sites = &n.sites, .slot_edits = n.edits};
        assert_int_equal(msc_tflite_save(n.g, scratch, &options), MSC_E_UNSUPPORTED);
        assert_non_null(strstr(msc_status_message(), messages[i]));
        assert_ptr_equal(strstr(msc_status_message(), scratch), msc_status_message());
        assert_int_equal(msc_tflite_check(n.g, scratch), i == 0 ? MSC_E_UNSUPPORTED : MSC_OK);
        assert_ok(msc_file_map(&data, &n_bytes, scratch));
        assert_int_equal(n_bytes, 3);
        msc_file_unmap(data, n_bytes);
        finish_net(&n);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_tflite__float_conv),
        cmocka_unit_test(test_graph_tflite__int8_depthwise),
        cmocka_unit_test(test_graph_tflite__padding),
        cmocka_unit_test(test_graph_tflite__fixed_scale),
        cmocka_unit_test(test_graph_tflite__symbols),
        cmocka_unit_test(test_graph_tflite__refusals),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
