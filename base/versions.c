#include "base/versions.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

// Reports "glibc 2.36"; other C libraries do not report a version.
static void take_libc(msc_version_take take, void *payload) {
#ifdef _CS_GNU_LIBC_VERSION
    char text[64];
    size_t n = confstr(_CS_GNU_LIBC_VERSION, text, sizeof text);
    char *blank = n > 0 && n <= sizeof text ? strchr(text, ' ') : NULL;
    if (blank) {
        *blank = '\0';
        take(payload, text, blank + 1);
    }
#else
    (void)take;
    (void)payload;
#endif
}

void msc_base_versions(msc_version_take take, void *payload) {
    char text[32];
    unsigned number = XXH_versionNumber();
    take(payload, "cJSON", cJSON_Version());
    snprintf(text, sizeof text, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
    take(payload, "xxHash", text);
    take_libc(take, payload);
}
