// Convolutions and linear layers: activations times a constant weight. A call is computed in one of
// these ways:
//
//     float   float32 throughout; also under edits with float types or more than 8 bits
//     value   in float32, but the input is stored as bytes, which the shader dequantises
//     integer products of integers stored as floats: exact if every sum is below 2^24
//     int     products of bytes with int32 sums: used if the device is fast at them, or if sums are
//             too large for `integer`
//     digits  used if sums are too large for `integer` and there is no shader for `int`: the
//             input's integers are split into groups of bits, called digits. The product of each
//             digit is added as int32 (kernels/lowering/digits.h)
//
// The last three give the same integer sums; a bias that is rounded to the scale of the sums is
// added to the sums as integers (kernels/backend.h). All ways except `digits` take one dispatch,
// which also applies the bias and the clip bounds and writes the quantised variants. If the shader
// cannot read bytes, another dispatch first converts them to floats. Further joints of the step
// take one more dispatch. Calls computed in the same way share dispatches.
#include "kernels/vulkan/vk_conv_gemm.h"

#include "base/alloc.h"
#include "kernels/lowering/digits.h"

#include <string.h>

// ---- Preparing --------------------------------------------------------------------------------

static void vk_conv_gemm_release(void *memory, struct msc_vk_backend *b) {
    struct msc_vk_conv_gemm *k = memory;
    if (k) {
        msc_vk_gemm_destroy(k->gemm, b);
        msc_vk_program_destroy(k->epilogues[0], b);
        msc_vk_program_destroy(k->epilogues[1], b);
        msc_free(k);
    }
}

static enum msc_status vk_conv_gemm_init(struct msc_vk_conv_gemm *k, struct msc_vk_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_step_joint *anchor = &step->joints[0];
    k->name = anchor->joint->name;
    k->input = anchor->operands[0].index;
    k->weight = msc_graph_tensor(plan->graph, anchor->operands[1].index)->data;
    if (anchor->n_operands > 2 && anchor->operands[2].kind == MSC_OPERAND_WEIGHT) {
        k->bias = msc_graph_tensor(plan->graph, anchor->operands[2].index)->data;
    }
    k->weight_slot = msc_step_weight_slot(step, 1);
    k->bias_slot = msc_step_weight_slot(step, 2);
    msc_vk_gemm_describe(&k->desc, &k->spec.desc);
    MSC_TRY(msc_vk_gemm_create(&k->gemm, b, &k->desc));
    struct msc_ewise_options options = {
        .start = MSC_EWISE_FLOAT, .first = 1, .channel_axis = k->spec.channel_axis};
    MSC_TRY(msc_vk_program_create(&k->epilogues[0], b, plan, step, &options));
    float low, high;
    options.first = msc_gemm_limits(&low, &high, step);
    k->has_limits = options.first == 2;
    msc_vk_gemm_set_limits(k->gemm, low, high);
    return msc_vk_program_create(&k->epilogues[1], b, plan, step, &options);
}

static enum msc_status vk_conv_gemm_prepare(void **out, struct msc_vk_backend *b,
                                            const struct msc_plan *plan,
                                            const struct msc_step *step) {
    struct msc_vk_conv_gemm *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    enum msc_status status = msc_gemm_describe(&k->spec, plan->graph, step->joints[0].joint)
                                 ? vk_conv_gemm_init(k, b, plan, step)
                                 : MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it",
                                            step->joints[0].joint->name);
    if (status != MSC_OK) {
        vk_conv_gemm_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

// ---- Ways -------------------------------------------------------------------------------------

enum way {
    BY_FLOAT,
    BY_VALUE,
    BY_INTEGER,
    BY_INT,
    BY_DIGITS,
};

// How a call is computed. Calls run together if their jobs are equal except for `pack`.
struct job {
    enum way way;
    bool by_channel; // the input has a scale per channel; `way` is BY_VALUE or BY_INTEGER
    struct msc_digits digits;
    enum msc_vk_bias bias;
    const struct msc_vk_pack *pack;
};

// Chooses the way to multiply integers x = q - zero point by integers w. Keeps BY_VALUE if sums
// might overflow.
//
// Let L be the largest |x| and R the largest sum of |w| over a channel. The magnitude of every
// partial sum of products x * w is at most L * R, in any order of addition.
//     L * R < 2^24       sums fit float32: required by BY_INTEGER; for each digit, by BY_DIGITS
//     L * R < 2^31       sums fit int32: required by BY_INT and BY_DIGITS. Sums of q * w may wrap
//                        around until zero point * sum of w is subtracted
//     L * R + B < 2^31   sums also fit with an integer bias of magnitude up to B
//
// msc_digits_cut and msc_digits_sums_fit check these bounds, as in the cpu backend.
static enum msc_status choose_integer(struct job *job, struct msc_vk_backend *b,
                                      struct msc_vk_variant *v, const struct msc_quant *in) {
    // Bytes are padded with the zero point, so the zero point must be in the range of the bytes.
    bool is_byte = in->zero_points[0] >= in->low && in->zero_points[0] <= in->high;
    int32_t largest = msc_digits_largest(in);
    MSC_TRY(msc_vk_get_pack(&job->pack, b, v, is_byte ? v->integers : MSC_VK_AS_INTEGERS));
    int64_t rest = job->pack->largest;
    struct msc_digits digits = msc_digits_cut(largest, rest);
    if (digits.n == 0 || !msc_digits_sums_fit(largest, rest, 0)) {
        return MSC_OK;
    }
    if (job->pack == &v->packs[MSC_VK_AS_BYTES]) {
        job->way = BY_INT;
    } else {
        job->way = digits.n == 1 ? BY_INTEGER : BY_DIGITS;
        job->digits = digits;
    }
    if (msc_bias_joins_sums(&v->bias, &v->quant, in->scales[0]) &&
        msc_digits_sums_fit(largest, rest, v->bias.largest)) {
        job->bias = MSC_VK_INTEGER_BIAS;
    }
    return MSC_OK;
}

// Like choose_integer, for an input with a scale per channel: BY_INTEGER if the input need not be
// split into digits, otherwise BY_VALUE.
static enum msc_status choose_by_channel(struct job *job, struct msc_vk_backend *b,
                                         struct msc_vk_variant *v, const struct msc_quant *in) {
    MSC_TRY(msc_vk_get_pack(&job->pack, b, v, MSC_VK_AS_INTEGERS));
    bool is_one = msc_digits_cut(msc_digits_largest(in), job->pack->largest).n == 1;
    job->way = is_one ? BY_INTEGER : BY_VALUE;
    return MSC_OK;
}

static enum msc_status choose_way(struct job *job, const struct msc_vk_conv_gemm *k,
                                  struct msc_vk_backend *b, const struct msc_call *call) {
    const struct msc_view *in = &call->inputs[k->input];
    struct msc_vk_variant *v = (struct msc_vk_variant *)call->weights;
    *job = (struct job){.way = in->quant ? BY_VALUE : BY_FLOAT,
                        .digits = {1, 0, 0},
                        .bias = k->bias ? MSC_VK_FLOAT_BIAS : MSC_VK_NO_BIAS};
    job->by_channel = in->quant && msc_quant_is_by_channel(in->quant);
    if (job->by_channel && v->is_integer) {
        MSC_TRY(choose_by_channel(job, b, v, in->quant));
    } else if (in->quant && v->is_integer) {
        MSC_TRY(choose_integer(job, b, v, in->quant));
    }
    return job->way <= BY_VALUE ? msc_vk_get_pack(&job->pack, b, v, MSC_VK_AS_FLOATS) : MSC_OK;
}

static bool go_together(const struct job *a, const struct job *b) {
    return a->way == b->way && a->by_channel == b->by_channel && a->digits.n == b->digits.n &&
           a->bias == b->bias;
}

// ---- Running ----------------------------------------------------------------------------------

// The calls computed in the same way.
struct run {
    const struct msc_vk_conv_gemm *k;
    struct msc_vk_backend *b;
    struct job job; // of all calls; `pack` is not used
    int n;
    struct msc_call calls[MSC_VK_MAX_CALLS];
    const struct msc_vk_pack *packs[MSC_VK_MAX_CALLS];
    struct msc_vk_block *floats[MSC_VK_MAX_CALLS]; // the input as floats, for shaders that cannot
                                                   // read bytes
    struct msc_vk_block *made[MSC_VK_MAX_CALLS];   // results of calls whose output has no data
    struct msc_vk_block *sums[MSC_VK_MAX_CALLS];
    struct msc_vk_block *tails[MSC_VK_MAX_CALLS];         // rows of numbers per channel
                                                          // (msc_vk_pack.tail); only for BY_INTEGER
                                                          // with by_channel
    const struct msc_vk_block *results[MSC_VK_MAX_CALLS]; // blocks of the outputs, or `made`
};

static uint64_t n_outputs(const struct run *r) {
    return (uint64_t)msc_view_n_elements(&r->calls[0].outputs[0]);
}

// Converts the inputs from bytes to floats, for shaders that cannot read bytes.
static enum msc_status vk_conv_gemm_expand(struct run *r, const struct msc_vk_bytes bytes[]) {
    const struct msc_view *first = &r->calls[0].inputs[r->k->input];
    uint64_t n = (uint64_t)msc_view_n_elements(first);
    struct msc_vk_expanding items[MSC_VK_MAX_CALLS];
    if (!r->floats[0]) {
        MSC_TRY(msc_vk_take(r->floats, r->b, r->n, n * sizeof(float)));
    }
    for (int i = 0; r->job.by_channel && i < r->n; i++) {
        const struct msc_view *in = &r->calls[i].inputs[r->k->input];
        MSC_TRY(msc_vk_expand_channels(r->b, in, r->floats[i], r->job.way == BY_VALUE));
    }
    if (r->job.by_channel) {
        return MSC_OK;
    }
    for (int i = 0; i < r->n; i++) {
        const struct msc_view *in = &r->calls[i].inputs[r->k->input];
        items[i] = (struct msc_vk_expanding){msc_vk_block_of(in), r->floats[i], bytes[i]};
    }
    return msc_vk_expand(r->b, items, r->n, n);
}

static struct msc_vk_bytes bytes_of(const struct run *r, const struct msc_view *in, int digit) {
    const struct msc_digits *d = &r->job.digits;
    if (r->job.way == BY_VALUE) {
        return msc_vk_bytes_value(in);
    }
    return msc_vk_bytes_digit(in, d->shift * digit, msc_digits_mask(d, digit));
}

// Computes one product; only BY_DIGITS needs several. `ends`: the result of this product is the
// output.
static enum msc_status vk_conv_gemm_multiply(struct run *r, int digit, bool ends) {
    const struct msc_vk_conv_gemm *k = r->k;
    struct msc_vk_gemm_call gemm[MSC_VK_MAX_CALLS];
    struct msc_vk_bytes bytes[MSC_VK_MAX_CALLS];
    enum msc_vk_unit unit = r->job.way == BY_INT     ? MSC_VK_UNIT_INT
                            : r->job.way == BY_FLOAT ? MSC_VK_UNIT_FLOATS
                                                     : MSC_VK_UNIT_BYTES;
    bool has_program = k->epilogues[1] != NULL;
    memset(bytes, 0, sizeof(bytes));
    for (int i = 0; i < r->n && unit != MSC_VK_UNIT_FLOATS; i++) {
        bytes[i] = bytes_of(r, &r->calls[i].inputs[k->input], digit);
    }
    bool expands = r->job.by_channel || !msc_vk_gemm_has(k->gemm, r->b, unit);
    if (expands) {
        MSC_TRY(vk_conv_gemm_expand(r, bytes));
    }
    for (int i = 0; i < r->n; i++) {
        const struct msc_view *in = &r->calls[i].inputs[k->input];
        bool writes_quantized = ends && !has_program;
        gemm[i] = (struct msc_vk_gemm_call){
            .x = expands ? r->floats[i] : msc_vk_block_of(in),
            .w = r->packs[i]->weight,
            .y = writes_quantized ? msc_vk_block_of(&r->calls[i].outputs[0]) : r->results[i],
            .tail = r->tails[i] ? r->tails[i] : r->packs[i]->tail,
            .has_scales = ends && r->job.way >= BY_INTEGER,
            .has_limits = ends && k->has_limits,
            .bias = ends ? r->job.bias : MSC_VK_NO_BIAS,
            .x_scale = in->quant && !r->job.by_channel ? in->quant->scales[0] : 1.0f,
            .bytes = bytes[i],
            .quantized = r->calls[i].quantized,
            .n_quantized = writes_quantized ? r->calls[i].n_quantized : 0};
    }
    return msc_vk_gemm_run(k->gemm, r->b, expands ? MSC_VK_UNIT_FLOATS : unit, gemm, r->n);
}

// Computes the product digit by digit, with int32 sums.
static enum msc_status run_digits(struct run *r) {
    const struct msc_vk_conv_gemm *k = r->k;
    struct msc_vk_summing items[MSC_VK_MAX_CALLS];
    MSC_TRY(msc_vk_take(r->sums, r->b, r->n, n_outputs(r) * sizeof(int32_t)));
    for (int i = 0; i < r->n; i++) {
        items[i] = (struct msc_vk_summing){r->results[i], r->sums[i], r->packs[i]->tail,
                                           r->calls[i].inputs[k->input].quant->scales[0]};
    }
    for (int digit = 0; digit < r->job.digits.n; digit++) {
        MSC_TRY(vk_conv_gemm_multiply(r, digit, false));
        MSC_TRY(msc_vk_add_digits(r->b, items, r->n, n_outputs(r), r->job.digits.shift * digit,
                                  digit == 0));
    }
    MSC_TRY(msc_vk_finish_sums(r->b, items, r->n, n_outputs(r), k->spec.desc.out_channels,
                               r->job.bias));
    return k->epilogues[0]
               ? msc_vk_program_run(k->epilogues[0], r->b, r->calls, r->results, r->n)
               : msc_vk_quantize_results(r->b, r->calls, r->results, r->n, n_outputs(r));
}

static enum msc_status run_together(struct run *r) {
    const struct msc_vk_conv_gemm *k = r->k;
    bool is_direct = r->job.way != BY_DIGITS && !k->epilogues[1];
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
    for (int i = 0; r->job.by_channel && r->job.way == BY_INTEGER && i < r->n; i++) {
        MSC_TRY(msc_vk_tail_by_channel(&r->tails[i], r->b, r->calls[i].weights,
                                       r->calls[i].inputs[k->input].quant));
    }
    MSC_TRY(vk_conv_gemm_multiply(r, 0, true));
    return msc_vk_program_run(k->epilogues[1], r->b, r->calls, r->results, r->n);
}

static enum msc_status vk_conv_gemm_run(void *kernel, struct msc_vk_backend *b,
                                        const struct msc_call calls[], int n) {
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
            if (!is_done[i] && go_together(&jobs[i], &jobs[first])) {
                r.packs[r.n] = jobs[i].pack;
                r.calls[r.n++] = calls[i];
                is_done[i] = true;
            }
        }
        enum msc_status status = run_together(&r);
        msc_vk_give(r.floats, b, r.n);
        msc_vk_give(r.made, b, r.n);
        msc_vk_give(r.sums, b, r.n);
        for (int i = 0; i < r.n; i++) {
            msc_vk_free(b->vk, r.tails[i]);
        }
        MSC_TRY(status);
    }
    return MSC_OK;
}

static bool vk_conv_gemm_reads_channels(const void *kernel, int32_t input,
                                        const struct msc_quant *q) {
    const struct msc_vk_conv_gemm *k = kernel;
    return input == k->input && msc_gemm_reads_channels(&k->spec.desc, q);
}

static struct msc_vk_gemm *vk_conv_gemm_of(void *kernel) {
    return ((struct msc_vk_conv_gemm *)kernel)->gemm;
}

const struct msc_vk_family msc_vk_conv = {.name = "convolution",
                                          .prepare = vk_conv_gemm_prepare,
                                          .release = vk_conv_gemm_release,
                                          .run = vk_conv_gemm_run,
                                          .reads_integers = true,
                                          .reads_channels = vk_conv_gemm_reads_channels,
                                          .writes_quantized = true,
                                          .weights = msc_vk_conv_gemm_weights,
                                          .release_weights = msc_vk_conv_gemm_release_weights,
                                          .gemm = vk_conv_gemm_of};

const struct msc_vk_family msc_vk_linear = {.name = "linear",
                                            .prepare = vk_conv_gemm_prepare,
                                            .release = vk_conv_gemm_release,
                                            .run = vk_conv_gemm_run,
                                            .reads_integers = true,
                                            .writes_quantized = true,
                                            .weights = msc_vk_conv_gemm_weights,
                                            .release_weights = msc_vk_conv_gemm_release_weights,
                                            .gemm = vk_conv_gemm_of};
