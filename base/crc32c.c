#include "base/crc32c.h"

#define REFLECTED_POLYNOMIAL 0x82F63B78u

uint32_t msc_crc32c(const void *data, size_t n_bytes) {
    const uint8_t *bytes = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? REFLECTED_POLYNOMIAL : 0);
        }
    }
    return ~crc;
}
