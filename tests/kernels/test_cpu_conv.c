// Convolutions against the reference kernels: close in float32, bit by bit over integers.
#include "tests/kernels/cpu_case.h"

#include <stdio.h>

struct shape {
    int n_spatial;
    int64_t batch, in, out, groups;
    int64_t size[3], kernel[3];
    const char *strides, *padding, *dilation;
    const char *extra; // more attributes
};

// Channels that fill vectors and that do not, every kind of window, batches that fall into chunks
// and odd ones.
static const struct shape convs[] = {
    {2, 1, 3, 16, 1, {8, 8}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
    {2, 2, 16, 32, 1, {9, 7}, {3, 3}, "2,2", "1,1,1,1", "1,1", ""},
    {2, 3, 17, 19, 1, {6, 5}, {3, 2}, "1,2", "0,1,2,0", "1,1", ""},
    {2, 1, 8, 24, 1, {12, 12}, {3, 3}, "1,1", "2,2,2,2", "2,2", ""},
    {2, 2, 24, 8, 1, {7, 7}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
    {2, 2, 12, 20, 1, {9, 9}, {1, 1}, "2,2", "0,0,0,0", "1,1", ""},
    {2, 1, 1, 1, 1, {5, 5}, {3, 3}, "1,1", "0,0,0,0", "1,1", ""},
    {2, 2, 16, 16, 16, {10, 10}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
    {2, 1, 13, 13, 13, {11, 9}, {5, 5}, "2,2", "2,2,2,2", "1,1", ""},
    {2, 1, 6, 12, 6, {8, 8}, {3, 3}, "1,1", "1,0,1,0", "1,1", ""},
    {2, 2, 8, 12, 4, {6, 6}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
    {2, 1, 20, 30, 2, {5, 6}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
    {2, 1, 32, 10, 1, {4, 4}, {4, 4}, "1,1", "0,0,0,0", "1,1", ""},
    {2, 1, 3, 8, 1, {15, 14}, {7, 7}, "2,2", "3,3,3,3", "1,1", ""},
    {1, 2, 5, 7, 1, {33}, {5}, "1,", "2,2", "1,", ""},
    {1, 1, 16, 16, 1, {40}, {3}, "2,", "0,1", "2,", ""},
    {3, 1, 3, 5, 1, {4, 5, 6}, {3, 3, 3}, "1,1,1", "1,1,1,1,1,1", "1,1,1", ""},
    {3, 2, 4, 4, 2, {3, 4, 5}, {2, 1, 3}, "1,2,1", "1,0,1,0,0,1", "1,1,1", ""},
};

static const struct shape transposed[] = {
    {2, 1, 4, 6, 1, {5, 5}, {2, 2}, "2,2", "0,0,0,0", "1,1", ""},
    {2, 2, 16, 16, 1, {4, 6}, {3, 3}, "2,2", "1,1,1,1", "1,1", ";output_padding=1,1"},
    {2, 1, 3, 5, 1, {6, 4}, {4, 3}, "2,1", "1,0,1,2", "1,1", ""},
    {2, 1, 8, 8, 2, {5, 5}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
    {2, 1, 5, 7, 1, {4, 4}, {3, 3}, "2,2", "1,1,0,0", "2,2", ""},
};

// The convolution of a shape with a bias, its output.
static int32_t add_conv(struct cpu_case *c, const struct shape *s, bool is_transposed,
                        bool has_bias) {
    static const enum msc_op ops[2][3] = {
        {MSC_OP_CONV1D, MSC_OP_CONV2D, MSC_OP_CONV3D},
        {MSC_OP_CONV1D_BIAS, MSC_OP_CONV2D_BIAS, MSC_OP_CONV3D_BIAS},
    };
    static const char *const data[] = {"NCW", "NCHW", "NCDHW"};
    static const char *const kernels[] = {"OIW", "OIHW", "OIDHW"};
    int n = s->n_spatial;
    int64_t x_dims[5] = {s->batch, s->in}, w_dims[5] = {s->out, s->in / s->groups};
    char attributes[256];
    if (is_transposed) {
        w_dims[0] = s->in;
        w_dims[1] = s->out / s->groups;
    }
    memcpy(x_dims + 2, s->size, sizeof(int64_t) * (size_t)n);
    memcpy(w_dims + 2, s->kernel, sizeof(int64_t) * (size_t)n);
    snprintf(attributes, sizeof(attributes), "strides=%s;padding=%s;dilation=%s;groups=%d%s",
             s->strides, s->padding, s->dilation, (int)s->groups, s->extra);
    int32_t x = cpu_input(c, data[n - 1], 2 + n, x_dims);
    int32_t w = cpu_weight(c, is_transposed ? "IOHW" : kernels[n - 1], 2 + n, w_dims);
    int32_t b = has_bias ? cpu_weight(c, "O", 1, DIMS(s->out)) : MSC_NO_ID;
    enum msc_op op = is_transposed ? MSC_OP_CONV2D_TRANSPOSE : ops[has_bias ? 1 : 0][n - 1];
    return cpu_joint(c, op, 1, &x, attributes, w, b);
}

// With an epilogue of joints: a limit that the routine takes itself, a longer chain with an operand
// of every kind, what stands behind blocks with a residual, and a chain that never leaves registers.
static int32_t add_epilogue(struct cpu_case *c, int32_t y, int kind) {
    const struct msc_tensor *t = msc_graph_tensor(c->g, y);
    int64_t dims[MSC_MAX_DIMS], channels[MSC_MAX_DIMS];
    int n = t->n_dims;
    memcpy(dims, t->dims, sizeof(dims));
    for (int i = 0; i < n; i++) {
        channels[i] = i == 1 ? dims[1] : 1;
    }
    if (kind == 1) {
        return cpu_joint(c, MSC_OP_RELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 2) {
        int32_t other = cpu_input(c, "", n, dims);
        int32_t scale = cpu_constant(c, n, channels, NULL);
        int32_t gate = cpu_joint(c, MSC_OP_SIGMOID, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, gate), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_ADD, 2, IDS(other, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, scale), "", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_CLIP, 1, &y, "min=-20;max=25", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 3) {
        int32_t other = cpu_input(c, "", n, dims);
        y = cpu_joint(c, MSC_OP_CLIP, 1, &y, "min=-2;max=6", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_ADD, 2, IDS(y, other), "", MSC_NO_ID, MSC_NO_ID);
    }
    if (kind == 4) {
        int32_t factor = cpu_input(c, "", n, dims), term = cpu_input(c, "", n, dims);
        int32_t number = cpu_constant(c, 0, NULL, (const float[]){0.3f});
        y = cpu_joint(c, MSC_OP_ADD, 2, IDS(number, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_HARD_SWISH, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(factor, y), "", MSC_NO_ID, MSC_NO_ID);
        y = cpu_joint(c, MSC_OP_SUBTRACT, 2, IDS(y, term), "", MSC_NO_ID, MSC_NO_ID);
        return cpu_joint(c, MSC_OP_RELU, 1, &y, "", MSC_NO_ID, MSC_NO_ID);
    }
    return y;
}

struct edits {
    struct cpu_edit_kind activations, weights;
};

static void check_shape(const struct shape *s, bool is_transposed, int epilogue,
                        const struct edits *edits, bool is_exact) {
    struct cpu_case c;
    cpu_case_init(&c, 7);
    cpu_case_finish_graph(
        &c, add_epilogue(&c, add_conv(&c, s, is_transposed, epilogue != 1), epilogue));
    cpu_case_edit(&c, edits->activations, edits->weights);
    if (is_exact) {
        cpu_check_equal(&c);
    } else {
        cpu_check_close(&c, 1e-11);
    }
    cpu_case_finish(&c);
}

static void check_all(const struct edits *edits, bool is_exact) {
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        for (int epilogue = 0; epilogue < 3; epilogue++) {
            check_shape(&convs[i], false, epilogue, edits, is_exact);
        }
    }
    for (size_t i = 0; i < sizeof(transposed) / sizeof(transposed[0]); i++) {
        for (int epilogue = 0; epilogue < 3; epilogue++) {
            check_shape(&transposed[i], true, epilogue, edits, is_exact);
        }
    }
}

static void test_kernels_cpu_conv__float(void **state) {
    (void)state;
    check_all(&(struct edits){{0, false, false}, {0, false, false}}, false);
}

// One side in floats: everything is.
static void test_kernels_cpu_conv__fake_quantised(void **state) {
    (void)state;
    check_all(&(struct edits){{0, false, false}, {4, true, true}}, false);
    check_all(&(struct edits){{8, false, false}, {0, false, false}}, false);
    check_all(&(struct edits){{12, false, false}, {8, true, true}}, false);
    check_all(&(struct edits){{8, false, false}, {10, true, true}}, false);
}

static void test_kernels_cpu_conv__integers_asymmetric(void **state) {
    (void)state;
    check_all(&(struct edits){{8, false, false}, {8, true, true}}, true);
}

static void test_kernels_cpu_conv__integers_symmetric(void **state) {
    (void)state;
    check_all(&(struct edits){{8, true, false}, {8, true, true}}, true);
}

static void test_kernels_cpu_conv__integers_few_bits(void **state) {
    (void)state;
    check_all(&(struct edits){{5, false, false}, {4, true, false}}, true);
    check_all(&(struct edits){{3, true, false}, {2, true, true}}, true);
}

// Weights whose q - z do not fit int8.
static void test_kernels_cpu_conv__integers_asymmetric_weights(void **state) {
    (void)state;
    check_all(&(struct edits){{8, false, false}, {8, false, true}}, true);
    check_all(&(struct edits){{8, true, false}, {8, false, false}}, true);
}

// Output padding of a stride and more, which a dilation allows: the last outputs are reached by no tap.
static void test_kernels_cpu_conv__unreached(void **state) {
    static const struct shape shapes[] = {
        {2, 1, 5, 7, 1, {4, 4}, {3, 3}, "1,1", "0,0,0,0", "2,2", ";output_padding=1,1"},
        {2, 2, 4, 6, 2, {3, 5}, {2, 3}, "2,1", "1,0,0,1", "3,2", ";output_padding=2,1"},
    };
    static const struct edits edits[] = {{{0, false, false}, {0, false, false}},
                                         {{8, false, false}, {8, true, true}}};
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t e = 0; e < sizeof(edits) / sizeof(edits[0]); e++) {
            check_shape(&shapes[i], true, 0, &edits[e], false);
            check_shape(&shapes[i], true, 2, &edits[e], false);
        }
    }
}

// Sums beyond 2^24: all elements positive, so that nothing cancels.
static void check_large_sums(int64_t in, int64_t kernel, bool is_transposed, int64_t groups) {
    struct shape s = {2, 1, in, 16, groups, {5, 5}, {kernel, kernel}, "1,1", "1,1,1,1", "1,1", ""};
    static const struct edits edits[] = {
        {{8, false, false}, {8, true, true}},
        {{8, true, false}, {8, true, true}},
        {{8, false, false}, {8, false, true}},
    };
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 11);
        c.low = 1.9f;
        cpu_case_finish_graph(&c, add_conv(&c, &s, is_transposed, true));
        cpu_case_edit(&c, edits[i].activations, edits[i].weights);
        cpu_check_equal(&c);
        cpu_case_finish(&c);
    }
}

static void test_kernels_cpu_conv__integers_beyond_float(void **state) {
    (void)state;
    check_large_sums(128, 3, false, 1);
    check_large_sums(256, 3, false, 2);
    check_large_sums(600, 1, false, 1);
    check_large_sums(96, 3, true, 1);
    check_large_sums(1100, 3, false, 1); // too large for two digits of four bits
}

// Without integer units the same bits.
static void test_kernels_cpu_conv__integers_without_int8(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        struct cpu_case c;
        cpu_case_init(&c, 7);
        c.options.allow_int8 = false;
        cpu_case_finish_graph(&c, add_epilogue(&c, add_conv(&c, &convs[i], false, true), 2));
        for (int by_channel = 0; by_channel < 2; by_channel++) {
            cpu_case_edit(&c, (struct cpu_edit_kind){8, false, by_channel},
                          (struct cpu_edit_kind){8, true, true});
            cpu_check_equal(&c);
        }
        cpu_case_finish(&c);
    }
}

// Images larger than the cache run in bands of rows.
static void test_kernels_cpu_conv__bands(void **state) {
    static const struct shape large[] = {
        {2, 2, 24, 48, 24, {96, 96}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
        {2, 1, 16, 16, 16, {162, 161}, {3, 5}, "2,1", "1,0,2,3", "1,2", ""},
        {2, 1, 8, 48, 1, {90, 96}, {3, 3}, "1,1", "0,0,0,0", "2,1", ""},
        {1, 1, 8, 8, 8, {40000}, {5}, "1,", "2,2", "1,", ""},
        {3, 1, 4, 4, 4, {40, 40, 40}, {3, 3, 3}, "1,1,1", "1,1,1,1,1,1", "1,1,1", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        for (int epilogue = 0; epilogue < 3; epilogue += 2) {
            check_shape(&large[i], false, epilogue, &(struct edits){{0, 0, 0}, {0, 0, 0}}, false);
            check_shape(&large[i], false, epilogue, &(struct edits){{8, 0, 0}, {8, 1, 1}}, true);
            check_shape(&large[i], false, epilogue, &(struct edits){{8, 1, 0}, {8, 0, 1}}, true);
            check_shape(&large[i], false, epilogue, &(struct edits){{8, 0, 0}, {12, 1, 1}}, false);
        }
    }
}

// The step ends behind all joints that follow: one, and the reorders at both ends.
static void test_kernels_cpu_conv__fuses(void **state) {
    (void)state;
    struct cpu_case c;
    struct msc_array *out;
    cpu_case_init(&c, 3);
    cpu_case_finish_graph(&c, add_epilogue(&c, add_conv(&c, &convs[0], false, true), 2));
    cpu_run(&out, &c, 0);
    assert_int_equal(c.n_steps, 4); // input, residual, convolution, output
    msc_array_release(out);
    cpu_case_finish(&c);
}

// Shapes around those that tiles of registers take: depths that are no multiple of 4, channels that
// fill no vector or leave one over, fewer positions than a tile, rows further apart than they are
// long, bands.
static void test_kernels_cpu_conv__windows(void **state) {
    static const struct shape shapes[] = {
        {2, 1, 24, 144, 1, {7, 7}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
        {2, 1, 21, 80, 1, {5, 1}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
        {2, 3, 5, 40, 1, {1, 1}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
        {2, 1, 64, 256, 1, {9, 8}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
        {2, 2, 96, 24, 1, {30, 29}, {1, 1}, "1,1", "0,0,0,0", "1,1", ""},
        {2, 1, 3, 33, 1, {19, 18}, {3, 3}, "2,2", "1,1,1,1", "1,1", ""},
        {2, 1, 20, 65, 1, {8, 9}, {3, 1}, "1,2", "2,0,2,0", "3,1", ""},
        {2, 2, 7, 17, 1, {6, 6}, {2, 4}, "1,1", "0,3,1,0", "1,1", ""},
        {2, 1, 12, 49, 1, {120, 64}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
        {1, 2, 13, 47, 1, {50}, {4}, "3,", "1,2", "1,", ""},
        {3, 1, 10, 31, 1, {3, 4, 5}, {1, 1, 1}, "1,1,1", "0,0,0,0,0,0", "1,1,1", ""},
    };
    static const struct edits edits[] = {
        {{8, false, false}, {8, true, true}},
        {{8, true, false}, {8, true, false}},
        {{6, false, false}, {4, true, true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int epilogue = 0; epilogue < 5; epilogue++) {
            for (size_t e = 0; e < sizeof(edits) / sizeof(edits[0]); e++) {
                check_shape(&shapes[i], false, epilogue, &edits[e], true);
            }
        }
    }
}

// Depthwise windows of 3 columns: every number of rows, strides, paddings wider than the image,
// channels on both sides of a block.
static void test_kernels_cpu_conv__columns(void **state) {
    static const struct shape shapes[] = {
        {2, 1, 64, 64, 64, {9, 8}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
        {2, 2, 96, 96, 96, {12, 13}, {3, 3}, "2,2", "1,1,1,1", "1,1", ""},
        {2, 1, 144, 144, 144, {5, 4}, {3, 3}, "1,1", "0,1,2,0", "1,1", ""},
        {2, 1, 65, 65, 65, {11, 16}, {4, 3}, "3,3", "1,2,0,1", "1,1", ""},
        {2, 1, 70, 70, 70, {1, 1}, {3, 3}, "1,1", "3,3,3,3", "1,1", ""},
        {2, 1, 20, 20, 20, {9, 7}, {2, 3}, "1,2", "2,0,2,0", "2,1", ""},
        {2, 1, 48, 48, 48, {14, 14}, {5, 5}, "2,2", "2,2,2,2", "1,1", ""},
        {2, 1, 600, 600, 600, {4, 4}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
        {1, 2, 33, 33, 33, {21}, {3}, "2,", "1,1", "1,", ""},
    };
    static const struct edits edits[] = {
        {{8, false, false}, {8, true, true}},
        {{8, true, false}, {8, true, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int epilogue = 0; epilogue < 5; epilogue++) {
            for (size_t e = 0; e < sizeof(edits) / sizeof(edits[0]); e++) {
                bool fits = shapes[i].out <= 512 || !edits[e].weights.is_per_channel;
                if (fits) {
                    check_shape(&shapes[i], false, epilogue, &edits[e], true);
                }
            }
        }
    }
}

// Inputs with a scale for each channel, which are integers for depthwise convolutions: every unit,
// windows that go by columns and that do not, several outputs of a channel, weights that fit no byte
// or stay float, wide inputs, sums that leave float32 (as floats, then).
static void test_kernels_cpu_conv__by_channel(void **state) {
    static const struct shape shapes[] = {
        {2, 2, 16, 16, 16, {10, 10}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
        {2, 1, 13, 13, 13, {11, 9}, {5, 5}, "2,2", "2,2,2,2", "1,1", ""},
        {2, 1, 6, 12, 6, {8, 8}, {3, 3}, "1,1", "1,0,1,0", "1,1", ""},
        {2, 1, 65, 65, 65, {11, 16}, {4, 3}, "3,3", "1,2,0,1", "1,1", ""},
        {2, 1, 144, 144, 144, {5, 4}, {3, 3}, "1,1", "0,1,2,0", "1,1", ""},
        {2, 1, 70, 70, 70, {1, 1}, {3, 3}, "1,1", "3,3,3,3", "1,1", ""},
        {2, 1, 20, 20, 20, {9, 7}, {2, 3}, "1,2", "2,0,2,0", "2,1", ""},
        {2, 1, 16, 16, 16, {162, 161}, {3, 5}, "2,1", "1,0,2,3", "1,2", ""},
        {1, 2, 33, 33, 33, {21}, {3}, "2,", "1,1", "1,", ""},
        {3, 1, 4, 4, 4, {9, 10, 8}, {3, 3, 3}, "1,1,1", "1,1,1,1,1,1", "1,1,1", ""},
        {2, 2, 8, 12, 4, {6, 6}, {3, 3}, "1,1", "1,1,1,1", "1,1", ""},
    };
    static const struct edits edits[] = {
        {{8, false, true}, {8, true, true}},   {{8, true, true}, {8, true, false}},
        {{4, false, true}, {4, true, true}},   {{8, false, true}, {8, false, true}},
        {{8, false, true}, {0, false, false}}, {{12, false, true}, {8, true, true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int epilogue = 0; epilogue < 5; epilogue++) {
            for (size_t e = 0; e < sizeof(edits) / sizeof(edits[0]); e++) {
                check_shape(&shapes[i], false, epilogue, &edits[e], e < 4);
            }
        }
    }
    // Of 529 products, which are beyond 2^24.
    struct shape large = {2, 1, 4, 4, 4, {23, 24}, {23, 23}, "1,1", "0,0,0,0", "1,1", ""};
    struct cpu_case c;
    cpu_case_init(&c, 11);
    c.low = 1.9f;
    cpu_case_finish_graph(&c, add_conv(&c, &large, false, true));
    cpu_case_edit(&c, edits[0].activations, edits[0].weights);
    cpu_check_close(&c, 1e-11);
    cpu_case_finish(&c);
}

// Results do not depend on how many threads there are.
static void test_kernels_cpu_conv__threads(void **state) {
    (void)state;
    struct cpu_case c;
    struct msc_array *one, *four;
    cpu_case_init(&c, 5);
    cpu_case_finish_graph(&c, add_epilogue(&c, add_conv(&c, &convs[2], false, true), 2));
    cpu_run(&one, &c, 0);
    c.options.n_threads = 4;
    cpu_run(&four, &c, 0);
    assert_true(cpu_is_equal(one, four));
    msc_array_release(one);
    msc_array_release(four);
    c.options.kernel_threads = 2;
    cpu_check_close(&c, 1e-11);
    cpu_case_finish(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_conv__float),
        cmocka_unit_test(test_kernels_cpu_conv__fake_quantised),
        cmocka_unit_test(test_kernels_cpu_conv__integers_asymmetric),
        cmocka_unit_test(test_kernels_cpu_conv__integers_symmetric),
        cmocka_unit_test(test_kernels_cpu_conv__integers_few_bits),
        cmocka_unit_test(test_kernels_cpu_conv__integers_asymmetric_weights),
        cmocka_unit_test(test_kernels_cpu_conv__unreached),
        cmocka_unit_test(test_kernels_cpu_conv__integers_beyond_float),
        cmocka_unit_test(test_kernels_cpu_conv__integers_without_int8),
        cmocka_unit_test(test_kernels_cpu_conv__bands),
        cmocka_unit_test(test_kernels_cpu_conv__windows),
        cmocka_unit_test(test_kernels_cpu_conv__columns),
        cmocka_unit_test(test_kernels_cpu_conv__by_channel),
        cmocka_unit_test(test_kernels_cpu_conv__fuses),
        cmocka_unit_test(test_kernels_cpu_conv__threads),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
