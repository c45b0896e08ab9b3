// An append-only file of named arrays, each valid once it is complete. If a program is killed, the
// next run reads the arrays that were already computed.
//
// File: 16 bytes "mscgym arrays 1\n", a 16-byte hash that identifies the computation, then the
// arrays. An array has: u32 length of the name, u32 data type (enum msc_dtype), u32 number of
// dimensions, u32 0, the dimensions as i64, the name, the elements, and a hash of all these.
// Numbers are little-endian.
//
//     MSC_TRY(msc_array_log_open(&kept, path, identity, log));
//     enum msc_status status = msc_array_log_read(&array, kept, "a");     // MSC_E_NOT_FOUND
//     MSC_TRY(msc_array_log_add(kept, "a", array));
//     msc_array_log_close(kept);
#ifndef MSC_DATA_ARRAY_LOG_H
#define MSC_DATA_ARRAY_LOG_H

#include "base/hash.h"
#include "base/log.h"
#include "data/array.h"

struct msc_array_log;

// Opens or creates the file. If it has another identity, reports that in `log` and starts the file
// over. If its end is damaged or incomplete, reports that in `log` and cuts off this end. The
// caller owns *out. MSC_E_STATE: another process has the file open. MSC_E_IO: the path is a link or
// not a regular file. MSC_E_FORMAT: the file is not an array file. After an error the file is
// unchanged.
enum msc_status msc_array_log_open(struct msc_array_log **out, const char *path,
                                   struct msc_hash identity, const struct msc_log *log);
void msc_array_log_close(struct msc_array_log *log); // accepts NULL
// Removes an array file of any identity. Does not remove other files.
void msc_array_log_remove(const char *path);

size_t msc_array_log_n(const struct msc_array_log *log);
const char *msc_array_log_name(const struct msc_array_log *log, size_t index); // borrowed
// Reads an array. The caller owns *out. MSC_E_NOT_FOUND if there is no array of this name;
// MSC_E_FORMAT if the file has changed since it was opened.
enum msc_status msc_array_log_read(struct msc_array **out, const struct msc_array_log *log,
                                   const char *name);
// Appends an array. If writing fails (MSC_E_IO), the file is unchanged.
enum msc_status msc_array_log_add(struct msc_array_log *log, const char *name,
                                  const struct msc_array *array);

#endif
