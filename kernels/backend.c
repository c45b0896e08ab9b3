#include "kernels/backend.h"

#include "base/maths.h"

enum msc_dtype msc_quant_dtype(const struct msc_quant *q) {
    if (q->type != MSC_DTYPE_NONE) {
        return MSC_DTYPE_F32;
    }
    if (q->low >= 0 && q->high <= UINT8_MAX) {
        return MSC_DTYPE_U8;
    }
    return q->low >= INT8_MIN && q->high <= INT8_MAX ? MSC_DTYPE_I8 : MSC_DTYPE_F32;
}

bool msc_quant_is_integer(const struct msc_quant *q) {
    return q->bits <= 8 && q->group_size == 0 && msc_quant_dtype(q) != MSC_DTYPE_F32;
}

bool msc_quant_is_static(const struct msc_quant *q) {
    return q && !q->is_dynamic && msc_quant_is_integer(q);
}

enum msc_status msc_mask_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                               const struct msc_channel_mask *mask) {
    char text[MSC_DIMS_TEXT_BYTES];
    if (mask->axis >= v->n_dims || v->dims[mask->axis] != mask->n) {
        return MSC_FAIL(MSC_E_INVALID, "a mask of %d channels along axis %d does not fit %s",
                        (int)mask->n, (int)mask->axis, msc_dims_format(text, v->n_dims, v->dims));
    }
    msc_view_split(outer, inner, v, mask->axis);
    return MSC_OK;
}

enum msc_status msc_quant_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                                const struct msc_quant *q) {
    char text[MSC_DIMS_TEXT_BYTES];
    if (q->axis >= v->n_dims || v->dims[q->axis] != q->n) {
        return MSC_FAIL(MSC_E_INVALID, "%d scales along axis %d do not fit a tensor of %s",
                        (int)q->n, (int)q->axis, msc_dims_format(text, v->n_dims, v->dims));
    }
    msc_view_split(outer, inner, v, q->axis);
    return MSC_OK;
}

double msc_squares_sum(const float y[], const float z[], int64_t n) {
    double lanes[MSC_MATHS_LANES] = {0};
    int64_t i = 0;
    for (; i + MSC_MATHS_LANES <= n; i += MSC_MATHS_LANES) {
        for (int k = 0; k < MSC_MATHS_LANES; k++) {
            double d = (double)y[i + k] - (double)z[i + k];
            lanes[k] += d * d;
        }
    }
    for (; i < n; i++) {
        double d = (double)y[i] - (double)z[i];
        lanes[i % MSC_MATHS_LANES] += d * d;
    }
    return msc_maths_add_lanes(lanes);
}

struct msc_placement msc_backend_place(const struct msc_backend *b, const struct msc_step *step) {
    return b->def->place && step->kernel ? b->def->place(b, step)
                                         : (struct msc_placement){b->def->name, "none"};
}

struct msc_backend_memory msc_backend_get_memory(struct msc_backend *b) {
    struct msc_backend_memory memory = {.is_host = b->def->memory_is_host,
                                        .room_bytes = UINT64_MAX};
    if (b->def->memory) {
        b->def->memory(b, &memory);
    }
    return memory;
}

struct msc_backend_transfers msc_backend_get_transfers(struct msc_backend *b) {
    struct msc_backend_transfers transfers = {0};
    if (b->def->transfers) {
        b->def->transfers(b, &transfers);
    }
    return transfers;
}

void msc_backend_close(struct msc_backend *b) {
    if (b) {
        b->def->close(b);
    }
}
