// The records that files and folders hold, in a line each, those that a search is writing first.
//
//     MSC_TRY(msc_workspace_list(&list, cache, paths, n));
//
// Rows: `name`, `path`, `address` (16 hexadecimal digits that name it in an address), `state` ("running",
// "at rest"), `trials`, `best`: texts all.
#ifndef MSC_REPORT_WORKSPACE_H
#define MSC_REPORT_WORKSPACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

// Records of a folder and of the folders in it, and files as they are. What is no record is passed over;
// so is a row's text where the record cannot be read, which stands in `state` then. `known` (may be NULL),
// what this gave before, spares reading records that have not changed. *out is owned by the caller.
enum msc_status msc_workspace_list(struct cJSON **out, const struct cJSON *known,
                                   const char *const paths[], size_t n);
// The path of the record with that address; NULL: there is none. Borrowed from the list.
const char *msc_workspace_find(const struct cJSON *list, const char *address);

// What tells whether a file has changed.
struct msc_workspace_stamp {
    uint64_t n_bytes, time_ns;
};
bool msc_workspace_stamp_of(struct msc_workspace_stamp *out,
                            const char *path); // false: no such file

#endif
