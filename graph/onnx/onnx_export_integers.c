// Picks integer types of ONNX, and writes initialisers of these types.
#include "graph/onnx/onnx_export_internal.h"

static const struct msc_onnx_integers types[] = {
    {MSC_ONNX_INT4, -8, 7, 4},           {MSC_ONNX_UINT4, 0, 15, 4},
    {MSC_ONNX_INT8, -128, 127, 8},       {MSC_ONNX_UINT8, 0, 255, 8},
    {MSC_ONNX_INT16, -32768, 32767, 16}, {MSC_ONNX_UINT16, 0, 65535, 16},
};

// Picks the first type that is wide enough, signed if the range includes negative numbers. Weights
// of 4 bits, and grouped weights of fewer bits, use 4-bit types. Activations use 8-bit types
// instead: ONNX Runtime 1.31, at its default optimisation level, rejects 4-bit activations after a
// Clip or before a MaxPool.
enum msc_status msc_onnx__pick_integers(struct msc_onnx_integers *out, const struct msc_quant *q,
                                        bool takes_small) {
    bool is_signed = q->low < 0;
    bool is_small = takes_small && (q->bits == 4 || (q->bits < 4 && q->group_size > 0));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        bool has_bits = types[i].bits == 4 ? is_small : q->bits <= types[i].bits;
        bool fits = has_bits && q->low >= types[i].low && q->high <= types[i].high &&
                    (types[i].low < 0) == is_signed;
        if (fits) {
            *out = types[i];
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "no integer type of ONNX has %d bits for %d to %d",
                    (int)q->bits, (int)q->low, (int)q->high);
}

// Packs integers as the type stores them. A byte holds two 4-bit integers, the first in the low
// half.
static void *pack_integers(size_t *n_bytes, struct msc_arena *arena, const int32_t values[],
                           size_t n, const struct msc_onnx_integers *type) {
    *n_bytes = type->bits == 4 ? (n + 1) / 2 : n * (size_t)type->bits / 8;
    void *data = msc_arena_alloc(arena, *n_bytes + 1);
    for (size_t i = 0; data != NULL && i < n; i++) {
        if (type->bits == 16) {
            ((uint16_t *)data)[i] = (uint16_t)values[i];
        } else if (type->bits == 8) {
            ((uint8_t *)data)[i] = (uint8_t)values[i];
        } else {
            ((uint8_t *)data)[i / 2] |= (uint8_t)((values[i] & 15) << (i % 2 == 0 ? 0 : 4));
        }
    }
    return data;
}

enum msc_status msc_onnx__add_integers(const char **out, struct msc_onnx_export *e,
                                       const char *name, const struct msc_onnx_integers *type,
                                       int n_dims, const int64_t dims[], const int32_t values[],
                                       size_t n) {
    size_t n_bytes;
    void *data = pack_integers(&n_bytes, &e->arena, values, n, type);
    MSC_TRY(MSC_ALLOCATED(data && name));
    return msc_onnx__add_initializer(out, e, name, type->onnx, n_dims, dims, data, n_bytes);
}

// True if a zero point is not 0. If all are 0, DequantizeLinear does not need them, and blocks omit
// them. Other tensors keep them: ONNX Runtime matches its integer kernels only with zero points.
static bool has_zero_points(const struct msc_quant *q) {
    for (int32_t i = 0; i < q->n; i++) {
        if (q->zero_points[i] != 0) {
            return true;
        }
    }
    return q->group_size == 0;
}

enum msc_status msc_onnx__add_parameters(const char *out[2], struct msc_onnx_export *e,
                                         const char *base, const struct msc_quant *q,
                                         const struct msc_onnx_integers *type, int n_dims,
                                         const int64_t dims[]) {
    for (int32_t i = 0; i < q->n; i++) {
        if (q->zero_points[i] < type->low || q->zero_points[i] > type->high) {
            return MSC_FAIL(MSC_E_INVALID, "zero point %d of '%s' is not in %d to %d",
                            (int)q->zero_points[i], base, (int)type->low, (int)type->high);
        }
    }
    const char *scale = msc_arena_printf(&e->arena, "%s_scale", base);
    MSC_TRY(MSC_ALLOCATED(scale));
    MSC_TRY(msc_onnx__add_initializer(&out[0], e, scale, MSC_ONNX_FLOAT, n_dims, dims, q->scales,
                                      (size_t)q->n * sizeof(float)));
    out[1] = "";
    if (!has_zero_points(q)) {
        return MSC_OK;
    }
    return msc_onnx__add_integers(&out[1], e, msc_arena_printf(&e->arena, "%s_zero_point", base),
                                  type, n_dims, dims, q->zero_points, (size_t)q->n);
}
