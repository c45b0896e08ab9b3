// Internal to tools/: small dense matrices in row-major order, for tools/equalizer_pairs.c.
#ifndef MSC_TOOLS_EQUALIZER_MATRIX_H
#define MSC_TOOLS_EQUALIZER_MATRIX_H

#include <stddef.h>
#include <stdint.h>

// The most elements of a head.
enum { MSC_EQUALIZER_MOST_SIZE = 512 };

// x^T m x for a symmetric m [n, n].
double msc_equalizer__quadratic(const double m[], const double x[], size_t n);

// Replaces the vector x[0], x[stride], … of n elements, at most MSC_EQUALIZER_MOST_SIZE, by t x.
void msc_equalizer__transform(float x[], int64_t stride, const double t[], size_t n);

// Sets t_a and t_b [n, n] so that t_a^T t_b is the identity, and vectors with the second moments a
// and b [n, n], multiplied by t_a and t_b, have equal second moments, whose diagonal elements are
// equal too. `room` has 4 n^2 elements; a and b are overwritten. Both moments first get 1/1000 of
// their mean diagonal element added to the diagonal. If a or b is 0, t_a and t_b are the identity.
void msc_equalizer__balance(double t_a[], double t_b[], double a[], double b[], size_t n,
                            double room[]);

#endif
