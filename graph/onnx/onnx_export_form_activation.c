// Writes scalars and activation functions so that the runtime matches its byte kernels for sums and
// products.
#include "graph/onnx/onnx_export_form.h"

#include "graph/target.h"

#include <math.h>

enum { SIGNED_OFFSET = 128, MOST_BYTE = 255 };

// Writes the scalar of a sum as a DequantizeLinear: the byte is 1 above or below the zero point,
// and the scale is the scalar's magnitude. The constant has as many axes as the other operand, so
// that the kernel can use the layout of convolutions.
static enum msc_status add_number(const char **out, struct msc_onnx_joint *j, int n_dims,
                                  double value) {
    static const int64_t ones[MSC_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    const char *inputs[3];
    uint8_t *bytes = msc_arena_alloc(&j->e->arena, 2);
    float *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    const char *name = msc_arena_printf(&j->e->arena, "%s.number", j->joint->name);
    MSC_TRY(MSC_ALLOCATED(bytes && scale && name));
    bytes[0] = value > 0;
    bytes[1] = value < 0;
    *scale = value == 0 ? 1 : (float)fabs(value);
    MSC_TRY(
        msc_onnx__add_initializer(&inputs[0], j->e, name, MSC_ONNX_UINT8, n_dims, ones, bytes, 1));
    MSC_TRY(msc_onnx__add_initializer(&inputs[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, scale,
                                      sizeof(*scale)));
    MSC_TRY(
        msc_onnx__add_initializer(&inputs[2], j->e, name, MSC_ONNX_UINT8, 0, NULL, bytes + 1, 1));
    return msc_onnx__add_step(out, j->e, "DequantizeLinear", name, inputs, 3);
}

static int count_dims(const struct msc_onnx_joint *j, int32_t tensor) {
    return msc_graph_tensor(j->e->graph, tensor)->n_dims;
}

enum msc_status msc_onnx__form_sum(bool *is_written, struct msc_onnx_joint *j) {
    struct msc_affine a;
    const char *terms[2], *output = j->e->names[j->joint->outputs[0]];
    bool is_sum = j->joint->op == MSC_OP_ADD;
    if (!msc_graph__read_affine(&a, j->e->graph, j->joint)) {
        return MSC_OK;
    }
    int32_t operand = a.activation == j->joint->operands[0] ? 0 : 1;
    if (msc_onnx__byte_edit(j->e, j->joint->id, operand) == NULL ||
        msc_onnx__edit_behind(j->e, j->joint->outputs[0]) == NULL) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__operand(&terms[0], j->e, j->joint, operand));
    MSC_TRY(add_number(&terms[1], j, count_dims(j, a.activation), is_sum ? a.shift : a.factor));
    *is_written = true;
    return msc_onnx__add_node(&j->node, j->e, is_sum ? "Add" : "Mul", j->joint->name, terms, 2,
                              &output, 1);
}

enum msc_status msc_onnx__form_hard_sigmoid(bool *is_written, struct msc_onnx_joint *j) {
    const char *value, *scaled[3], *terms[2], *output = j->e->names[j->joint->outputs[0]];
    float alpha = 0, beta = 0, *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    const char *name = msc_arena_printf(&j->e->arena, "%s.alpha", j->joint->name);
    if (!msc_onnx__is_saturated_sum(j->e, j->joint)) {
        return MSC_OK;
    }
    MSC_TRY(msc_onnx__operand(&value, j->e, j->joint, 0));
    const Onnx__NodeProto *pair = msc_onnx__pair_of(j->e, value);
    MSC_TRY(MSC_ALLOCATED(scale && name));
    (void)msc_joint_attr_float(j->joint, "alpha", &alpha);
    (void)msc_joint_attr_float(j->joint, "beta", &beta);
    *scale = alpha * msc_onnx__byte_edit(j->e, j->joint->id, 0)->quant.scales[0];
    scaled[0] = pair->input[0];
    scaled[2] = pair->input[2];
    MSC_TRY(msc_onnx__add_initializer(&scaled[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, scale,
                                      sizeof(*scale)));
    MSC_TRY(msc_onnx__add_step(&terms[0], j->e, "DequantizeLinear", name, scaled, 3));
    MSC_TRY(add_number(&terms[1], j, count_dims(j, j->joint->operands[0]), (double)beta));
    *is_written = true;
    return msc_onnx__add_node(&j->node, j->e, "Add", j->joint->name, terms, 2, &output, 1);
}

// The factor clip(x + 3, 0, 6) / 6 of a hard swish, for bytes x = (q - z) * s. If 3 is k steps of
// s, the factor is (c - (z - k)) * s / 6, with c = clip(q, z - k, z + k). Nothing is rounded
// between x and the product.
struct gate {
    const struct msc_quant *x;
    int32_t offset;      // added to x's integers to get its bytes
    int32_t zero, limit; // lowest and highest value of c
};

// If 3 / s is this close to an integer, the difference counts as rounding error of float32.
static const double most_off = 1e-3;

static bool find_gate(struct gate *g, const struct msc_onnx_export *e, const struct msc_joint *j) {
    const struct msc_edit *edit = msc_onnx__byte_edit(e, j->id, 0);
    if (edit == NULL || msc_onnx__edit_behind(e, j->outputs[0]) == NULL) {
        return false;
    }
    double steps = (double)MSC_HARD_SWISH_CUT / (double)edit->quant.scales[0];
    int32_t offset = edit->quant.low < 0 ? SIGNED_OFFSET : 0;
    if (!(steps < MOST_BYTE + 1) || fabs(steps - rint(steps)) > most_off) {
        return false;
    }
    int32_t zero = edit->quant.zero_points[0] + offset, n = (int32_t)rint(steps);
    *g = (struct gate){.x = &edit->quant, .offset = offset, .zero = zero - n, .limit = zero + n};
    g->limit = g->limit < MOST_BYTE ? g->limit : MOST_BYTE;
    return n > 0 && g->zero >= 0;
}

static enum msc_status limit_gate(const char **bytes, struct msc_onnx_joint *j,
                                  const struct gate *g) {
    const char *inputs[3] = {*bytes};
    const char *name = msc_arena_printf(&j->e->arena, "%s.gate", j->joint->name);
    uint8_t *limits = msc_arena_alloc(&j->e->arena, 2);
    if (g->zero <= g->x->low + g->offset && g->limit >= g->x->high + g->offset) {
        return MSC_OK;
    }
    MSC_TRY(MSC_ALLOCATED(name && limits));
    limits[0] = (uint8_t)g->zero;
    limits[1] = (uint8_t)g->limit;
    for (int i = 0; i < 2; i++) {
        MSC_TRY(msc_onnx__add_initializer(&inputs[1 + i], j->e, name, MSC_ONNX_UINT8, 0, NULL,
                                          &limits[i], 1));
    }
    return msc_onnx__add_step(bytes, j->e, "Clip", name, inputs, 3);
}

enum msc_status msc_onnx__form_hard_swish(bool *is_written, struct msc_onnx_joint *j) {
    struct gate g;
    const char *factors[2], *gate[3], *output = j->e->names[j->joint->outputs[0]];
    const char *name = msc_arena_printf(&j->e->arena, "%s.gate", j->joint->name);
    float *scale = msc_arena_alloc(&j->e->arena, sizeof(*scale));
    uint8_t *zero = msc_arena_alloc(&j->e->arena, 1);
    if (!find_gate(&g, j->e, j->joint)) {
        return MSC_OK;
    }
    MSC_TRY(MSC_ALLOCATED(name && scale && zero));
    *scale = g.x->scales[0] / (2 * MSC_HARD_SWISH_CUT);
    *zero = (uint8_t)g.zero;
    MSC_TRY(msc_onnx__operand(&factors[0], j->e, j->joint, 0));
    gate[0] = msc_onnx__pair_of(j->e, factors[0])->input[0];
    MSC_TRY(limit_gate(&gate[0], j, &g));
    MSC_TRY(msc_onnx__add_initializer(&gate[1], j->e, name, MSC_ONNX_FLOAT, 0, NULL, scale,
                                      sizeof(*scale)));
    MSC_TRY(msc_onnx__add_initializer(&gate[2], j->e, name, MSC_ONNX_UINT8, 0, NULL, zero, 1));
    MSC_TRY(msc_onnx__add_step(&factors[1], j->e, "DequantizeLinear", name, gate, 3));
    *is_written = true;
    return msc_onnx__add_node(&j->node, j->e, "Mul", j->joint->name, factors, 2, &output, 1);
}
