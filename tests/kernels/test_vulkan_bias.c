// Biases that are rounded to just the step of integer sums, and others, on every way that the vulkan
// backend multiplies integers: bit by bit what kernels/backend.h says, computed here in int64, which
// the cpu backend gives as well. Skipped where there is no Vulkan device.
#include "base/rng.h"
#include "kernels/engine/evaluator.h"
#include "kernels/vulkan/vk_conv_gemm.h"
#include "kernels/vulkan/vk_pipeline.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/graph/graph_samples.h"
#include "tests/kernels/vulkan_kept.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- Joints -----------------------------------------------------------------------------------

enum end { PLAIN, RELU, ABS }; // behind the joint: a limit, or a program

struct shape {
    const char *name;
    enum msc_op op;
    int64_t n, in, height, width, out, kernel, stride, padding, groups;
    enum end end;
};

static const struct shape shapes[] = {
    {"convolution of odd channels", MSC_OP_CONV2D_BIAS, 2, 6, 5, 4, 5, 3, 1, 1, 1, PLAIN},
    {"pointwise", MSC_OP_CONV2D_BIAS, 1, 8, 3, 5, 12, 1, 1, 0, 1, RELU},
    {"in groups", MSC_OP_CONV2D_BIAS, 1, 10, 4, 4, 6, 2, 1, 0, 2, ABS},
    {"depthwise", MSC_OP_CONV2D_BIAS, 1, 8, 4, 4, 8, 3, 1, 1, 8, RELU},
    {"depthwise, odd, two for each", MSC_OP_CONV2D_BIAS, 1, 5, 5, 5, 10, 3, 2, 1, 5, PLAIN},
    {"transposed", MSC_OP_CONV2D_TRANSPOSE, 1, 5, 3, 3, 3, 2, 2, 0, 1, PLAIN},
    {"linear", MSC_OP_LINEAR_BIAS, 3, 37, 1, 1, 11, 1, 1, 0, 1, PLAIN},
    {"long sums", MSC_OP_LINEAR_BIAS, 2, 1300, 1, 1, 6, 1, 1, 0, 1, ABS},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]), LONG_SUMS = N_SHAPES - 1 };
enum { MAX_X = 2600, MAX_W = 7800, MAX_Y = 512, MAX_CHANNELS = 12 };

static int64_t out_size(const struct shape *s, int64_t in) {
    return s->op == MSC_OP_CONV2D_TRANSPOSE ? (in - 1) * s->stride + s->kernel
                                            : (in + 2 * s->padding - s->kernel) / s->stride + 1;
}

static int64_t count_x(const struct shape *s) {
    return s->n * s->in * s->height * s->width;
}

static int64_t count_y(const struct shape *s) {
    return s->n * s->out * out_size(s, s->height) * out_size(s, s->width);
}

// Where the weight from input channel `c` of a group to output channel `o` begins.
static int64_t place_of_weight(const struct shape *s, int64_t o, int64_t c) {
    int64_t at = s->op == MSC_OP_CONV2D_TRANSPOSE ? c * s->out + o : o * (s->in / s->groups) + c;
    return at * s->kernel * s->kernel;
}

// The input row or column under a tap of the kernel; -1: there is none.
static int64_t source(const struct shape *s, int64_t at, int64_t tap, int64_t size) {
    int64_t from = at * s->stride + tap - s->padding;
    if (s->op == MSC_OP_CONV2D_TRANSPOSE) {
        from = (at - tap) % s->stride == 0 && at >= tap ? (at - tap) / s->stride : -1;
    }
    return from < size ? from : -1;
}

static int64_t sum_at(const struct shape *s, const int32_t x[], const int32_t w[], int64_t image,
                      int64_t o, int64_t row, int64_t column) {
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

static void sum_all(int64_t sums[], const struct shape *s, const int32_t x[], const int32_t w[]) {
    int64_t height = out_size(s, s->height), width = out_size(s, s->width);
    for (int64_t i = 0; i < count_y(s); i++) {
        sums[i] = sum_at(s, x, w, i / width / height / s->out, i / width / height % s->out,
                         i / width % height, i % width);
    }
}

static int64_t largest_sum(const struct shape *s, const int32_t w[]) {
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

struct range {
    int32_t low, high, zero;
};
static const struct range inputs[] = {{0, 255, 0}, {0, 255, 117}, {-128, 127, -9}, {0, 15, 5}};
// The last is no byte less its zero point.
static const struct range weights[] = {{-127, 127, 0}, {0, 255, 128}, {-128, 127, -3}};

enum bias_kind {
    FLOAT_BIAS, // not rounded
    SMALL,
    LARGEST,   // that may join the sums
    TOO_LARGE, // one step of float32 more
    COARSE,    // rounded to another step
    N_BIAS_KINDS
};
enum {
    N_INPUTS = sizeof(inputs) / sizeof(inputs[0]),
    N_WEIGHTS = sizeof(weights) / sizeof(weights[0]),
    N_TRIALS = N_INPUTS * N_WEIGHTS * N_BIAS_KINDS
};
static const float coarse_step = 0.03f;

struct trial {
    const struct range *x, *w;
    enum bias_kind kind;
    int32_t n_scales; // of the weight: one, or one for each channel
    float x_scale, w_scales[MAX_CHANNELS], steps[MAX_CHANNELS];
    int32_t w_zeros[MAX_CHANNELS];
    struct msc_array *weight, *bias;
    struct msc_edit x_edit, w_edits[2], b_edits[2];
    const struct msc_edit *slots[3];
    float expected[MAX_Y], found[MAX_Y];
};

struct bench {
    const struct shape *shape;
    struct msc_graph *g;
    struct msc_array *x;
    struct msc_rng rng;
    struct trial trials[N_TRIALS];
};

// Scales of few bits where a bias must come to an integer that is known beforehand.
static void set_scales(struct trial *t, const struct shape *s) {
    bool is_known = t->kind == LARGEST || t->kind == TOO_LARGE;
    t->n_scales = t->w == &weights[0] ? (int32_t)s->out : 1;
    t->x_scale = is_known ? 0.03125f : 0.0153f;
    for (int c = 0; c < s->out; c++) {
        int k = t->n_scales > 1 ? c : 0;
        t->w_scales[c] = is_known ? ldexpf(1.0f, -6 - k % 3) : 0.006f + 0.001f * (float)k;
        t->w_zeros[c] = t->w->zero;
        t->steps[c] = t->x_scale * t->w_scales[c];
    }
}

// q - zero point of a tensor.
static void quantize(int32_t q[], const float v[], int64_t n, const struct range *r, float scale) {
    for (int64_t i = 0; i < n; i++) {
        float at = rintf(v[i] / scale) + (float)r->zero;
        at = at < (float)r->low ? (float)r->low : at > (float)r->high ? (float)r->high : at;
        q[i] = (int32_t)at - r->zero;
    }
}

// Integers of the bias, and its numbers.
static void draw_bias(int32_t q[], float b[], struct bench *bench, const struct trial *t,
                      int64_t most) {
    for (int c = 0; c < bench->shape->out; c++) {
        int32_t small = (int32_t)msc_rng_below(&bench->rng, 20001) - 10000;
        bool is_large = c < 2 && (t->kind == LARGEST || t->kind == TOO_LARGE);
        int64_t size = most / 128 * 128 + (t->kind == TOO_LARGE ? 128 : 0);
        q[c] = is_large ? (int32_t)(c == 0 ? size : -size) : small;
        b[c] = (float)q[c] * t->steps[c];
        if (t->kind == COARSE) {
            q[c] = small / 100;
            b[c] = ((float)q[c] + 0.25f) * coarse_step;
        }
    }
}

static float ended(float y, enum end end) {
    return end == RELU ? (y < 0.0f ? 0.0f : y) : end == ABS ? fabsf(y) : y;
}

static void expect(struct bench *bench, struct trial *t, const int32_t w[]) {
    static int32_t x[MAX_X];
    static int64_t sums[MAX_Y];
    const struct shape *s = bench->shape;
    int32_t q[MAX_CHANNELS], below = t->x->zero - t->x->low, above = t->x->high - t->x->zero;
    float b[MAX_CHANNELS];
    int64_t plane = count_y(s) / s->n / s->out;
    int64_t most = INT32_MAX - (above > below ? above : below) * largest_sum(s, w);
    quantize(x, msc_array_data(bench->x), count_x(s), t->x, t->x_scale);
    sum_all(sums, s, x, w);
    draw_bias(q, b, bench, t, most);
    assert_ok(msc_array_create_from(&t->bias, MSC_DTYPE_F32, 1, DIMS(s->out), b));
    for (int64_t i = 0; i < count_y(s); i++) {
        int64_t c = i / plane % s->out;
        if (t->kind == SMALL || t->kind == LARGEST) {
            int64_t sum = sums[i] + q[c];
            assert_true(sum <= INT32_MAX && sum >= INT32_MIN);
            t->expected[i] = t->steps[c] * (float)sum;
        } else {
            float added = t->kind == FLOAT_BIAS ? b[c]
                          : t->kind == COARSE   ? (float)q[c] * coarse_step
                                                : (float)q[c] * t->steps[c];
            t->expected[i] = t->steps[c] * (float)sums[i];
            t->expected[i] += added;
        }
        t->expected[i] = ended(t->expected[i], s->end);
    }
}

// Weights of all sizes, the largest among them often.
static void draw_weight(int32_t q[], float v[], struct bench *bench, const struct trial *t) {
    const struct shape *s = bench->shape;
    uint32_t n = (uint32_t)(t->w->high - t->w->low + 1);
    for (int64_t o = 0; o < s->out; o++) {
        for (int64_t c = 0; c < s->in / s->groups; c++) {
            for (int64_t tap = 0; tap < s->kernel * s->kernel; tap++) {
                int64_t at = place_of_weight(s, o, c) + tap;
                int32_t code = t->w->low + (int32_t)msc_rng_below(&bench->rng, n);
                code = msc_rng_below(&bench->rng, 4) == 0 ? t->w->high : code;
                q[at] = code - t->w->zero;
                v[at] = (float)q[at] * t->w_scales[o];
            }
        }
    }
}

static void set_edits(struct trial *t, const struct shape *s) {
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
    bool is_coarse = t->kind == COARSE;
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
                                      .next = t->kind == FLOAT_BIAS ? NULL : &t->b_edits[1]};
    msc_edit_seal(&t->b_edits[0]);
    t->slots[0] = &t->x_edit;
    t->slots[1] = &t->w_edits[0];
    t->slots[2] = &t->b_edits[0];
}

static void weight_dims(int64_t dims[4], const struct shape *s) {
    bool is_transposed = s->op == MSC_OP_CONV2D_TRANSPOSE;
    dims[0] = is_transposed ? s->in : s->out;
    dims[1] = is_transposed ? s->out : s->in / s->groups;
    dims[2] = dims[3] = s->kernel;
}

static void make_trial(struct bench *bench, int index) {
    static int32_t q[MAX_W];
    static float v[MAX_W];
    const struct shape *s = bench->shape;
    struct trial *t = &bench->trials[index];
    int64_t dims[4];
    t->x = &inputs[index / N_BIAS_KINDS / N_WEIGHTS];
    t->w = &weights[index / N_BIAS_KINDS % N_WEIGHTS];
    t->kind = (enum bias_kind)(index % N_BIAS_KINDS);
    set_scales(t, s);
    draw_weight(q, v, bench, t);
    weight_dims(dims, s);
    assert_ok(msc_array_create_from(&t->weight, MSC_DTYPE_F32, s->op == MSC_OP_LINEAR_BIAS ? 2 : 4,
                                    dims, v));
    expect(bench, t, q);
    set_edits(t, s);
}

// ---- Graphs -----------------------------------------------------------------------------------

static struct msc_graph *make_graph(const struct shape *s) {
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
    if (s->end != PLAIN) {
        y = add_unary(g, s->end == RELU ? MSC_OP_RELU : MSC_OP_ABS, "end", y);
    }
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    return g;
}

// Inputs that lie far outside of the range now and then.
static void open_bench(struct bench *bench, const struct shape *s) {
    static float v[MAX_X];
    memset(bench, 0, sizeof(*bench));
    bench->shape = s;
    msc_rng_seed(&bench->rng, (uint64_t)(s - shapes), 8);
    for (int64_t i = 0; i < count_x(s); i++) {
        v[i] = 6.0f * ((float)msc_rng_double(&bench->rng) - 0.4f);
    }
    bool is_linear = s->op == MSC_OP_LINEAR_BIAS;
    assert_ok(msc_array_create_from(&bench->x, MSC_DTYPE_F32, is_linear ? 2 : 4,
                                    DIMS(s->n, s->in, s->height, s->width), v));
    bench->g = make_graph(s);
    for (int i = 0; i < N_TRIALS; i++) {
        make_trial(bench, i);
    }
}

static void close_bench(struct bench *bench) {
    msc_graph_destroy(bench->g);
    msc_array_release(bench->x);
    for (int i = 0; i < N_TRIALS; i++) {
        msc_array_release(bench->trials[i].weight);
        msc_array_release(bench->trials[i].bias);
    }
}

// ---- Running ----------------------------------------------------------------------------------

struct keeping {
    struct bench *bench;
    int first;
};

static enum msc_status keep(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    const struct keeping *k = payload;
    (void)batch;
    assert_int_equal(msc_view_n_elements(&values[0]), count_y(k->bench->shape));
    memcpy(k->bench->trials[(size_t)k->first + trial].found, values[0].data,
           (size_t)count_y(k->bench->shape) * sizeof(float));
    return MSC_OK;
}

static void check_trial(const struct bench *bench, int index, const char *where) {
    const struct trial *t = &bench->trials[index];
    for (int64_t i = 0; i < count_y(bench->shape); i++) {
        if (memcmp(&t->found[i], &t->expected[i], sizeof(float)) != 0) {
            print_error("%s, %s, input %d, weight %d, bias %d, element %d: %.9g, expected %.9g\n",
                        where, bench->shape->name, index / N_BIAS_KINDS / N_WEIGHTS,
                        index / N_BIAS_KINDS % N_WEIGHTS, index % N_BIAS_KINDS, (int)i,
                        (double)t->found[i], (double)t->expected[i]);
            fail();
        }
    }
}

static struct msc_evaluator *open_evaluator(const struct bench *bench, struct msc_backend *b,
                                            struct msc_dataset **data) {
    const struct shape *s = bench->shape;
    bool is_linear = s->op == MSC_OP_LINEAR_BIAS;
    struct msc_input_spec spec = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = is_linear ? 2 : 4,
                                  .dims = {s->n, s->in, s->height, s->width}};
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    int32_t wanted = msc_graph_output(bench->g, 0);
    options.backend = b;
    assert_ok(
        msc_dataset_create_whole(data, &spec, (const struct msc_array *const[]){bench->x}, 1));
    assert_ok(msc_evaluator_create(&ev, bench->g, *data, &wanted, 1, &options));
    assert_int_equal(msc_evaluator_sites(ev)->n_slots, 3);
    return ev;
}

static void run(struct bench *bench, struct msc_evaluator *ev, int first, int n) {
    struct msc_eval_trial trials[N_TRIALS] = {{.edits = NULL}};
    struct keeping k = {bench, first};
    const struct msc_sink sink = {.batch = keep, .payload = &k};
    for (int i = 0; i < n; i++) {
        trials[i].edits = bench->trials[first + i].slots;
    }
    assert_ok(msc_evaluator_run(ev, trials, (size_t)n, &sink, MSC_EVAL_FRESH));
    for (int i = 0; i < n; i++) {
        assert_string_equal(trials[i].message, "");
    }
}

// ---- Dispatches and packs ---------------------------------------------------------------------

static PFN_vkCmdDispatch dispatch_of_device;
static int n_dispatches;

static VKAPI_ATTR void VKAPI_CALL count_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                                 uint32_t z) {
    n_dispatches++;
    dispatch_of_device(commands, x, y, z);
}

static int count_run(struct bench *bench, struct msc_evaluator *ev, int trial) {
    n_dispatches = 0;
    run(bench, ev, trial, 1);
    return n_dispatches;
}

// A bias that joins the sums takes no dispatch more than one that does not.
static void check_dispatches(struct bench *bench, struct msc_evaluator *ev) {
    for (int i = 0; i < N_TRIALS; i += N_BIAS_KINDS) {
        int usual = count_run(bench, ev, i + FLOAT_BIAS);
        assert_true(usual > 0);
        assert_int_equal(count_run(bench, ev, i + SMALL), usual);
        assert_int_equal(count_run(bench, ev, i + LARGEST), usual);
    }
}

// The weight is quantised once, by whoever packs it, and not again when it is multiplied.
static void check_packs(const struct bench *bench, struct msc_evaluator *ev,
                        struct msc_backend *b) {
    const struct msc_plan *plan = msc_evaluator_plan(ev, 0);
    const struct msc_step *step = NULL;
    for (int i = 0; i < plan->n_steps && !step; i++) {
        step = plan->steps[i].n_joints > 0 ? &plan->steps[i] : NULL;
    }
    assert_non_null(step);
    for (int i = 0; i < N_TRIALS; i++) {
        const struct trial *t = &bench->trials[i];
        struct msc_view in = msc_plan_view(plan, step->inputs[0], NULL);
        struct msc_view out = msc_plan_view(plan, step->outputs[0], NULL);
        void *packed;
        size_t n_bytes;
        int n_packs = 0;
        in.quant = &t->x_edit.quant;
        in.dtype = msc_quant_dtype(in.quant);
        in.data = b->def->allocate(b, msc_view_n_bytes(&in));
        out.data = b->def->allocate(b, msc_view_n_bytes(&out));
        assert_true(in.data && out.data);
        assert_ok(b->def->weights(b, step, &t->slots[1], &packed, &n_bytes));
        const struct msc_call call = {.inputs = &in, .outputs = &out, .weights = packed};
        assert_ok(b->def->run(b, step, &call, 1, 0));
        for (int kind = 0; kind < MSC_VK_PACK_KINDS; kind++) {
            n_packs += ((const struct msc_vk_variant *)packed)->packs[kind].weight != NULL;
        }
        assert_int_equal(n_packs, 1);
        b->def->release_weights(b, step, packed);
        b->def->release_memory(b, in.data, msc_view_n_bytes(&in));
        b->def->release_memory(b, out.data, msc_view_n_bytes(&out));
    }
}

static bool has_run(const struct msc_vk *vk, enum msc_vk_shader shader) {
    for (size_t i = 0; i < vk->n_pipelines; i++) {
        if (vk->pipelines[i]->shader == shader) {
            return true;
        }
    }
    return false;
}

// ---- Tests ------------------------------------------------------------------------------------

static struct bench bench;

static void check_shape(const struct shape *s, struct msc_backend *b, const char *where) {
    struct msc_dataset *data;
    open_bench(&bench, s);
    struct msc_evaluator *ev = open_evaluator(&bench, b, &data);
    run(&bench, ev, 0, N_TRIALS);
    for (int i = 0; i < N_TRIALS; i++) {
        check_trial(&bench, i, where);
    }
    if (b->def == &msc_backend_vulkan) {
        check_dispatches(&bench, ev);
        check_packs(&bench, ev, b);
    }
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    close_bench(&bench);
}

// `dot` is what MSC_VULKAN_DOT says.
static void check_device(const char *family, const char *dot) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    char where[40];
    skip_without_device();
    setenv("MSC_VULKAN_FAMILY", family, 1);
    setenv("MSC_VULKAN_DOT", dot, 1);
    enum msc_status status = msc_backend_open(&b, "vulkan", &o);
    unsetenv("MSC_VULKAN_FAMILY");
    unsetenv("MSC_VULKAN_DOT");
    assert_ok(status);
    struct msc_vk *vk = msc_vk_from(b)->vk;
    snprintf(where, sizeof(where), "family %s, dot %s", family, dot);
    dispatch_of_device = vk->api.vkCmdDispatch;
    vk->api.vkCmdDispatch = count_dispatch;
    for (int i = 0; i < LONG_SUMS; i++) {
        check_shape(&shapes[i], b, where);
    }
    assert_int_equal(has_run(vk, MSC_VK_CONV_G_DOT), !vk->tuning.is_family_u && vk->has_dot);
    assert_int_equal(has_run(vk, MSC_VK_CONV_G_INT),
                     !vk->tuning.is_family_u && vk->prefers_int && !vk->has_dot);
    assert_false(has_run(vk, MSC_VK_DIGITS));
    check_shape(&shapes[LONG_SUMS], b, where);
    vk->api.vkCmdDispatch = dispatch_of_device;
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

static void test_kernels_vulkan_bias__floats(void **state) {
    (void)state;
    check_device("g", "0");
}

static void test_kernels_vulkan_bias__instruction(void **state) {
    (void)state;
    check_device("g", "1");
}

static void test_kernels_vulkan_bias__integers(void **state) {
    (void)state;
    check_device("g", "emulate");
}

static void test_kernels_vulkan_bias__software(void **state) {
    (void)state;
    check_device("u", "1");
}

static void test_kernels_vulkan_bias__cpu(void **state) {
    (void)state;
    for (int allow_int8 = 0; allow_int8 < 2; allow_int8++) {
        struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
        struct msc_backend *b;
        o.allow_int8 = allow_int8 == 1;
        assert_ok(msc_backend_open(&b, "cpu", &o));
        for (int i = 0; i < N_SHAPES; i++) {
            check_shape(&shapes[i], b, "cpu");
        }
        msc_backend_close(b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_bias__cpu),
        cmocka_unit_test(test_kernels_vulkan_bias__floats),
        cmocka_unit_test(test_kernels_vulkan_bias__instruction),
        cmocka_unit_test(test_kernels_vulkan_bias__integers),
        cmocka_unit_test(test_kernels_vulkan_bias__software),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}
