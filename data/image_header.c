// Checks an image file's header before decoding: its format, its size, and whether its bytes can
// hold that many pixels. Decoders fill in missing data, so a file of 40 bytes could claim half a
// gigabyte of pixels.
#include "data/image.h"

#include <inttypes.h>
#include <string.h>

#define MAX_SIDE 32768
#define MAX_PIXELS ((int64_t)1 << 27)
// Deflate's largest compression ratio.
#define MAX_DEFLATE_RATIO 1032
// A JPEG needs at least one bit per luminance block of 8 x 8 pixels.
#define MAX_JPEG_PIXELS_PER_BYTE (8 * 64)

// Width and height as stored, up to 2^32. They are multiplied only after they were checked.
struct header {
    int64_t width, height;
    int64_t row_bytes; // uncompressed bytes per row
    int64_t ratio;     // largest possible compression ratio
};

static int64_t read_big(const uint8_t *at, int n_bytes) {
    int64_t value = 0;
    for (int i = 0; i < n_bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

static int64_t read_little(const uint8_t *at, int n_bytes) {
    int64_t value = 0;
    for (int i = n_bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

// Reads a signature of 8 bytes, the length and name of IHDR, then width, height, bit depth and
// colour type.
static bool read_png(struct header *out, const uint8_t *bytes, size_t n_bytes) {
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    if (n_bytes < 26) {
        return false;
    }
    int colour = bytes[25];
    int n_channels = colour < (int)sizeof channels && channels[colour] > 0 ? channels[colour] : 1;
    out->width = read_big(bytes + 16, 4);
    out->height = read_big(bytes + 20, 4);
    out->row_bytes = 1 + (out->width * n_channels * bytes[24] + 7) / 8;
    out->ratio = MAX_DEFLATE_RATIO;
    return true;
}

// Reads a file header of 14 bytes, then the information header. In the oldest form of this header,
// width and height have 16 bits. Rows are padded to 4 bytes. A negative height means top-down
// order.
static bool read_bmp(struct header *out, const uint8_t *bytes, size_t n_bytes) {
    if (n_bytes < 30) {
        return false;
    }
    bool is_core = read_little(bytes + 14, 4) == 12;
    int64_t n_bits = read_little(bytes + (is_core ? 24 : 28), 2);
    out->width = is_core ? read_little(bytes + 18, 2) : (int32_t)read_little(bytes + 18, 4);
    out->height = is_core ? read_little(bytes + 20, 2) : (int32_t)read_little(bytes + 22, 4);
    out->height = out->height < 0 ? -out->height : out->height;
    out->row_bytes = (out->width * n_bits + 31) / 32 * 4;
    out->ratio = 1;
    return true;
}

static enum msc_status check_size(const struct header *h, size_t n_bytes, const char *path) {
    if (h->width < 1 || h->height < 1 || h->width > MAX_SIDE || h->height > MAX_SIDE ||
        h->width * h->height > MAX_PIXELS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: %" PRId64 " x %" PRId64 " pixels, at most %" PRId64
                        " are supported, %d per side; make the image smaller",
                        path, h->width, h->height, MAX_PIXELS, MAX_SIDE);
    }
    int64_t min_bytes = h->height * h->row_bytes / h->ratio; // file size without the header
    if (min_bytes > (int64_t)n_bytes) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte %zu: the image ends too early, its %" PRId64 " x %" PRId64
                        " pixels take %" PRId64 " bytes or more; it is truncated, copy it again",
                        path, n_bytes, h->width, h->height, min_bytes);
    }
    return MSC_OK;
}

enum msc_status msc_image__check_header(const void *bytes, size_t n_bytes, const char *path) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'};
    const uint8_t *first = bytes;
    struct header h = {0};
    bool is_whole = true;
    if (n_bytes >= sizeof png && memcmp(first, png, sizeof png) == 0) {
        is_whole = read_png(&h, first, n_bytes);
    } else if (n_bytes >= 2 && first[0] == 'B' && first[1] == 'M') {
        is_whole = read_bmp(&h, first, n_bytes);
    } else if (n_bytes >= 2 && first[0] == 0xff && first[1] == 0xd8) {
        MSC_TRY(msc_image__check_jpeg(&h.width, &h.height, bytes, n_bytes, path));
        h.row_bytes = h.width;
        h.ratio = MAX_JPEG_PIXELS_PER_BYTE;
    } else if (n_bytes >= sizeof png) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: not a PNG, JPEG or BMP image; save it as PNG", path);
    } else {
        is_whole = false;
    }
    return is_whole ? check_size(&h, n_bytes, path)
                    : MSC_FAIL(MSC_E_FORMAT,
                               "%s: byte %zu: the image ends too early; it is truncated, copy it "
                               "again",
                               path, n_bytes);
}
