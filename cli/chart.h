// Numbers as a chart of text, in block characters or, where the terminal has none, in ASCII.
#ifndef MSC_CLI_CHART_H
#define MSC_CLI_CHART_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

// Does the environment say that text is UTF-8?
bool msc_cli_is_utf8(void);

// One character a value, from the least to the greatest; NaN is a blank. Where all are above 0 and far
// apart, their logarithms count.
void msc_chart_line(struct msc_str *out, const double values[], size_t n, bool has_blocks);
// The same in so many rows, each with its newline; the first and the last begin with the greatest and
// the least value.
void msc_chart_rows(struct msc_str *out, const double values[], size_t n, size_t n_rows,
                    bool has_blocks);

// Columns that msc_chart_rows takes beside the values.
#define MSC_CHART_LABEL_COLUMNS 12

#endif
