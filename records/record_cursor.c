#include "records/record_cursor.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>

// Numbers with this many digits always fit in 64 bits.
#define MOST_DIGITS 19
// Number of digits that read_eight reads at once.
#define EIGHT 8

// Reads a double that the fast path cannot read. Reads from a copy of the number that ends in NUL.
static double read_odd_number(struct msc_record_cursor *c) {
    char text[40];
    size_t length = 0;
    while (c->at < c->end && length < sizeof text - 1 &&
           ((*c->at >= '0' && *c->at <= '9') || *c->at == '-' || *c->at == '+' || *c->at == '.' ||
            *c->at == 'e' || *c->at == 'E')) {
        text[length++] = *c->at++;
    }
    text[length] = '\0';
    double value = 0.0;
    c->is_good = c->is_good && msc_parse_double(&value, text);
    return value;
}

static bool is_number_end(const struct msc_record_cursor *c) {
    return c->at == c->end || *c->at == ',' || *c->at == '}' || *c->at == ']';
}

// Reads eight digits as one number; false if any of them is not a digit. The first digit is in the
// lowest byte. Adjacent digits are combined to numbers of two digits, then of four, then of eight.
static bool read_eight(uint64_t *out, const char *text) {
    const unsigned char *b = (const unsigned char *)text;
    uint64_t x = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
                 (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
                 (uint64_t)b[7] << 56;
    // '0' to '9' are 0x30 to 0x39, so the high half of a digit's byte is 3. It is also 3 after six
    // is added.
    const uint64_t high_halves = UINT64_C(0xF0F0F0F0F0F0F0F0);
    const uint64_t threes = '0' * UINT64_C(0x0101010101010101);
    if ((x & high_halves) != threes ||
        ((x + UINT64_C(0x0606060606060606)) & high_halves) != threes) {
        return false;
    }
    x -= threes;
    x = (x * 10 + (x >> 8)) & UINT64_C(0x00FF00FF00FF00FF);
    x = (x * 100 + (x >> 16)) & UINT64_C(0x0000FFFF0000FFFF);
    *out = (x * 10000 + (x >> 32)) & UINT64_C(0xFFFFFFFF);
    return true;
}

struct digits {
    uint64_t mantissa;
    size_t n;          // number of digits
    size_t n_counting; // number of digits without leading zeros
};

static void read_digits(struct digits *d, struct msc_record_cursor *c) {
    const char *at = c->at;
    uint64_t mantissa = d->mantissa, eight = 0;
    size_t n_counting = d->n_counting;
    while (mantissa == 0 && at < c->end && *at == '0') {
        at++;
    }
    while (n_counting + EIGHT <= MOST_DIGITS && c->end - at >= EIGHT && read_eight(&eight, at)) {
        mantissa = mantissa * 100000000 + eight;
        n_counting += EIGHT;
        at += EIGHT;
    }
    for (; at < c->end && n_counting <= MOST_DIGITS; at++, n_counting++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9) {
            break;
        }
        mantissa = mantissa * 10 + digit;
    }
    d->n += (size_t)(at - c->at);
    d->mantissa = mantissa;
    d->n_counting = n_counting;
    c->at = at;
}

// The digits of nearly all numbers in a record fit in an integer, which msc_round_decimal rounds;
// with strtod, half of the time to read a line would be spent on numbers.
double msc_record__read_number(struct msc_record_cursor *c) {
    unsigned digit = c->at < c->end ? (unsigned)(*c->at - '0') : 10;
    if (digit <= 9 && c->end - c->at >= 2 && (c->at[1] == ',' || c->at[1] == '}')) {
        c->at++;
        return digit;
    }
    if (c->at < c->end && *c->at == '"') {
        bool is_positive = msc_record__accept(c, "\"inf\"");
        c->is_good = c->is_good && (is_positive || msc_record__accept(c, "\"-inf\""));
        return is_positive ? INFINITY : -INFINITY;
    }
    const char *first = c->at;
    struct digits d = {0};
    bool is_negative = msc_record__accept(c, "-");
    read_digits(&d, c);
    size_t n_whole = d.n;
    bool has_point = d.n > 0 && c->at < c->end && *c->at == '.';
    if (has_point) {
        c->at++;
        read_digits(&d, c);
    }
    double value = 0.0;
    bool has_digits = n_whole > 0 && (!has_point || d.n > n_whole);
    int exponent = -(int)(d.n - n_whole);
    bool is_plain = has_digits && d.n_counting <= MOST_DIGITS && is_number_end(c);
    if (is_plain && msc_round_decimal(&value, d.mantissa, exponent)) {
        return is_negative ? -value : value;
    }
    c->at = first;
    return read_odd_number(c);
}

int64_t msc_record__read_i64(struct msc_record_cursor *c) {
    bool is_negative = msc_record__accept(c, "-");
    int64_t value = 0;
    const char *first = c->at, *at = c->at;
    for (; at < c->end && *at >= '0' && *at <= '9' && at - first < 18; at++) {
        value = value * 10 + (*at - '0');
    }
    c->at = at;
    c->is_good = c->is_good && at > first;
    return is_negative ? -value : value;
}

void msc_record__read_text(struct msc_record_cursor *c, char *out, size_t capacity) {
    const char *first = c->at;
    bool has_escape = false;
    msc_record__expect(c, "\"");
    while (c->at < c->end && *c->at != '"') {
        has_escape = has_escape || *c->at == '\\';
        c->at += *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
    }
    msc_record__expect(c, "\"");
    if (!c->is_good) {
        return;
    }
    cJSON *value = NULL;
    const char *text = first + 1;
    size_t length = (size_t)(c->at - first) - 2;
    if (has_escape) {
        c->is_good = msc_json_parse(&value, first, (size_t)(c->at - first), "text") == MSC_OK;
        text = c->is_good ? value->valuestring : "";
        length = strlen(text);
    }
    length = length < capacity ? length : capacity - 1;
    memcpy(out, text, length);
    out[length] = '\0';
    cJSON_Delete(value);
}
