#include "records/record_files.h"

#include "base/file.h"
#include "records/record.h"

#include <string.h>

const struct msc_record_file msc_record_file_kinds[] = {
    {MSC_RECORD_FILE_PARAMETERS, "the scales of a record", false},
    {".moments", "what a search has worked out so far before its first trial", false},
    {MSC_RECORD_FILE_PREPARED,
     "what a search had prepared when it was ended before its first trial", false},
    {MSC_RECORD_FILE_BASE, "what a record started from", true},
    {".result.json", "what a search worked out", false},
    {".rerank.json", "what was measured of a search's best trials", false},
    {".distill.json", "what became of a search's winner", false},
    {".attempt", "what a record has in flight", false},
    {".cut", "what was cut off a record", false},
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
