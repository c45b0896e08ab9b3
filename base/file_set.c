#include "base/file_set.h"

#include "base/file.h"

#include <string.h>
#include <sys/stat.h>

struct msc_file_set_item {
    const char *what, *path;
    const char *place; // where the path leads, "" where that cannot be told
    bool exists, is_read;
    dev_t device; // of what exists
    ino_t inode;
};

static enum msc_status no_memory(const char *path) {
    return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
}

static enum msc_status file_set_look(struct msc_file_set_item *out, struct msc_file_set *set,
                                     const char *what, const char *path) {
    struct stat info;
    char *place = NULL;
    out->what = msc_arena_strdup(&set->arena, what);
    out->path = msc_arena_strdup(&set->arena, path);
    if (!out->what || !out->path) {
        return no_memory(path);
    }
    enum msc_status status = msc_path_planned(&place, &set->arena, path);
    out->place = status == MSC_OK ? place : "";
    out->exists = stat(place ? place : path, &info) == 0;
    out->device = out->exists ? info.st_dev : 0;
    out->inode = out->exists ? info.st_ino : 0;
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

static bool is_same(const struct msc_file_set_item *a, const struct msc_file_set_item *b) {
    bool is_one = a->exists && b->exists && a->device == b->device && a->inode == b->inode;
    return is_one || (a->place[0] && strcmp(a->place, b->place) == 0);
}

static enum msc_status file_set_add(struct msc_file_set *set,
                                    const struct msc_file_set_item *item) {
    MSC_TRY(msc_grow(&set->items, &set->capacity, set->n + 1, sizeof set->items[0]));
    set->items[set->n++] = *item;
    return MSC_OK;
}

enum msc_status msc_file_set_read(struct msc_file_set *set, const char *what, const char *path) {
    struct msc_file_set_item item = {.is_read = true};
    if (!path) {
        return MSC_OK;
    }
    MSC_TRY(file_set_look(&item, set, what, path));
    return file_set_add(set, &item);
}

enum msc_status msc_file_set_write(struct msc_file_set *set, const char *what, const char *path) {
    struct msc_file_set_item item = {.is_read = false};
    if (!path) {
        return MSC_OK;
    }
    MSC_TRY(file_set_look(&item, set, what, path));
    for (size_t i = 0; i < set->n; i++) {
        const struct msc_file_set_item *other = &set->items[i];
        if (is_same(&item, other)) {
            return MSC_FAIL(MSC_E_INVALID, "%s: %s is the same file as %s, %s%s; name another",
                            path, what, other->what, other->path,
                            other->is_read ? ", which is read" : "");
        }
    }
    return file_set_add(set, &item);
}

void msc_file_set_finish(struct msc_file_set *set) {
    msc_free(set->items);
    msc_arena_finish(&set->arena);
    *set = (struct msc_file_set){.n = 0};
}
