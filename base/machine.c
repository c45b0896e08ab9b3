// Linux: CPU affinity mask and /proc.

// sched_getaffinity is specific to Linux.
#define _GNU_SOURCE

#include "base/machine.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

int msc_machine_n_threads(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

// Intel's manual, CPUID leaf 7: AVX512_VNNI is bit 11 of ECX, AVX_VNNI bit 4 of EAX of subleaf 1.
bool msc_machine_sums_bytes(void) {
#ifdef __x86_64__
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    bool has_leaf = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0;
    bool has_more = has_leaf && eax >= 1;
    bool is_wide = has_leaf && (ecx >> 11 & 1) != 0;
    return is_wide || (has_more && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
                       (eax >> 4 & 1) != 0);
#else
    return true;
#endif
}

uint64_t msc_machine_resident_bytes(void) {
    // Lines such as "RssAnon:     1234 kB".
    static const char *const keys[] = {"RssAnon:", "RssShmem:"};
    char line[256];
    uint64_t n_bytes = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            size_t n = strlen(keys[i]);
            n_bytes += strncmp(line, keys[i], n) == 0 ? strtoull(line + n, NULL, 10) << 10 : 0;
        }
    }
    if (file) {
        fclose(file);
    }
    return n_bytes;
}

uint64_t msc_machine_limit_bytes(void) {
    uint64_t free_bytes = msc_machine_free_bytes(), held = msc_machine_resident_bytes();
    return free_bytes == 0 ? 0 : free_bytes + held;
}

void msc_machine_give_back_memory(void) {
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

char *msc_machine_cache_folder(struct msc_arena *arena) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    // The XDG specification says to ignore relative paths.
    if (cache && cache[0] == '/') {
        return msc_path_join(arena, cache, "mscgym");
    }
    return home && home[0] == '/' ? msc_path_join(arena, home, ".cache/mscgym") : NULL;
}

char *msc_machine_program_folder(struct msc_arena *arena) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n < 1 || (size_t)n >= sizeof path) {
        return NULL;
    }
    path[n] = '\0';
    return msc_path_folder(arena, path);
}
