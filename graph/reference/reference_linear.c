#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <string.h>

// out[i, j] = sum over k of a[i, k] * b[k, j]. `out` is dense; a and b have strides in elements.
struct product {
    int64_t m, n, k;
    int64_t a_row, a_column; // strides of i and k
    int64_t b_row, b_column; // strides of k and j
};

// `tile` [k, MSC_DOT_WIDTH] is scratch memory for one tile of columns.
static void reference_linear_multiply(const struct product *p, float out[], const float a[],
                                      const float b[], float tile[]) {
    for (int64_t first = 0; first < p->n; first += MSC_DOT_WIDTH) {
        int64_t n = p->n - first < MSC_DOT_WIDTH ? p->n - first : MSC_DOT_WIDTH;
        for (int64_t k = 0; k < p->k; k++) {
            float *row = tile + k * MSC_DOT_WIDTH;
            for (int64_t j = 0; j < MSC_DOT_WIDTH; j++) {
                row[j] = j < n ? b[k * p->b_row + (first + j) * p->b_column] : 0.0f;
            }
        }
        for (int64_t i = 0; i < p->m; i += MSC_DOT_ROWS) {
            float sums[MSC_DOT_ROWS * MSC_DOT_WIDTH];
            int64_t rows = p->m - i < MSC_DOT_ROWS ? p->m - i : MSC_DOT_ROWS;
            msc_reference__dot_tiles(sums, a + i * p->a_row, p->a_row, p->a_column, rows, tile,
                                     p->k);
            for (int64_t r = 0; r < rows; r++) {
                memcpy(out + (i + r) * p->n + first, sums + r * MSC_DOT_WIDTH,
                       (size_t)n * sizeof(float));
            }
        }
    }
}

static enum msc_status create_tile(float **out, int64_t k) {
    *out = msc_alloc_aligned(((size_t)k + 1) * MSC_DOT_WIDTH * sizeof(float));
    return MSC_ALLOCATED(*out);
}

// *out is true if a linear layer's weight is [out, in] ("OI"), false if it is [in, out] ("IO").
static enum msc_status weight_is_out_first(bool *out, const struct msc_reference_call *call) {
    const char *layout = msc_graph_tensor(call->graph, call->joint->operands[1])->layout;
    *out = strcmp(layout, "OI") == 0;
    if (!*out && strcmp(layout, "IO") != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: weight layout '%s', expected OI or IO",
                        call->joint->name, layout);
    }
    return MSC_OK;
}

enum msc_status msc_reference__linear(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__through_f32(call, msc_reference__linear);
    }
    const struct msc_view *x = &call->operands[0];
    const struct msc_view *weight = &call->operands[1];
    bool is_out_first;
    MSC_TRY(weight_is_out_first(&is_out_first, call));
    int64_t n_in = weight->dims[is_out_first ? 1 : 0], n_out = weight->dims[is_out_first ? 0 : 1];
    if (x->n_dims < 1 || weight->n_dims != 2 || x->dims[x->n_dims - 1] != n_in) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "joint %s: the input's last axis must have length %lld, the weight's number of inputs",
            call->joint->name, (long long)n_in);
    }
    struct product p = {
        .m = msc_dims_product(x->n_dims - 1, x->dims),
        .n = n_out,
        .k = n_in,
        .a_row = n_in,
        .a_column = 1,
        .b_row = is_out_first ? 1 : n_out,
        .b_column = is_out_first ? n_in : 1,
    };
    float *tile;
    MSC_TRY(create_tile(&tile, p.k));
    float *out = call->outputs[0].data;
    reference_linear_multiply(&p, out, x->data, weight->data, tile);
    if (msc_reference__has(call, 2)) {
        const float *bias = call->operands[2].data;
        for (int64_t i = 0; i < p.m * p.n; i++) {
            out[i] += bias[i % p.n];
        }
    }
    msc_free_aligned(tile);
    return MSC_OK;
}

// Strides of the batch axes, broadcast to the batch dims of the output.
static void batch_strides(int64_t strides[], const struct msc_view *v, int n_dims,
                          const int64_t dims[]) {
    struct msc_view batch = {.n_dims = v->n_dims > 2 ? v->n_dims - 2 : 0};
    int64_t matrix = msc_dims_product(v->n_dims - batch.n_dims, v->dims + batch.n_dims);
    memcpy(batch.dims, v->dims, sizeof(batch.dims));
    msc_reference__broadcast_strides(strides, &batch, n_dims, dims);
    for (int i = 0; i < n_dims; i++) {
        strides[i] *= matrix;
    }
}

enum msc_status msc_reference__matmul(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__any_matmul(call);
    }
    const struct msc_view *a = &call->operands[0], *b = &call->operands[1];
    const struct msc_view *out = &call->outputs[0];
    if (a->n_dims < 1 || b->n_dims < 1) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "joint %s: a factor of the product is a scalar, expected 1 dimension or more",
            call->joint->name);
    }
    struct product p = {
        .m = a->n_dims > 1 ? a->dims[a->n_dims - 2] : 1,
        .n = b->n_dims > 1 ? b->dims[b->n_dims - 1] : 1,
        .k = a->dims[a->n_dims - 1],
        .a_column = 1,
        .b_column = 1,
    };
    p.a_row = p.k;
    p.b_row = p.n;
    if (p.m == 0 || p.n == 0 || p.k == 0) { // an empty sum, or no elements
        if (msc_view_n_bytes(out) > 0) {
            memset(out->data, 0, msc_view_n_bytes(out));
        }
        return MSC_OK;
    }
    int n_batch = out->n_dims - (a->n_dims > 1) - (b->n_dims > 1);
    int64_t strides[MSC_MAX_DIMS];
    struct msc_walk w;
    msc_reference__walk_init(&w, n_batch, out->dims);
    msc_reference__strides(strides, n_batch, out->dims);
    for (int i = 0; i < n_batch; i++) {
        strides[i] *= p.m * p.n;
    }
    msc_reference__walk_add(&w, strides);
    batch_strides(strides, a, n_batch, out->dims);
    msc_reference__walk_add(&w, strides);
    batch_strides(strides, b, n_batch, out->dims);
    msc_reference__walk_add(&w, strides);

    float *tile;
    MSC_TRY(create_tile(&tile, p.k));
    for (bool more = msc_reference__walk_first(&w); more; more = msc_reference__walk_next(&w)) {
        for (int64_t i = 0; i < w.length; i++) {
            reference_linear_multiply(&p, (float *)out->data + w.offsets[0] + i * w.steps[0],
                                      (const float *)a->data + w.offsets[1] + i * w.steps[1],
                                      (const float *)b->data + w.offsets[2] + i * w.steps[2], tile);
        }
    }
    msc_free_aligned(tile);
    return MSC_OK;
}

// alpha * A * B + beta * C, with C broadcast.
enum msc_status msc_reference__gemm(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__through_f32(call, msc_reference__gemm);
    }
    const struct msc_view *a = &call->operands[0], *b = &call->operands[1];
    const struct msc_view *out = &call->outputs[0];
    bool trans_a, trans_b;
    float alpha, beta;
    MSC_TRY(msc_reference__get_bool(&trans_a, call, "trans_a"));
    MSC_TRY(msc_reference__get_bool(&trans_b, call, "trans_b"));
    MSC_TRY(msc_reference__get_float(&alpha, call, "alpha"));
    MSC_TRY(msc_reference__get_float(&beta, call, "beta"));
    struct product p = {
        .m = out->dims[0],
        .n = out->dims[1],
        .k = a->dims[trans_a ? 0 : 1],
        .a_row = trans_a ? 1 : a->dims[1],
        .a_column = trans_a ? a->dims[1] : 1,
        .b_row = trans_b ? 1 : b->dims[1],
        .b_column = trans_b ? b->dims[1] : 1,
    };
    float *tile;
    MSC_TRY(create_tile(&tile, p.k));
    float *y = out->data;
    reference_linear_multiply(&p, y, a->data, b->data, tile);
    msc_free_aligned(tile);

    if (!msc_reference__has(call, 2)) {
        for (int64_t i = 0; i < p.m * p.n; i++) {
            y[i] *= alpha;
        }
        return MSC_OK;
    }
    int64_t strides[2] = {0, 0};
    msc_reference__broadcast_strides(strides, &call->operands[2], 2, out->dims);
    for (int64_t i = 0; i < p.m; i++) {
        const float *c = (const float *)call->operands[2].data + i * strides[0];
        for (int64_t j = 0; j < p.n; j++) {
            y[i * p.n + j] = y[i * p.n + j] * alpha + beta * c[j * strides[1]];
        }
    }
    return MSC_OK;
}
