// 128-bit content hashes (XXH3) that identify graphs, weights, data and results. They do not
// protect against deliberate forgery.
#ifndef MSC_BASE_HASH_H
#define MSC_BASE_HASH_H

#include "base/public.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_hash {
    uint64_t low;
    uint64_t high;
};

#define MSC_HASH_TEXT_BYTES 33 // 32 hexadecimal digits and NUL

struct msc_hash msc_hash_bytes(const void *data, size_t n_bytes);
// The order matters: combine(a, b) differs from combine(b, a).
struct msc_hash msc_hash_combine(struct msc_hash a, struct msc_hash b);
struct msc_hash msc_hash_add_bytes(struct msc_hash h, const void *data, size_t n_bytes);
struct msc_hash msc_hash_add_text(struct msc_hash h, const char *text); // NULL counts as ""
struct msc_hash msc_hash_add_u64(struct msc_hash h, uint64_t value);
static inline bool msc_hash_equal(struct msc_hash a, struct msc_hash b) {
    return a.low == b.low && a.high == b.high;
}
// Writes 32 hexadecimal digits, high half first; returns `text`.
const char *msc_hash_format(char text[MSC_HASH_TEXT_BYTES], struct msc_hash h);
bool msc_hash_parse(struct msc_hash *out, const char *text);

MSC_PUBLIC_END

#endif
