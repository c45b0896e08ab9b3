// Convolutions and linear layers: activations times a constant weight. A call goes one of these ways:
//
//     float   float32 throughout, also under wide or float edits
//     value   the same, the input being stored bytes
//     whole   over whole numbers that are floats: exact while every sum stays below 2^24
//     digits  where weights are too large for that: the input in digits whose products are added as
//             int32, as the cpu backend does it (kernels/cpu/weighted.h)
//     int     over bytes as such, sums as int32: where a device is fast at it, and instead of digits
//
// The last three give the same whole numbers. Calls that go the same way share dispatches.
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

// What a weight is packed as.
enum form {
    AS_FLOATS,
    AS_WHOLE, // q - z as floats
    AS_BYTES, // q - z as bytes
    N_FORMS
};

struct pack {
    struct msc_vk_block *weight;
    struct msc_vk_block *tail; // of all output channels: scales, biases, for bytes their sums
    int64_t largest;           // over channels, of sum |q - z|; 0 for floats
};

struct variant {
    const struct kernel *kernel;
    struct msc_quant quant; // bits is 0 for the float weights
    float *scales;
    int32_t *zero_points;
    bool is_integer, fits_bytes;
    struct pack packs[N_FORMS]; // made when first needed
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
    msc_vk_gemm_set_limits(k->gemm, k->low, k->high);
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
        for (int i = 0; i < N_FORMS; i++) {
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
    v->fits_bytes = v->is_integer;
    for (int32_t i = 0; i < edit->n; i++) {
        v->fits_bytes = v->fits_bytes && edit->low - edit->zero_points[i] >= INT8_MIN &&
                        edit->high - edit->zero_points[i] <= INT8_MAX;
    }
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

// The weight as whole numbers q - z, as floats or bytes; their sums over each channel, and the
// largest sum of their sizes.
static enum msc_status pack_whole(void *packed, int32_t sums[], int64_t *largest,
                                  const struct variant *v, bool as_bytes) {
    const struct kernel *k = v->kernel;
    struct msc_vk_gemm_weight w = msc_vk_gemm_weight_shape(&k->desc);
    int64_t taps = n_taps(k), n = msc_array_n_elements(k->weight);
    struct msc_array *array;
    MSC_TRY(msc_quantize_array(&array, k->weight, &v->quant));
    const int32_t *q = msc_array_data(array);
    int64_t *sizes = msc_alloc_zero((size_t)k->spec.desc.out_channels, sizeof(*sizes));
    if (!sizes) {
        msc_array_release(array);
        return MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    for (int64_t i = 0; i < n; i++) {
        struct place p = place_of(k, &w, taps, i);
        int32_t number = q[i] - v->zero_points[p.channel % v->quant.n];
        if (as_bytes) {
            // Row r, column c: byte r % 4 of word c of row r / 4.
            int64_t row = p.to / w.row, col = p.to % w.row;
            ((int8_t *)packed)[(row / 4 * w.row + col) * 4 + row % 4] = (int8_t)number;
        } else {
            ((float *)packed)[p.to] = (float)number;
        }
        sums[p.channel] += number;
        sizes[p.channel] += number < 0 ? -number : number;
        *largest = sizes[p.channel] > *largest ? sizes[p.channel] : *largest;
    }
    msc_free(sizes);
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

// [3][channels]; the last row, of sums, is there already.
static enum msc_status upload_tail(struct pack *p, struct msc_vk_backend *b,
                                   const struct variant *v, float *tail) {
    const struct kernel *k = v->kernel;
    int64_t n = k->spec.desc.out_channels;
    for (int64_t c = 0; c < n; c++) {
        tail[c] = v->quant.bits != 0 ? v->scales[c % v->quant.n] : 1.0f;
        tail[n + c] = k->bias ? k->bias[c] : 0.0f;
    }
    return msc_vk_upload_new(b->vk, &p->tail, tail, (uint64_t)(3 * n) * sizeof(*tail));
}

static enum msc_status get_pack(const struct pack **out, struct msc_vk_backend *b,
                                struct variant *v, enum form form) {
    struct pack *p = &v->packs[form];
    *out = p;
    if (p->tail) {
        return MSC_OK;
    }
    size_t n_bytes = (size_t)pack_elements(v->kernel) * (form == AS_BYTES ? 1 : sizeof(float));
    size_t channels = (size_t)v->kernel->spec.desc.out_channels;
    enum msc_status status = MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", v->kernel->name);
    void *packed = msc_alloc_zero(n_bytes, 1);
    float *tail = msc_alloc_zero(3 * channels, sizeof(*tail));
    if (!packed || !tail) {
        goto out;
    }
    msc_vk_free(b->vk, p->weight);
    *p = (struct pack){.largest = 0};
    MSC_TRY_OUT(form == AS_FLOATS ? pack_floats(packed, v)
                                  : pack_whole(packed, (int32_t *)(void *)(tail + 2 * channels),
                                               &p->largest, v, form == AS_BYTES));
    MSC_TRY_OUT(msc_vk_upload_new(b->vk, &p->weight, packed, n_bytes));
    status = upload_tail(p, b, v, tail);
out:
    msc_free(packed);
    msc_free(tail);
    return status;
}

// ---- Ways -------------------------------------------------------------------------------------

enum way {
    BY_FLOAT,
    BY_VALUE,
    BY_WHOLE,
    BY_DIGITS,
    BY_INT,
};

// How one call goes; calls with equal ways and digits go together.
struct job {
    enum way way;
    struct msc_cpu_digits digits;
    const struct pack *pack;
};

static bool may_use_bytes(const struct kernel *k, const struct msc_vk_backend *b,
                          const struct variant *v, const struct msc_quant *in) {
    int32_t zero = in->zero_points[0];
    return b->base.options.allow_int8 && v->fits_bytes && zero >= in->low && zero <= in->high &&
           msc_vk_gemm_has(k->gemm, b, MSC_VK_UNIT_INT);
}

// Integers times integers. MSC_OK with BY_VALUE where sums may not fit into int32.
static enum msc_status choose_whole(struct job *job, const struct kernel *k,
                                    struct msc_vk_backend *b, struct variant *v,
                                    const struct msc_quant *in) {
    bool may_be_int = may_use_bytes(k, b, v, in);
    enum form first = may_be_int && b->vk->prefers_int ? AS_BYTES : AS_WHOLE;
    int32_t largest = msc_cpu_largest(in);
    MSC_TRY(get_pack(&job->pack, b, v, first));
    if (largest * job->pack->largest >= ((int64_t)1 << 31)) {
        return MSC_OK;
    }
    job->digits = msc_cpu_cut(largest, job->pack->largest);
    bool is_one = job->digits.n == 1;
    if (first == AS_BYTES || (may_be_int && !is_one)) {
        job->way = BY_INT;
        job->digits.n = 1;
        return get_pack(&job->pack, b, v, AS_BYTES);
    }
    if (job->digits.n > 0) {
        job->way = is_one ? BY_WHOLE : BY_DIGITS;
    }
    return MSC_OK;
}

static enum msc_status choose_way(struct job *job, const struct kernel *k,
                                  struct msc_vk_backend *b, const struct msc_call *call) {
    const struct msc_view *in = &call->inputs[k->input];
    struct variant *v = (struct variant *)call->weights;
    *job = (struct job){.way = in->quant ? BY_VALUE : BY_FLOAT, .digits = {1, 0, 0}};
    if (in->quant && v->is_integer) {
        MSC_TRY(choose_whole(job, k, b, v, in->quant));
    }
    return job->way <= BY_VALUE ? get_pack(&job->pack, b, v, AS_FLOATS) : MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

// Calls that go the same way.
struct run {
    const struct kernel *k;
    struct msc_vk_backend *b;
    struct job job; // but for the pack
    int n;
    struct msc_call calls[MSC_VK_MAX_CALLS];
    const struct pack *packs[MSC_VK_MAX_CALLS];
    struct msc_vk_block *floats[MSC_VK_MAX_CALLS]; // the input of shaders that do not read bytes
    struct msc_vk_block *made[MSC_VK_MAX_CALLS];   // results of calls that want only forms
    struct msc_vk_block *sums[MSC_VK_MAX_CALLS];
    const struct msc_vk_block *results[MSC_VK_MAX_CALLS]; // the output's blocks, or those made
};

static uint64_t n_outputs(const struct run *r) {
    return (uint64_t)msc_view_n_elements(&r->calls[0].outputs[0]);
}

// Bytes of the input as floats, for shaders that read nothing else.
static enum msc_status expand(struct run *r, const struct msc_vk_bytes bytes[]) {
    const struct msc_view *first = &r->calls[0].inputs[r->k->input];
    uint64_t n = (uint64_t)msc_view_n_elements(first);
    struct msc_vk_expanding items[MSC_VK_MAX_CALLS];
    if (!r->floats[0]) {
        MSC_TRY(msc_vk_take(r->floats, r->b, r->n, n * sizeof(float)));
    }
    for (int i = 0; i < r->n; i++) {
        const struct msc_view *in = &r->calls[i].inputs[r->k->input];
        items[i] = (struct msc_vk_expanding){msc_vk_block_of(in), r->floats[i], bytes[i]};
    }
    return msc_vk_expand(r->b, items, r->n, n);
}

static struct msc_vk_bytes bytes_of(const struct run *r, const struct msc_view *in, int digit) {
    const struct msc_cpu_digits *d = &r->job.digits;
    if (r->job.way == BY_VALUE) {
        return msc_vk_bytes_value(in);
    }
    return msc_vk_bytes_digit(in, d->shift * digit, msc_cpu_digit_mask(d, digit));
}

// One product; all there is but for digits. `ends` says whether its end is the output's.
static enum msc_status multiply(struct run *r, int digit, bool ends) {
    const struct kernel *k = r->k;
    struct msc_vk_gemm_call gemm[MSC_VK_MAX_CALLS];
    struct msc_vk_bytes bytes[MSC_VK_MAX_CALLS];
    enum msc_vk_unit unit = r->job.way == BY_INT     ? MSC_VK_UNIT_INT
                            : r->job.way == BY_FLOAT ? MSC_VK_UNIT_FLOATS
                                                     : MSC_VK_UNIT_BYTES;
    bool has_program = k->ends[1] != NULL;
    memset(bytes, 0, sizeof(bytes));
    for (int i = 0; i < r->n && unit != MSC_VK_UNIT_FLOATS; i++) {
        bytes[i] = bytes_of(r, &r->calls[i].inputs[k->input], digit);
    }
    bool expands = !msc_vk_gemm_has(k->gemm, r->b, unit);
    if (expands) {
        MSC_TRY(expand(r, bytes));
    }
    for (int i = 0; i < r->n; i++) {
        const struct msc_view *in = &r->calls[i].inputs[k->input];
        bool writes_forms = ends && !has_program;
        gemm[i] = (struct msc_vk_gemm_call){
            .x = expands ? r->floats[i] : msc_vk_block_of(in),
            .w = r->packs[i]->weight,
            .y = writes_forms ? msc_vk_block_of(&r->calls[i].outputs[0]) : r->results[i],
            .tail = r->packs[i]->tail,
            .has_scales = ends && r->job.way >= BY_WHOLE,
            .has_bias = ends && k->bias != NULL,
            .has_limits = ends && k->has_limits,
            .x_scale = in->quant ? in->quant->scales[0] : 1.0f,
            .bytes = bytes[i],
            .quantized = r->calls[i].quantized,
            .n_quantized = writes_forms ? r->calls[i].n_quantized : 0};
    }
    return msc_vk_gemm_run(k->gemm, r->b, expands ? MSC_VK_UNIT_FLOATS : unit, gemm, r->n);
}

// In several digits: sums as int32.
static enum msc_status run_digits(struct run *r) {
    const struct kernel *k = r->k;
    struct msc_vk_summing items[MSC_VK_MAX_CALLS];
    MSC_TRY(msc_vk_take(r->sums, r->b, r->n, n_outputs(r) * sizeof(int32_t)));
    for (int i = 0; i < r->n; i++) {
        items[i] = (struct msc_vk_summing){r->results[i], r->sums[i], r->packs[i]->tail,
                                           r->calls[i].inputs[k->input].quant->scales[0]};
    }
    for (int digit = 0; digit < r->job.digits.n; digit++) {
        MSC_TRY(multiply(r, digit, false));
        MSC_TRY(msc_vk_add_digits(r->b, items, r->n, n_outputs(r), r->job.digits.shift * digit,
                                  digit == 0));
    }
    MSC_TRY(msc_vk_finish_sums(r->b, items, r->n, n_outputs(r), k->spec.desc.out_channels,
                               k->bias != NULL));
    return k->ends[0] ? msc_vk_program_run(k->ends[0], r->b, r->calls, r->results, r->n)
                      : msc_vk_quantize_results(r->b, r->calls, r->results, r->n, n_outputs(r));
}

static enum msc_status run_together(struct run *r) {
    const struct kernel *k = r->k;
    bool is_direct = r->job.way != BY_DIGITS && !k->ends[1];
    for (int i = 0; i < r->n; i++) {
        r->results[i] = msc_vk_block_of(&r->calls[i].outputs[0]);
        if (!r->results[i] && !is_direct) {
            MSC_TRY(msc_vk_take(&r->made[i], r->b, 1, n_outputs(r) * sizeof(float)));
            r->results[i] = r->made[i];
        }
    }
    if (r->job.way == BY_DIGITS) {
        return run_digits(r);
    }
    MSC_TRY(multiply(r, 0, true));
    return msc_vk_program_run(k->ends[1], r->b, r->calls, r->results, r->n);
}

static enum msc_status run(void *kernel, struct msc_vk_backend *b, const struct msc_call calls[],
                           int n) {
    struct job jobs[MSC_VK_MAX_CALLS];
    bool is_done[MSC_VK_MAX_CALLS] = {false};
    for (int i = 0; i < n; i++) {
        MSC_TRY(choose_way(&jobs[i], kernel, b, &calls[i]));
    }
    for (int first = 0; first < n; first++) {
        if (is_done[first]) {
            continue;
        }
        struct run r = {.k = kernel, .b = b, .job = jobs[first]};
        for (int i = first; i < n; i++) {
            if (!is_done[i] && jobs[i].way == jobs[first].way &&
                jobs[i].digits.n == jobs[first].digits.n) {
                r.packs[r.n] = jobs[i].pack;
                r.calls[r.n++] = calls[i];
                is_done[i] = true;
            }
        }
        enum msc_status status = run_together(&r);
        msc_vk_give(r.floats, b, r.n);
        msc_vk_give(r.made, b, r.n);
        msc_vk_give(r.sums, b, r.n);
        MSC_TRY(status);
    }
    return MSC_OK;
}

const struct msc_vk_family msc_vk_conv = {.name = "convolution",
                                          .prepare = prepare_conv,
                                          .release = release,
                                          .run = run,
                                          .writes_forms = true,
                                          .weights = weights,
                                          .release_weights = release_weights};

const struct msc_vk_family msc_vk_linear = {.name = "linear",
                                            .prepare = prepare_linear,
                                            .release = release,
                                            .run = run,
                                            .writes_forms = true,
                                            .weights = weights,
                                            .release_weights = release_weights};
