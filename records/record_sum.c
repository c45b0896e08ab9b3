// What every line ends in: ,"checksum":"<32 digits>","measured":{...,"sum":"<32 digits>"}} and a
// newline. Both are XXH3-128 of the bytes before the comma; schema 1 has no sum.
#include "base/hash.h"
#include "base/json.h"
#include "records/record_internal.h"

#include <string.h>

static const char checksum_key[] = ",\"checksum\":\"";
static const char sum_key[] = ",\"sum\":\"";
#define CHECKSUM_KEY_LENGTH (sizeof checksum_key - 1)
#define SUM_KEY_LENGTH (sizeof sum_key - 1)
#define DIGITS (MSC_HASH_TEXT_BYTES - 1)

_Static_assert(MSC_RECORD_CHECKSUM_BYTES == CHECKSUM_KEY_LENGTH + DIGITS + 1, "key, digits, quote");

static void write_hash(struct msc_str *out, size_t begin, const char *key, size_t key_length) {
    static const char hexadecimal[] = "0123456789abcdef";
    if (out->failed) {
        return;
    }
    struct msc_hash h = msc_hash_bytes(out->data + begin, out->length - begin);
    char digits[DIGITS];
    for (size_t i = 0; i < DIGITS; i++) {
        uint64_t half = i < 16 ? h.high : h.low;
        digits[i] = hexadecimal[half >> (60 - 4 * (i % 16)) & 15];
    }
    msc_str_append_n(out, key, key_length);
    msc_str_append_n(out, digits, DIGITS);
    msc_str_char(out, '"');
}

void msc_record__write_checksum(struct msc_str *out, size_t begin) {
    write_hash(out, begin, checksum_key, CHECKSUM_KEY_LENGTH);
}

void msc_record__write_end(struct msc_str *out, size_t begin, int schema) {
    if (schema >= MSC_RECORD_SCHEMA_SUM) {
        write_hash(out, begin, sum_key, SUM_KEY_LENGTH);
    }
    msc_str_append(out, "}}\n");
}

// True when the digits and the quote at `at` name the hash of what is before the key.
static bool is_hash(const char *digits, const char *line, size_t n_before) {
    char text[MSC_HASH_TEXT_BYTES] = "";
    struct msc_hash stored;
    memcpy(text, digits, DIGITS);
    return digits[DIGITS] == '"' && msc_hash_parse(&stored, text) &&
           msc_hash_equal(stored, msc_hash_bytes(line, n_before));
}

bool msc_record__check_line(size_t *n_body, const char *line, size_t length) {
    if (length < MSC_RECORD_CHECKSUM_BYTES + 2 || line[0] != '{') {
        return false;
    }
    for (size_t at = length - MSC_RECORD_CHECKSUM_BYTES; at > 0; at--) {
        if (line[at] == ',' && memcmp(line + at, checksum_key, CHECKSUM_KEY_LENGTH) == 0) {
            *n_body = at;
            return is_hash(line + at + CHECKSUM_KEY_LENGTH, line, at);
        }
    }
    return false;
}

bool msc_record__check_end(size_t *n_measured, int schema, const char *line, size_t length) {
    static const char end[] = "}}";
    size_t n_sum = schema >= MSC_RECORD_SCHEMA_SUM ? SUM_KEY_LENGTH + DIGITS + 1 : 0;
    size_t n_end = n_sum + sizeof end - 1;
    if (length < n_end || memcmp(line + length - 2, end, sizeof end - 1) != 0) {
        return false;
    }
    *n_measured = length - n_end;
    return n_sum == 0 || (memcmp(line + *n_measured, sum_key, SUM_KEY_LENGTH) == 0 &&
                          is_hash(line + *n_measured + SUM_KEY_LENGTH, line, *n_measured));
}

enum msc_status msc_record__parse_body(struct cJSON **out, const char *line, size_t n_body,
                                       const char *name) {
    struct msc_str text = {0};
    msc_str_append_n(&text, line, n_body);
    msc_str_char(&text, '}');
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_json_parse(out, text.data, text.length, name);
    }
    msc_str_finish(&text);
    return status;
}
