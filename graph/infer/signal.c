// Infers the outputs of window functions, Fourier transforms, mel filters and counts of n-grams.
#include "graph/infer/infer_internal.h"

#include <string.h>

// The type that the attribute output_datatype names; float32 if it is absent.
static enum msc_dtype named_type(const struct msc_infer *call) {
    enum msc_dtype dtype = msc_dtype_find(msc_infer__text(call, "output_datatype"));
    return dtype == MSC_DTYPE_NONE ? MSC_DTYPE_F32 : dtype;
}

// Reads an operand of one integer as a length. An unknown length becomes a new symbol.
static enum msc_status count_operand(struct msc_dim *out, const struct msc_infer *call, int operand,
                                     int dim) {
    const struct msc_infer_tensor *t = call->operands[operand];
    if (t->n_values == 1) {
        *out = t->values[0];
        return MSC_OK;
    }
    return msc_infer__fresh(out, call, 0, dim);
}

enum msc_status msc_infer__window(const struct msc_infer *call) {
    call->outputs[0].dtype = named_type(call);
    call->outputs[0].n_dims = 1;
    return count_operand(&call->outputs[0].dims[0], call, 0, 0);
}

enum msc_status msc_infer__mel_weight_matrix(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    out->dtype = named_type(call);
    out->n_dims = 2;
    MSC_TRY(count_operand(&out->dims[1], call, 0, 1));
    MSC_TRY(count_operand(&out->dims[0], call, 1, 0));
    if (call->operands[1]->n_values != 1) {
        return MSC_OK;
    }
    MSC_TRY(
        msc_dim_binary(&out->dims[0], call->graph, "FloorDiv", out->dims[0], msc_infer__number(2)));
    return msc_dim_binary(&out->dims[0], call->graph, "Add", out->dims[0], msc_infer__number(1));
}

// Number of frequency bins: n, or n / 2 + 1 if the spectrum is one-sided. (A one-sided spectrum
// omits the bins that mirror others.)
static enum msc_status count_bins(struct msc_dim *out, const struct msc_infer *call,
                                  struct msc_dim n) {
    *out = n;
    if (!msc_infer__bool(call, "onesided")) {
        return MSC_OK;
    }
    MSC_TRY(msc_dim_binary(out, call->graph, "FloorDiv", n, msc_infer__number(2)));
    return msc_dim_binary(out, call->graph, "Add", *out, msc_infer__number(1));
}

// The inverse of a one-sided transform gives real numbers, 2 * (n - 1) of them by default.
static bool is_real_inverse(const struct msc_infer *call) {
    return msc_infer__bool(call, "inverse") && msc_infer__bool(call, "onesided");
}

static enum msc_status count_transformed(struct msc_dim *out, const struct msc_infer *call,
                                         struct msc_dim n, bool is_given) {
    if (!is_real_inverse(call)) {
        return count_bins(out, call, n);
    }
    *out = n;
    if (is_given) {
        return MSC_OK;
    }
    MSC_TRY(msc_dim_binary(out, call->graph, "Sub", n, msc_infer__number(1)));
    return msc_dim_binary(out, call->graph, "Mul", *out, msc_infer__number(2));
}

enum msc_status msc_infer__dft(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list axes, length;
    int axis = 0;
    msc_infer__copy(out, x);
    MSC_TRY(msc_infer__list(&axes, call, "axis"));
    MSC_TRY(msc_infer__list(&length, call, "dft_length"));
    if (x->n_dims < 2) {
        return msc_infer__fail(call, "the signal has %d dimensions, expected 2 or more", x->n_dims);
    }
    out->dims[x->n_dims - 1] = msc_infer__number(is_real_inverse(call) ? 1 : 2);
    if (axes.state != MSC_INFER_KNOWN || axes.n != 1 || !msc_infer__is_number(axes.values[0])) {
        for (int i = 0; i + 1 < x->n_dims; i++) {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
        return MSC_OK;
    }
    MSC_TRY(msc_infer__check_axis(&axis, call, axes.values[0].value, x->n_dims));
    struct msc_dim n = x->dims[axis];
    if (length.state == MSC_INFER_UNKNOWN) {
        return msc_infer__fresh(&out->dims[axis], call, 0, axis);
    }
    bool is_given = length.state == MSC_INFER_KNOWN && length.n == 1;
    return count_transformed(&out->dims[axis], call, is_given ? length.values[0] : n, is_given);
}

enum msc_status msc_infer__stft(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list step, length;
    MSC_TRY(msc_infer__list(&step, call, "frame_step"));
    MSC_TRY(msc_infer__list(&length, call, "frame_length"));
    bool has_window = call->n_operands > 2 && call->operands[2] != NULL;
    bool is_wrong =
        step.state == MSC_INFER_KNOWN &&
        (step.n != 1 || (msc_infer__is_number(step.values[0]) && step.values[0].value < 1));
    is_wrong |= length.state == MSC_INFER_KNOWN && length.n != 1;
    if (x->n_dims < 2 || x->n_dims > 3 || is_wrong) {
        return msc_infer__fail(call,
                               "signal has %d dimensions, frame_step %d numbers, frame_length %d; "
                               "expected 2 or 3 dimensions, and one positive number in "
                               "frame_step and in frame_length",
                               x->n_dims, step.n, length.n);
    }
    out->dtype = x->dtype;
    out->n_dims = 4;
    out->dims[0] = x->dims[0];
    out->dims[3] = msc_infer__number(2);
    bool is_known = step.state == MSC_INFER_KNOWN && msc_infer__is_number(step.values[0]) &&
                    length.state != MSC_INFER_UNKNOWN &&
                    (length.state == MSC_INFER_KNOWN || has_window);
    if (!is_known) {
        MSC_TRY(msc_infer__fresh(&out->dims[1], call, 0, 1));
        return msc_infer__fresh(&out->dims[2], call, 0, 2);
    }
    struct msc_dim n =
        length.state == MSC_INFER_KNOWN ? length.values[0] : call->operands[2]->dims[0];
    if (has_window) {
        struct msc_dim window = call->operands[2]->dims[0];
        MSC_TRY(msc_infer__require_rank(call, 2, 1));
        if (!msc_infer__agree(n, window)) {
            return msc_infer__fail(call, "the window has length %lld, but frames have length %lld",
                                   (long long)window.value, (long long)n.value);
        }
    }
    struct msc_dim frames;
    MSC_TRY(msc_dim_binary(&frames, call->graph, "Sub", x->dims[1], n));
    MSC_TRY(msc_dim_binary(&frames, call->graph, "FloorDiv", frames, step.values[0]));
    MSC_TRY(msc_dim_binary(&out->dims[1], call->graph, "Add", frames, msc_infer__number(1)));
    return count_bins(&out->dims[2], call, n);
}

enum msc_status msc_infer__tf_idf(const struct msc_infer *call) {
    const struct msc_infer_tensor *x = call->operands[0];
    struct msc_infer_tensor *out = &call->outputs[0];
    enum { MOST = 4096 };
    int64_t indexes[MOST], width = 0;
    int n = msc_joint_attr_list(call->joint, "ngram_indexes", indexes, MOST);
    if (n < 1 || n > MOST || x->n_dims < 1 || x->n_dims > 2) {
        return msc_infer__fail(call,
                               "%d n-grams and an input of %d dimensions, expected 1 to 4096 "
                               "n-grams and 1 or 2 dimensions",
                               n, x->n_dims);
    }
    for (int i = 0; i < n; i++) {
        if (indexes[i] < 0 || indexes[i] >= INT32_MAX) {
            return msc_infer__fail(call, "n-gram %d has output index %lld, which is out of range",
                                   i, (long long)indexes[i]);
        }
        width = indexes[i] >= width ? indexes[i] + 1 : width;
    }
    out->dtype = MSC_DTYPE_F32;
    out->n_dims = x->n_dims;
    out->dims[0] = x->dims[0];
    out->dims[x->n_dims - 1] = msc_infer__number(width);
    return MSC_OK;
}

enum msc_status msc_infer__random(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    struct msc_infer_list shape;
    MSC_TRY(msc_infer__list(&shape, call, "shape"));
    out->dtype = msc_dtype_find(msc_infer__text(call, "dtype"));
    out->n_dims = shape.state == MSC_INFER_ABSENT ? 0 : shape.n;
    if (out->n_dims < 0 || out->n_dims > MSC_MAX_DIMS) {
        return msc_infer__fail(call, "the result has %d dimensions, which is not supported",
                               out->n_dims);
    }
    for (int i = 0; i < out->n_dims; i++) {
        if (shape.state == MSC_INFER_KNOWN) {
            out->dims[i] = shape.values[i];
        } else {
            MSC_TRY(msc_infer__fresh(&out->dims[i], call, 0, i));
        }
    }
    return MSC_OK;
}

enum msc_status msc_infer__multinomial(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    int64_t n;
    MSC_TRY(msc_infer__require_rank(call, 0, 2));
    MSC_TRY(msc_infer__int(&n, call, "sample_size"));
    out->dtype = msc_dtype_find(msc_infer__text(call, "dtype"));
    out->n_dims = 2;
    out->dims[0] = call->operands[0]->dims[0];
    out->dims[1] = msc_infer__number(n);
    return MSC_OK;
}
