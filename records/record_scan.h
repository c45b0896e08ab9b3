// Reads a record line by line in constant memory, to view a long record or to follow one that a
// search is writing. Takes no lock and holds only the line last read.
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
// Each line's checksums are checked. Accepts the same lines as msc_record_open.
#ifndef MSC_RECORDS_RECORD_SCAN_H
#define MSC_RECORDS_RECORD_SCAN_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_record_scan;

// Reads the header. Fails like msc_record_open. *out is owned by the caller.
enum msc_status msc_record_scan_open(struct msc_record_scan **out, const char *path,
                                     const struct msc_log *log);
// The next trial, borrowed until the next call. NULL if the file has no more complete lines; a
// later call returns lines appended meanwhile. MSC_E_FORMAT: damaged beyond a torn end.
// MSC_E_STATE: the file has become shorter than the part already read.
enum msc_status msc_record_scan_next(const struct msc_record_line **out,
                                     struct msc_record_scan *scan);
// A borrowed record with the contents of header and segments: path, space, goal, race, seed,
// numerics. It holds no trials, but msc_record_n_trials is the number of trials read, and
// msc_record_n_bytes the length of the file up to the last one.
const struct msc_record *msc_record_scan_record(const struct msc_record_scan *scan);
// True if the path still names the file being read; false if the record was set aside, for example.
bool msc_record_scan_is_named(const struct msc_record_scan *scan);
// Warns of a torn end and of damaged `measured` members, as msc_record_open does. Call after the
// last line.
void msc_record_scan_warn(const struct msc_record_scan *scan);
// The bytes of memory in use.
size_t msc_record_scan_memory(const struct msc_record_scan *scan);
void msc_record_scan_close(struct msc_record_scan *scan); // accepts NULL

MSC_PUBLIC_END

#endif
