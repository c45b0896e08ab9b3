// The cpu backend: what the rest of the program sees of it.
#ifndef MSC_KERNELS_CPU_CPU_BACKEND_H
#define MSC_KERNELS_CPU_CPU_BACKEND_H

#include "kernels/backend.h"

extern const struct msc_backend_def msc_backend_cpu;

// msc_backend_set_isa and msc_backend_isa (kernels/engine/backends.h).
enum msc_status msc_cpu_set_isa(const char *level);
const char *msc_cpu_isa(size_t i);

#endif
