// Symmetric equations by their Cholesky factor: K = U^T U. Row i of U, an upper triangle, begins at
// u + i * stride.
#ifndef MSC_AGENTS_CHOLESKY_H
#define MSC_AGENTS_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

// Of the upper triangle of K in place. False when K is not positive definite.
bool msc_cholesky_factorise(double u[], size_t n, size_t stride);
// U^T z = x in place.
void msc_cholesky_solve_lower(const double u[], double x[], size_t n, size_t stride);
// U z = x in place.
void msc_cholesky_solve_upper(const double u[], double x[], size_t n, size_t stride);

#endif
