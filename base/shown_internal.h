// Shared by shown_copy.c, which escapes text without allocating so that base/status.c can use
// it, and shown.c, which appends escaped text to a msc_str.
#ifndef MSC_BASE_SHOWN_INTERNAL_H
#define MSC_BASE_SHOWN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MSC_SHOWN_BYTES 8 // of an escape, including NUL

// The character at `text` and its length. An invalid byte counts as a character 0 of one byte.
uint32_t msc_shown__next(size_t *n_bytes, const char *text);
// True if the character must be escaped: control characters (C0, DEL, C1), and thus invalid bytes;
// marks of text direction; line and paragraph separators.
bool msc_shown__is_obeyed(uint32_t code);
// The escape of a character; `byte` is its first byte.
void msc_shown__escape(char out[MSC_SHOWN_BYTES], uint32_t code, char byte);

#endif
