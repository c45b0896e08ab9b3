#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t msc_utf8_next(uint32_t *code, const char *text, size_t length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    size_t n = length == 0   ? 0
               : c[0] < 0x80 ? 1
               : c[0] < 0xc0 ? 0 // a continuation byte
               : c[0] < 0xe0 ? 2
               : c[0] < 0xf0 ? 3
               : c[0] < 0xf8 ? 4
                             : 0;
    if (n == 0 || n > length) {
        return 0;
    }
    *code = n == 1 ? c[0] : c[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (c[i] & 0x3fu);
    }
    return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : n;
}

size_t msc_utf8_length(const char *text, size_t length) {
    size_t at = 0;
    while (at < length && text[at] != '\0') {
        uint32_t code;
        size_t n =
            (unsigned char)text[at] < 0x80 ? 1 : msc_utf8_next(&code, text + at, length - at);
        if (n == 0) {
            break;
        }
        at += n;
    }
    return at;
}

enum msc_status msc_utf8_check(const char *text, size_t length, const char *name) {
    size_t good = msc_utf8_length(text, length);
    if (good == length) {
        return MSC_OK;
    }
    return text[good] == '\0'
               ? MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu is NUL, which is not allowed in text", name,
                          good)
               : MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu is 0x%02x, which is not UTF-8", name, good,
                          (unsigned)(unsigned char)text[good]);
}

enum msc_status msc_utf8_check_file(const char *text, size_t length, const char *name) {
    size_t good = msc_utf8_length(text, length);
    size_t line = 1, column = 1;
    if (good == length) {
        return MSC_OK;
    }
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s:1:1: this is UTF-16; save the file as UTF-8", name);
    }
    for (size_t i = 0; i < good; i++) {
        bool is_character = ((unsigned char)text[i] & 0xc0) != 0x80;
        column = text[i] == '\n' ? 1 : column + is_character;
        line += text[i] == '\n';
    }
    return text[good] == '\0'
               ? MSC_FAIL(MSC_E_FORMAT, "%s:%zu:%zu: a NUL byte, which is not allowed in text",
                          name, line, column)
               : MSC_FAIL(MSC_E_FORMAT,
                          "%s:%zu:%zu: byte 0x%02x is not UTF-8; save the file as UTF-8", name,
                          line, column, (unsigned)(unsigned char)text[good]);
}
