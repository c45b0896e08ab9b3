#include "records/kept_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "records/record_query.h"

#include <string.h>

static enum msc_status kept_path(const char **out, struct msc_arena *arena,
                                 const struct msc_kept_kind *kind,
                                 const struct msc_record *record) {
    *out = msc_arena_printf(arena, "%s%s", msc_record_path(record), kind->ending);
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_kept_add_copy(cJSON *object, const char *key, const cJSON *value) {
    return value ? msc_json_add(object, key, cJSON_Duplicate(value, true)) : MSC_OK;
}

// ---- Rows -------------------------------------------------------------------------------------

enum msc_status msc_kept_bind_row(cJSON *row, const struct msc_record *record, int64_t id) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash checksum;
    MSC_TRY(msc_record_checksum(&checksum, record, id));
    MSC_TRY(msc_json_add_number(row, "id", (double)id));
    return msc_json_add_text(row, "checksum", msc_hash_format(text, checksum));
}

enum msc_status msc_kept_row_fits(bool *fits, const cJSON *row, const struct msc_record *record) {
    struct msc_hash stored;
    struct msc_hash now;
    int64_t id = 0;
    const cJSON *checksum = msc_json_get(row, "checksum");
    *fits = msc_json_read_i64(&id, msc_json_get(row, "id"), 0,
                              (int64_t)msc_record_n_trials(record) - 1) &&
            msc_record_holds(record, id) && cJSON_IsString(checksum) &&
            msc_hash_parse(&stored, checksum->valuestring);
    if (*fits) {
        MSC_TRY(msc_record_checksum(&now, record, id));
        *fits = msc_hash_equal(stored, now);
    }
    return MSC_OK;
}

// ---- Saving -----------------------------------------------------------------------------------

static enum msc_status kept_write(const char *path, cJSON *kept) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash checksum;
    struct msc_str out = {0};
    MSC_TRY(msc_json_hash(&checksum, kept));
    MSC_TRY(msc_json_add_text(kept, "checksum", msc_hash_format(text, checksum)));
    msc_json_write_pretty(&out, kept);
    enum msc_status status = msc_str_status(&out);
    if (status == MSC_OK) {
        status = msc_file_write(path, out.data, out.length);
    }
    msc_str_finish(&out);
    return status;
}

static enum msc_status add_members(cJSON *kept, const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const cJSON *object) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash identity;
    const cJSON *item = NULL;
    MSC_TRY(msc_record_identity(&identity, record));
    MSC_TRY(msc_json_add_text(kept, "schema", kind->schema));
    MSC_TRY(msc_json_add_text(kept, "record", msc_hash_format(text, identity)));
    cJSON_ArrayForEach(item, object) {
        MSC_TRY(msc_kept_add_copy(kept, item->string, item));
    }
    return MSC_OK;
}

enum msc_status msc_kept_file_save(const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const cJSON *object) {
    struct msc_arena arena = {0};
    const char *path = NULL;
    cJSON *kept = cJSON_CreateObject();
    enum msc_status status =
        kept ? kept_path(&path, &arena, kind, record) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = add_members(kept, kind, record, object);
    }
    if (status == MSC_OK) {
        status = kept_write(path, kept);
    }
    cJSON_Delete(kept);
    msc_arena_finish(&arena);
    return status;
}

// ---- Loading ----------------------------------------------------------------------------------

static enum msc_status read_checked(cJSON **out, const char *path,
                                    const struct msc_kept_kind *kind) {
    char *text = NULL;
    size_t length = 0;
    struct msc_hash stored;
    struct msc_hash now;
    MSC_TRY(msc_file_read(&text, &length, path));
    enum msc_status status = msc_json_parse(out, text, length, path);
    msc_free(text);
    MSC_TRY(status);
    cJSON *checksum = cJSON_DetachItemFromObjectCaseSensitive(*out, "checksum");
    const cJSON *name = msc_json_get(*out, "schema");
    status = msc_json_hash(&now, *out);
    if (status == MSC_OK &&
        !(cJSON_IsString(checksum) && msc_hash_parse(&stored, checksum->valuestring) &&
          msc_hash_equal(stored, now) && cJSON_IsString(name) &&
          strcmp(name->valuestring, kind->schema) == 0)) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: its checksum does not match", path);
    }
    cJSON_Delete(checksum);
    return status;
}

static enum msc_status check_record(const cJSON *kept, const char *path,
                                    const struct msc_record *record) {
    struct msc_hash stored;
    struct msc_hash now;
    const cJSON *identity = msc_json_get(kept, "record");
    MSC_TRY(msc_record_identity(&now, record));
    return cJSON_IsString(identity) && msc_hash_parse(&stored, identity->valuestring) &&
                   msc_hash_equal(stored, now)
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE, "%s: ignored, because it belongs to another record", path);
}

// A search does not need the file: logs why it is unusable and succeeds. Only MSC_E_NOMEM is
// returned.
static enum msc_status pass_over(enum msc_status why, const struct msc_log *log) {
    if (why == MSC_E_STATE) {
        msc_log(log, MSC_LOG_INFO, "%s", msc_status_message());
    } else if (why != MSC_OK && why != MSC_E_NOMEM && why != MSC_E_NOT_FOUND) {
        msc_log(log, MSC_LOG_WARNING, "%s; it is ignored, and mscgym search writes it again",
                msc_status_message());
    }
    return why == MSC_E_NOMEM ? why : MSC_OK;
}

enum msc_status msc_kept_file_load(cJSON **out, const struct msc_kept_kind *kind,
                                   const struct msc_record *record, const struct msc_log *log) {
    struct msc_arena arena = {0};
    const char *path = NULL;
    cJSON *kept = NULL;
    *out = NULL;
    enum msc_status status = kept_path(&path, &arena, kind, record);
    if (status == MSC_OK) {
        status = read_checked(&kept, path, kind);
    }
    if (status == MSC_OK) {
        status = check_record(kept, path, record);
    }
    if (status == MSC_OK) {
        *out = kept;
        kept = NULL;
    }
    cJSON_Delete(kept);
    msc_arena_finish(&arena);
    return pass_over(status, log);
}
