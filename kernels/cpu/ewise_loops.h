// The instructions of element-wise programs: vectorised loops over contiguous blocks.
#ifndef MSC_KERNELS_CPU_EWISE_LOOPS_H
#define MSC_KERNELS_CPU_EWISE_LOOPS_H

#include "kernels/lowering/ewise.h"

// out[i] = op(x[0][i], x[1][i], ...) for n elements. `out` may equal any x[k]. Absent operands are
// NULL.
void msc_cpu_ewise_loop(enum msc_ewise_op op, float *out, const float *const x[MSC_EWISE_MAX_X],
                        const float p[2], int64_t n);

#endif
