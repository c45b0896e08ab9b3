// Converts the input of a step for the unit that computes it (cpu_gemm.h): expands integers to
// floats, flips the sign bit of int8, splits integers into digits (kernels/lowering/digits.h), and
// adds padding.
#include "kernels/cpu/cpu_gemm_run.h"

#include <string.h>

int32_t msc_cpu_gemm__zero_point(const struct msc_quant *q, int64_t i) {
    return q->zero_points[i] + (q->low < 0 ? 128 : 0);
}

bool msc_cpu_gemm__copies_input(const struct msc_cpu_gemm_run *r) {
    if (r->chunks->is_padded) {
        return true;
    }
    switch (r->unit) {
    case MSC_CPU_GEMM_FLOAT:
    case MSC_CPU_GEMM_FLOAT_INDIRECT:
    case MSC_CPU_GEMM_FLOAT_DEPTHWISE:
        return r->quant != NULL;
    case MSC_CPU_GEMM_DEPTHWISE:
    case MSC_CPU_GEMM_WINOGRAD:
        return false;
    case MSC_CPU_GEMM_INDIRECT:
        return r->quant->low < 0 || msc_cpu_gemm_indirect_read_beyond(r->k);
    case MSC_CPU_GEMM_INT8:
        return r->quant->low < 0 || r->digits.n > 1;
    default:
        return true;
    }
}

// Converts n input elements, beginning at `first`, for the unit r->unit. If integers are split into
// digits, writes only digit number `digit` of each.
static void cpu_gemm_input_convert(const struct msc_cpu_gemm_run *r, char *to, int64_t first,
                                   int64_t n, int digit) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    const char *from = (const char *)in->data + (size_t)first * msc_dtype_bytes(in->dtype);
    int shift = r->digits.shift * digit;
    int32_t mask = msc_digits_mask(&r->digits, digit);
    if (!r->quant) {
        memcpy(to, from, (size_t)n * sizeof(float));
    } else if (msc_quant_is_by_channel(r->quant)) {
        bool is_value = msc_cpu_gemm_is_float(r->unit);
        msc_cpu_expand_channels((float *)(void *)to, from, in->dtype, first, n, r->quant, is_value);
    } else if (msc_cpu_gemm_is_float(r->unit)) {
        msc_cpu_dequantize((float *)(void *)to, from, in->dtype, n, r->quant);
    } else if (r->unit == MSC_CPU_GEMM_INTEGER) {
        msc_cpu_expand((float *)(void *)to, from, in->dtype, n, r->quant->zero_points[0], shift,
                       mask);
    } else {
        msc_cpu_recode((uint8_t *)to, (const uint8_t *)from, n, r->quant->low < 0 ? 0x80 : 0, shift,
                       (uint8_t)mask);
    }
}

// The part of the images that a padded chunk covers: the spatial dims of an image (`in`) and of the
// padded chunk, and the image coordinates of the chunk's first element (`first`). If there are
// fewer than three spatial axes, leading axes of length 1 are added.
struct window {
    int64_t in[3], padded[3], first[3];
    int64_t image; // index in the batch
};

static struct window find_window(const struct msc_cpu_gemm_run *r, int64_t chunk) {
    const struct msc_gemm_desc *whole = &r->k->desc, *d = &r->chunks->desc;
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

// Fills n elements with padding. The int8 units get the zero point, or one digit of it; all other
// units get 0.
static void cpu_gemm_input_fill(const struct msc_cpu_gemm_run *r, char *to, int64_t n, int digit) {
    int value = 0;
    if (r->unit >= MSC_CPU_GEMM_INT8) {
        value = msc_cpu_gemm__zero_point(r->quant, 0) >> (r->digits.shift * digit) &
                msc_digits_mask(&r->digits, digit);
    }
    memset(to, value, (size_t)n * (r->unit >= MSC_CPU_GEMM_INT8 ? 1 : sizeof(float)));
}

// Converts one row of the padded input. `row` is the position at which the image's row begins, or
// -1 if the row is outside of the image.
static void convert_row(const struct msc_cpu_gemm_run *r, const struct window *w, char *to,
                        int64_t row, int digit) {
    int64_t channels = r->k->desc.in_channels;
    int64_t element = r->unit >= MSC_CPU_GEMM_INT8 ? 1 : (int64_t)sizeof(float);
    int64_t begin = w->first[2] < 0 ? -w->first[2] : 0;
    int64_t end = w->in[2] - w->first[2];
    end = end > w->padded[2] ? w->padded[2] : end;
    if (row < 0 || begin >= end) {
        cpu_gemm_input_fill(r, to, w->padded[2] * channels, digit);
        return;
    }
    cpu_gemm_input_fill(r, to, begin * channels, digit);
    cpu_gemm_input_convert(r, to + begin * channels * element,
                           (row + w->first[2] + begin) * channels, (end - begin) * channels, digit);
    cpu_gemm_input_fill(r, to + end * channels * element, (w->padded[2] - end) * channels, digit);
}

static void convert_padded(const struct msc_cpu_gemm_run *r, int64_t chunk, int digit) {
    struct window w = find_window(r, chunk);
    int64_t element = r->unit >= MSC_CPU_GEMM_INT8 ? 1 : (int64_t)sizeof(float);
    int64_t row_bytes = w.padded[2] * r->k->desc.in_channels * element;
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

const void *msc_cpu_gemm__input(const struct msc_cpu_gemm_run *r, int64_t chunk, int digit) {
    const struct msc_view *in = &r->call->inputs[r->k->input];
    int64_t first = chunk * r->chunks->in;
    if (!r->input) {
        return (const char *)in->data + (size_t)first * msc_dtype_bytes(in->dtype);
    }
    if (r->chunks->is_padded) {
        convert_padded(r, chunk, digit);
    } else {
        cpu_gemm_input_convert(r, r->input, first, r->chunks->in, digit);
    }
    return r->input;
}
