// Pools, resizes, softmax, normalisation, reductions and everything that only moves elements, in
// either layout.
#include "tests/kernels/cpu_case.h"

#include <stdio.h>

static int32_t unary(struct cpu_case *c, enum msc_op op, int32_t x, const char *attributes) {
    return cpu_joint(c, op, 1, &x, attributes, MSC_NO_ID, MSC_NO_ID);
}

// Channels last, for tensors of 4 dims.
static int32_t make_last(struct cpu_case *c, int32_t x) {
    return unary(c, MSC_OP_MAX_POOL2D, x, "pool_size=1,1");
}

struct layer {
    enum msc_op op;
    const char *attributes;
    int n_dims;
    int64_t dims[5];
    bool is_close; // float sums in another order
};

static void check_layer(const struct layer *l, bool is_last, int output) {
    struct cpu_case c;
    cpu_case_init(&c, 31);
    int32_t x = cpu_input(&c, "", l->n_dims, l->dims);
    if (is_last) {
        x = make_last(&c, x);
    }
    int32_t y = unary(&c, l->op, x, l->attributes);
    const struct msc_joint *j = msc_graph_joint(c.g, msc_graph_tensor(c.g, y)->producer);
    cpu_case_finish_graph(&c, j->outputs[output]);
    if (l->is_close) {
        cpu_check_close(&c, 1e-12);
    } else {
        cpu_check_equal(&c);
    }
    cpu_case_finish(&c);
}

static void check_layers(const struct layer layers[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        check_layer(&layers[i], false, 0);
        if (layers[i].n_dims == 4) {
            check_layer(&layers[i], true, 0);
        }
    }
}

#define CHECK_LAYERS(layers) check_layers(layers, sizeof(layers) / sizeof((layers)[0]))

static void test_kernels_cpu_layers__pools(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_MAX_POOL1D, "pool_size=3,;strides=2,;padding=1,0", 3, {2, 16, 41}, false},
        {MSC_OP_MAX_POOL1D, "pool_size=5,;dilation=2,;ceil_mode=1", 3, {1, 70, 33}, false},
        {MSC_OP_AVG_POOL1D, "pool_size=4,;strides=3,;padding=2,1", 3, {2, 19, 40}, false},
        {MSC_OP_AVG_POOL1D, "pool_size=3,;padding=1,1;count_include_pad=1", 3, {1, 3, 20}, false},
        {MSC_OP_MAX_POOL2D, "pool_size=2,2;strides=2,2", 4, {2, 16, 8, 8}, false},
        {MSC_OP_MAX_POOL2D, "pool_size=3,3;strides=2,2;padding=1,1,1,1", 4, {1, 19, 9, 7}, false},
        {MSC_OP_MAX_POOL2D,
         "pool_size=3,2;strides=2,1;dilation=2,1;padding=0,1,2,0",
         4,
         {1, 3, 11, 8},
         false},
        {MSC_OP_MAX_POOL2D, "pool_size=3,3;strides=2,2;ceil_mode=1", 4, {1, 5, 8, 8}, false},
        {MSC_OP_AVG_POOL2D, "pool_size=3,3;strides=1,1;padding=1,1,1,1", 4, {2, 17, 6, 5}, false},
        {MSC_OP_AVG_POOL2D,
         "pool_size=3,3;strides=2,2;padding=1,1,1,1;count_include_pad=1",
         4,
         {1, 8, 7, 7},
         false},
        {MSC_OP_AVG_POOL2D,
         "pool_size=3,3;strides=2,2;ceil_mode=1;padding=0,0,1,1;count_include_pad=1",
         4,
         {1, 4, 8, 8},
         false},
        {MSC_OP_AVG_POOL2D, "pool_size=2,2;strides=2,2;ceil_mode=1", 4, {1, 4, 7, 5}, false},
        {MSC_OP_MAX_POOL2D, "pool_size=5,5;padding=2,2,2,2", 4, {2, 1, 9, 40}, false},
        {MSC_OP_MAX_POOL2D, "pool_size=2,3;padding=1,5,0,5;dilation=1,4", 4, {2, 3, 6, 7}, false},
        {MSC_OP_AVG_POOL2D,
         "pool_size=3,3;padding=1,1,1,1;count_include_pad=1",
         4,
         {1, 5, 6, 5},
         false},
        {MSC_OP_AVG_POOL2D, "pool_size=3,3;padding=1,1,1,1", 4, {1, 70, 6, 5}, false},
        {MSC_OP_AVG_POOL2D, "pool_size=2,4;strides=2,1;padding=0,3,0,2", 4, {1, 3, 6, 9}, false},
        {MSC_OP_GLOBAL_AVG_POOL, "", 4, {3, 20, 7, 7}, true},
        {MSC_OP_GLOBAL_MAX_POOL, "", 4, {3, 20, 7, 7}, false},
        {MSC_OP_GLOBAL_AVG_POOL, "", 4, {2, 1, 30, 41}, true},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__resizes(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_RESIZE,
         "method=nearest_neighbor;scales=1,1,2,2;coordinate_transformation_mode=asymmetric;"
         "rounding_method=floor",
         4,
         {2, 6, 5, 7},
         false},
        {MSC_OP_RESIZE, "method=nearest_neighbor;scales=1,1,1.5,0.6", 4, {1, 5, 6, 10}, false},
        {MSC_OP_RESIZE, "method=linear;scales=1,1,2,2", 4, {2, 18, 5, 4}, false},
        {MSC_OP_RESIZE,
         "method=linear;size=1,3,9,11;coordinate_transformation_mode=align_corners",
         4,
         {1, 3, 4, 20},
         false},
        {MSC_OP_RESIZE, "method=linear;scales=1,1,2,1", 4, {1, 4, 3, 3}, false},
        {MSC_OP_RESIZE, "method=cubic;scales=1,1,2,3", 4, {1, 3, 6, 5}, false},
        {MSC_OP_RESIZE, "method=linear;scales=1,2,2,2", 4, {1, 3, 4, 4}, false},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__softmax(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_SOFTMAX, "axis=-1", 2, {5, 1000}, true},
        {MSC_OP_SOFTMAX, "axis=-1", 2, {2, 2077}, true},
        {MSC_OP_LOG_SOFTMAX, "axis=-1", 2, {2, 1024}, true},
        {MSC_OP_SOFTMAX, "axis=1", 4, {2, 21, 5, 5}, true},
        {MSC_OP_SOFTMAX, "axis=3", 4, {2, 3, 5, 17}, true},
        {MSC_OP_SOFTMAX, "axis=2", 4, {2, 40, 5, 17}, true},
        {MSC_OP_SOFTMAX, "axis=0", 3, {7, 3, 200}, true},
        {MSC_OP_LOG_SOFTMAX, "axis=-1", 3, {2, 5, 33}, true},
        {MSC_OP_LOG_SOFTMAX, "axis=1", 4, {2, 10, 15, 15}, true},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__layer_norm(void **state) {
    static const struct {
        const char *attributes;
        int n_axes;
        int64_t dims[4];
        bool is_last, has_beta;
    } rows[] = {
        {"", 1, {2, 3, 5, 384}, false, true},
        {"epsilon=0.01;center=0", 1, {2, 3, 5, 35}, false, false},
        {"axes=-3,-2,-1", 3, {3, 7, 5, 3}, true, true},
        {"axes=2,3", 2, {1, 20, 9, 1}, true, true},
        {"", 1, {1, 1, 2, 22000}, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 33);
        const int64_t *dims = rows[i].dims + 4 - rows[i].n_axes;
        int32_t x = cpu_input(&c, "", 4, rows[i].dims);
        struct msc_weight_spec weights[] = {{"gamma", cpu_weight(&c, "", rows[i].n_axes, dims)},
                                            {"beta", cpu_weight(&c, "", rows[i].n_axes, dims)}};
        x = rows[i].is_last ? make_last(&c, x) : x;
        x = cpu_joint_weights(&c, MSC_OP_LAYER_NORM, 1, &x, rows[i].attributes,
                              rows[i].has_beta ? 2 : 1, weights);
        cpu_case_finish_graph(&c, x);
        cpu_check_close(&c, 1e-12);
        cpu_case_finish(&c);
    }
}

// Blocks of columns, and rows, of all kinds: few and many channels, positions that are left over.
static void test_kernels_cpu_layers__group_norm(void **state) {
    static const struct {
        enum msc_op op;
        const char *attributes;
        int n_dims;
        int64_t dims[5];
        int64_t n_gamma;
    } rows[] = {
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 4, {2, 5, 30, 31}, 5},
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 4, {1, 3, 161, 71}, 3},
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 4, {2, 64, 5, 3}, 64},
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 4, {1, 150, 13, 11}, 150},
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 4, {2, 1, 90, 100}, 1},
        {MSC_OP_INSTANCE_NORM, "epsilon=0.001", 3, {3, 7, 5000}, 7},
        {MSC_OP_GROUP_NORM, "num_groups=4", 4, {2, 12, 30, 11}, 12},
        {MSC_OP_GROUP_NORM, "num_groups=3", 4, {2, 96, 7, 9}, 3},
        {MSC_OP_GROUP_NORM, "num_groups=1", 4, {1, 24, 20, 40}, 24},
        {MSC_OP_GROUP_NORM, "num_groups=2", 4, {3, 70, 1, 1}, 70},
        {MSC_OP_GROUP_NORM, "num_groups=5", 2, {9, 520}, 520},
        {MSC_OP_GROUP_NORM, "num_groups=2", 5, {1, 6, 4, 5, 6}, 2},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct cpu_case c;
        bool is_last = i % 2 == 1;
        if (is_last && rows[i / 2].n_dims != 4) {
            continue;
        }
        cpu_case_init(&c, 34);
        struct msc_weight_spec weights[] = {{"gamma", cpu_weight(&c, "O", 1, &rows[i / 2].n_gamma)},
                                            {"beta", cpu_weight(&c, "O", 1, &rows[i / 2].n_gamma)}};
        c.low = 10.0f; // a mean beyond the spread
        c.high = 13.0f;
        int32_t x = cpu_input(&c, "", rows[i / 2].n_dims, rows[i / 2].dims);
        x = is_last ? make_last(&c, x) : x;
        x = cpu_joint_weights(&c, rows[i / 2].op, 1, &x, rows[i / 2].attributes, 2, weights);
        cpu_case_finish_graph(&c, is_last ? make_last(&c, x) : x);
        cpu_check_close(&c, 1e-10);
        assert_true(c.n_steps <= 5); // the input and the output are reordered at most
        cpu_case_finish(&c);
    }
}

static void test_kernels_cpu_layers__reductions(void **state) {
    static const char *const axes[] = {"1,",    "2,3",   "3,",      "0,",    "1,3", "2,",
                                       "0,2,3", "-1,-3", "0,1,2,3", "1,2,3", ""};
    static const enum msc_op ops[] = {MSC_OP_MEAN, MSC_OP_SUM, MSC_OP_MAX, MSC_OP_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        for (size_t k = 0; k < 8; k++) {
            char attributes[64];
            snprintf(attributes, sizeof(attributes), "axis=%s;keepdims=%d", axes[i], (int)(k & 1));
            struct layer l = {ops[k / 2], attributes, 4, {3, 18, 5, 37}, k < 4};
            check_layer(&l, false, 0);
            check_layer(&l, true, 0);
        }
    }
    struct layer rows = {MSC_OP_MEAN, "axis=-1,;keepdims=1", 3, {2, 40, 120}, true};
    check_layer(&rows, false, 0);
}

static void test_kernels_cpu_layers__permutes(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_PERMUTE_DIMS, "axes=0,2,3,1", 4, {2, 20, 6, 37}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=0,3,1,2", 4, {2, 20, 6, 37}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=0,1,3,2", 4, {2, 20, 6, 37}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=3,2,1,0", 4, {2, 3, 6, 5}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=1,0,2,3", 4, {2, 20, 1, 1}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=0,2,1", 3, {2, 33, 18}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=1,0", 2, {70, 35}, false},
        {MSC_OP_PERMUTE_DIMS, "axes=0,3,1,4,2", 5, {2, 3, 4, 5, 6}, false},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__depth_space(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=2;mode=DCR", 4, {2, 12, 5, 37}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=2;mode=CRD", 4, {2, 12, 5, 37}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=3;mode=DCR", 4, {1, 18, 4, 21}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=4;mode=CRD", 4, {2, 16, 3, 19}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=5;mode=DCR", 4, {1, 75, 3, 6}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=9;mode=CRD", 4, {1, 81, 2, 18}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=2;mode=DCR", 4, {3, 8, 1, 1}, false},
        {MSC_OP_DEPTH_TO_SPACE, "blocksize=1;mode=DCR", 4, {2, 3, 4, 5}, false},
        {MSC_OP_SPACE_TO_DEPTH, "blocksize=2", 4, {2, 3, 6, 38}, false},
        {MSC_OP_SPACE_TO_DEPTH, "blocksize=3", 4, {1, 5, 9, 21}, false},
        {MSC_OP_SPACE_TO_DEPTH, "blocksize=4", 4, {2, 1, 8, 76}, false},
        {MSC_OP_SPACE_TO_DEPTH, "blocksize=6", 4, {1, 2, 12, 18}, false},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__renames(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_RESHAPE, "shape=2,20,-1", 4, {2, 20, 6, 7}, false},
        {MSC_OP_RESHAPE, "shape=2,20,3,14", 4, {2, 20, 6, 7}, false},
        {MSC_OP_RESHAPE, "shape=2,-1", 4, {2, 20, 1, 1}, false},
        {MSC_OP_RESHAPE, "shape=40,42", 4, {2, 20, 6, 7}, false},
        {MSC_OP_FLATTEN, "axis=1", 4, {3, 5, 2, 2}, false},
        {MSC_OP_SQUEEZE, "axis=2,3", 4, {3, 5, 1, 1}, false},
        {MSC_OP_SQUEEZE, "axis=2,", 4, {3, 5, 1, 9}, false},
        {MSC_OP_EXPAND_DIMS, "axis=0,", 3, {3, 5, 4}, false},
        {MSC_OP_EXPAND_DIMS, "axis=4,", 4, {2, 5, 4, 3}, false},
        {MSC_OP_IDENTITY, "", 4, {2, 5, 4, 3}, false},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

// A step more for each copy: joints that only rename what comes with channels last do not reorder.
static void test_kernels_cpu_layers__aliases(void **state) {
    static const struct {
        struct layer layer;
        int n_steps;
    } cases[] = {
        // From NHWC to the channels-last layout of NCHW, a pool there, and back.
        {{MSC_OP_PERMUTE_DIMS, "axes=0,3,1,2", 4, {1, 6, 5, 4}, false}, 2},
        {{MSC_OP_RELU, "", 4, {1, 6, 5, 4}, false}, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cpu_case c;
        struct msc_array *out;
        cpu_case_init(&c, 5);
        int32_t x = cpu_input(&c, "", 4, cases[i].layer.dims);
        x = unary(&c, cases[i].layer.op, x, cases[i].layer.attributes);
        x = unary(&c, MSC_OP_MAX_POOL2D, x, "pool_size=2,2");
        cpu_case_finish_graph(&c, unary(&c, MSC_OP_PERMUTE_DIMS, x, "axes=0,2,3,1"));
        cpu_run(&out, &c, 0);
        assert_int_equal(c.n_steps, cases[i].n_steps - (i == 0 ? 1 : 0));
        msc_array_release(out);
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

static void test_kernels_cpu_layers__slices(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_STRIDED_SLICE, "begin=1,2;end=3,9;axes=2,3", 4, {2, 20, 6, 11}, false},
        {MSC_OP_STRIDED_SLICE, "begin=0,4,0,0;end=2,15,6,11", 4, {2, 20, 6, 11}, false},
        {MSC_OP_STRIDED_SLICE, "begin=-1,;end=-100,;axes=3,;strides=-2,", 4, {2, 20, 6, 11}, false},
        {MSC_OP_STRIDED_SLICE, "begin=1,;end=100,;axes=1,;strides=3,", 4, {2, 20, 6, 11}, false},
        {MSC_OP_STRIDED_SLICE, "begin=5,;end=-1,;axes=-1,", 2, {3, 20}, false},
        {MSC_OP_STRIDED_SLICE,
         "begin=3,;end=4,;axes=0,;strides=9223372036854775807,",
         2,
         {5, 20},
         false},
        {MSC_OP_PAD, "pad_width=0,0,1,2,0,0,3,0;pad_value=1.5", 4, {2, 5, 6, 7}, false},
        {MSC_OP_PAD, "pad_width=1,2,0,0,0,1,0,0", 4, {2, 5, 6, 7}, false},
        {MSC_OP_PAD, "pad_width=0,0,1,1,0,0,1,1;pad_mode=reflect", 4, {2, 5, 6, 7}, false},
    };
    (void)state;
    CHECK_LAYERS(layers);
}

static void test_kernels_cpu_layers__splits(void **state) {
    static const struct layer layers[] = {
        {MSC_OP_SPLIT, "axis=1;indices_or_sections=3", 4, {2, 18, 5, 4}, false},
        {MSC_OP_SPLIT, "axis=1;indices_or_sections=2,7", 4, {2, 18, 5, 4}, false},
        {MSC_OP_SPLIT, "axis=-1;indices_or_sections=1,2", 4, {2, 18, 5, 4}, false},
        {MSC_OP_SPLIT, "axis=0;indices_or_sections=3", 2, {6, 5}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        for (int output = 0; output < 3; output++) {
            check_layer(&layers[i], false, output);
            check_layer(&layers[i], layers[i].n_dims == 4, output);
        }
    }
}

static void test_kernels_cpu_layers__concats(void **state) {
    (void)state;
    for (int axis = 0; axis < 4; axis++) {
        // Bits: which inputs come with channels last, and that no part is constant.
        for (int last = 0; last < 8; last++) {
            struct cpu_case c;
            char attributes[16];
            int64_t dims[] = {2, 5, 4, 3}, other[] = {2, 5, 4, 3}, third[] = {2, 5, 4, 3};
            other[axis] = 7;
            third[axis] = 1;
            snprintf(attributes, sizeof(attributes), "axis=%d", axis);
            cpu_case_init(&c, 6);
            int32_t a = cpu_input(&c, "", 4, dims), b = cpu_input(&c, "", 4, other);
            a = (last & 1) != 0 ? make_last(&c, a) : a;
            b = (last & 2) != 0 ? make_last(&c, b) : b;
            int32_t n = (last & 4) != 0 ? 3 : 4;
            int32_t parts[4] = {a, b, a, n == 4 ? cpu_constant(&c, 4, third, NULL) : MSC_NO_ID};
            cpu_case_finish_graph(
                &c, cpu_joint(&c, MSC_OP_CONCAT, n, parts, attributes, MSC_NO_ID, MSC_NO_ID));
            cpu_check_equal(&c);
            cpu_case_finish(&c);
        }
    }
}

// Edits of both weights, of either alone, and of the input: what the reference gives for weights
// that were rounded before.
static void test_kernels_cpu_layers__recurrent(void **state) {
    (void)state;
    for (int left_float = 0; left_float < 4; left_float++) {
        struct cpu_case c;
        cpu_case_init(&c, 9);
        int32_t x = cpu_input(&c, "", 3, DIMS(5, 2, 6));
        const struct msc_weight_spec weights[2] = {
            {"weight", cpu_weight(&c, "", 3, DIMS(2, 12, 6))},
            {"recurrence", cpu_weight(&c, "", 3, DIMS(2, 12, 3))}};
        cpu_case_finish_graph(&c, cpu_joint_weights(&c, MSC_OP_LSTM, 1, &x,
                                                    "direction=bidirectional;hidden_size=3", 2,
                                                    weights));
        assert_int_equal(c.sites.n_slots, 3);
        cpu_case_edit(&c, (struct cpu_edit_kind){9, false, false},
                      (struct cpu_edit_kind){9, true, true});
        if (left_float < 3) {
            c.edits[left_float] = NULL;
        }
        cpu_check_close(&c, 1e-12); // sums in float32 on other devices
        cpu_case_finish(&c);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_layers__pools),
        cmocka_unit_test(test_kernels_cpu_layers__resizes),
        cmocka_unit_test(test_kernels_cpu_layers__softmax),
        cmocka_unit_test(test_kernels_cpu_layers__layer_norm),
        cmocka_unit_test(test_kernels_cpu_layers__group_norm),
        cmocka_unit_test(test_kernels_cpu_layers__reductions),
        cmocka_unit_test(test_kernels_cpu_layers__permutes),
        cmocka_unit_test(test_kernels_cpu_layers__depth_space),
        cmocka_unit_test(test_kernels_cpu_layers__renames),
        cmocka_unit_test(test_kernels_cpu_layers__aliases),
        cmocka_unit_test(test_kernels_cpu_layers__slices),
        cmocka_unit_test(test_kernels_cpu_layers__splits),
        cmocka_unit_test(test_kernels_cpu_layers__concats),
        cmocka_unit_test(test_kernels_cpu_layers__recurrent),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
