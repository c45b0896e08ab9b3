// Chooses among the tables of loops.
#include "kernels/cpu/routine.h"
#include "kernels/cpu/simd_indirect.h"
#include "kernels/cpu/simd_tables.h"

#include <stdatomic.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

struct row {
    const struct msc_simd *table;
    bool (*is_supported)(void);
    bool (*is_allowed)(struct msc_routine_isa isa);
};

static bool always(void) {
    return true;
}

static bool allow_always(struct msc_routine_isa isa) {
    (void)isa;
    return true;
}

#ifdef __x86_64__
static bool has_avx512_vnni(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

static bool allow_avx512(struct msc_routine_isa isa) {
    return isa.allows_avx512;
}

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

// Not every compiler knows AVX-VNNI by name: it is bit 4 of EAX of CPUID leaf 7, subleaf 1.
static bool has_avx2_vnni(void) {
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

static bool allow_avx2_vnni(struct msc_routine_isa isa) {
    return isa.allows_avx2_vnni;
}

static bool allow_avx2(struct msc_routine_isa isa) {
    return isa.allows_avx2;
}
#endif

#ifdef __aarch64__
// Bits of <asm/hwcap.h> of Linux.
enum { DOTPROD = 1 << 20, I8MM = 1 << 13 };

static bool has_neon_dotprod(void) {
    return (getauxval(AT_HWCAP) & DOTPROD) != 0;
}

static bool allow_neon_dotprod(struct msc_routine_isa isa) {
    return isa.allows_neon_dotprod;
}

static bool has_neon_i8mm(void) {
    return has_neon_dotprod() && (getauxval(AT_HWCAP2) & I8MM) != 0;
}

static bool allow_neon_i8mm(struct msc_routine_isa isa) {
    return isa.allows_neon_i8mm;
}
#endif

static const struct row rows[] = {
#ifdef __x86_64__
    {&msc_simd__avx512, has_avx512_vnni, allow_avx512},
    {&msc_simd__avx2_vnni, has_avx2_vnni, allow_avx2_vnni},
    {&msc_simd__avx2, has_avx2, allow_avx2},
#endif
#ifdef __aarch64__
    {&msc_simd__neon_i8mm, has_neon_i8mm, allow_neon_i8mm},
    {&msc_simd__neon_dotprod, has_neon_dotprod, allow_neon_dotprod},
    {&msc_simd__neon, always, allow_always},
#endif
    {&msc_simd_plain, always, allow_always},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct msc_simd *msc_simd_of_machine(size_t i) {
    for (size_t r = 0; r < N_ROWS; r++) {
        if (rows[r].is_supported() && i-- == 0) {
            return rows[r].table;
        }
    }
    return NULL;
}

static const struct msc_simd *find_best(void) {
    struct msc_routine_isa isa = msc_routine_isa();
    const struct row *row = rows;
    while (!row->is_supported() || !row->is_allowed(isa)) {
        row++;
    }
    return row->table;
}

// The table is found once: asking for the level takes longer than a short loop. The level cannot
// change after the first call.
const struct msc_simd *msc_simd_best(void) {
    static _Atomic(const struct msc_simd *) best;
    const struct msc_simd *found = atomic_load_explicit(&best, memory_order_relaxed);
    if (!found) {
        found = find_best();
        atomic_store_explicit(&best, found, memory_order_relaxed);
    }
    return found;
}

#ifndef __x86_64__
bool msc_simd_get_tiles(void) {
    return false;
}
#endif
