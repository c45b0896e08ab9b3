#include "pipeline/stages.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/file_hash.h"

#include <string.h>

#define SCHEMA "mscgym.stages.1"

struct msc_stages {
    struct msc_arena arena;
    const char *path, *folder;
    cJSON *json;
    cJSON *rows; // borrowed from json
};

// ---- The file ---------------------------------------------------------------------------------

static enum msc_status stages_begin(struct msc_stages *s) {
    s->json = cJSON_CreateObject();
    s->rows = cJSON_CreateArray();
    enum msc_status status = s->json ? msc_json_add_text(s->json, "schema", SCHEMA)
                                     : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(s->rows);
        return status;
    }
    return msc_json_add(s->json, "stages", s->rows);
}

// False if the file does not hold valid stages. The caller then ignores the file.
static bool is_known(struct msc_stages *s) {
    const cJSON *schema = msc_json_get(s->json, "schema");
    s->rows = msc_json_get(s->json, "stages");
    return cJSON_IsString(schema) && strcmp(schema->valuestring, SCHEMA) == 0 &&
           cJSON_IsArray(s->rows);
}

static enum msc_status stages_load(struct msc_stages *s, const struct msc_log *log) {
    enum msc_status status = msc_json_load(&s->json, s->path);
    if (status == MSC_E_NOMEM || (status == MSC_OK && is_known(s))) {
        return status;
    }
    if (status != MSC_E_NOT_FOUND) {
        msc_log(log, MSC_LOG_WARNING,
                "%s: the file is not a valid record of stages, so all stages run again", s->path);
    }
    cJSON_Delete(s->json);
    return stages_begin(s);
}

enum msc_status msc_stages_open(struct msc_stages **out, const char *path, bool is_fresh,
                                const struct msc_log *log) {
    struct msc_stages *s = msc_alloc_zero(1, sizeof *s);
    MSC_TRY(MSC_ALLOCATED(s));
    enum msc_status status = MSC_OK;
    s->path = msc_arena_strdup(&s->arena, path);
    s->folder = msc_path_folder(&s->arena, path);
    if (!s->path || !s->folder) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
    } else {
        status = is_fresh ? stages_begin(s) : stages_load(s, log);
    }
    if (status != MSC_OK) {
        msc_stages_close(s);
        return status;
    }
    *out = s;
    return MSC_OK;
}

void msc_stages_close(struct msc_stages *s) {
    if (s) {
        cJSON_Delete(s->json);
        msc_arena_finish(&s->arena);
        msc_free(s);
    }
}

static enum msc_status stages_save(const struct msc_stages *s) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, s->json);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(s->path, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}

// ---- Files of a stage -------------------------------------------------------------------------

static bool is_hash(const cJSON *item, struct msc_hash hash) {
    char text[MSC_HASH_TEXT_BYTES];
    return cJSON_IsString(item) && strcmp(item->valuestring, msc_hash_format(text, hash)) == 0;
}

static bool is_unchanged(const struct msc_stages *s, const cJSON *file) {
    struct msc_arena arena = {0};
    struct msc_hash hash;
    const cJSON *name = msc_json_get(file, "path");
    const char *path =
        cJSON_IsString(name) ? msc_path_join(&arena, s->folder, name->valuestring) : NULL;
    bool is_same =
        path && msc_file_hash(&hash, path) == MSC_OK && is_hash(msc_json_get(file, "hash"), hash);
    msc_arena_finish(&arena);
    return is_same;
}

static enum msc_status add_file(const struct msc_stages *s, cJSON *list, const char *path) {
    struct msc_arena arena = {0};
    struct msc_hash hash;
    char text[MSC_HASH_TEXT_BYTES];
    char *name = NULL;
    cJSON *file = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_json_push(list, file));
    MSC_TRY_OUT(msc_file_hash(&hash, path));
    MSC_TRY_OUT(msc_path_relative(&name, &arena, path, s->folder));
    MSC_TRY_OUT(msc_json_add_text(file, "path", name));
    status = msc_json_add_text(file, "hash", msc_hash_format(text, hash));
out:
    msc_arena_finish(&arena);
    return status;
}

// ---- Stages -----------------------------------------------------------------------------------

static cJSON *find_row(const struct msc_stages *s, const char *stage) {
    cJSON *row = NULL;
    cJSON_ArrayForEach(row, s->rows) {
        const cJSON *name = msc_json_get(row, "stage");
        if (cJSON_IsString(name) && strcmp(name->valuestring, stage) == 0) {
            return row;
        }
    }
    return NULL;
}

const cJSON *msc_stages_find(const struct msc_stages *s, const char *stage, struct msc_hash key) {
    const cJSON *row = find_row(s, stage);
    const cJSON *file = NULL;
    if (!row || !is_hash(msc_json_get(row, "key"), key)) {
        return NULL;
    }
    cJSON_ArrayForEach(file, msc_json_get(row, "files")) {
        if (!is_unchanged(s, file)) {
            return NULL;
        }
    }
    return msc_json_get(row, "result");
}

// The file with this path among the files of a row, or NULL.
static const cJSON *find_file(const struct msc_stages *s, const cJSON *row, const char *path) {
    struct msc_arena arena = {0};
    char *name = NULL;
    const cJSON *file = NULL;
    const cJSON *found = NULL;
    bool has_name = msc_path_relative(&name, &arena, path, s->folder) == MSC_OK;
    cJSON_ArrayForEach(file, msc_json_get(row, "files")) {
        const cJSON *item = msc_json_get(file, "path");
        bool is_it = has_name && cJSON_IsString(item) && strcmp(item->valuestring, name) == 0;
        found = is_it ? file : found;
    }
    msc_arena_finish(&arena);
    return found;
}

bool msc_stages_has_file(const struct msc_stages *s, const char *path) {
    const cJSON *row = NULL;
    bool has = false;
    cJSON_ArrayForEach(row, s->rows) {
        has = has || find_file(s, row, path);
    }
    return has;
}

bool msc_stages_is_changed(const struct msc_stages *s, const char *stage, const char *path) {
    const cJSON *row = find_row(s, stage);
    const cJSON *file = row ? find_file(s, row, path) : NULL;
    return file && !is_unchanged(s, file);
}

static enum msc_status fill_row(const struct msc_stages *s, cJSON *row, const char *stage,
                                struct msc_hash key, const char *const files[], size_t n) {
    char text[MSC_HASH_TEXT_BYTES];
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(row, "files", list));
    MSC_TRY(msc_json_add_text(row, "stage", stage));
    MSC_TRY(msc_json_add_text(row, "key", msc_hash_format(text, key)));
    for (size_t i = 0; i < n; i++) {
        if (files[i]) {
            MSC_TRY(add_file(s, list, files[i]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_stages_put(struct msc_stages *s, const char *stage, struct msc_hash key,
                               const char *const files[], size_t n, cJSON *result) {
    cJSON *row = cJSON_CreateObject();
    enum msc_status status = msc_json_add(row, "result", result);
    if (status == MSC_OK) {
        status = fill_row(s, row, stage, key, files, n);
    }
    if (status != MSC_OK) {
        cJSON_Delete(row);
        return status;
    }
    cJSON *old = find_row(s, stage);
    if (old) {
        cJSON_Delete(cJSON_DetachItemViaPointer(s->rows, old));
    }
    MSC_TRY(msc_json_push(s->rows, row));
    return stages_save(s);
}
