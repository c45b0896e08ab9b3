#include "kernels/cpu/weighted.h"

#include <string.h>

// What one call multiplies, and its places in scratch.
struct run {
    const struct msc_weighted *k;
    const struct msc_call *call;
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
    float *scales;
    int32_t *offsets;
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

// Picks the unit for this input and these weights. Integers need both to be integers.
static enum msc_status choose_unit(struct run *r, const struct msc_weighted_variant *v) {
    const struct msc_weighted *k = r->k;
    r->unit = MSC_WEIGHTED_FLOAT;
    r->digits = (struct msc_cpu_digits){1, 0, 0};
    if (r->quant && msc_weighted_is_integer(v)) {
        const struct msc_dense_desc *d = &k->descs[MSC_WEIGHTED_INT8];
        r->unit = MSC_WEIGHTED_WHOLE;
        if (d->kind != MSC_DENSE_CONV_TRANSPOSE && msc_weighted_is_int8(v) &&
            k->backend->base.options.allow_int8 && msc_dense_has_int8(k->backend->engine)) {
            bool pads = d->kind == MSC_DENSE_CONV && has_padding(d);
            r->unit = pads && moved_zero_point(r->quant) != 0 ? MSC_WEIGHTED_INT8_PADDED
                                                              : MSC_WEIGHTED_INT8;
        }
    }
    enum msc_status status = msc_weighted_routine(&r->dense, k, r->unit);
    if (status == MSC_E_UNSUPPORTED && r->unit >= MSC_WEIGHTED_INT8) {
        r->unit = MSC_WEIGHTED_WHOLE;
        status = msc_weighted_routine(&r->dense, k, r->unit);
    }
    MSC_TRY(status);
    MSC_TRY(msc_weighted_pack(&r->pack, k, v, r->unit));
    if (r->unit == MSC_WEIGHTED_FLOAT) {
        return MSC_OK;
    }
    // The int8 routine multiplies q itself. Its sums, too, have to stay below 2^24: on their way out
    // oneDNN may convert them to float32 and back.
    int32_t largest = msc_cpu_largest(r->quant);
    r->digits = msc_cpu_cut(r->unit == MSC_WEIGHTED_WHOLE ? largest : 255, r->pack->largest);
    if (r->digits.n > 0 && largest * r->pack->largest < ((int64_t)1 << 31)) {
        return MSC_OK;
    }
    // Sums that may not fit into int32: no unit computes them over integers.
    r->unit = MSC_WEIGHTED_FLOAT;
    r->digits = (struct msc_cpu_digits){1, 0, 0};
    MSC_TRY(msc_weighted_routine(&r->dense, k, r->unit));
    return msc_weighted_pack(&r->pack, k, v, r->unit);
}

// ---- Scratch ----------------------------------------------------------------------------------

static bool needs_input(const struct run *r) {
    switch (r->unit) {
    case MSC_WEIGHTED_FLOAT:
        return r->quant != NULL;
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
    size_t sums_bytes = (size_t)k->chunk_out * sizeof(int32_t);
    size_t n_in = (size_t)(r->unit == MSC_WEIGHTED_INT8_PADDED ? k->padded_in : k->chunk_in);
    size_t in_bytes = n_in * (is_int8 ? sizeof(uint8_t) : sizeof(float));
    r->dense_scratch = take(memory, &used, msc_dense_scratch_bytes(r->dense));
    r->ewise_scratch = take(memory, &used, msc_ewise_scratch_bytes(r->end));
    r->input = needs_input(r) ? take(memory, &used, in_bytes) : NULL;
    r->sums = is_int8 || r->digits.n > 1 ? take(memory, &used, sums_bytes) : NULL;
    r->product = is_int8 && r->digits.n > 1 ? take(memory, &used, sums_bytes) : NULL;
    r->scales = r->unit != MSC_WEIGHTED_FLOAT ? take(memory, &used, n * sizeof(float)) : NULL;
    r->offsets = is_int8 ? take(memory, &used, n * sizeof(int32_t)) : NULL;
    return used;
}

// ---- Input ------------------------------------------------------------------------------------

// Copies a chunk into the middle of its padding, which is the zero point.
static void recode_padded(const struct run *r, const uint8_t q[], uint8_t flip, int shift,
                          uint8_t mask) {
    const struct msc_dense_desc *d = &r->k->descs[MSC_WEIGHTED_INT8];
    int64_t in[3] = {1, 1, 1}, begin[3] = {0, 0, 0}, padded[3] = {1, 1, 1};
    for (int i = 0; i < d->n_spatial; i++) {
        int a = 3 - d->n_spatial + i;
        in[a] = d->in[i];
        begin[a] = d->pad_begin[i];
        padded[a] = d->in[i] + d->pad_begin[i] + d->pad_end[i];
    }
    uint8_t *out = (uint8_t *)r->input;
    int64_t row = in[2] * d->in_channels;
    int fill = moved_zero_point(r->quant) >> shift & mask;
    memset(out, fill, (size_t)r->k->padded_in);
    for (int64_t i = 0; i < d->batch * in[0] * in[1]; i++) {
        int64_t y = i % in[1], z = i / in[1] % in[0], image = i / (in[0] * in[1]);
        int64_t to =
            ((image * padded[0] + z + begin[0]) * padded[1] + y + begin[1]) * padded[2] + begin[2];
        msc_cpu_recode(out + to * d->in_channels, q + i * row, row, flip, shift, mask);
    }
}

// One digit of a chunk in the form the routine reads.
static const void *prepare_input(const struct run *r, int64_t chunk, int digit) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    int64_t n = r->k->chunk_in;
    const char *from = (const char *)in->data + (size_t)(chunk * n) * msc_dtype_bytes(in->dtype);
    if (!r->input) {
        return from;
    }
    int shift = r->digits.shift * digit;
    int32_t mask = msc_cpu_digit_mask(&r->digits, digit);
    uint8_t flip = r->quant->low < 0 ? 0x80 : 0;
    switch (r->unit) {
    case MSC_WEIGHTED_FLOAT:
        msc_cpu_dequantize((float *)(void *)r->input, from, in->dtype, n, r->quant);
        break;
    case MSC_WEIGHTED_WHOLE:
        msc_cpu_expand((float *)(void *)r->input, from, in->dtype, n, r->quant->zero_points[0],
                       shift, mask);
        break;
    case MSC_WEIGHTED_INT8:
        msc_cpu_recode((uint8_t *)r->input, (const uint8_t *)from, n, flip, shift, (uint8_t)mask);
        break;
    default:
        recode_padded(r, (const uint8_t *)from, flip, shift, (uint8_t)mask);
        break;
    }
    return r->input;
}

// ---- Sums -------------------------------------------------------------------------------------

// A chunk's sums: as float32 in `out`, or as int32 in r->sums.
static enum msc_status multiply(const struct run *r, int64_t chunk, float out[], int thread) {
    int64_t n = r->k->chunk_out;
    bool is_int8 = r->unit >= MSC_WEIGHTED_INT8;
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

enum msc_status msc_weighted_run(void *kernel, struct msc_cpu_backend *b,
                                 const struct msc_call *call, int thread) {
    const struct msc_weighted *k = kernel;
    const struct msc_weighted_variant *v = call->weights;
    struct run r = {.k = k, .call = call, .quant = call->inputs[k->input].quant};
    void *memory;
    MSC_TRY(choose_unit(&r, v));
    r.end = k->ends[r.unit == MSC_WEIGHTED_FLOAT ? 0 : r.unit == MSC_WEIGHTED_WHOLE ? 1 : 2];
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread, place(&r, NULL)));
    place(&r, memory);
    set_channels(&r, v);
    for (int64_t chunk = 0; chunk < k->n_chunks; chunk++) {
        int64_t begin = chunk * k->chunk_out;
        float *out = (float *)call->outputs[0].data + begin;
        MSC_TRY(multiply(&r, chunk, out, thread));
        if (r.end) {
            struct msc_ewise_call end = {
                .inputs = call->inputs,
                .anchor = r.unit >= MSC_WEIGHTED_INT8 ? (const void *)r.sums : out,
                .scales = r.scales,
                .offsets = r.offsets,
                .out = out,
                .begin = begin,
                .end = begin + k->chunk_out,
                .scratch = r.ewise_scratch};
            msc_ewise_run(r.end, &end);
        }
    }
    return MSC_OK;
}
