// What is taken of BLAS and LAPACK: products and Cholesky factors, row by row in memory. Each call
// runs on the thread that makes it, and gives the same bits every time on one machine; how machines
// differ is in the name of its kernels.
//
//     msc_linear_algebra_begin();
//     msc_product_f32(out, x, h, n_rows, n, n);
#ifndef MSC_TOOLS_LINEAR_ALGEBRA_H
#define MSC_TOOLS_LINEAR_ALGEBRA_H

#include "base/status.h"
#include "base/versions.h"

#include <stddef.h>
#include <stdint.h>

// Before anything else: the library, which has threads of its own, leaves them alone from now on,
// for all of the process.
void msc_linear_algebra_begin(void);
// Of the library, its version and its kernels here: "openblas-0.3.21 Cooperlake".
const char *msc_linear_algebra_name(char out[], size_t n_bytes);
void msc_linear_algebra_versions(msc_version_take take, void *payload); // base/versions.h

// a b of float32, and with means of float64: added up in float64, element by element.
double msc_dot(const float a[], const float b[], int64_t n);
double msc_dot_means(const float a[], const double means[], int64_t n);
// out [m, n] = a [m, k] b [k, n]
void msc_product_f32(float out[], const float a[], const float b[], int64_t m, int64_t k,
                     int64_t n);
// out [m, n] with rows `stride` apart, less a [m, k] b [k, n], of which b's rows are `b_stride` apart
void msc_subtract_product_f64(double out[], int64_t stride, const double a[], int64_t a_stride,
                              const double b[], int64_t b_stride, int64_t m, int64_t k, int64_t n);
// out [m, n] less a' b of a [k, m] and b [k, n].
void msc_subtract_cross_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                            int64_t n);
// out [n, n], its upper triangle alone, less x' x of x [m, n].
void msc_subtract_gram_f64(double out[], const double x[], int64_t m, int64_t n);
// out [m, n] = a [m, k] b [k, n]
void msc_product_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                     int64_t n);
// out [n, n], its upper triangle alone, plus x' x of x [m, n].
void msc_add_gram_f32(float out[], const float x[], int64_t m, int64_t n);
// out [n, n] plus a' b of a and b [m, n].
void msc_add_cross_f32(float out[], const float a[], const float b[], int64_t m, int64_t n);

// In place, of symmetric a [n, n], whose upper triangle is read: the upper factor u of the inverse,
// a^-1 = u' u; below its diagonal are zeros. MSC_E_INVALID: `a` is not positive definite.
enum msc_status msc_cholesky_of_inverse(double a[], int64_t n);
// In place, of symmetric a [n, n]: its inverse, and its lower factor l, a = l l', of which what is above the
// diagonal is not touched. MSC_E_INVALID as above.
enum msc_status msc_invert_f64(double a[], int64_t n);
enum msc_status msc_cholesky_f64(double a[], int64_t n);
// l^-1 b in place of b [n, n_columns], for such a factor.
void msc_solve_lower_f64(const double l[], int64_t n, double b[], int64_t n_columns);
// b a^-1 in place of b [n_rows, n], for such an a, which is overwritten. MSC_E_INVALID as above.
enum msc_status msc_solve_right(double a[], double b[], int64_t n_rows, int64_t n);

#endif
