// Free memory on Linux: /proc/meminfo, and the control groups (versions 1 and 2) of this process.
//
// /proc/self/cgroup has the path of each group. /proc/self/mountinfo says where the hierarchy is
// mounted and which part of it is visible. A container may see its own group as the root; then the
// groups above it are not visible.

#include "base/machine.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/machine_internal.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// File names of one version of control groups.
struct version {
    const char *file_system;
    const char *controller; // name of the controller in /proc/self/cgroup
    const char *limits[2];
    const char *used;
    const char *idle; // key in memory.stat: inactive file cache, which can be reclaimed
};

static const struct version versions[] = {
    {"cgroup2", "", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
    {"cgroup", "memory", {"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"},
};

// Locates a group's folder: the path is `root`, `mount` and `group`, joined.
struct place {
    const char *root;
    const char *mount;
    const char *group;
    size_t group_length; // only this prefix of `group` is used
};

// Reads a file of the group. The caller owns the text (msc_free). NULL if the file cannot be read.
static char *read_text(const struct place *place, const char *name) {
    struct msc_str path = {0};
    char *text = NULL;
    size_t n_bytes = 0;
    msc_str_printf(&path, "%s%s", place->root, place->mount);
    msc_str_append_n(&path, place->group, place->group_length);
    msc_str_printf(&path, "/%s", name);
    bool is_read = msc_str_status(&path) == MSC_OK &&
                   msc_file_read(&text, &n_bytes, msc_str_text(&path)) == MSC_OK;
    msc_str_finish(&path);
    return is_read ? text : NULL;
}

// Reads the number in a file. If `key` is not NULL, reads the number after `key` at the beginning
// of a line.
static bool read_number(uint64_t *out, const struct place *place, const char *name,
                        const char *key) {
    char *text = read_text(place, name);
    const char *at = text;
    size_t n = key ? strlen(key) : 0;
    while (at && key && strncmp(at, key, n) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    char *end = NULL;
    if (at) {
        at += n;
        *out = strtoull(at, &end, 10);
    }
    bool is_there = at && end != at; // false for "max"
    msc_free(text);
    return is_there;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The memory that one group has left; UINT64_MAX if it has no limit.
static uint64_t group_free(const struct version *version, const struct place *place) {
    uint64_t limit = UINT64_MAX, used = 0, idle = 0;
    for (size_t i = 0; i < 2 && version->limits[i]; i++) {
        uint64_t found;
        if (read_number(&found, place, version->limits[i], NULL)) {
            limit = least(limit, found);
        }
    }
    if (limit == UINT64_MAX || !read_number(&used, place, version->used, NULL)) {
        return UINT64_MAX;
    }
    if (read_number(&idle, place, "memory.stat", version->idle)) {
        used -= least(used, idle);
    }
    return limit - least(limit, used);
}

// True if `word` is in the comma-separated `list`.
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list;; at++) {
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
        at = strchr(at, ',');
        if (!at) {
            return false;
        }
    }
}

// The path of this process's group. `groups` is the text of /proc/self/cgroup, lines of
// ID:CONTROLLERS:PATH; it is modified, and the result points into it. NULL if no line has the
// group.
static const char *find_group(char *groups, const struct version *version) {
    char *rest = NULL;
    const char *found = NULL;
    for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *controllers++ = '\0';
        *path++ = '\0';
        if (has_word(controllers, version->controller)) {
            found = path;
        }
    }
    return found;
}

// A line of /proc/self/mountinfo: ID PARENT DEVICE ROOT MOUNT OPTIONS ... - TYPE SOURCE OPTIONS.
struct mount {
    const char *root, *place, *type, *options;
};

static bool parse_mount(struct mount *out, char *line) {
    char *words[6], *rest = NULL;
    char *tail = strstr(line, " - ");
    if (!tail) {
        return false;
    }
    *tail = '\0';
    tail += strlen(" - ");
    for (size_t i = 0; i < 6; i++) {
        words[i] = strtok_r(i ? NULL : line, " ", &rest);
        if (!words[i]) {
            return false;
        }
    }
    char *type = strtok_r(tail, " ", &rest);
    char *source = strtok_r(NULL, " ", &rest);
    char *options = strtok_r(NULL, " ", &rest);
    *out = (struct mount){.root = words[3], .place = words[4], .type = type, .options = options};
    return type && source && options;
}

// `group` relative to `root`, the visible part of the hierarchy. "" if both are equal or the group
// is not visible.
static const char *below_root(const char *group, const char *root) {
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    bool is_below = strncmp(group, root, n) == 0 && group[n] == '/' &&
                    strncmp(group + n, "/..", 3) != 0 && group[n + 1] != '\0';
    return is_below ? group + n : "";
}

// The smallest amount of memory that a group or any of its ancestors has left.
static uint64_t tree_free(const struct version *version, const char *root,
                          const struct mount *mount, const char *group) {
    struct place place = {.root = root, .mount = mount->place, .group = group};
    uint64_t n_bytes = UINT64_MAX;
    for (size_t n = strlen(group);; n--) {
        if (n == 0 || group[n] == '/' || group[n] == '\0') {
            place.group_length = n;
            n_bytes = least(n_bytes, group_free(version, &place));
        }
        if (n == 0) {
            return n_bytes;
        }
    }
}

static uint64_t version_free(const struct version *version, const char *root) {
    const struct place proc = {.root = root, .mount = "/proc/self", .group = ""};
    char *groups = read_text(&proc, "cgroup"), *mounts = read_text(&proc, "mountinfo");
    const char *group = groups ? find_group(groups, version) : NULL;
    uint64_t n_bytes = UINT64_MAX;
    char *rest = NULL;
    for (char *line = group && mounts ? strtok_r(mounts, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        struct mount mount;
        if (parse_mount(&mount, line) && strcmp(mount.type, version->file_system) == 0 &&
            (version->controller[0] == '\0' || has_word(mount.options, version->controller))) {
            n_bytes =
                least(n_bytes, tree_free(version, root, &mount, below_root(group, mount.root)));
        }
    }
    msc_free(mounts);
    msc_free(groups);
    return n_bytes;
}

uint64_t msc_machine__free_bytes(const char *root) {
    const struct place proc = {.root = root, .mount = "/proc", .group = ""};
    uint64_t n_kilobytes = 0;
    if (!read_number(&n_kilobytes, &proc, "meminfo", "MemAvailable:")) {
        return 0;
    }
    uint64_t n_bytes = n_kilobytes * 1024;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        n_bytes = least(n_bytes, version_free(&versions[i], root));
    }
    return n_bytes > 0 ? n_bytes : 1; // 0 would mean unknown
}

uint64_t msc_machine_free_bytes(void) {
    return msc_machine__free_bytes("");
}
