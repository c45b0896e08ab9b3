#include "kernels/cpu/cpu_gemm_run.h"

#include "base/platform.h"

#include <math.h>
#include <string.h>

// ---- Choices ----------------------------------------------------------------------------------

static bool has_padding(const struct msc_gemm_desc *d) {
    for (int i = 0; i < d->n_spatial; i++) {
        if (d->pad_begin[i] > 0 || d->pad_end[i] > 0) {
            return true;
        }
    }
    return false;
}

// The unit of int8 that a routine computes.
static enum msc_cpu_gemm_unit routine_unit(const struct msc_cpu_gemm_run *r) {
    const struct msc_cpu_gemm *k = r->k;
    bool pads = k->desc.kind == MSC_GEMM_CONV && has_padding(&k->desc);
    return pads && msc_cpu_gemm__zero_point(r->quant, 0) != 0 ? MSC_CPU_GEMM_INT8_PADDED
                                                              : MSC_CPU_GEMM_INT8;
}

// The unit for weights that do not fit Winograd's algorithm.
static enum msc_cpu_gemm_unit direct_unit(const struct msc_cpu_gemm_run *r) {
    if (r->k->indirect) {
        return MSC_CPU_GEMM_INDIRECT;
    }
    return msc_routine_isa().has_int8 ? routine_unit(r) : MSC_CPU_GEMM_INTEGER;
}

// The unit for this input and these weights. Integer units require that both are integers.
static enum msc_cpu_gemm_unit best_unit(struct msc_cpu_gemm_run *r,
                                        const struct msc_cpu_gemm_variant *v) {
    const struct msc_cpu_gemm *k = r->k;
    if (!r->quant || !msc_cpu_gemm_is_integer(v)) {
        r->way = msc_cpu_gemm_way(k, false);
        return msc_cpu_gemm_float_unit(k);
    }
    if (!msc_cpu_gemm_is_int8(v) || !k->backend->base.options.allow_int8) {
        return MSC_CPU_GEMM_INTEGER;
    }
    if (k->is_depthwise) {
        return MSC_CPU_GEMM_DEPTHWISE;
    }
    if (k->desc.kind == MSC_GEMM_CONV_TRANSPOSE || msc_quant_is_by_channel(r->quant)) {
        return MSC_CPU_GEMM_INTEGER;
    }
    r->way = msc_cpu_gemm_way(k, true);
    return r->way->unit == MSC_CPU_GEMM_INT8 ? routine_unit(r) : r->way->unit;
}

static bool is_own(enum msc_cpu_gemm_unit unit) {
    return unit == MSC_CPU_GEMM_DEPTHWISE || unit == MSC_CPU_GEMM_FLOAT_DEPTHWISE ||
           unit == MSC_CPU_GEMM_WINOGRAD || msc_cpu_gemm_is_indirect(unit);
}

static enum msc_status set_unit(struct msc_cpu_gemm_run *r, const struct msc_cpu_gemm_variant *v,
                                enum msc_cpu_gemm_unit unit) {
    r->unit = unit;
    r->chunks = &r->k->chunks[unit];
    r->digits = (struct msc_digits){1, 0, 0};
    r->routine = NULL;
    if (!is_own(unit)) {
        MSC_TRY(msc_cpu_gemm_routine(&r->routine, r->k, unit));
    }
    return msc_cpu_gemm_pack(&r->pack, r->k, v, unit);
}

static enum msc_status choose_unit(struct msc_cpu_gemm_run *r, const struct msc_cpu_gemm_variant *v,
                                   int thread) {
    enum msc_cpu_gemm_unit unit = best_unit(r, v);
    enum msc_status status = set_unit(r, v, unit);
    if (status == MSC_OK && unit == MSC_CPU_GEMM_WINOGRAD &&
        !msc_cpu_gemm_winograd_fits(r->pack->largest)) {
        unit = direct_unit(r);
        status = set_unit(r, v, unit);
    }
    if (status == MSC_E_UNSUPPORTED && unit >= MSC_CPU_GEMM_INT8) {
        status = set_unit(r, v, MSC_CPU_GEMM_INTEGER);
    }
    if (status != MSC_OK || msc_cpu_gemm_is_float(r->unit)) {
        return status;
    }
    int32_t largest = msc_digits_largest(r->quant);
    struct msc_cpu_gemm_bias added;
    bool is_exact = false;
    // The int8 routine multiplies q, which is up to 255, without subtracting the zero point.
    r->digits = msc_digits_cut(r->unit == MSC_CPU_GEMM_INTEGER ? largest : 255, r->pack->largest);
    bool is_by_channel = msc_quant_is_by_channel(r->quant);
    bool fits = is_by_channel ? msc_digits_cut(largest, r->pack->largest).n == 1
                              : msc_digits_sums_fit(largest, r->pack->largest, 0);
    if (!fits || r->digits.n == 0) {
        // Sums may not fit int32, so no integer unit can compute them.
        return set_unit(r, v, msc_cpu_gemm_float_unit(r->k));
    }
    if (!is_by_channel && msc_cpu_gemm_integer_bias(&added, v, r->quant->scales[0]) &&
        msc_digits_sums_fit(largest, r->pack->largest, added.largest_integer)) {
        r->bias = added;
    }
    if (is_own(r->unit)) {
        r->digits = (struct msc_digits){1, 0, 255};
    }
    if (r->digits.n > 1 && r->unit >= MSC_CPU_GEMM_INT8) {
        MSC_TRY(msc_cpu_gemm_is_exact(&is_exact, r->k, r->unit, thread));
        r->digits = is_exact ? (struct msc_digits){1, 0, 255} : r->digits;
    }
    return MSC_OK;
}

// ---- Scratch ----------------------------------------------------------------------------------

static size_t own_scratch_bytes(const struct msc_cpu_gemm_run *r) {
    if (r->unit == MSC_CPU_GEMM_FLOAT_DEPTHWISE) {
        return msc_cpu_gemm_weigh_scratch(r->k);
    }
    if (r->unit == MSC_CPU_GEMM_WINOGRAD) {
        return msc_cpu_gemm_winograd_scratch(r->k);
    }
    return r->unit == MSC_CPU_GEMM_DEPTHWISE ? msc_cpu_gemm_depthwise_scratch(r->k)
                                             : msc_cpu_gemm_indirect_scratch(r->k, r->unit);
}

// True if the products of the float routine are added up in int32.
static bool adds_up(const struct msc_cpu_gemm_run *r) {
    return r->unit == MSC_CPU_GEMM_INTEGER && (r->digits.n > 1 || r->bias.integers);
}

// The float32 output, or NULL if there is none.
static float *floats_of(const struct msc_call *call) {
    return call->outputs[0].dtype == MSC_DTYPE_F32 ? call->outputs[0].data : NULL;
}

// True if the step's bias is added to the integer sums, so that no float bias is left to add.
static bool has_no_floats(const struct msc_cpu_gemm_run *r) {
    return r->k->bias.floats && !r->bias.floats;
}

// Assigns memory to all parts of scratch, from `memory`. Returns their total size in bytes.
static size_t cpu_gemm_place(struct msc_cpu_gemm_run *r, char *memory) {
    const struct msc_cpu_gemm *k = r->k;
    bool is_int8 = r->unit >= MSC_CPU_GEMM_INT8;
    size_t used = 0;
    size_t n = (size_t)k->channels;
    size_t sums_bytes = (size_t)r->chunks->out * sizeof(int32_t);
    size_t in_bytes = (size_t)r->chunks->in * (is_int8 ? sizeof(uint8_t) : sizeof(float));
    r->routine_scratch =
        r->routine ? msc_cpu_take(memory, &used, msc_routine_scratch_bytes(r->routine)) : NULL;
    r->own_scratch = is_own(r->unit) ? msc_cpu_take(memory, &used, own_scratch_bytes(r)) : NULL;
    r->ewise_scratch = msc_cpu_take(memory, &used, msc_cpu_ewise_scratch_bytes(r->epilogue));
    r->input = msc_cpu_gemm__copies_input(r)
                   ? msc_cpu_take(memory, &used, in_bytes + MSC_SIMD_GROUP)
                   : NULL;
    r->sums =
        (is_int8 || adds_up(r)) && !r->is_direct ? msc_cpu_take(memory, &used, sums_bytes) : NULL;
    r->product = is_int8 && r->digits.n > 1 ? msc_cpu_take(memory, &used, sums_bytes) : NULL;
    r->floats = !is_int8 && !r->is_direct && !floats_of(r->call)
                    ? msc_cpu_take(memory, &used, sums_bytes)
                    : NULL;
    r->scales =
        !msc_cpu_gemm_is_float(r->unit) ? msc_cpu_take(memory, &used, n * sizeof(float)) : NULL;
    r->offsets = is_int8 ? msc_cpu_take(memory, &used, n * sizeof(int32_t)) : NULL;
    bool adds_bias = r->is_direct || r->unit == MSC_CPU_GEMM_FLOAT_INDIRECT || has_no_floats(r);
    r->channel_bias = adds_bias ? msc_cpu_take(memory, &used, n * sizeof(float)) : NULL;
    return used;
}

// ---- Sums -------------------------------------------------------------------------------------

MSC_SIMD static void add_rows(int32_t *restrict sums, const int32_t *restrict row, int64_t n_rows,
                              int64_t n) {
    for (int64_t r = 0; r < n_rows; r++, sums += n) {
        for (int64_t i = 0; i < n; i++) {
            sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)row[i]);
        }
    }
}

// Multiplies a chunk's windows. Float sums get their bias and clip bounds here, as a routine would
// apply them.
static void multiply_windows(const struct msc_cpu_gemm_run *r, int64_t chunk, float out[]) {
    const struct msc_simd_product *product = msc_cpu_gemm_product(r->k, r->unit);
    struct msc_simd_indirect w = r->indirect;
    w.in = msc_cpu_gemm__input(r, chunk, 0);
    if (r->unit == MSC_CPU_GEMM_INDIRECT) {
        product->multiply(r->sums, &w);
        return;
    }
    struct msc_simd_epilogue epilogue = {.finish = r->own_epilogue.finish, .out = out};
    product->multiply_epilogue(&w, &epilogue);
}

// Computes a chunk's sums, as float32 in `out` or as int32 in r->sums.
static enum msc_status cpu_gemm_multiply(const struct msc_cpu_gemm_run *r, int64_t chunk,
                                         float out[], int thread) {
    int64_t n = r->chunks->out;
    bool is_int8 = r->unit >= MSC_CPU_GEMM_INT8, is_sum = adds_up(r) || r->digits.n > 1;
    if (r->unit == MSC_CPU_GEMM_FLOAT_DEPTHWISE) {
        msc_cpu_gemm_weigh(out, r->k, msc_cpu_gemm__input(r, chunk, 0), r->pack->own,
                           r->bias.floats, r->own_scratch);
        return MSC_OK;
    }
    if (r->unit == MSC_CPU_GEMM_DEPTHWISE) {
        msc_cpu_gemm_depthwise_sums(&r->depthwise, chunk, r->sums);
        return MSC_OK;
    }
    if (r->unit == MSC_CPU_GEMM_WINOGRAD) {
        struct msc_simd_image_windows w = r->windows;
        w.in = msc_cpu_gemm__input(r, chunk, 0);
        r->k->winograd->multiply(r->sums, &w);
        return MSC_OK;
    }
    if (msc_cpu_gemm_is_indirect(r->unit)) {
        multiply_windows(r, chunk, out);
        return MSC_OK;
    }
    if (is_sum) {
        memset(r->sums, 0, (size_t)n * sizeof(r->sums[0]));
    }
    for (int i = 0; i < r->digits.n; i++) {
        struct msc_routine_call call = {.a = msc_cpu_gemm__input(r, chunk, i),
                                        .weights = r->pack->weights,
                                        .bias = r->bias.floats,
                                        .out = out,
                                        .scratch = r->routine_scratch};
        if (is_int8) {
            call.out = is_sum ? r->product : r->sums;
        }
        MSC_TRY(msc_routine_run(r->routine, &call, thread));
        if (is_sum && is_int8) {
            msc_cpu_add_integers(r->sums, r->product, n, r->digits.shift * i);
        } else if (is_sum) {
            msc_cpu_add_floats(r->sums, out, n, r->digits.shift * i);
        }
    }
    if (r->bias.integers && !is_int8) {
        add_rows(r->sums, r->bias.integers, n / r->k->channels, r->k->channels);
    }
    if (is_sum && !is_int8) {
        msc_cpu_to_floats(out, r->sums, n);
    }
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

static void set_channels(struct msc_cpu_gemm_run *r, const struct msc_cpu_gemm_variant *v) {
    int64_t n = r->k->channels;
    for (int64_t c = 0; r->channel_bias && c < n; c++) {
        // Neutral for addition: x + -0 is x for any x.
        r->channel_bias[c] = r->bias.floats ? r->bias.floats[c] : -0.0f;
    }
    if (msc_cpu_gemm_is_float(r->unit)) {
        return;
    }
    msc_cpu_gemm_scales(r->scales, v, n, r->quant);
    int32_t below = r->unit == MSC_CPU_GEMM_WINOGRAD ? 128 : 0; // its bytes count as int8
    for (int64_t c = 0; r->offsets && c < n; c++) {
        uint32_t zero_point =
            (uint32_t)(msc_cpu_gemm__zero_point(r->quant, r->quant->n > 1 ? c : 0) - below);
        uint32_t added = r->bias.integers ? (uint32_t)r->bias.integers[c] : 0;
        r->offsets[c] = (int32_t)(zero_point * (uint32_t)r->pack->sums[c] - added);
    }
}

MSC_SIMD static void cpu_gemm_subtract_rows(int32_t *restrict out, const int32_t *restrict sums,
                                            const int32_t *restrict row, int64_t n_rows,
                                            int64_t n) {
    for (int64_t r = 0; r < n_rows; r++, sums += n, out += n) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (int32_t)((uint32_t)sums[i] - (uint32_t)row[i]);
        }
    }
}

// Writes a chunk's integer sums to the output. The sums of the float routine are in `floats`.
static void give_sums(const struct msc_cpu_gemm_run *r, int64_t begin, const float floats[]) {
    int64_t n = r->chunks->out, channels = r->k->channels;
    int32_t *out = (int32_t *)r->call->outputs[0].data + begin;
    if (r->unit >= MSC_CPU_GEMM_INT8) {
        cpu_gemm_subtract_rows(out, r->sums, r->offsets, n / channels, channels);
    } else if (adds_up(r)) {
        memcpy(out, r->sums, (size_t)n * sizeof(out[0]));
    } else {
        memset(out, 0, (size_t)n * sizeof(out[0]));
        msc_cpu_add_floats(out, floats, n, 0);
    }
}

// Applies everything that follows a chunk's sums. `out` has float results, if there are any, and
// receives the float32 output. `out` is NULL if there are only int32 sums and quantised variants.
static void finish_chunk(const struct msc_cpu_gemm_run *r, int64_t begin, float *out) {
    const struct msc_call *call = r->call;
    if (r->k->gives_sums) {
        give_sums(r, begin, out);
        return;
    }
    if (!r->epilogue) {
        msc_cpu_write_quantized(call->quantized, call->n_quantized, begin, out, r->chunks->out);
        return;
    }
    struct msc_cpu_ewise_call following = {
        .inputs = call->inputs,
        .anchor = r->unit >= MSC_CPU_GEMM_INT8 ? (const void *)r->sums : out,
        .scales = r->scales,
        .offsets = r->offsets,
        .out = r->floats ? NULL : out,
        .quantized = call->quantized,
        .n_quantized = call->n_quantized,
        .begin = begin,
        .end = begin + r->chunks->out,
        .scratch = r->ewise_scratch};
    if (r->bias.floats != r->k->bias.floats) {
        following.bias = r->bias.floats ? r->bias.floats : r->channel_bias;
    }
    msc_cpu_ewise_run(r->epilogue, &following);
}

// ---- Kernels of our own -----------------------------------------------------------------------

// True if every scaled sum with its bias is small enough to be quantised without further checks.
static bool has_numbers(const struct msc_cpu_gemm_run *r, const struct msc_cpu_gemm_variant *v,
                        const struct msc_simd_bytes *q) {
    float scale = r->quant->scales[0];
    for (int32_t i = 1; i < r->quant->n; i++) {
        scale = fmaxf(scale, r->quant->scales[i]);
    }
    scale *= msc_cpu_gemm_largest_scale(v);
    float largest =
        scale * (float)(msc_digits_largest(r->quant) * r->pack->largest + r->bias.largest_integer);
    return largest + r->bias.largest < 0x1p30f * q->scale;
}

// Sets r->quantized. False unless all quantised variants are bytes that can be computed in
// registers.
static bool set_quantized(struct msc_cpu_gemm_run *r) {
    const struct msc_call *call = r->call;
    if (call->n_quantized > MSC_SIMD_MAX_QUANTIZED) {
        return false;
    }
    for (int32_t i = 0; i < call->n_quantized; i++) {
        const struct msc_quantized *quantized = &call->quantized[i];
        if (quantized->view.dtype == MSC_DTYPE_F32) {
            return false;
        }
        r->quantized[i] =
            (struct msc_simd_quantized){quantized->view.data, msc_simd_bytes_of(quantized->quant)};
        if (!r->quantized[i].q.is_corrected) {
            return false;
        }
    }
    return true;
}

// Sets r->own_epilogue. False if kernels of our own do not support the epilogue of the step.
static bool get_epilogue(struct msc_cpu_gemm_run *r) {
    struct msc_simd_epilogue *e = &r->own_epilogue;
    if (r->unit == MSC_CPU_GEMM_FLOAT_INDIRECT) {
        const struct msc_gemm_desc *d = &r->k->chunks[MSC_CPU_GEMM_FLOAT].desc;
        e->finish.low = d->has_clip ? d->low : -INFINITY;
        e->finish.high = d->has_clip ? d->high : INFINITY;
        return !r->epilogue || msc_cpu_ewise_get_epilogue(e, r->epilogue);
    }
    return msc_cpu_ewise_get_sums_epilogue(e, r->epilogue) && e->finish.low <= e->finish.high;
}

// True if a kernel of our own can compute everything that follows its sums. Sets r->own_epilogue.
static bool cpu_gemm_is_direct(struct msc_cpu_gemm_run *r, const struct msc_cpu_gemm_variant *v) {
    struct msc_simd_epilogue *e = &r->own_epilogue;
    bool is_tried = is_own(r->unit) && r->unit != MSC_CPU_GEMM_FLOAT_DEPTHWISE;
    if (!is_tried || r->k->gives_sums || !get_epilogue(r) || !set_quantized(r)) {
        return false;
    }
    e->out = floats_of(r->call);
    e->n_quantized = r->call->n_quantized;
    e->quantized = r->quantized;
    if (r->unit == MSC_CPU_GEMM_FLOAT_INDIRECT) {
        return true;
    }
    e->has_numbers = e->n_quantized == 1 && has_numbers(r, v, &r->quantized[0].q);
    bool is_short = e->n_instrs == 0 && !e->out && e->has_numbers;
    return r->unit != MSC_CPU_GEMM_DEPTHWISE || is_short;
}

static void begin_own(struct msc_cpu_gemm_run *r) {
    const struct msc_call *call = r->call;
    struct msc_simd_epilogue *e = &r->own_epilogue;
    e->finish.scales = r->scales;
    e->finish.offsets = r->offsets;
    e->finish.bias = r->channel_bias;
    if (r->is_direct && r->epilogue) {
        msc_cpu_ewise_set_arrays(e, r->epilogue, call->inputs, r->ewise_scratch);
    }
    if (r->unit == MSC_CPU_GEMM_WINOGRAD) {
        r->windows = msc_cpu_gemm_winograd(r->k, r->quant, r->pack->own, r->own_scratch);
        return;
    }
    if (msc_cpu_gemm_is_indirect(r->unit)) {
        r->indirect = msc_cpu_gemm_indirect(r->k, r->unit, r->pack->own, r->own_scratch);
        r->indirect.at_once = r->way ? r->way->block : 0;
        return;
    }
    r->depthwise = (struct msc_cpu_gemm_depthwise){.k = r->k,
                                                   .weights = r->pack->own,
                                                   .in = call->inputs[r->k->input].data,
                                                   .flip = r->quant->low < 0 ? 0x80 : 0};
    msc_cpu_gemm_depthwise_begin(&r->depthwise, r->quant, r->is_direct ? &e->finish : NULL,
                                 r->own_scratch);
}

static void run_direct(struct msc_cpu_gemm_run *r) {
    for (int64_t chunk = 0; chunk < r->chunks->n; chunk++) {
        int64_t begin = chunk * r->chunks->out;
        if (r->unit == MSC_CPU_GEMM_DEPTHWISE) {
            const struct msc_simd_quantized *quantized = &r->quantized[0];
            msc_cpu_gemm_depthwise_quantize(&r->depthwise, chunk, quantized->bytes + begin,
                                            &quantized->q);
            continue;
        }
        r->own_epilogue.begin = begin;
        if (r->unit == MSC_CPU_GEMM_WINOGRAD) {
            r->windows.in = msc_cpu_gemm__input(r, chunk, 0);
            r->k->winograd->multiply_epilogue(&r->windows, &r->own_epilogue);
            continue;
        }
        r->indirect.in = msc_cpu_gemm__input(r, chunk, 0);
        msc_cpu_gemm_product(r->k, r->unit)->multiply_epilogue(&r->indirect, &r->own_epilogue);
    }
}

enum msc_status msc_cpu_gemm_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread) {
    const struct msc_cpu_gemm *k = kernel;
    const struct msc_cpu_gemm_variant *v = call->weights;
    struct msc_cpu_gemm_run r = {.k = k, .call = call, .quant = call->inputs[k->input].quant};
    void *memory;
    r.bias = msc_cpu_gemm_float_bias(k, v);
    MSC_TRY(choose_unit(&r, v, thread));
    r.epilogue = k->epilogues[msc_cpu_gemm_is_float(r.unit)    ? 0
                              : r.unit == MSC_CPU_GEMM_INTEGER ? 1
                                                               : 2];
    r.is_direct = cpu_gemm_is_direct(&r, v);
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, cpu_gemm_place(&r, NULL)));
    cpu_gemm_place(&r, memory);
    set_channels(&r, v);
    if (is_own(r.unit) && r.unit != MSC_CPU_GEMM_FLOAT_DEPTHWISE) {
        begin_own(&r);
    }
    if (r.is_direct) {
        run_direct(&r);
        return MSC_OK;
    }
    float *all = floats_of(call);
    for (int64_t chunk = 0; chunk < r.chunks->n; chunk++) {
        int64_t begin = chunk * r.chunks->out;
        float *out = all ? all + begin : r.floats;
        MSC_TRY(cpu_gemm_multiply(&r, chunk, out, thread));
        finish_chunk(&r, begin, out);
    }
    return MSC_OK;
}
