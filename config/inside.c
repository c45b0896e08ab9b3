// Checks that a configuration names no file outside of given folders.
#include "config/config.h"

#include "base/file.h"
#include "base/json.h"

static enum msc_status check_path(struct msc_arena *arena, const char *path,
                                  const char *const folders[], size_t n) {
    char *absolute = NULL;
    MSC_TRY(msc_path_planned(&absolute, arena, path));
    for (size_t i = 0; i < n; i++) {
        char *folder = NULL;
        MSC_TRY(msc_path_absolute(&folder, arena, folders[i]));
        if (msc_path_lies_in(absolute, folder)) {
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID, "%s: this path is outside of the folders that may be used",
                    path);
}

// Files that only keys of environments name: of `table`, and of `quantize`.
static enum msc_status check_env(struct msc_arena *arena, const struct msc_config_entry *e,
                                 const char *const folders[], size_t n) {
    static const char *const keys[] = {"file", "imatrix"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *file = msc_json_text_of(e->env, keys[i]);
        const char *path = file ? msc_path_join(arena, e->folder, file) : NULL;
        MSC_TRY(MSC_ALLOCATED(!file || path));
        MSC_TRY(file ? check_path(arena, path, folders, n) : MSC_OK);
    }
    return MSC_OK;
}

enum msc_status msc_config_check_inside(const struct msc_config *config,
                                        const char *const folders[], size_t n,
                                        const char *workspace) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    for (const struct msc_config_path *p = config->paths; p; p = p->next) {
        MSC_TRY_OUT(p->is_output ? check_path(&arena, p->path, &workspace, 1)
                                 : check_path(&arena, p->path, folders, n));
    }
    for (size_t i = 0; i < config->n_entries; i++) {
        MSC_TRY_OUT(check_env(&arena, &config->entries[i], folders, n));
    }
out:
    msc_arena_finish(&arena);
    return status;
}
