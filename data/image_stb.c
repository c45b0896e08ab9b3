#include "data/image.h"

#include "base/alloc.h"
#include "base/file.h"

#include <string.h>

#define STBI_MALLOC(n_bytes) msc_alloc(n_bytes)
#define STBI_REALLOC(pointer, n_bytes) msc_realloc(pointer, n_bytes, 1)
#define STBI_FREE(pointer) msc_free(pointer)
#define STBI_ASSERT(condition) ((void)0)
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

// A file in memory that records whether the decoder reads past the end. The decoder itself would
// fill missing pixels with grey.
struct image_source {
    const char *bytes;
    size_t n_bytes;
    size_t at;
    bool is_short;
};

static int source_read(void *user, char *to, int n_bytes) {
    struct image_source *s = user;
    size_t left = s->n_bytes - s->at;
    size_t n = (size_t)n_bytes < left ? (size_t)n_bytes : left;
    memcpy(to, s->bytes + s->at, n);
    s->at += n;
    s->is_short = s->is_short || n == 0;
    return (int)n;
}

static void source_skip(void *user, int n_bytes) {
    struct image_source *s = user;
    size_t left = s->n_bytes - s->at;
    if (n_bytes < 0) {
        size_t back = (size_t) - (int64_t)n_bytes;
        s->at -= back < s->at ? back : s->at;
    } else if ((size_t)n_bytes > left) {
        s->at = s->n_bytes;
        s->is_short = true;
    } else {
        s->at += (size_t)n_bytes;
    }
}

static int source_is_at_end(void *user) {
    const struct image_source *s = user;
    return s->at == s->n_bytes;
}

static const stbi_io_callbacks callbacks = {source_read, source_skip, source_is_at_end};

static enum msc_status fail_image(const struct image_source *s, const char *path) {
    if (s->is_short) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte %zu: the image ends too early; it is truncated, copy "
                        "it again",
                        path, s->n_bytes);
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s: the image cannot be decoded (%s); save it as PNG", path,
                    stbi_failure_reason());
}

enum msc_status msc_image__decode(struct msc_array **out, const char *path, int channels) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    stbi_uc *pixels = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_file_read(&bytes, &n_bytes, path));
    MSC_TRY_OUT(msc_image__check_header(bytes, n_bytes, path));
    struct image_source source = {.bytes = bytes, .n_bytes = n_bytes};
    int width = 0, height = 0, found = 0;
    pixels = stbi_load_from_callbacks(&callbacks, &source, &width, &height, &found, channels);
    if (!pixels || source.is_short) {
        status = fail_image(&source, path);
        goto out;
    }
    status = msc_array_create_from(out, MSC_DTYPE_U8, 3, (const int64_t[]){height, width, channels},
                                   pixels);
out:
    stbi_image_free(pixels);
    msc_free(bytes);
    return status;
}
