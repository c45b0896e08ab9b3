// A record read line by line, in fixed memory: for looking at a long one, and for following one that
// a search is writing. Nothing is locked, nothing is held but the line last read.
//
//     struct msc_record_scan *scan;
//     MSC_TRY(msc_record_scan_open(&scan, "a.jsonl", log));
//     const struct msc_record_line *line;
//     do {
//         MSC_TRY_OUT(msc_record_scan_next(&line, scan));
//         ... line, unless it is NULL ...
//     } while (line);
//     out: msc_record_scan_close(scan);
//
// Each line's checksums are checked. The same lines count as for msc_record_open.
#ifndef MSC_RECORDS_RECORD_SCAN_H
#define MSC_RECORDS_RECORD_SCAN_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_record_scan;

// Reads the header. Errors as of msc_record_open. *out is owned by the caller.
enum msc_status msc_record_scan_open(struct msc_record_scan **out, const char *path,
                                     const struct msc_log *log);
// The next trial, borrowed until the next call; NULL where the file has no more complete lines. Then
// it may be called again: what was appended meanwhile follows. MSC_E_FORMAT: damaged beyond a torn
// end. MSC_E_STATE: the file has become shorter than what was read of it.
enum msc_status msc_record_scan_next(const struct msc_record_line **out,
                                     struct msc_record_scan *scan);
// What the header tells, and segments: path, space, goal, race, seed, numerics. It has no trials, but
// msc_record_n_trials says how many were read, msc_record_n_bytes how far. Borrowed.
const struct msc_record *msc_record_scan_record(const struct msc_record_scan *scan);
// Does the path still name the file that is read? Not where the record was set aside, say.
bool msc_record_scan_is_named(const struct msc_record_scan *scan);
// Warns of a torn end and of damaged `measured`, as msc_record_open does. Once all was read.
void msc_record_scan_warn(const struct msc_record_scan *scan);
// The bytes that it holds now.
size_t msc_record_scan_memory(const struct msc_record_scan *scan);
void msc_record_scan_close(struct msc_record_scan *scan); // accepts NULL

MSC_PUBLIC_END

#endif
