#include "graph/reference/reference_internal.h"

#include <string.h>

// Maps an output coordinate `i` to an input coordinate; -1 means the constant. `i` counts from the
// first input element, so it is negative in leading padding.
typedef int64_t (*pad_source_fn)(int64_t i, int64_t length);

static int64_t source_constant(int64_t i, int64_t length) {
    return i < 0 || i >= length ? -1 : i;
}

static int64_t source_edge(int64_t i, int64_t length) {
    return i < 0 ? 0 : i >= length ? length - 1 : i;
}

static int64_t source_reflect(int64_t i, int64_t length) {
    if (length == 1) {
        return 0;
    }
    int64_t period = 2 * (length - 1);
    int64_t at = (i % period + period) % period;
    return at < length ? at : period - at;
}

static int64_t source_wrap(int64_t i, int64_t length) {
    return (i % length + length) % length;
}

static const struct {
    const char *name;
    pad_source_fn source;
} modes[] = {
    {"constant", source_constant},
    {"edge", source_edge},
    {"reflect", source_reflect},
    {"wrap", source_wrap},
};

static pad_source_fn find_mode(const char *name) {
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(name, modes[i].name) == 0) {
            return modes[i].source;
        }
    }
    return NULL;
}

struct pad {
    const struct msc_view *x, *out;
    pad_source_fn source;
    int64_t begins[MSC_MAX_DIMS];
    int64_t strides[MSC_MAX_DIMS];
    _Alignas(8) char constant[8]; // holds one element
    size_t bytes;
};

// Fills a row of the last axis. `from` has the same meaning as in fill_axis.
static void fill_row(const struct pad *p, int64_t from, char *to) {
    int axis = p->out->n_dims - 1;
    int64_t begin = p->begins[axis], length = p->x->dims[axis], n = p->out->dims[axis];
    // Elements [first, end) of the row are inside the input.
    int64_t first = begin > 0 ? (begin < n ? begin : n) : 0;
    int64_t end = begin + length < n ? begin + length : n;
    end = from < 0 || end < first ? first : end;
    const char *row = (const char *)p->x->data + (size_t)(from < 0 ? 0 : from) * p->bytes;
    for (int64_t i = 0; i < n; i++) {
        if (i == first && end > first) {
            memcpy(to + (size_t)i * p->bytes, row + (size_t)(i - begin) * p->bytes,
                   (size_t)(end - first) * p->bytes);
            i = end - 1;
            continue;
        }
        int64_t at = from < 0 ? -1 : p->source(i - begin, length);
        memcpy(to + (size_t)i * p->bytes, at < 0 ? p->constant : row + (size_t)at * p->bytes,
               p->bytes);
    }
}

// Fills the output's axes from `axis` on, at *to. `from` is the input offset of the outer axes, or
// -1 if their position is in constant padding.
static void fill_axis(const struct pad *p, int axis, int64_t from, char **to) {
    if (axis == p->out->n_dims) { // a scalar
        memcpy(*to, p->x->data, p->bytes);
        return;
    }
    if (axis == p->out->n_dims - 1) {
        fill_row(p, from, *to);
        *to += (size_t)p->out->dims[axis] * p->bytes;
        return;
    }
    for (int64_t i = 0; i < p->out->dims[axis]; i++) {
        int64_t at = p->source(i - p->begins[axis], p->x->dims[axis]);
        fill_axis(p, axis + 1, from < 0 || at < 0 ? -1 : from + at * p->strides[axis], to);
    }
}

// Reads the constant from the operand, else from the attribute; 0 if neither exists.
static enum msc_status read_constant(struct pad *p, const struct msc_reference_call *call) {
    struct msc_view constant = {.data = p->constant, .dtype = p->x->dtype};
    int position = msc_joint_operand(call->joint, "pad_value");
    float value = 0;
    if (position >= 0 && msc_reference__has(call, position)) {
        const struct msc_view *operand = &call->operands[position];
        if (msc_view_n_elements(operand) != 1) {
            return MSC_FAIL(MSC_E_INVALID, "joint %s: pad_value has %lld numbers, expected one",
                            call->joint->name, (long long)msc_view_n_elements(operand));
        }
        if (operand->dtype == p->x->dtype) {
            memcpy(p->constant, operand->data, p->bytes);
        } else {
            msc_reference__set_double_at(&constant, 0, msc_reference__get_double_at(operand, 0));
        }
        return MSC_OK;
    }
    if (msc_reference__get_text(call, "pad_value")[0] != '\0') {
        MSC_TRY(msc_reference__get_float(&value, call, "pad_value"));
    }
    msc_reference__set_double_at(&constant, 0, (double)value);
    return MSC_OK;
}

enum msc_status msc_reference__pad(const struct msc_reference_call *call) {
    struct pad p = {.x = &call->operands[0], .out = &call->outputs[0]};
    const char *mode = msc_reference__get_text(call, "pad_mode");
    p.source = find_mode(mode);
    if (!p.source) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: pad_mode '%s' is not supported",
                        call->joint->name, mode);
    }
    int64_t widths[2 * MSC_MAX_DIMS];
    int n;
    MSC_TRY(
        msc_reference__param_ints(widths, &n, call, "pad_width", "pad_width", 2 * MSC_MAX_DIMS));
    if (n != 2 * p.x->n_dims) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: pad_width has %d numbers, expected %d",
                        call->joint->name, n, 2 * p.x->n_dims);
    }
    if (p.source != source_constant && msc_view_n_elements(p.x) == 0) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: pad_mode '%s' needs a tensor that is not empty",
                        call->joint->name, mode);
    }
    memcpy(p.begins, widths, sizeof(int64_t) * (size_t)p.x->n_dims);
    msc_reference__strides(p.strides, p.x->n_dims, p.x->dims);
    p.bytes = msc_dtype_bytes(p.x->dtype);
    MSC_TRY(read_constant(&p, call));
    char *to = p.out->data;
    fill_axis(&p, 0, 0, &to);
    return MSC_OK;
}
