// Appends lines to a record: they are buffered, and a commit writes them.
#include "records/record_internal.h"

#include <assert.h>
#include <unistd.h>

static void note_committed(struct msc_record *record) {
    record->n_committed = record->n_trials;
    record->n_committed_segments = record->n_segments;
    msc_str_clear(&record->buffer);
}

// Undoes a failed write; the record accepts no further writes.
static enum msc_status fail_commit(struct msc_record *record, enum msc_status status) {
    // If truncation fails, the next reader skips the torn end.
    if (ftruncate(record->descriptor, (off_t)record->n_bytes) != 0) {
        record->was_cut = true;
    }
    record->is_broken = true;
    msc_record__forget_uncommitted(record);
    return msc_status_prefix(status, "%zu trial%s safe; make room and resume", record->n_committed,
                             record->n_committed == 1 ? " is" : "s are");
}

enum msc_status msc_record_commit(struct msc_record *record) {
    struct msc_str *buffer = &record->buffer;
    if (record->is_broken || record->descriptor < 0) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: cannot append, because the record was released or a write failed",
                        record->path);
    }
    enum msc_status status = msc_str_status(buffer);
    if (status == MSC_OK && !msc_record__is_in_place(record)) {
        status = msc_record__save_elsewhere(record);
        if (status == MSC_OK) {
            note_committed(record);
        } else {
            record->is_broken = true;
        }
        return status;
    }
    if (status == MSC_OK && buffer->length > 0) {
        status = msc_record__write_at(record->descriptor, buffer->data, buffer->length,
                                      record->n_bytes, msc_record_path(record));
    }
    if (status != MSC_OK) {
        return fail_commit(record, status);
    }
    record->n_bytes += buffer->length;
    note_committed(record);
    return MSC_OK;
}

// A write has at most one round of lines, so a reader knows how much a torn write can leave.
static enum msc_status make_room_for_line(struct msc_record *record) {
    size_t n_lines =
        record->n_trials - record->n_committed + record->n_segments - record->n_committed_segments;
    if (record->is_broken || record->descriptor < 0) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: cannot append, because the record was released or a write failed",
                        record->path);
    }
    return n_lines >= record->parallel ? msc_record_commit(record) : MSC_OK;
}

enum msc_status msc_record_append_trial(struct msc_record *record,
                                        const struct msc_record_line *line) {
    MSC_TRY(make_room_for_line(record));
    assert(line->trial.id == (int64_t)record->n_trials);
    MSC_TRY(msc_record__add_trial(record, line));
    msc_record__write_trial(&record->buffer, record, line);
    return MSC_OK;
}

enum msc_status msc_record_append_segment(struct msc_record *record, const char *numerics,
                                          bool is_warm_start) {
    MSC_TRY(make_room_for_line(record));
    const struct msc_record_segment segment = {
        .first = (int64_t)record->n_trials,
        .numerics = numerics,
        .is_warm_start = is_warm_start,
    };
    MSC_TRY(msc_record__add_segment(record, &segment));
    msc_record__write_segment(&record->buffer, &segment);
    return MSC_OK;
}
