// Runs strided copies (kernels/lowering/movement.h).
#ifndef MSC_KERNELS_CPU_MOVEMENT_RUN_H
#define MSC_KERNELS_CPU_MOVEMENT_RUN_H

#include "kernels/lowering/movement.h"

// Copies the elements; the arrays do not overlap.
void msc_cpu_movement_run(const struct msc_movement *m, void *out, const void *in);

#endif
