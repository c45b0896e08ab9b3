#include "kernels/cpu/weighted.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

// ---- Chunks -----------------------------------------------------------------------------------

// The largest divisor of n up to `most`, or, when that is far below, the smallest above it.
static int64_t choose_chunk(int64_t n, int64_t most) {
    int64_t below = 1, above = n;
    for (int64_t d = 1; d * d <= n; d++) {
        if (n % d == 0) {
            int64_t pair[2] = {d, n / d};
            for (int i = 0; i < 2; i++) {
                below = pair[i] <= most && pair[i] > below ? pair[i] : below;
                above = pair[i] > most && pair[i] < above ? pair[i] : above;
            }
        }
    }
    return below * 8 >= most || below == n ? below : above;
}

static int64_t product3(const int64_t v[3], int n) {
    int64_t p = 1;
    for (int i = 0; i < n; i++) {
        p *= v[i];
    }
    return p;
}

// A pointwise convolution is one over a single long row of positions.
static void flatten(struct msc_dense_desc *d) {
    int64_t positions = d->batch * product3(d->in, d->n_spatial);
    d->batch = 1;
    d->n_spatial = 2;
    for (int i = 0; i < 3; i++) {
        d->in[i] = d->out[i] = i == 1 ? positions : 1;
        d->kernel[i] = d->strides[i] = d->dilation[i] = 1;
        d->pad_begin[i] = d->pad_end[i] = 0;
    }
}

// Divides the batch so that input and output of a chunk fit into the cache, unless the weights,
// read anew for each chunk, are larger still.
static void divide(struct msc_weighted *k, const struct msc_weighted_spec *spec,
                   struct msc_dense_desc *d, bool is_whole) {
    *d = spec->desc;
    bool is_conv = d->kind != MSC_DENSE_LINEAR;
    if (is_conv && spec->is_pointwise) {
        flatten(d);
    }
    int64_t *axis = is_conv && spec->is_pointwise ? &d->in[1] : &d->batch;
    int64_t in = d->in_channels, out = d->out_channels;
    if (is_conv && !spec->is_pointwise) {
        in *= product3(d->in, d->n_spatial);
        out *= product3(d->out, d->n_spatial);
    }
    int64_t weights_bytes = msc_array_n_elements(k->weight) * (int64_t)sizeof(float);
    int64_t bytes = weights_bytes > MSC_CPU_CACHE_BYTES ? weights_bytes : MSC_CPU_CACHE_BYTES;
    int64_t most = bytes / ((in + out) * (int64_t)sizeof(float));
    int64_t chunk = is_whole ? *axis : choose_chunk(*axis, most > 0 ? most : 1);
    k->n_chunks = *axis / chunk;
    *axis = chunk;
    d->out[1] = is_conv && spec->is_pointwise ? chunk : d->out[1];
    k->chunk_in = chunk * in;
    k->chunk_out = chunk * out;
}

// ---- Preparing --------------------------------------------------------------------------------

// The input may be padded beforehand: no padding is left to the routine.
static void pad_input(struct msc_weighted *k, struct msc_dense_desc *d) {
    k->padded_in = d->batch * d->in_channels;
    for (int i = 0; i < d->n_spatial; i++) {
        d->in[i] += d->pad_begin[i] + d->pad_end[i];
        d->pad_begin[i] = d->pad_end[i] = 0;
        k->padded_in *= d->in[i];
    }
}

// A limit that directly follows the float result is left to the routine, when nobody else reads
// that result. Returns the first joint that is not.
static int32_t fuse_limit(struct msc_dense_desc *d, const struct msc_step *step) {
    if (step->n_joints < 2) {
        return 1;
    }
    const struct msc_step_joint *next = &step->joints[1];
    d->low = 0.0f;
    d->high = INFINITY;
    if (next->joint->op == MSC_OP_CLIP) {
        d->low = -INFINITY;
        msc_joint_attr_float(next->joint, "min", &d->low);
        msc_joint_attr_float(next->joint, "max", &d->high);
    } else if (next->joint->op != MSC_OP_RELU) {
        return 1;
    }
    for (int32_t j = 2; j < step->n_joints; j++) {
        for (int32_t i = 0; i < step->joints[j].n_operands; i++) {
            const struct msc_operand *o = &step->joints[j].operands[i];
            if (o->kind == MSC_OPERAND_INNER && o->index == 0) {
                return 1;
            }
        }
    }
    d->has_clip = isfinite(d->low) && d->low <= d->high;
    return d->has_clip ? 2 : 1;
}

static enum msc_status create_ends(struct msc_weighted *k, const struct msc_plan *plan,
                                   const struct msc_step *step, int32_t first, int channel_axis) {
    static const enum msc_ewise_start starts[] = {MSC_EWISE_FLOAT, MSC_EWISE_SUM_F32,
                                                  MSC_EWISE_SUM_I32};
    for (int i = 0; i < 3; i++) {
        struct msc_ewise_options options = {.start = starts[i],
                                            .first = i == 0 ? first : 1,
                                            .channel_axis = channel_axis,
                                            .bias = i == 0 ? NULL : k->bias};
        MSC_TRY(msc_ewise_create(&k->ends[i], plan, step, &options));
    }
    return MSC_OK;
}

static enum msc_status init(struct msc_weighted *k, const struct msc_plan *plan,
                            const struct msc_step *step, const struct msc_weighted_spec *spec) {
    const struct msc_step_joint *anchor = &step->joints[0];
    struct msc_dense_desc d;
    k->name = anchor->joint->name;
    k->input = anchor->operands[0].index;
    k->weight = msc_graph_tensor(plan->graph, anchor->operands[1].index)->data;
    if (anchor->n_operands > 2 && anchor->operands[2].kind == MSC_OPERAND_WEIGHT) {
        k->bias = msc_array_data(msc_graph_tensor(plan->graph, anchor->operands[2].index)->data);
    }
    k->out_axis = spec->out_axis;
    k->channels = spec->desc.out_channels;
    divide(k, spec, &d, k->backend->base.options.kernel_threads > 1);
    k->descs[MSC_WEIGHTED_WHOLE] = d;
    k->descs[MSC_WEIGHTED_INT8] = d;
    k->descs[MSC_WEIGHTED_INT8].is_int8 = true;
    k->descs[MSC_WEIGHTED_INT8_PADDED] = k->descs[MSC_WEIGHTED_INT8];
    pad_input(k, &k->descs[MSC_WEIGHTED_INT8_PADDED]);
    d.bias = k->bias;
    int32_t first = fuse_limit(&d, step);
    k->descs[MSC_WEIGHTED_FLOAT] = d;
    MSC_TRY(msc_weighted_create_routines(k));
    return create_ends(k, plan, step, first, spec->channel_axis);
}

enum msc_status msc_weighted_create(struct msc_weighted **out, struct msc_cpu_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step,
                                    const struct msc_weighted_spec *spec) {
    struct msc_weighted *k = msc_alloc_zero(1, sizeof(*k));
    if (!k) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", step->joints[0].joint->name);
    }
    k->backend = b;
    enum msc_status status = init(k, plan, step, spec);
    if (status != MSC_OK) {
        msc_weighted_release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

void msc_weighted_release(void *kernel) {
    struct msc_weighted *k = kernel;
    if (k) {
        msc_weighted_destroy_routines(k);
        for (int i = 0; i < 3; i++) {
            msc_ewise_destroy(k->ends[i]);
        }
        msc_free(k);
    }
}
