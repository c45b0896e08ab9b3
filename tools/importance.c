#include "tools/importance.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SUMS ".in_sum2"
#define MOST_NAME 1024

// Adds the squares divided by `count`.
static enum msc_status add_means(struct msc_array_list *out, const char *name, const float sums[],
                                 int64_t n, double count, const char *path) {
    struct msc_array *means;
    MSC_TRY(msc_array_create_unset(&means, MSC_DTYPE_F32, 1, &n));
    float *x = msc_array_data(means);
    bool is_good = true;
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)((double)sums[i] / count);
        is_good = is_good && isfinite(x[i]) && x[i] >= 0;
    }
    enum msc_status status =
        is_good
            ? msc_array_list_add(out, name, means)
            : MSC_FAIL(MSC_E_FORMAT,
                       "%s: the importance of \"%.100s\" has a number that is not a mean square",
                       path, name);
    msc_array_release(means);
    return status;
}

// ---- GGUF -------------------------------------------------------------------------------------

static enum msc_status add_tensor(struct msc_array_list *out, const struct msc_gguf *g,
                                  const struct msc_gguf_tensor *sums, struct msc_arena *arena) {
    size_t length = strlen(sums->name) - strlen(SUMS);
    const char *name = msc_arena_strndup(arena, sums->name, length);
    const char *counts_name = msc_arena_printf(arena, "%s.counts", name ? name : "");
    struct msc_array *x = NULL, *counts = NULL;
    MSC_TRY(MSC_ALLOCATED(name && counts_name));
    const struct msc_gguf_tensor *t = msc_gguf_find(g, counts_name);
    if (!t) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%.100s\" is missing", msc_gguf_path(g),
                        counts_name);
    }
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_gguf_load(&counts, g, t));
    MSC_TRY_OUT(msc_gguf_load(&x, g, sums));
    double count = msc_array_get_double(counts, 0);
    if (msc_array_n_elements(counts) == 1 && count > 0) {
        status = add_means(out, name, msc_array_data(x), msc_array_n_elements(x), count,
                           msc_gguf_path(g));
    }
out:
    msc_array_release(x);
    msc_array_release(counts);
    return status;
}

static enum msc_status load_gguf(struct msc_array_list *out, const char *path) {
    struct msc_gguf *g;
    struct msc_arena arena = {0};
    const char *kind = "";
    MSC_TRY(msc_gguf_open(&g, path));
    enum msc_status status = MSC_OK;
    if (!msc_gguf_text(&kind, g, "general.type") || strcmp(kind, "imatrix") != 0) {
        status = MSC_FAIL(MSC_E_FORMAT,
                          "%s: general.type is \"%.40s\", expected \"imatrix\"; make the file with "
                          "llama-imatrix",
                          path, kind);
    }
    for (size_t i = 0; status == MSC_OK && i < msc_gguf_n_tensors(g); i++) {
        const struct msc_gguf_tensor *t = msc_gguf_tensor(g, i);
        if (msc_path_ends_in(t->name, SUMS)) {
            status = add_tensor(out, g, t, &arena);
        }
    }
    msc_arena_finish(&arena);
    msc_gguf_close(g);
    return status;
}

// ---- Binary -----------------------------------------------------------------------------------

struct reader {
    const char *path, *data;
    size_t n_bytes, at;
};

static enum msc_status take_count(int32_t *out, struct reader *r, int32_t most, const char *what) {
    if (r->n_bytes - r->at < sizeof(*out)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: expected %s, but the file ends here", r->path,
                        r->at, what);
    }
    const uint8_t *x = (const uint8_t *)r->data + r->at;
    *out = (int32_t)((uint32_t)x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 |
                     (uint32_t)x[3] << 24);
    r->at += sizeof(*out);
    return *out >= 0 && *out <= most
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: %s is %d, so this is not an importance file",
                          r->path, r->at - sizeof(*out), what, (int)*out);
}

static enum msc_status take_name(const char **out, struct reader *r, struct msc_arena *arena) {
    int32_t n = 0;
    MSC_TRY(take_count(&n, r, MOST_NAME, "the length of a name"));
    const char *name = r->data + r->at;
    if ((size_t)n > r->n_bytes - r->at || memchr(name, 0, (size_t)n)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: expected a name of %d bytes without a byte 0",
                        r->path, r->at, (int)n);
    }
    r->at += (size_t)n;
    *out = msc_arena_strndup(arena, name, (size_t)n);
    return MSC_ALLOCATED(*out);
}

static enum msc_status read_entry(struct msc_array_list *out, struct reader *r,
                                  struct msc_arena *arena) {
    int32_t n_calls = 0, n = 0;
    const char *name = NULL;
    MSC_TRY(take_name(&name, r, arena));
    MSC_TRY(take_count(&n_calls, r, INT32_MAX, "a number of calls"));
    MSC_TRY(take_count(&n, r, INT32_MAX, "a number of channels"));
    if ((size_t)n > (r->n_bytes - r->at) / sizeof(float)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: the file ends before the %d numbers of \"%s\"",
                        r->path, r->at, (int)n, name);
    }
    float *sums = msc_arena_array(arena, (size_t)n + 1, sizeof(sums[0]));
    MSC_TRY(MSC_ALLOCATED(sums));
    memcpy(sums, r->data + r->at, (size_t)n * sizeof(sums[0]));
    r->at += (size_t)n * sizeof(sums[0]);
    return n > 0 ? add_means(out, name, sums, n, n_calls > 0 ? n_calls : 1, r->path) : MSC_OK;
}

static enum msc_status load_binary(struct msc_array_list *out, const char *path, const char *data,
                                   size_t n_bytes) {
    struct reader r = {.path = path, .data = data, .n_bytes = n_bytes};
    struct msc_arena arena = {0};
    int32_t n_entries = 0;
    enum msc_status status = take_count(&n_entries, &r, 1 << 20, "the number of entries");
    for (int32_t i = 0; status == MSC_OK && i < n_entries; i++) {
        status = read_entry(out, &r, &arena);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_importance_load(struct msc_array_list *out, const char *path) {
    char *data;
    size_t n_bytes;
    MSC_TRY(msc_file_read(&data, &n_bytes, path));
    enum msc_status status = n_bytes >= 4 && memcmp(data, "GGUF", 4) == 0
                                 ? load_gguf(out, path)
                                 : load_binary(out, path, data, n_bytes);
    msc_free(data);
    if (status == MSC_OK && out->n == 0) {
        status = MSC_FAIL(MSC_E_FORMAT, "%s: the importance file has no weights", path);
    }
    return status;
}
