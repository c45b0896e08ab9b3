#include "base/file_set.h"

#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct msc_file_set_item {
    const char *what, *path;
    const char *place; // the resolved path; "" if it cannot be resolved
    bool exists, is_read;
    dev_t device; // identifies an existing file
    ino_t inode;
};

static enum msc_status file_set_look(struct msc_file_set_item *out, struct msc_file_set *set,
                                     const char *what, const char *path) {
    struct stat info;
    char *place = NULL;
    out->what = msc_arena_strdup(&set->arena, what);
    out->path = msc_arena_strdup(&set->arena, path);
    MSC_TRY(MSC_ALLOCATED(out->what && out->path));
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

const char *msc_file_set_path(const struct msc_file_set *set, size_t i) {
    return i < set->n ? set->items[i].path : NULL;
}

// ---- Contents ---------------------------------------------------------------------------------

static enum msc_status add_file_hash(struct msc_hash *hash, const char *path) {
    const void *data = NULL;
    size_t n_bytes = 0;
    MSC_TRY(msc_file_map(&data, &n_bytes, path));
    *hash = msc_hash_combine(*hash, msc_hash_bytes(data, n_bytes));
    msc_file_unmap(data, n_bytes);
    return MSC_OK;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static enum msc_status add_folder_hash(struct msc_hash *hash, const char *path) {
    struct msc_arena arena = {0};
    struct dirent **entries = NULL;
    enum msc_status status = MSC_OK;
    int n = scandir(path, &entries, is_shown, compare_names);
    for (int i = 0; i < n; i++) {
        const char *file = msc_path_join(&arena, path, entries[i]->d_name);
        struct stat info;
        if (status == MSC_OK && !file) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        }
        if (status == MSC_OK && stat(file, &info) == 0 && S_ISREG(info.st_mode)) {
            *hash = msc_hash_add_text(*hash, entries[i]->d_name);
            status = add_file_hash(hash, file);
        }
        free(entries[i]); // allocated by scandir
    }
    free(entries);
    msc_arena_finish(&arena);
    return n >= 0 ? status : MSC_FAIL(MSC_E_IO, "cannot read the folder %s", path);
}

enum msc_status msc_file_set_hash(struct msc_hash *out, const struct msc_file_set *set) {
    *out = msc_hash_bytes(NULL, 0);
    for (size_t i = 0; i < set->n; i++) {
        const struct msc_file_set_item *item = &set->items[i];
        struct stat info;
        *out = msc_hash_add_text(*out, item->what);
        if (!item->is_read || stat(item->path, &info) != 0) {
            continue;
        }
        MSC_TRY(S_ISDIR(info.st_mode) ? add_folder_hash(out, item->path)
                                      : add_file_hash(out, item->path));
    }
    return MSC_OK;
}

void msc_file_set_finish(struct msc_file_set *set) {
    msc_free(set->items);
    msc_arena_finish(&set->arena);
    *set = (struct msc_file_set){.n = 0};
}
