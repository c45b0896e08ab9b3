// Handles damaged records: cuts off a torn end, and salvages the valid lines.
#include "records/record_internal.h"

#include "base/file.h"

#include <errno.h>
#include <unistd.h>

// ---- The torn end -----------------------------------------------------------------------------

// Appends a text to a file and ensures a newline at its end.
static enum msc_status append_to_file(const char *path, const char *text, size_t length) {
    struct msc_str whole = {0};
    char *old = NULL;
    size_t n_old = 0;
    if (msc_file_exists(path)) {
        MSC_TRY(msc_file_read(&old, &n_old, path));
        msc_str_append_n(&whole, old, n_old);
        msc_free(old);
    }
    msc_str_append_n(&whole, text, length);
    msc_str_append(&whole, text[length - 1] == '\n' ? "" : "\n");
    enum msc_status status = msc_str_status(&whole);
    if (status == MSC_OK) {
        status = msc_file_write(path, whole.data, whole.length);
    }
    msc_str_finish(&whole);
    return status;
}

enum msc_status msc_record__cut_tail(const struct msc_record *record) {
    struct msc_arena arena = {0};
    const void *text = NULL;
    size_t length = 0;
    enum msc_status status = MSC_OK;
    const size_t n_good = (size_t)record->n_bytes;
    const char *path = msc_arena_printf(&arena, "%s.cut", record->path);
    MSC_TRY_OUT(MSC_ALLOCATED(path));
    MSC_TRY_OUT(msc_file_map(&text, &length, record->path));
    if (length > n_good) {
        status = append_to_file(path, (const char *)text + n_good, length - n_good);
        if (status != MSC_OK) {
            status = msc_status_prefix(
                status, "%s: its damaged end cannot be saved, so it is not cut off", record->path);
            goto out;
        }
        msc_log(record->log, MSC_LOG_WARNING, "%s: its damaged end is kept in %s", record->path,
                path);
    }
    if (ftruncate(record->descriptor, (off_t)n_good) != 0) {
        status = msc_record__fail_system("cut the damaged end of the record", record->path, errno);
    }
out:
    msc_file_unmap(text, length);
    msc_arena_finish(&arena);
    return status;
}

// ---- The rest ---------------------------------------------------------------------------------

static enum msc_status check_name_is_free(const char *path) {
    return !msc_file_exists(path)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: the file already exists; choose another path", path);
}

// Files that a search needs to continue.
static const char *const needed[] = {".params", ".base.json"};

static enum msc_status copy_companion(struct msc_arena *arena, const char *path,
                                      const char *new_path, const char *ending) {
    const char *from = msc_arena_printf(arena, "%s%s", path, ending);
    const char *to = msc_arena_printf(arena, "%s%s", new_path, ending);
    char *data = NULL;
    size_t n_bytes = 0;
    MSC_TRY(MSC_ALLOCATED(from && to));
    if (!msc_file_exists(from)) {
        return MSC_OK;
    }
    MSC_TRY(check_name_is_free(to));
    MSC_TRY(msc_file_read(&data, &n_bytes, from));
    enum msc_status status = msc_file_write(to, data, n_bytes);
    msc_free(data);
    return status;
}

enum msc_status msc_record__copy_needed(const char *path, const char *new_path) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0] && status == MSC_OK; i++) {
        status = copy_companion(&arena, path, new_path, needed[i]);
    }
    msc_arena_finish(&arena);
    return status;
}

// The record is written last, so that, if it exists, all its files are complete.
enum msc_status msc_record_salvage(struct msc_record_salvaged *out, const char *path,
                                   const char *new_path) {
    struct msc_record *record = NULL;
    const void *text = NULL;
    size_t length = 0;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(check_name_is_free(new_path));
    MSC_TRY_OUT(msc_record__new(&record, path, NULL));
    MSC_TRY_OUT(msc_record__load_good(out, record));
    MSC_TRY_OUT(msc_file_map(&text, &length, path));
    MSC_TRY_OUT(msc_record__copy_needed(path, new_path));
    status = record->n_bytes <= length
                 ? msc_file_write(new_path, text, (size_t)record->n_bytes)
                 : MSC_FAIL(MSC_E_IO, "%s: the file changed while it was read", path);
out:
    msc_file_unmap(text, length);
    msc_record_close(record);
    return status;
}
