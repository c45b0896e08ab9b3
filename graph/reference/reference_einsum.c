// Sums of products over named axes, and determinants.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "graph/einsum.h"

#include <math.h>
#include <string.h>

struct product {
    struct msc_einsum e;
    int64_t lengths[MSC_EINSUM_AXES]; // length of each axis of the equation
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

// ---- Two operands of float32 ------------------------------------------------------------------

// The equation as a stack of matrix products. An axis of the output is a batch axis if both
// operands have it, a row axis if only the first has it, and a column axis if only the second has
// it.
enum axis_kind { BATCH, ROW, COLUMN, SUMMED };

static enum axis_kind kind_of(const struct product *p, int axis) {
    if (axis >= p->e.n_output_axes) {
        return SUMMED;
    }
    return p->strides[0][axis] == 0 ? COLUMN : p->strides[1][axis] == 0 ? ROW : BATCH;
}

// The offsets of all positions along the axes of one kind, in the operands and in the output.
struct positions {
    int64_t n;
    int64_t *offsets[3]; // [n]
};

static enum msc_status positions_init(struct positions *out, struct msc_arena *arena,
                                      const struct product *p, enum axis_kind kind,
                                      const int64_t out_strides[]) {
    out->n = 1;
    for (int a = 0; a < p->e.n_axes; a++) {
        out->n *= kind_of(p, a) == kind ? p->lengths[a] : 1;
    }
    for (int v = 0; v < 3; v++) {
        out->offsets[v] = msc_arena_array(arena, (size_t)out->n + 1, sizeof(int64_t));
        MSC_TRY(MSC_ALLOCATED(out->offsets[v]));
    }
    for (int64_t i = 0; i < out->n; i++) {
        int64_t rest = i;
        for (int a = p->e.n_axes - 1; a >= 0; a--) {
            if (kind_of(p, a) == kind) {
                int64_t at = rest % p->lengths[a];
                rest /= p->lengths[a];
                for (int v = 0; v < 2; v++) {
                    out->offsets[v][i] += at * p->strides[v][a];
                }
                out->offsets[2][i] += a < p->e.n_output_axes ? at * out_strides[a] : 0;
            }
        }
    }
    return MSC_OK;
}

// Multiplies one tile of MSC_DOT_WIDTH columns after another. Products are added in the order of
// the summed axes.
static void multiply_positions(float *out, const float *a, const float *b,
                               const struct positions by_kind[4], float *row, float *tile) {
    const struct positions *rows = &by_kind[ROW], *columns = &by_kind[COLUMN];
    const struct positions *summed = &by_kind[SUMMED];
    for (int64_t first = 0; first < columns->n; first += MSC_DOT_WIDTH) {
        int64_t n = columns->n - first < MSC_DOT_WIDTH ? columns->n - first : MSC_DOT_WIDTH;
        const int64_t *from = columns->offsets[1] + first, *to = columns->offsets[2] + first;
        for (int64_t k = 0; k < summed->n; k++) {
            for (int64_t j = 0; j < n; j++) {
                tile[k * MSC_DOT_WIDTH + j] = b[summed->offsets[1][k] + from[j]];
            }
        }
        for (int64_t i = 0; i < rows->n; i++) {
            float sums[MSC_DOT_WIDTH];
            for (int64_t k = 0; k < summed->n; k++) {
                row[k] = a[summed->offsets[0][k] + rows->offsets[0][i]];
            }
            msc_reference__dot_tile(sums, row, 1, tile, summed->n);
            for (int64_t j = 0; j < n; j++) {
                out[rows->offsets[2][i] + to[j]] = sums[j];
            }
        }
    }
}

static enum msc_status einsum_of_two(const struct msc_reference_call *call,
                                     const struct product *p) {
    const struct msc_view *out = &call->outputs[0];
    struct positions by_kind[4] = {{0}};
    struct msc_arena arena = {0};
    int64_t out_strides[MSC_MAX_DIMS];
    enum msc_status status = MSC_OK;
    float *memory = NULL;
    msc_reference__strides(out_strides, out->n_dims, out->dims);
    for (int kind = 0; status == MSC_OK && kind < 4; kind++) {
        status = positions_init(&by_kind[kind], &arena, p, (enum axis_kind)kind, out_strides);
    }
    if (status == MSC_OK) {
        size_t n = (size_t)by_kind[SUMMED].n + 1;
        memory = msc_alloc_zero(n * (MSC_DOT_WIDTH + 1), sizeof(float));
        status = MSC_ALLOCATED(memory);
    }
    const struct positions *batches = &by_kind[BATCH];
    for (int64_t i = 0; status == MSC_OK && i < batches->n; i++) {
        multiply_positions((float *)out->data + batches->offsets[2][i],
                           (const float *)call->operands[0].data + batches->offsets[0][i],
                           (const float *)call->operands[1].data + batches->offsets[1][i], by_kind,
                           memory + (size_t)by_kind[SUMMED].n * MSC_DOT_WIDTH, memory);
    }
    msc_free(memory);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_reference__einsum(const struct msc_reference_call *call) {
    const struct msc_view *out = &call->outputs[0];
    struct product p;
    MSC_TRY(product_init(&p, call));
    int64_t n = msc_view_n_elements(out), n_summed = 1;
    for (int a = p.e.n_output_axes; a < p.e.n_axes; a++) {
        n_summed *= p.lengths[a];
    }
    if (call->n_operands == 2 && msc_reference__is_f32(call) && n > 0 && n_summed > 0) {
        return einsum_of_two(call, &p);
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
