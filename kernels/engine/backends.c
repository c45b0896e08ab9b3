#include "kernels/engine/backends.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/vulkan/vulkan.h"

#include <stdlib.h>
#include <string.h>

// To add a backend: 1 write kernels/<name>/ with a `const struct msc_backend_def`, 2 declare this
// definition in a header and add it to this table.
static const struct msc_backend_def *const backends[] = {&msc_backend_cpu, &msc_backend_vulkan,
                                                         NULL};

const struct msc_backend_def *const *msc_backend_list(void) {
    return backends;
}

static const struct msc_backend_def *backends_find(const char *name, size_t length) {
    for (size_t i = 0; backends[i]; i++) {
        if (strlen(backends[i]->name) == length && strncmp(backends[i]->name, name, length) == 0) {
            return backends[i];
        }
    }
    return NULL;
}

const struct msc_backend_def *msc_backend_find(const char *name) {
    return backends_find(name, strlen(name));
}

enum msc_status msc_backend_open(struct msc_backend **out, const char *device,
                                 const struct msc_backend_options *options) {
    struct msc_backend_options o = *options;
    o.fallback = &msc_backend_cpu;
    size_t length = strcspn(device, ":");
    if (strcmp(device, "auto") == 0) {
        // "auto" never picks a software driver: it must be named.
        int gpu = msc_vulkan_first_gpu();
        o.device = gpu >= 0 ? gpu : 0;
        return gpu >= 0 ? msc_backend_vulkan.open(out, &o) : msc_backend_cpu.open(out, &o);
    }
    const struct msc_backend_def *def = backends_find(device, length);
    if (!def) {
        return MSC_FAIL(MSC_E_NOT_FOUND, "device '%s': expected auto, cpu or vulkan", device);
    }
    if (def == &msc_backend_vulkan && device[length] == ':' && strchr(device, '=')) {
        MSC_TRY(msc_vulkan_find(&o.device, device + length + 1));
    } else if (device[length] == ':') {
        char *end;
        const char *number = device + length + 1;
        long index = strtol(number, &end, 10);
        if (*number < '0' || *number > '9' || *end != '\0' || index > 255) {
            return MSC_FAIL(MSC_E_INVALID, "device '%s': expected a number after ':'", device);
        }
        o.device = (int)index;
    }
    return def->open(out, &o);
}

enum msc_status msc_backend_set_isa(const char *level) {
    return msc_cpu_set_isa(level);
}

const char *msc_backend_isa(size_t i) {
    return msc_cpu_isa(i);
}
