// All conversions that use the C library's number formatting. The library's decimal point follows
// the thread's locale, which a host program may have set. Each entry point therefore switches to
// the locale "C" and back. (In glibc the "C" locale is a constant: getting it costs nothing and
// cannot fail.)
#include "base/str.h"

#include "base/alloc.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct locale_scope {
    locale_t c;
    locale_t before;
};

static bool enter_c_locale(struct locale_scope *scope) {
    scope->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!scope->c) {
        return false;
    }
    scope->before = uselocale(scope->c);
    return true;
}

static void leave_c_locale(const struct locale_scope *scope) {
    uselocale(scope->before);
    freelocale(scope->c);
}

void msc_str_printf(struct msc_str *s, const char *format, ...) {
    struct locale_scope scope;
    if (s->failed) {
        return;
    }
    if (!enter_c_locale(&scope)) {
        s->failed = true;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0 || msc_grow(&s->data, &s->capacity, s->length + (size_t)n + 1, 1) != MSC_OK) {
        s->failed = true;
    } else {
        va_start(arguments, format);
        vsnprintf(s->data + s->length, (size_t)n + 1, format, arguments);
        va_end(arguments);
        s->length += (size_t)n;
    }
    leave_c_locale(&scope);
}

static bool append_not_finite(struct msc_str *s, double value) {
    if (isfinite(value)) {
        return false;
    }
    msc_str_append(s, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return true;
}

// A normal double needs at most 17 digits. If fewer than 15 digits are enough, a search that starts
// with 15 digits finds the same text, because %g drops trailing zeros. Subnormal numbers have fewer
// digits, so their search starts at 1.
void msc_str_double(struct msc_str *s, double value) {
    struct locale_scope scope;
    if (append_not_finite(s, value)) {
        return;
    }
    if (!enter_c_locale(&scope)) {
        s->failed = true;
        return;
    }
    char text[40] = "";
    for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    leave_c_locale(&scope);
    msc_str_append(s, text);
}

void msc_str_float(struct msc_str *s, float value) {
    struct locale_scope scope;
    if (append_not_finite(s, (double)value)) {
        return;
    }
    if (!enter_c_locale(&scope)) {
        s->failed = true;
        return;
    }
    char text[40] = "";
    for (int digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) {
            break;
        }
    }
    leave_c_locale(&scope);
    msc_str_append(s, text);
}

// The high half of a product of two 64-bit numbers needs this type, which is not in C11. Every
// compiler for a 64-bit machine has it.
__extension__ typedef unsigned __int128 uint128;

// The quotient of two numbers whose top bits are set, times 2^exponent. The integer quotient has 63
// or 64 bits and is rounded half to even; a non-zero remainder counts as a sticky bit.
static double round_quotient(uint64_t numerator, uint64_t denominator, int exponent) {
    uint128 wide = (uint128)numerator << 63;
    uint64_t quotient = (uint64_t)(wide / denominator);
    bool is_inexact = (uint128)quotient * denominator != wide;
    int n_dropped = quotient >> 63 ? 11 : 10; // keeps 53 of 64 or 63 bits
    uint64_t dropped = quotient & ((UINT64_C(1) << n_dropped) - 1);
    uint64_t half = UINT64_C(1) << (n_dropped - 1);
    uint64_t kept = quotient >> n_dropped;
    kept += dropped > half || (dropped == half && (is_inexact || (kept & 1)));
    return ldexp((double)kept, exponent - 63 + n_dropped);
}

bool msc_round_decimal(double *out, uint64_t mantissa, int exponent) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    static const uint64_t fives[] = {UINT64_C(1),
                                     UINT64_C(5),
                                     UINT64_C(25),
                                     UINT64_C(125),
                                     UINT64_C(625),
                                     UINT64_C(3125),
                                     UINT64_C(15625),
                                     UINT64_C(78125),
                                     UINT64_C(390625),
                                     UINT64_C(1953125),
                                     UINT64_C(9765625),
                                     UINT64_C(48828125),
                                     UINT64_C(244140625),
                                     UINT64_C(1220703125),
                                     UINT64_C(6103515625),
                                     UINT64_C(30517578125),
                                     UINT64_C(152587890625),
                                     UINT64_C(762939453125),
                                     UINT64_C(3814697265625),
                                     UINT64_C(19073486328125),
                                     UINT64_C(95367431640625),
                                     UINT64_C(476837158203125),
                                     UINT64_C(2384185791015625),
                                     UINT64_C(11920928955078125),
                                     UINT64_C(59604644775390625),
                                     UINT64_C(298023223876953125),
                                     UINT64_C(1490116119384765625),
                                     UINT64_C(7450580596923828125)};
    if (mantissa == 0) {
        *out = 0.0;
        return true;
    }
    // mantissa and power of ten are exact, so the operation rounds once
    if (mantissa >> 53 == 0 && exponent >= -22 && exponent <= 22) {
        *out =
            exponent < 0 ? (double)mantissa / tens[-exponent] : (double)mantissa * tens[exponent];
        return true;
    }
    if (exponent > 0 || exponent < -27) {
        return false;
    }
    uint64_t power = fives[-exponent]; // 10^n = 5^n * 2^n; `exponent` below accounts for 2^n
    int up = __builtin_clzll(mantissa);
    int up_power = __builtin_clzll(power);
    *out = round_quotient(mantissa << up, power << up_power, exponent - up + up_power);
    return true;
}

bool msc_parse_double(double *out, const char *text) {
    // strtod would also accept blanks, hexadecimal numbers, "inf" and "nan".
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') {
        return false;
    }
    struct locale_scope scope;
    if (!enter_c_locale(&scope)) {
        return false;
    }
    char *end = NULL;
    double value = strtod(text, &end);
    leave_c_locale(&scope);
    if (end == text || *end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

bool msc_parse_u64(uint64_t *out, const char *text) {
    uint64_t value = 0;
    if (text[0] == '\0') {
        return false;
    }
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*c - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool msc_parse_i64(int64_t *out, const char *text) {
    bool negative = text[0] == '-';
    uint64_t magnitude = 0;
    if (!msc_parse_u64(&magnitude, text + negative) ||
        magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    if (negative) {
        *out = magnitude > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    } else {
        *out = (int64_t)magnitude;
    }
    return true;
}

// Reads one "<number><unit>" at *text and moves past it. Only units from *unit on are allowed. They
// are in descending order, so "1h30m" is valid and "30m1h" is not.
static bool parse_duration_part(double *sum, const char **text, const char **unit) {
    static const char units[] = "dhms";
    static const double seconds[] = {86400, 3600, 60, 1};
    char number[32];
    size_t length = strspn(*text, ".0123456789");
    if (length == 0 || length >= sizeof number) {
        return false;
    }
    memcpy(number, *text, length);
    number[length] = '\0';
    const char *from = *unit ? *unit + 1 : units;
    const char *found = (*text)[length] ? strchr(from, (*text)[length]) : NULL;
    double value = 0;
    if (!found || !msc_parse_double(&value, number)) {
        return false;
    }
    *sum += value * seconds[found - units];
    *unit = found;
    *text += length + 1;
    return true;
}

bool msc_parse_duration(double *out_s, const char *text) {
    double sum = 0;
    if (msc_parse_double(&sum, text)) {
        if (sum < 0) {
            return false;
        }
        *out_s = sum;
        return true;
    }
    sum = 0;
    const char *unit = NULL;
    do {
        if (!parse_duration_part(&sum, &text, &unit)) {
            return false;
        }
    } while (*text);
    *out_s = sum;
    return true;
}

bool msc_parse_bytes(uint64_t *out, const char *text) {
    static const char units[] = "KMGT";
    char number[24];
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    uint64_t value = 0;
    if (!msc_parse_u64(&value, number)) {
        return false;
    }
    const char *rest = text + length;
    const char *unit = *rest ? strchr(units, *rest) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit) {
        rest++;
        rest += rest[0] == 'i' && rest[1] == 'B';
    }
    rest += *rest == 'B';
    if (*rest != '\0' || value > UINT64_MAX >> shift) {
        return false;
    }
    *out = value << shift;
    return true;
}

void msc_str_append_duration(struct msc_str *out, double seconds) {
    if (seconds < 1e-3) {
        msc_str_printf(out, "%.3g us", seconds * 1e6);
    } else if (seconds < 1.0) {
        msc_str_printf(out, "%.3g ms", seconds * 1e3);
    } else if (seconds < 60.0) {
        msc_str_printf(out, "%.3g s", seconds);
    } else if (seconds < 3600.0) {
        msc_str_printf(out, "%d min %02d s", (int)(seconds / 60.0), (int)fmod(seconds, 60.0));
    } else {
        msc_str_printf(out, "%.0f h %02d min", floor(seconds / 3600.0),
                       (int)fmod(seconds / 60.0, 60.0));
    }
}
