// Operators of com.microsoft that read weights quantised in blocks, as integers of 2, 4 or 8 bits
// (codes). MatMulNBits becomes a `dequantize` joint with `block_size` of constant codes, and a
// product. GatherBlockQuantized becomes joints that take rows of codes, scales and zero points, and
// a `dequantize` joint of the taken rows. Semantics: ONNX Runtime's documentation.
#include "graph/onnx/onnx_import_compose.h"

#include <assert.h>

// A weight of the node.
struct blocks {
    struct msc_compose c;
    int64_t bits, block_size;
    int64_t rows, length; // elements are [rows, length], with blocks along the length
};

static const struct msc_array *require_constant(struct blocks *b, int input, const char *name) {
    struct msc_value *v = msc_onnx__input(b->c.node, input);
    if (b->c.status == MSC_OK && (v == NULL || v->constant == NULL)) {
        b->c.status = MSC_ONNX_UNSUPPORTED("the input %s is not a constant", name);
    }
    return b->c.status == MSC_OK ? v->constant : NULL;
}

static struct msc_value *constant(struct msc_compose *c, const char *name,
                                  struct msc_array *array) {
    struct msc_value *out = NULL;
    c->status = msc_builder_constant(&out, &c->node->import->builder, name, array);
    msc_array_release(array);
    return c->status == MSC_OK ? out : NULL;
}

// The first `length` codes of each of `rows` rows, which have `stored` codes; a row begins at a
// byte, and the first code is in a byte's low bits. With `is_turned`, the result is [length, rows].
static struct msc_value *unpack(struct blocks *b, const struct msc_array *packed, const char *name,
                                int64_t rows, int64_t length, int64_t stored, bool is_turned) {
    const int64_t dims[2] = {is_turned ? length : rows, is_turned ? rows : length};
    struct msc_compose *c = &b->c;
    struct msc_array *codes;
    if (c->status != MSC_OK) {
        return NULL;
    }
    int64_t row_bytes = (stored * b->bits + 7) / 8;
    if (msc_array_dtype(packed) != MSC_DTYPE_U8) {
        c->status = MSC_FAIL(MSC_E_FORMAT, "%s is %s, expected uint8", name,
                             msc_dtype_name(msc_array_dtype(packed)));
        return NULL;
    }
    if (msc_array_n_elements(packed) != rows * row_bytes) {
        c->status = MSC_FAIL(MSC_E_FORMAT,
                             "%s has %lld bytes, expected %lld rows of %lld codes of "
                             "%lld bits",
                             name, (long long)msc_array_n_elements(packed), (long long)rows,
                             (long long)stored, (long long)b->bits);
        return NULL;
    }
    c->status = msc_array_create(&codes, MSC_DTYPE_U8, 2, dims);
    if (c->status != MSC_OK) {
        return NULL;
    }
    const uint8_t *from = msc_array_data(packed);
    uint8_t *to = msc_array_data(codes);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < length; i++) {
            int64_t bit = i * b->bits;
            int code = from[r * row_bytes + bit / 8] >> (bit % 8) & ((1 << b->bits) - 1);
            to[is_turned ? i * rows + r : r * length + i] = (uint8_t)code;
        }
    }
    struct msc_value *out = constant(c, name, codes);
    if (out != NULL && b->bits == 4) {
        out->format = "uint4";
    }
    return out;
}

// A constant that has `value` for every element of `like`.
static struct msc_value *fill(struct blocks *b, const struct msc_value *like, int value) {
    struct msc_compose *c = &b->c;
    struct msc_array *array;
    if (c->status != MSC_OK) {
        return NULL;
    }
    c->status = msc_array_create(&array, MSC_DTYPE_U8, msc_array_n_dims(like->constant),
                                 msc_array_dims(like->constant));
    if (c->status != MSC_OK) {
        return NULL;
    }
    uint8_t *to = msc_array_data(array);
    for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
        to[i] = (uint8_t)value;
    }
    struct msc_value *out = constant(c, "", array);
    if (out != NULL && b->bits == 4) {
        out->format = "uint4";
    }
    return out;
}

static struct msc_value *dequantize(struct blocks *b, struct msc_value *codes,
                                    struct msc_value *scales, struct msc_value *zeros,
                                    int64_t axis) {
    struct msc_onnx_node *n = b->c.node;
    msc_onnx__set_int(n, "axis", axis);
    msc_onnx__set_int(n, "block_size", b->block_size);
    msc_onnx__set(n, "format", b->c.status == MSC_OK ? codes->format : "");
    struct msc_value *operands[] = {codes, scales, zeros};
    return msc_compose_joint(&b->c, MSC_OP_DEQUANTIZE, operands, zeros == NULL ? 2 : 3);
}

// ---- MatMulNBits ------------------------------------------------------------------------------

static bool is_length(int64_t x) {
    return x >= 1 && x <= INT32_MAX;
}

static enum msc_status read_attrs(struct blocks *b) {
    struct msc_onnx_node *n = b->c.node;
    int64_t prepacked;
    MSC_TRY(msc_onnx__int(&b->bits, n, "bits", 4));
    MSC_TRY(msc_onnx__int(&b->block_size, n, "block_size", 0));
    MSC_TRY(msc_onnx__int(&b->length, n, "K", 0));
    MSC_TRY(msc_onnx__int(&b->rows, n, "N", 0));
    MSC_TRY(msc_onnx__int(&prepacked, n, "weight_prepacked", 0));
    bool has_bits = b->bits == 2 || b->bits == 4 || b->bits == 8;
    if (!has_bits || !is_length(b->block_size) || b->block_size * b->bits % 8 != 0 ||
        !is_length(b->length) || !is_length(b->rows) || prepacked != 0) {
        return MSC_ONNX_UNSUPPORTED("bits is %lld, block_size %lld, K %lld, N %lld and "
                                    "weight_prepacked %lld, expected 2, 4 or 8 bits, blocks that "
                                    "fill bytes, lengths of 1 to 2^31 - 1, and 0",
                                    (long long)b->bits, (long long)b->block_size,
                                    (long long)b->length, (long long)b->rows, (long long)prepacked);
    }
    return msc_onnx__input(n, 4) == NULL
               ? MSC_OK
               : MSC_ONNX_UNSUPPORTED("the input g_idx is not supported; quantise without it");
}

// Converts scales, or zero points that are floats, from [rows * blocks] or [rows, blocks] to
// [blocks, rows].
static struct msc_value *turn_parameters(struct blocks *b, int input, const char *name) {
    const struct msc_array *array = require_constant(b, input, name);
    int64_t n_blocks = (b->length + b->block_size - 1) / b->block_size;
    if (array != NULL && msc_array_n_elements(array) != b->rows * n_blocks) {
        b->c.status =
            MSC_FAIL(MSC_E_FORMAT, "%s has %lld elements, expected %lld", name,
                     (long long)msc_array_n_elements(array), (long long)(b->rows * n_blocks));
    }
    struct msc_value *v = b->c.status == MSC_OK ? b->c.node->inputs[input] : NULL;
    v = msc_compose_reshape(&b->c, v, (int64_t[]){b->rows, n_blocks}, 2);
    v = msc_compose_permute(&b->c, v, (int64_t[]){1, 0}, 2);
    if (v != NULL) {
        assert(v->constant != NULL); // the builder folds moves of constants
        v->name = b->c.node->inputs[input]->name;
    }
    return v;
}

// The weight if the zero points are floats, which no `dequantize` joint can have: computes
// (code - zero point) * scale for each element during the import.
static struct msc_value *with_float_zeros(struct blocks *b, struct msc_value *codes,
                                          struct msc_value *scales, struct msc_value *zeros) {
    const int64_t dims[2] = {b->length, b->rows};
    struct msc_compose *c = &b->c;
    struct msc_array *weight;
    enum msc_dtype dtype = msc_compose_shape(c, scales).dtype;
    scales = msc_compose_cast(c, scales, MSC_DTYPE_F32);
    zeros = msc_compose_cast(c, zeros, MSC_DTYPE_F32);
    if (c->status == MSC_OK) {
        c->status = msc_array_create(&weight, MSC_DTYPE_F32, 2, dims);
    }
    if (c->status != MSC_OK) {
        return NULL;
    }
    const uint8_t *code = msc_array_data(codes->constant);
    const float *scale = msc_array_data(scales->constant), *zero = msc_array_data(zeros->constant);
    float *to = msc_array_data(weight);
    for (int64_t i = 0; i < b->length; i++) {
        for (int64_t r = 0; r < b->rows; r++) {
            int64_t at = i / b->block_size * b->rows + r;
            to[i * b->rows + r] = ((float)code[i * b->rows + r] - zero[at]) * scale[at];
        }
    }
    return msc_compose_cast(c, constant(c, codes->name, weight), dtype);
}

// The weight [K, N].
static struct msc_value *find_weight(struct blocks *b) {
    struct msc_compose *c = &b->c;
    struct msc_onnx_node *n = c->node;
    int64_t n_blocks = (b->length + b->block_size - 1) / b->block_size;
    const struct msc_array *packed = require_constant(b, 1, "B");
    struct msc_value *scales = turn_parameters(b, 2, "scales"), *zeros = NULL;
    struct msc_value *given = msc_onnx__input(n, 3);
    struct msc_value *codes = c->status == MSC_OK
                                  ? unpack(b, packed, n->inputs[1]->name, b->rows, b->length,
                                           n_blocks * b->block_size, true)
                                  : NULL;
    if (given == NULL) {
        zeros = c->status == MSC_OK ? fill(b, scales, 1 << (b->bits - 1)) : NULL;
    } else if (msc_dtype_is_float(msc_compose_shape(c, given).dtype)) {
        return with_float_zeros(b, codes, scales, turn_parameters(b, 3, "zero_points"));
    } else {
        const struct msc_array *array = require_constant(b, 3, "zero_points");
        zeros = unpack(b, array, given->name, b->rows, n_blocks, n_blocks, true);
    }
    return dequantize(b, codes, scales, zeros, 0);
}

enum msc_status msc_onnx__matmul_bits(struct msc_onnx_node *n) {
    struct blocks b = {.c = {.node = n}};
    struct msc_compose *c = &b.c;
    MSC_TRY(read_attrs(&b));
    struct msc_value *operands[2] = {n->inputs[0], find_weight(&b)};
    struct msc_value *y = msc_compose_translate(c, msc_onnx__matmul, MSC_OP_MATMUL, operands, 2);
    struct msc_value *bias = msc_onnx__input(n, 5);
    return msc_compose_end(c, bias == NULL ? y : MSC_COMPOSE(c, MSC_OP_ADD, y, bias));
}

// ---- GatherBlockQuantized ---------------------------------------------------------------------

// Unpacks the codes along the last axis, which holds several per byte. If the tensor's type already
// has 4 bits, returns the tensor unchanged.
static struct msc_value *unpack_last(struct blocks *b, int input, const char *name,
                                     int64_t length) {
    const struct msc_array *array = require_constant(b, input, name);
    if (array == NULL || msc_array_dtype(array) != MSC_DTYPE_U8 ||
        b->c.node->inputs[input]->format[0] != '\0') {
        return b->c.status == MSC_OK ? b->c.node->inputs[input] : NULL;
    }
    int64_t dims[MSC_MAX_DIMS];
    int rank = msc_array_n_dims(array);
    int64_t n = msc_array_n_elements(array), row = rank > 0 ? msc_array_dim(array, -1) : 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = i == rank - 1 ? length : msc_array_dims(array)[i];
    }
    struct msc_value *codes = unpack(b, array, b->c.node->inputs[input]->name,
                                     row > 0 ? n / row : 0, length, length, false);
    const char *format = codes == NULL ? "" : codes->format;
    codes = rank == 2 ? codes : msc_compose_reshape(&b->c, codes, dims, rank);
    if (codes != NULL) {
        codes->format = format;
    }
    return codes;
}

// Scales have the form of the codes, whose last axis has `length`, but one element for each block.
static enum msc_status check_scales(const struct blocks *b, const struct msc_array *data,
                                    const struct msc_array *scales, int64_t axis, int64_t length) {
    int rank = msc_array_n_dims(data);
    bool fits = msc_array_n_dims(scales) == rank;
    for (int i = 0; fits && i < rank; i++) {
        int64_t n = i == rank - 1 ? length : msc_array_dim(data, i);
        n = i == axis ? n / b->block_size + (n % b->block_size > 0) : n;
        fits = msc_array_dim(scales, i) == n;
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_FORMAT,
                           "scales must have the shape of data, with one element for each block of "
                           "%lld along axis %lld",
                           (long long)b->block_size, (long long)axis);
}

enum msc_status msc_onnx__gather_blocks(struct msc_onnx_node *n) {
    struct blocks b = {.c = {.node = n}};
    struct msc_compose *c = &b.c;
    int64_t gather_axis, axis;
    MSC_TRY(msc_onnx__int(&b.bits, n, "bits", 4));
    MSC_TRY(msc_onnx__int(&b.block_size, n, "block_size", 128));
    MSC_TRY(msc_onnx__int(&gather_axis, n, "gather_axis", 0));
    MSC_TRY(msc_onnx__int(&axis, n, "quantize_axis", 1));
    const struct msc_array *data = require_constant(&b, 0, "data");
    const struct msc_array *scales = require_constant(&b, 2, "scales");
    MSC_TRY(c->status);
    int rank = msc_array_n_dims(data);
    bool is_packed = msc_array_dtype(data) == MSC_DTYPE_U8 && n->inputs[0]->format[0] == '\0';
    int64_t normal = axis < 0 ? axis + rank : axis;
    if (rank < 1 || normal < 0 || normal >= rank || b.block_size < 1 ||
        (b.bits != 2 && b.bits != 4 && b.bits != 8)) {
        return MSC_ONNX_UNSUPPORTED("bits is %lld, block_size %lld and quantize_axis %lld, "
                                    "expected 2, 4 or 8 bits and blocks along an axis",
                                    (long long)b.bits, (long long)b.block_size, (long long)axis);
    }
    int64_t length = msc_array_dim(data, -1) * (is_packed ? 8 / b.bits : 1);
    MSC_TRY(check_scales(&b, data, scales, normal, length));
    struct msc_value *codes = unpack_last(&b, 0, "data", length), *zeros = NULL;
    if (msc_onnx__input(n, 3) != NULL) {
        zeros = unpack_last(&b, 3, "zero_points", msc_array_dim(scales, -1));
    } else if (is_packed) {
        zeros = fill(&b, n->inputs[2], 1 << (b.bits - 1));
    }
    struct msc_value *parts[] = {codes, n->inputs[2], zeros};
    int64_t taken = gather_axis < 0 ? gather_axis + rank : gather_axis;
    if (taken == normal) {
        struct msc_value *table = dequantize(&b, codes, parts[1], zeros, normal);
        msc_onnx__set_int(n, "axis", gather_axis);
        return MSC_COMPOSE_LAST(c, MSC_OP_TAKE, table, n->inputs[1]);
    }
    for (int i = 0; i < 3 && c->status == MSC_OK; i++) {
        parts[i] = parts[i] == NULL ? NULL : msc_compose_take(c, parts[i], n->inputs[1], taken);
    }
    int n_axes = msc_compose_shape(c, n->inputs[1]).n_dims;
    normal += normal > taken ? n_axes - 1 : 0;
    return msc_compose_end(c, dequantize(&b, parts[0], parts[1], parts[2], normal));
}
