// Joints drawn from bytes, for fuzz_kernels: every choice takes a byte, and no byte is 0, so that short
// inputs are simple cases. What is drawn is valid by construction.
#ifndef MSC_TESTS_FUZZ_KERNEL_JOINTS_H
#define MSC_TESTS_FUZZ_KERNEL_JOINTS_H

#include "tests/kernels/cpu_case.h"

// Fewer elements and products than these in every tensor and joint.
#define KERNEL_MAX_ELEMENTS 6000
#define KERNEL_MAX_MACS 300000

struct kernel_draw {
    const uint8_t *data;
    size_t n, at;
    struct cpu_case *c;
    // Sums whose order is not the reference's were added: results are close, no longer equal. From then on
    // only joints are drawn that a small difference leaves small.
    bool is_close;
};

// 0 to n - 1.
int kernel_below(struct kernel_draw *d, int n);

// A graph input with 2 to 5 dims.
int32_t kernel_input(struct kernel_draw *d);
// A convolution, a linear layer or a matrix product behind y, or y where none fits.
int32_t kernel_anchor(struct kernel_draw *d, int32_t y);
// Something else behind y, or y where what was drawn does not fit.
int32_t kernel_joint(struct kernel_draw *d, int32_t y);

#endif
