// Elementary functions that give the same bits on every machine. They use only float32 + - * /
// and bit operations, without contraction, so that C on any instruction set and a shader with
// `precise` arithmetic agree. Range reductions and minimax coefficients follow Cephes (S. L.
// Moshier, single precision library).
//
// The error is at most 2 units in the last place over the stated range. NaN gives NaN.
#ifndef MSC_GRAPH_REFERENCE_NUMERIC_H
#define MSC_GRAPH_REFERENCE_NUMERIC_H

#include <stdint.h>

float msc_expf(float x); // inf on overflow; 0 or denormal below -87.3
float msc_logf(float x); // for x > 0; 0 gives -inf, negative x gives NaN
float msc_tanhf(float x);
float msc_erff(float x);
float msc_sigmoidf(float x);      // 1 / (1 + exp(-x)) without overflow
float msc_powf(float x, float y); // from y * log(x) in 48 bits, except for y = 0.5, 1, 2, 3

// Like the functions above, for contiguous arrays of n elements; vectorised. out may equal x.
void msc_exp_run(float out[], const float x[], int64_t n);
void msc_sigmoid_run(float out[], const float x[], int64_t n);
void msc_tanh_run(float out[], const float x[], int64_t n);
void msc_erf_run(float out[], const float x[], int64_t n);
void msc_log_run(float out[], const float x[], int64_t n);
void msc_pow_run(float out[], const float x[], const float y[], int64_t n); // out may equal y, too

#endif
