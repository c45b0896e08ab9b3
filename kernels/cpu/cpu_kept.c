// The choices among variants that are kept for this processor (kernels/choices.h).
#include "kernels/cpu/cpu.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "kernels/cpu/simd.h"

#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

// The processor's name, as it tells it itself; "" if it has none.
static void name_processor(char out[64]) {
    memset(out, 0, 64);
#ifdef __x86_64__
    unsigned int words[12];
    for (unsigned int i = 0; i < 3; i++) {
        if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3])) {
            return;
        }
    }
    memcpy(out, words, sizeof(words));
#endif
}

// What a choice may depend on: the processor, the library and the instructions in use.
enum msc_status msc_cpu_kept_init(struct msc_cpu_backend *b) {
    char processor[64], hash[MSC_HASH_TEXT_BYTES];
    struct msc_arena arena = {0};
    if (!b->base.options.cache_folder) {
        return MSC_OK;
    }
    name_processor(processor);
    snprintf(b->device, sizeof(b->device), "%s; %s; %s", processor, msc_simd_best()->isa,
             b->numerics);
    msc_hash_format(hash, msc_hash_bytes(b->device, strlen(b->device)));
    const char *name = msc_arena_printf(&arena, "cpu-%.8s.choices.json", hash);
    char *path = name ? msc_path_join(&arena, b->base.options.cache_folder, name) : NULL;
    b->kept_path = path ? msc_strdup(path) : NULL;
    msc_arena_finish(&arena);
    MSC_TRY(MSC_ALLOCATED(b->kept_path));
    msc_choices_load(&b->kept, b->kept_path, b->device, b->base.options.log);
    return MSC_OK;
}

enum msc_status msc_cpu_keep(struct msc_backend *base, const struct msc_kept_choice choices[],
                             size_t n) {
    struct msc_cpu_backend *b = msc_cpu_from(base);
    if (!b->kept_path) {
        return MSC_FAIL(MSC_E_INVALID, "cpu: keeping choices needs options.cache_folder");
    }
    return msc_choices_keep(&b->kept, b->kept_path, b->device, choices, n, b->base.options.log);
}
