// Solves symmetric positive definite systems by the Cholesky factorisation K = U^T U. U is upper
// triangular; its row i begins at u + i * stride.
#ifndef MSC_AGENTS_CHOLESKY_H
#define MSC_AGENTS_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

// Replaces the upper triangle of K by U. False if K is not positive definite.
bool msc_cholesky_factorise(double u[], size_t n, size_t stride);
// Solves U^T z = x in place.
void msc_cholesky_solve_lower(const double u[], double x[], size_t n, size_t stride);
// Solves U z = x in place.
void msc_cholesky_solve_upper(const double u[], double x[], size_t n, size_t stride);

#endif
