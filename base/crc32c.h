// CRC-32C (Castagnoli): the polynomial 0x1EDC6F41 of RFC 3720, section 12.1, bits reflected.
#ifndef MSC_BASE_CRC32C_H
#define MSC_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The CRC of "123456789" is 0xE3069283.
uint32_t msc_crc32c(const void *data, size_t n_bytes);

#endif
