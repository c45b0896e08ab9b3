// The records around the members of a zip archive that are stored as they are, with 64-bit sizes
// throughout (PKWARE's APPNOTE 6.3: 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3). Internal to data/.
//
// A member is its local record, then its bytes; behind all members come their central records, then
// the end.
#ifndef MSC_DATA_ZIP_WRITE_H
#define MSC_DATA_ZIP_WRITE_H

#include "base/str.h"

struct msc_zip_member {
    const char *name; // UTF-8, at most 65535 bytes
    uint64_t place;   // of its local record in the file
    uint64_t n_bytes;
    uint32_t crc; // CRC-32 of its bytes
};

// Of the local record, by the name alone.
uint64_t msc_zip__local_bytes(const char *name);
void msc_zip__append_local(struct msc_str *out, const struct msc_zip_member *member);
void msc_zip__append_central(struct msc_str *out, const struct msc_zip_member *member);
// Of n members whose central records lie at `place` and have so many bytes.
void msc_zip__append_end(struct msc_str *out, uint64_t n, uint64_t place, uint64_t n_bytes);

#endif
