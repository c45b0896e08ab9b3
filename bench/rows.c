#include "bench/rows.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

static enum msc_status add_or_null(cJSON *row, const char *key, double value) {
    if (value > 0) {
        return msc_json_add_number(row, key, value);
    }
    return MSC_ALLOCATED(cJSON_AddNullToObject(row, key));
}

enum msc_status bench_row_add(cJSON *rows, const struct bench_row *row) {
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(rows, object)) {
        cJSON_Delete(object);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    MSC_TRY(msc_json_add_text(object, "bench", row->bench));
    MSC_TRY(msc_json_add_text(object, "model", row->model));
    MSC_TRY(msc_json_add_text(object, "agent", row->agent));
    MSC_TRY(msc_json_add_text(object, "peer", row->peer));
    MSC_TRY(msc_json_add_number(object, "ours", row->ours));
    MSC_TRY(add_or_null(object, "theirs", row->theirs));
    return add_or_null(object, "ratio", row->theirs > 0 ? row->ours / row->theirs : 0);
}

enum msc_status bench_rows_save(const cJSON *rows, const char *path) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, rows);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(path, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}
