// Infers the outputs of operators with their own rules for shapes: recurrent layers, linear
// attention, sampling, normalisation, einsum.
#include "graph/infer/infer_internal.h"

#include "graph/einsum.h"

#include <string.h>

// ---- Recurrent layers -------------------------------------------------------------------------

static int n_gates(enum msc_op op) {
    return op == MSC_OP_LSTM ? 4 : op == MSC_OP_GRU ? 3 : 1;
}

// Checks that an operand, if present, has these dimensions.
static enum msc_status check_dims(const struct msc_infer *call, int operand, int n_dims,
                                  const struct msc_dim dims[]) {
    const struct msc_infer_tensor *t = operand < call->n_operands ? call->operands[operand] : NULL;
    bool fits = !t || t->n_dims == n_dims;
    for (int i = 0; t && fits && i < n_dims; i++) {
        fits = msc_infer__agree(t->dims[i], dims[i]);
    }
    if (!fits) {
        char text[MSC_INFER_TEXT_BYTES], other[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "operand %d of %s does not match recurrent weights of %s",
                               operand, msc_infer__shape_text(text, call, t),
                               msc_infer__shape_text(other, call, call->operands[2]));
    }
    return MSC_OK;
}

static enum msc_status check_recurrent(const struct msc_infer *call, struct msc_dim batch,
                                       bool is_batch_first) {
    const struct msc_infer_tensor *r = call->operands[2];
    const struct msc_dim directions = r->dims[0], hidden = r->dims[2];
    bool is_both = strcmp(msc_infer__text(call, "direction"), "bidirectional") == 0;
    if (!msc_infer__agree(directions, msc_infer__number(is_both ? 2 : 1))) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "recurrent weights of %s do not match %s",
                               msc_infer__shape_text(text, call, r),
                               is_both ? "two directions" : "one direction");
    }
    if (!msc_infer__is_number(hidden)) {
        return MSC_OK; // checked again when the graph is bound
    }
    const struct msc_dim rows = msc_infer__number(n_gates(call->joint->op) * hidden.value);
    const struct msc_dim weights[] = {directions, rows, hidden};
    const struct msc_dim bias[] = {directions, msc_infer__number(2 * rows.value)};
    const struct msc_dim peephole[] = {directions, msc_infer__number(3 * hidden.value)};
    const struct msc_dim state[] = {is_batch_first ? batch : directions,
                                    is_batch_first ? directions : batch, hidden};
    MSC_TRY(check_dims(call, 2, 3, weights));
    MSC_TRY(check_dims(call, 3, 2, bias));
    MSC_TRY(check_dims(call, 4, 1, &batch));
    MSC_TRY(check_dims(call, 5, 3, state));
    MSC_TRY(check_dims(call, 6, 3, state));
    return check_dims(call, 7, 2, peephole);
}

enum msc_status msc_infer__recurrent(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *w = call->operands[1];
    const struct msc_infer_tensor *r = call->operands[2];
    int64_t layout;
    MSC_TRY(msc_infer__require_rank(call, 0, 3));
    MSC_TRY(msc_infer__require_rank(call, 1, 3));
    MSC_TRY(msc_infer__require_rank(call, 2, 3));
    MSC_TRY(msc_infer__int(&layout, call, "layout"));
    if (!msc_infer__agree(x->dims[2], w->dims[2]) || !msc_infer__agree(w->dims[1], r->dims[1]) ||
        !msc_infer__agree(w->dims[0], r->dims[0])) {
        char text[MSC_INFER_TEXT_BYTES], other[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "weights of %s do not match an input of %s",
                               msc_infer__shape_text(text, call, w),
                               msc_infer__shape_text(other, call, x));
    }
    struct msc_dim time = x->dims[layout ? 1 : 0], batch = x->dims[layout ? 0 : 1];
    struct msc_dim directions = w->dims[0], hidden = r->dims[2];
    MSC_TRY(check_recurrent(call, batch, layout != 0));
    struct msc_infer_tensor *y = &call->outputs[0];
    y->dtype = x->dtype;
    y->n_dims = 4;
    y->dims[0] = layout ? batch : time;
    y->dims[1] = layout ? time : directions;
    y->dims[2] = layout ? directions : batch;
    y->dims[3] = hidden;
    for (int i = 1; i < call->n_outputs; i++) {
        struct msc_infer_tensor *state = &call->outputs[i];
        state->dtype = x->dtype;
        state->n_dims = 3;
        state->dims[0] = layout ? batch : directions;
        state->dims[1] = layout ? directions : batch;
        state->dims[2] = hidden;
    }
    return MSC_OK;
}

// Divides the last axis of an operand among `heads` heads. *size is the length of a head, a symbol
// if the length of the axis is a symbol.
static enum msc_status head_size(struct msc_dim *size, const struct msc_infer *call, int operand,
                                 int64_t heads) {
    const struct msc_infer_tensor *t = call->operands[operand];
    MSC_TRY(msc_infer__require_rank(call, operand, 3));
    MSC_TRY(msc_infer__require_float(call, operand));
    if (msc_infer__is_number(t->dims[2]) && t->dims[2].value % heads != 0) {
        return msc_infer__fail(call, "%lld values cannot be divided among %lld heads",
                               (long long)t->dims[2].value, (long long)heads);
    }
    return msc_dim_binary(size, call->graph, "FloorDiv", t->dims[2], msc_infer__number(heads));
}

// Checks that decay and beta are present if, and only if, the rule uses them.
static enum msc_status check_rule(const struct msc_infer *call) {
    const char *rule = msc_infer__text(call, "update_rule");
    bool is_gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    bool is_delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    bool has_decay = call->n_operands > 4 && call->operands[4] != NULL;
    bool has_beta = call->n_operands > 5 && call->operands[5] != NULL;
    if (!is_gated && !is_delta && strcmp(rule, "linear") != 0) {
        return msc_infer__fail(
            call, "update_rule is '%s', expected linear, gated, delta or gated_delta", rule);
    }
    if (has_decay != is_gated || has_beta != is_delta) {
        return msc_infer__fail(call, "update_rule %s takes %s decay and %s beta", rule,
                               is_gated ? "a" : "no", is_delta ? "a" : "no");
    }
    return MSC_OK;
}

static bool has_width(const struct msc_infer *call, int operand, int64_t a, struct msc_dim b) {
    const struct msc_infer_tensor *t = operand < call->n_operands ? call->operands[operand] : NULL;
    return t == NULL || (t->n_dims == 3 && (msc_infer__agree(t->dims[2], msc_infer__number(a)) ||
                                            msc_infer__agree(t->dims[2], b)));
}

enum msc_status msc_infer__linear_attention(const struct msc_infer *call) {
    const struct msc_infer_tensor *q = call->operands[0];
    const struct msc_infer_tensor *past = call->n_operands > 3 ? call->operands[3] : NULL;
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_dim query, key, value, all_keys;
    int64_t query_heads, heads;
    MSC_TRY(msc_infer__int(&query_heads, call, "q_num_heads"));
    MSC_TRY(msc_infer__int(&heads, call, "kv_num_heads"));
    if (heads < 1 || query_heads < 1 || query_heads % heads != 0) {
        return msc_infer__fail(call, "%lld query heads cannot share %lld heads of keys and values",
                               (long long)query_heads, (long long)heads);
    }
    MSC_TRY(check_rule(call));
    MSC_TRY(head_size(&query, call, 0, query_heads));
    MSC_TRY(head_size(&key, call, 1, heads));
    MSC_TRY(head_size(&value, call, 2, heads));
    all_keys = call->operands[1]->dims[2];
    const struct msc_dim state[4] = {q->dims[0], msc_infer__number(heads), key, value};
    bool fits = msc_infer__agree(query, key) && has_width(call, 4, heads, all_keys) &&
                has_width(call, 5, heads, msc_infer__number(1));
    for (int i = 1; i < call->n_operands; i++) {
        const struct msc_infer_tensor *t = call->operands[i];
        for (int d = 0; i != 3 && t != NULL && d < 2; d++) {
            fits = fits && msc_infer__agree(t->dims[d], q->dims[d]);
        }
    }
    for (int d = 0; past != NULL && d < 4; d++) {
        fits = fits && past->n_dims == 4 && msc_infer__agree(past->dims[d], state[d]);
    }
    if (!fits) {
        return msc_infer__fail(call, "its operands have shapes that do not fit each other");
    }
    msc_infer__copy(out, q);
    MSC_TRY(
        msc_dim_binary(&out->dims[2], call->graph, "Mul", value, msc_infer__number(query_heads)));
    if (call->n_outputs > 1) {
        call->outputs[1].dtype = past != NULL ? past->dtype : q->dtype;
        call->outputs[1].n_dims = 4;
        memcpy(call->outputs[1].dims, state, sizeof(state));
    }
    return MSC_OK;
}

// ---- Sampling ---------------------------------------------------------------------------------

enum msc_status msc_infer__grid_sample(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *grid = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    int n = x->n_dims;
    if (n < 3 || n > 5 || grid->n_dims != n || !msc_infer__agree(grid->dims[0], x->dims[0]) ||
        !msc_infer__agree(grid->dims[n - 1], msc_infer__number(n - 2))) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "a grid of %s does not match an input of %s",
                               msc_infer__shape_text(a, call, grid),
                               msc_infer__shape_text(b, call, x));
    }
    msc_infer__copy(out, x);
    for (int i = 2; i < n; i++) {
        out->dims[i] = grid->dims[i - 1];
    }
    return MSC_OK;
}

enum { MAX_SAMPLING = 4096 }; // a larger sampling ratio would take hours

enum msc_status msc_infer__roi_align(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0], *rois = call->operands[1];
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t height, width, sampling;
    MSC_TRY(msc_infer__require_rank(call, 0, 4));
    MSC_TRY(msc_infer__require_rank(call, 1, 2));
    MSC_TRY(msc_infer__int(&sampling, call, "sampling_ratio"));
    MSC_TRY(msc_infer__int(&height, call, "output_height"));
    MSC_TRY(msc_infer__int(&width, call, "output_width"));
    if (!msc_infer__agree(rois->dims[1], msc_infer__number(4)) || call->operands[2]->n_dims != 1 ||
        !msc_infer__agree(call->operands[2]->dims[0], rois->dims[0])) {
        char a[MSC_INFER_TEXT_BYTES], b[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "regions of %s do not match batch indices of %s",
                               msc_infer__shape_text(a, call, rois),
                               msc_infer__shape_text(b, call, call->operands[2]));
    }
    if (sampling > MAX_SAMPLING) {
        return msc_infer__fail(call, "%lld samples per bin and axis, expected at most %d",
                               (long long)sampling, MAX_SAMPLING);
    }
    if (height < 1 || width < 1) {
        return msc_infer__fail(call, "output has %lld rows and %lld columns, expected 1 or more",
                               (long long)height, (long long)width);
    }
    msc_infer__copy(out, x);
    out->dims[0] = rois->dims[0];
    out->dims[2] = msc_infer__number(height);
    out->dims[3] = msc_infer__number(width);
    return MSC_OK;
}

enum msc_status msc_infer__max_unpool(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list shape;
    int n = x->n_dims - 2;
    int64_t kernel[3], strides[3], padding[6];
    msc_infer__copy(out, x);
    if (n < 1 || n > 3) {
        return msc_infer__fail(call, "has %d spatial axes, expected 1 to 3", n);
    }
    MSC_TRY(msc_infer__require_rank(call, 1, x->n_dims));
    for (int i = 0; i < x->n_dims; i++) {
        if (!msc_infer__agree(call->operands[1]->dims[i], x->dims[i])) {
            return msc_infer__fail(
                call, "axis %d of the indices has length %lld, but %lld in the input", i,
                (long long)call->operands[1]->dims[i].value, (long long)x->dims[i].value);
        }
    }
    MSC_TRY(msc_infer__ints(kernel, call, "kernel_shape", n));
    MSC_TRY(msc_infer__ints(strides, call, "strides", n));
    MSC_TRY(msc_infer__ints(padding, call, "pads", 2 * n));
    for (int i = 0; i < n; i++) {
        // Larger than in any real network, and small enough that the arithmetic below cannot
        // overflow.
        const int64_t limit = INT32_MAX;
        if (kernel[i] < 1 || kernel[i] > limit || strides[i] < 1 || strides[i] > limit ||
            padding[i] < 0 || padding[i] > limit || padding[n + i] < 0 || padding[n + i] > limit) {
            return msc_infer__fail(
                call, "windows and strides must be from 1 to 2^31 - 1, padding from 0");
        }
    }
    MSC_TRY(msc_infer__list(&shape, call, "output_shape"));
    for (int i = 0; shape.state != MSC_INFER_ABSENT && i < x->n_dims; i++) {
        if (shape.state == MSC_INFER_UNKNOWN) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        } else if (shape.n != x->n_dims) {
            return msc_infer__fail(
                call, "output_shape has %d numbers, expected one for each dimension", shape.n);
        } else {
            out->dims[i] = shape.values[i];
        }
    }
    if (shape.state != MSC_INFER_ABSENT) {
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        int64_t shift = kernel[i] - strides[i] - padding[i] - padding[n + i];
        struct msc_dim *d = &out->dims[i + 2];
        MSC_TRY(msc_dim_binary(d, call->graph, "Mul", *d, msc_infer__number(strides[i])));
        MSC_TRY(msc_dim_binary(d, call->graph, "Add", *d, msc_infer__number(shift)));
    }
    return MSC_OK;
}

// ---- Normalisation ----------------------------------------------------------------------------

enum msc_status msc_infer__group_norm(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    int64_t n_groups = 1;
    bool is_group = call->joint->op == MSC_OP_GROUP_NORM;
    if (is_group) {
        MSC_TRY(msc_infer__int(&n_groups, call, "num_groups"));
    }
    MSC_TRY(msc_infer__require_rank(call, 1, 1));
    MSC_TRY(msc_infer__require_rank(call, 2, 1));
    bool fits = x->n_dims >= 2 && n_groups > 0 &&
                msc_infer__agree(call->operands[1]->dims[0], call->operands[2]->dims[0]);
    if (fits && msc_infer__is_number(x->dims[1])) {
        fits = x->dims[1].value % n_groups == 0 &&
               (msc_infer__agree(call->operands[1]->dims[0], x->dims[1]) ||
                (is_group &&
                 msc_infer__agree(call->operands[1]->dims[0], msc_infer__number(n_groups))));
    }
    if (!fits) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "%lld groups do not fit the channels of %s",
                               (long long)n_groups, msc_infer__shape_text(text, call, x));
    }
    msc_infer__copy(&call->outputs[0], x);
    return MSC_OK;
}

enum msc_status msc_infer__lrn(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    int64_t size;
    MSC_TRY(msc_infer__require_float(call, 0));
    MSC_TRY(msc_infer__int(&size, call, "size"));
    if (x->n_dims < 2 || size < 1) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "windows of %lld channels do not fit %s", (long long)size,
                               msc_infer__shape_text(text, call, x));
    }
    msc_infer__copy(&call->outputs[0], x);
    return MSC_OK;
}

// The operator normalises over the last axes; gamma and beta have the shape of these axes.
enum msc_status msc_infer__layer_norm(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_list axes;
    MSC_TRY(msc_infer__list(&axes, call, "axes"));
    int first = x->n_dims - axes.n;
    bool fits = axes.n > 0 && first >= 0;
    for (int i = 0; fits && i < axes.n; i++) {
        int axis;
        MSC_TRY(msc_infer__check_axis(&axis, call, axes.values[i].value, x->n_dims));
        fits = axis == first + i;
    }
    for (int k = 1; fits && k < call->n_operands && call->operands[k] != NULL; k++) {
        const struct msc_infer_tensor *scale = call->operands[k];
        fits = scale->n_dims == x->n_dims - first;
        for (int i = 0; fits && i < scale->n_dims; i++) {
            fits = msc_infer__agree(scale->dims[i], x->dims[first + i]);
        }
    }
    if (!fits) {
        char text[MSC_INFER_TEXT_BYTES], gamma[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "axes %s and gamma of %s do not match an input of %s",
                               msc_infer__text(call, "axes"),
                               msc_infer__shape_text(gamma, call, call->operands[1]),
                               msc_infer__shape_text(text, call, x));
    }
    msc_infer__copy(&call->outputs[0], x);
    return MSC_OK;
}

// ---- Einsum and matrices ----------------------------------------------------------------------

enum msc_status msc_infer__einsum(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_einsum e;
    int ranks[MSC_EINSUM_OPERANDS] = {0};
    struct msc_dim lengths[MSC_EINSUM_AXES];
    for (int k = 0; k < call->n_operands && k < MSC_EINSUM_OPERANDS; k++) {
        ranks[k] = call->operands[k]->n_dims;
    }
    const char *error =
        msc_einsum_parse(&e, msc_infer__text(call, "equation"), call->n_operands, ranks);
    if (error != NULL) {
        return msc_infer__fail(call, "the equation %s", error);
    }
    for (int a = 0; a < e.n_axes; a++) {
        lengths[a] = msc_infer__number(1);
    }
    for (int k = 0; k < call->n_operands; k++) {
        for (int d = 0; d < ranks[k]; d++) {
            struct msc_dim *length = &lengths[e.axes[k][d]], own = call->operands[k]->dims[d];
            bool is_one = msc_infer__is_number(*length) && length->value == 1;
            if (is_one || !msc_infer__agree(*length, own)) {
                if (!is_one && own.value != 1) {
                    return msc_infer__fail(
                        call, "an axis has length %lld in one operand, %lld in another",
                        (long long)length->value, (long long)own.value);
                }
                *length = is_one ? own : *length;
            }
        }
    }
    out->dtype = call->operands[0]->dtype;
    out->n_dims = e.n_output_axes;
    for (int i = 0; i < out->n_dims; i++) {
        out->dims[i] = lengths[i];
    }
    return MSC_OK;
}

enum msc_status msc_infer__det(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    if (x->n_dims < 2 || !msc_infer__agree(x->dims[x->n_dims - 1], x->dims[x->n_dims - 2])) {
        char text[MSC_INFER_TEXT_BYTES];
        return msc_infer__fail(call, "%s has no square matrices in its last two dimensions",
                               msc_infer__shape_text(text, call, x));
    }
    out->dtype = x->dtype;
    out->n_dims = x->n_dims - 2;
    memcpy(out->dims, x->dims, sizeof(out->dims));
    return MSC_OK;
}
