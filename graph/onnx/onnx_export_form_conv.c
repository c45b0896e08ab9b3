// Writes average pooling and batch normalisation as depthwise convolutions, and means over images
// as global pooling.
#include "graph/onnx/onnx_export_form.h"

#include <math.h>
#include <string.h>

enum { IMAGE_DIMS = 4, CHANNEL_AXIS = 1 };

// True if the joint's input is quantised to bytes and the target computes the joint in integer
// arithmetic.
static bool is_between_pairs(const struct msc_onnx_joint *j) {
    const struct msc_target *target = j->e->options->sites->scheme.target;
    return msc_onnx__byte_edit(j->e, j->joint->id, 0) != NULL &&
           msc_target_is_integer(msc_target_role(target, j->e->graph, j->joint));
}

static int64_t count_channels(const struct msc_onnx_joint *j) {
    const struct msc_tensor *t = msc_graph_tensor(j->e->graph, j->joint->operands[0]);
    return t->n_dims == IMAGE_DIMS ? t->dims[CHANNEL_AXIS] : -1;
}

struct depthwise {
    int64_t channels, kernel[2];
    const int8_t *weight; // [channels, 1, kernel[0], kernel[1]]
    const float *scales;  // [channels], or one scale for all
    int64_t n_scales;
    const int32_t *bias; // [channels] in units of input scale * scales; NULL: none
    float input_scale;
};

static enum msc_status add_factor(const char **out, struct msc_onnx_joint *j,
                                  const struct depthwise *d) {
    int64_t dims[] = {d->channels, 1, d->kernel[0], d->kernel[1]};
    const char *inputs[3], *name = msc_arena_printf(&j->e->arena, "%s.weight", j->joint->name);
    int8_t *zeros = msc_arena_array(&j->e->arena, (size_t)d->n_scales, sizeof(zeros[0]));
    size_t n = (size_t)msc_dims_product(IMAGE_DIMS, dims);
    int n_dims = d->n_scales > 1;
    MSC_TRY(MSC_ALLOCATED(name && zeros));
    MSC_TRY(msc_onnx__add_initializer(&inputs[0], j->e, name, MSC_ONNX_INT8, IMAGE_DIMS, dims,
                                      d->weight, n));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, n_dims, &d->n_scales,
                                      d->scales, (size_t)d->n_scales * sizeof(float)));
    MSC_TRY(msc_onnx__add_initializer(&inputs[2], j->e, name, MSC_ONNX_INT8, n_dims, &d->n_scales,
                                      zeros, (size_t)d->n_scales));
    MSC_TRY(msc_onnx__add_step(out, j->e, "DequantizeLinear", name, inputs, 3));
    return msc_onnx__put_int(j->e, j->e->nodes[j->e->n_nodes - 1], "axis", 0);
}

// Adds a bias of integers in units of `steps`, with a DequantizeLinear.
static enum msc_status add_bias(const char **out, struct msc_onnx_joint *j, int64_t n,
                                const int32_t bias[], const float steps[]) {
    const char *inputs[2], *name = msc_arena_printf(&j->e->arena, "%s.bias", j->joint->name);
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_onnx__add_initializer(&inputs[0], j->e, name, MSC_ONNX_INT32, 1, &n, bias,
                                      (size_t)n * sizeof(bias[0])));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, 1, &n, steps,
                                      (size_t)n * sizeof(steps[0])));
    MSC_TRY(msc_onnx__add_step(out, j->e, "DequantizeLinear", name, inputs, 2));
    return msc_onnx__put_int(j->e, j->e->nodes[j->e->n_nodes - 1], "axis", 0);
}

static enum msc_status add_summand(const char **out, struct msc_onnx_joint *j,
                                   const struct depthwise *d) {
    size_t n = (size_t)d->channels;
    float *steps = msc_arena_array(&j->e->arena, n + 1, sizeof(steps[0]));
    MSC_TRY(MSC_ALLOCATED(steps));
    for (size_t c = 0; c < n; c++) {
        steps[c] = d->input_scale * d->scales[c];
    }
    return add_bias(out, j, d->channels, d->bias, steps);
}

static enum msc_status write_depthwise(struct msc_onnx_joint *j, const struct depthwise *d) {
    const char *inputs[3] = {"", "", ""}, *output = j->e->names[j->joint->outputs[0]];
    MSC_TRY(msc_onnx__operand(&inputs[0], j->e, j->joint, 0));
    MSC_TRY(add_factor(&inputs[1], j, d));
    if (d->bias != NULL) {
        MSC_TRY(add_summand(&inputs[2], j, d));
    }
    MSC_TRY(msc_onnx__add_node(&j->node, j->e, "Conv", j->joint->name, inputs, 3, &output, 1));
    MSC_TRY(msc_onnx__put_int(j->e, j->node, "group", d->channels));
    return msc_onnx__put_ints(j->e, j->node, "kernel_shape", d->kernel, 2);
}

// Writes average pooling as a convolution whose integer weights are 1 and whose scale is 1 /
// (elements of a window). The integer kernel for pooling is many times slower.
enum msc_status msc_onnx__form_pool(bool *is_written, struct msc_onnx_joint *j) {
    struct depthwise d = {.channels = count_channels(j), .n_scales = 1};
    if (!is_between_pairs(j) || d.channels < 1 ||
        msc_joint_attr_list(j->joint, "pool_size", d.kernel, 2) != 2 ||
        msc_onnx__edit_behind(j->e, j->joint->outputs[0]) == NULL) {
        return MSC_OK;
    }
    int64_t n = d.kernel[0] * d.kernel[1];
    int8_t *ones = msc_arena_array(&j->e->arena, (size_t)(d.channels * n), sizeof(ones[0]));
    float *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    MSC_TRY(MSC_ALLOCATED(ones && scale));
    memset(ones, 1, (size_t)(d.channels * n));
    *scale = 1.0f / (float)n;
    d.weight = ones;
    d.scales = scale;
    *is_written = true;
    MSC_TRY(write_depthwise(j, &d));
    return msc_onnx__put_attrs(j, "strides padding");
}

// The constant operand with this role; NULL if it is not float32 with n elements.
static const float *constant_of(const struct msc_onnx_joint *j, const char *role, int64_t n) {
    int32_t tensor = j->joint->operands[msc_joint_operand(j->joint, role)];
    int32_t weight = tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_weight_of(j->e->graph, tensor);
    const struct msc_tensor *t = weight == MSC_NO_ID ? NULL : msc_graph_tensor(j->e->graph, weight);
    bool fits = t != NULL && t->data != NULL && t->dtype == MSC_DTYPE_F32 &&
                msc_array_n_elements(t->data) == n;
    return fits ? msc_array_data(t->data) : NULL;
}

enum { MOST_WEIGHT = 127 };
static const float most_bias = 0x1p30f; // leaves room for the products that are added to the bias

// Writes y = factor * x + summand for each channel. Scales are chosen so that weights are +-127, or
// less if the bias would overflow.
static enum msc_status put_channels(struct depthwise *d, struct msc_onnx_export *e,
                                    const float factors[], const float summands[]) {
    size_t n = (size_t)d->channels;
    int8_t *weight = msc_arena_array(&e->arena, n, sizeof(weight[0]));
    float *scales = msc_arena_array(&e->arena, n, sizeof(scales[0]));
    int32_t *bias = msc_arena_array(&e->arena, n, sizeof(bias[0]));
    MSC_TRY(MSC_ALLOCATED(weight && scales && bias));
    for (size_t c = 0; c < n; c++) {
        float least = fabsf(summands[c]) / d->input_scale / most_bias;
        scales[c] = fmaxf(fmaxf(fabsf(factors[c]) / MOST_WEIGHT, least), 0x1p-100f);
        weight[c] = (int8_t)rintf(factors[c] / scales[c]);
        bias[c] = msc_bias_round(summands[c], d->input_scale * scales[c]);
    }
    d->weight = weight;
    d->scales = scales;
    d->bias = bias;
    d->n_scales = d->channels;
    return MSC_OK;
}

// The summand is rounded to multiples of factor * input scale / 127. Its error is at most 1/254 of
// factor * input scale, the change of the output for one step of the input.
enum msc_status msc_onnx__form_batch_norm(bool *is_written, struct msc_onnx_joint *j) {
    struct depthwise d = {.channels = count_channels(j), .kernel = {1, 1}};
    int64_t axis = CHANNEL_AXIS;
    float epsilon = 0;
    (void)msc_joint_attr_i64(j->joint, "axis", &axis);
    if (!is_between_pairs(j) || d.channels < 1 || axis != CHANNEL_AXIS ||
        !msc_joint_attr_float(j->joint, "epsilon", &epsilon)) {
        return MSC_OK;
    }
    const float *gamma = constant_of(j, "gamma", d.channels);
    const float *beta = constant_of(j, "beta", d.channels);
    const float *mean = constant_of(j, "mean", d.channels);
    const float *variance = constant_of(j, "var", d.channels);
    bool has_scale = true, has_shift = true;
    (void)msc_joint_attr_bool(j->joint, "scale", &has_scale);
    (void)msc_joint_attr_bool(j->joint, "center", &has_shift);
    if (gamma == NULL || beta == NULL || mean == NULL || variance == NULL) {
        return MSC_OK;
    }
    size_t n = (size_t)d.channels;
    float *factors = msc_arena_array(&j->e->arena, n, sizeof(factors[0]));
    float *summands = msc_arena_array(&j->e->arena, n, sizeof(summands[0]));
    MSC_TRY(MSC_ALLOCATED(factors && summands));
    for (size_t c = 0; c < n; c++) {
        double factor = (has_scale ? gamma[c] : 1.0) / sqrt((double)variance[c] + epsilon);
        factors[c] = (float)factor;
        summands[c] = (float)((has_shift ? beta[c] : 0.0) - mean[c] * factor);
    }
    d.input_scale = msc_onnx__byte_edit(j->e, j->joint->id, 0)->quant.scales[0];
    MSC_TRY(put_channels(&d, j->e, factors, summands));
    *is_written = true;
    return write_depthwise(j, &d);
}

enum msc_status msc_onnx__form_mean(bool *is_written, struct msc_onnx_joint *j) {
    static const int64_t axes[] = {2, 3};
    bool keeps_dims = false;
    const char *input, *output = j->e->names[j->joint->outputs[0]];
    (void)msc_joint_attr_bool(j->joint, "keepdims", &keeps_dims);
    if (!is_between_pairs(j)) {
        return MSC_OK;
    }
    *is_written = true;
    MSC_TRY(msc_onnx__operand(&input, j->e, j->joint, 0));
    if (keeps_dims) {
        return msc_onnx__add_node(&j->node, j->e, "GlobalAveragePool", j->joint->name, &input, 1,
                                  &output, 1);
    }
    const char *inputs[2] = {input};
    const char *pooled = msc_arena_printf(&j->e->arena, "%s.pooled", j->joint->name);
    MSC_TRY(msc_onnx__add_step(&inputs[0], j->e, "GlobalAveragePool", pooled, inputs, 1));
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "axes", axes, 2));
    return msc_onnx__add_node(&j->node, j->e, "Squeeze", j->joint->name, inputs, 2, &output, 1);
}

// ---- Summands after a convolution -------------------------------------------------------------

// Operands of convolutions.
enum { WEIGHT = 1, BIAS };

// Rounds (bias + shift) to [n] integers.
static enum msc_status round_shifted(int32_t integers[], const struct msc_onnx_export *e,
                                     const struct msc_joint *j, const struct msc_bias_rounding *r) {
    const struct msc_tensor *t =
        msc_graph_tensor(e->graph, msc_graph_weight_of(e->graph, j->operands[BIAS]));
    struct msc_array *elements;
    MSC_TRY(msc_edit_elements(&elements, t->data, msc_onnx__edit_at(e, j->id, BIAS)));
    const float *from = msc_array_data(elements);
    for (int64_t c = 0; c < msc_array_n_elements(elements); c++) {
        integers[c] = msc_bias_round_channel(r, from[c], c);
    }
    msc_array_release(elements);
    return MSC_OK;
}

enum msc_status msc_onnx__shift_bias(struct msc_onnx_joint *j) {
    struct msc_tail tail;
    const struct msc_onnx_export *e = j->e;
    if (!msc_onnx__has_forms(e) || !msc_op_is_conv(j->joint->op) ||
        !msc_onnx__tail_behind(&tail, e, j->joint->outputs[0]) || tail.shift == 0) {
        return MSC_OK;
    }
    const struct msc_bias_rounding *rounding = msc_onnx__bias_rounding(e, j->joint);
    size_t n = (size_t)msc_graph_tensor(e->graph, j->joint->operands[WEIGHT])->dims[0];
    float *steps = msc_arena_array(&j->e->arena, n, sizeof(steps[0]));
    int32_t *bias = msc_arena_array(&j->e->arena, n, sizeof(bias[0]));
    MSC_TRY(MSC_ALLOCATED(steps && bias));
    for (size_t c = 0; c < n; c++) {
        steps[c] = msc_onnx__step_of(e, j->joint, (int64_t)c);
        bias[c] = msc_bias_round(msc_tail_bias(&tail), steps[c]);
    }
    if (rounding != NULL) {
        MSC_TRY(round_shifted(bias, e, j->joint, rounding));
    }
    j->n_inputs = BIAS + 1;
    return add_bias(&j->inputs[BIAS], j, (int64_t)n, bias, steps);
}
