#include "base/file.h"

#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *msc_path_join(struct msc_arena *arena, const char *folder, const char *path) {
    if (path[0] == '/' || !folder || folder[0] == '\0') {
        return msc_arena_strdup(arena, path);
    }
    const char *between = folder[strlen(folder) - 1] == '/' ? "" : "/";
    return msc_arena_printf(arena, "%s%s%s", folder, between, path);
}

char *msc_path_folder(struct msc_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return msc_arena_strdup(arena, ".");
    }
    while (slash > path && slash[-1] == '/') {
        slash--;
    }
    return slash == path ? msc_arena_strdup(arena, "/")
                         : msc_arena_strndup(arena, path, (size_t)(slash - path));
}

bool msc_path_ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), n_ending = strlen(ending);
    return n >= n_ending && strcmp(path + n - n_ending, ending) == 0;
}

const char *msc_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool msc_path_lies_in(const char *path, const char *folder) {
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool msc_path_is_inside(const char *path) {
    if (path[0] == '\0' || path[0] == '/') {
        return false;
    }
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            return false;
        }
    }
    return true;
}

static enum msc_status fail_memory(const char *path) {
    return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
}

// Appends path components that do not exist yet. A ".." among them is rejected unless these folders
// will be created, because its meaning depends on what is created later.
static enum msc_status append_absent(char **out, struct msc_arena *arena, const char *folder,
                                     const char *absent, const char *path, bool will_be_made) {
    char *joined = msc_arena_strdup(arena, folder);
    for (const char *part = absent; joined && *part;) {
        size_t length = strcspn(part, "/");
        bool is_out = length == 2 && memcmp(part, "..", 2) == 0;
        if (is_out && !will_be_made) {
            return MSC_FAIL(MSC_E_NOT_FOUND, "%s: the folder before \"..\" does not exist", path);
        }
        if (is_out) {
            joined = msc_path_folder(arena, joined);
        } else if (length > 0 && !(length == 1 && part[0] == '.')) {
            const char *between = strcmp(joined, "/") == 0 ? "" : "/";
            joined = msc_arena_printf(arena, "%s%s%.*s", joined, between, (int)length, part);
        }
        part += length;
        part += strspn(part, "/");
    }
    if (!joined) {
        return fail_memory(path);
    }
    *out = joined;
    return MSC_OK;
}

static enum msc_status make_absolute(char **out, struct msc_arena *arena, const char *path,
                                     bool will_be_made) {
    if (path[0] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "the path is empty, expected the name of a file or folder");
    }
    char *existing = msc_arena_strdup(arena, path);
    if (!existing) {
        return fail_memory(path);
    }
    // Removes components from the end until the remaining path exists.
    size_t length = strlen(path);
    for (;;) {
        char resolved[PATH_MAX];
        if (realpath(length > 0 ? existing : ".", resolved)) {
            return append_absent(out, arena, resolved, path + length, path, will_be_made);
        }
        if (errno != ENOENT || length == 0) {
            return MSC_FAIL(MSC_E_IO, "%s: cannot resolve this path", path);
        }
        while (length > 0 && existing[length - 1] == '/') {
            length--;
        }
        while (length > 0 && existing[length - 1] != '/') {
            length--;
        }
        existing[length] = '\0';
    }
}

enum msc_status msc_path_absolute(char **out, struct msc_arena *arena, const char *path) {
    return make_absolute(out, arena, path, false);
}

enum msc_status msc_path_planned(char **out, struct msc_arena *arena, const char *path) {
    return make_absolute(out, arena, path, true);
}

enum msc_status msc_path_resolve_inside(char **out, struct msc_arena *arena, const char *folder,
                                        const char *path) {
    char *root = NULL;
    char *resolved = NULL;
    const char *joined = msc_path_is_inside(path) ? msc_path_join(arena, folder, path) : NULL;
    if (!joined) {
        return msc_path_is_inside(path)
                   ? fail_memory(path)
                   : MSC_FAIL(MSC_E_INVALID, "%s: this path is outside of %s", path, folder);
    }
    MSC_TRY(msc_path_absolute(&root, arena, folder));
    MSC_TRY(msc_path_absolute(&resolved, arena, joined));
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(resolved, root, length) != 0 || resolved[length] != '/') {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: a link leads out of %s, to %s; replace the link by a copy of the file",
                        path, folder, resolved);
    }
    *out = resolved;
    return MSC_OK;
}

// The length of the common folders at the beginning of both absolute paths, without the slash after
// them.
static size_t common_length(const char *a, const char *b) {
    size_t common = 0;
    size_t i = 0;
    for (; a[i] && a[i] == b[i]; i++) {
        common = a[i] == '/' ? i : common;
    }
    bool a_ends = a[i] == '\0' || a[i] == '/';
    bool b_ends = b[i] == '\0' || b[i] == '/';
    return a_ends && b_ends ? i : common;
}

enum msc_status msc_path_relative(char **out, struct msc_arena *arena, const char *path,
                                  const char *folder) {
    char *to = NULL;
    char *from = NULL;
    MSC_TRY(msc_path_absolute(&to, arena, path));
    MSC_TRY(msc_path_absolute(&from, arena, folder));
    // The root is written as "", so that every path is a sequence of "/name".
    to = strcmp(to, "/") == 0 ? to + 1 : to;
    from = strcmp(from, "/") == 0 ? from + 1 : from;
    size_t common = common_length(to, from);
    char *relative = msc_arena_strdup(arena, "");
    for (const char *c = from + common; relative && *c; c++) {
        if (*c == '/') {
            relative = msc_arena_printf(arena, "%s../", relative);
        }
    }
    const char *rest = to + common + (to[common] == '/');
    relative = relative ? msc_arena_printf(arena, "%s%s", relative, rest) : NULL;
    if (!relative) {
        return fail_memory(path);
    }
    size_t length = strlen(relative);
    if (length > 0 && relative[length - 1] == '/') {
        relative[length - 1] = '\0';
    }
    *out = length > 0 ? relative : msc_arena_strdup(arena, ".");
    return *out ? MSC_OK : fail_memory(path);
}
