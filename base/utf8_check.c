#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

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
