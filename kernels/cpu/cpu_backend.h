// The cpu backend: what the rest of the program sees of it.
#ifndef MSC_KERNELS_CPU_CPU_BACKEND_H
#define MSC_KERNELS_CPU_CPU_BACKEND_H

#include "kernels/backend.h"

extern const struct msc_backend_def msc_backend_cpu;

#endif
