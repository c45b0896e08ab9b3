// Elementary functions in double for results that are rounded to float32: vectorised loops over
// contiguous arrays that give the same bits on every machine. The relative error is below 1e-10,
// also near zeros. NaN gives NaN. out may equal x.
//
// For results in double, call the C library instead.
#ifndef MSC_GRAPH_REFERENCE_NUMERIC_REAL_H
#define MSC_GRAPH_REFERENCE_NUMERIC_REAL_H

#include <stdint.h>

// The angle is at most MSC_REAL_MOST_ANGLE in magnitude.
#define MSC_REAL_MOST_ANGLE 1e5
void msc_real_sin_run(double out[], const double x[], int64_t n);
void msc_real_cos_run(double out[], const double x[], int64_t n);
void msc_real_tan_run(double out[], const double x[], int64_t n);

void msc_real_asin_run(double out[], const double x[], int64_t n);
void msc_real_acos_run(double out[], const double x[], int64_t n);
void msc_real_atan_run(double out[], const double x[], int64_t n);
void msc_real_sinh_run(double out[], const double x[], int64_t n);
void msc_real_cosh_run(double out[], const double x[], int64_t n);
void msc_real_expm1_run(double out[], const double x[], int64_t n);
void msc_real_softplus_run(double out[], const double x[], int64_t n); // log(1 + exp(x))
void msc_real_mish_run(double out[], const double x[], int64_t n);     // x tanh(softplus(x))

#endif
