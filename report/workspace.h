// Lists the records in files and folders, one line each; records of running searches come first.
//
//     MSC_TRY(msc_workspace_list(&list, cache, paths, n));
//
// Rows have `name`, `path`, `address` (16 hexadecimal digits, used in URLs), `state` ("running",
// "at rest"), `trials` and `best`, all strings.
#ifndef MSC_REPORT_WORKSPACE_H
#define MSC_REPORT_WORKSPACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

// Lists the records in each folder and its subfolders, and each given file. Files that are not
// records are skipped. If a record cannot be read, `state` holds the error and the other texts are
// empty. `known` is the previous result or NULL: unchanged records are not read again. *out is
// owned by the caller.
enum msc_status msc_workspace_list(struct cJSON **out, const struct cJSON *known,
                                   const char *const paths[], size_t n);
// The path of the record with that address, borrowed from the list; NULL: not found.
const char *msc_workspace_find(const struct cJSON *list, const char *address);

// Identifies the state of a file: the stamp changes whenever the file does.
struct msc_workspace_stamp {
    uint64_t n_bytes, time_ns;
};
bool msc_workspace_stamp_of(struct msc_workspace_stamp *out,
                            const char *path); // false: no such file

#endif
