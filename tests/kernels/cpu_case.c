// Builds the graphs declared in cpu_case.h, runs them through the reference kernels, and
// compares.
#include "tests/kernels/cpu_case_internal.h"

#include "base/alloc.h"
#include "graph/reference/reference.h"
#include "graph/reference/reference_quant.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

// ---- Cases ------------------------------------------------------------------------------------

void cpu_case_init(struct cpu_case *c, uint64_t seed) {
    cpu__open_device();
    memset(c, 0, sizeof(*c));
    c->low = -2.0f;
    c->high = 2.0f;
    c->options = (struct msc_backend_options)MSC_BACKEND_OPTIONS_INIT;
    msc_rng_seed(&c->rng, seed, 0);
    assert_ok(msc_graph_create(&c->g, "case"));
}

void cpu_case_finish(struct cpu_case *c) {
    for (int i = 0; i < c->n_inputs; i++) {
        msc_array_release(c->inputs[i]);
    }
    msc_sites_finish(&c->sites);
    msc_free(c->quants);
    msc_graph_destroy(c->g);
}

// ---- Building ---------------------------------------------------------------------------------

struct msc_array *cpu_random(struct cpu_case *c, int n_dims, const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    float *x = msc_array_data(a);
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        x[i] = c->low + (c->high - c->low) * (float)msc_rng_double(&c->rng);
    }
    return a;
}

int32_t cpu_input(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]) {
    int32_t tensor;
    char name[16];
    snprintf(name, sizeof(name), "x%d", c->n_inputs);
    assert_ok(msc_graph_add_input(&tensor, c->g, name, name, MSC_DTYPE_F32, layout, n_dims, dims));
    c->inputs[c->n_inputs++] = cpu_random(c, n_dims, dims);
    return tensor;
}

static int32_t add_weight(struct cpu_case *c, const char *layout, struct msc_array *data) {
    int32_t tensor;
    char name[24];
    snprintf(name, sizeof(name), "w%d", (int)msc_graph_n_tensors(c->g));
    assert_ok(msc_graph_add_weight(&tensor, c->g, name, NULL, layout, data));
    msc_array_release(data);
    return tensor;
}

int32_t cpu_whole_input(struct cpu_case *c, const char *dtype, int low, int high, int n_dims,
                        const int64_t dims[]) {
    char attribute[32];
    float before[2] = {c->low, c->high};
    c->low = (float)low;
    c->high = (float)high;
    int32_t x = cpu_input(c, "", n_dims, dims);
    c->low = before[0];
    c->high = before[1];
    snprintf(attribute, sizeof(attribute), "dtype=%s", dtype);
    x = cpu_joint(c, MSC_OP_ROUND, 1, &x, "", MSC_NO_ID, MSC_NO_ID);
    return cpu_joint(c, MSC_OP_CAST, 1, &x, attribute, MSC_NO_ID, MSC_NO_ID);
}

int32_t cpu_weight(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]) {
    return add_weight(c, layout, cpu_random(c, n_dims, dims));
}

int32_t cpu_constant(struct cpu_case *c, int n_dims, const int64_t dims[], const float *elements) {
    struct msc_array *data;
    if (elements) {
        assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, n_dims, dims, elements));
    } else {
        data = cpu_random(c, n_dims, dims);
    }
    struct msc_weight_spec weight = {"const", add_weight(c, "", data)};
    return cpu_joint_weights(c, MSC_OP_CONSTANT, 0, NULL, "", 1, &weight);
}

int32_t cpu_whole_constant(struct cpu_case *c, enum msc_dtype dtype, int low, int high, int n_dims,
                           const int64_t dims[]) {
    float before[2] = {c->low, c->high};
    c->low = (float)low;
    c->high = (float)high;
    struct msc_array *floats = cpu_random(c, n_dims, dims), *data;
    c->low = before[0];
    c->high = before[1];
    float *elements = msc_array_data(floats);
    for (int64_t i = 0; i < msc_array_n_elements(floats); i++) {
        elements[i] = rintf(elements[i]);
    }
    assert_ok(msc_array_convert(&data, floats, dtype));
    msc_array_release(floats);
    struct msc_weight_spec weight = {"const", add_weight(c, "", data)};
    return cpu_joint_weights(c, MSC_OP_CONSTANT, 0, NULL, "", 1, &weight);
}

int32_t cpu_joint_weights(struct cpu_case *c, enum msc_op op, int32_t n_inputs,
                          const int32_t inputs[], const char *attributes, int32_t n_weights,
                          const struct msc_weight_spec weights[]) {
    int32_t joint;
    assert_ok(kernel_add_joint(&joint, c->g, op, n_inputs, inputs, attributes, n_weights, weights));
    return msc_graph_joint(c->g, joint)->outputs[0];
}

int32_t cpu_joint(struct cpu_case *c, enum msc_op op, int32_t n_inputs, const int32_t inputs[],
                  const char *attributes, int32_t weight, int32_t bias) {
    struct msc_weight_spec weights[2];
    int32_t n = 0;
    if (weight != MSC_NO_ID) {
        weights[n++] = (struct msc_weight_spec){"weight", weight};
    }
    if (bias != MSC_NO_ID) {
        weights[n++] = (struct msc_weight_spec){"bias", bias};
    }
    return cpu_joint_weights(c, op, n_inputs, inputs, attributes, n, weights);
}

void cpu_case_finish_outputs(struct cpu_case *c, int32_t n, const int32_t outputs[]) {
    assert_ok(msc_graph_set_outputs(c->g, n, outputs));
    assert_ok(msc_graph_finalize(c->g));
    assert_ok(msc_sites_find(&c->sites, c->g, NULL));
    assert_true(c->sites.n_slots <= CPU_CASE_MAX);
    c->quants = msc_alloc_zero((size_t)c->sites.n_slots + 1, sizeof(c->quants[0]));
    assert_non_null(c->quants);
}

void cpu_case_finish_graph(struct cpu_case *c, int32_t output) {
    cpu_case_finish_outputs(c, 1, &output);
}

// ---- Edits ------------------------------------------------------------------------------------

// Sets one scale and zero point for the range [low, high].
static void set_range(struct cpu_quant *q, int index, struct cpu_edit_kind kind, float low,
                      float high) {
    low = low < 0.0f ? low : 0.0f;
    high = high > 0.0f ? high : 0.0f;
    if (!isfinite(high - low)) { // the results contain NaN or infinities
        low = -1.0f;
        high = 1.0f;
    }
    float least = (float)q->edit.quant.low, most = (float)q->edit.quant.high;
    float scale =
        kind.is_symmetric ? fmaxf(low / least, high / most) : (high - low) / (most - least);
    q->scales[index] = scale > 0.0f ? scale : 1.0f;
    q->zero_points[index] =
        kind.is_symmetric ? 0 : (int32_t)rintf(-low / q->scales[index]) + q->edit.quant.low;
}

void cpu__set_quant(struct cpu_quant *q, struct cpu_edit_kind kind, const struct msc_array *x,
                    int axis, bool is_weight) {
    int32_t half = 1 << (kind.bits - 1);
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    bool by_channel = kind.is_per_channel && axis >= 0;
    q->edit = (struct msc_edit){.kind = MSC_EDIT_QUANTIZE};
    q->edit.quant = (struct msc_quant){
        .bits = kind.bits,
        .low = kind.is_symmetric ? (is_weight && !by_channel ? 1 - half : -half) : 0,
        .high = kind.is_symmetric ? half - 1 : 2 * half - 1,
        .axis = by_channel ? axis : -1,
        .n = by_channel ? (int32_t)dims[axis] : 1,
        .scales = q->scales,
        .zero_points = q->zero_points,
    };
    assert_true(q->edit.quant.n <= CPU_CASE_CHANNELS);
    int64_t inner = by_channel ? msc_dims_product(n_dims - axis - 1, dims + axis + 1) : 1;
    const float *elements = msc_array_data(x);
    float low[CPU_CASE_CHANNELS] = {0}, high[CPU_CASE_CHANNELS] = {0};
    for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
        int64_t c = by_channel ? i / inner % dims[axis] : 0;
        low[c] = elements[i] < low[c] ? elements[i] : low[c];
        high[c] = elements[i] > high[c] ? elements[i] : high[c];
    }
    for (int c = 0; c < q->edit.quant.n; c++) {
        set_range(q, c, kind, low[c], high[c]);
    }
    msc_edit_seal(&q->edit);
}

void cpu_case_edit(struct cpu_case *c, struct cpu_edit_kind activations,
                   struct cpu_edit_kind weights) {
    for (int32_t i = 0; i < c->sites.n_site_slots; i++) {
        const struct msc_slot *slot = &c->sites.slots[i];
        bool is_weight = slot->kind == MSC_SITE_WEIGHT;
        struct cpu_edit_kind kind = is_weight ? weights : activations;
        c->edits[i] = NULL;
        if (kind.bits == 0) {
            continue;
        }
        struct msc_array *x;
        const struct msc_tensor *t = msc_graph_tensor(c->g, slot->tensor);
        if (t->data) {
            x = msc_array_retain(t->data);
        } else {
            assert_ok(msc_reference_run_graph(&x, c->g, (const struct msc_array *const *)c->inputs,
                                              &slot->tensor, 1, NULL));
        }
        cpu__set_quant(&c->quants[i], kind, x, slot->channel_axis, is_weight);
        c->edits[i] = &c->quants[i].edit;
        msc_array_release(x);
    }
}

// ---- Running the reference --------------------------------------------------------------------

// The edit of operand i of a joint, or NULL.
static const struct msc_quant *operand_edit(const struct cpu_case *c, const struct msc_joint *j,
                                            int32_t i) {
    int32_t slot = msc_sites_find_slot(&c->sites, j->id, i);
    return slot == MSC_NO_ID ? NULL : msc_edit_quant(c->edits[slot]);
}

static bool is_integer_joint(const struct cpu_case *c, const struct msc_joint *j) {
    const struct msc_quant *x = j->n_operands > 1 ? operand_edit(c, j, 0) : NULL;
    const struct msc_quant *w = j->n_operands > 1 ? operand_edit(c, j, 1) : NULL;
    return x && w && msc_quant_is_integer(x) && msc_quant_is_integer(w);
}

// A copy with noise added to every element.
static struct msc_array *disturb(struct cpu_case *c, const struct msc_array *x) {
    struct msc_array *noisy;
    const float *from = msc_array_data(x);
    assert_ok(msc_array_create(&noisy, MSC_DTYPE_F32, msc_array_n_dims(x), msc_array_dims(x)));
    float *to = msc_array_data(noisy);
    for (int64_t i = 0; i < msc_array_n_elements(noisy); i++) {
        to[i] = from[i] * (1.0f + c->noise * (float)(2.0 * msc_rng_double(&c->rng) - 1.0));
    }
    return noisy;
}

static void expect_joint(struct cpu_case *c, struct msc_array *arrays[],
                         const struct msc_joint *j) {
    struct msc_view operands[MSC_STEP_MAX_INPUTS], outputs[CPU_CASE_MAX];
    struct msc_array *edited[MSC_STEP_MAX_INPUTS] = {NULL};
    bool is_integer = is_integer_joint(c, j);
    for (int32_t i = 0; i < j->n_operands; i++) {
        operands[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
        if (j->operands[i] == MSC_NO_ID) {
            continue;
        }
        const struct msc_quant *q = operand_edit(c, j, i);
        struct msc_array *x = arrays[j->operands[i]];
        if (q && is_integer) {
            assert_ok(msc_quantize_array(&edited[i], x, q));
        } else if (q) {
            assert_ok(msc_fake_quantize_array(&edited[i], x, q));
        }
        if (c->noise > 0.0f && !is_integer && msc_array_dtype(x) == MSC_DTYPE_F32) {
            struct msc_array *noisy = disturb(c, edited[i] ? edited[i] : x);
            msc_array_release(edited[i]);
            edited[i] = noisy;
        }
        operands[i] = msc_view_of_array(edited[i] ? edited[i] : x);
        operands[i].quant = is_integer ? q : NULL;
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, j->outputs[i]);
        assert_ok(msc_array_create(&arrays[j->outputs[i]], t->dtype, t->n_dims, t->dims));
        outputs[i] = msc_view_of_array(arrays[j->outputs[i]]);
    }
    struct msc_reference_call call = {.graph = c->g,
                                      .joint = j,
                                      .n_operands = j->n_operands,
                                      .operands = operands,
                                      .n_outputs = j->n_outputs,
                                      .outputs = outputs};
    bool is_conv = msc_op_is_conv(j->op) || j->op == MSC_OP_CONV2D_TRANSPOSE;
    assert_ok(is_integer ? (is_conv ? msc_reference_quantized_conv(&call)
                                    : msc_reference_quantized_linear(&call))
                         : msc_reference_find(j->op)(&call));
    for (int32_t i = 0; i < j->n_operands; i++) {
        msc_array_release(edited[i]);
    }
}

void cpu_expect(struct msc_array **out, struct cpu_case *c, int index) {
    int32_t n = msc_graph_n_tensors(c->g);
    struct msc_array **arrays = msc_alloc_zero((size_t)n + 1, sizeof(arrays[0]));
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, i);
        arrays[i] = t->data ? msc_array_retain(t->data) : NULL;
    }
    for (int i = 0; i < c->n_inputs; i++) {
        arrays[msc_graph_input(c->g, i)] = msc_array_retain(c->inputs[i]);
    }
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        if (j->op == MSC_OP_CONSTANT) {
            arrays[j->outputs[0]] = msc_array_retain(arrays[j->weights[0].tensor]);
        } else if (j->op != MSC_OP_INPUT) {
            expect_joint(c, arrays, j);
        }
    }
    *out = msc_array_retain(arrays[msc_graph_output(c->g, index)]);
    for (int32_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
}

// ---- Comparing --------------------------------------------------------------------------------

static double without_denormals(double v) {
    return cpu__keeps_denormals() || fabs(v) >= (double)FLT_MIN || v != v ? v : 0.0;
}

bool cpu_is_equal(const struct msc_array *a, const struct msc_array *b) {
    size_t n_bytes = msc_array_n_bytes(a);
    if (n_bytes != msc_array_n_bytes(b)) {
        print_error("%zu bytes, expected %zu\n", n_bytes, msc_array_n_bytes(b));
        return false;
    }
    if (n_bytes == 0 || memcmp(msc_array_data(a), msc_array_data(b), n_bytes) == 0) {
        return true;
    }
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        double x = without_denormals(msc_array_get_double(a, i));
        double y = without_denormals(msc_array_get_double(b, i));
        if (x != y && (x == x || y == y)) {
            print_error("element %lld is %.9g, expected %.9g\n", (long long)i, x, y);
            return false;
        }
    }
    return true; // zeros of different signs, or NaN with different bits
}

static void print_row(const struct cpu_case *c) {
    if (c->row) {
        print_error("%s, %s, %s%s\n", msc_op_info(c->row->op)->name, c->row->attributes,
                    c->row->operands, c->is_last ? ", channels last" : "");
    }
}

void cpu_check_equal(struct cpu_case *c) {
    struct msc_array *actual, *expected;
    cpu_run(&actual, c, 0);
    cpu_expect(&expected, c, 0);
    if (!cpu_is_equal(actual, expected)) {
        print_row(c);
        fail();
    }
    msc_array_release(actual);
    msc_array_release(expected);
}

// The sum of squared differences; *power is the sum of squares of b.
static double differences(const struct msc_array *a, const struct msc_array *b, double *power) {
    double sum = 0;
    *power = 0;
    assert_int_equal(msc_array_n_elements(a), msc_array_n_elements(b));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        double x = msc_array_get_double(a, i), y = msc_array_get_double(b, i);
        sum += (x - y) * (x - y);
        *power += y * y;
    }
    return sum;
}

// Measures how far noise in the last bit of floats moves the result: the largest sum of squared
// differences in four runs.
static double noise_differences(struct cpu_case *c, const struct msc_array *expected) {
    double most = 0, power;
    c->noise = FLT_EPSILON;
    for (int i = 0; i < 4; i++) {
        struct msc_array *noisy;
        cpu_expect(&noisy, c, 0);
        most = fmax(most, differences(noisy, expected, &power));
        msc_array_release(noisy);
    }
    c->noise = 0.0f;
    return most;
}

static void check_close(struct cpu_case *c, double bound, bool may_cancel) {
    static const double room = 1e4;
    struct msc_array *actual, *expected;
    double power;
    cpu_run(&actual, c, 0);
    cpu_expect(&expected, c, 0);
    double error = differences(actual, expected, &power);
    if (!(error <= bound * power) &&
        !(may_cancel && error <= room * noise_differences(c, expected))) {
        print_row(c);
        fail_msg("error %g of %g", error, power);
    }
    msc_array_release(actual);
    msc_array_release(expected);
}

void cpu_check_close(struct cpu_case *c, double bound) {
    check_close(c, bound, false);
}

void cpu_check_conditioned(struct cpu_case *c, double bound) {
    check_close(c, bound, true);
}
