// Rounds weights to integers so that a joint's outputs change little.
//
// A row w of weights becomes q = (c - z) s with integers c. With H the second moment of the row's
// inputs (tools/second_moment.h), the mean square change of its outputs is (q - w)' H (q - w): the
// error of the row. Scales are fitted for integers rounded to nearest; then the integers can be
// improved:
//
//     gptq     column by column, in descending order of the diagonal of H; the remaining columns
//              compensate each rounding error (E. Frantar et al., "GPTQ", arXiv 2210.17323)
//     descent  repeatedly column by column: each integer is set to its best value while the
//              others are fixed, so the error never grows (K. Behdin et al., "QuantEase", arXiv
//              2309.01885)
//
//     MSC_TRY(msc_rounding_fit(&rows));                       // scales, zero points
//     MSC_TRY(msc_rounding_nearest(&rows));                   // integers
//     MSC_TRY(msc_gptq_order_create(&order, h, n, 0.01));     // once for all rows and scales
//     MSC_TRY(msc_rounding_gptq(&rows, order));
//     MSC_TRY(msc_rounding_descend(&rows, 4));
//
// Finally the outputs of a row may be corrected by a gain, which is multiplied into its scales, and
// a shift, which is added to a bias. Gain and shift minimise the mean square difference from w x
// (least squares, with the means of the columns). If there is a shift, H is centred, because the
// shift corrects errors of the mean. M. Nagel et al., "Data-Free Quantization Through Weight
// Equalization and Bias Correction", arXiv 1906.04721, uses only the shift.
//
// Everything is deterministic. The result for a row does not depend on other rows, so rows may be
// computed in parallel, MSC_ROUNDING_ROWS at a time.
#ifndef MSC_TOOLS_ROUNDING_H
#define MSC_TOOLS_ROUNDING_H

#include "tools/range.h"

#include <stdint.h>

// Rows per call. More rows per call need more memory and are not faster.
#define MSC_ROUNDING_ROWS 64

// Open structure; the caller owns everything.
struct msc_rounding_rows {
    int64_t n_rows, n_columns;
    const float *weights;     // [n_rows, n_columns], finite
    const float *h;           // [n_columns, n_columns], symmetric, positive semidefinite
    struct msc_scheme scheme; // for weights
    int64_t group_size;       // columns that share a scale; 0: all columns of a row
    float *scales;            // [n_rows, n_groups], n_groups = ceil(n_columns / group_size)
    int32_t *zero_points;     // [n_rows, n_groups]
    int32_t *integers;        // [n_rows, n_columns]
};

// Fills scales and zero points from the range of least error among MSC_ROUNDING_RANGES candidates.
// The candidates reach from slightly wider to much narrower than the row's own range. For long
// rows, errors are first estimated with the diagonal and the first eigenvector of H, and only the
// best ranges are evaluated. Groups are fitted independently, each by its own block of H.
enum msc_status msc_rounding_fit(struct msc_rounding_rows *rows);
#define MSC_ROUNDING_RANGES 80

// These functions fill `integers` for the current scales. msc_rounding_descend starts from the
// current integers.
void msc_rounding_nearest(struct msc_rounding_rows *rows);
struct msc_gptq_order;
enum msc_status msc_rounding_gptq(struct msc_rounding_rows *rows,
                                  const struct msc_gptq_order *order);
// Makes at most n_passes over all columns; stops when nothing changes.
enum msc_status msc_rounding_descend(struct msc_rounding_rows *rows, int n_passes);

// Sets errors [n_rows] to the current errors of the rows.
enum msc_status msc_rounding_errors(double errors[], const struct msc_rounding_rows *rows);

// Multiplies the scales of each row by a gain from 0.5 to 2, and fills shifts [n_rows]. Needs the
// means [n_columns] of the inputs, and centred H. If shifts is NULL, only a gain is fitted, and H
// must not be centred.
enum msc_status msc_rounding_fit_affine(float shifts[], struct msc_rounding_rows *rows,
                                        const double means[]);

// Prepares H [n, n] for GPTQ: the order of columns, and the upper Cholesky factor of the inverse
// of H + damping * (mean of its diagonal) * I in that order. Columns whose inputs are always zero
// (diagonal 0) get a diagonal of 1. *out is owned by the caller. MSC_E_INVALID: H is not positive
// semidefinite.
enum msc_status msc_gptq_order_create(struct msc_gptq_order **out, const float h[], int64_t n,
                                      double damping);
void msc_gptq_order_destroy(struct msc_gptq_order *order); // accepts NULL

#endif
