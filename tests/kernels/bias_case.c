// Builds the bias cases declared in bias_case.h and computes their expected results in int64.
#include "tests/kernels/bias_case.h"

#include "tests/graph/graph_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- Joints -----------------------------------------------------------------------------------

const struct bias_shape bias_shapes[BIAS_SHAPES] = {
    {"convolution of odd channels", MSC_OP_CONV2D_BIAS, 2, 6, 5, 4, 5, 3, 1, 1, 1, BIAS_END_NONE},
    {"pointwise", MSC_OP_CONV2D_BIAS, 2, 8, 3, 5, 12, 1, 1, 0, 1, BIAS_END_RELU},
    {"in groups", MSC_OP_CONV2D_BIAS, 2, 10, 4, 4, 6, 2, 1, 0, 2, BIAS_END_ABS},
    {"depthwise", MSC_OP_CONV2D_BIAS, 2, 8, 4, 4, 8, 3, 1, 1, 8, BIAS_END_RELU},
    {"depthwise, odd, two for each", MSC_OP_CONV2D_BIAS, 2, 5, 5, 5, 10, 3, 2, 1, 5, BIAS_END_NONE},
    {"transposed", MSC_OP_CONV2D_TRANSPOSE, 2, 5, 3, 3, 3, 2, 2, 0, 1, BIAS_END_NONE},
    {"linear", MSC_OP_LINEAR_BIAS, 3, 37, 1, 1, 11, 1, 1, 0, 1, BIAS_END_NONE},
    {"long sums", MSC_OP_LINEAR_BIAS, 2, 1300, 1, 1, 6, 1, 1, 0, 1, BIAS_END_ABS},
};
enum { MAX_X = 2600, MAX_W = 7800 };

static int64_t out_size(const struct bias_shape *s, int64_t in) {
    return s->op == MSC_OP_CONV2D_TRANSPOSE ? (in - 1) * s->stride + s->kernel
                                            : (in + 2 * s->padding - s->kernel) / s->stride + 1;
}

static int64_t count_x(const struct bias_shape *s) {
    return s->n * s->in * s->height * s->width;
}

int64_t bias_count_y(const struct bias_shape *s) {
    return s->n * s->out * out_size(s, s->height) * out_size(s, s->width);
}

// Index in the weight of the first tap from input channel `c` of a group to output channel `o`.
static int64_t place_of_weight(const struct bias_shape *s, int64_t o, int64_t c) {
    int64_t at = s->op == MSC_OP_CONV2D_TRANSPOSE ? c * s->out + o : o * (s->in / s->groups) + c;
    return at * s->kernel * s->kernel;
}

// The input row or column under a tap of the kernel, or -1 if there is none.
static int64_t source(const struct bias_shape *s, int64_t at, int64_t tap, int64_t size) {
    int64_t from = at * s->stride + tap - s->padding;
    if (s->op == MSC_OP_CONV2D_TRANSPOSE) {
        from = (at - tap) % s->stride == 0 && at >= tap ? (at - tap) / s->stride : -1;
    }
    return from < size ? from : -1;
}

static int64_t sum_at(const struct bias_shape *s, const int32_t x[], const int32_t w[],
                      int64_t image, int64_t o, int64_t row, int64_t column) {
    int64_t sum = 0, per_group = s->in / s->groups, group = o / (s->out / s->groups);
    for (int64_t c = 0; c < per_group; c++) {
        const int32_t *plane = x + (image * s->in + group * per_group + c) * s->height * s->width;
        const int32_t *taps = w + place_of_weight(s, o, c);
        for (int64_t tap = 0; tap < s->kernel * s->kernel; tap++) {
            int64_t i = source(s, row, tap / s->kernel, s->height);
            int64_t j = source(s, column, tap % s->kernel, s->width);
            sum += i < 0 || j < 0 ? 0 : (int64_t)plane[i * s->width + j] * taps[tap];
        }
    }
    return sum;
}

static void sum_all(int64_t sums[], const struct bias_shape *s, const int32_t x[],
                    const int32_t w[]) {
    int64_t height = out_size(s, s->height), width = out_size(s, s->width);
    for (int64_t i = 0; i < bias_count_y(s); i++) {
        sums[i] = sum_at(s, x, w, i / width / height / s->out, i / width / height % s->out,
                         i / width % height, i % width);
    }
}

static int64_t largest_sum(const struct bias_shape *s, const int32_t w[]) {
    int64_t largest = 0;
    for (int64_t o = 0; o < s->out; o++) {
        int64_t sum = 0;
        for (int64_t c = 0; c < s->in / s->groups; c++) {
            const int32_t *taps = w + place_of_weight(s, o, c);
            for (int64_t tap = 0; tap < s->kernel * s->kernel; tap++) {
                sum += abs(taps[tap]);
            }
        }
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

// ---- Trials -----------------------------------------------------------------------------------

static const struct bias_range inputs[] = {{0, 255, 0}, {0, 255, 117}, {-128, 127, -9}, {0, 15, 5}};
// With the last range, q - zero point does not fit a byte.
static const struct bias_range weights[] = {{-127, 127, 0}, {0, 255, 128}, {-128, 127, -3}};

static const float coarse_step = 0.03f;

// Chooses scales. They are powers of two if the bias must be a certain integer.
static void set_scales(struct bias_trial *t, const struct bias_shape *s) {
    bool is_known = t->kind == BIAS_LARGEST || t->kind == BIAS_TOO_LARGE;
    t->n_scales = t->w == &weights[0] ? (int32_t)s->out : 1;
    t->x_scale = is_known ? 0.03125f : 0.0153f;
    for (int c = 0; c < s->out; c++) {
        int k = t->n_scales > 1 ? c : 0;
        t->w_scales[c] = is_known ? ldexpf(1.0f, -6 - k % 3) : 0.006f + 0.001f * (float)k;
        t->w_zeros[c] = t->w->zero;
        t->steps[c] = t->x_scale * t->w_scales[c];
    }
}

// Quantises to q - zero point.
static void quantize(int32_t q[], const float v[], int64_t n, const struct bias_range *r,
                     float scale) {
    for (int64_t i = 0; i < n; i++) {
        float at = rintf(v[i] / scale) + (float)r->zero;
        at = at < (float)r->low ? (float)r->low : at > (float)r->high ? (float)r->high : at;
        q[i] = (int32_t)at - r->zero;
    }
}

// The value of q - zero point that is farthest from 0.
static int32_t extreme(const struct bias_range *r) {
    return r->zero - r->low > r->high - r->zero ? r->low - r->zero : r->high - r->zero;
}

// Draws the bias as integers and as floats. The largest biases have the sign of channel 0's sums.
static void draw_bias(int32_t q[], float b[], struct bias_case *c, const struct bias_trial *t,
                      int64_t most) {
    for (int o = 0; o < c->shape->out; o++) {
        int32_t small = (int32_t)msc_rng_below(&c->rng, 20001) - 10000;
        bool is_large = o < 2 && (t->kind == BIAS_LARGEST || t->kind == BIAS_TOO_LARGE);
        int64_t size = most / 128 * 128 + (t->kind == BIAS_TOO_LARGE ? 128 : 0);
        q[o] = is_large ? (int32_t)((o == 0) == (extreme(t->w) > 0) ? size : -size) : small;
        b[o] = (float)q[o] * t->steps[o];
        if (t->kind == BIAS_COARSE) {
            q[o] = small / 100;
            b[o] = ((float)q[o] + 0.25f) * coarse_step;
        }
    }
}

static float ended(float y, enum bias_end end) {
    return end == BIAS_END_RELU ? (y < 0.0f ? 0.0f : y) : end == BIAS_END_ABS ? fabsf(y) : y;
}

static void expect(struct bias_case *c, struct bias_trial *t, const int32_t w[]) {
    static int32_t x[MAX_X];
    static int64_t sums[BIAS_MAX_Y];
    const struct bias_shape *s = c->shape;
    int32_t q[BIAS_MAX_CHANNELS];
    float b[BIAS_MAX_CHANNELS];
    bool reaches = false;
    int64_t plane = bias_count_y(s) / s->n / s->out;
    int64_t most = INT32_MAX - abs(extreme(t->x)) * largest_sum(s, w);
    quantize(x, msc_array_data(c->x), count_x(s), t->x, t->x_scale);
    sum_all(sums, s, x, w);
    draw_bias(q, b, c, t, most);
    assert_ok(msc_array_create_from(&t->bias, MSC_DTYPE_F32, 1, DIMS(s->out), b));
    for (int64_t i = 0; i < bias_count_y(s); i++) {
        int64_t o = i / plane % s->out;
        if (t->kind == BIAS_SMALL || t->kind == BIAS_LARGEST) {
            int64_t sum = sums[i] + q[o];
            reaches = reaches || llabs(sum) >= INT32_MAX - 127;
            assert_true(sum <= INT32_MAX && sum >= INT32_MIN);
            t->expected[i] = t->steps[o] * (float)sum;
        } else {
            float added = t->kind == BIAS_FLOAT    ? b[o]
                          : t->kind == BIAS_COARSE ? (float)q[o] * coarse_step
                                                   : (float)q[o] * t->steps[o];
            t->expected[i] = t->steps[o] * (float)sums[i];
            t->expected[i] += added;
        }
        t->expected[i] = ended(t->expected[i], s->end);
    }
    // In the transposed convolution no output position is reached by all taps.
    bool is_transposed = s->op == MSC_OP_CONV2D_TRANSPOSE;
    assert_int_equal(reaches, t->kind == BIAS_LARGEST && !is_transposed);
}

// Draws weights of all sizes. The weights of channel 0 are the largest, so that its sums for the
// first image reach the bound of the integer sums.
static void draw_weight(int32_t q[], float v[], struct bias_case *c, const struct bias_trial *t) {
    const struct bias_shape *s = c->shape;
    uint32_t n = (uint32_t)(t->w->high - t->w->low + 1);
    for (int64_t o = 0; o < s->out; o++) {
        for (int64_t i = 0; i < s->in / s->groups; i++) {
            for (int64_t tap = 0; tap < s->kernel * s->kernel; tap++) {
                int64_t at = place_of_weight(s, o, i) + tap;
                int32_t code = t->w->low + (int32_t)msc_rng_below(&c->rng, n);
                q[at] = o == 0 ? extreme(t->w) : code - t->w->zero;
                v[at] = (float)q[at] * t->w_scales[o];
            }
        }
    }
}

static void set_edits(struct bias_trial *t, const struct bias_shape *s) {
    int axis = s->op == MSC_OP_CONV2D_TRANSPOSE ? 1 : 0;
    struct msc_quant x = {.bits = t->x->high == 15 ? 4 : 8,
                          .low = t->x->low,
                          .high = t->x->high,
                          .axis = -1,
                          .n = 1,
                          .scales = &t->x_scale,
                          .zero_points = &t->x->zero};
    struct msc_quant w = {.bits = 8,
                          .low = t->w->low,
                          .high = t->w->high,
                          .axis = t->n_scales > 1 ? axis : -1,
                          .n = t->n_scales,
                          .scales = t->w_scales,
                          .zero_points = t->w_zeros};
    bool is_coarse = t->kind == BIAS_COARSE;
    t->x_edit = msc_edit_quantize(x);
    t->w_edits[1] = msc_edit_quantize(w);
    t->w_edits[0] =
        (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = t->weight, .next = &t->w_edits[1]};
    t->b_edits[1] = (struct msc_edit){
        .kind = MSC_EDIT_ROUND_BIAS,
        .rounding = {is_coarse ? 1 : (int32_t)s->out, is_coarse ? &coarse_step : t->steps, 0}};
    msc_edit_seal(&t->w_edits[0]);
    msc_edit_seal(&t->b_edits[1]);
    t->b_edits[0] = (struct msc_edit){.kind = MSC_EDIT_REPLACE,
                                      .elements = t->bias,
                                      .next = t->kind == BIAS_FLOAT ? NULL : &t->b_edits[1]};
    msc_edit_seal(&t->b_edits[0]);
    t->slots[0] = &t->x_edit;
    t->slots[1] = &t->w_edits[0];
    t->slots[2] = &t->b_edits[0];
}

static void weight_dims(int64_t dims[4], const struct bias_shape *s) {
    bool is_transposed = s->op == MSC_OP_CONV2D_TRANSPOSE;
    dims[0] = is_transposed ? s->in : s->out;
    dims[1] = is_transposed ? s->out : s->in / s->groups;
    dims[2] = dims[3] = s->kernel;
}

static void make_trial(struct bias_case *c, int index) {
    static int32_t q[MAX_W];
    static float v[MAX_W];
    const struct bias_shape *s = c->shape;
    struct bias_trial *t = &c->trials[index];
    int64_t dims[4];
    t->x = &inputs[index / BIAS_KINDS / BIAS_WEIGHTS];
    t->w = &weights[index / BIAS_KINDS % BIAS_WEIGHTS];
    t->kind = (enum bias_kind)(index % BIAS_KINDS);
    set_scales(t, s);
    draw_weight(q, v, c, t);
    weight_dims(dims, s);
    assert_ok(msc_array_create_from(&t->weight, MSC_DTYPE_F32, s->op == MSC_OP_LINEAR_BIAS ? 2 : 4,
                                    dims, v));
    expect(c, t, q);
    set_edits(t, s);
}

// ---- Graphs -----------------------------------------------------------------------------------

static struct msc_graph *make_graph(const struct bias_shape *s) {
    struct msc_graph *g;
    int64_t dims[4];
    char groups[8], strides[8], padding[16];
    bool is_linear = s->op == MSC_OP_LINEAR_BIAS;
    snprintf(groups, sizeof(groups), "%d", (int)s->groups);
    snprintf(strides, sizeof(strides), "%d,%d", (int)s->stride, (int)s->stride);
    snprintf(padding, sizeof(padding), "%d,%d,%d,%d", (int)s->padding, (int)s->padding,
             (int)s->padding, (int)s->padding);
    const struct msc_attr attrs[] = {
        {"groups", groups}, {"strides", strides}, {"padding", padding}};
    weight_dims(dims, s);
    assert_ok(msc_graph_create(&g, "bias"));
    int32_t x = is_linear ? add_input(g, "x", "NC", 2, DIMS(s->n, s->in))
                          : add_input(g, "x", "NCHW", 4, DIMS(s->n, s->in, s->height, s->width));
    const struct msc_weight_spec specs[2] = {{"weight", add_weight(g, "w",
                                                                   is_linear           ? "OI"
                                                                   : dims[0] == s->out ? "OIHW"
                                                                                       : "IOHW",
                                                                   is_linear ? 2 : 4, dims)},
                                             {"bias", add_weight(g, "b", "O", 1, &s->out)}};
    int32_t y = add_joint(g, &(struct msc_joint_spec){.op = s->op,
                                                      .name = "joint",
                                                      .n_inputs = 1,
                                                      .inputs = &x,
                                                      .n_weights = 2,
                                                      .weights = specs,
                                                      .n_attrs = is_linear ? 0 : 3,
                                                      .attrs = attrs});
    if (s->end != BIAS_END_NONE) {
        y = add_unary(g, s->end == BIAS_END_RELU ? MSC_OP_RELU : MSC_OP_ABS, "end", y);
    }
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// One image exceeds every range; the others are random.
void bias_case_init(struct bias_case *c, const struct bias_shape *s) {
    static float v[MAX_X];
    memset(c, 0, sizeof(*c));
    c->shape = s;
    msc_rng_seed(&c->rng, (uint64_t)(s - bias_shapes), 8);
    for (int64_t i = 0; i < count_x(s); i++) {
        bool is_above = i < count_x(s) / s->n;
        v[i] = is_above ? 100.0f : 6.0f * ((float)msc_rng_double(&c->rng) - 0.4f);
    }
    bool is_linear = s->op == MSC_OP_LINEAR_BIAS;
    assert_ok(msc_array_create_from(&c->x, MSC_DTYPE_F32, is_linear ? 2 : 4,
                                    DIMS(s->n, s->in, s->height, s->width), v));
    c->g = make_graph(s);
    for (int i = 0; i < BIAS_TRIALS; i++) {
        make_trial(c, i);
    }
}

void bias_case_finish(struct bias_case *c) {
    msc_graph_destroy(c->g);
    msc_array_release(c->x);
    for (int i = 0; i < BIAS_TRIALS; i++) {
        msc_array_release(c->trials[i].weight);
        msc_array_release(c->trials[i].bias);
    }
}
