// Describes the cpu backend: its library and the instruction sets of its loops.
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_backend.h"

#include "base/platform.h"
#include "kernels/cpu/routine.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd_indirect.h"

#include <stdio.h>
#include <string.h>

// Reports the version of oneDNN, which is part of the name of a routine engine: "onednn-2.6.3
// avx2".
void msc_cpu_versions(msc_version_take take, void *payload) {
    static const char library[] = "onednn-";
    struct msc_routine_engine *engine = NULL;
    char version[64];
    if (msc_routine_open(&engine, 1, 1) != MSC_OK) {
        return;
    }
    const char *name = msc_routine_name(engine);
    if (strncmp(name, library, sizeof library - 1) == 0) {
        name += sizeof library - 1;
        snprintf(version, sizeof version, "%.*s", (int)strcspn(name, " "), name);
        take(payload, "oneDNN", version);
    }
    msc_routine_close(engine);
}

void msc_cpu_loops(const struct msc_backend *base, msc_version_take take, void *payload) {
    const struct msc_cpu_backend *b = msc_cpu_from(base);
    const struct {
        const char *name;
        const struct msc_simd_product *product;
    } products[] = {
        {"float_products", b->floats}, {"byte_products", b->bytes}, {"tile_products", b->tiles}};
    take(payload, "compiled", MSC_SIMD_LEVEL);
    take(payload, "own", msc_simd_best()->isa);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (products[i].product) {
            take(payload, products[i].name, products[i].product->isa);
        }
    }
}
