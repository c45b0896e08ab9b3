// Levels of instruction sets on 64-bit Arm: neon, neon_dotprod, neon_i8mm. They choose among our
// own loops and give the same bits. oneDNN cannot be limited there. On other processors there are
// no levels here.
//
// The level is fixed when it is first read.
#ifndef MSC_KERNELS_CPU_SIMD_LEVEL_H
#define MSC_KERNELS_CPU_SIMD_LEVEL_H

#include "kernels/cpu/routine.h"

// The levels that this process may use, lowest first; NULL after the last. Fixes the level.
const char *msc_simd_level(size_t i);
// Limits the process to a level.
enum msc_status msc_simd_set_level(const char *name);
// What the level allows; nothing if there are no levels. Fixes the level.
struct msc_routine_isa msc_simd_level_isa(void);

#endif
