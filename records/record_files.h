// Names of the files next to a search's record.
//
//     path = msc_record_file(&arena, "q.jsonl", MSC_RECORD_FILE_BASE); // "q.jsonl.base.json"
#ifndef MSC_RECORDS_RECORD_FILES_H
#define MSC_RECORDS_RECORD_FILES_H

#include "base/alloc.h"

#include <stdbool.h>

#define MSC_RECORD_FILE_PARAMETERS ".params"
#define MSC_RECORD_FILE_PREPARED ".prepared"
#define MSC_RECORD_FILE_BASE ".base.json"

// A kind of file: RECORD<ending>.
struct msc_record_file {
    const char *ending;
    const char *what; // a noun phrase for errors
    bool is_base;     // written only if the configuration names no strategy to start from
};

// All kinds; the last element has no ending.
extern const struct msc_record_file msc_record_file_kinds[];

// RECORD<ending>, in the arena. NULL: out of memory.
const char *msc_record_file(struct msc_arena *arena, const char *record, const char *ending);
// The path of the record of a second search for the same entry of the configuration:
// NAME.<what>.jsonl for NAME.jsonl. NULL: out of memory.
const char *msc_record_sibling(struct msc_arena *arena, const char *record, const char *what);
// Sets *out: does the file exist, and does it begin with the header of a record? Fails if the
// header is damaged.
enum msc_status msc_record_has_header(bool *out, const char *path);

#endif
