#include "kernels/lowering/matmul.h"

#include "kernels/backend.h"

bool msc_matmul_is_integer(struct msc_digits *out, const struct msc_quant *a,
                           const struct msc_quant *b, int64_t depth) {
    *out = (struct msc_digits){1, 0, 0};
    if (!a || !b) {
        return false;
    }
    int32_t largest = msc_digits_largest(a);
    int64_t rest = depth * msc_digits_largest(b);
    struct msc_digits digits = msc_digits_cut(largest, rest);
    if (digits.n == 0 || !msc_digits_sums_fit(largest, rest, 0)) {
        return false;
    }
    *out = digits;
    return true;
}

static enum msc_status edit_constant(struct msc_matmul_constant *c, const struct msc_array *from,
                                     const struct msc_edit *edit) {
    const struct msc_quant *quant = msc_edit_quant(edit);
    struct msc_array *elements, *q;
    if (!quant || !msc_quant_is_integer(quant) || quant->n != 1) {
        return msc_edit_apply(&c->elements, from, edit);
    }
    MSC_TRY(msc_edit_elements(&elements, from, edit));
    enum msc_status status = msc_quantize_array(&q, elements, quant);
    msc_array_release(elements);
    MSC_TRY(status);
    status = msc_array_convert(&c->elements, q, msc_quant_dtype(quant));
    msc_array_release(q);
    c->scale = quant->scales[0];
    c->zero_point = quant->zero_points[0];
    c->quant = *quant;
    c->quant.scales = &c->scale;
    c->quant.zero_points = &c->zero_point;
    return status;
}

enum msc_status msc_matmul_constant_init(struct msc_matmul_constant *out,
                                         const struct msc_view *constant,
                                         const struct msc_edit *edit) {
    struct msc_array *from;
    *out = (struct msc_matmul_constant){0};
    MSC_TRY(msc_array_create_from(&from, constant->dtype, constant->n_dims, constant->dims,
                                  constant->data));
    enum msc_status status = edit_constant(out, from, edit);
    msc_array_release(from);
    if (status != MSC_OK) {
        msc_matmul_constant_finish(out);
    }
    return status;
}

void msc_matmul_constant_finish(struct msc_matmul_constant *c) {
    msc_array_release(c->elements);
    c->elements = NULL;
}

const struct msc_quant *msc_matmul_constant_quant(const struct msc_matmul_constant *c) {
    return c->quant.bits > 0 ? &c->quant : NULL;
}
