#include "data/safetensors.h"

#include "base/alloc.h"
#include "base/json.h"
#include "data/safetensors_format.h"
#include "data/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The limit of the reference implementation.
#define MAX_HEADER_BYTES 100000000u

static const char *const codes[MSC_DTYPE_COUNT] = {
    [MSC_DTYPE_F32] = "F32",   [MSC_DTYPE_F16] = "F16", [MSC_DTYPE_BF16] = "BF16",
    [MSC_DTYPE_F64] = "F64",   [MSC_DTYPE_I8] = "I8",   [MSC_DTYPE_I16] = "I16",
    [MSC_DTYPE_I32] = "I32",   [MSC_DTYPE_I64] = "I64", [MSC_DTYPE_U8] = "U8",
    [MSC_DTYPE_U16] = "U16",   [MSC_DTYPE_U32] = "U32", [MSC_DTYPE_U64] = "U64",
    [MSC_DTYPE_BOOL] = "BOOL",
};

const char *msc_safetensors__code(enum msc_dtype dtype) {
    return codes[dtype];
}

// One tensor as the header describes it.
struct entry {
    const char *name; // borrowed from the header's tree
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    uint64_t begin, end; // byte range of the elements, relative to the end of the header
    bool is_taken;       // false: the tensor is skipped, only its offsets are parsed
};

// An open file and its parsed header.
struct reader {
    struct msc_stream stream;
    cJSON *header;
    uint64_t data_offset;
};

static void reader_finish(struct reader *r) {
    cJSON_Delete(r->header);
    msc_stream__close(&r->stream);
}

static enum msc_status read_length(uint64_t *out, struct msc_stream *stream) {
    uint8_t bytes[MSC_SAFETENSORS_LENGTH_BYTES];
    MSC_TRY(msc_stream__read(stream, bytes, sizeof bytes, "the length of its header"));
    uint64_t n = 0;
    for (int i = (int)MSC_SAFETENSORS_LENGTH_BYTES - 1; i >= 0; i--) {
        n = n << 8 | bytes[i];
    }
    uint64_t left = stream->n_bytes - stream->position;
    if (n < 2 || n > left || n > MAX_HEADER_BYTES) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: byte 0: the header should have %" PRIu64 " bytes, but %" PRIu64
            " are left; the file is truncated or not safetensors, copy or write it again",
            stream->name, n, left);
    }
    *out = n;
    return MSC_OK;
}

// The caller must finish `r` even on failure.
static enum msc_status reader_init(struct reader *r, const char *path) {
    *r = (struct reader){0};
    MSC_TRY(msc_stream__open(&r->stream, path));
    uint64_t n = 0;
    MSC_TRY(read_length(&n, &r->stream));
    char *text = msc_alloc((size_t)n + 1);
    if (!text) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for a header of %" PRIu64 " bytes",
                        path, n);
    }
    text[n] = '\0';
    enum msc_status status = msc_stream__read(&r->stream, text, (size_t)n, "its header");
    if (status == MSC_OK && text[0] != '{') {
        status = MSC_FAIL(MSC_E_FORMAT,
                          "%s: byte 8: the header does not begin with '{'; this is "
                          "not a safetensors file",
                          path);
    }
    if (status == MSC_OK) {
        status = msc_json_parse(&r->header, text, (size_t)n, path);
    }
    msc_free(text);
    MSC_TRY(status);
    if (!cJSON_IsObject(r->header)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte 8: the header is not a JSON object; write the file "
                        "again",
                        path);
    }
    r->data_offset = MSC_SAFETENSORS_LENGTH_BYTES + n;
    return MSC_OK;
}

// Reads a non-negative integer that a double holds exactly.
static bool get_whole(int64_t *out, const cJSON *value) {
    return msc_json_read_i64(out, value, 0, INT64_C(1) << 53);
}

static enum msc_status fail_tensor(const char *path, const char *name, const char *what) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: tensor \"%s\": %s; the header is damaged, write the file "
                    "again",
                    path, name, what);
}

static enum msc_status parse_dtype(struct entry *e, const cJSON *item, const char *path) {
    const cJSON *dtype = msc_json_get(item, "dtype");
    if (!cJSON_IsString(dtype)) {
        return fail_tensor(path, e->name, "\"dtype\" is missing or not a string");
    }
    for (int i = MSC_DTYPE_NONE + 1; i < MSC_DTYPE_COUNT; i++) {
        if (strcmp(codes[i], dtype->valuestring) == 0) {
            e->dtype = (enum msc_dtype)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED,
                    "%s: tensor \"%s\": dtype \"%s\" cannot be read; save it as "
                    "F32",
                    path, e->name, dtype->valuestring);
}

static enum msc_status parse_shape(struct entry *e, const cJSON *item, const char *path) {
    const cJSON *shape = msc_json_get(item, "shape");
    if (!cJSON_IsArray(shape)) {
        return fail_tensor(path, e->name, "\"shape\" is missing or not a list");
    }
    const cJSON *dim;
    cJSON_ArrayForEach(dim, shape) {
        if (e->n_dims == MSC_MAX_DIMS) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s: tensor \"%s\": more than %d dims; reshape it to "
                            "fewer",
                            path, e->name, MSC_MAX_DIMS);
        }
        if (!get_whole(&e->dims[e->n_dims], dim)) {
            return fail_tensor(path, e->name, "a dim is not an integer from 0 to 2^53");
        }
        e->n_dims++;
    }
    return MSC_OK;
}

static enum msc_status parse_place(struct entry *e, const cJSON *item, uint64_t data_bytes,
                                   const char *path) {
    const cJSON *offsets = msc_json_get(item, "data_offsets");
    int64_t begin, end;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !get_whole(&begin, cJSON_GetArrayItem(offsets, 0)) ||
        !get_whole(&end, cJSON_GetArrayItem(offsets, 1))) {
        return fail_tensor(path, e->name, "\"data_offsets\" is not a list of two integers");
    }
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    if (e->begin > e->end || e->end > data_bytes) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: tensor \"%s\": data_offsets %" PRIu64 " to %" PRIu64 " are outside "
                        "the %" PRIu64 " bytes of elements; the file is cut off or damaged, copy "
                        "or write it again",
                        path, e->name, e->begin, e->end, data_bytes);
    }
    return MSC_OK;
}

static enum msc_status parse_entry(struct entry *e, const cJSON *item, uint64_t data_bytes,
                                   const char *path) {
    MSC_TRY(parse_dtype(e, item, path));
    MSC_TRY(parse_shape(e, item, path));
    MSC_TRY(parse_place(e, item, data_bytes, path));
    int64_t n = msc_dims_product(e->n_dims, e->dims);
    size_t element_bytes = msc_dtype_bytes(e->dtype);
    if (n < 0 || (uint64_t)n > UINT64_MAX / element_bytes ||
        (uint64_t)n * element_bytes != e->end - e->begin) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: tensor \"%s\": %s of %s does not fit the %" PRIu64 " bytes of its "
                        "data_offsets; the header is damaged, write the file again",
                        path, e->name, msc_dims_format(text, e->n_dims, e->dims),
                        msc_dtype_name(e->dtype), e->end - e->begin);
    }
    return MSC_OK;
}

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

// Like the reference implementation, requires that the tensors are contiguous and fill the data
// part.
static enum msc_status check_layout(const struct entry entries[], size_t n, uint64_t data_bytes,
                                    const char *path) {
    uint64_t place = 0;
    for (size_t i = 0; i < n; i++) {
        if (entries[i].begin != place) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: tensor \"%s\": begins at byte %" PRIu64 " of the elements, %s "
                            "byte %" PRIu64 "; the header is damaged, write the file again",
                            path, entries[i].name, entries[i].begin,
                            entries[i].begin < place ? "overlapping the one before, which ends at"
                                                     : "with a gap after",
                            place);
        }
        place = entries[i].end;
    }
    if (place != data_bytes) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: %" PRIu64 " bytes follow the last tensor's %" PRIu64 "; the file is "
                        "damaged, copy or write it again",
                        path, data_bytes - place, place);
    }
    return MSC_OK;
}

static bool is_metadata(const cJSON *item) {
    return strcmp(item->string, "__metadata__") == 0;
}

static enum msc_status list_names(const char ***out, size_t *n, struct msc_arena *arena,
                                  const struct reader *r) {
    const cJSON *item;
    *n = 0;
    *out = msc_arena_array(arena, (size_t)cJSON_GetArraySize(r->header) + 1, sizeof **out);
    cJSON_ArrayForEach(item, r->header) {
        char *name = *out ? msc_arena_strdup(arena, item->string) : NULL;
        if (!name) {
            return MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for its names", r->stream.name);
        }
        if (!is_metadata(item)) {
            (*out)[(*n)++] = name;
        }
    }
    return MSC_OK;
}

// The caller frees *out, even on failure.
static enum msc_status parse_entries(struct entry **out, size_t *out_n,
                                     const struct msc_array_pick *pick, const struct reader *r) {
    const char *path = r->stream.name;
    uint64_t data_bytes = r->stream.n_bytes - r->data_offset;
    size_t capacity = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, r->header) {
        if (is_metadata(item)) {
            continue;
        }
        MSC_TRY(msc_grow(out, &capacity, *out_n + 1, sizeof **out));
        struct entry *e = &(*out)[*out_n];
        *e = (struct entry){.name = item->string, .is_taken = pick->takes(pick, item->string)};
        MSC_TRY(e->is_taken ? parse_entry(e, item, data_bytes, path)
                            : parse_place(e, item, data_bytes, path));
        (*out_n)++;
    }
    if (*out_n > 0) {
        qsort(*out, *out_n, sizeof **out, compare_entries);
    }
    return check_layout(*out, *out_n, data_bytes, path);
}

static enum msc_status load_tensor(struct msc_array_list *out, const struct entry *e,
                                   struct reader *r) {
    struct msc_array *array = NULL;
    MSC_TRY(msc_array_create(&array, e->dtype, e->n_dims, e->dims));
    enum msc_status status = msc_stream__seek(&r->stream, r->data_offset + e->begin);
    if (status == MSC_OK) {
        status = msc_stream__read(&r->stream, msc_array_data(array), msc_array_n_bytes(array),
                                  "the elements");
    }
    if (status == MSC_OK && e->dtype == MSC_DTYPE_BOOL) {
        uint8_t *element = msc_array_data(array);
        for (int64_t i = 0; i < msc_array_n_elements(array); i++) {
            element[i] = element[i] != 0;
        }
    }
    if (status == MSC_OK) {
        status = msc_array_list_add(out, e->name, array);
    }
    msc_array_release(array);
    return status;
}

enum msc_status msc_safetensors__load(struct msc_array_list *out, struct msc_array_pick *pick,
                                      const char *path) {
    struct reader r;
    struct entry *entries = NULL;
    size_t n = 0;
    enum msc_status status = reader_init(&r, path);
    if (status == MSC_OK) {
        status = list_names(&pick->names, &pick->n_names, pick->arena, &r);
    }
    if (status == MSC_OK) {
        status = parse_entries(&entries, &n, pick, &r);
    }
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        status = entries[i].is_taken ? load_tensor(out, &entries[i], &r) : MSC_OK;
    }
    if (status != MSC_OK) {
        msc_array_list_finish(out);
    }
    msc_free(entries);
    reader_finish(&r);
    return status;
}

enum msc_status msc_safetensors_load(struct msc_array_list *out, const char *path) {
    struct msc_arena arena = {0};
    struct msc_array_pick pick = {.takes = msc_array_pick__all, .arena = &arena};
    enum msc_status status = msc_safetensors__load(out, &pick, path);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_safetensors_metadata(char **out, const char *path, const char *key) {
    struct reader r;
    enum msc_status status = reader_init(&r, path);
    if (status != MSC_OK) {
        goto out;
    }
    const cJSON *metadata = msc_json_get(r.header, "__metadata__");
    const cJSON *value = msc_json_get(metadata, key);
    if (!value) {
        status = MSC_FAIL(MSC_E_NOT_FOUND, "%s: __metadata__ has no key \"%s\"", path, key);
        goto out;
    }
    if (!cJSON_IsString(value)) {
        status =
            MSC_FAIL(MSC_E_FORMAT, "%s: __metadata__: \"%s\" is not a string; write the file again",
                     path, key);
        goto out;
    }
    char *copy = msc_strdup(value->valuestring);
    if (!copy) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: not enough memory for metadata \"%s\"", path, key);
        goto out;
    }
    *out = copy;
out:
    reader_finish(&r);
    return status;
}

enum msc_status msc_safetensors__names(const char ***out, size_t *n, struct msc_arena *arena,
                                       const char *path) {
    struct reader r;
    enum msc_status status = reader_init(&r, path);
    if (status == MSC_OK) {
        status = list_names(out, n, arena, &r);
    }
    reader_finish(&r);
    return status;
}
