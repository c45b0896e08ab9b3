// Reference kernels in integer arithmetic. Expected values come from numpy 1.24 and torch 1.13:
// exact sums in int64 or float64, then float32 steps (t = s_x * s_w; y = t * float32(sum); y = y
// + b). Inputs are x[i] = (37 i + 11) mod 256 and w[i] = (53 i + 7) mod 255 - 127.
#include "graph/reference/reference_quant.h"

#include "tests/msc_test.h"

#define MAX_ELEMENTS 4096

struct fixture {
    struct msc_graph *g;
    const struct msc_joint *joint;
    uint8_t x[MAX_ELEMENTS];
    int8_t w[MAX_ELEMENTS];
    float y[64];
    struct msc_quant x_quant, w_quant;
    struct msc_view operands[3], output;
};

static struct msc_view view_of_tensor(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    struct msc_view v = {.dtype = t->dtype, .n_dims = t->n_dims};
    memcpy(v.dims, t->dims, sizeof(v.dims));
    return v;
}

// A graph of one joint with input dims `x` [n_x] and weight dims `w` [n_w]; the bias is optional.
static void set_up(struct fixture *f, enum msc_op op, const char *layout, int n_x,
                   const int64_t x[], const char *weight_layout, int n_w, const int64_t w[],
                   const float *bias, int64_t n_bias, int n_attrs, const struct msc_attr attrs[]) {
    int32_t tensors[3], joint;
    struct msc_array *weight = NULL, *bias_array = NULL;
    memset(f, 0, sizeof(*f));
    assert_ok(msc_graph_create(&f->g, "quant"));
    assert_ok(msc_graph_add_input(&tensors[0], f->g, "x", "x", MSC_DTYPE_F32, layout, n_x, x));
    assert_ok(msc_array_create(&weight, MSC_DTYPE_F32, n_w, w));
    assert_ok(msc_graph_add_weight(&tensors[1], f->g, "w", NULL, weight_layout, weight));
    if (bias) {
        assert_ok(msc_array_create_from(&bias_array, MSC_DTYPE_F32, 1, &n_bias, bias));
        assert_ok(msc_graph_add_weight(&tensors[2], f->g, "b", NULL, "O", bias_array));
    }
    struct msc_joint_spec spec = {
        .op = op,
        .n_inputs = 1,
        .inputs = &tensors[0],
        .n_weights = bias ? 2 : 1,
        .weights = (const struct msc_weight_spec[]){{"weight", tensors[1]}, {"bias", tensors[2]}},
        .n_attrs = n_attrs,
        .attrs = attrs,
    };
    assert_ok(msc_graph_add_joint(&joint, f->g, &spec));
    f->joint = msc_graph_joint(f->g, joint);
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        f->x[i] = (uint8_t)((37 * i + 11) % 256);
        f->w[i] = (int8_t)((53 * i + 7) % 255 - 127);
    }
    f->operands[0] = view_of_tensor(f->g, tensors[0]);
    f->operands[0].dtype = MSC_DTYPE_U8;
    f->operands[0].data = f->x;
    f->operands[0].quant = &f->x_quant;
    f->operands[1] = view_of_tensor(f->g, tensors[1]);
    f->operands[1].dtype = MSC_DTYPE_I8;
    f->operands[1].data = f->w;
    f->operands[1].quant = &f->w_quant;
    if (bias) {
        f->operands[2] = msc_view_of_array(msc_graph_tensor(f->g, tensors[2])->data);
    }
    f->output = view_of_tensor(f->g, f->joint->outputs[0]);
    f->output.data = f->y;
    msc_array_release(weight);
    msc_array_release(bias_array);
}

static struct msc_reference_call call_of(const struct fixture *f) {
    return (struct msc_reference_call){
        .graph = f->g,
        .joint = f->joint,
        .n_operands = f->operands[2].data ? 3 : 2,
        .operands = f->operands,
        .n_outputs = 1,
        .outputs = &f->output,
    };
}

static void check(const struct fixture *f, const float expected[], int64_t n) {
    assert_int_equal(msc_view_n_elements(&f->output), n);
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&f->y[i], &expected[i], sizeof(float)) != 0) {
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, (double)f->y[i],
                     (double)expected[i]);
        }
    }
}

// Two groups, one scale per output channel, and padding with q = z = 100 at the top and on the
// right.
static void test_graph_reference_quant__conv(void **state) {
    static const float expected[] = {
        4.604e-01f,   1.94e-01f,       -1.6479999e-01f, 1.7232e+00f,     1.446e-01f,
        2.6782e+00f,  -2.5005999e+00f, 2.0647998e+00f,  -3.5131998e+00f, -5.35e-01f,
        -8.125e-01f,  -4.9336004e-01f, -1.86322e+00f,   -2.788e-01f,     -2.15554e+00f,
        -8.7316e-01f, -4.1380048e-02f, -2.6548004e-01f, 2.05532e+02f,    2.65676e+02f,
        1.21714e+02f, -2.5296799e+02f, 1.2077599e+02f,  -5.154e+00f,     3.7008798e+02f,
        1.73976e+02f, 8.200002e-02f,   -1.17858e+01f,   1.8098999e+01f,  2.064e-01f,
        1.32326e+01f, -5.84632e+01f,   -5.4468e+01f,    7.0924e+00f,     -1.05362e+01f,
        2.14914e+01f,
    };
    static const float bias[] = {0.5f, -1.0f, 2.0f, 0.125f};
    static const float scales[] = {0.01f, 0.003f, 0.7f, 0.11f};
    static const int32_t zeros[4] = {0};
    (void)state;
    struct fixture f;
    set_up(&f, MSC_OP_CONV2D_BIAS, "NCHW", 4, (const int64_t[]){1, 4, 3, 3}, "OIHW", 4,
           (const int64_t[]){4, 2, 2, 2}, bias, 4, 2,
           (const struct msc_attr[]){{"groups", "2"}, {"padding", "1,0,0,1"}});
    f.x_quant = (struct msc_quant){
        .axis = -1, .n = 1, .scales = (const float[]){0.02f}, .zero_points = (int32_t[]){100}};
    f.w_quant = (struct msc_quant){.axis = 0, .n = 4, .scales = scales, .zero_points = zeros};
    struct msc_reference_call call = call_of(&f);
    assert_ok(msc_reference_quantized_conv(&call));
    check(&f, expected, 36);

    f.w_quant.axis = 1;
    assert_int_equal(msc_reference_quantized_conv(&call), MSC_E_UNSUPPORTED);
    f.operands[0].quant = NULL;
    assert_int_equal(msc_reference_quantized_conv(&call), MSC_E_INVALID);
    assert_message("not quantised");
    msc_graph_destroy(f.g);
}

// A depthwise convolution with two outputs per channel. Each output has its own scale and zero
// point. Expected: integer sums in numpy.
static void test_graph_reference_quant__by_channel(void **state) {
    static const float expected[] = {
        3.436e-01f,      5.286e-01f,      5.42e-01f,       3.7314e+00f,     2.5326e+00f,
        5.912e-01f,      -1.8618e+00f,    -2.3437998e+00f, -1.6668e+00f,    -6.8314004e-01f,
        -8.1856e-01f,    -9.487e-01f,     -1.23748e+00f,   -1.4128599e+00f, -1.4111199e+00f,
        -1.7021799e+00f, -1.00204e+00f,   -3.025e-01f,     -4.9799e+03f,    -6.88355e+03f,
        -5.563e+03f,     -4.8776997e+03f, -6.147e+02f,     2.2388499e+03f,  8.448899e+03f,
        -6.385e+02f,     -4.1329e+03f,    -8.0175e+01f,    -3.5405e+01f,    9.79565e+02f,
        4.78075e+02f,    1.92232e+03f,    1.38835e+02f,    6.9945e+02f,     4.5775e+01f,
        7.74745e+02f,
    };
    static const float bias[] = {0.5f, -1.0f, 2.0f, 0.125f};
    static const float scales[] = {0.01f, 0.003f, 0.7f, 0.11f};
    static const int32_t zeros[4] = {0};
    (void)state;
    struct fixture f;
    set_up(&f, MSC_OP_CONV2D_BIAS, "NCHW", 4, (const int64_t[]){1, 2, 3, 3}, "OIHW", 4,
           (const int64_t[]){4, 1, 2, 2}, bias, 4, 2,
           (const struct msc_attr[]){{"groups", "2"}, {"padding", "1,0,0,1"}});
    f.x_quant = (struct msc_quant){.axis = 1,
                                   .n = 2,
                                   .scales = (const float[]){0.02f, 0.5f},
                                   .zero_points = (int32_t[]){100, 3}};
    f.w_quant = (struct msc_quant){.axis = 0, .n = 4, .scales = scales, .zero_points = zeros};
    struct msc_reference_call call = call_of(&f);
    assert_ok(msc_reference_quantized_conv(&call));
    check(&f, expected, 36);
    f.x_quant.axis = 2;
    assert_int_equal(msc_reference_quantized_conv(&call), MSC_E_UNSUPPORTED);
    msc_graph_destroy(f.g);
}

static void test_graph_reference_quant__conv_transpose(void **state) {
    static const float expected[] = {
        -6.846e-01f,    -1.3939999e-01f, -4.256e-01f,     -6.648e-01f,    -2.4728e+00f,
        1.0864e+00f,    -3.7826e+00f,    -3.8312e+00f,    9.24e-02f,      -1.7156e+00f,
        3.514e-01f,     6.774e-01f,      -7.7019995e-01f, 1.8984e+00f,    1.3504e+00f,
        1.6911999e+00f, -3.1669998e+00f, -3.7647998e+00f, 4.272e-01f,     -3.6759999e+00f,
        -1.6674e+00f,   -3.8059998e-01f, -4.7599998e-01f, 2.64e-02f,      8.06e-01f,
        1.6215999e+00f, -2.078e-01f,     1.7104e+00f,     1.9067999e+00f, 8.404e-01f,
        3.0981998e+00f, 9.402e-01f,
    };
    (void)state;
    struct fixture f;
    set_up(&f, MSC_OP_CONV2D_TRANSPOSE, "NCHW", 4, (const int64_t[]){1, 4, 3, 3}, "IOHW", 4,
           (const int64_t[]){4, 1, 2, 2}, NULL, 0, 3,
           (const struct msc_attr[]){{"groups", "2"}, {"padding", "1,1,1,1"}, {"strides", "2,2"}});
    f.x_quant = (struct msc_quant){
        .axis = -1, .n = 1, .scales = (const float[]){0.02f}, .zero_points = (int32_t[]){100}};
    f.w_quant = (struct msc_quant){
        .axis = -1, .n = 1, .scales = (const float[]){0.01f}, .zero_points = (int32_t[]){0}};
    struct msc_reference_call call = call_of(&f);
    assert_ok(msc_reference_quantized_conv(&call));
    check(&f, expected, 32);
    msc_graph_destroy(f.g);
}

// One layer with its weight in both orientations, and with zero points for the weight.
static void test_graph_reference_quant__linear(void **state) {
    static const float expected[] = {5.067e+00f,      2.0239997e-01f, -3.5447998e+00f,
                                     -2.2586799e+00f, -1.3022e+00f,   -1.46344e+00f};
    static const float bias[] = {0.5f, -1.0f};
    (void)state;
    for (int is_turned = 0; is_turned < 2; is_turned++) {
        struct fixture f;
        set_up(&f, MSC_OP_LINEAR_BIAS, "", 2, (const int64_t[]){3, 5}, is_turned ? "IO" : "OI", 2,
               is_turned ? (const int64_t[]){5, 2} : (const int64_t[]){2, 5}, bias, 2, 0, NULL);
        int8_t turned[10];
        for (int i = 0; i < 10; i++) {
            turned[i % 5 * 2 + i / 5] = f.w[i];
        }
        f.operands[1].data = is_turned ? turned : f.w;
        f.x_quant = (struct msc_quant){
            .axis = -1, .n = 1, .scales = (const float[]){0.02f}, .zero_points = (int32_t[]){128}};
        f.w_quant = (struct msc_quant){.axis = is_turned,
                                       .n = 2,
                                       .scales = (const float[]){0.01f, 0.003f},
                                       .zero_points = (int32_t[]){1, -2}};
        struct msc_reference_call call = call_of(&f);
        assert_ok(msc_reference_quantized_linear(&call));
        check(&f, expected, 6);
        msc_graph_destroy(f.g);
    }
}

// A product of two activations with different zero points, for a batch of two.
static void test_graph_reference_quant__matmul(void **state) {
    static const float expected[] = {-2.6007e+02f,   -1.2354001e+02f, -1.40892e+03f, -9.0276e+02f,
                                     9.3450005e+01f, -1.33476e+03f,   -7.9602e+02f,  -1.02516e+03f};
    (void)state;
    uint8_t x[12];
    float y[8];
    for (int i = 0; i < 12; i++) {
        x[i] = (uint8_t)((37 * i + 11) % 256);
    }
    struct msc_quant a = {
        .axis = -1, .n = 1, .scales = (const float[]){0.1f}, .zero_points = (int32_t[]){7}};
    struct msc_quant b = {
        .axis = -1, .n = 1, .scales = (const float[]){0.3f}, .zero_points = (int32_t[]){200}};
    struct msc_view operands[] = {
        {.data = x, .dtype = MSC_DTYPE_U8, .n_dims = 3, .dims = {2, 2, 3}, .quant = &a},
        {.data = x, .dtype = MSC_DTYPE_U8, .n_dims = 3, .dims = {2, 3, 2}, .quant = &b},
    };
    struct msc_view output = {.data = y, .dtype = MSC_DTYPE_F32, .n_dims = 3, .dims = {2, 2, 2}};
    struct msc_joint joint = {.name = "matmul", .op = MSC_OP_MATMUL};
    struct msc_reference_call call = {
        .joint = &joint,
        .n_operands = 2,
        .operands = operands,
        .n_outputs = 1,
        .outputs = &output,
    };
    assert_ok(msc_reference_quantized_linear(&call));
    assert_memory_equal(y, expected, sizeof(y));
}

// 3001 products of 255 by 127 or 125 sum to 96880875, far above 2^24. Float32 accumulation would
// give 96694312.
static void test_graph_reference_quant__sum_beyond_float(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, MSC_OP_LINEAR, "", 2, (const int64_t[]){1, 3001}, "OI", 2,
           (const int64_t[]){1, 3001}, NULL, 0, 0, NULL);
    for (int i = 0; i < 3001; i++) {
        f.x[i] = 255;
        f.w[i] = i % 5 == 0 ? 125 : 127;
    }
    f.x_quant = (struct msc_quant){
        .axis = -1, .n = 1, .scales = (const float[]){0.0123f}, .zero_points = (int32_t[]){0}};
    f.w_quant = (struct msc_quant){
        .axis = -1, .n = 1, .scales = (const float[]){0.0456f}, .zero_points = (int32_t[]){0}};
    struct msc_reference_call call = call_of(&f);
    assert_ok(msc_reference_quantized_linear(&call));
    check(&f, (const float[]){54338.543f}, 1);
    msc_graph_destroy(f.g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_reference_quant__conv),
        cmocka_unit_test(test_graph_reference_quant__by_channel),
        cmocka_unit_test(test_graph_reference_quant__conv_transpose),
        cmocka_unit_test(test_graph_reference_quant__linear),
        cmocka_unit_test(test_graph_reference_quant__matmul),
        cmocka_unit_test(test_graph_reference_quant__sum_beyond_float),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
