#include "kernels/cpu/simd_level.h"

#include "kernels/cpu/simd.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct level {
    const char *name; // also of the table of loops that needs the level
    struct msc_routine_isa isa;
};

#define NEON .uses_bytes = true, .uses_floats = true

static const struct level levels[] = {
#ifdef __aarch64__
    {"neon", {NEON}},
    {"neon_dotprod", {NEON, .allows_neon_dotprod = true}},
    {"neon_i8mm", {NEON, .allows_neon_dotprod = true, .allows_neon_i8mm = true}},
#endif
    {.name = NULL},
};

static bool has_level(const struct level *level) {
    const struct msc_simd *table;
    for (size_t i = 0; (table = msc_simd_of_machine(i)) != NULL; i++) {
        if (strcmp(table->isa, level->name) == 0) {
            return true;
        }
    }
    return false;
}

// The highest level that the machine has; the last row, without a name: none.
static const struct level *find_highest(void) {
    const struct level *found = NULL, *level = levels;
    for (; level->name; level++) {
        found = has_level(level) ? level : found;
    }
    return found ? found : level;
}

// Lists all levels, or only those that the machine has.
static const char *list_levels(char *text, size_t n_bytes, bool is_all) {
    size_t n = 0;
    text[0] = '\0';
    for (const struct level *level = levels; level->name && n < n_bytes; level++) {
        if (is_all || has_level(level)) {
            n += (size_t)snprintf(text + n, n_bytes - n, "%s%s", n > 0 ? ", " : "", level->name);
        }
    }
    return text;
}

// The level of the process; NULL: not fixed yet.
static _Atomic(const struct level *) fixed;

static const struct level *read_level(void) {
    const struct level *before = NULL, *highest = find_highest();
    return atomic_compare_exchange_strong(&fixed, &before, highest) ? highest : before;
}

const char *msc_simd_level(size_t i) {
    const struct level *last = read_level();
    for (const struct level *level = levels; level->name && level <= last; level++) {
        if (has_level(level) && i-- == 0) {
            return level->name;
        }
    }
    return NULL;
}

enum msc_status msc_simd_set_level(const char *name) {
    char text[64];
    const struct level *wanted = levels, *before;
    while (wanted->name && strcmp(wanted->name, name) != 0) {
        wanted++;
    }
    if (!levels[0].name) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "isa %s: this processor has no instruction levels; leave isa unset", name);
    }
    if (!wanted->name) {
        return MSC_FAIL(MSC_E_INVALID, "isa is \"%s\", expected one of %s", name,
                        list_levels(text, sizeof text, true));
    }
    before = atomic_load(&fixed);
    if (!before && !has_level(wanted)) {
        return MSC_FAIL(MSC_E_DEVICE, "isa %s: this processor lacks it; it supports %s", name,
                        list_levels(text, sizeof text, false));
    }
    if (!before) {
        atomic_compare_exchange_strong(&fixed, &before, wanted);
    }
    if (before && before != wanted) {
        return MSC_FAIL(MSC_E_STATE,
                        "isa %s: this process already uses %s and cannot change its level", name,
                        before->name);
    }
    return MSC_OK;
}

struct msc_routine_isa msc_simd_level_isa(void) {
    return read_level()->isa;
}
