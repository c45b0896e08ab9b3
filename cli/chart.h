// Charts of numbers as text, in block characters, or in ASCII for terminals without them.
#ifndef MSC_CLI_CHART_H
#define MSC_CLI_CHART_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

// True if the locale in the environment is UTF-8.
bool msc_cli_is_utf8(void);

// Writes one character for each value, low for the least and high for the greatest; NaN is a blank.
// The scale is logarithmic if all values are positive and far apart.
void msc_chart_line(struct msc_str *out, const double values[], size_t n, bool has_blocks);
// Like msc_chart_line, but in n_rows rows, each with a newline. The first row is labelled with the
// greatest value, and the last row with the least.
void msc_chart_rows(struct msc_str *out, const double values[], size_t n, size_t n_rows,
                    bool has_blocks);

// Columns that msc_chart_rows uses for labels, in addition to one column for each value.
#define MSC_CHART_LABEL_COLUMNS 12

#endif
