// Describes the kernels/ folder for version reports: the libraries it uses and the instruction sets
// of its loops.
#ifndef MSC_KERNELS_ENGINE_KERNELS_DESCRIBE_H
#define MSC_KERNELS_ENGINE_KERNELS_DESCRIBE_H

#include "base/versions.h"

struct msc_backend;

// Reports the libraries that kernels/ links, except Vulkan's loader, which is loaded at run time.
void msc_kernels_versions(msc_version_take take, void *payload);
// Reports the instruction set of each kind of loop in an open cpu backend: "compiled" (loops
// compiled for several instruction sets) and "own" (loops written with intrinsics). Matrix products
// written with intrinsics follow, if there are any: "float_products", "byte_products",
// "tile_products".
void msc_kernels_loops(const struct msc_backend *cpu, msc_version_take take, void *payload);

#endif
