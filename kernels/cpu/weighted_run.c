#include "kernels/cpu/weighted.h"

#include <string.h>

// What one call multiplies, and its places in scratch.
struct run {
    const struct msc_weighted *k;
    const struct msc_call *call;
    const struct msc_weighted_chunks *chunks;
    const struct msc_weighted_pack *pack;
    const struct msc_dense *dense;
    enum msc_weighted_unit unit;
    const struct msc_quant *quant; // of the input; NULL: float32
    const struct msc_ewise *end;
    struct msc_cpu_digits digits;
    void *dense_scratch, *ewise_scratch;
    char *input;      // a chunk in the form the routine reads; NULL: as it is
    int32_t *sums;    // a chunk of digits added up, or the int8 routine's output
    int32_t *product; // a chunk of one digit's sums
    float *floats;    // a chunk of float results, when no one wants them; else NULL
    float *scales;
    int32_t *offsets;
    struct msc_weighted_depthwise depthwise;
    void *depthwise_scratch;
    bool is_direct; // the depthwise kernel writes the only form of the output
    float *no_bias; // then, where there is none
};

// ---- Choices ----------------------------------------------------------------------------------

static bool has_padding(const struct msc_dense_desc *d) {
    for (int i = 0; i < d->n_spatial; i++) {
        if (d->pad_begin[i] > 0 || d->pad_end[i] > 0) {
            return true;
        }
    }
    return false;
}

// Stored values as uint8: int8 ones are moved up by 128, and their zero point with them.
static int32_t moved_zero_point(const struct msc_quant *q) {
    return q->zero_points[0] + (q->low < 0 ? 128 : 0);
}

// The unit for this input and these weights. Integers need both to be integers.
static enum msc_weighted_unit best_unit(const struct run *r, const struct msc_weighted_variant *v) {
    const struct msc_weighted *k = r->k;
    if (!r->quant || !msc_weighted_is_integer(v)) {
        return MSC_WEIGHTED_FLOAT;
    }
    if (!msc_weighted_is_int8(v) || !k->backend->base.options.allow_int8) {
        return MSC_WEIGHTED_WHOLE;
    }
    if (k->is_depthwise) {
        return MSC_WEIGHTED_DEPTHWISE;
    }
    if (k->whole.kind == MSC_DENSE_CONV_TRANSPOSE || !msc_dense_has_int8(k->backend->engine)) {
        return MSC_WEIGHTED_WHOLE;
    }
    bool pads = k->whole.kind == MSC_DENSE_CONV && has_padding(&k->whole);
    return pads && moved_zero_point(r->quant) != 0 ? MSC_WEIGHTED_INT8_PADDED : MSC_WEIGHTED_INT8;
}

static enum msc_status set_unit(struct run *r, const struct msc_weighted_variant *v,
                                enum msc_weighted_unit unit) {
    r->unit = unit;
    r->chunks = &r->k->chunks[unit];
    r->digits = (struct msc_cpu_digits){1, 0, 0};
    r->dense = NULL;
    if (unit != MSC_WEIGHTED_DEPTHWISE) {
        MSC_TRY(msc_weighted_routine(&r->dense, r->k, unit));
    }
    return msc_weighted_pack(&r->pack, r->k, v, unit);
}

static enum msc_status choose_unit(struct run *r, const struct msc_weighted_variant *v,
                                   int thread) {
    enum msc_weighted_unit unit = best_unit(r, v);
    enum msc_status status = set_unit(r, v, unit);
    if (status == MSC_E_UNSUPPORTED && unit >= MSC_WEIGHTED_INT8) {
        status = set_unit(r, v, MSC_WEIGHTED_WHOLE);
    }
    if (status != MSC_OK || r->unit == MSC_WEIGHTED_FLOAT) {
        return status;
    }
    int32_t largest = msc_cpu_largest(r->quant);
    bool is_exact = false;
    // The int8 routine multiplies q itself, up to 255.
    r->digits = msc_cpu_cut(r->unit == MSC_WEIGHTED_WHOLE ? largest : 255, r->pack->largest);
    if (largest * r->pack->largest >= ((int64_t)1 << 31) || r->digits.n == 0) {
        // Sums that may not fit into int32: no unit computes them over integers.
        return set_unit(r, v, MSC_WEIGHTED_FLOAT);
    }
    if (r->unit == MSC_WEIGHTED_DEPTHWISE) {
        r->digits = (struct msc_cpu_digits){1, 0, 255};
    }
    if (r->digits.n > 1 && r->unit >= MSC_WEIGHTED_INT8) {
        MSC_TRY(msc_weighted_is_exact(&is_exact, r->k, r->unit, thread));
        r->digits = is_exact ? (struct msc_cpu_digits){1, 0, 255} : r->digits;
    }
    return MSC_OK;
}

// ---- Scratch ----------------------------------------------------------------------------------

static bool needs_input(const struct run *r) {
    if (r->chunks->is_padded) {
        return true;
    }
    switch (r->unit) {
    case MSC_WEIGHTED_FLOAT:
        return r->quant != NULL;
    case MSC_WEIGHTED_DEPTHWISE:
        return false;
    case MSC_WEIGHTED_INT8:
        return r->quant->low < 0 || r->digits.n > 1;
    default:
        return true;
    }
}

// The next part of scratch; NULL while only counting.
static void *take(char *memory, size_t *used, size_t n_bytes) {
    size_t at = *used;
    *used += msc_cpu_round_up(n_bytes);
    return memory ? memory + at : NULL;
}

// Gives places in `memory` to everything; returns how many bytes that takes.
static size_t place(struct run *r, char *memory) {
    const struct msc_weighted *k = r->k;
    bool is_int8 = r->unit >= MSC_WEIGHTED_INT8;
    size_t used = 0;
    size_t n = (size_t)k->channels;
    size_t sums_bytes = (size_t)r->chunks->out * sizeof(int32_t);
    size_t in_bytes = (size_t)r->chunks->in * (is_int8 ? sizeof(uint8_t) : sizeof(float));
    r->dense_scratch = r->dense ? take(memory, &used, msc_dense_scratch_bytes(r->dense)) : NULL;
    r->depthwise_scratch = r->unit == MSC_WEIGHTED_DEPTHWISE
                               ? take(memory, &used, msc_weighted_depthwise_scratch(k))
                               : NULL;
    r->ewise_scratch = take(memory, &used, msc_ewise_scratch_bytes(r->end));
    r->input = needs_input(r) ? take(memory, &used, in_bytes) : NULL;
    r->sums =
        (is_int8 || r->digits.n > 1) && !r->is_direct ? take(memory, &used, sums_bytes) : NULL;
    r->product = is_int8 && r->digits.n > 1 ? take(memory, &used, sums_bytes) : NULL;
    r->floats = !is_int8 && !r->call->outputs[0].data ? take(memory, &used, sums_bytes) : NULL;
    r->scales = r->unit != MSC_WEIGHTED_FLOAT ? take(memory, &used, n * sizeof(float)) : NULL;
    r->offsets = is_int8 ? take(memory, &used, n * sizeof(int32_t)) : NULL;
    r->no_bias = r->is_direct && !k->bias ? take(memory, &used, n * sizeof(float)) : NULL;
    return used;
}

// ---- Input ------------------------------------------------------------------------------------

// n input elements from `first` on in the form the routine reads; one digit of them.
static void convert(const struct run *r, char *to, int64_t first, int64_t n, int digit) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    const char *from = (const char *)in->data + (size_t)first * msc_dtype_bytes(in->dtype);
    int shift = r->digits.shift * digit;
    int32_t mask = msc_cpu_digit_mask(&r->digits, digit);
    if (!r->quant) {
        memcpy(to, from, (size_t)n * sizeof(float));
    } else if (r->unit == MSC_WEIGHTED_FLOAT) {
        msc_cpu_dequantize((float *)(void *)to, from, in->dtype, n, r->quant);
    } else if (r->unit == MSC_WEIGHTED_WHOLE) {
        msc_cpu_expand((float *)(void *)to, from, in->dtype, n, r->quant->zero_points[0], shift,
                       mask);
    } else {
        msc_cpu_recode((uint8_t *)to, (const uint8_t *)from, n, r->quant->low < 0 ? 0x80 : 0, shift,
                       (uint8_t)mask);
    }
}

// Where a chunk with padding lies in its images. Missing axes come first and have length 1.
struct window {
    int64_t in[3], padded[3], first[3];
    int64_t image; // of the batch
};

static struct window find_window(const struct run *r, int64_t chunk) {
    const struct msc_dense_desc *whole = &r->k->whole, *d = &r->chunks->desc;
    struct window w = {.in = {1, 1, 1}, .padded = {1, 1, 1}};
    int missing = 3 - whole->n_spatial;
    for (int i = 0; i < whole->n_spatial; i++) {
        w.in[missing + i] = whole->in[i];
        w.padded[missing + i] = d->in[i];
        w.first[missing + i] = -whole->pad_begin[i];
    }
    w.first[missing] += chunk % r->chunks->bands * d->out[0] * whole->strides[0];
    w.image = chunk / r->chunks->bands * r->chunks->images;
    return w;
}

// Padding is the zero point: for whole numbers 0.
static void fill(const struct run *r, char *to, int64_t n, int digit) {
    int value = 0;
    if (r->unit >= MSC_WEIGHTED_INT8) {
        value = moved_zero_point(r->quant) >> (r->digits.shift * digit) &
                msc_cpu_digit_mask(&r->digits, digit);
    }
    memset(to, value, (size_t)n * (r->unit >= MSC_WEIGHTED_INT8 ? 1 : sizeof(float)));
}

// One row of the padded input; `row` is where its image's row begins, or -1 outside the image.
static void convert_row(const struct run *r, const struct window *w, char *to, int64_t row,
                        int digit) {
    int64_t channels = r->k->whole.in_channels;
    int64_t element = r->unit >= MSC_WEIGHTED_INT8 ? 1 : (int64_t)sizeof(float);
    int64_t begin = w->first[2] < 0 ? -w->first[2] : 0;
    int64_t end = w->in[2] - w->first[2];
    end = end > w->padded[2] ? w->padded[2] : end;
    if (row < 0 || begin >= end) {
        fill(r, to, w->padded[2] * channels, digit);
        return;
    }
    fill(r, to, begin * channels, digit);
    convert(r, to + begin * channels * element, (row + w->first[2] + begin) * channels,
            (end - begin) * channels, digit);
    fill(r, to + end * channels * element, (w->padded[2] - end) * channels, digit);
}

static void convert_padded(const struct run *r, int64_t chunk, int digit) {
    struct window w = find_window(r, chunk);
    int64_t element = r->unit >= MSC_WEIGHTED_INT8 ? 1 : (int64_t)sizeof(float);
    int64_t row_bytes = w.padded[2] * r->k->whole.in_channels * element;
    char *to = r->input;
    for (int64_t image = w.image; image < w.image + r->chunks->images; image++) {
        for (int64_t i = 0; i < w.padded[0] * w.padded[1]; i++) {
            int64_t z = w.first[0] + i / w.padded[1], y = w.first[1] + i % w.padded[1];
            bool is_inside = z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1];
            int64_t row = ((image * w.in[0] + z) * w.in[1] + y) * w.in[2];
            convert_row(r, &w, to, is_inside ? row : -1, digit);
            to += row_bytes;
        }
    }
}

// One digit of a chunk as the routine reads it.
static const void *prepare_input(const struct run *r, int64_t chunk, int digit) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    int64_t first = chunk * r->chunks->in;
    if (!r->input) {
        return (const char *)in->data + (size_t)first * msc_dtype_bytes(in->dtype);
    }
    if (r->chunks->is_padded) {
        convert_padded(r, chunk, digit);
    } else {
        convert(r, r->input, first, r->chunks->in, digit);
    }
    return r->input;
}

// ---- Sums -------------------------------------------------------------------------------------

// A chunk's sums: as float32 in `out`, or as int32 in r->sums.
static enum msc_status multiply(const struct run *r, int64_t chunk, float out[], int thread) {
    int64_t n = r->chunks->out;
    bool is_int8 = r->unit >= MSC_WEIGHTED_INT8;
    if (r->unit == MSC_WEIGHTED_DEPTHWISE) {
        msc_weighted_depthwise_sums(&r->depthwise, chunk, r->sums);
        return MSC_OK;
    }
    if (r->digits.n > 1) {
        memset(r->sums, 0, (size_t)n * sizeof(r->sums[0]));
    }
    for (int i = 0; i < r->digits.n; i++) {
        struct msc_dense_call call = {.a = prepare_input(r, chunk, i),
                                      .weights = r->pack->weights,
                                      .out = out,
                                      .scratch = r->dense_scratch};
        if (is_int8) {
            call.out = r->digits.n > 1 ? r->product : r->sums;
        }
        MSC_TRY(msc_dense_run(r->dense, &call, thread));
        if (r->digits.n > 1 && is_int8) {
            msc_cpu_add_integers(r->sums, r->product, n, r->digits.shift * i);
        } else if (r->digits.n > 1) {
            msc_cpu_add_floats(r->sums, out, n, r->digits.shift * i);
        }
    }
    if (r->digits.n > 1 && !is_int8) {
        msc_cpu_to_floats(out, r->sums, n);
    }
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

static void set_channels(struct run *r, const struct msc_weighted_variant *v) {
    if (r->unit == MSC_WEIGHTED_FLOAT) {
        return;
    }
    for (int64_t c = 0; c < r->k->channels; c++) {
        r->scales[c] = r->quant->scales[0] * msc_weighted_scale(v, c);
    }
    for (int64_t c = 0; r->offsets && c < r->k->channels; c++) {
        r->offsets[c] =
            (int32_t)((uint32_t)moved_zero_point(r->quant) * (uint32_t)r->pack->sums[c]);
    }
}

// What follows a chunk's sums: `out` is NULL when only forms of the output are wanted.
static void finish_chunk(const struct run *r, int64_t begin, float *out) {
    const struct msc_call *call = r->call;
    if (!r->end) {
        msc_cpu_write_forms(call->quantized, call->n_quantized, begin, out, r->chunks->out);
        return;
    }
    struct msc_ewise_call end = {.inputs = call->inputs,
                                 .anchor =
                                     r->unit >= MSC_WEIGHTED_INT8 ? (const void *)r->sums : out,
                                 .scales = r->scales,
                                 .offsets = r->offsets,
                                 .out = r->floats ? NULL : out,
                                 .forms = call->quantized,
                                 .n_forms = call->n_quantized,
                                 .begin = begin,
                                 .end = begin + r->chunks->out,
                                 .scratch = r->ewise_scratch};
    msc_ewise_run(r->end, &end);
}

// ---- Depthwise --------------------------------------------------------------------------------

static bool is_direct(const struct run *r, struct msc_simd_finish *f) {
    const struct msc_call *call = r->call;
    return r->unit == MSC_WEIGHTED_DEPTHWISE && !call->outputs[0].data && call->n_quantized == 1 &&
           call->quantized[0].view.dtype != MSC_DTYPE_F32 &&
           msc_simd_bytes_of(call->quantized[0].quant).is_corrected &&
           msc_ewise_is_finish(r->end, &f->low, &f->high);
}

static void begin_depthwise(struct run *r, struct msc_simd_finish *f) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    for (int64_t c = 0; r->no_bias && c < r->k->channels; c++) {
        r->no_bias[c] = -0.0f; // adds to any number without changing it
    }
    f->scales = r->scales;
    f->offsets = r->offsets;
    f->bias = r->k->bias ? r->k->bias : r->no_bias;
    r->depthwise = (struct msc_weighted_depthwise){
        .k = r->k, .weights = r->pack->taps, .in = in->data, .flip = r->quant->low < 0 ? 0x80 : 0};
    msc_weighted_depthwise_begin(&r->depthwise, (uint8_t)r->quant->zero_points[0],
                                 r->is_direct ? f : NULL, r->depthwise_scratch);
}

static void run_direct(const struct run *r) {
    const struct msc_quantized *form = &r->call->quantized[0];
    struct msc_simd_bytes q = msc_simd_bytes_of(form->quant);
    for (int64_t chunk = 0; chunk < r->chunks->n; chunk++) {
        msc_weighted_depthwise_quantize(&r->depthwise, chunk,
                                        (uint8_t *)form->view.data + chunk * r->chunks->out, &q);
    }
}

enum msc_status msc_weighted_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread) {
    const struct msc_weighted *k = kernel;
    const struct msc_weighted_variant *v = call->weights;
    struct run r = {.k = k, .call = call, .quant = call->inputs[k->input].quant};
    void *memory;
    MSC_TRY(choose_unit(&r, v, thread));
    r.end = k->ends[r.unit == MSC_WEIGHTED_FLOAT ? 0 : r.unit == MSC_WEIGHTED_WHOLE ? 1 : 2];
    struct msc_simd_finish finish = {.sums = NULL};
    r.is_direct = is_direct(&r, &finish);
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, place(&r, NULL)));
    place(&r, memory);
    set_channels(&r, v);
    if (r.unit == MSC_WEIGHTED_DEPTHWISE) {
        begin_depthwise(&r, &finish);
    }
    if (r.is_direct) {
        run_direct(&r);
        return MSC_OK;
    }
    float *all = call->outputs[0].data;
    for (int64_t chunk = 0; chunk < r.chunks->n; chunk++) {
        int64_t begin = chunk * r.chunks->out;
        float *out = all ? all + begin : r.floats;
        MSC_TRY(multiply(&r, chunk, out, thread));
        finish_chunk(&r, begin, out);
    }
    return MSC_OK;
}
