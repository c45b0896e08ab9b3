// Convolutions and linear layers: activations times a constant weight, in float32 or over whole
// numbers, which are floats too: exact while every sum stays below 2^24. Where weights are too
// large for that, the input is cut into digits whose products are added as int32, as the cpu
// backend does it (kernels/cpu/weighted.h); the whole numbers are the same.
#include "kernels/cpu/weighted.h"
#include "base/alloc.h"
#include "kernels/vulkan/vk_gemm.h"

#include <math.h>
#include <string.h>

struct kernel {
    const char *name;
    int32_t input;
    struct msc_weighted_spec spec;
    struct msc_vk_gemm_desc desc; // its window is spec.desc
    const struct msc_array *weight;
    const float *bias; // may be NULL
    struct msc_vk_gemm *gemm;
    bool has_limits;
    float low, high;
    struct msc_vk_program *ends[2]; // behind the anchor, behind the anchor and its limits
};

struct pack {
    struct msc_vk_block *weight;
    struct msc_vk_block *tail; // scales, then biases, of all output channels
    int64_t largest;           // over channels, of sum |q - z|; 0 for floats
};

struct variant {
    const struct kernel *kernel;
    struct msc_quant quant; // bits is 0 for the float weights
    float *scales;
    int32_t *zero_points;
    bool is_integer;
    struct pack packs[2]; // floats, whole numbers; made when first needed
};

// ---- Preparing --------------------------------------------------------------------------------

static void release(void *memory, struct msc_vk_backend *b) {
    struct kernel *k = memory;
    if (k) {
        msc_vk_gemm_destroy(k->gemm, b);
        msc_vk_program_destroy(k->ends[0], b);
        msc_vk_program_destroy(k->ends[1], b);
        msc_free(k);
    }
}

// A limit right behind the anchor is left to the shader when nobody else reads the anchor's result.
// Returns the first joint that is not.
static int32_t fuse_limit(struct kernel *k, const struct msc_step *step) {
    if (step->n_joints < 2) {
        return 1;
    }
    const struct msc_joint *next = step->joints[1].joint;
    k->low = 0.0f;
    k->high = INFINITY;
    if (next->op == MSC_OP_CLIP) {
        k->low = -INFINITY;
        msc_joint_attr_float(next, "min", &k->low);
        msc_joint_attr_float(next, "max", &k->high);
    } else if (next->op != MSC_OP_RELU) {
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
    k->has_limits = true;
    return 2;
}

static enum msc_status init(struct kernel *k, struct msc_vk_backend *b, const struct msc_plan *plan,
                            const struct msc_step *step) {
    const struct msc_step_joint *anchor = &step->joints[0];
    k->name = anchor->joint->name;
    k->input = anchor->operands[0].index;
    k->weight = msc_graph_tensor(plan->graph, anchor->operands[1].index)->data;
    if (anchor->n_operands > 2 && anchor->operands[2].kind == MSC_OPERAND_WEIGHT) {
        k->bias = msc_array_data(msc_graph_tensor(plan->graph, anchor->operands[2].index)->data);
    }
    msc_vk_gemm_describe(&k->desc, &k->spec.desc);
    MSC_TRY(msc_vk_gemm_create(&k->gemm, b, &k->desc));
    struct msc_ewise_options options = {
        .start = MSC_EWISE_FLOAT, .first = 1, .channel_axis = k->spec.channel_axis};
    MSC_TRY(msc_vk_program_create(&k->ends[0], b, plan, step, &options));
    options.first = fuse_limit(k, step);
    return msc_vk_program_create(&k->ends[1], b, plan, step, &options);
}

typedef bool (*describe_fn)(struct msc_weighted_spec *out, const struct msc_graph *g,
                            const struct msc_joint *joint);

static enum msc_status create(void **out, struct msc_vk_backend *b, const struct msc_plan *plan,
                              const struct msc_step *step, describe_fn describe) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    if (!k) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", step->joints[0].joint->name);
    }
    enum msc_status status =
        describe(&k->spec, plan->graph, step->joints[0].joint)
            ? init(k, b, plan, step)
            : MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: not for shaders", step->joints[0].joint->name);
    if (status != MSC_OK) {
        release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

static enum msc_status prepare_conv(void **out, struct msc_vk_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step) {
    return create(out, b, plan, step, msc_cpu_describe_conv);
}

static enum msc_status prepare_linear(void **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    return create(out, b, plan, step, msc_cpu_describe_linear);
}

// ---- Variants ---------------------------------------------------------------------------------

static void release_weights(void *weights, struct msc_vk_backend *b) {
    struct variant *v = weights;
    if (v) {
        for (int i = 0; i < 2; i++) {
            msc_vk_free(b->vk, v->packs[i].weight);
            msc_vk_free(b->vk, v->packs[i].tail);
        }
        msc_free(v->scales);
        msc_free(v->zero_points);
        msc_free(v);
    }
}

static enum msc_status set_edit(struct variant *v, const struct kernel *k,
                                const struct msc_quant *edit) {
    size_t n = (size_t)edit->n;
    v->scales = msc_alloc(n * sizeof(float));
    v->zero_points = msc_alloc(n * sizeof(int32_t));
    if (!v->scales || !v->zero_points) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    memcpy(v->scales, edit->scales, n * sizeof(float));
    memcpy(v->zero_points, edit->zero_points, n * sizeof(int32_t));
    v->quant = *edit;
    v->quant.scales = v->scales;
    v->quant.zero_points = v->zero_points;
    v->is_integer = msc_quant_is_integer(edit) && (edit->n == 1 || edit->axis == k->spec.out_axis);
    return MSC_OK;
}

static int64_t n_taps(const struct kernel *k) {
    const struct msc_dense_desc *d = &k->spec.desc;
    int64_t n = 1;
    for (int i = 0; d->kind != MSC_DENSE_LINEAR && i < d->n_spatial; i++) {
        n *= d->kernel[i];
    }
    return n;
}

static int64_t pack_elements(const struct kernel *k) {
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    return (w.is_depthwise ? 1 : k->spec.desc.groups) * n_taps(k) * w.channels * w.row;
}

static enum msc_status weights(void *kernel, struct msc_vk_backend *b, const struct msc_quant *edit,
                               void **out, size_t *n_bytes) {
    const struct kernel *k = kernel;
    struct variant *v = msc_alloc_zero(1, sizeof(*v));
    if (!v) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    v->kernel = k;
    enum msc_status status = edit ? set_edit(v, k, edit) : MSC_OK;
    if (status != MSC_OK) {
        release_weights(v, b);
        return status;
    }
    *out = v;
    *n_bytes = (size_t)pack_elements(k) * sizeof(float);
    return MSC_OK;
}

// ---- Packing ----------------------------------------------------------------------------------

// Where an element of the weight as the model has it goes in the pack, and whose channel it is.
struct place {
    int64_t to, channel;
};

static struct place place_of(const struct kernel *k, const struct msc_vk_gemm_weight *w,
                             int64_t taps, int64_t i) {
    const struct msc_dense_desc *d = &k->spec.desc;
    int64_t in = d->in_channels / d->groups, out = d->out_channels / d->groups;
    int64_t tap = i % taps, rest = i / taps;
    int64_t group, c, n;                       // input and output channel within the group
    if (d->kind == MSC_DENSE_CONV_TRANSPOSE) { // [all in][out]
        n = rest % out;
        group = rest / out / in;
        c = rest / out % in;
    } else if (d->kind == MSC_DENSE_LINEAR && d->is_input_first) { // [in][out]
        n = rest % out;
        c = rest / out;
        group = 0;
    } else { // [all out][in]
        c = rest % in;
        group = rest / in / out;
        n = rest / in % out;
    }
    struct place p = {.channel = group * out + n};
    p.to = w->is_depthwise ? tap * w->row + p.channel
                           : ((group * taps + tap) * w->channels + c) * w->row + n;
    return p;
}

// The weight as whole numbers q - z, and the largest sum of their sizes.
static enum msc_status pack_whole(float packed[], int64_t *largest, const struct variant *v) {
    const struct kernel *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array;
    MSC_TRY(msc_quantize_array(&array, k->weight, &v->quant));
    const int32_t *q = msc_array_data(array);
    int64_t *sums = msc_alloc_zero((size_t)k->spec.desc.out_channels, sizeof(*sums));
    if (!sums) {
        msc_array_release(array);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int64_t i = 0; i < n; i++) {
        struct place p = place_of(k, &w, taps, i);
        int32_t number = q[i] - v->zero_points[p.channel % v->quant.n];
        packed[p.to] = (float)number;
        sums[p.channel] += number < 0 ? -number : number;
        *largest = sums[p.channel] > *largest ? sums[p.channel] : *largest;
    }
    msc_free(sums);
    msc_array_release(array);
    return MSC_OK;
}

static enum msc_status pack_floats(float packed[], const struct variant *v) {
    const struct kernel *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array = NULL;
    const float *from = msc_array_data(k->weight);
    if (v->quant.bits != 0) {
        MSC_TRY(msc_fake_quantize_array(&array, k->weight, &v->quant));
        from = msc_array_data(array);
    }
    for (int64_t i = 0; i < n; i++) {
        packed[place_of(k, &w, taps, i).to] = from[i];
    }
    msc_array_release(array);
    return MSC_OK;
}

static enum msc_status upload_tail(struct pack *p, struct msc_vk_backend *b,
                                   const struct variant *v) {
    const struct kernel *k = v->kernel;
    int64_t n = k->spec.desc.out_channels;
    float *tail = msc_alloc_zero((size_t)(2 * n), sizeof(*tail));
    if (!tail) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int64_t c = 0; c < n; c++) {
        tail[c] = v->quant.bits != 0 ? v->scales[c % v->quant.n] : 1.0f;
        tail[n + c] = k->bias ? k->bias[c] : 0.0f;
    }
    enum msc_status status =
        msc_vk_upload_new(b->vk, &p->tail, tail, (uint64_t)(2 * n) * sizeof(*tail));
    msc_free(tail);
    return status;
}

static enum msc_status get_pack(const struct pack **out, struct msc_vk_backend *b,
                                struct variant *v, bool is_whole) {
    struct pack *p = &v->packs[is_whole];
    *out = p;
    if (p->tail) {
        return MSC_OK;
    }
    int64_t n = pack_elements(v->kernel);
    enum msc_status status;
    float *packed = msc_alloc_zero((size_t)n, sizeof(*packed));
    if (!packed) {
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", v->kernel->name);
    }
    msc_vk_free(b->vk, p->weight);
    *p = (struct pack){.largest = 0};
    MSC_TRY_OUT(is_whole ? pack_whole(packed, &p->largest, v) : pack_floats(packed, v));
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &p->weight, packed, (uint64_t)n * sizeof(*packed)));
    status = upload_tail(p, b, v);
out:
    msc_free(packed);
    return status;
}

// ---- Running ----------------------------------------------------------------------------------

// Over whole numbers in several digits: sums as int32.
static enum msc_status run_digits(const struct kernel *k, struct msc_vk_backend *b,
                                  const struct msc_call *call, const struct pack *pack,
                                  const struct msc_cpu_digits *digits,
                                  const struct msc_vk_block *floats) {
    const struct msc_view *in = &call->inputs[k->input];
    const struct msc_vk_block *y = msc_vk_block_of(&call->outputs[0]);
    uint64_t n = (uint64_t)msc_view_n_elements(&call->outputs[0]);
    struct msc_vk_block *sums;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_vk_take(&sums, b, n * sizeof(int32_t)));
    for (int i = 0; i < digits->n; i++) {
        MSC_TRY_OUT(msc_vk_expand(b, in, floats, digits->shift * i, msc_cpu_digit_mask(digits, i)));
        struct msc_vk_gemm_call gemm = {.x = floats, .w = pack->weight, .y = y};
        MSC_TRY_OUT(msc_vk_gemm_run(k->gemm, b, &gemm));
        MSC_TRY_OUT(msc_vk_add_digit(b, y, sums, n, digits->shift * i, i == 0));
    }
    struct msc_vk_finish finish = {.tail = pack->tail,
                                   .channels = (uint32_t)k->spec.desc.out_channels,
                                   .scale = in->quant->scales[0],
                                   .has_bias = k->bias != NULL};
    MSC_TRY_OUT(msc_vk_finish_sums(b, y, sums, n, &finish));
    status = msc_vk_program_run(k->ends[0], b, call);
out:
    msc_vk_free(b->vk, sums);
    return status;
}

// In one pass, over floats or small enough whole numbers.
static enum msc_status run_once(const struct kernel *k, struct msc_vk_backend *b,
                                const struct msc_call *call, const struct pack *pack,
                                const struct msc_vk_block *x, bool is_whole) {
    struct msc_vk_gemm_call gemm = {.x = x,
                                    .w = pack->weight,
                                    .y = msc_vk_block_of(&call->outputs[0]),
                                    .tail = pack->tail,
                                    .has_scales = is_whole,
                                    .has_bias = k->bias != NULL,
                                    .has_limits = k->has_limits,
                                    .low = k->low,
                                    .high = k->high};
    if (is_whole) {
        gemm.x_scale = call->inputs[k->input].quant->scales[0];
    }
    MSC_TRY(msc_vk_gemm_run(k->gemm, b, &gemm));
    return msc_vk_program_run(k->ends[1], b, call);
}

static enum msc_status run_integers(const struct kernel *k, struct msc_vk_backend *b,
                                    const struct msc_call *call) {
    const struct msc_view *in = &call->inputs[k->input];
    struct variant *v = (struct variant *)call->weights;
    struct msc_cpu_digits digits = {0, 0, 0};
    const struct pack *pack;
    struct msc_vk_block *floats;
    enum msc_status status;
    if (v->is_integer) {
        int32_t largest = msc_cpu_largest(in->quant);
        MSC_TRY(get_pack(&pack, b, v, true));
        digits = msc_cpu_cut(largest, pack->largest);
        // Sums that may not fit into int32 are computed in float32.
        digits.n = largest * pack->largest < ((int64_t)1 << 31) ? digits.n : 0;
    }
    MSC_TRY(msc_vk_take(&floats, b, (uint64_t)msc_view_n_elements(in) * sizeof(float)));
    if (digits.n > 1) {
        status = run_digits(k, b, call, pack, &digits, floats);
        goto out;
    }
    if (digits.n == 1) {
        MSC_TRY_OUT(msc_vk_expand(b, in, floats, 0, -1));
    } else {
        MSC_TRY_OUT(get_pack(&pack, b, v, false));
        MSC_TRY_OUT(msc_vk_dequantize(b, in, floats));
    }
    status = run_once(k, b, call, pack, floats, digits.n == 1);
out:
    msc_vk_free(b->vk, floats);
    return status;
}

static enum msc_status run(void *kernel, struct msc_vk_backend *b, const struct msc_call *call) {
    const struct kernel *k = kernel;
    const struct pack *pack;
    if (call->inputs[k->input].quant) {
        return run_integers(k, b, call);
    }
    MSC_TRY(get_pack(&pack, b, (struct variant *)call->weights, false));
    return run_once(k, b, call, pack, msc_vk_block_of(&call->inputs[k->input]), false);
}

const struct msc_vk_family msc_vk_conv = {.name = "convolution",
                                          .prepare = prepare_conv,
                                          .release = release,
                                          .run = run,
                                          .weights = weights,
                                          .release_weights = release_weights};

const struct msc_vk_family msc_vk_linear = {.name = "linear",
                                            .prepare = prepare_linear,
                                            .release = release,
                                            .run = run,
                                            .weights = weights,
                                            .release_weights = release_weights};
