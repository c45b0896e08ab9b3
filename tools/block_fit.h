// Encodes rows of a weight in a block type of GGUF (data/gguf_block.h), with numbers chosen for the
// least weighted squared error
//
//     sum over columns k of importance[k] * (decoded[k] - x[k])^2
//
// First each part of a block gets the scale and minimum of least error, found among many ranges by
// least squares. Then these are rounded to the integers of the type: the best neighbours are tried,
// and the block's two float16 numbers are fitted again, as long as the error falls. Codes are
// always rounded to nearest.
//
//     msc_block_fit_rows(bytes, x, n_rows, n_columns, importance, type);
#ifndef MSC_TOOLS_BLOCK_FIT_H
#define MSC_TOOLS_BLOCK_FIT_H

#include "data/gguf_block.h"

// Encodes x [n_rows, n_columns], finite; n_columns is a multiple of type->n. `importance`
// [n_columns] is not negative; NULL: all columns count alike. Writes n_rows * n_columns / type->n *
// type->n_bytes bytes. The result for a row does not depend on other rows.
void msc_block_fit_rows(uint8_t bytes[], const float x[], int64_t n_rows, int64_t n_columns,
                        const float importance[], const struct msc_gguf_block_type *type);

#endif
