// The reader of text from outside: is it UTF-8 (RFC 3629) without NUL?
//
// Records, pages and exports are UTF-8, so each text that may come to stand in one is checked where it
// enters: files of text, names in binary files, arguments, the words of programs, names that libraries
// give. What is wrong is refused with its place.
//
//     MSC_TRY(msc_utf8_check_file(text, n_bytes, path)); // table.csv:2:7: byte 0xe9 is not UTF-8; …
//     MSC_TRY(msc_utf8_check(label, strlen(label), "task 3: label 0"));
#ifndef MSC_BASE_UTF8_H
#define MSC_BASE_UTF8_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// The bytes of the character that begins at `text`, of `length` bytes, and its code point; 0 where it is
// no UTF-8: overlong forms, surrogates, more than U+10FFFF, bytes out of order and a character cut off.
size_t msc_utf8_next(uint32_t *code, const char *text, size_t length);
// The bytes at the beginning that are UTF-8 without NUL; `length`: all are.
size_t msc_utf8_length(const char *text, size_t length);
// MSC_E_FORMAT unless all of `text` is; `name` begins the message: "name: byte 0xe9 at byte 4 is not UTF-8".
enum msc_status msc_utf8_check(const char *text, size_t length, const char *name);
// The same of a file's text, with line and column.
enum msc_status msc_utf8_check_file(const char *text, size_t length, const char *name);

#endif
