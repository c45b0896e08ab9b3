// Internal to tools/: shared by the sources of tools/rounding.h.
#ifndef MSC_TOOLS_ROUNDING_INTERNAL_H
#define MSC_TOOLS_ROUNDING_INTERNAL_H

#include "tools/rounding.h"

// The number of columns that share a scale, and the number of such groups in a row.
int64_t msc_rounding__group_columns(const struct msc_rounding_rows *r);
int64_t msc_rounding__n_groups(const struct msc_rounding_rows *r);
// Columns per block of H.
int64_t msc_rounding__block(const struct msc_rounding_rows *r);
// out [n_rows, n_columns] = a H
void msc_rounding__product(float out[], const float a[], const struct msc_rounding_rows *r);
// The gain that brings q nearest to w, from w' H q and q' H q.
double msc_rounding__gain(double covariance, double variance);
// out = q [n_rows, n_columns], the values of the current integers.
void msc_rounding__dequantize(float out[], const struct msc_rounding_rows *r);

#endif
