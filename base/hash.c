#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

// Numbers are hashed as little-endian bytes, so that hashes are the same on every machine.
static void put_u64(unsigned char bytes[8], uint64_t value) {
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
}

struct msc_hash msc_hash_bytes(const void *data, size_t n_bytes) {
    XXH128_hash_t h = XXH3_128bits(data, n_bytes);
    return (struct msc_hash){.low = h.low64, .high = h.high64};
}

struct msc_hash msc_hash_combine(struct msc_hash a, struct msc_hash b) {
    unsigned char bytes[32];
    put_u64(bytes, a.low);
    put_u64(bytes + 8, a.high);
    put_u64(bytes + 16, b.low);
    put_u64(bytes + 24, b.high);
    return msc_hash_bytes(bytes, sizeof bytes);
}

struct msc_hash msc_hash_add_bytes(struct msc_hash h, const void *data, size_t n_bytes) {
    return msc_hash_combine(h, msc_hash_bytes(data, n_bytes));
}

struct msc_hash msc_hash_add_text(struct msc_hash h, const char *text) {
    return text ? msc_hash_add_bytes(h, text, strlen(text)) : msc_hash_add_bytes(h, "", 0);
}

struct msc_hash msc_hash_add_u64(struct msc_hash h, uint64_t value) {
    unsigned char bytes[8];
    put_u64(bytes, value);
    return msc_hash_add_bytes(h, bytes, sizeof bytes);
}

const char *msc_hash_format(char text[MSC_HASH_TEXT_BYTES], struct msc_hash h) {
    snprintf(text, MSC_HASH_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, h.high, h.low);
    return text;
}

static bool parse_digit(uint64_t *out, char c) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *place = c ? strchr(digits, c) : NULL;
    if (!place) {
        return false;
    }
    *out = (uint64_t)(place - digits) % 16;
    return true;
}

bool msc_hash_parse(struct msc_hash *out, const char *text) {
    struct msc_hash h = {0};
    for (int i = 0; i < MSC_HASH_TEXT_BYTES - 1; i++) {
        uint64_t digit = 0;
        if (!parse_digit(&digit, text[i])) {
            return false;
        }
        uint64_t *half = i < 16 ? &h.high : &h.low;
        *half = *half << 4 | digit;
    }
    if (text[MSC_HASH_TEXT_BYTES - 1] != '\0') {
        return false;
    }
    *out = h;
    return true;
}
