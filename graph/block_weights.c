#include "graph/block_weights.h"

#include <string.h>

// Limits of ONNX Runtime 1.32; blocks of more than 256 are possible only for 4 and 8 bits.
enum { LEAST_BLOCK = 16, MOST_OF_BLOCK = 256, MOST_BITS = 8 };

bool msc_block_weight_is_summed(const struct msc_tensor *t, int32_t axis) {
    return axis == (strcmp(t->layout, "IO") == 0 ? 0 : 1);
}

// Rows of a table are gathered without the codes that fill their last block, which a product has.
// So a table that a product reads as well must have whole blocks.
struct readers {
    bool has_product, has_table;
};

static bool read_operand(struct readers *r, const struct msc_graph *g, const struct msc_joint *j,
                         int32_t operand, const struct msc_quant *q) {
    const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_weight_of(g, j->operands[operand]));
    if ((j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS) && operand == 1) {
        r->has_product = true;
        return msc_block_weight_is_summed(t, q->axis) &&
               msc_graph_tensor(g, j->operands[0])->n_dims > 1;
    }
    int64_t axis = 1;
    r->has_table = true;
    return j->op == MSC_OP_TAKE && operand == 0 && msc_joint_attr_i64(j, "axis", &axis) &&
           (axis == 0 || axis == -2) && q->axis == 1;
}

static bool find_readers(struct readers *r, const struct msc_graph *g, int32_t weight,
                         const struct msc_quant *q) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_operands; k++) {
            if (j->operands[k] == MSC_NO_ID || msc_graph_weight_of(g, j->operands[k]) != weight) {
                continue;
            }
            bool is_passed = j->op == MSC_OP_CONSTANT && !msc_graph_is_output(g, j->outputs[0]);
            if (!is_passed && !read_operand(r, g, j, k, q)) {
                return false;
            }
        }
    }
    return r->has_product || r->has_table;
}

static bool has_zero_points(const struct msc_quant *q) {
    for (int32_t i = 0; i < q->n; i++) {
        if (q->zero_points[i] != 0) {
            return true;
        }
    }
    return q->low >= 0;
}

bool msc_block_weight_describe(struct msc_block_weight *out, const struct msc_graph *g,
                               int32_t weight, const struct msc_quant *q,
                               const struct msc_target *target) {
    const struct msc_tensor *t = msc_graph_tensor(g, weight);
    struct readers readers = {0};
    bool fits = target != NULL && target->has_block_operators && q != NULL &&
                q->type == MSC_DTYPE_NONE && q->blocks == NULL && q->bits <= MOST_BITS &&
                q->group_axes == 1 && t->n_dims == 2 && q->group_size >= LEAST_BLOCK &&
                q->group_size <= MOST_OF_BLOCK && (q->group_size & (q->group_size - 1)) == 0;
    if (!fits || msc_tensor_n_elements(t) == 0 || !find_readers(&readers, g, weight, q)) {
        return false;
    }
    *out = (struct msc_block_weight){.n_columns = t->dims[q->axis],
                                     .n_rows = t->dims[1 - q->axis],
                                     .block_size = q->group_size,
                                     .has_zero_points = has_zero_points(q)};
    while (out->block_size / 2 >= LEAST_BLOCK && out->block_size / 2 >= out->n_columns) {
        out->block_size /= 2;
    }
    out->n_blocks = (out->n_columns + out->block_size - 1) / out->block_size;
    out->bits = q->bits <= 2 ? 2 : q->bits <= 4 ? 4 : 8;
    out->offset = q->low < 0 ? 1 << (out->bits - 1) : 0;
    out->has_products = readers.has_product;
    bool fills_row = msc_block_weight_row(out) == out->n_columns;
    return !readers.has_table || (fills_row && out->n_columns * out->bits % 8 == 0);
}

int64_t msc_block_weight_row(const struct msc_block_weight *b) {
    return b->has_products ? b->n_blocks * b->block_size : b->n_columns;
}

int64_t msc_block_weight_row_bytes(const struct msc_block_weight *b, int64_t n) {
    return (n * b->bits + 7) / 8;
}

int64_t msc_block_weight_bytes(const struct msc_block_weight *b) {
    int64_t of_zero_points = b->has_zero_points ? msc_block_weight_row_bytes(b, b->n_blocks) : 0;
    int64_t of_codes = msc_block_weight_row_bytes(b, msc_block_weight_row(b));
    return b->n_rows * (of_codes + of_zero_points + 4 * b->n_blocks);
}
