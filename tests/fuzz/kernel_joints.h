// Joints drawn from bytes, for fuzz_kernels. Every choice uses one byte, and missing bytes count
// as 0, so short inputs are simple cases. All drawn joints are valid.
#ifndef MSC_TESTS_FUZZ_KERNEL_JOINTS_H
#define MSC_TESTS_FUZZ_KERNEL_JOINTS_H

#include "tests/kernels/cpu_case.h"

// Upper limits of the elements of a tensor and the products of a joint.
#define KERNEL_MAX_ELEMENTS 6000
#define KERNEL_MAX_MACS 300000

struct kernel_draw {
    const uint8_t *data;
    size_t n, at;
    struct cpu_case *c;
    // True after drawing a sum that is added up in another order than in the reference. From then
    // on, results are close but not equal. Only joints that do not magnify small differences may
    // follow.
    bool is_close;
};

// A number from 0 to n - 1.
int kernel_below(struct kernel_draw *d, int n);

// A graph input with 2 to 5 dims.
int32_t kernel_input(struct kernel_draw *d);
// A convolution, a linear layer or a matrix product of y, or y itself if none fits.
int32_t kernel_anchor(struct kernel_draw *d, int32_t y);
// Another joint applied to y, or y itself if the drawn joint does not fit.
int32_t kernel_joint(struct kernel_draw *d, int32_t y);

#endif
