// What kernels/ says of itself, for people.
#ifndef MSC_KERNELS_ENGINE_KERNELS_DESCRIBE_H
#define MSC_KERNELS_ENGINE_KERNELS_DESCRIBE_H

#include "base/versions.h"

struct msc_backend;

// Outside libraries, but for what Vulkan loads.
void msc_kernels_versions(msc_version_take take, void *payload);
// The instructions that each kind of loops of an open cpu backend is in: "compiled" by the compiler, for
// the best of several instruction sets; "own", which are written in them, and own products of floats,
// bytes and tiles, where there are some.
void msc_kernels_loops(const struct msc_backend *cpu, msc_version_take take, void *payload);

#endif
