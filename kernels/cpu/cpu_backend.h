// The cpu backend: its interface to the rest of the program.
#ifndef MSC_KERNELS_CPU_CPU_BACKEND_H
#define MSC_KERNELS_CPU_CPU_BACKEND_H

#include "base/versions.h"
#include "kernels/backend.h"

extern const struct msc_backend_def msc_backend_cpu;

// See msc_backend_set_isa and msc_backend_isa (kernels/engine/backends.h).
enum msc_status msc_cpu_set_isa(const char *level);
const char *msc_cpu_isa(size_t i);
// See msc_kernels_versions and msc_kernels_loops (kernels/engine/kernels_describe.h).
void msc_cpu_versions(msc_version_take take, void *payload);
void msc_cpu_loops(const struct msc_backend *b, msc_version_take take, void *payload);

#endif
