// Stores integers of a weight in exactly as many bits as they have, with nodes that unpack them.
//
// Integers of 2, 3, 5, 6 and 7 bits are split into parts of 4, 2 and 1 bits, starting at the lowest
// bit with the widest part. Each part is stored as 4-bit numbers. Such a number holds the part of
// one, two or four integers. A 4-bit part is cast to bytes. For the other parts, Gather looks up a
// table of the unpacked bits, already shifted and sign-extended, so that the parts only have to be
// combined. All of these nodes are constant and computed once, at load. For ONNX Runtime, BitwiseOr
// of bytes is the fastest way to combine parts. OpenVINO would repeat the BitwiseOr in each run, so
// other targets get sums of int32, which both runtimes compute at load.
#include "graph/onnx/onnx_export_form.h"

#include "graph/packing.h"

#include <string.h>

enum { IN_ROW = 4, N_NUMBERS = 16 };

// Adds a step whose node has no name, because unpacking adds many nodes.
static enum msc_status add(const char **out, struct msc_onnx_export *e, const char *op_type,
                           const char *wanted, const char *const inputs[], size_t n_inputs) {
    MSC_TRY(msc_onnx__add_step(out, e, op_type, wanted, inputs, n_inputs));
    e->nodes[e->n_nodes - 1]->name = NULL;
    return MSC_OK;
}

static enum msc_status cast(const char **value, struct msc_onnx_export *e, const char *wanted,
                            enum msc_onnx_type type) {
    MSC_TRY(add(value, e, "Cast", wanted, value, 1));
    return msc_onnx__put_int(e, e->nodes[e->n_nodes - 1], "to", type);
}

static enum msc_status add_numbers(const char **out, struct msc_onnx_export *e, const char *wanted,
                                   const int64_t values[], size_t n) {
    MSC_TRY(add(out, e, "Constant", wanted, NULL, 0));
    return msc_onnx__put_ints(e, e->nodes[e->n_nodes - 1], "value_ints", values, n);
}

static enum msc_status reshape(const char **value, struct msc_onnx_export *e, const char *wanted,
                               const int64_t dims[], size_t n) {
    const char *inputs[2] = {*value};
    MSC_TRY(add_numbers(&inputs[1], e, "dims", dims, n));
    return add(value, e, "Reshape", wanted, inputs, 2);
}

// `width` bits of the integers, starting at bit `shift`.
struct part {
    int32_t width, shift;
    bool is_signed; // the highest bit of the part is the sign
};

static int32_t bits_of(uint32_t value, int32_t shift, int32_t width) {
    return (int32_t)(value >> shift & ((1u << width) - 1));
}

// The table that Gather looks up for each 4-bit number: [16, 2] or [16, 2, 2] bytes. Weights share
// tables.
static enum msc_status share_table(const char **out, struct msc_onnx_export *e,
                                   const struct part *part) {
    static const int64_t dims[3] = {N_NUMBERS, 2, 2};
    const char **shared = &e->unpacking.tables[part->width - 1][part->shift][part->is_signed];
    int32_t n_in = IN_ROW / part->width, sign = part->is_signed ? 1 << (part->width - 1) : 0;
    if (*shared == NULL) {
        int8_t *table = msc_arena_alloc(&e->arena, (size_t)(N_NUMBERS * n_in));
        MSC_TRY(MSC_ALLOCATED(table));
        for (int32_t i = 0; i < N_NUMBERS * n_in; i++) {
            int32_t bits = bits_of((uint32_t)(i / n_in), i % n_in * part->width, part->width);
            table[i] = (int8_t)(((bits ^ sign) - sign) * (1 << part->shift));
        }
        MSC_TRY(msc_onnx__add_initializer(shared, e, "bits_of", MSC_ONNX_INT8,
                                          part->width == 1 ? 3 : 2, dims, table,
                                          (size_t)(N_NUMBERS * n_in)));
    }
    *out = *shared;
    return MSC_OK;
}

// Stores this part of all integers. A byte holds two 4-bit numbers, the first in the low half.
static enum msc_status add_part(const char **out, struct msc_onnx_export *e, const char *base,
                                const struct part *part, const int32_t values[], size_t n) {
    size_t n_in = (size_t)(IN_ROW / part->width), n_rows = (n + IN_ROW - 1) / IN_ROW;
    size_t n_bytes = (n_rows * (size_t)part->width + 1) / 2;
    const int64_t dims[3] = {(int64_t)n_rows, 2, 2};
    const char *name = msc_arena_printf(&e->arena, "%s_packed", base);
    uint8_t *data = msc_arena_alloc(&e->arena, n_bytes + 1);
    MSC_TRY(MSC_ALLOCATED(name && data));
    for (size_t i = 0; i < n; i++) {
        size_t number = i / n_in, place = number % 2 * 4 + i % n_in * (size_t)part->width;
        int32_t bits = bits_of((uint32_t)values[i], part->shift, part->width);
        data[number / 2] |= (uint8_t)(bits << place);
    }
    int n_dims = part->width == 4 ? 3 : part->width;
    return msc_onnx__add_initializer(out, e, name, MSC_ONNX_UINT4, n_dims, dims, data, n_bytes);
}

// Unpacks a part to [ceil(n / 4), 2, 2], shifted to its position and sign-extended.
static enum msc_status unpack_part(const char **out, struct msc_onnx_export *e, const char *base,
                                   const struct part *part, const int32_t values[], size_t n) {
    const char *inputs[2];
    enum msc_onnx_type type = msc_onnx__has_forms(e) ? MSC_ONNX_INT8 : MSC_ONNX_INT32;
    if (part->width == 4) {
        MSC_TRY(add_part(out, e, base, part, values, n));
        return cast(out, e, "part", type);
    }
    MSC_TRY(share_table(&inputs[0], e, part));
    MSC_TRY(add_part(&inputs[1], e, base, part, values, n));
    MSC_TRY(cast(&inputs[1], e, "rows", MSC_ONNX_INT32));
    MSC_TRY(add(out, e, "Gather", "part", inputs, 2));
    return type == MSC_ONNX_INT8 ? MSC_OK : cast(out, e, "part", type);
}

static enum msc_status put_together(const char **out, struct msc_onnx_export *e, const char *base,
                                    int32_t bits, bool is_signed, const int32_t values[],
                                    size_t n) {
    const char *op = msc_onnx__has_forms(e) ? "BitwiseOr" : "Add";
    const char *inputs[2];
    for (int32_t width = 4, shift = 0; width > 0; width /= 2) {
        if ((bits & width) == 0) {
            continue;
        }
        const struct part part = {width, shift, is_signed && shift + width == bits};
        MSC_TRY(unpack_part(&inputs[shift > 0], e, base, &part, values, n));
        if (shift > 0) {
            MSC_TRY(add(&inputs[0], e, op, "codes", inputs, 2));
        }
        shift += width;
    }
    *out = inputs[0];
    return is_signed && msc_onnx__has_forms(e)
               ? MSC_OK
               : cast(out, e, "bytes", is_signed ? MSC_ONNX_INT8 : MSC_ONNX_UINT8);
}

// Replaces *value by the list of its first n elements.
static enum msc_status cut(const char **value, struct msc_onnx_export *e, int64_t n) {
    static const int64_t zero = 0, row = -1;
    const char *inputs[3];
    MSC_TRY(reshape(value, e, "row", &row, 1));
    inputs[0] = *value;
    MSC_TRY(add_numbers(&inputs[1], e, "begin", &zero, 1));
    MSC_TRY(add_numbers(&inputs[2], e, "end", &n, 1));
    return add(value, e, "Slice", "cut", inputs, 3);
}

static enum msc_status put_parts(const char **out, struct msc_onnx_export *e, const char *base,
                                 const struct msc_onnx_integers *type, int32_t bits, int n_dims,
                                 const int64_t dims[], const int32_t values[], size_t n) {
    const char *name = msc_arena_printf(&e->arena, "%s_quantized", base);
    MSC_TRY(put_together(out, e, base, bits, type->low < 0, values, n));
    if (n % IN_ROW != 0) {
        MSC_TRY(cut(out, e, (int64_t)n));
    }
    MSC_TRY(reshape(out, e, name, dims, (size_t)n_dims));
    return type->bits == 4 ? cast(out, e, "narrow", type->onnx) : MSC_OK;
}

enum msc_status msc_onnx__put_packed(const char **out, struct msc_onnx_export *e, const char *base,
                                     const struct msc_onnx_integers *type, int32_t bits, int n_dims,
                                     const int64_t dims[], const int32_t values[], size_t n) {
    const struct msc_sites *sites = e->options->sites;
    bool is_counted = sites != NULL && sites->scheme.target != NULL;
    int32_t packed = is_counted || n == 0 ? msc_packed_bits((int64_t)n, bits) : bits;
    if (packed < 8 && packed != 4) {
        return put_parts(out, e, base, type, packed, n_dims, dims, values, n);
    }
    struct msc_onnx_integers stored = *type;
    if (packed == 4) {
        stored.onnx = type->low < 0 ? MSC_ONNX_INT4 : MSC_ONNX_UINT4;
        stored.bits = 4;
    }
    MSC_TRY(msc_onnx__add_integers(out, e, msc_arena_printf(&e->arena, "%s_quantized", base),
                                   &stored, n_dims, dims, values, n));
    return stored.bits == type->bits
               ? MSC_OK
               : cast(out, e, msc_arena_printf(&e->arena, "%s_bytes", base), type->onnx);
}
