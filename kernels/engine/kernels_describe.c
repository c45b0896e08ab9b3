// For dladdr, which is not in POSIX.1-2008.
#define _GNU_SOURCE

#include "kernels/engine/kernels_describe.h"

#include "kernels/cpu/cpu_backend.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

// Reports the OpenMP runtime. It has no function that returns its version, so this reports its file
// name and the date of the OpenMP specification that the compiler follows.
static void take_openmp(msc_version_take take, void *payload) {
    char text[80];
    int (*function)(void) = omp_get_max_threads;
    void *address;
    Dl_info info = {0};
    // ISO C does not define the conversion of a function pointer to a data pointer; POSIX does.
    memcpy(&address, &function, sizeof address);
    const char *file = dladdr(address, &info) != 0 && info.dli_fname ? info.dli_fname : "";
    const char *slash = strrchr(file, '/');
    snprintf(text, sizeof text, "%d %s", _OPENMP, slash ? slash + 1 : file);
    take(payload, "OpenMP", text);
}

void msc_kernels_versions(msc_version_take take, void *payload) {
    msc_cpu_versions(take, payload);
    take_openmp(take, payload);
}

void msc_kernels_loops(const struct msc_backend *cpu, msc_version_take take, void *payload) {
    msc_cpu_loops(cpu, take, payload);
}
