// Wrappers of BLAS and LAPACK: products and Cholesky factors of row-major matrices. Each call runs
// on the calling thread and gives the same bits every time on one machine. Results of two machines
// may differ if msc_linear_algebra_name differs between them.
//
//     msc_linear_algebra_begin();
//     msc_product_f32(out, x, h, n_rows, n, n);
#ifndef MSC_TOOLS_LINEAR_ALGEBRA_H
#define MSC_TOOLS_LINEAR_ALGEBRA_H

#include "base/status.h"
#include "base/versions.h"

#include <stddef.h>
#include <stdint.h>

// Stops the library from using threads of its own, for the whole process. Call this first.
void msc_linear_algebra_begin(void);
// The library, its version and its kernels: "openblas-0.3.21 Cooperlake".
const char *msc_linear_algebra_name(char out[], size_t n_bytes);
void msc_linear_algebra_versions(msc_version_take take, void *payload); // base/versions.h

// Dot product of float32, or of float32 and float64: summed in float64 in order of elements.
double msc_dot(const float a[], const float b[], int64_t n);
double msc_dot_means(const float a[], const double means[], int64_t n);
// out [m, n] = a [m, k] b [k, n]
void msc_product_f32(float out[], const float a[], const float b[], int64_t m, int64_t k,
                     int64_t n);
// out [m, n] -= a [m, k] b [k, n]. The rows of a matrix are `stride`, `a_stride` or `b_stride`
// elements apart
void msc_subtract_product_f64(double out[], int64_t stride, const double a[], int64_t a_stride,
                              const double b[], int64_t b_stride, int64_t m, int64_t k, int64_t n);
// out [m, n] -= a' b, with a [k, m] and b [k, n]
void msc_subtract_cross_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                            int64_t n);
// out [n, n] -= x' x, with x [m, n]; changes only the upper triangle of out
void msc_subtract_gram_f64(double out[], const double x[], int64_t m, int64_t n);
// As msc_product_f32, with rows of `out` and of `a` a stride apart
void msc_product_rows_f32(float out[], const float a[], int64_t stride, const float b[], int64_t m,
                          int64_t k, int64_t n);
// out [n] += x [n] scale
void msc_add_scaled(double out[], const double x[], double scale, int64_t n);
void msc_add_scaled_f32(double out[], const float x[], double scale, int64_t n);
// out [m, n] = a [m, k] b [k, n]
void msc_product_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                     int64_t n);
// out [n, n] += x' x, with rows x [m, n] a stride apart; changes only the upper triangle of out
void msc_add_gram_f32(float out[], const float x[], int64_t stride, int64_t m, int64_t n);
// out [n, n] += a' b, with a and b [m, n]
void msc_add_cross_f32(float out[], const float a[], const float b[], int64_t m, int64_t n);

// Replaces symmetric a [n, n] by its inverse, or by its lower factor l, a = l l'. The factor leaves
// the elements above the diagonal unchanged. MSC_E_INVALID: `a` is not positive definite.
enum msc_status msc_invert_f64(double a[], int64_t n);
enum msc_status msc_cholesky_f64(double a[], int64_t n);
// Replaces b [n, n_columns] by l^-1 b, for a lower factor l.
void msc_solve_lower_f64(const double l[], int64_t n, double b[], int64_t n_columns);
// Replaces b [n_rows, n] by b a^-1 and overwrites symmetric `a`. MSC_E_INVALID as above.
enum msc_status msc_solve_right(double a[], double b[], int64_t n_rows, int64_t n);

#endif
