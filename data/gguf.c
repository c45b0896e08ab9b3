#include "data/gguf.h"

#include "base/alloc.h"
#include "base/file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value_type {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    BOOL,
    TEXT,
    ARRAY,
    U64,
    I64,
    F64,
    N_VALUE_TYPES
};

static const uint8_t value_bytes[N_VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

#define LEAST_VALUE_BYTES 13  // an empty key, its type and a byte
#define LEAST_TENSOR_BYTES 24 // an empty name, no axes, type and offset
#define DEFAULT_ALIGNMENT 32
#define MOST_ALIGNMENT (1 << 20)

struct value {
    const char *key;
    uint32_t type;
    const uint8_t *at;
    const char *text;  // of a TEXT
    size_t begin, end; // places of the key's first byte and after the value
};

struct msc_gguf {
    const char *path;
    const uint8_t *file;
    size_t n_file_bytes;
    size_t at; // the place where the next thing is read
    size_t n_values, n_tensors;
    struct value *values;
    struct msc_gguf_tensor *tensors;
    size_t alignment;
    struct msc_arena arena;
};

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status fail_end(const struct msc_gguf *g) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: the file ends here, or a length is wrong", g->path,
                    g->at);
}

static enum msc_status take(const uint8_t **out, struct msc_gguf *g, uint64_t n) {
    *out = NULL;
    if (n > g->n_file_bytes - g->at) {
        return fail_end(g);
    }
    *out = g->file + g->at;
    g->at += (size_t)n;
    return MSC_OK;
}

static uint64_t read_number(const uint8_t x[], int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) {
        value |= (uint64_t)x[i] << (8 * i);
    }
    return value;
}

static enum msc_status take_u32(uint32_t *out, struct msc_gguf *g) {
    const uint8_t *x = NULL;
    MSC_TRY(take(&x, g, 4));
    *out = (uint32_t)read_number(x, 4);
    return MSC_OK;
}

static enum msc_status take_u64(uint64_t *out, struct msc_gguf *g) {
    const uint8_t *x = NULL;
    MSC_TRY(take(&x, g, 8));
    *out = read_number(x, 8);
    return MSC_OK;
}

static enum msc_status take_text(const char **out, struct msc_gguf *g) {
    uint64_t n;
    const uint8_t *x = NULL;
    MSC_TRY(take_u64(&n, g));
    MSC_TRY(take(&x, g, n));
    const uint8_t *zero = memchr(x, 0, (size_t)n);
    if (zero) { // the text would end there
        return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: a name or text has the byte 0 in it", g->path,
                        (size_t)(zero - g->file));
    }
    *out = msc_arena_strndup(&g->arena, (const char *)x, (size_t)n);
    return MSC_ALLOCATED(*out);
}

static enum msc_status skip_texts(struct msc_gguf *g, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t length;
        const uint8_t *x = NULL;
        MSC_TRY(take_u64(&length, g));
        MSC_TRY(take(&x, g, length));
    }
    return MSC_OK;
}

static enum msc_status fail_value_type(const struct msc_gguf *g, const char *key, uint32_t type) {
    return MSC_FAIL(MSC_E_FORMAT, "%s: byte %zu: the value of \"%.100s\" has the unknown type %u",
                    g->path, g->at, key, type);
}

static enum msc_status read_array(struct value *v, struct msc_gguf *g) {
    uint32_t type;
    uint64_t n;
    MSC_TRY(take_u32(&type, g));
    MSC_TRY(take_u64(&n, g));
    v->at = g->file + g->at;
    if (type == TEXT) {
        return skip_texts(g, n);
    }
    if (type >= N_VALUE_TYPES || type == ARRAY) {
        return fail_value_type(g, v->key, type);
    }
    return n <= (g->n_file_bytes - g->at) / value_bytes[type]
               ? take(&v->at, g, n * value_bytes[type])
               : fail_end(g);
}

static enum msc_status read_value(struct value *v, struct msc_gguf *g) {
    MSC_TRY(take_text(&v->key, g));
    MSC_TRY(take_u32(&v->type, g));
    if (v->type == TEXT) {
        return take_text(&v->text, g);
    }
    if (v->type == ARRAY) {
        return read_array(v, g);
    }
    return v->type < N_VALUE_TYPES ? take(&v->at, g, value_bytes[v->type])
                                   : fail_value_type(g, v->key, v->type);
}

static enum msc_status read_tensor(struct msc_gguf_tensor *t, struct msc_gguf *g,
                                   uint64_t *offset) {
    uint32_t n_dims, type;
    MSC_TRY(take_text(&t->name, g));
    MSC_TRY(take_u32(&n_dims, g));
    if (n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte %zu: tensor \"%.100s\" has %u axes, expected up to %d", g->path,
                        g->at, t->name, n_dims, MSC_MAX_DIMS);
    }
    t->n_dims = (int)n_dims;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        uint64_t length;
        MSC_TRY(take_u64(&length, g));
        t->dims[i] = length <= INT64_MAX ? (int64_t)length : -1;
    }
    MSC_TRY(take_u32(&type, g));
    t->type = type <= INT32_MAX ? (int)type : MSC_GGUF_NO_TYPE;
    return take_u64(offset, g);
}

// Finds the bytes of a tensor, which are relative to the start of the data.
static enum msc_status find_bytes(struct msc_gguf_tensor *t, const struct msc_gguf *g,
                                  uint64_t offset) {
    int64_t n = msc_dims_product(t->n_dims, t->dims);
    int64_t row_length = t->n_dims > 0 ? t->dims[t->n_dims - 1] : 1;
    const struct msc_gguf_block_type *block = msc_gguf_block_type(t->type);
    if (n <= 0 || n > INT64_MAX / 8) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%.100s\": the lengths of its axes are wrong",
                        g->path, t->name);
    }
    if (block && row_length % block->n != 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: tensor \"%.100s\": rows of %lld elements do not fill blocks of %d",
                        g->path, t->name, (long long)row_length, block->n);
    }
    t->n_bytes = msc_gguf_n_bytes(t->type, n, row_length);
    size_t n_data = g->n_file_bytes > g->at ? g->n_file_bytes - g->at : 0;
    if (offset % g->alignment != 0) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: tensor \"%.100s\": its bytes begin at %llu, expected a multiple of the "
            "file's alignment, %zu",
            g->path, t->name, (unsigned long long)offset, g->alignment);
    }
    if (offset > n_data || t->n_bytes > n_data - offset) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: tensor \"%.100s\": its %zu bytes from %llu on are not inside the %zu "
                        "bytes of data; the file is cut off or damaged",
                        g->path, t->name, t->n_bytes, (unsigned long long)offset, n_data);
    }
    t->bytes = t->n_bytes > 0 ? g->file + g->at + offset : NULL;
    return MSC_OK;
}

static enum msc_status read_alignment(struct msc_gguf *g) {
    double alignment = DEFAULT_ALIGNMENT;
    (void)msc_gguf_number(&alignment, g, "general.alignment");
    if (!(alignment >= 1 && alignment <= MOST_ALIGNMENT) || alignment != floor(alignment)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: general.alignment is %g, expected 1 to %d", g->path,
                        alignment, MOST_ALIGNMENT);
    }
    g->alignment = (size_t)alignment;
    return MSC_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts the names, and refuses a name that occurs twice.
static enum msc_status check_names(const struct msc_gguf *g, const char *names[], size_t n,
                                   const char *of) {
    qsort(names, n, sizeof(names[0]), compare_names);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: two %s are called \"%.100s\"", g->path, of,
                            names[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status check_all_names(struct msc_gguf *g) {
    size_t room = (g->n_tensors > g->n_values ? g->n_tensors : g->n_values) + 1;
    const char **names = msc_arena_array(&g->arena, room, sizeof(names[0]));
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < g->n_values; i++) {
        names[i] = g->values[i].key;
    }
    MSC_TRY(check_names(g, names, g->n_values, "values"));
    for (size_t i = 0; i < g->n_tensors; i++) {
        names[i] = g->tensors[i].name;
    }
    return check_names(g, names, g->n_tensors, "tensors");
}

static enum msc_status read_tensors(struct msc_gguf *g) {
    uint64_t *offsets = msc_arena_array(&g->arena, g->n_tensors + 1, sizeof(offsets[0]));
    g->tensors = msc_arena_array(&g->arena, g->n_tensors + 1, sizeof(g->tensors[0]));
    MSC_TRY(MSC_ALLOCATED(offsets && g->tensors));
    for (size_t i = 0; i < g->n_tensors; i++) {
        MSC_TRY(read_tensor(&g->tensors[i], g, &offsets[i]));
    }
    MSC_TRY(read_alignment(g));
    g->at = (g->at + g->alignment - 1) / g->alignment * g->alignment;
    for (size_t i = 0; i < g->n_tensors; i++) {
        MSC_TRY(find_bytes(&g->tensors[i], g, offsets[i]));
    }
    return check_all_names(g);
}

static enum msc_status check_version(struct msc_gguf *g) {
    const uint8_t *magic;
    uint32_t version;
    if (g->n_file_bytes < 8 || memcmp(g->file, "GGUF", 4) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: byte 0: not a GGUF file", g->path);
    }
    MSC_TRY(take(&magic, g, 4));
    MSC_TRY(take_u32(&version, g));
    if (version != 2 && version != 3) {
        bool is_big = (version & 0xffff) == 0 && version != 0;
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        is_big ? "%s: a big-endian file; convert it with gguf-convert-endian"
                               : "%s: GGUF of version %u, expected 2 or 3",
                        g->path, version);
    }
    return MSC_OK;
}

static enum msc_status read_header(struct msc_gguf *g) {
    uint64_t n_tensors, n_values;
    MSC_TRY(check_version(g));
    MSC_TRY(take_u64(&n_tensors, g));
    MSC_TRY(take_u64(&n_values, g));
    if (n_tensors > g->n_file_bytes / LEAST_TENSOR_BYTES ||
        n_values > g->n_file_bytes / LEAST_VALUE_BYTES) {
        return fail_end(g);
    }
    g->n_tensors = (size_t)n_tensors;
    g->n_values = (size_t)n_values;
    g->values = msc_arena_array(&g->arena, g->n_values + 1, sizeof(g->values[0]));
    MSC_TRY(MSC_ALLOCATED(g->values));
    for (size_t i = 0; i < g->n_values; i++) {
        g->values[i].begin = g->at;
        MSC_TRY(read_value(&g->values[i], g));
        g->values[i].end = g->at;
    }
    return read_tensors(g);
}

enum msc_status msc_gguf_open(struct msc_gguf **out, const char *path) {
    const void *file;
    struct msc_gguf *g = msc_alloc_zero(1, sizeof(*g));
    MSC_TRY(MSC_ALLOCATED(g));
    enum msc_status status = msc_file_map(&file, &g->n_file_bytes, path);
    g->file = status == MSC_OK ? file : NULL;
    g->path = msc_arena_strdup(&g->arena, path);
    status = status == MSC_OK ? MSC_ALLOCATED(g->path) : status;
    status = status == MSC_OK ? read_header(g) : status;
    if (status != MSC_OK) {
        msc_gguf_close(g);
        return status;
    }
    *out = g;
    return MSC_OK;
}

void msc_gguf_close(struct msc_gguf *g) {
    if (g) {
        if (g->file) {
            msc_file_unmap(g->file, g->n_file_bytes);
        }
        msc_arena_finish(&g->arena);
        msc_free(g);
    }
}

// ---- Queries ----------------------------------------------------------------------------------

const char *msc_gguf_path(const struct msc_gguf *g) {
    return g->path;
}

size_t msc_gguf_n_tensors(const struct msc_gguf *g) {
    return g->n_tensors;
}

const struct msc_gguf_tensor *msc_gguf_tensor(const struct msc_gguf *g, size_t index) {
    return &g->tensors[index];
}

const struct msc_gguf_tensor *msc_gguf_find(const struct msc_gguf *g, const char *name) {
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (strcmp(g->tensors[i].name, name) == 0) {
            return &g->tensors[i];
        }
    }
    return NULL;
}

static const struct value *find_value(const struct msc_gguf *g, const char *key) {
    for (size_t i = 0; i < g->n_values; i++) {
        if (strcmp(g->values[i].key, key) == 0) {
            return &g->values[i];
        }
    }
    return NULL;
}

bool msc_gguf_number(double *out, const struct msc_gguf *g, const char *key) {
    const struct value *v = find_value(g, key);
    if (!v || v->type == TEXT || v->type == ARRAY) {
        return false;
    }
    uint64_t bits = read_number(v->at, value_bytes[v->type]);
    uint32_t low = (uint32_t)bits;
    float single;
    switch (v->type) {
    case I8:
        *out = (int8_t)bits;
        return true;
    case I16:
        *out = (int16_t)bits;
        return true;
    case I32:
        *out = (int32_t)bits;
        return true;
    case I64:
        *out = (double)(int64_t)bits;
        return true;
    case F32:
        memcpy(&single, &low, sizeof(single));
        *out = (double)single;
        return true;
    case F64:
        memcpy(out, &bits, sizeof(*out));
        return true;
    default:
        *out = (double)bits;
        return true;
    }
}

bool msc_gguf_text(const char **out, const struct msc_gguf *g, const char *key) {
    const struct value *v = find_value(g, key);
    if (v && v->type == TEXT) {
        *out = v->text;
        return true;
    }
    return false;
}

bool msc_gguf_has_value(const struct msc_gguf *g, const char *key) {
    return find_value(g, key) != NULL;
}

size_t msc_gguf_n_values(const struct msc_gguf *g) {
    return g->n_values;
}

const char *msc_gguf_value_key(const struct msc_gguf *g, size_t index) {
    return g->values[index].key;
}

const uint8_t *msc_gguf_value_bytes(size_t *n_bytes, const struct msc_gguf *g, size_t index) {
    *n_bytes = g->values[index].end - g->values[index].begin;
    return g->file + g->values[index].begin;
}

size_t msc_gguf_alignment(const struct msc_gguf *g) {
    return g->alignment;
}

// ---- Elements ---------------------------------------------------------------------------------

size_t msc_gguf_n_bytes(int type, int64_t n, int64_t row_length) {
    const struct msc_gguf_block_type *block = msc_gguf_block_type(type);
    if (block) {
        return row_length % block->n == 0 ? (size_t)(n / block->n) * (size_t)block->n_bytes : 0;
    }
    return type == MSC_GGUF_F32                            ? (size_t)n * 4
           : type == MSC_GGUF_F16 || type == MSC_GGUF_BF16 ? (size_t)n * 2
                                                           : 0;
}

const char *msc_gguf_type_name(char name[8], int type) {
    const struct msc_gguf_block_type *block = msc_gguf_block_type(type);
    if (type == MSC_GGUF_F32 || type == MSC_GGUF_F16 || type == MSC_GGUF_BF16) {
        snprintf(name, 8, "%s",
                 type == MSC_GGUF_F32   ? "F32"
                 : type == MSC_GGUF_F16 ? "F16"
                                        : "BF16");
    } else if (!block) {
        snprintf(name, 8, "%d", type % 1000000);
    }
    for (size_t i = 0; block && i <= strlen(block->name); i++) {
        name[i] = (char)toupper((unsigned char)block->name[i]);
    }
    return name;
}

enum msc_status msc_gguf_load(struct msc_array **out, const struct msc_gguf *g,
                              const struct msc_gguf_tensor *t) {
    const struct msc_gguf_block_type *block = msc_gguf_block_type(t->type);
    char name[8];
    if (!t->bytes) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: tensor \"%s\" has elements of type %s, expected F32, F16, BF16, Q8_0, "
                        "Q4_0, Q4_1, Q5_0, Q5_1 or Q2_K to Q6_K",
                        g->path, t->name, msc_gguf_type_name(name, t->type));
    }
    MSC_TRY(msc_array_create_unset(out, MSC_DTYPE_F32, t->n_dims, t->dims));
    float *x = msc_array_data(*out);
    int64_t n = msc_array_n_elements(*out);
    if (block) {
        msc_gguf_decode(x, t->bytes, n / block->n, block);
        return MSC_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        if (t->type == MSC_GGUF_F32) {
            uint32_t bits = (uint32_t)read_number(t->bytes + 4 * i, 4);
            memcpy(&x[i], &bits, sizeof(bits));
        } else {
            uint16_t bits = (uint16_t)read_number(t->bytes + 2 * i, 2);
            x[i] = t->type == MSC_GGUF_F16 ? msc_f16_to_f32(bits) : msc_bf16_to_f32(bits);
        }
    }
    return MSC_OK;
}
