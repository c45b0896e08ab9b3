#include "kernels/cpu/cpu_gemm.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

// ---- Chunks -----------------------------------------------------------------------------------

// The largest divisor of n up to `most` or, if that divisor is much smaller than `most`, the
// smallest divisor above `most`.
static int64_t choose_divisor(int64_t n, int64_t most) {
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

// Treats a pointwise convolution as a convolution over a single long row of positions.
static void cpu_gemm_flatten(struct msc_gemm_desc *d) {
    int64_t positions = d->batch * msc_dims_product(d->n_spatial, d->in);
    d->batch = 1;
    d->n_spatial = 2;
    for (int i = 0; i < 3; i++) {
        d->in[i] = d->out[i] = i == 1 ? positions : 1;
        d->kernel[i] = d->strides[i] = d->dilation[i] = 1;
        d->pad_begin[i] = d->pad_end[i] = 0;
    }
}

// Maximum bytes of a chunk. Each chunk reads all weights again, so larger weights need larger
// chunks.
static int64_t chunk_bytes(const struct msc_cpu_gemm *k) {
    int64_t weights = msc_array_n_elements(k->weight) * (int64_t)sizeof(float);
    return weights > MSC_CPU_CACHE_BYTES ? weights : MSC_CPU_CACHE_BYTES;
}

static void divide_batch(struct msc_cpu_gemm_chunks *c, const struct msc_cpu_gemm *k,
                         bool is_pointwise) {
    struct msc_gemm_desc *d = &c->desc;
    bool is_conv = d->kind != MSC_GEMM_LINEAR;
    int64_t in = d->in_channels, out = d->out_channels;
    if (is_conv && is_pointwise) {
        cpu_gemm_flatten(d);
    } else if (is_conv) {
        in *= msc_dims_product(d->n_spatial, d->in);
        out *= msc_dims_product(d->n_spatial, d->out);
    }
    int64_t *axis = is_conv && is_pointwise ? &d->in[1] : &d->batch;
    int64_t most = chunk_bytes(k) / ((in + out) * (int64_t)sizeof(float));
    bool is_whole = k->backend->base.options.kernel_threads > 1;
    int64_t chunk = is_whole ? *axis : choose_divisor(*axis, most > 0 ? most : 1);
    c->n = *axis / chunk;
    c->bands = 1;
    *axis = chunk;
    d->out[1] = is_conv && is_pointwise ? chunk : d->out[1];
    c->images = d->batch;
    c->in = chunk * in;
    c->out = chunk * out;
}

// Describes chunks that are copied with their padding. The routine then gets a larger input and
// adds no padding itself.
static void pad_input(struct msc_cpu_gemm_chunks *c) {
    struct msc_gemm_desc *d = &c->desc;
    c->is_padded = true;
    c->in = d->batch * d->in_channels;
    for (int i = 0; i < d->n_spatial; i++) {
        d->in[i] = (d->out[i] - 1) * d->strides[i] + (d->kernel[i] - 1) * d->dilation[i] + 1;
        d->pad_begin[i] = d->pad_end[i] = 0;
        c->in *= d->in[i];
    }
}

// Divides an image that is too large for the cache into bands along its first axis.
static void divide_image(struct msc_cpu_gemm_chunks *c, const struct msc_cpu_gemm *k) {
    struct msc_gemm_desc *d = &c->desc;
    int64_t row = d->out_channels * msc_dims_product(d->n_spatial - 1, d->out + 1) +
                  d->in_channels * msc_dims_product(d->n_spatial - 1, d->in + 1) * d->strides[0];
    int64_t most = chunk_bytes(k) / (row * (int64_t)sizeof(float));
    int64_t rows = choose_divisor(d->out[0], most > 0 ? most : 1);
    c->bands = d->out[0] / rows;
    c->n *= c->bands;
    c->out /= c->bands;
    d->out[0] = rows;
    pad_input(c);
}

// Chooses the rows per chunk so that the sums of a chunk stay in the cache until they are read.
// More rows per chunk would bring no gain.
static void divide_depthwise(struct msc_cpu_gemm_chunks *c) {
    const int64_t most = MSC_CPU_CACHE_BYTES / 4 / (int64_t)sizeof(int32_t);
    const struct msc_gemm_desc *d = &c->desc;
    bool has_rows = d->n_spatial == 2;
    int64_t row = d->out_channels * d->out[d->n_spatial - 1];
    int64_t n_rows = has_rows ? d->out[0] : 1;
    int64_t rows = choose_divisor(n_rows, most / row > 0 ? most / row : 1);
    c->bands = n_rows / rows;
    c->n = d->batch * c->bands;
    c->out = rows * row;
    c->images = 1;
}

static void cpu_gemm_divide(struct msc_cpu_gemm *k, const struct msc_gemm_spec *spec) {
    bool is_window = spec->desc.kind == MSC_GEMM_CONV && !spec->is_pointwise;
    for (int unit = 0; unit < MSC_CPU_GEMM_UNIT_COUNT; unit++) {
        struct msc_cpu_gemm_chunks *c = &k->chunks[unit];
        c->desc = spec->desc;
        c->desc.is_int8 = unit >= MSC_CPU_GEMM_INT8;
        if (unit == MSC_CPU_GEMM_DEPTHWISE) {
            if (k->is_depthwise) {
                divide_depthwise(c);
            }
            continue;
        }
        divide_batch(c, k, spec->is_pointwise);
        if (unit == MSC_CPU_GEMM_WINOGRAD) {
            continue;
        }
        // Dividing an image into bands requires a copy, which does not pay for a float result
        // without an epilogue.
        bool gains =
            unit != MSC_CPU_GEMM_FLOAT_DEPTHWISE && (unit != MSC_CPU_GEMM_FLOAT || k->epilogues[0]);
        bool is_large =
            c->images == 1 && (c->in + c->out) * (int64_t)sizeof(float) > 2 * chunk_bytes(k);
        if (is_window && is_large && gains && k->backend->base.options.kernel_threads == 1) {
            divide_image(c, k);
        } else if (is_window &&
                   (unit == MSC_CPU_GEMM_INT8_PADDED || unit == MSC_CPU_GEMM_INDIRECT)) {
            pad_input(c);
        }
    }
}

// ---- Preparing --------------------------------------------------------------------------------

static enum msc_status create_epilogues(struct msc_cpu_gemm *k, struct msc_gemm_desc *float_desc,
                                        const struct msc_plan *plan, const struct msc_step *step,
                                        int channel_axis) {
    static const enum msc_ewise_start starts[] = {MSC_EWISE_FLOAT, MSC_EWISE_SUM_F32,
                                                  MSC_EWISE_SUM_I32};
    struct msc_ewise_options options = {.channel_axis = channel_axis, .bias = k->bias.floats};
    options.first = msc_gemm_limits(&options.low, &options.high, step);
    float_desc->has_clip =
        options.first == 2 && isfinite(options.low) && options.low <= options.high;
    float_desc->low = options.low;
    float_desc->high = options.high;
    for (int i = 0; i < 3; i++) {
        struct msc_ewise_options o = options;
        o.start = starts[i];
        o.first = i == 0 && !float_desc->has_clip ? 1 : options.first;
        MSC_TRY(msc_cpu_ewise_create(&k->epilogues[i], plan, step, &o));
    }
    return MSC_OK;
}

static enum msc_status cpu_gemm_init(struct msc_cpu_gemm *k, const struct msc_plan *plan,
                                     const struct msc_step *step, const struct msc_gemm_spec *spec,
                                     const struct msc_cpu_gemm_source *source) {
    struct msc_gemm_desc float_desc = {.bias = NULL};
    k->name = step->joints[0].joint->name;
    k->input = source->input;
    k->weight = source->weight;
    k->weight_slot = source->weight_slot;
    k->bias_slot = source->bias_slot;
    k->bias_array = source->bias;
    k->bias = msc_cpu_gemm_bias_of(source->bias ? msc_array_data(source->bias) : NULL,
                                   source->integer_bias, spec->desc.out_channels);
    k->gives_sums = source->gives_sums;
    k->out_axis = spec->out_axis;
    k->channels = spec->desc.out_channels;
    k->desc = spec->desc;
    k->is_depthwise = msc_cpu_gemm_is_depthwise(&spec->desc);
    k->weighs = msc_cpu_gemm_weighs(spec, k->backend);
    if (!k->gives_sums) {
        MSC_TRY(create_epilogues(k, &float_desc, plan, step, spec->channel_axis));
    }
    cpu_gemm_divide(k, spec);
    k->indirect = msc_cpu_gemm_choose_product(k, MSC_CPU_GEMM_INDIRECT);
    k->winograd = msc_cpu_gemm_choose_winograd(k);
    if (!k->gives_sums) {
        k->float_indirect = msc_cpu_gemm_choose_product(k, MSC_CPU_GEMM_FLOAT_INDIRECT);
    }
    MSC_TRY(msc_cpu_gemm_create_ways(k));
    struct msc_gemm_desc *d = &k->chunks[MSC_CPU_GEMM_FLOAT].desc;
    d->bias = k->bias.floats;
    d->has_clip = float_desc.has_clip;
    d->low = float_desc.low;
    d->high = float_desc.high;
    return msc_cpu_gemm_create_routines(k);
}

enum msc_status msc_cpu_gemm_create(struct msc_cpu_gemm **out, struct msc_cpu_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step,
                                    const struct msc_gemm_spec *spec,
                                    const struct msc_cpu_gemm_source *source) {
    struct msc_cpu_gemm *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->backend = b;
    enum msc_status status = cpu_gemm_init(k, plan, step, spec, source);
    if (status != MSC_OK) {
        msc_cpu_gemm_release(k);
        return status;
    }
    *out = k;
    return MSC_OK;
}

enum msc_status msc_cpu_gemm_prepare(void **out, struct msc_cpu_backend *b,
                                     const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *anchor = &step->joints[0];
    const struct msc_graph *g = plan->graph;
    struct msc_gemm_spec spec;
    struct msc_cpu_gemm *k = NULL;
    if (!msc_gemm_describe(&spec, g, anchor->joint)) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: the conv/GEMM kernels do not support it",
                        anchor->joint->name);
    }
    struct msc_cpu_gemm_source source = {
        .input = anchor->operands[0].index,
        .weight = msc_graph_tensor(g, anchor->operands[1].index)->data,
        .weight_slot = msc_step_weight_slot(step, 1),
        .bias_slot = msc_step_weight_slot(step, 2),
    };
    if (anchor->n_operands > 2 && anchor->operands[2].kind == MSC_OPERAND_WEIGHT) {
        source.bias = msc_graph_tensor(g, anchor->operands[2].index)->data;
    }
    MSC_TRY(msc_cpu_gemm_create(&k, b, plan, step, &spec, &source));
    *out = k;
    return MSC_OK;
}

void msc_cpu_gemm_release(void *kernel) {
    struct msc_cpu_gemm *k = kernel;
    if (k) {
        msc_cpu_gemm_destroy_routines(k);
        msc_free(k->ways);
        for (int i = 0; i < 3; i++) {
            msc_cpu_ewise_destroy(k->epilogues[i]);
        }
        msc_free(k);
    }
}

static bool cpu_gemm_reads_channels(const void *kernel, int32_t input, const struct msc_quant *q) {
    const struct msc_cpu_gemm *k = kernel;
    return input == k->input && msc_gemm_reads_channels(&k->desc, q);
}

const struct msc_cpu_family msc_cpu_conv_gemm = {
    .prepare = msc_cpu_gemm_prepare,
    .release = msc_cpu_gemm_release,
    .run = msc_cpu_gemm_run,
    .reads_integers = true,
    .reads_channels = cpu_gemm_reads_channels,
    .quantizes = true,
    .weights = msc_cpu_gemm_weights,
    .release_weights = msc_cpu_gemm_release_weights,
    .variants = msc_cpu_gemm_variants,
    .choose = msc_cpu_gemm_choose,
};
