// Joints near and beyond the limits of a device: loops with more iterations than an invocation may
// run, and more workgroups than an axis allows. Whether a joint runs on the device or on the host,
// its result must equal a closed formula. Elements of inputs and weights are 1 unless stated
// otherwise.
#include "base/alloc.h"

#include "tests/kernels/cpu_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Turns of loops ---------------------------------------------------------------------------

// Adds a joint that needs about n loop iterations for each element, and returns its output.
typedef int32_t (*add_fn)(struct cpu_case *c, int64_t n);

static int32_t joint(struct cpu_case *c, enum msc_op op, int32_t n, const int32_t x[],
                     const char *attributes) {
    return cpu_joint(c, op, n, x, attributes, MSC_NO_ID, MSC_NO_ID);
}

// Adds a joint whose attributes are `before`, the number and `after`.
static int32_t numbered(struct cpu_case *c, enum msc_op op, int32_t n, const int32_t x[],
                        const char *before, int64_t number, const char *after) {
    char text[200];
    snprintf(text, sizeof(text), "%s%lld%s", before, (long long)number, after);
    return joint(c, op, n, x, text);
}

static int32_t add_linear(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(2, n));
    return cpu_joint(c, MSC_OP_LINEAR, 1, &x, "", cpu_weight(c, "OI", 2, DIMS(4, n)), MSC_NO_ID);
}

static int32_t add_matmul(struct cpu_case *c, int64_t n) {
    int32_t a = cpu_input(c, "", 3, DIMS(2, 3, n)), b = cpu_input(c, "", 3, DIMS(2, n, 4));
    return joint(c, MSC_OP_MATMUL, 2, IDS(a, b), "");
}

// A kernel of n / 4 taps, each summed over four channels.
static int32_t add_conv(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 4, 1, n / 4));
    return cpu_joint(c, MSC_OP_CONV2D, 1, &x, "", cpu_weight(c, "OIHW", 4, DIMS(5, 4, 1, n / 4)),
                     MSC_NO_ID);
}

static int32_t add_taps(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 1, 1, n + 1));
    return cpu_joint(c, MSC_OP_CONV2D, 1, &x, "", cpu_weight(c, "OIHW", 4, DIMS(5, 1, 1, n)),
                     MSC_NO_ID);
}

static int32_t add_depthwise(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 4, 1, n + 1));
    return cpu_joint(c, MSC_OP_CONV2D, 1, &x, "groups=4",
                     cpu_weight(c, "OIHW", 4, DIMS(4, 1, 1, n)), MSC_NO_ID);
}

static int32_t add_transposed(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, n, 2, 2));
    return cpu_joint(c, MSC_OP_CONV2D_TRANSPOSE, 1, &x, "",
                     cpu_weight(c, "IOHW", 4, DIMS(n, 5, 1, 1)), MSC_NO_ID);
}

// Half floats use a different shader.
static int32_t add_half_conv(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 3, DIMS(1, 1, n + 1));
    int32_t w = cpu_input(c, "", 3, DIMS(1, 1, n));
    x = joint(c, MSC_OP_CAST, 1, &x, "dtype=bfloat16");
    w = joint(c, MSC_OP_CAST, 1, &w, "dtype=bfloat16");
    return joint(c, MSC_OP_CONV1D, 2, IDS(x, w), "out_dtype=bfloat16");
}

static int32_t add_half_channels(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 3, DIMS(1, n, 2)), w = cpu_input(c, "", 3, DIMS(1, n, 1));
    x = joint(c, MSC_OP_CAST, 1, &x, "dtype=bfloat16");
    w = joint(c, MSC_OP_CAST, 1, &w, "dtype=bfloat16");
    return joint(c, MSC_OP_CONV1D, 2, IDS(x, w), "out_dtype=bfloat16");
}

static int32_t add_pool(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 3, n, 2));
    return numbered(c, MSC_OP_AVG_POOL2D, 1, &x, "pool_size=", n, ",1");
}

static int32_t add_pool3d(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 5, DIMS(1, 1, n, 1, 1));
    return numbered(c, MSC_OP_AVG_POOL3D, 1, &x, "pool_size=", n, ",1,1");
}

static int32_t add_sum(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(3, n));
    return joint(c, MSC_OP_SUM, 1, &x, "axis=1");
}

static int32_t add_whole_sum(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_whole_input(c, "int64", 1, 1, 2, DIMS(3, n));
    return joint(c, MSC_OP_SUM, 1, &x, "axis=1");
}

static int32_t add_running_sum(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(3, n));
    return joint(c, MSC_OP_CUMSUM, 1, &x, "axis=1");
}

static int32_t add_softmax(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(3, n));
    return joint(c, MSC_OP_SOFTMAX, 1, &x, "axis=1");
}

static int32_t add_half_softmax(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(3, n));
    x = joint(c, MSC_OP_CAST, 1, &x, "dtype=bfloat16");
    return joint(c, MSC_OP_SOFTMAX, 1, &x, "axis=1");
}

static int32_t add_layer_norm(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(3, n));
    struct msc_weight_spec weights[] = {{"gamma", cpu_weight(c, "O", 1, &n)},
                                        {"beta", cpu_weight(c, "O", 1, &n)}};
    return cpu_joint_weights(c, MSC_OP_LAYER_NORM, 1, &x, "axis=1;epsilon=1e-05", 2, weights);
}

static int32_t add_instance_norm(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 3, DIMS(1, 2, 16 * n));
    struct msc_weight_spec weights[] = {{"gamma", cpu_weight(c, "O", 1, DIMS(2))},
                                        {"beta", cpu_weight(c, "O", 1, DIMS(2))}};
    return cpu_joint_weights(c, MSC_OP_INSTANCE_NORM, 1, &x, "epsilon=1e-05", 2, weights);
}

// Normalises over all channels. There are few elements, because the host visits all channels for
// each element.
static int32_t add_lrn(struct cpu_case *c, int64_t n) {
    n /= 20;
    int32_t x = cpu_input(c, "", 4, DIMS(1, n, 1, 1));
    return numbered(c, MSC_OP_LRN, 1, &x, "alpha=1;beta=1;bias=0;size=", 2 * n + 1, "");
}

static int32_t add_whole_product(struct cpu_case *c, int64_t n) {
    int32_t a = cpu_whole_input(c, "int32", 1, 1, 2, DIMS(2, n));
    int32_t b = cpu_whole_input(c, "int32", 1, 1, 2, DIMS(n, 3));
    return joint(c, MSC_OP_MATMUL, 2, IDS(a, b), "");
}

static int32_t add_byte_product(struct cpu_case *c, int64_t n) {
    int32_t a = cpu_whole_input(c, "uint8", 1, 1, 2, DIMS(2, n));
    int32_t b = cpu_whole_input(c, "uint8", 1, 1, 2, DIMS(n, 3));
    return joint(c, MSC_OP_MATMUL_INTEGER, 2, IDS(a, b), "");
}

static int32_t add_byte_conv(struct cpu_case *c, int64_t n) {
    int32_t a = cpu_whole_input(c, "uint8", 1, 1, 4, DIMS(1, n, 1, 2));
    int32_t b = cpu_whole_input(c, "uint8", 1, 1, 4, DIMS(1, n, 1, 1));
    return joint(c, MSC_OP_CONV_INTEGER, 2, IDS(a, b), "dilation=1,1;padding=0,0,0,0;strides=1,1");
}

static int32_t add_recurrent(struct cpu_case *c, enum msc_op op, int64_t gates, int64_t n,
                             const char *attributes) {
    int32_t x = cpu_input(c, "", 3, DIMS(n, 1, 1));
    struct msc_weight_spec weights[] = {{"weight", cpu_weight(c, "", 3, DIMS(1, gates, 1))},
                                        {"recurrence", cpu_weight(c, "", 3, DIMS(1, gates, 1))}};
    return cpu_joint_weights(c, op, 1, &x, attributes, 2, weights);
}

// An RNN that counts its time steps.
static int32_t add_rnn(struct cpu_case *c, int64_t n) {
    return add_recurrent(c, MSC_OP_RNN, 1, n, "hidden_size=1;activations=Affine");
}

static int32_t add_lstm(struct cpu_case *c, int64_t n) {
    return add_recurrent(c, MSC_OP_LSTM, 4, n, "hidden_size=1");
}

static int32_t add_gru(struct cpu_case *c, int64_t n) {
    return add_recurrent(c, MSC_OP_GRU, 3, n, "hidden_size=1");
}

// All updates go to the first element.
static int32_t add_scatter(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 1, DIMS(1)), updates = cpu_input(c, "", 1, DIMS(n));
    int32_t at = cpu_whole_input(c, "int64", 0, 0, 1, DIMS(n));
    return joint(c, MSC_OP_SCATTER_ELEMENTS, 3, IDS(x, at, updates), "axis=0;reduction=add");
}

// A window of n taps at one position over an image of one element.
static int32_t add_columns(struct cpu_case *c, int64_t n) {
    char text[200];
    n = n / 2 * 2 + 1;
    int32_t x = cpu_input(c, "", 3, DIMS(1, n, 1));
    snprintf(text, sizeof(text), "image_shape=1,1;block_shape=1,%lld;pads=0,%lld,0,%lld",
             (long long)n, (long long)n / 2, (long long)n / 2);
    return joint(c, MSC_OP_COL2IM, 1, &x, text);
}

static int32_t add_deformed(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 4, DIMS(1, n, 1, 1)), w = cpu_input(c, "", 4, DIMS(1, n, 1, 1));
    c->low = c->high = 0.0f;
    int32_t offset = cpu_input(c, "", 4, DIMS(1, 2, 1, 1));
    return joint(c, MSC_OP_DEFORM_CONV, 3, IDS(x, w, offset), "");
}

static int32_t add_regions(struct cpu_case *c, int64_t n) {
    static const float region[4] = {0, 0, 1, 1};
    int32_t x = cpu_input(c, "", 4, DIMS(1, 1, 2, 2));
    int32_t regions = cpu_constant(c, 2, DIMS(1, 4), region);
    int32_t images = cpu_whole_input(c, "int64", 0, 0, 1, DIMS(1));
    return numbered(c, MSC_OP_ROI_ALIGN, 3, IDS(x, regions, images),
                    "output_height=1;output_width=1;sampling_ratio=", (int64_t)sqrt((double)n), "");
}

static int32_t add_filtered(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 3, DIMS(1, 1, n));
    return joint(c, MSC_OP_RESIZE_ANTIALIAS, 1, &x, "method=linear;size=1,1,1");
}

static double one(int64_t n) {
    (void)n;
    return 1.0;
}

static double count(int64_t n) {
    return (double)n;
}

static double quarters(int64_t n) {
    return (double)(n / 4 * 4);
}

static double one_more(int64_t n) {
    return (double)n + 1.0;
}

static double share(int64_t n) {
    return 1.0 / (double)n;
}

static double lrn_of_ones(int64_t n) {
    n /= 20;
    return (2.0 * (double)n + 1.0) / (double)n;
}

static double sigmoid(double v) {
    return 1.0 / (1.0 + exp(-v));
}

// The state to which an LSTM converges if all its weights are 1.
static double lstm_of_ones(int64_t n) {
    double h = 0.0, cell = 0.0;
    for (int64_t t = 0; t < n; t++) {
        double gate = sigmoid(1.0 + h);
        cell = gate * cell + gate * tanh(1.0 + h);
        h = gate * tanh(cell);
    }
    return h;
}

static double gru_of_ones(int64_t n) {
    double h = 0.0;
    for (int64_t t = 0; t < n; t++) {
        double gate = sigmoid(1.0 + h);
        h = (1.0 - gate) * tanh(1.0 + gate * h) + gate * h;
    }
    return h;
}

static const struct row {
    const char *name;
    add_fn add;
    double (*expected)(int64_t n); // expected value of the last element
    double bound;                  // bound of the relative error
} rows[] = {
    {"linear", add_linear, count, 0},
    {"matmul", add_matmul, count, 0},
    {"conv", add_conv, quarters, 0},
    {"taps", add_taps, count, 0},
    {"depthwise", add_depthwise, count, 0},
    {"transposed", add_transposed, count, 0},
    {"half conv", add_half_conv, count, 0.01},
    {"half channels", add_half_channels, count, 0.01},
    {"pool", add_pool, one, 0},
    {"pool3d", add_pool3d, one, 0},
    {"sum", add_sum, count, 0},
    {"whole sum", add_whole_sum, count, 0},
    {"running sum", add_running_sum, count, 0},
    {"softmax", add_softmax, share, 1e-6},
    {"half softmax", add_half_softmax, share, 0.01},
    {"layer norm", add_layer_norm, one, 0},
    {"instance norm", add_instance_norm, one, 0},
    {"lrn", add_lrn, lrn_of_ones, 1e-5},
    {"whole product", add_whole_product, count, 0},
    {"byte product", add_byte_product, count, 0},
    {"byte conv", add_byte_conv, count, 0},
    {"rnn", add_rnn, count, 0},
    {"lstm", add_lstm, lstm_of_ones, 1e-5},
    {"gru", add_gru, gru_of_ones, 1e-5},
    {"scatter", add_scatter, one_more, 0},
    {"columns", add_columns, one, 0},
    {"deformed", add_deformed, count, 0},
    {"regions", add_regions, one, 1e-4},
    {"filtered", add_filtered, one, 1e-4},
};

// Returns the number of steps that ran on the host.
static int check_row(const struct row *row, int64_t n) {
    struct cpu_case c;
    struct msc_array *found;
    cpu_case_init(&c, 1);
    c.low = c.high = 1.0f;
    c.is_at_limits = true;
    cpu_case_finish_graph(&c, row->add(&c, n));
    cpu_run(&found, &c, 0);
    double last = msc_array_get_double(found, msc_array_n_elements(found) - 1);
    double expected = row->expected(n);
    if (!(fabs(last - expected) <= row->bound * expected)) {
        fail_msg("%s of %lld: %.9g, expected %.9g; %d of %d steps on the host", row->name,
                 (long long)n, last, expected, c.n_on_host, c.n_steps);
    }
    msc_array_release(found);
    cpu_case_finish(&c);
    return c.n_on_host;
}

// A joint with few iterations must run on the device. With more iterations the result must still be
// right.
static void test_kernels_cpu_limits__turns(void **state) {
    static const int64_t more[] = {4000, 25000, 70000, 300000};
    const char *device = getenv("MSC_TEST_DEVICE");
    size_t n_more = device && strcmp(device, "vulkan") == 0 ? 4 : 1;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(check_row(&rows[i], 400), 0);
        for (size_t k = 0; k < n_more; k++) {
            check_row(&rows[i], more[k]);
        }
    }
}

// ---- Workgroups -------------------------------------------------------------------------------

static int32_t add_products(struct cpu_case *c, int64_t n) {
    int32_t a = cpu_input(c, "", 3, DIMS(n, 2, 2)), b = cpu_input(c, "", 3, DIMS(n, 2, 2));
    return joint(c, MSC_OP_MATMUL, 2, IDS(a, b), "");
}

static int32_t add_positions(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 1, n, n));
    return cpu_joint(c, MSC_OP_CONV2D, 1, &x, "", cpu_weight(c, "OIHW", 4, DIMS(1, 1, 1, 1)),
                     MSC_NO_ID);
}

static int32_t add_softmax_across(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 4, DIMS(1, 2, n, 2048));
    return joint(c, MSC_OP_SOFTMAX, 1, &x, "axis=1");
}

static int32_t add_short_norms(struct cpu_case *c, int64_t n) {
    int32_t x = cpu_input(c, "", 2, DIMS(n, 2));
    struct msc_weight_spec weights[] = {{"gamma", cpu_weight(c, "O", 1, DIMS(2))},
                                        {"beta", cpu_weight(c, "O", 1, DIMS(2))}};
    return cpu_joint_weights(c, MSC_OP_LAYER_NORM, 1, &x, "axis=1;epsilon=1e-05", 2, weights);
}

// More workgroups along an axis than 65,535, the number that every device supports: for products,
// rows and lines.
static void test_kernels_cpu_limits__workgroups(void **state) {
    static const struct {
        add_fn add;
        int64_t n;
        float expected; // value of every element
    } large[] = {
        {add_products, 70000, 2.0f},
        {add_positions, 2900, 1.0f},
        {add_softmax_across, 2049, 0.5f},
        {add_short_norms, 4200000, 1.0f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        struct cpu_case c;
        struct msc_array *found;
        int64_t n_wrong = 0;
        cpu_case_init(&c, 2);
        c.low = c.high = 1.0f;
        c.is_at_limits = true;
        cpu_case_finish_graph(&c, large[i].add(&c, large[i].n));
        cpu_run(&found, &c, 0);
        const float *y = msc_array_data(found);
        for (int64_t k = 0; k < msc_array_n_elements(found); k++) {
            n_wrong += y[k] != large[i].expected;
        }
        assert_int_equal(n_wrong, 0);
        assert_int_equal(c.n_on_host, 0);
        msc_array_release(found);
        cpu_case_finish(&c);
    }
}

// If factors are copied to another layout, the copy may exceed every memory block although no
// operand does.
static void test_kernels_cpu_limits__repeated_factors(void **state) {
    struct cpu_case c;
    struct msc_array *found;
    (void)state;
    cpu_case_init(&c, 3);
    c.low = c.high = 1.0f;
    c.is_at_limits = true;
    int32_t a = cpu_input(&c, "", 4, DIMS(1, 64, 64, 128));
    int32_t b = cpu_input(&c, "", 4, DIMS(1200, 1, 128, 1));
    cpu_case_finish_graph(&c, joint(&c, MSC_OP_MATMUL, 2, IDS(a, b), ""));
    cpu_run(&found, &c, 0);
    const float *y = msc_array_data(found);
    for (int64_t k = 0; k < msc_array_n_elements(found); k++) {
        assert_true(y[k] == 128.0f);
    }
    msc_array_release(found);
    cpu_case_finish(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_limits__turns),
        cmocka_unit_test(test_kernels_cpu_limits__workgroups),
        cmocka_unit_test(test_kernels_cpu_limits__repeated_factors),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
