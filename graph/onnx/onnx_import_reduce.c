// Translates reductions that become another reduction with joints before and after it, and
// operators whose attributes select one of several joints.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// Reductions written as another reduction with a joint before and a joint after it.
static const struct spelling {
    const char *onnx;
    enum msc_op before, reduction, behind; // MSC_OP_IDENTITY: no joint
} spellings[] = {
    {"ReduceL1", MSC_OP_ABS, MSC_OP_SUM, MSC_OP_IDENTITY},
    {"ReduceL2", MSC_OP_MULTIPLY, MSC_OP_SUM, MSC_OP_SQRT},
    {"ReduceLogSum", MSC_OP_IDENTITY, MSC_OP_SUM, MSC_OP_LOG},
    {"ReduceSumSquare", MSC_OP_MULTIPLY, MSC_OP_SUM, MSC_OP_IDENTITY},
};

static const struct spelling *find_spelling(const char *onnx) {
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        if (strcmp(spellings[i].onnx, onnx) == 0) {
            return &spellings[i];
        }
    }
    return NULL;
}

static bool is_empty_list(const struct msc_value *v) {
    return v == NULL || (v->constant != NULL && msc_array_n_elements(v->constant) == 0);
}

struct reduction {
    struct msc_value *x, *axes;
    bool keepdims, is_nothing; // is_nothing: noop_with_empty_axes is set and no axes are given
};

static enum msc_status read_reduction(struct reduction *r, struct msc_onnx_node *n) {
    int64_t keepdims, noop;
    MSC_TRY(msc_onnx__int(&keepdims, n, "keepdims", 1));
    MSC_TRY(msc_onnx__int(&noop, n, "noop_with_empty_axes", 0));
    MSC_TRY(msc_onnx__list_param(&r->axes, n, 1, "axes"));
    r->x = n->inputs[0];
    r->keepdims = keepdims != 0;
    bool is_empty = is_empty_list(r->axes);
    if (!is_empty && r->axes->constant == NULL) { // axes may be an input declared as empty
        struct msc_onnx_shape axes = msc_onnx__shape(n, r->axes);
        is_empty = axes.n_dims == 1 && axes.dims[0] == 0;
        r->axes = is_empty ? NULL : r->axes;
    }
    r->is_nothing = noop != 0 && is_empty;
    return MSC_OK;
}

enum msc_status msc_onnx__reduce(struct msc_onnx_node *n) {
    struct reduction r;
    MSC_TRY(read_reduction(&r, n));
    struct msc_value *operands[2] = {r.x, r.axes};
    if (r.is_nothing) {
        return msc_onnx__add_last(n, MSC_OP_IDENTITY, operands, 1);
    }
    msc_onnx__set_bool(n, "keepdims", r.keepdims);
    return msc_onnx__add_last(n, n->rule.op, operands, 2);
}

enum msc_status msc_onnx__spelled_reduce(struct msc_onnx_node *n) {
    const struct spelling *s = find_spelling(n->rule.onnx);
    struct reduction r;
    MSC_TRY(read_reduction(&r, n));
    struct msc_value *operands[2] = {r.x, r.x};
    if (s->before != MSC_OP_IDENTITY) {
        int n_operands = s->before == MSC_OP_MULTIPLY ? 2 : 1;
        MSC_TRY(msc_onnx__add_helper(&operands[0], n, s->before, operands, n_operands));
    }
    operands[1] = r.axes;
    enum msc_op reduction = r.is_nothing ? MSC_OP_IDENTITY : s->reduction;
    int n_operands = r.is_nothing ? 1 : 2;
    if (!r.is_nothing) {
        msc_onnx__set_bool(n, "keepdims", r.keepdims);
    }
    if (s->behind == MSC_OP_IDENTITY) {
        return msc_onnx__add_last(n, reduction, operands, n_operands);
    }
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, reduction, operands, n_operands));
    return msc_onnx__add_last(n, s->behind, operands, 1);
}

// log(sum(exp(x))), computed as log(sum(exp(x - max))) + max to avoid overflow.
enum msc_status msc_onnx__reduce_log_sum_exp(struct msc_onnx_node *n) {
    struct reduction r;
    MSC_TRY(read_reduction(&r, n));
    if (r.is_nothing) {
        return msc_onnx__add_last(n, MSC_OP_IDENTITY, &r.x, 1);
    }
    struct msc_value *wide, *narrow, *operands[2] = {r.x, r.axes};
    msc_onnx__set_bool(n, "keepdims", true);
    MSC_TRY(msc_onnx__add_helper(&wide, n, MSC_OP_MAX, operands, 2));
    narrow = wide;
    if (!r.keepdims) {
        msc_onnx__set_bool(n, "keepdims", false);
        MSC_TRY(msc_onnx__add_helper(&narrow, n, MSC_OP_MAX, operands, 2));
    }
    operands[1] = wide;
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_SUBTRACT, operands, 2));
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_EXP, operands, 1));
    operands[1] = r.axes;
    msc_onnx__set_bool(n, "keepdims", r.keepdims);
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_SUM, operands, 2));
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_LOG, operands, 1));
    operands[1] = narrow;
    return msc_onnx__add_last(n, MSC_OP_ADD, operands, 2);
}

enum msc_status msc_onnx__mean(struct msc_onnx_node *n) {
    if (n->n_inputs == 1) {
        return msc_onnx__add_last(n, MSC_OP_IDENTITY, n->inputs, 1);
    }
    struct msc_value *operands[2] = {n->inputs[0], NULL};
    for (int i = 1; i < n->n_inputs; i++) {
        operands[1] = n->inputs[i];
        MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_ADD, operands, 2));
    }
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    MSC_TRY(msc_onnx__make_scalar(&operands[1], n, dtype, n->n_inputs));
    return msc_onnx__add_last(n, MSC_OP_DIVIDE, operands, 2);
}

// ---- Operators that select one of several joints ----------------------------------------------

enum msc_status msc_onnx__mod(struct msc_onnx_node *n) {
    int64_t truncates;
    MSC_TRY(msc_onnx__int(&truncates, n, "fmod", 0));
    return msc_onnx__add_last(n, truncates != 0 ? MSC_OP_MOD : MSC_OP_FLOOR_MOD, n->inputs, 2);
}

enum msc_status msc_onnx__bit_shift(struct msc_onnx_node *n) {
    const char *direction;
    MSC_TRY(msc_onnx__text(&direction, n, "direction", ""));
    bool is_left = strcmp(direction, "LEFT") == 0;
    if (!is_left && strcmp(direction, "RIGHT") != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "direction is '%s', expected LEFT or RIGHT", direction);
    }
    return msc_onnx__add_last(n, is_left ? MSC_OP_LEFT_SHIFT : MSC_OP_RIGHT_SHIFT, n->inputs, 2);
}

enum msc_status msc_onnx__trilu(struct msc_onnx_node *n) {
    int64_t upper;
    MSC_TRY(msc_onnx__int(&upper, n, "upper", 1));
    return msc_onnx__add_last(n, upper != 0 ? MSC_OP_TRIU : MSC_OP_TRIL, n->inputs, n->n_inputs);
}

enum msc_status msc_onnx__top_k(struct msc_onnx_node *n) {
    int64_t k;
    if (n->n_inputs == 1) { // before opset 10, k is an attribute
        MSC_TRY(msc_onnx__int(&k, n, "k", 1));
        msc_onnx__set_int(n, "k", k);
    }
    return msc_onnx__direct(n);
}

// Before opset 7, the second operand can be aligned to an axis of the first.
enum msc_status msc_onnx__binary(struct msc_onnx_node *n) {
    struct msc_value *operands[2] = {n->inputs[0], n->inputs[1]};
    int a = msc_onnx__shape(n, operands[0]).n_dims, b = msc_onnx__shape(n, operands[1]).n_dims;
    int64_t axis;
    MSC_TRY(msc_onnx__int(&axis, n, "axis", a - b));
    if (n->opset < 7 && n->rule.op == MSC_OP_PRELU && b == 1 && a > 2) {
        axis = 1; // the slopes are per channel
    }
    if (n->opset < 7 && b > 0 && axis >= 0 && axis < a - b) {
        int64_t axes[MSC_MAX_DIMS];
        int n_axes = (int)(a - b - axis);
        for (int i = 0; i < n_axes; i++) {
            axes[i] = b + i;
        }
        msc_onnx__set_ints(n, "axis", axes, n_axes);
        MSC_TRY(msc_onnx__add_helper(&operands[1], n, MSC_OP_EXPAND_DIMS, &operands[1], 1));
    }
    return msc_onnx__add_last(n, n->rule.op, operands, 2);
}

// ---- Losses -----------------------------------------------------------------------------------

enum msc_status msc_onnx__cross_entropy(struct msc_onnx_node *n) {
    struct msc_value *operands[3] = {n->inputs[0], n->inputs[1], msc_onnx__input(n, 2)};
    msc_onnx__set_int(n, "axis", 1);
    MSC_TRY(msc_onnx__add_helper(&operands[0], n, MSC_OP_LOG_SOFTMAX, operands, 1));
    MSC_TRY(msc_onnx__copy_attrs(n, MSC_OP_NLL_LOSS));
    MSC_TRY(msc_onnx__define_extra(n, 1, operands[0]));
    return msc_onnx__add_last(n, MSC_OP_NLL_LOSS, operands, 3);
}

// ---- Types ------------------------------------------------------------------------------------

enum msc_status msc_onnx__cast_like(struct msc_onnx_node *n) {
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[1]).dtype;
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    return msc_onnx__add_last(n, MSC_OP_CAST, n->inputs, 1);
}
