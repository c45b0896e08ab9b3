// Hardmax and negative log-likelihood.
#include "graph/reference/reference_internal.h"

#include <math.h>
#include <string.h>

// Sets the first maximum of each line along the axis to 1, and all other elements to 0.
enum msc_status msc_reference__hardmax(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *out = &call->outputs[0];
    int axis;
    MSC_TRY(msc_reference__get_axis(&axis, call, "axis", x->n_dims));
    int64_t n = x->dims[axis];
    int64_t inner = msc_dims_product(x->n_dims - axis - 1, x->dims + axis + 1);
    int64_t lines = msc_dims_product(axis, x->dims) * inner;
    union msc_reference_chunk buffer;
    memset(out->data, 0, msc_view_n_bytes(out));
    for (int64_t l = 0; l < lines; l++) {
        int64_t first = l / inner * n * inner + l % inner, best = 0;
        double greatest = NAN;
        for (int64_t i = 0; i < n; i += MSC_REFERENCE_CHUNK) {
            int64_t count = n - i < MSC_REFERENCE_CHUNK ? n - i : MSC_REFERENCE_CHUNK;
            const double *numbers = msc_reference__load_chunk(&buffer, x, first + i * inner, inner,
                                                              count, MSC_REFERENCE_DOUBLE);
            for (int64_t k = 0; k < count; k++) {
                if (numbers[k] > greatest || i + k == 0) {
                    greatest = numbers[k];
                    best = i + k;
                }
            }
        }
        if (n > 0) {
            msc_reference__set_double_at(out, first + best * inner, 1);
        }
    }
    return MSC_OK;
}

// -weight[target] * x[target] over axis 1, then optionally the sum or the weighted mean over all
// targets.
enum msc_status msc_reference__nll_loss(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *targets = &call->operands[1];
    const struct msc_view *out = &call->outputs[0];
    const char *reduction = msc_reference__get_text(call, "reduction");
    int64_t ignored = 0;
    bool is_none = strcmp(reduction, "none") == 0, is_mean = strcmp(reduction, "mean") == 0;
    bool ignores = msc_reference__get_text(call, "ignore_index")[0] != '\0';
    if (ignores) {
        MSC_TRY(msc_reference__get_i64(&ignored, call, "ignore_index"));
    }
    int64_t n_classes = x->dims[1], n = msc_view_n_elements(targets);
    int64_t inner = msc_dims_product(x->n_dims - 2, x->dims + 2);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t target = msc_reference__get_i64_at(targets, i);
        double loss = 0, weight = 0;
        if (!ignores || target != ignored) {
            if (target < 0 || target >= n_classes) {
                return MSC_FAIL(MSC_E_INVALID,
                                "joint %s: target %lld is out of range for %lld classes",
                                call->joint->name, (long long)target, (long long)n_classes);
            }
            bool is_weighted = msc_reference__has(call, 2);
            int64_t at = (i / inner * n_classes + target) * inner + i % inner;
            weight = is_weighted ? msc_reference__get_double_at(&call->operands[2], target) : 1;
            loss = -weight * msc_reference__get_double_at(x, at);
        }
        sum += loss;
        total += weight;
        if (is_none) {
            msc_reference__set_double_at(out, i, loss);
        }
    }
    if (!is_none) {
        msc_reference__set_double_at(out, 0, is_mean ? sum / total : sum);
    }
    return MSC_OK;
}
