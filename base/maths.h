// Exponential and natural logarithm with bit-identical results on every machine. C libraries
// differ by version, and choose code by processor. These functions use only IEEE 754 sums,
// products and quotients. The error is at most 1.1 units in the last place.
#ifndef MSC_BASE_MATHS_H
#define MSC_BASE_MATHS_H

double msc_maths_exp(double x);
double msc_maths_log(double x);

// Adds up the partial sums of a long sum: ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)). The
// additions to eight partial sums overlap in the processor.
enum { MSC_MATHS_LANES = 8 };
double msc_maths_add_lanes(const double s[MSC_MATHS_LANES]);

#endif
