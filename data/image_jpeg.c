#include "data/image.h"

// The second bytes of markers.
enum {
    MARKER_START = 0xd8,
    MARKER_END = 0xd9,
    MARKER_FIRST_RESTART = 0xd0,
    MARKER_LAST_RESTART = 0xd7,
    MARKER_HUFFMAN = 0xc4,
    MARKER_SCAN = 0xda,
    MARKER_BASELINE = 0xc0, // frames: baseline, extended and progressive
    MARKER_PROGRESSIVE = 0xc2,
};

struct walk {
    const uint8_t *bytes;
    size_t n_bytes;
    size_t at;
    const char *path;
};

static enum msc_status fail_damaged(const struct walk *w, const char *what) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: byte %zu: %s; the image is damaged, copy it again or save it "
                    "as PNG",
                    w->path, w->at, what);
}

static enum msc_status fail_cut(const struct walk *w) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: byte %zu: the image ends too early; it is truncated, copy it "
                    "again",
                    w->path, w->n_bytes);
}

// Moves past the next marker. Skips entropy-coded bytes and padding, in which 0xff 0x00 and restart
// markers count as data.
static enum msc_status find_marker(uint8_t *marker, struct walk *w) {
    while (w->at + 1 < w->n_bytes) {
        uint8_t next = w->bytes[w->at + 1];
        bool is_data = w->bytes[w->at] != 0xff || next == 0x00 || next == 0xff ||
                       (next >= MARKER_FIRST_RESTART && next <= MARKER_LAST_RESTART);
        if (!is_data) {
            w->at += 2;
            *marker = next;
            return MSC_OK;
        }
        w->at++;
    }
    return fail_cut(w);
}

// Checks Huffman tables. A table has 1 byte of class and number, 16 counts by code length, then one
// value per code. The decoder has room for 256 values.
static enum msc_status check_huffman(struct walk *w, size_t end) {
    enum { COUNTS = 16, MOST_VALUES = 256 };
    while (w->at < end) {
        if (end - w->at < 1 + COUNTS) {
            return fail_damaged(w, "a Huffman table is shorter than its counts");
        }
        size_t n = 0;
        for (size_t i = 1; i <= COUNTS; i++) {
            n += w->bytes[w->at + i];
        }
        if (n > MOST_VALUES || n > end - w->at - 1 - COUNTS) {
            return fail_damaged(w, "a Huffman table has more values than fit");
        }
        w->at += 1 + COUNTS + n;
    }
    return MSC_OK;
}

// Reads the frame's height and width, which follow its length and precision.
static enum msc_status read_frame(int64_t *width, int64_t *height, const struct walk *w,
                                  size_t end) {
    if (end - w->at < 5) {
        return fail_damaged(w, "a frame is shorter than its size");
    }
    *height = (int64_t)w->bytes[w->at + 1] << 8 | w->bytes[w->at + 2];
    *width = (int64_t)w->bytes[w->at + 3] << 8 | w->bytes[w->at + 4];
    return MSC_OK;
}

enum msc_status msc_image__check_jpeg(int64_t *width, int64_t *height, const void *bytes,
                                      size_t n_bytes, const char *path) {
    struct walk w = {.bytes = bytes, .n_bytes = n_bytes, .path = path};
    uint8_t marker = 0;
    while (marker != MARKER_END) {
        MSC_TRY(find_marker(&marker, &w));
        if (marker == MARKER_START || marker == MARKER_END) {
            continue;
        }
        if (n_bytes - w.at < 2) {
            return fail_cut(&w);
        }
        size_t length = (size_t)w.bytes[w.at] << 8 | w.bytes[w.at + 1];
        if (length < 2) {
            return fail_damaged(&w, "a segment is shorter than its own length");
        }
        if (length > n_bytes - w.at) {
            return fail_cut(&w);
        }
        size_t end = w.at + length;
        w.at += 2;
        if (marker == MARKER_HUFFMAN) {
            MSC_TRY(check_huffman(&w, end));
        } else if (marker >= MARKER_BASELINE && marker <= MARKER_PROGRESSIVE) {
            MSC_TRY(read_frame(width, height, &w, end));
        }
        w.at = end;
    }
    return MSC_OK;
}
