#include "kernels/backend.h"

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

struct msc_placement msc_backend_place(const struct msc_backend *b, const struct msc_step *step) {
    return b->def->place && step->kernel ? b->def->place(b, step)
                                         : (struct msc_placement){b->def->name, "none"};
}

void msc_backend_close(struct msc_backend *b) {
    if (b) {
        b->def->close(b);
    }
}
