// Internal to tools/: shared by the sources of tools/rounding.h.
#ifndef MSC_TOOLS_ROUNDING_INTERNAL_H
#define MSC_TOOLS_ROUNDING_INTERNAL_H

#include "tools/rounding.h"

// The number of columns that share a scale, and the number of such groups in a row.
int64_t msc_rounding__group_columns(const struct msc_rounding_rows *r);
int64_t msc_rounding__n_groups(const struct msc_rounding_rows *r);
// out = q [n_rows, n_columns], the values of the current integers.
void msc_rounding__dequantize(float out[], const struct msc_rounding_rows *r);

#endif
