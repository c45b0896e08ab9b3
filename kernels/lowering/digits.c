#include "kernels/lowering/digits.h"

// If `rest` is at least this, sums reach 2^24 even for digits of one bit, whose magnitude is up to
// 2.
#define LEAST_REST_OF_FLOATS ((int64_t)1 << 23)

struct msc_digits msc_digits_cut(int32_t largest, int64_t rest) {
    static const struct msc_digits ways[] = {{2, 4, 16}, {4, 2, 4}, {8, 1, 2}, {0, 0, 0}};
    struct msc_digits d =
        rest < LEAST_REST_OF_FLOATS ? (struct msc_digits){1, 0, largest} : ways[3];
    for (int i = 0; d.largest * rest >= ((int64_t)1 << 24); i++) {
        d = ways[i];
    }
    return d;
}

bool msc_digits_sums_fit(int32_t largest, int64_t rest, int64_t bias) {
    return rest < LEAST_REST_OF_FLOATS && largest * rest + bias < ((int64_t)1 << 31);
}

int32_t msc_digits_mask(const struct msc_digits *d, int digit) {
    return digit == d->n - 1 ? -1 : (1 << d->shift) - 1;
}

int32_t msc_digits_largest(const struct msc_quant *quant) {
    int32_t largest = 0;
    for (int32_t i = 0; i < quant->n; i++) {
        int32_t below = quant->zero_points[i] - quant->low;
        int32_t above = quant->high - quant->zero_points[i];
        largest = below > largest ? below : largest;
        largest = above > largest ? above : largest;
    }
    return largest;
}
