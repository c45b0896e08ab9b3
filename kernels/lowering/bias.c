#include "kernels/lowering/bias.h"

#include "base/alloc.h"

#include <string.h>

int64_t msc_bias_largest(const int32_t integers[], int64_t n) {
    int64_t largest = 0;
    for (int64_t i = 0; integers && i < n; i++) {
        int64_t size = integers[i] < 0 ? -(int64_t)integers[i] : integers[i];
        largest = size > largest ? size : largest;
    }
    return largest;
}

static void round_all(struct msc_bias *b, const struct msc_bias_rounding *r) {
    for (int64_t c = 0; c < b->n; c++) {
        int32_t q = msc_bias_round_channel(r, b->floats[c], c);
        b->floats[c] = msc_bias_value(r, q, c);
        if (b->integers) {
            b->steps[c] = msc_bias_step(r, c);
            b->integers[c] = q;
        }
    }
    b->largest = msc_bias_largest(b->integers, b->n);
}

enum msc_status msc_bias_init(struct msc_bias *out, const struct msc_array *elements,
                              const struct msc_edit *edit) {
    const struct msc_bias_rounding *rounding = msc_edit_rounding(edit);
    bool has_integers = rounding && rounding->shift == 0;
    size_t n = (size_t)msc_array_n_elements(elements);
    struct msc_array *x;
    MSC_TRY(msc_edit_elements(&x, elements, edit));
    *out = (struct msc_bias){.n = (int64_t)n, .floats = msc_alloc(n * sizeof(float) + 1)};
    if (has_integers) {
        out->integers = msc_alloc(n * sizeof(int32_t) + 1);
        out->steps = msc_alloc(n * sizeof(float) + 1);
    }
    if (!out->floats || (has_integers && (!out->integers || !out->steps))) {
        msc_bias_finish(out);
        msc_array_release(x);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    memcpy(out->floats, msc_array_data(x), n * sizeof(float));
    if (rounding) {
        round_all(out, rounding);
    }
    msc_array_release(x);
    return MSC_OK;
}

void msc_bias_finish(struct msc_bias *b) {
    msc_free(b->floats);
    msc_free(b->integers);
    msc_free(b->steps);
    *b = (struct msc_bias){0};
}

bool msc_bias_joins_sums(const struct msc_bias *b, const struct msc_quant *weight, float x_scale) {
    for (int64_t c = 0; b->integers && c < b->n; c++) {
        if (x_scale * weight->scales[weight->n > 1 ? c % weight->n : 0] != b->steps[c]) {
            return false;
        }
    }
    return b->integers != NULL;
}
