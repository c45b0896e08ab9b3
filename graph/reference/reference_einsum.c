// Sums of products over named axes, and determinants.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "graph/einsum.h"

#include <math.h>
#include <string.h>

struct product {
    struct msc_einsum e;
    int64_t lengths[MSC_EINSUM_AXES]; // of the named axes
    int64_t strides[MSC_EINSUM_OPERANDS][MSC_EINSUM_AXES];
    int n_operands;
};

// Sums the products over all summed axes, for the given output index.
static void sum_products(double *real, int64_t *integer, const struct msc_reference_call *call,
                         const struct product *p, const int64_t at[]) {
    int64_t index[MSC_EINSUM_AXES];
    bool is_real = msc_dtype_is_float(call->outputs[0].dtype);
    memcpy(index, at, sizeof(index));
    *real = 0;
    *integer = 0;
    for (;;) {
        double term = 1;
        uint64_t int_term = 1;
        for (int k = 0; k < p->n_operands; k++) {
            int64_t place = 0;
            for (int a = 0; a < p->e.n_axes; a++) {
                place += index[a] * p->strides[k][a];
            }
            if (is_real) {
                term *= msc_reference__get_double_at(&call->operands[k], place);
            } else {
                int_term *= (uint64_t)msc_reference__get_i64_at(&call->operands[k], place);
            }
        }
        *real += term;
        *integer = (int64_t)((uint64_t)*integer + int_term);
        int a = p->e.n_axes - 1;
        for (; a >= p->e.n_output_axes; a--) {
            if (++index[a] < p->lengths[a]) {
                break;
            }
            index[a] = 0;
        }
        if (a < p->e.n_output_axes) {
            return;
        }
    }
}

static enum msc_status product_init(struct product *p, const struct msc_reference_call *call) {
    int ranks[MSC_EINSUM_OPERANDS];
    memset(p, 0, sizeof(*p));
    p->n_operands = call->n_operands;
    for (int k = 0; k < call->n_operands && k < MSC_EINSUM_OPERANDS; k++) {
        ranks[k] = call->operands[k].n_dims;
    }
    const char *error =
        msc_einsum_parse(&p->e, msc_reference__get_text(call, "equation"), call->n_operands, ranks);
    if (error != NULL) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: equation %s", call->joint->name, error);
    }
    for (int k = 0; k < call->n_operands; k++) {
        const struct msc_view *x = &call->operands[k];
        int64_t strides[MSC_MAX_DIMS];
        msc_reference__strides(strides, x->n_dims, x->dims);
        for (int d = 0; d < x->n_dims; d++) {
            int axis = p->e.axes[k][d];
            p->lengths[axis] = x->dims[d] > p->lengths[axis] ? x->dims[d] : p->lengths[axis];
            // An axis of length 1 is broadcast; a repeated axis reads the diagonal.
            p->strides[k][axis] += x->dims[d] == 1 ? 0 : strides[d];
        }
    }
    return MSC_OK;
}

enum msc_status msc_reference__einsum(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    struct product p;
    MSC_TRY(product_init(&p, call));
    int64_t n = msc_view_n_elements(out), n_summed = 1;
    for (int a = p.e.n_output_axes; a < p.e.n_axes; a++) {
        n_summed *= p.lengths[a];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at[MSC_EINSUM_AXES] = {0}, rest = i, integer = 0;
        double real = 0;
        for (int a = p.e.n_output_axes - 1; a >= 0; a--) {
            at[a] = rest % p.lengths[a];
            rest /= p.lengths[a];
        }
        if (n_summed > 0) {
            sum_products(&real, &integer, call, &p, at);
        }
        if (msc_dtype_is_float(out->dtype)) {
            msc_reference__set_double_at(out, i, real);
        } else {
            msc_reference__set_i64_at(out, i, integer);
        }
    }
    return MSC_OK;
}

// Determinant by Gaussian elimination with pivoting; overwrites `m`.
static double determinant(double *m, int64_t n) {
    double result = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++) {
            pivot = fabs(m[r * n + c]) > fabs(m[pivot * n + c]) ? r : pivot;
        }
        if (m[pivot * n + c] == 0) {
            return 0;
        }
        for (int64_t k = 0; pivot != c && k < n; k++) {
            double swap = m[c * n + k];
            m[c * n + k] = m[pivot * n + k];
            m[pivot * n + k] = swap;
        }
        result *= pivot != c ? -m[c * n + c] : m[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            double factor = m[r * n + c] / m[c * n + c];
            for (int64_t k = c; k < n; k++) {
                m[r * n + k] -= factor * m[c * n + k];
            }
        }
    }
    return result;
}

enum msc_status msc_reference__det(const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0];
    int64_t n = x->dims[x->n_dims - 1], count = msc_view_n_elements(&call->outputs[0]);
    double *m = msc_alloc_zero((size_t)(n * n) + 1, sizeof(m[0]));
    MSC_TRY(MSC_ALLOCATED(m));
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < n * n; k++) {
            m[k] = msc_reference__get_double_at(x, i * n * n + k);
        }
        msc_reference__set_double_at(&call->outputs[0], i, determinant(m, n));
    }
    msc_free(m);
    return MSC_OK;
}
