// Weights to integers by what they do to a joint's outputs.
//
// A row w of weights becomes q = (c - z) s of integers c. With H the second moment of what the row
// is multiplied by (tools/second_moment.h) its outputs move by (q - w)' H (q - w) in the mean
// square: the error of a row. Scales are found for integers that are rounded to nearest; then
// these are chosen anew:
//
//     gptq     column by column, in descending order of the diagonal of H, the rest making up for
//              what each was rounded by (E. Frantar et al., "GPTQ", arXiv 2210.17323)
//     descent  column by column and again, each integer the best one while the others stay, so that
//              the error never grows (K. Behdin et al., "QuantEase", arXiv 2309.01885)
//
//     MSC_TRY(msc_rounding_fit(&rows));                       // scales, zero points
//     MSC_TRY(msc_rounding_nearest(&rows));                   // integers
//     MSC_TRY(msc_gptq_order_create(&order, h, n, 0.01));     // once for all rows and scales
//     MSC_TRY(msc_rounding_gptq(&rows, order));
//     MSC_TRY(msc_rounding_descend(&rows, 4));
//
// At last the outputs of a row may be made up for by a gain, which goes into its scales, and a shift,
// which goes into a bias: those with which w x is met best in the mean square over what comes in
// (least squares, with the means of the columns). What a shift makes up for need not be kept small before:
// H is then that around the means. M. Nagel et al., "Data-Free Quantization Through
// Weight Equalization and Bias Correction", arXiv 1906.04721, has the shift alone.
//
// All of it is deterministic. What comes of a row does not depend on the rows beside it, and may be
// computed in parallel, MSC_ROUNDING_ROWS at a time.
#ifndef MSC_TOOLS_ROUNDING_H
#define MSC_TOOLS_ROUNDING_H

#include "tools/range.h"

#include <stdint.h>

// More rows at a time are not quicker, and need more memory.
#define MSC_ROUNDING_ROWS 64

// Open structure; everything is the caller's.
struct msc_rounding_rows {
    int64_t n_rows, n_columns;
    const float *weights;     // [n_rows, n_columns], finite
    const float *h;           // [n_columns, n_columns], symmetric, positive semidefinite
    struct msc_scheme scheme; // of weights
    int64_t group_size;       // columns that share a scale; 0: all of a row
    float *scales;            // [n_rows, n_groups], n_groups = ceil(n_columns / group_size)
    int32_t *zero_points;     // [n_rows, n_groups]
    int32_t *integers;        // [n_rows, n_columns]
};

// Fills scales and zero points: of MSC_ROUNDING_RANGES ranges, shrunken and a little widened ones of
// the row's own, that with the least error. Of long rows only the ranges are tried whose errors, with
// the diagonal and the first eigenvector for H, are among the least. Groups are fitted one by one, each by its own block of H.
enum msc_status msc_rounding_fit(struct msc_rounding_rows *rows);
#define MSC_ROUNDING_RANGES 80

// Fill `integers` for the scales that there are; descend starts from the integers that there are.
void msc_rounding_nearest(struct msc_rounding_rows *rows);
struct msc_gptq_order;
enum msc_status msc_rounding_gptq(struct msc_rounding_rows *rows,
                                  const struct msc_gptq_order *order);
// At most so many times over all columns; it ends where nothing changes.
enum msc_status msc_rounding_descend(struct msc_rounding_rows *rows, int n_passes);

// The errors of the rows as they are rounded now, into errors [n_rows].
enum msc_status msc_rounding_errors(double errors[], const struct msc_rounding_rows *rows);

// Multiplies the scales of each row by its gain, 0.5 to 2, and fills shifts [n_rows]. What comes in
// has these means [n_columns], and H is around them. Without shifts (NULL) by a gain alone, H as it is.
enum msc_status msc_rounding_fit_affine(float shifts[], struct msc_rounding_rows *rows,
                                        const double means[]);

// What GPTQ takes of H [n, n]: its columns' order, and the upper Cholesky factor of the inverse of
// H + damping * (mean of its diagonal) * I in that order. Columns that nothing comes in by, whose
// diagonal is 0, count as 1. *out is owned by the caller. MSC_E_INVALID: H is not positive
// semidefinite.
enum msc_status msc_gptq_order_create(struct msc_gptq_order **out, const float h[], int64_t n,
                                      double damping);
void msc_gptq_order_destroy(struct msc_gptq_order *order); // accepts NULL

#endif
