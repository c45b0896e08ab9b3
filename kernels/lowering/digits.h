// Splits integers into digits, so that the sums of products with each digit stay exact in float32.
//
//     struct msc_digits d = msc_digits_cut(msc_digits_largest(&quant), largest_sum);
//     for (int i = 0; i < d.n; i++) {
//         // multiply ((q - zero point) >> d.shift * i) & msc_digits_mask(&d, i), add << d.shift * i
//     }
#ifndef MSC_KERNELS_LOWERING_DIGITS_H
#define MSC_KERNELS_LOWERING_DIGITS_H

#include "graph/edit.h"

// n digits of `shift` bits, lowest first. n is 0 if no split is exact: `rest` is 2^23 or more.
struct msc_digits {
    int n;
    int shift;
    int32_t largest; // largest magnitude of a digit
};
// Splits integers of magnitude up to `largest` (at most 255). `rest` is the largest sum of the
// magnitudes of the other factors.
struct msc_digits msc_digits_cut(int32_t largest, int64_t rest);
// Do the integer sums fit int32, with factors as above and a bias of magnitude up to `bias`? False
// also if msc_digits_cut finds no split, so that all integer kernels accept the same joints.
bool msc_digits_sums_fit(int32_t largest, int64_t rest, int64_t bias);
// The mask of a digit after its shift: the top digit keeps the sign.
int32_t msc_digits_mask(const struct msc_digits *d, int digit);
// The largest |q - zero point| of a quantisation.
int32_t msc_digits_largest(const struct msc_quant *quant);

#endif
