// The end of every line: ,"checksum":"<32 digits>","measured":{...,"sum":"<32 digits>"}} and a
// newline. Checksum and sum are each the XXH3-128 hash of all bytes of the line before the comma
// that precedes them.
// POSIX does not define memrchr.
#define _GNU_SOURCE

#include "base/hash.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <string.h>

static const char checksum_key[] = ",\"checksum\":\"";
static const char measured_key[] = ",\"measured\":";
static const char sum_key[] = ",\"sum\":\"";
#define CHECKSUM_KEY_LENGTH (sizeof checksum_key - 1)
#define MEASURED_KEY_LENGTH (sizeof measured_key - 1)
#define SUM_KEY_LENGTH (sizeof sum_key - 1)
#define DIGITS (MSC_HASH_TEXT_BYTES - 1)

_Static_assert(MSC_RECORD_CHECKSUM_BYTES == CHECKSUM_KEY_LENGTH + DIGITS + 1, "key, digits, quote");

// The eight hex digits of 32 bits, computed in parallel: one nibble per byte, letters from 10 on.
static void write_eight(char digits[8], uint32_t bits) {
    uint64_t x = bits;
    x = (x & 0xFFFF0000) << 16 | (x & 0xFFFF);
    x = (x << 8 & UINT64_C(0x00FF000000FF0000)) | (x & UINT64_C(0x000000FF000000FF));
    x = (x << 4 & UINT64_C(0x0F000F000F000F00)) | (x & UINT64_C(0x000F000F000F000F));
    uint64_t are_letters = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    x += UINT64_C(0x3030303030303030) + are_letters * ('a' - '0' - 10);
    for (size_t i = 0; i < 8; i++) {
        digits[i] = (char)(x >> (56 - 8 * i));
    }
}

static void write_digits(char digits[DIGITS], struct msc_hash h) {
    write_eight(digits, (uint32_t)(h.high >> 32));
    write_eight(digits + 8, (uint32_t)h.high);
    write_eight(digits + 16, (uint32_t)(h.low >> 32));
    write_eight(digits + 24, (uint32_t)h.low);
}

static void write_hash(struct msc_str *out, size_t begin, const char *key, size_t key_length) {
    if (out->failed) {
        return;
    }
    char digits[DIGITS];
    write_digits(digits, msc_hash_bytes(out->data + begin, out->length - begin));
    msc_str_append_n(out, key, key_length);
    msc_str_append_n(out, digits, DIGITS);
    msc_str_char(out, '"');
}

void msc_record__write_checksum(struct msc_str *out, size_t begin) {
    write_hash(out, begin, checksum_key, CHECKSUM_KEY_LENGTH);
}

void msc_record__write_end(struct msc_str *out, size_t begin) {
    write_hash(out, begin, sum_key, SUM_KEY_LENGTH);
    msc_str_append(out, "}}\n");
}

// True if `digits`, followed by a quote, are the hash of the line's first n_before bytes.
static bool is_hash(const char *digits, const char *line, size_t n_before) {
    char expected[DIGITS];
    if (digits[DIGITS] != '"') {
        return false;
    }
    write_digits(expected, msc_hash_bytes(line, n_before));
    return memcmp(digits, expected, DIGITS) == 0;
}

// Finds the comma before the checksum, or NULL. The checksum is followed by an object, usually the
// line's last one.
static const char *find_checksum(const char *line, size_t length) {
    const char *brace = memrchr(line, '{', length);
    size_t n_between = MSC_RECORD_CHECKSUM_BYTES + MEASURED_KEY_LENGTH;
    if ((size_t)(brace - line) >= n_between &&
        memcmp(brace - n_between, checksum_key, CHECKSUM_KEY_LENGTH) == 0 &&
        memcmp(brace - MEASURED_KEY_LENGTH, measured_key, MEASURED_KEY_LENGTH) == 0) {
        return brace - n_between;
    }
    const char *comma = memrchr(line, ',', length - MSC_RECORD_CHECKSUM_BYTES + 1);
    while (comma && memcmp(comma, checksum_key, CHECKSUM_KEY_LENGTH) != 0) {
        comma = memrchr(line, ',', (size_t)(comma - line));
    }
    return comma;
}

bool msc_record__check_line(size_t *n_body, const char *line, size_t length) {
    if (length < MSC_RECORD_CHECKSUM_BYTES + 2 || line[0] != '{') {
        return false;
    }
    const char *comma = find_checksum(line, length);
    *n_body = comma ? (size_t)(comma - line) : 0;
    return comma && is_hash(comma + CHECKSUM_KEY_LENGTH, line, *n_body);
}

bool msc_record__check_end(size_t *n_measured, const char *line, size_t length) {
    static const char end[] = "}}";
    const size_t n_end = SUM_KEY_LENGTH + DIGITS + 1 + sizeof end - 1;
    if (length < n_end || memcmp(line + length - 2, end, sizeof end - 1) != 0) {
        return false;
    }
    *n_measured = length - n_end;
    return memcmp(line + *n_measured, sum_key, SUM_KEY_LENGTH) == 0 &&
           is_hash(line + *n_measured + SUM_KEY_LENGTH, line, *n_measured);
}

enum msc_status msc_record__parse_body(struct cJSON **out, const char *line, size_t n_body,
                                       const char *name) {
    struct msc_str text = {0};
    msc_str_append_n(&text, line, n_body);
    msc_str_char(&text, '}');
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_json_parse_lists(out, text.data, text.length, name, "warm");
    }
    msc_str_finish(&text);
    return status;
}
