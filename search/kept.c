#include "search/kept.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_query.h"

#include <string.h>

static const char schema[] = "mscgym.result.1";

static const cJSON *kept_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static enum msc_status make_path(const char **out, struct msc_arena *arena,
                                 const struct msc_record *record) {
    *out = msc_arena_printf(arena, "%s.result.json", msc_record_path(record));
    return *out ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", msc_record_path(record));
}

static enum msc_status kept_add_copy(cJSON *object, const char *key, const cJSON *value) {
    return value ? msc_json_add(object, key, cJSON_Duplicate(value, true)) : MSC_OK;
}

// ---- Saving -----------------------------------------------------------------------------------

// A row of the report: which line it is about, and what was measured once more.
static enum msc_status fill_row(cJSON *row, const struct msc_record *record, const cJSON *from) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash checksum;
    int64_t id = 0;
    MSC_TRY(msc_json_get_i64(&id, from, "id", "report"));
    MSC_TRY(msc_record_checksum(&checksum, record, id));
    MSC_TRY(msc_json_add_number(row, "id", (double)id));
    MSC_TRY(msc_json_add_text(row, "checksum", msc_hash_format(text, checksum)));
    return kept_add_copy(row, "examined", kept_get(from, "examined"));
}

static enum msc_status kept_fill(cJSON *kept, const struct msc_record *record,
                                 const cJSON *report) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash identity;
    const cJSON *item = NULL;
    const cJSON *winner = kept_get(report, "winner");
    MSC_TRY(msc_record_identity(&identity, record));
    MSC_TRY(msc_json_add_text(kept, "schema", schema));
    MSC_TRY(msc_json_add_text(kept, "record", msc_hash_format(text, identity)));
    MSC_TRY(msc_json_add_number(kept, "trials", (double)msc_record_n_trials(record)));
    MSC_TRY(kept_add_copy(kept, "end", kept_get(report, "end")));
    if (cJSON_IsObject(winner)) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_add(kept, "winner", row));
        MSC_TRY(fill_row(row, record, winner));
    }
    MSC_TRY(kept_add_copy(kept, "reference", kept_get(report, "reference")));
    MSC_TRY(kept_add_copy(kept, "runtime", kept_get(report, "runtime")));
    cJSON *baselines = cJSON_CreateArray();
    MSC_TRY(msc_json_add(kept, "baselines", baselines));
    cJSON_ArrayForEach(item, kept_get(report, "baselines")) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(baselines, row));
        MSC_TRY(fill_row(row, record, item));
    }
    return kept_add_copy(kept, "left_out", kept_get(report, "left_out"));
}

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

enum msc_status msc_kept_save(const struct msc_record *record, const struct cJSON *report) {
    struct msc_arena arena = {0};
    const char *path = NULL;
    cJSON *kept = cJSON_CreateObject();
    enum msc_status status = kept ? make_path(&path, &arena, record)
                                  : MSC_FAIL(MSC_E_NOMEM, "out of memory for the report");
    if (status == MSC_OK) {
        status = kept_fill(kept, record, report);
    }
    if (status == MSC_OK) {
        status = kept_write(path, kept);
    }
    cJSON_Delete(kept);
    msc_arena_finish(&arena);
    return status;
}

// ---- Loading ----------------------------------------------------------------------------------

// Reads the file as it was written. MSC_E_FORMAT when it is damaged.
static enum msc_status kept_read_file(cJSON **out, const char *path) {
    char *text = NULL;
    size_t length = 0;
    struct msc_hash stored;
    struct msc_hash now;
    MSC_TRY(msc_file_read(&text, &length, path));
    enum msc_status status = msc_json_parse(out, text, length, path);
    msc_free(text);
    MSC_TRY(status);
    cJSON *checksum = cJSON_DetachItemFromObjectCaseSensitive(*out, "checksum");
    const cJSON *name = kept_get(*out, "schema");
    status = msc_json_hash(&now, *out);
    if (status == MSC_OK &&
        !(cJSON_IsString(checksum) && msc_hash_parse(&stored, checksum->valuestring) &&
          msc_hash_equal(stored, now) && cJSON_IsString(name) &&
          strcmp(name->valuestring, schema) == 0)) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: its checksum does not fit", path);
    }
    cJSON_Delete(checksum);
    return status;
}

// *fits: the row is about the line that has its id now.
static enum msc_status check_row(bool *fits, const cJSON *row, const struct msc_record *record) {
    struct msc_hash stored;
    struct msc_hash now;
    const cJSON *id = kept_get(row, "id");
    const cJSON *checksum = kept_get(row, "checksum");
    *fits = cJSON_IsNumber(id) && id->valuedouble >= 0 &&
            id->valuedouble < (double)msc_record_n_trials(record) && cJSON_IsString(checksum) &&
            msc_hash_parse(&stored, checksum->valuestring);
    if (*fits) {
        MSC_TRY(msc_record_checksum(&now, record, (int64_t)id->valuedouble));
        *fits = msc_hash_equal(stored, now);
    }
    return MSC_OK;
}

// Leaves out what was left out before; rows that do not fit are dropped.
static enum msc_status kept_leave_out(cJSON *kept, struct msc_record *record) {
    cJSON *next = NULL;
    cJSON *list = cJSON_GetObjectItemCaseSensitive(kept, "left_out");
    for (cJSON *row = list ? list->child : NULL; row; row = next) {
        bool fits = false;
        next = row->next;
        MSC_TRY(check_row(&fits, row, record));
        if (fits) {
            msc_record_leave_out(record, (int64_t)kept_get(row, "id")->valuedouble);
        } else {
            cJSON_Delete(cJSON_DetachItemViaPointer(list, row));
        }
    }
    return MSC_OK;
}

// *fits: all that was measured once more is about the record as it is.
static enum msc_status check_rows(bool *fits, const cJSON *kept, const struct msc_record *record) {
    const struct msc_record_line *best = msc_record_best(record);
    const cJSON *winner = kept_get(kept, "winner");
    const cJSON *row = NULL;
    *fits = !best == !winner;
    if (*fits && winner) {
        MSC_TRY(check_row(fits, winner, record));
        *fits = *fits && kept_get(winner, "id")->valuedouble == (double)best->trial.id;
    }
    cJSON_ArrayForEach(row, kept_get(kept, "baselines")) {
        bool row_fits = false;
        MSC_TRY(check_row(&row_fits, row, record));
        *fits = *fits && row_fits;
    }
    return MSC_OK;
}

static enum msc_status is_of(bool *out, const cJSON *kept, const struct msc_record *record) {
    struct msc_hash stored;
    struct msc_hash now;
    const cJSON *identity = kept_get(kept, "record");
    MSC_TRY(msc_record_identity(&now, record));
    *out = cJSON_IsString(identity) && msc_hash_parse(&stored, identity->valuestring) &&
           msc_hash_equal(stored, now);
    return MSC_OK;
}

// Takes away what is not true any more, and says so.
static enum msc_status kept_check(cJSON **kept, struct msc_record *record, const char *path,
                                  const struct msc_log *log) {
    static const char *const measured[] = {"end", "winner", "reference", "runtime", "baselines"};
    bool fits = false;
    MSC_TRY(is_of(&fits, *kept, record));
    if (!fits) {
        msc_log(log, MSC_LOG_INFO, "%s: passed over: it is of another record", path);
        cJSON_Delete(*kept);
        *kept = NULL;
        return MSC_OK;
    }
    MSC_TRY(kept_leave_out(*kept, record));
    MSC_TRY(check_rows(&fits, *kept, record));
    if (!fits) {
        msc_log(log, MSC_LOG_INFO,
                "%s: passed over: the search has gone on since, and measures once more at its end",
                path);
        for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(*kept, measured[i]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_kept_load(struct cJSON **out, struct msc_record *record,
                              const struct msc_log *log) {
    struct msc_arena arena = {0};
    const char *path = NULL;
    cJSON *kept = NULL;
    *out = NULL;
    enum msc_status status = make_path(&path, &arena, record);
    if (status == MSC_OK) {
        status = kept_read_file(&kept, path);
    }
    if (status == MSC_E_NOT_FOUND) {
        status = MSC_OK;
        goto out;
    }
    if (status != MSC_OK && status != MSC_E_NOMEM) {
        msc_log(log, MSC_LOG_WARNING, "%s; it is passed over, mscgym search makes it anew",
                msc_status_message());
        status = MSC_OK;
        goto out;
    }
    if (status == MSC_OK) {
        status = kept_check(&kept, record, path, log);
    }
    if (status == MSC_OK) {
        *out = kept;
        kept = NULL;
    }
out:
    cJSON_Delete(kept);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_kept_leave_out(struct msc_record *record, const struct msc_log *log) {
    cJSON *kept = NULL;
    enum msc_status status = msc_kept_load(&kept, record, log);
    cJSON_Delete(kept);
    return status;
}

// ---- Showing ----------------------------------------------------------------------------------

static enum msc_status kept_add_baselines(cJSON *report, const cJSON *kept) {
    const cJSON *row = NULL;
    cJSON *baseline = NULL;
    cJSON_ArrayForEach(row, kept_get(kept, "baselines")) {
        cJSON_ArrayForEach(baseline, cJSON_GetObjectItemCaseSensitive(report, "baselines")) {
            if (kept_get(baseline, "id")->valuedouble == kept_get(row, "id")->valuedouble) {
                MSC_TRY(kept_add_copy(baseline, "examined", kept_get(row, "examined")));
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_kept_add(struct cJSON *report, const struct cJSON *kept) {
    cJSON *winner = cJSON_GetObjectItemCaseSensitive(report, "winner");
    const cJSON *n_trials = kept_get(kept, "trials");
    const cJSON *n_now = kept_get(kept_get(report, "counts"), "trials");
    if (!kept) {
        return MSC_OK;
    }
    if (cJSON_IsNumber(n_trials) && cJSON_IsNumber(n_now) &&
        n_trials->valuedouble == n_now->valuedouble) {
        MSC_TRY(kept_add_copy(report, "end", kept_get(kept, "end")));
    }
    if (cJSON_IsObject(winner)) {
        MSC_TRY(kept_add_copy(winner, "examined", kept_get(kept_get(kept, "winner"), "examined")));
    }
    MSC_TRY(kept_add_copy(report, "reference", kept_get(kept, "reference")));
    MSC_TRY(kept_add_copy(report, "runtime", kept_get(kept, "runtime")));
    MSC_TRY(kept_add_baselines(report, kept));
    return kept_add_copy(report, "left_out", kept_get(kept, "left_out"));
}
