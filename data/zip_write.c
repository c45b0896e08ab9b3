#include "data/zip_write.h"

#include <string.h>

#define LOCAL_BYTES 30u
#define LOCAL_EXTRA_BYTES 20u
#define CENTRAL_EXTRA_BYTES 28u
#define VERSION 45u      // the first version with 64-bit sizes
#define UTF8_NAME 0x800u // flag
#define FIRST_DATE 0x21u // zip's first date; a fixed date, so that equal members give equal files
#define ELSEWHERE_16 0xffffu
#define ELSEWHERE_32 0xffffffffu // the value is in the 64-bit field instead

// Appends the low n bytes, little-endian.
static void append_number(struct msc_str *out, uint64_t value, int n) {
    for (int i = 0; i < n; i++) {
        msc_str_char(out, (char)(uint8_t)(value >> (8 * i)));
    }
}

uint64_t msc_zip__local_bytes(const char *name) {
    return LOCAL_BYTES + strlen(name) + LOCAL_EXTRA_BYTES;
}

// Appends the fields that local and central records share, from the version needed to the length of
// the extra field.
static void append_member(struct msc_str *out, const struct msc_zip_member *m, unsigned n_extra) {
    append_number(out, VERSION, 2);
    append_number(out, UTF8_NAME, 2);
    append_number(out, 0, 2); // method: stored
    append_number(out, 0, 2); // time
    append_number(out, FIRST_DATE, 2);
    append_number(out, m->crc, 4);
    append_number(out, ELSEWHERE_32, 4); // packed and unpacked size are in the extra field
    append_number(out, ELSEWHERE_32, 4);
    append_number(out, strlen(m->name), 2);
    append_number(out, n_extra, 2);
}

static void append_sizes(struct msc_str *out, const struct msc_zip_member *m, unsigned n_extra) {
    append_number(out, 1, 2); // header of the extra field for 64-bit sizes
    append_number(out, n_extra - 4, 2);
    append_number(out, m->n_bytes, 8);
    append_number(out, m->n_bytes, 8);
}

void msc_zip__append_local(struct msc_str *out, const struct msc_zip_member *m) {
    msc_str_append(out, "PK\3\4");
    append_member(out, m, LOCAL_EXTRA_BYTES);
    msc_str_append(out, m->name);
    append_sizes(out, m, LOCAL_EXTRA_BYTES);
}

void msc_zip__append_central(struct msc_str *out, const struct msc_zip_member *m) {
    msc_str_append(out, "PK\1\2");
    append_number(out, VERSION, 2); // version made by
    append_member(out, m, CENTRAL_EXTRA_BYTES);
    append_number(out, 0, 2); // comment length
    append_number(out, 0, 2); // disk number
    append_number(out, 0, 2); // attributes
    append_number(out, 0, 4);
    append_number(out, ELSEWHERE_32, 4); // the offset is in the extra field
    msc_str_append(out, m->name);
    append_sizes(out, m, CENTRAL_EXTRA_BYTES);
    append_number(out, m->place, 8);
}

void msc_zip__append_end(struct msc_str *out, uint64_t n, uint64_t place, uint64_t n_bytes) {
    msc_str_append(out, "PK\6\6");
    append_number(out, 44, 8); // size of this record after this field
    append_number(out, VERSION, 2);
    append_number(out, VERSION, 2);
    append_number(out, 0, 4); // disk numbers
    append_number(out, 0, 4);
    append_number(out, n, 8);
    append_number(out, n, 8);
    append_number(out, n_bytes, 8);
    append_number(out, place, 8);
    msc_str_append(out, "PK\6\7");
    append_number(out, 0, 4);
    append_number(out, place + n_bytes, 8);
    append_number(out, 1, 4);
    msc_str_append(out, "PK\5\6");
    append_number(out, 0, 4); // disk numbers
    append_number(out, ELSEWHERE_16, 2);
    append_number(out, ELSEWHERE_16, 2);
    append_number(out, ELSEWHERE_32, 4);
    append_number(out, ELSEWHERE_32, 4);
    append_number(out, 0, 2); // comment length
}
