// Integers cut into digits, so that sums of products with each stay exact in float32.
//
//     struct msc_digits d = msc_digits_cut(msc_digits_largest(&quant), largest_sum);
//     for (int i = 0; i < d.n; i++) {
//         // multiply ((q - zero point) >> d.shift * i) & msc_digits_mask(&d, i), add << d.shift * i
//     }
#ifndef MSC_KERNELS_LOWERING_DIGITS_H
#define MSC_KERNELS_LOWERING_DIGITS_H

#include "graph/edit.h"

// n digits of `shift` bits, lowest first. n is 0 when there is no way: `rest` is 2^23 or more.
struct msc_digits {
    int n;
    int shift;
    int32_t largest; // size of a digit
};
// `largest` is the size of the integers, at most 255; `rest` the largest sum of sizes of what they
// are multiplied with.
struct msc_digits msc_digits_cut(int32_t largest, int64_t rest);
// Do sums fit into int32, of integers of that size with all that they are multiplied with, and a
// bias of this size at most? Not where there is no way to cut them: whatever adds up integers, it
// does so just where all others could.
bool msc_digits_sums_fit(int32_t largest, int64_t rest, int64_t bias);
// What is left of an integer moved down to a digit: the top one keeps the sign.
int32_t msc_digits_mask(const struct msc_digits *d, int digit);
// The largest |q - zero point| that a quantisation can give.
int32_t msc_digits_largest(const struct msc_quant *quant);

#endif
