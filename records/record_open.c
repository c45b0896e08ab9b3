// Creates and opens records.
#include "base/file.h"
#include "records/record_internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static enum msc_status check_record_is_free(struct msc_record *record) {
    enum msc_status status = MSC_OK;
    char *text = NULL;
    size_t length = 0;
    MSC_TRY(msc_file_read(&text, &length, record->path));
    if (!msc_record__is_torn_header(text, length)) {
        bool is_record = strncmp(text, MSC_RECORD_MAGIC, strlen(MSC_RECORD_MAGIC)) == 0;
        status = is_record ? MSC_FAIL(MSC_E_STATE, "%s: a record already exists", record->path)
                           : MSC_FAIL(MSC_E_FORMAT,
                                      "%s: the file exists but is not a record; "
                                      "choose another path",
                                      record->path);
    }
    msc_free(text);
    return status;
}

enum msc_status msc_record_is_file(bool *out, const char *path) {
    char start[sizeof MSC_RECORD_MAGIC - 1];
    int descriptor;
    MSC_TRY(msc_file_open(&descriptor, NULL, path));
    ssize_t n = read(descriptor, start, sizeof start);
    close(descriptor);
    *out = n == (ssize_t)sizeof start && memcmp(start, MSC_RECORD_MAGIC, sizeof start) == 0;
    return MSC_OK;
}

static enum msc_status begin_record(struct msc_record *record, const struct cJSON *header) {
    MSC_TRY(check_record_is_free(record));
    MSC_TRY(msc_record__cut_tail(record)); // an incomplete header is not a line
    msc_record__write_header(&record->buffer, header);
    MSC_TRY(msc_str_status(&record->buffer));
    // Reads back the written header, so that a new record is in the same state as a resumed one.
    MSC_TRY(msc_record__read_header(record, record->buffer.data, record->buffer.length - 1));
    MSC_TRY(msc_record_commit(record));
    msc_file_sync_folder(record->path);
    return MSC_OK;
}

enum msc_status msc_record_create(struct msc_record **out, const char *path,
                                  const struct cJSON *header, const struct msc_log *log) {
    struct msc_record *record = NULL;
    MSC_TRY(msc_record__new(&record, path, log));
    bool was_there = msc_file_exists(path);
    enum msc_status status = msc_record__open_locked(&record->descriptor, path, O_CREAT);
    if (status == MSC_OK) {
        status = begin_record(record, header);
        if (status != MSC_OK && !was_there) {
            unlink(path);
        }
    }
    if (status != MSC_OK) {
        msc_record_close(record);
        return status;
    }
    *out = record;
    return MSC_OK;
}

void msc_record__warn_cut(const struct msc_record *record) {
    if (record->was_cut) {
        msc_log(record->log, MSC_LOG_WARNING,
                "%s: the last write was incomplete; keeping %zu complete trials", record->path,
                record->n_trials);
    }
}

static enum msc_status open_record_file(struct msc_record *record, enum msc_record_mode mode) {
    if (mode == MSC_RECORD_APPEND) {
        MSC_TRY(msc_record__open_locked(&record->descriptor, record->path, 0));
    }
    if (mode == MSC_RECORD_HEADER) {
        return msc_record__load_header(record);
    }
    MSC_TRY(msc_record__load(record));
    msc_record__warn_cut(record);
    return record->was_cut && mode == MSC_RECORD_APPEND ? msc_record__cut_tail(record) : MSC_OK;
}

enum msc_status msc_record_open(struct msc_record **out, const char *path,
                                enum msc_record_mode mode, const struct msc_log *log) {
    struct msc_record *record = NULL;
    MSC_TRY(msc_record__new(&record, path, log));
    enum msc_status status = open_record_file(record, mode);
    if (status != MSC_OK) {
        msc_record_close(record);
        return status;
    }
    *out = record;
    return MSC_OK;
}
