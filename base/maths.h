// Exponential and natural logarithm with the same bits on every machine: those of a C library depend on
// its version and on the processor, by which it chooses among its own. They are sums, products and
// quotients, which IEEE 754 rounds; within 1.1 units in the last place.
#ifndef MSC_BASE_MATHS_H
#define MSC_BASE_MATHS_H

double msc_maths_exp(double x);
double msc_maths_log(double x);

#endif
