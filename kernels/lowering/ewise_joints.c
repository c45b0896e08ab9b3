#include "kernels/lowering/ewise_build.h"
#include "kernels/lowering/lowering.h"

#include <math.h>
#include <string.h>

struct row;
typedef enum msc_status (*emit_fn)(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                   const struct row *row, int32_t *result);

// How an operator becomes instructions. The attributes named in `keys` become parameters of the
// instruction.
struct row {
    enum msc_op op;
    emit_fn emit;
    enum msc_ewise_op instr;
    const char *keys[2];
};

static void parameters(const struct msc_joint *j, const struct row *row, float p[2]) {
    for (int i = 0; i < 2; i++) {
        p[i] = 0;
        if (row->keys[i]) {
            msc_joint_attr_float(j, row->keys[i], &p[i]);
        }
    }
}

static enum msc_status emit_unary(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                  const struct row *row, int32_t *result) {
    int32_t x;
    float p[2];
    parameters(j->joint, row, p);
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    *result = msc_ewise__emit(b, row->instr, x, -1, p[0], p[1]);
    return MSC_OK;
}

static enum msc_status emit_clip(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                 const struct row *row, int32_t *result) {
    int32_t x;
    float low = -INFINITY, high = INFINITY;
    msc_joint_attr_float(j->joint, "min", &low);
    msc_joint_attr_float(j->joint, "max", &high);
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    *result = msc_ewise__emit(b, row->instr, x, -1, low, high);
    return MSC_OK;
}

static enum msc_status emit_elu(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                const struct row *row, int32_t *result) {
    int32_t x;
    float p[2];
    parameters(j->joint, row, p);
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    int32_t power = msc_ewise__emit(b, MSC_EWISE_EXP, x, -1, 0, 0);
    *result = msc_ewise__emit(b, row->instr, x, power, p[0], 0);
    return MSC_OK;
}

static enum msc_status emit_gelu(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                 const struct row *row, int32_t *result) {
    int32_t x, inner;
    const char *form = msc_joint_attr(j->joint, "approximate");
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    if (form && form[0] == 't') {
        inner = msc_ewise__emit(b, MSC_EWISE_TANH_ARGUMENT, x, -1, 0, 0);
        inner = msc_ewise__emit(b, MSC_EWISE_TANH, inner, -1, 0, 0);
    } else {
        inner = msc_ewise__emit(b, MSC_EWISE_SCALE, x, -1, 0.707106781f, 0);
        inner = msc_ewise__emit(b, MSC_EWISE_ERF, inner, -1, 0, 0);
    }
    *result = msc_ewise__emit(b, row->instr, x, inner, 0, 0);
    return MSC_OK;
}

// Combines two operands, or more than two from left to right.
static enum msc_status emit_binary(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                   const struct row *row, int32_t *result) {
    int32_t x, y;
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    if (j->n_operands == 1) {
        x = msc_ewise__emit(b, MSC_EWISE_COPY, x, -1, 0, 0);
    }
    for (int32_t i = 1; i < j->n_operands; i++) {
        MSC_TRY(msc_ewise__operand(b, j, i, &y));
        x = msc_ewise__emit(b, row->instr, x, y, 0, 0);
    }
    *result = x;
    return MSC_OK;
}

// The exponent if it is a constant number, otherwise NaN.
static float fixed_exponent(const struct msc_ewise_builder *b, const struct msc_step_joint *j) {
    if (j->operands[1].kind != MSC_OPERAND_WEIGHT) {
        return NAN;
    }
    const struct msc_array *a = msc_graph_tensor(b->plan->graph, j->operands[1].index)->data;
    return msc_array_n_elements(a) == 1 ? (float)msc_array_get_double(a, 0) : NAN;
}

static enum msc_status emit_power(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                  const struct row *row, int32_t *result) {
    float exponent = fixed_exponent(b, j);
    int32_t x;
    if (exponent != 2.0f && exponent != 3.0f && exponent != 0.5f) {
        return emit_binary(b, j, row, result);
    }
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    if (exponent == 0.5f) {
        *result = msc_ewise__emit(b, MSC_EWISE_SQUARE_ROOT_POWER, x, -1, 0, 0);
        return MSC_OK;
    }
    *result = msc_ewise__emit(b, MSC_EWISE_MULTIPLY, x, x, 0, 0);
    if (exponent == 3.0f) {
        *result = msc_ewise__emit(b, MSC_EWISE_MULTIPLY, *result, x, 0, 0);
    }
    return MSC_OK;
}

static const float *weight_elements(const struct msc_ewise_builder *b,
                                    const struct msc_step_joint *j, const char *role) {
    int position = msc_joint_operand(j->joint, role);
    return msc_array_data(msc_graph_tensor(b->plan->graph, j->operands[position].index)->data);
}

// (x - mean) * (gamma / sqrt(var + epsilon)) + beta, in the order of the reference kernel.
static enum msc_status emit_batch_norm(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                       const struct row *row, int32_t *result) {
    int64_t dims[MSC_MAX_DIMS];
    int64_t n = b->out->dims[1];
    int n_dims = b->out->n_dims;
    float epsilon = 0.0f;
    int32_t x, mean, scale, beta;
    float *scales = msc_arena_array(&b->e->arena, (size_t)n, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(scales));
    const float *gamma = weight_elements(b, j, "gamma");
    const float *var = weight_elements(b, j, "var");
    msc_joint_attr_float(j->joint, "epsilon", &epsilon);
    for (int64_t c = 0; c < n; c++) {
        scales[c] = gamma[c] / sqrtf(var[c] + epsilon);
    }
    for (int d = 0; d < n_dims; d++) {
        dims[d] = d == 1 ? n : 1;
    }
    MSC_TRY(msc_ewise__operand(b, j, 0, &x));
    MSC_TRY(msc_ewise__add_constant(b, weight_elements(b, j, "mean"), n_dims, dims, &mean));
    MSC_TRY(msc_ewise__add_constant(b, scales, n_dims, dims, &scale));
    MSC_TRY(msc_ewise__add_constant(b, weight_elements(b, j, "beta"), n_dims, dims, &beta));
    x = msc_ewise__emit(b, MSC_EWISE_SUBTRACT, x, mean, 0, 0);
    x = msc_ewise__emit(b, row->instr, x, scale, 0, 0);
    *result = msc_ewise__emit(b, MSC_EWISE_ADD, x, beta, 0, 0);
    return MSC_OK;
}

static const struct row rows[] = {
#define EWISE_OP(op, emit, instr, key0, key1)                                                      \
    {MSC_OP_##op, emit_##emit, MSC_EWISE_##instr, {key0, key1}},
#define EWISE_COMPOSED EWISE_OP
#include "kernels/lowering/ewise.def"
};

static const struct row *find_row(enum msc_op op) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return &rows[i];
        }
    }
    return NULL;
}

enum msc_status msc_ewise__emit_joint(struct msc_ewise_builder *b, const struct msc_step_joint *j,
                                      int32_t *result) {
    const struct row *row = find_row(j->joint->op);
    if (!row) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: %s is not element-wise", j->joint->name,
                        msc_op_info(j->joint->op)->name);
    }
    return row->emit(b, j, row, result);
}

static bool has_constant_statistics(const struct msc_graph *g, const struct msc_joint *joint) {
    for (int i = 1; i < joint->n_operands; i++) {
        if (!msc_lowering_constant(g, joint, i)) {
            return false;
        }
    }
    return msc_lowering_axis(joint, "axis", msc_lowering_output(g, joint)->n_dims) == 1;
}

bool msc_ewise_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    const struct row *row = find_row(joint->op);
    float number;
    if (!row || joint->n_outputs != 1 || !msc_lowering_is_f32(g, joint)) {
        return false;
    }
    for (int i = 0; i < 2 && row->keys[i]; i++) {
        if (!msc_joint_attr_float(joint, row->keys[i], &number)) {
            return false;
        }
    }
    switch (joint->op) {
    case MSC_OP_BATCH_NORM:
        return has_constant_statistics(g, joint);
    case MSC_OP_CLIP: // computed limits are not accepted
        return !msc_lowering_operand(g, joint, 1) && !msc_lowering_operand(g, joint, 2);
    default:
        return true;
    }
}
