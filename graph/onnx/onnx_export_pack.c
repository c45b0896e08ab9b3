// Integers of a weight in as many bits as they have, and the nodes that unpack them.
//
// Integers of 2, 3, 5, 6 and 7 bits are written as planes of one bit each: of four integers in a row,
// bit k makes a number of 4 bits, and plane k is these of all integers. Gather takes the bits of each
// number from a table, MatMulInteger adds the planes up, each times its power of two; where integers
// have a sign, the last one's is negative. All of it is constant: ONNX Runtime and OpenVINO compute it
// once, at load (shifts OpenVINO would not), and then see the bytes that 8 bits are stored as.
#include "graph/onnx/onnx_export_internal.h"

#include "graph/packing.h"

#include <string.h>

enum { IN_ROW = 4 };

// Adds a step without a name, as there are many of them.
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

// Plane by plane, the lowest bit first; numbers of 4 bits two in a byte, the first in the low half.
static enum msc_status add_planes(const char **out, struct msc_onnx_export *e, const char *base,
                                  int32_t bits, const int32_t values[], size_t n) {
    size_t length = (n + IN_ROW - 1) / IN_ROW, n_bytes = ((size_t)bits * length + 1) / 2;
    const int64_t dims[2] = {bits, (int64_t)length};
    const char *name = msc_arena_printf(&e->arena, "%s_packed", base);
    uint8_t *data = msc_arena_alloc(&e->arena, n_bytes + 1);
    if (name == NULL || data == NULL) {
        return msc_onnx__no_memory(e);
    }
    for (int32_t bit = 0; bit < bits; bit++) {
        for (size_t i = 0; i < n; i++) {
            size_t number = (size_t)bit * length + i / IN_ROW;
            size_t place = number % 2 * IN_ROW + i % IN_ROW;
            data[number / 2] |= (uint8_t)(((uint32_t)values[i] >> bit & 1) << place);
        }
    }
    return msc_onnx__add_initializer(out, e, name, MSC_ONNX_UINT4, 2, dims, data, n_bytes);
}

// ---- Constants that all weights share, made for the first -------------------------------------

static enum msc_status share_table(struct msc_onnx_export *e) {
    static const uint8_t table[1 << IN_ROW][IN_ROW] = {
        {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 0}, {1, 0, 1, 0},
        {0, 1, 1, 0}, {1, 1, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 1}, {0, 1, 0, 1}, {1, 1, 0, 1},
        {0, 0, 1, 1}, {1, 0, 1, 1}, {0, 1, 1, 1}, {1, 1, 1, 1},
    };
    static const int64_t dims[2] = {1 << IN_ROW, IN_ROW};
    return e->unpacking.table != NULL
               ? MSC_OK
               : msc_onnx__add_initializer(&e->unpacking.table, e, "bits_of", MSC_ONNX_UINT8, 2,
                                           dims, table, sizeof(table));
}

// A row for each plane.
static enum msc_status share_dims(struct msc_onnx_export *e) {
    static const int64_t dims[2] = {0, -1};
    return e->unpacking.dims != NULL ? MSC_OK
                                     : add_numbers(&e->unpacking.dims, e, "planes_dims", dims, 2);
}

static enum msc_status share_powers(const char **out, struct msc_onnx_export *e, int32_t bits,
                                    bool is_signed) {
    const char **shared = &e->unpacking.powers[is_signed][bits];
    int64_t n = bits;
    if (*shared == NULL) {
        int8_t *powers = msc_arena_alloc(&e->arena, (size_t)n);
        if (powers == NULL) {
            return msc_onnx__no_memory(e);
        }
        for (int32_t bit = 0; bit < bits; bit++) {
            powers[bit] = (int8_t)(is_signed && bit == bits - 1 ? -(1 << bit) : 1 << bit);
        }
        MSC_TRY(msc_onnx__add_initializer(shared, e, "powers", MSC_ONNX_INT8, 1, &n, powers,
                                          (size_t)n));
    }
    *out = *shared;
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

// *value, planes, becomes their integers in one row, with what fills up the last number.
static enum msc_status add_up(const char **value, struct msc_onnx_export *e, int32_t bits,
                              bool is_signed) {
    const char *inputs[2];
    MSC_TRY(share_table(e));
    MSC_TRY(share_dims(e));
    MSC_TRY(cast(value, e, "rows", MSC_ONNX_INT32));
    inputs[0] = e->unpacking.table;
    inputs[1] = *value;
    MSC_TRY(add(&inputs[0], e, "Gather", "bits", inputs, 2));
    inputs[1] = e->unpacking.dims;
    MSC_TRY(add(&inputs[1], e, "Reshape", "planes", inputs, 2));
    MSC_TRY(share_powers(&inputs[0], e, bits, is_signed));
    MSC_TRY(add(value, e, "MatMulInteger", "sums", inputs, 2));
    return cast(value, e, "codes", is_signed ? MSC_ONNX_INT8 : MSC_ONNX_UINT8);
}

// The first n of a row.
static enum msc_status cut(const char **value, struct msc_onnx_export *e, int64_t n) {
    static const int64_t zero = 0;
    const char *inputs[3] = {*value};
    MSC_TRY(add_numbers(&inputs[1], e, "begin", &zero, 1));
    MSC_TRY(add_numbers(&inputs[2], e, "end", &n, 1));
    return add(value, e, "Slice", "cut", inputs, 3);
}

static enum msc_status put_planes(const char **out, struct msc_onnx_export *e, const char *base,
                                  const struct msc_onnx_integers *type, int32_t bits, int n_dims,
                                  const int64_t dims[], const int32_t values[], size_t n) {
    const char *inputs[2], *name = msc_arena_printf(&e->arena, "%s_quantized", base);
    MSC_TRY(add_planes(&inputs[0], e, base, bits, values, n));
    MSC_TRY(add_up(&inputs[0], e, bits, type->low < 0));
    if (n % IN_ROW != 0) {
        MSC_TRY(cut(&inputs[0], e, (int64_t)n));
    }
    MSC_TRY(add_numbers(&inputs[1], e, "dims", dims, (size_t)n_dims));
    MSC_TRY(add(out, e, "Reshape", name, inputs, 2));
    return type->bits == 4 ? cast(out, e, "narrow", type->onnx) : MSC_OK;
}

enum msc_status msc_onnx__put_packed(const char **out, struct msc_onnx_export *e, const char *base,
                                     const struct msc_onnx_integers *type, int32_t bits, int n_dims,
                                     const int64_t dims[], const int32_t values[], size_t n) {
    bool is_counted = e->options->sites->scheme.target != NULL;
    int32_t packed = is_counted || n == 0 ? msc_packed_bits((int64_t)n, bits) : bits;
    if (packed < 8 && packed != 4) {
        return put_planes(out, e, base, type, packed, n_dims, dims, values, n);
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
