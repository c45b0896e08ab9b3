// Computes the lengths and elements of tensors that remain after pruning.
#include "graph/passes/prune_internal.h"
#include "graph/reshape.h"

#include <string.h>

void msc_prune__dims(int64_t dims[MSC_MAX_DIMS], const struct msc_prune *p, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->from, tensor);
    for (int i = 0; i < t->n_dims; i++) {
        dims[i] = t->dims[i] < 0 ? -1 : msc_prune__count(p, tensor, i, t->dims[i]);
    }
}

bool msc_prune__is_cut(const struct msc_prune *p, int32_t tensor, int axis) {
    int64_t n = msc_reshape_period(p->from, msc_graph_tensor(p->from, tensor), axis);
    return msc_prune__count(p, tensor, axis, n) < n;
}

enum msc_status msc_prune__cut_axis(struct msc_array **out, const struct msc_channels *channels,
                                    const bool is_gone[], int32_t tensor, int of_axis,
                                    const struct msc_array *x, int axis) {
    int64_t dims[MSC_MAX_DIMS];
    int n_dims = msc_array_n_dims(x);
    memcpy(dims, msc_array_dims(x), (size_t)n_dims * sizeof(dims[0]));
    int64_t length = dims[axis], outer = msc_dims_product(axis, dims);
    int64_t n_rows = outer * length;
    size_t row = n_rows == 0 ? 0 : msc_array_n_bytes(x) / (size_t)n_rows;
    dims[axis] = msc_channels_count(channels, tensor, of_axis, length, is_gone);
    MSC_TRY(msc_array_create(out, msc_array_dtype(x), n_dims, dims));
    const char *from = msc_array_data(x);
    char *to = msc_array_data(*out);
    for (int64_t i = 0; i < n_rows; i++, from += row) {
        int32_t unit = msc_channels_unit(channels, tensor, of_axis, i % length);
        if (unit == MSC_NO_ID || !is_gone[unit]) {
            memcpy(to, from, row);
            to += row;
        }
    }
    return MSC_OK;
}

// If nothing is removed, *out is a reference to x itself.
enum msc_status msc_graph_prune_array(struct msc_array **out, const struct msc_array *x,
                                      const struct msc_channels *channels, int32_t tensor,
                                      const bool is_gone[]) {
    *out = msc_array_retain(x);
    for (int i = 0; i < msc_array_n_dims(x); i++) {
        struct msc_array *whole = *out;
        int64_t length = msc_array_dim(whole, i);
        if (msc_channels_count(channels, tensor, i, length, is_gone) == length) {
            continue;
        }
        enum msc_status status = msc_prune__cut_axis(out, channels, is_gone, tensor, i, whole, i);
        msc_array_release(whole);
        if (status != MSC_OK) {
            *out = NULL;
            return status;
        }
    }
    return MSC_OK;
}
