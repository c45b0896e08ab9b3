#include "graph/reference/reference_quant.h"

#include "base/alloc.h"
#include "graph/reference/reference_internal.h"

#include <string.h>

// Scales the integer sum of one output channel.
static float finish_sum(int64_t sum, float input_scale, float weight_scale) {
    float t = input_scale * weight_scale;
    return t * (float)sum;
}

static float scale_of(const struct msc_quant *q, int64_t channel) {
    return q->scales[q->axis < 0 ? 0 : channel];
}

// Checks that operands 0 and 1 have supported quantisations. `axis` is the axis of output channels
// in the weight. `input_axis` is the channel axis of the input if each sum is over a single
// channel, else -1.
static enum msc_status check_operands(const struct msc_reference_call *call, int axis,
                                      int input_axis) {
    const struct msc_quant *x = call->operands[0].quant, *w = call->operands[1].quant;
    if (!x || !w) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: operand %d is not quantised", call->joint->name,
                        x ? 1 : 0);
    }
    if ((x->axis >= 0 && x->axis != input_axis) || (w->axis >= 0 && w->axis != axis)) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "joint %s: scales along axis %d of the input or %d of the weight are not supported",
            call->joint->name, x->axis, w->axis);
    }
    return MSC_OK;
}

// Computes q - z for every element. The caller owns *out (msc_free).
static enum msc_status create_centred(int32_t **out, const struct msc_reference_call *call,
                                      int operand) {
    const struct msc_view *v = &call->operands[operand];
    const struct msc_quant *q = v->quant;
    int64_t n = msc_view_n_elements(v);
    *out = msc_alloc_zero((size_t)n + 1, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    int64_t inner =
        q->axis < 0 ? n : msc_dims_product(v->n_dims - q->axis - 1, v->dims + q->axis + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = q->axis < 0 ? 0 : i / inner % q->n;
        (*out)[i] = (int32_t)(msc_reference__get_i64_at(v, i) - q->zero_points[channel]);
    }
    return MSC_OK;
}

struct work {
    struct msc_conv conv;
    int32_t *x, *w;
    int64_t *sums; // [out channels]
};

// Adds the products of one tap to the sums of all output channels.
static void add_tap(const struct work *work, int64_t from, int64_t tap) {
    const struct msc_conv *c = &work->conv;
    int64_t in = c->window.in_channels / c->groups, out = c->window.out_channels / c->groups;
    for (int64_t channel = 0; channel < c->window.out_channels; channel++) {
        int64_t group = channel / out;
        const int32_t *x = work->x + from + group * in * c->window.in_channel_stride;
        const int32_t *w =
            work->w + tap + group * c->weight_group_stride + channel % out * c->weight_out_stride;
        int64_t sum = 0;
        for (int64_t k = 0; k < in; k++) {
            sum += (int64_t)x[k * c->window.in_channel_stride] * w[k * c->weight_in_stride];
        }
        work->sums[channel] += sum;
    }
}

// Computes the sums of all output channels at one position.
static void add_window(const struct work *work, int64_t batch, const int64_t at[3]) {
    const struct msc_window *w = &work->conv.window;
    memset(work->sums, 0, (size_t)w->out_channels * sizeof(*work->sums));
    for (int64_t i = 0; i < w->kernel[0] * w->kernel[1] * w->kernel[2]; i++) {
        int64_t k[3] = {i / (w->kernel[1] * w->kernel[2]), i / w->kernel[2] % w->kernel[1],
                        i % w->kernel[2]};
        int64_t from = batch * w->in_batch_stride, tap = 0;
        bool is_inside = true;
        for (int a = 0; a < 3; a++) {
            int64_t source = msc_reference__conv_source(&work->conv, a, at[a], k[a]);
            is_inside = is_inside && source >= 0;
            from += source * w->in_strides[a];
            tap += k[a] * w->kernel_strides[a];
        }
        if (is_inside) {
            add_tap(work, from, tap);
        }
    }
}

static void reference_quant_run_conv(const struct msc_reference_call *call,
                                     const struct work *work) {
    const struct msc_window *w = &work->conv.window;
    const float *bias = msc_reference__has(call, 2) ? call->operands[2].data : NULL;
    const struct msc_quant *q = call->operands[1].quant;
    const struct msc_quant *of_x = call->operands[0].quant;
    int64_t n_scaled = q->axis < 0 ? 1 : q->n, multiple = w->out_channels / w->in_channels;
    int64_t positions = w->out[0] * w->out[1] * w->out[2];
    for (int64_t i = 0; i < w->n_batches * positions; i++) {
        int64_t p = i % positions, batch = i / positions;
        int64_t at[3] = {p / (w->out[1] * w->out[2]), p / w->out[2] % w->out[1], p % w->out[2]};
        add_window(work, batch, at);
        float *to = (float *)call->outputs[0].data + batch * w->out_batch_stride;
        for (int a = 0; a < 3; a++) {
            to += at[a] * w->out_strides[a];
        }
        for (int64_t c = 0; c < w->out_channels; c++) {
            float y = finish_sum(work->sums[c], scale_of(of_x, of_x->axis < 0 ? 0 : c / multiple),
                                 scale_of(q, c % n_scaled));
            to[c * w->out_channel_stride] = bias ? y + bias[c] : y;
        }
    }
}

enum msc_status msc_reference_quantized_conv(const struct msc_reference_call *call) {
    struct work work = {.x = NULL};
    enum msc_status status;
    const char *o = strchr(msc_reference__get_text(call, "kernel_layout"), 'O');
    MSC_TRY_OUT(msc_reference__conv_init(&work.conv, call));
    bool is_depthwise = work.conv.groups > 1 && work.conv.groups == work.conv.window.in_channels;
    MSC_TRY_OUT(check_operands(call,
                               o ? (int)(o - msc_reference__get_text(call, "kernel_layout")) : -1,
                               is_depthwise ? 1 : -1));
    MSC_TRY_OUT(create_centred(&work.x, call, 0));
    MSC_TRY_OUT(create_centred(&work.w, call, 1));
    work.sums = msc_alloc_zero((size_t)work.conv.window.out_channels + 1, sizeof(*work.sums));
    MSC_TRY_OUT(MSC_ALLOCATED(work.sums));
    reference_quant_run_conv(call, &work);
out:
    msc_free(work.x);
    msc_free(work.w);
    msc_free(work.sums);
    return status;
}

// A product of two matrices, y[m, n]; strides are in elements.
struct product {
    int64_t m, n, k;
    int64_t b_row, b_column;
};

static void reference_quant_multiply(const struct msc_reference_call *call, const struct product *p,
                                     float y[], const int32_t a[], const int32_t b[]) {
    const float *bias = msc_reference__has(call, 2) ? call->operands[2].data : NULL;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < p->k; k++) {
                sum += (int64_t)a[i * p->k + k] * b[k * p->b_row + j * p->b_column];
            }
            float value = finish_sum(sum, call->operands[0].quant->scales[0],
                                     scale_of(call->operands[1].quant, j));
            y[i * p->n + j] = bias ? value + bias[j] : value;
        }
    }
}

// *out is true if the weight (or second factor) is stored with its output channels first.
static enum msc_status is_out_first(bool *out, const struct msc_reference_call *call) {
    *out = false;
    if (call->joint->op == MSC_OP_MATMUL) {
        return MSC_OK;
    }
    const char *layout = msc_graph_tensor(call->graph, call->joint->operands[1])->layout;
    *out = strcmp(layout, "OI") == 0;
    if (!*out && strcmp(layout, "IO") != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: weight layout '%s', expected OI or IO",
                        call->joint->name, layout);
    }
    return MSC_OK;
}

enum msc_status msc_reference_quantized_linear(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *w = &call->operands[1];
    const struct msc_view *out = &call->outputs[0];
    bool out_first;
    MSC_TRY(is_out_first(&out_first, call));
    if (x->n_dims < 2 || w->n_dims < 2) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "joint %s: integer products of vectors are not supported",
                        call->joint->name);
    }
    int column_axis = out_first ? 0 : w->n_dims - 1;
    MSC_TRY(check_operands(call, column_axis, -1));
    struct product p = {
        .m = x->dims[x->n_dims - 2],
        .n = w->dims[column_axis],
        .k = x->dims[x->n_dims - 1],
    };
    p.b_row = out_first ? 1 : p.n;
    p.b_column = out_first ? p.k : 1;

    int32_t *a = NULL, *b = NULL;
    enum msc_status status;
    MSC_TRY_OUT(create_centred(&a, call, 0));
    MSC_TRY_OUT(create_centred(&b, call, 1));
    // The leading axes of both operands broadcast to the leading axes of the output.
    struct msc_view batch_x = {.n_dims = x->n_dims - 2}, batch_w = {.n_dims = w->n_dims - 2};
    memcpy(batch_x.dims, x->dims, sizeof(x->dims));
    memcpy(batch_w.dims, w->dims, sizeof(w->dims));
    int n_batch = out->n_dims - 2;
    int64_t x_strides[MSC_MAX_DIMS], w_strides[MSC_MAX_DIMS], out_strides[MSC_MAX_DIMS];
    msc_reference__broadcast_strides(x_strides, &batch_x, n_batch, out->dims);
    msc_reference__broadcast_strides(w_strides, &batch_w, n_batch, out->dims);
    msc_reference__strides(out_strides, n_batch, out->dims);
    struct msc_walk walk;
    msc_reference__walk_init(&walk, n_batch, out->dims);
    msc_reference__walk_add(&walk, out_strides);
    msc_reference__walk_add(&walk, x_strides);
    msc_reference__walk_add(&walk, w_strides);
    for (bool more = msc_reference__walk_first(&walk); more;
         more = msc_reference__walk_next(&walk)) {
        for (int64_t i = 0; i < walk.length; i++) {
            reference_quant_multiply(
                call, &p, (float *)out->data + (walk.offsets[0] + i * walk.steps[0]) * p.m * p.n,
                a + (walk.offsets[1] + i * walk.steps[1]) * p.m * p.k,
                b + (walk.offsets[2] + i * walk.steps[2]) * p.k * p.n);
        }
    }
    status = MSC_OK;
out:
    msc_free(a);
    msc_free(b);
    return status;
}
