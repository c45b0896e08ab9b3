// Saves a record whose file another program removed, renamed or changed while it was being
// written.
#include "records/record_internal.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool msc_record__is_in_place(const struct msc_record *record) {
    struct stat held;
    struct stat named;
    return fstat(record->descriptor, &held) == 0 && stat(msc_record_path(record), &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino && named.st_nlink > 0 &&
           (uint64_t)named.st_size == record->n_bytes;
}

// Writes all lines, committed or not.
static void write_whole(struct msc_str *out, const struct msc_record *record) {
    size_t next = 0;
    msc_str_append(out, record->header_line);
    for (size_t i = 0; i <= record->n_trials; i++) {
        while (next < record->n_segments && record->segments[next].first <= (int64_t)i) {
            msc_record__write_segment(out, &record->segments[next++]);
        }
        if (i < record->n_trials) {
            const struct msc_record_line line = msc_record_trial(record, i);
            msc_record__write_trial(out, record, &line);
        }
    }
}

// Creates and locks the first of PATH.saved.1, PATH.saved.2, ... that does not exist.
static enum msc_status make_free(int *descriptor, const char **path, struct msc_record *record) {
    for (int i = 1;; i++) {
        *path = msc_arena_printf(&record->arena, "%s.saved.%d", record->path, i);
        MSC_TRY(MSC_ALLOCATED(*path));
        enum msc_status status = msc_record__open_locked(descriptor, *path, O_CREAT | O_EXCL);
        if (status == MSC_OK || !msc_file_exists(*path)) {
            return status;
        }
    }
}

static enum msc_status save_elsewhere(struct msc_record *record, const struct msc_str *text) {
    const char *path = NULL;
    int descriptor = -1;
    const char *folder = msc_path_folder(&record->arena, record->path);
    MSC_TRY(MSC_ALLOCATED(folder));
    MSC_TRY(msc_file_make_folders(folder));
    MSC_TRY(make_free(&descriptor, &path, record));
    enum msc_status status = msc_record__write_at(descriptor, text->data, text->length, 0, path);
    if (status != MSC_OK) {
        close(descriptor);
        unlink(path);
        return status;
    }
    msc_file_sync_folder(path);
    close(record->descriptor);
    record->descriptor = descriptor;
    record->saved_path = path;
    record->n_bytes = text->length;
    return MSC_OK;
}

enum msc_status msc_record__save_elsewhere(struct msc_record *record) {
    struct msc_str text = {0};
    const char *old = msc_record_path(record);
    write_whole(&text, record);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = save_elsewhere(record, &text);
    }
    msc_str_finish(&text);
    if (status != MSC_OK) {
        return msc_status_prefix(status == MSC_E_NOMEM ? status : MSC_E_IO,
                                 "%s: another program removed, renamed or changed the record, and "
                                 "its %zu trials cannot be saved elsewhere",
                                 old, record->n_trials);
    }
    msc_log(record->log, MSC_LOG_ERROR,
            "%s: another program removed, renamed or changed the record while it was written; its "
            "%zu trials are now in %s",
            old, record->n_trials, record->saved_path);
    // A failure is not an error: the search can rebuild these files.
    if (msc_record__copy_needed(record->path, record->saved_path) != MSC_OK) {
        msc_log(record->log, MSC_LOG_WARNING, "%s", msc_status_message());
    }
    return MSC_OK;
}

bool msc_record_is_elsewhere(const struct msc_record *record) {
    return record->saved_path != NULL;
}
