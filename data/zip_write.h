// Writes the records around the members of an uncompressed zip archive, with 64-bit sizes
// throughout (PKWARE's APPNOTE 6.3: 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3). Internal to data/.
//
// Each member consists of its local record and its bytes. The central records of all members and
// the end records follow.
#ifndef MSC_DATA_ZIP_WRITE_H
#define MSC_DATA_ZIP_WRITE_H

#include "base/str.h"

struct msc_zip_member {
    const char *name; // UTF-8, at most 65535 bytes
    uint64_t place;   // offset of the member's local record in the file
    uint64_t n_bytes;
    uint32_t crc; // CRC-32 of the member's bytes
};

// The length of a local record. It depends only on the name.
uint64_t msc_zip__local_bytes(const char *name);
void msc_zip__append_local(struct msc_str *out, const struct msc_zip_member *member);
void msc_zip__append_central(struct msc_str *out, const struct msc_zip_member *member);
// Appends the end records of an archive with n members. The central records are at offset `place`
// and take n_bytes.
void msc_zip__append_end(struct msc_str *out, uint64_t n, uint64_t place, uint64_t n_bytes);

#endif
