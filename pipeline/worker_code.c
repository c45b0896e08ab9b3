#include "pipeline/worker_code.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

bool msc_worker_code_is_needed(const struct msc_config_entry *e) {
    return e->library || e->env_def == msc_env_find("process");
}

enum msc_status msc_worker_code_hash(const char **out, struct msc_arena *arena,
                                     const struct msc_config_entry *e) {
    const cJSON *type = msc_json_get(e->env, "type");
    char text[MSC_HASH_TEXT_BYTES];
    const void *bytes;
    size_t n_bytes;
    *out = NULL;
    if (!e->library) {
        return MSC_OK;
    }
    const char *path = msc_path_join(arena, e->folder, type->valuestring);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_file_map(&bytes, &n_bytes, path));
    msc_hash_format(text, msc_hash_bytes(bytes, n_bytes));
    msc_file_unmap(bytes, n_bytes);
    *out = msc_arena_strdup(arena, text);
    return MSC_ALLOCATED(*out);
}
