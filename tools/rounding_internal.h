// What the sources of tools/rounding.h share.
#ifndef MSC_TOOLS_ROUNDING_INTERNAL_H
#define MSC_TOOLS_ROUNDING_INTERNAL_H

#include "tools/rounding.h"

enum msc_status msc_rounding__no_memory(void);
// Columns that share a scale, and how many such groups a row has.
int64_t msc_rounding__group_columns(const struct msc_rounding_rows *r);
int64_t msc_rounding__n_groups(const struct msc_rounding_rows *r);
// q [n_rows, n_columns] of the integers that there are.
void msc_rounding__dequantize(float out[], const struct msc_rounding_rows *r);

#endif
