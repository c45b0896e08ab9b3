// Writes products and table lookups with ONNX Runtime's operators that read weights in blocks
// (graph/block_weights.h). MatMulNBits has no accuracy_level and so multiplies floats.
#include "graph/onnx/onnx_export_form.h"

#include "graph/block_weights.h"

#include <string.h>

enum { DATA, WEIGHT, BIAS };

// A weight's initialisers. Joints that read the same weight share them, because equal initialisers
// of one name are written once.
struct stored {
    struct msc_block_weight is;
    const char *codes, *scales, *zero_points; // "" if there are no zero points
};

static const char *name_of(const struct msc_onnx_export *e, int32_t weight, const char *what) {
    return msc_arena_printf((struct msc_arena *)&e->arena, "%s_%s", e->names[weight], what);
}

// Packs rows of n values each, plus the offset, into codes; the first code is in a byte's low bits.
// `by_row` is the distance of two rows' values, `by_code` that of two values of a row.
static uint8_t *pack(struct msc_onnx_export *e, const struct msc_block_weight *b,
                     const int32_t values[], int64_t n, int64_t by_row, int64_t by_code,
                     int64_t row_bytes) {
    uint8_t *packed = msc_arena_array(&e->arena, (size_t)(b->n_rows * row_bytes) + 1, 1);
    for (int64_t r = 0; packed != NULL && r < b->n_rows; r++) {
        for (int64_t k = 0; k < n; k++) {
            int code = values[r * by_row + k * by_code] + b->offset;
            packed[r * row_bytes + k * b->bits / 8] |= (uint8_t)(code << (k * b->bits % 8));
        }
    }
    return packed;
}

static enum msc_status store_codes(struct stored *s, struct msc_onnx_export *e, int32_t weight,
                                   const struct msc_array *elements, const struct msc_quant *q) {
    const struct msc_block_weight *b = &s->is;
    int64_t row_bytes = msc_block_weight_row_bytes(b, msc_block_weight_row(b));
    const int64_t of_table[2] = {b->n_rows, row_bytes};
    const int64_t of_product[3] = {b->n_rows, b->n_blocks, row_bytes / b->n_blocks};
    bool is_by_row = q->axis == 1;
    struct msc_array *integers;
    const char *name = name_of(e, weight, "codes");
    MSC_TRY(MSC_ALLOCATED(name));
    MSC_TRY(msc_quantize_array(&integers, elements, q));
    uint8_t *packed = pack(e, b, msc_array_data(integers), b->n_columns,
                           is_by_row ? b->n_columns : 1, is_by_row ? 1 : b->n_rows, row_bytes);
    msc_array_release(integers);
    MSC_TRY(MSC_ALLOCATED(packed));
    return msc_onnx__add_initializer(&s->codes, e, name, MSC_ONNX_UINT8, b->has_products ? 3 : 2,
                                     b->has_products ? of_product : of_table, packed,
                                     (size_t)(b->n_rows * row_bytes));
}

static enum msc_status store_factors(struct stored *s, struct msc_onnx_export *e, int32_t weight,
                                     const struct msc_quant *q) {
    const struct msc_block_weight *b = &s->is;
    int64_t by_row = q->axis == 1 ? b->n_blocks : 1, by_block = q->axis == 1 ? 1 : b->n_rows;
    int64_t zero_bytes = msc_block_weight_row_bytes(b, b->n_blocks);
    const int64_t dims[2] = {b->n_rows, b->n_blocks}, zero_dims[2] = {b->n_rows, zero_bytes};
    size_t n = (size_t)(b->n_rows * b->n_blocks);
    float *scales = msc_arena_array(&e->arena, n + 1, sizeof(scales[0]));
    const char *name = name_of(e, weight, "scale"), *zero = name_of(e, weight, "zero_point");
    MSC_TRY(MSC_ALLOCATED(scales && name && zero));
    for (int64_t i = 0; i < (int64_t)n; i++) {
        scales[i] = q->scales[i / b->n_blocks * by_row + i % b->n_blocks * by_block];
    }
    MSC_TRY(msc_onnx__add_initializer(&s->scales, e, name, MSC_ONNX_FLOAT, 2, dims, scales,
                                      n * sizeof(scales[0])));
    s->zero_points = "";
    if (!b->has_zero_points) {
        return MSC_OK;
    }
    uint8_t *packed = pack(e, b, q->zero_points, b->n_blocks, by_row, by_block, zero_bytes);
    MSC_TRY(MSC_ALLOCATED(packed));
    return msc_onnx__add_initializer(&s->zero_points, e, zero, MSC_ONNX_UINT8, 2, zero_dims, packed,
                                     (size_t)(b->n_rows * zero_bytes));
}

// Stores the weight that the joint reads as this operand. False in *is_stored: it is not a weight
// in blocks.
static enum msc_status store(bool *is_stored, struct stored *s, struct msc_onnx_joint *j,
                             int32_t operand) {
    struct msc_onnx_export *e = j->e;
    *is_stored = false;
    if (!msc_onnx__has_forms(e)) {
        return MSC_OK;
    }
    int32_t weight = msc_graph_weight_of(e->graph, j->joint->operands[operand]);
    const struct msc_edit *edit = msc_onnx__edit_at(e, j->joint->id, operand);
    const struct msc_quant *q = msc_edit_quant(edit);
    struct msc_array *elements;
    *is_stored =
        weight != MSC_NO_ID && q != NULL &&
        msc_block_weight_describe(&s->is, e->graph, weight, q, e->options->sites->scheme.target);
    if (!*is_stored) {
        return MSC_OK;
    }
    MSC_TRY(msc_edit_elements(&elements, msc_graph_tensor(e->graph, weight)->data, edit));
    enum msc_status status = store_codes(s, e, weight, elements, q);
    msc_array_release(elements);
    return status == MSC_OK ? store_factors(s, e, weight, q) : status;
}

static enum msc_status add(struct msc_onnx_joint *j, const struct stored *s, const char *op_type,
                           const char *const inputs[], size_t n_inputs) {
    struct msc_onnx_export *e = j->e;
    const char *output = e->names[j->joint->outputs[0]];
    MSC_TRY(msc_onnx__add_domain(e, "com.microsoft", 1));
    MSC_TRY(msc_onnx__add_node(&j->node, e, op_type, j->joint->name, inputs, n_inputs, &output, 1));
    j->node->domain = "com.microsoft";
    MSC_TRY(msc_onnx__put_int(e, j->node, "bits", s->is.bits));
    return msc_onnx__put_int(e, j->node, "block_size", s->is.block_size);
}

enum msc_status msc_onnx__form_block_product(bool *is_written, struct msc_onnx_joint *j) {
    struct stored s;
    const char *inputs[6] = {"", "", "", "", "", ""};
    MSC_TRY(store(is_written, &s, j, WEIGHT));
    if (!*is_written) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__operand(&inputs[0], j->e, j->joint, DATA));
    inputs[1] = s.codes;
    inputs[2] = s.scales;
    inputs[3] = s.zero_points;
    if (j->joint->op == MSC_OP_LINEAR_BIAS) {
        MSC_TRY(msc_onnx__operand(&inputs[5], j->e, j->joint, BIAS));
    }
    MSC_TRY(add(j, &s, "MatMulNBits", inputs, 6));
    MSC_TRY(msc_onnx__put_int(j->e, j->node, "K", s.is.n_columns));
    return msc_onnx__put_int(j->e, j->node, "N", s.is.n_rows);
}

// Turns the codes of a weight that products read, too, into the matrix of a table.
static enum msc_status flatten(struct stored *s, struct msc_onnx_joint *j) {
    const char *inputs[2] = {s->codes};
    const int64_t dims[2] = {s->is.n_rows,
                             msc_block_weight_row_bytes(&s->is, msc_block_weight_row(&s->is))};
    MSC_TRY(msc_onnx__int64s(&inputs[1], j, "rows", dims, 2));
    const char *name = msc_arena_printf(&j->e->arena, "%s.codes", j->joint->name);
    return msc_onnx__add_step(&s->codes, j->e, "Reshape", name, inputs, 2);
}

enum msc_status msc_onnx__form_block_table(bool *is_written, struct msc_onnx_joint *j) {
    struct stored s;
    MSC_TRY(store(is_written, &s, j, 0));
    if (!*is_written) {
        return MSC_OK;
    }
    if (s.is.has_products) {
        MSC_TRY(flatten(&s, j));
    }
    const char *inputs[4] = {s.codes, "", s.scales, s.zero_points};
    MSC_TRY(msc_onnx__operand(&inputs[1], j->e, j->joint, 1));
    MSC_TRY(add(j, &s, "GatherBlockQuantized", inputs, 4));
    MSC_TRY(msc_onnx__put_int(j->e, j->node, "gather_axis", 0));
    return msc_onnx__put_int(j->e, j->node, "quantize_axis", 1);
}
