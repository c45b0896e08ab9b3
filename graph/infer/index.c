// Infers the outputs of operators that select, place, sort or generate elements.
#include "graph/infer/infer_internal.h"

#include <math.h>
#include <string.h>

// The output has the type and shape of the first operand.
enum msc_status msc_infer__same(const struct msc_infer *call) {
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    return MSC_OK;
}

static enum msc_status require_integers(const struct msc_infer *call, int operand) {
    enum msc_dtype dtype = call->operands[operand]->dtype;
    if (!msc_dtype_is_integer(dtype)) {
        return msc_infer__fail(call, "operand %d is %s, expected integers", operand,
                               msc_dtype_name(dtype));
    }
    return MSC_OK;
}

enum msc_status msc_infer__gather_elements(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    int axis;
    MSC_TRY(require_integers(call, 1));
    MSC_TRY(msc_infer__require_rank(call, 1, x->n_dims));
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    for (int i = 0; i < x->n_dims; i++) {
        bool are_known = msc_infer__is_number(x->dims[i]) && msc_infer__is_number(indices->dims[i]);
        if (i != axis && are_known && indices->dims[i].value > x->dims[i].value) {
            return msc_infer__fail(
                call, "axis %d of the indices has length %lld, but only %lld in the input", i,
                (long long)indices->dims[i].value, (long long)x->dims[i].value);
        }
    }
    msc_infer__copy(&call->outputs[0], indices);
    call->outputs[0].dtype = x->dtype;
    memcpy(call->outputs[0].layout, x->layout, sizeof(x->layout));
    return MSC_OK;
}

static enum msc_status check_updates_type(const struct msc_infer *call) {
    if (call->operands[2]->dtype != call->operands[0]->dtype) {
        return msc_infer__fail(call, "updates are %s, expected %s",
                               msc_dtype_name(call->operands[2]->dtype),
                               msc_dtype_name(call->operands[0]->dtype));
    }
    return MSC_OK;
}

enum msc_status msc_infer__scatter_elements(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    int axis;
    MSC_TRY(require_integers(call, 1));
    MSC_TRY(check_updates_type(call));
    MSC_TRY(msc_infer__require_rank(call, 1, x->n_dims));
    MSC_TRY(msc_infer__require_rank(call, 2, x->n_dims));
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    for (int i = 0; i < x->n_dims; i++) {
        bool are_known = msc_infer__is_number(x->dims[i]) && msc_infer__is_number(indices->dims[i]);
        bool is_longer = are_known && indices->dims[i].value > x->dims[i].value && i != axis;
        if (is_longer || !msc_infer__agree(indices->dims[i], call->operands[2]->dims[i])) {
            return msc_infer__fail(
                call,
                "axis %d of the indices has length %lld, which fits neither input nor updates", i,
                (long long)indices->dims[i].value);
        }
    }
    return msc_infer__same(call);
}

// Reads the length of the index tuples, which are the last axis of the indices.
static enum msc_status tuple_length(int *out, const struct msc_infer *call, int64_t n_batch_dims) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    MSC_TRY(require_integers(call, 1));
    if (indices->n_dims < 1 || n_batch_dims < 0 || n_batch_dims >= indices->n_dims ||
        n_batch_dims > x->n_dims) {
        return msc_infer__fail(call,
                               "%lld batch dimensions are too many for indices with %d dimensions",
                               (long long)n_batch_dims, indices->n_dims);
    }
    for (int i = 0; i < (int)n_batch_dims; i++) {
        if (!msc_infer__agree(x->dims[i], indices->dims[i])) {
            return msc_infer__fail(call,
                                   "batch dimension %d has length %lld, but %lld in the indices", i,
                                   (long long)x->dims[i].value, (long long)indices->dims[i].value);
        }
    }
    struct msc_dim depth = indices->dims[indices->n_dims - 1];
    if (!msc_infer__is_number(depth) || depth.value + n_batch_dims > x->n_dims) {
        return msc_infer__fail(call, "tuples of %lld indices do not fit %d dimensions",
                               (long long)depth.value, x->n_dims - (int)n_batch_dims);
    }
    *out = (int)depth.value;
    return MSC_OK;
}

enum msc_status msc_infer__gather_nd(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t n_batch_dims;
    int depth = 0;
    MSC_TRY(msc_infer__int(&n_batch_dims, call, "batch_dims"));
    MSC_TRY(tuple_length(&depth, call, n_batch_dims));
    int behind = (int)n_batch_dims + depth;
    out->dtype = x->dtype;
    out->n_dims = indices->n_dims - 1 + x->n_dims - behind;
    if (out->n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, expected at most %d",
                               out->n_dims, MSC_MAX_DIMS);
    }
    for (int i = 0; i < out->n_dims; i++) {
        bool is_index = i < indices->n_dims - 1;
        out->dims[i] = is_index ? indices->dims[i] : x->dims[behind + i - (indices->n_dims - 1)];
    }
    return MSC_OK;
}

enum msc_status msc_infer__scatter_nd(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *indices = call->operands[1];
    const struct msc_infer_tensor *updates = call->operands[2];
    int depth = 0;
    MSC_TRY(tuple_length(&depth, call, 0));
    MSC_TRY(check_updates_type(call));
    int n = indices->n_dims - 1;
    bool fits = updates->n_dims == n + x->n_dims - depth;
    for (int i = 0; fits && i < updates->n_dims; i++) {
        struct msc_dim expected = i < n ? indices->dims[i] : x->dims[depth + i - n];
        fits = msc_infer__agree(updates->dims[i], expected);
    }
    if (!fits) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "updates of %s do not match indices of %s",
                               msc_infer__shape_text(a, call, updates),
                               msc_infer__shape_text(b, call, indices));
    }
    return msc_infer__same(call);
}

// The updates have the input's length along all axes except one, along which they may be shorter.
enum msc_status msc_infer__tensor_scatter(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *updates = call->operands[1];
    const char *mode = msc_infer__text(call, "mode");
    int axis;
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0) {
        return msc_infer__fail(call, "mode is '%s', expected linear or circular", mode);
    }
    if (updates->dtype != x->dtype) {
        return msc_infer__fail(call, "updates are %s, expected %s", msc_dtype_name(updates->dtype),
                               msc_dtype_name(x->dtype));
    }
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    if (axis == 0) {
        return msc_infer__fail(call, "its axis is 0, the batch; expected a later axis");
    }
    MSC_TRY(msc_infer__require_rank(call, 1, x->n_dims));
    for (int i = 0; i < x->n_dims; i++) {
        bool is_less = msc_infer__is_number(x->dims[i]) && msc_infer__is_number(updates->dims[i]) &&
                       updates->dims[i].value < x->dims[i].value;
        if (!msc_infer__agree(x->dims[i], updates->dims[i]) && !(i == axis && is_less)) {
            char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "updates of %s do not fit %s along axis %d",
                                   msc_infer__shape_text(a, call, updates),
                                   msc_infer__shape_text(b, call, x), axis);
        }
    }
    if (call->n_operands > 2 && call->operands[2] != NULL) {
        MSC_TRY(require_integers(call, 2));
        MSC_TRY(msc_infer__require_rank(call, 2, 1));
        if (!msc_infer__agree(call->operands[2]->dims[0], x->dims[0])) {
            return msc_infer__fail(call, "there are %lld indices, expected one for each of %lld",
                                   (long long)call->operands[2]->dims[0].value,
                                   (long long)x->dims[0].value);
        }
    }
    return msc_infer__same(call);
}

// Reads a length from the parameter `key`, a list of one number. An unknown length becomes a new
// symbol.
static enum msc_status length_param(struct msc_dim *out, const struct msc_infer *call,
                                    const char *key, int output, int dim) {
    struct msc_infer_list list;
    MSC_TRY(msc_infer__list(&list, call, key));
    if (list.state == MSC_INFER_KNOWN && list.n == 1) {
        *out = list.values[0];
        if (msc_infer__is_number(*out) && out->value < 0) {
            return msc_infer__fail(call, "%s is %lld, expected 0 or more", key,
                                   (long long)out->value);
        }
        return MSC_OK;
    }
    if (list.n >= 0 && list.n != 1) {
        return msc_infer__fail(call, "%s has %d elements, expected one", key, list.n);
    }
    return msc_infer__fresh(out, call, output, dim);
}

enum msc_status msc_infer__one_hot(const struct msc_infer *call) {
    const struct msc_infer_tensor *indices = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    const struct msc_infer_tensor *values = call->operands[2];
    int axis;
    if (values->n_dims != 1 || !msc_infer__agree(values->dims[0], msc_infer__number(2))) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "values are %s, expected [2]",
                               msc_infer__shape_text(text, call, values));
    }
    out->dtype = values->dtype;
    out->n_dims = indices->n_dims + 1;
    if (out->n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, which is too many",
                               out->n_dims);
    }
    MSC_TRY(msc_infer__axis(&axis, call, "axis", out->n_dims));
    for (int i = 0; i < out->n_dims; i++) {
        out->dims[i] = i == axis ? out->dims[i] : indices->dims[i < axis ? i : i - 1];
    }
    return length_param(&out->dims[axis], call, "depth", 0, axis);
}

enum msc_status msc_infer__topk(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    int axis;
    MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    struct msc_dim k;
    MSC_TRY(length_param(&k, call, "k", 0, axis));
    if (msc_infer__is_number(k) && msc_infer__is_number(x->dims[axis]) &&
        k.value > x->dims[axis].value) {
        return msc_infer__fail(call, "k is %lld, but the axis has only %lld elements",
                               (long long)k.value, (long long)x->dims[axis].value);
    }
    for (int i = 0; i < call->n_outputs; i++) {
        msc_infer__copy(&call->outputs[i], x);
        call->outputs[i].dims[axis] = k;
        call->outputs[i].dtype = i == 0 ? x->dtype : MSC_DTYPE_I64;
    }
    return MSC_OK;
}

enum msc_status msc_infer__reverse_sequence(const struct msc_infer *call) {
    int batch_axis, time_axis;
    MSC_TRY(msc_infer__axis(&batch_axis, call, "batch_axis", call->operands[0]->n_dims));
    MSC_TRY(msc_infer__axis(&time_axis, call, "time_axis", call->operands[0]->n_dims));
    MSC_TRY(msc_infer__require_rank(call, 1, 1));
    if (!msc_infer__agree(call->operands[0]->dims[batch_axis], call->operands[1]->dims[0])) {
        return msc_infer__fail(call, "found %lld lengths for %lld sequences",
                               (long long)call->operands[1]->dims[0].value,
                               (long long)call->operands[0]->dims[batch_axis].value);
    }
    return msc_infer__same(call);
}

enum msc_status msc_infer__triangle(const struct msc_infer *call) {
    if (call->operands[0]->n_dims < 2) {
        return msc_infer__fail(call, "input has %d dimensions, expected 2 or more",
                               call->operands[0]->n_dims);
    }
    return msc_infer__same(call);
}

enum msc_status msc_infer__depth_space(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_graph *g = call->graph;
    int64_t block;
    bool is_to_space = call->joint->op == MSC_OP_DEPTH_TO_SPACE;
    MSC_TRY(msc_infer__require_rank(call, 0, 4));
    MSC_TRY(msc_infer__int(&block, call, "blocksize"));
    if (block < 1 || block > INT32_MAX) {
        return msc_infer__fail(call, "blocksize is %lld, expected 1 or more", (long long)block);
    }
    msc_infer__copy(out, x);
    struct msc_dim area = msc_infer__number(block * block), side = msc_infer__number(block);
    const char *channels = is_to_space ? "FloorDiv" : "Mul",
               *space = is_to_space ? "Mul" : "FloorDiv";
    bool divides = true;
    for (int i = 1; i < 4; i++) {
        int64_t by = i == 1 ? block * block : block;
        bool is_divided = is_to_space == (i == 1);
        divides = divides &&
                  (!is_divided || !msc_infer__is_number(x->dims[i]) || x->dims[i].value % by == 0);
        MSC_TRY(msc_dim_binary(&out->dims[i], g, i == 1 ? channels : space, x->dims[i],
                               i == 1 ? area : side));
    }
    if (!divides) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "%s is not divisible into blocks of %lld",
                               msc_infer__shape_text(text, call, x), (long long)block);
    }
    return MSC_OK;
}

// ---- Generators -------------------------------------------------------------------------------

enum msc_status msc_infer__size(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    out->dtype = MSC_DTYPE_I64;
    out->n_values = 1;
    return msc_infer__product(&out->values[0], call, x->dims, 0, x->n_dims);
}

enum msc_status msc_infer__eye_like(const struct msc_infer *call) {
    const char *name = msc_infer__text(call, "dtype");
    MSC_TRY(msc_infer__require_rank(call, 0, 2));
    msc_infer__copy(&call->outputs[0], call->operands[0]);
    if (name[0] != '\0') {
        call->outputs[0].dtype = msc_dtype_find(name);
    }
    return MSC_OK;
}

// Reads an operand of one element as a number; false if its value is unknown.
static bool scalar_value(double *out, const struct msc_infer_tensor *t) {
    if (t->data != NULL && msc_array_n_elements(t->data) == 1) {
        *out = msc_array_get_double(t->data, 0);
        return true;
    }
    bool is_number = t->n_values == 1 && msc_infer__is_number(t->values[0]);
    *out = is_number ? (double)t->values[0].value : 0;
    return is_number;
}

// True if a range starts at 0 with steps of 1. The limit is then the range's length, even if the
// limit is a symbol.
static bool is_count(const struct msc_infer_tensor *const operands[]) {
    double start, delta;
    return operands[1]->n_values == 1 && scalar_value(&start, operands[0]) && start == 0 &&
           scalar_value(&delta, operands[2]) && delta == 1;
}

// Checks that start, limit and delta are scalars of the same type.
static enum msc_status check_range(const struct msc_infer *call) {
    for (int i = 0; i < 3; i++) {
        const struct msc_infer_tensor *t = call->operands[i];
        bool is_one = t->n_dims == 0 ||
                      (t->n_dims == 1 && msc_infer__agree(t->dims[0], msc_infer__number(1)));
        if (!is_one || t->dtype != call->operands[0]->dtype) {
            char text[MSC_INFER_TEXT_BYTES];
            return msc_infer__fail(call, "operand %d is %s %s, expected a single %s", i,
                                   msc_dtype_name(t->dtype), msc_infer__shape_text(text, call, t),
                                   msc_dtype_name(call->operands[0]->dtype));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__range(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    double start, limit, delta;
    MSC_TRY(check_range(call));
    out->dtype = call->operands[0]->dtype;
    out->n_dims = 1;
    bool is_known = scalar_value(&start, call->operands[0]) &&
                    scalar_value(&limit, call->operands[1]) &&
                    scalar_value(&delta, call->operands[2]);
    if (!is_known && is_count(call->operands)) {
        out->dims[0] = call->operands[1]->values[0];
        return MSC_OK;
    }
    if (!is_known) {
        return msc_infer__fresh(&out->dims[0], call, 0, 0);
    }
    double n = delta == 0 ? -1 : ceil((limit - start) / delta);
    if (delta == 0 || n > INT32_MAX) {
        return msc_infer__fail(call, "a range from %g to %g in steps of %g has no valid length",
                               start, limit, delta);
    }
    out->dims[0] = msc_infer__number(n > 0 ? (int64_t)n : 0);
    bool is_exact = fabs(start) < 0x1p53 && fabs(limit) < 0x1p53 && fabs(delta) < 0x1p53;
    if (is_exact && msc_dtype_is_integer(out->dtype) &&
        out->dims[0].value <= MSC_INFER_MAX_VALUES) {
        out->n_values = (int)out->dims[0].value;
        for (int i = 0; i < out->n_values; i++) {
            out->values[i] = msc_infer__number((int64_t)start + i * (int64_t)delta);
        }
    }
    return MSC_OK;
}

// ---- Lengths that depend on data --------------------------------------------------------------

enum msc_status msc_infer__nonzero(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    out->dtype = MSC_DTYPE_I64;
    out->n_dims = 2;
    out->dims[0] = msc_infer__number(call->operands[0]->n_dims);
    return msc_infer__fresh(&out->dims[1], call, 0, 1);
}

enum msc_status msc_infer__compress(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    int axis = 0;
    bool is_flat = msc_infer__text(call, "axis")[0] == '\0';
    if (!is_flat) {
        MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
        msc_infer__copy(out, x);
    }
    out->dtype = x->dtype;
    out->n_dims = is_flat ? 1 : x->n_dims;
    return msc_infer__fresh(&out->dims[axis], call, 0, axis);
}

enum msc_status msc_infer__unique(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    int axis = 0;
    struct msc_dim n;
    bool is_flat = msc_infer__text(call, "axis")[0] == '\0';
    if (!is_flat) {
        MSC_TRY(msc_infer__axis(&axis, call, "axis", x->n_dims));
    }
    MSC_TRY(msc_infer__fresh(&n, call, 0, axis));
    for (int i = 0; i < call->n_outputs; i++) {
        struct msc_infer_tensor *out = &call->outputs[i];
        out->dtype = i == 0 ? x->dtype : MSC_DTYPE_I64;
        out->n_dims = 1;
        out->dims[0] = n;
    }
    if (!is_flat) {
        msc_infer__copy(&call->outputs[0], x);
        call->outputs[0].dims[axis] = n;
    }
    if (call->n_outputs > 2) {
        // The third output has, for each element of the input, the index of its unique value.
        MSC_TRY(is_flat ? msc_infer__product(&call->outputs[2].dims[0], call, x->dims, 0, x->n_dims)
                        : MSC_OK);
        call->outputs[2].dims[0] = is_flat ? call->outputs[2].dims[0] : x->dims[axis];
    }
    return MSC_OK;
}

enum msc_status msc_infer__non_max_suppression(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    MSC_TRY(msc_infer__require_rank(call, 0, 3));
    MSC_TRY(msc_infer__require_rank(call, 1, 3));
    const struct msc_infer_tensor *boxes = call->operands[0], *scores = call->operands[1];
    if (!msc_infer__agree(boxes->dims[0], scores->dims[0]) ||
        !msc_infer__agree(boxes->dims[1], scores->dims[2]) ||
        !msc_infer__agree(boxes->dims[2], msc_infer__number(4))) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "boxes of %s do not match scores of %s",
                               msc_infer__shape_text(a, call, boxes),
                               msc_infer__shape_text(b, call, scores));
    }
    out->dtype = MSC_DTYPE_I64;
    out->n_dims = 2;
    out->dims[1] = msc_infer__number(3);
    return msc_infer__fresh(&out->dims[0], call, 0, 0);
}

enum msc_status msc_infer__nll_loss(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *targets = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    bool fits = x->n_dims >= 2 && targets->n_dims == x->n_dims - 1;
    for (int i = 0; fits && i < targets->n_dims; i++) {
        fits = msc_infer__agree(targets->dims[i], x->dims[i == 0 ? 0 : i + 1]);
    }
    if (!fits) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "targets of %s do not match predictions of %s",
                               msc_infer__shape_text(a, call, targets),
                               msc_infer__shape_text(b, call, x));
    }
    if (strcmp(msc_infer__text(call, "reduction"), "none") == 0) {
        msc_infer__copy(out, targets);
    }
    out->dtype = x->dtype;
    return MSC_OK;
}
