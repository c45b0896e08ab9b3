#include "base/utf8.h"

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
