// Bytes as text: base64 with padding (RFC 4648, section 4).
#ifndef MSC_BASE_BASE64_H
#define MSC_BASE_BASE64_H

#include "base/status.h"

#include <stddef.h>

struct msc_str;

// Appends the bytes as base64.
enum msc_status msc_base64_write(struct msc_str *out, const void *bytes, size_t n);
// Counts the bytes that the text encodes. MSC_E_FORMAT if the text is not base64.
enum msc_status msc_base64_count(size_t *n, const char *text);
// Decodes n bytes to `out`; n must be from msc_base64_count.
enum msc_status msc_base64_read(void *out, size_t n, const char *text);

#endif
