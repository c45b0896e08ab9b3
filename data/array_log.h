// Named arrays in a file that grows, each of which counts once it is whole: what a program that is killed
// has worked out by then, and does not work out again.
//
// File: 16 bytes "mscgym arrays 1\n", the 16 bytes of a hash that says what it is of, then the arrays.
// Each is u32 length of its name, u32 data type (enum msc_dtype), u32 number of dimensions, u32 0,
// the dimensions as i64, the name, the elements, and the hash of all that. Numbers are little-endian.
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

// Makes the file where there is none. One that is of something else is told of in `log` and begun anew;
// one that is damaged is, from there on; what a killed program left of its last array is told of, too, and
// cut off. *out is the caller's. MSC_E_STATE: another process has it open; MSC_E_IO: it is a link, or no
// file; MSC_E_FORMAT: it is a file, but none of these. What is there then stays as it is.
enum msc_status msc_array_log_open(struct msc_array_log **out, const char *path,
                                   struct msc_hash identity, const struct msc_log *log);
void msc_array_log_close(struct msc_array_log *log); // accepts NULL
// Removes the file, of whatever it is; what is none of these stays.
void msc_array_log_remove(const char *path);

size_t msc_array_log_n(const struct msc_array_log *log);
const char *msc_array_log_name(const struct msc_array_log *log, size_t index); // borrowed
// *out is the caller's. MSC_E_NOT_FOUND; MSC_E_FORMAT where the file has changed since it was opened.
enum msc_status msc_array_log_read(struct msc_array **out, const struct msc_array_log *log,
                                   const char *name);
// Where it cannot be written (MSC_E_IO) the file is as it was.
enum msc_status msc_array_log_add(struct msc_array_log *log, const char *name,
                                  const struct msc_array *array);

#endif
