#include "records/record_files.h"

#include "base/file.h"
#include "records/record.h"

#include <string.h>

const struct msc_record_file msc_record_file_kinds[] = {
    {MSC_RECORD_FILE_PARAMETERS, "the scales of a record", false},
    {".moments", "the statistics that a search collects before its first trial", false},
    {MSC_RECORD_FILE_PREPARED, "the preparations of a search that ended before its first trial",
     false},
    {MSC_RECORD_FILE_BASE, "the base strategy of a record", true},
    {".result.json", "the results kept for a record", false},
    {".rerank.json", "the measurements of a record's best trials", false},
    {".distill.json", "the improved plan of a record's winner", false},
    {".attempt", "the trials of a record in flight", false},
    {".cut", "the damaged end cut off a record", false},
    {0},
};

const char *msc_record_file(struct msc_arena *arena, const char *record, const char *ending) {
    return msc_arena_printf(arena, "%s%s", record, ending);
}

const char *msc_record_sibling(struct msc_arena *arena, const char *record, const char *what) {
    static const char ending[] = ".jsonl";
    size_t n = strlen(record);
    size_t n_ending = sizeof ending - 1;
    bool has_ending = n > n_ending && strcmp(record + n - n_ending, ending) == 0;
    return msc_arena_printf(arena, "%.*s.%s%s", (int)(has_ending ? n - n_ending : n), record, what,
                            ending);
}

enum msc_status msc_record_has_header(bool *out, const char *path) {
    struct msc_record *record = NULL;
    *out = false;
    if (!msc_file_exists(path)) {
        return MSC_OK;
    }
    enum msc_status status = msc_record_open(&record, path, MSC_RECORD_HEADER, NULL);
    if (status == MSC_E_NOT_FOUND) {
        return MSC_OK;
    }
    MSC_TRY(status);
    *out = true;
    msc_record_close(record);
    return MSC_OK;
}
