// Checks text from outside: it must be UTF-8 (RFC 3629) without NUL.
//
// Records, pages and exports are UTF-8, so each text that may end up in one is checked on entry:
// text files, names in binary files, arguments, the output of programs, names from libraries. Error
// messages give the position.
//
//     MSC_TRY(msc_utf8_check_file(text, n_bytes, path)); // table.csv:2:7: byte 0xe9 is not UTF-8
//     MSC_TRY(msc_utf8_check(label, strlen(label), "task 3: label 0"));
#ifndef MSC_BASE_UTF8_H
#define MSC_BASE_UTF8_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// The length of the character at the start of `text` (`length` bytes) and its code point. 0 if it
// is not UTF-8: an overlong form, a surrogate, a code above U+10FFFF, bytes out of order or a
// truncated character.
size_t msc_utf8_next(uint32_t *code, const char *text, size_t length);
// The length of the prefix that is UTF-8 without NUL. Equals `length` if all of the text is valid.
size_t msc_utf8_length(const char *text, size_t length);
// MSC_E_FORMAT unless all of `text` is valid. The message begins with `name`: "name: byte 4 is
// 0xe9, which is not UTF-8".
enum msc_status msc_utf8_check(const char *text, size_t length, const char *name);
// Like msc_utf8_check, for the text of a file; the message has line and column.
enum msc_status msc_utf8_check_file(const char *text, size_t length, const char *name);

#endif
