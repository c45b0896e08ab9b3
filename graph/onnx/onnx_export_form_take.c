// Writes a Take from a table of integers. Only the rows taken become floats. A small table is left
// to the runtime, which converts it once, at load: each run then has fewer nodes.
#include "graph/onnx/onnx_export_form.h"

enum { LEAST_ELEMENTS = 1 << 16 }; // of a table that is not small

// The stored form of a table from which rows are taken.
struct table {
    const char *integers, *base;
    struct msc_onnx_factors factors; // one per row, or one for all
    int64_t axis;
    bool is_by_row;
};

static enum msc_status store_table(struct table *out, struct msc_onnx_joint *j, int32_t weight,
                                   const struct msc_quant *q) {
    struct msc_onnx_export *e = j->e;
    const struct msc_tensor *t = msc_graph_tensor(e->graph, weight);
    struct msc_onnx_integers type;
    struct msc_array *integers;
    struct msc_onnx_folded f;
    msc_onnx__describe_folded(&f, t, q);
    MSC_TRY(msc_onnx__pick_integers(&type, q, false));
    MSC_TRY(msc_quantize_array(&integers, t->data, q));
    enum msc_status status =
        msc_onnx__put_packed(&out->integers, e, out->base, &type, q->bits, f.n_dims, f.dims,
                             msc_array_data(integers), (size_t)msc_array_n_elements(integers));
    msc_array_release(integers);
    MSC_TRY(status);
    return msc_onnx__add_factors(&out->factors, e, out->base, q, out->is_by_row ? f.n_dims : 0,
                                 f.scale_dims);
}

static enum msc_status take_rows(const char **value, struct msc_onnx_joint *j, const char *indices,
                                 const struct table *table, const char *what) {
    const char *inputs[2] = {*value, indices};
    const char *name = msc_arena_printf(&j->e->arena, "%s.%s", j->joint->name, what);
    MSC_TRY(msc_onnx__add_step(value, j->e, "Gather", name, inputs, 2));
    return msc_onnx__put_int(j->e, j->e->nodes[j->e->n_nodes - 1], "axis", table->axis);
}

// True if the table is not small, and its only edit is a quantisation with a single scale or one
// scale per row.
static bool describe_table(struct table *out, const struct msc_onnx_export *e,
                           const struct msc_joint *j) {
    int32_t weight = msc_graph_weight_of(e->graph, j->operands[0]);
    const struct msc_edit *edit = msc_onnx__byte_edit(e, j->id, 0);
    if (weight == MSC_NO_ID || edit == NULL) {
        return false;
    }
    const struct msc_tensor *t = msc_graph_tensor(e->graph, weight);
    *out = (struct table){.base = e->names[weight], .is_by_row = edit->quant.axis >= 0};
    (void)msc_joint_attr_i64(j, "axis", &out->axis);
    out->axis += out->axis < 0 ? t->n_dims : 0;
    return t->data != NULL && msc_tensor_n_elements(t) >= LEAST_ELEMENTS &&
           (!out->is_by_row || out->axis == edit->quant.axis);
}

// Targets that store bytes without a sign would store the integers of a product a second time.
bool msc_onnx__takes_integers(const struct msc_onnx_export *e, const struct msc_joint *j) {
    struct table table;
    return msc_onnx__has_forms(e) && j->op == MSC_OP_TAKE &&
           !e->options->sites->scheme.target->stores_unsigned && describe_table(&table, e, j);
}

// Takes rows as integers and converts only the rows taken to floats.
enum msc_status msc_onnx__form_take(bool *is_written, struct msc_onnx_joint *j) {
    struct msc_onnx_export *e = j->e;
    struct table table;
    const char *indices, *value;
    if (!describe_table(&table, e, j->joint)) {
        return MSC_OK;
    }
    int32_t weight = msc_graph_weight_of(e->graph, j->joint->operands[0]);
    MSC_TRY(store_table(&table, j, weight, &msc_onnx__byte_edit(e, j->joint->id, 0)->quant));
    MSC_TRY(msc_onnx__operand(&indices, e, j->joint, 1));
    value = table.integers;
    MSC_TRY(take_rows(&value, j, indices, &table, "integers"));
    if (table.is_by_row && table.factors.zero_points != NULL) {
        MSC_TRY(take_rows(&table.factors.zero_points, j, indices, &table, "zero_points"));
    }
    if (table.is_by_row) {
        MSC_TRY(take_rows(&table.factors.scales, j, indices, &table, "scales"));
    }
    MSC_TRY(msc_onnx__scale_integers(&value, e, j->joint->name, &table.factors));
    j->node = e->nodes[e->n_nodes - 1];
    j->node->output[0] = (char *)e->names[j->joint->outputs[0]];
    *is_written = true;
    return MSC_OK;
}
