#include "base/base64.h"

#include "base/str.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum msc_status msc_base64_write(struct msc_str *out, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    for (size_t i = 0; i < n; i += 3) {
        size_t count = n - i < 3 ? n - i : 3;
        uint32_t bits = (uint32_t)from[i] << 16;
        bits |= count > 1 ? (uint32_t)from[i + 1] << 8 : 0;
        bits |= count > 2 ? from[i + 2] : 0;
        const char text[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                             count > 1 ? digits[bits >> 6 & 63] : '=',
                             count > 2 ? digits[bits & 63] : '=', 0};
        msc_str_append(out, text);
    }
    return msc_str_status(out);
}

static enum msc_status not_base64(void) {
    return MSC_FAIL(MSC_E_FORMAT, "not valid base64");
}

enum msc_status msc_base64_count(size_t *n, const char *text) {
    size_t length = strlen(text);
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') {
        padding++;
    }
    if (length % 4 != 0) {
        return not_base64();
    }
    *n = length / 4 * 3 - padding;
    return MSC_OK;
}

// The value of one digit, or 64 if it is not a base64 digit.
static uint32_t value_of(char digit) {
    const char *at = digit ? strchr(digits, digit) : NULL;
    return at ? (uint32_t)(at - digits) : 64;
}

enum msc_status msc_base64_read(void *out, size_t n, const char *text) {
    uint8_t *to = out;
    for (size_t i = 0; i < n; i += 3, text += 4) {
        size_t count = n - i < 3 ? n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t value = k <= count ? value_of(text[k]) : text[k] == '=' ? 0 : 64;
            if (value > 63) {
                return not_base64();
            }
            bits = bits << 6 | value;
        }
        for (size_t k = 0; k < count; k++) {
            to[i + k] = (uint8_t)(bits >> (16 - 8 * k));
        }
    }
    return MSC_OK;
}
