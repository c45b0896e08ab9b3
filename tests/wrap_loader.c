#include "tests/wrap_loader.h"

#include <stdbool.h>

PFN_vkGetInstanceProcAddr wrapped_loader;

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

// The thread sanitizer is part of the program. It looks up its own functions through this dlsym
// before it can watch accesses or replace functions of the C library.
#ifdef __clang__
#define UNWATCHED __attribute__((disable_sanitizer_instrumentation))
#else
#define UNWATCHED
#endif

UNWATCHED static bool is_entry(const char *name) {
    const char *entry = "vkGetInstanceProcAddr";
    while (*entry && *entry == *name) {
        entry++;
        name++;
    }
    return *entry == *name;
}

UNWATCHED void *__wrap_dlsym(void *library, const char *name) {
    union {
        void *symbol;
        PFN_vkGetInstanceProcAddr function;
    } found = {__real_dlsym(library, name)};
    if (found.symbol && is_entry(name)) {
        wrapped_loader = found.function;
        found.function = wrapping_loader;
    }
    return found.symbol;
}
