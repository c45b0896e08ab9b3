// May tiles be used? Linux gives their registers only to processes that ask for them.

// syscall is no standard function.
#define _GNU_SOURCE

#include "kernels/cpu/simd_avx512.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// CPUID leaf 7: AMX-TILE and AMX-INT8. <asm/prctl.h>, since Linux 5.16: ARCH_REQ_XCOMP_PERM for
// state component 18, XTILEDATA.
enum { LEAF = 7, TILE = 1 << 24, INT8 = 1 << 25, ASK = 0x1023, TILE_DATA = 18 };

bool msc_simd__get_tiles(void) {
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8) &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}
