// Splits integers into digits, so that the sums of products with each digit are exact in float32. A
// digit is a group of consecutive bits.
//
//     struct msc_digits d = msc_digits_cut(msc_digits_largest(&quant), largest_sum);
//     for (int i = 0; i < d.n; i++) {
//         // multiply ((q - zero point) >> d.shift * i) & msc_digits_mask(&d, i),
//         // then add the product << d.shift * i
//     }
#ifndef MSC_KERNELS_LOWERING_DIGITS_H
#define MSC_KERNELS_LOWERING_DIGITS_H

#include "graph/edit.h"

// n digits of `shift` bits each, lowest first. n is 0 if msc_digits_cut finds no exact split.
struct msc_digits {
    int n;
    int shift;
    int32_t largest; // largest magnitude of a digit
};
// Chooses how to split integers x of magnitude up to `largest` (at most 255), for sums of products
// x * w. `rest` is the largest sum of |w| over the products of one sum. If `rest` is 2^23 or more,
// no split is exact.
struct msc_digits msc_digits_cut(int32_t largest, int64_t rest);
// True if the integer sums, with a bias of magnitude up to `bias`, fit int32. `largest` and `rest`
// are as in msc_digits_cut. Also false if msc_digits_cut finds no split, so that all integer
// kernels accept the same joints.
bool msc_digits_sums_fit(int32_t largest, int64_t rest, int64_t bias);
// The mask that is applied to a digit after shifting. The top digit is not masked, so that it keeps
// the sign.
int32_t msc_digits_mask(const struct msc_digits *d, int digit);
// The largest |q - zero point| of a quantisation.
int32_t msc_digits_largest(const struct msc_quant *quant);

#endif
