// Reads one object of a configuration by its table, and joins paths.
#include "config/config_internal.h"

#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *msc_config__text(struct msc_config *c, const char *format, ...) {
    char small[256];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    char *text = n < 0 ? NULL : msc_arena_alloc(&c->arena, (size_t)n + 1);
    if (text) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)n + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

static bool note_path(struct msc_config *c, const char *path, bool is_output) {
    struct msc_config_path *noted = msc_arena_alloc(&c->arena, sizeof *noted);
    if (noted) {
        *noted = (struct msc_config_path){.path = path, .is_output = is_output, .next = c->paths};
        c->paths = noted;
    }
    return noted != NULL;
}

bool msc_config__join(struct msc_config *c, const char **path, const char *folder) {
    const char *rest = *path;
    if (!rest) {
        return true;
    }
    while (strncmp(rest, "./", 2) == 0) {
        rest += 2;
    }
    if (strcmp(rest, ".") == 0) {
        *path = folder;
    } else {
        *path = msc_path_join(&c->arena, strcmp(folder, ".") == 0 ? NULL : folder, rest);
    }
    return *path != NULL && note_path(c, *path, folder == c->workspace || path == &c->workspace);
}

enum msc_status msc_config__read(struct msc_config *c, const struct msc_param params[],
                                 void *target, const cJSON *object, const char *where) {
    const char *place = c->path;
    if (where[0]) {
        place = msc_config__text(c, "%s: %s", c->path, where);
        MSC_TRY(MSC_ALLOCATED(place));
    }
    msc_param_defaults(params, target);
    return msc_param_read(params, target, object, place, NULL, &c->arena);
}
