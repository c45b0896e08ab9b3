#include "graph/tflite/flatbuffer.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { FIRST_CAPACITY = 1 << 16, IDENTIFIER_BYTES = 4 };

// Makes room for n bytes before the written ones. False after a failure.
static bool reserve(struct msc_flat *f, size_t n) {
    if (f->status != MSC_OK) {
        return false;
    }
    if (n > INT32_MAX || f->n_bytes + n > INT32_MAX) {
        f->status = MSC_FAIL(MSC_E_UNSUPPORTED, "the model has more than 2^31 - 1 bytes, which is "
                                                "the limit of a .tflite file");
        return false;
    }
    if (n > f->capacity - f->n_bytes) {
        size_t capacity = f->capacity > 0 ? f->capacity : FIRST_CAPACITY;
        while (capacity - f->n_bytes < n) {
            capacity *= 2;
        }
        unsigned char *bytes = msc_alloc_zero(capacity, 1);
        f->status = MSC_ALLOCATED(bytes);
        if (f->status != MSC_OK) {
            return false;
        }
        if (f->n_bytes > 0) {
            memcpy(bytes + capacity - f->n_bytes, f->bytes + f->capacity - f->n_bytes, f->n_bytes);
        }
        msc_free(f->bytes);
        f->bytes = bytes;
        f->capacity = capacity;
    }
    return true;
}

static void push(struct msc_flat *f, const void *data, size_t n) {
    if (n > 0 && reserve(f, n)) {
        f->n_bytes += n;
        memcpy(f->bytes + f->capacity - f->n_bytes, data, n);
    }
}

// Writes zeros so that, after n more bytes, the number of bytes is a multiple of the alignment.
static void align(struct msc_flat *f, size_t n, size_t alignment) {
    static const unsigned char zeros[MSC_FLAT_WIDE];
    push(f, zeros, (alignment - (f->n_bytes + n) % alignment) % alignment);
}

static void push_u16(struct msc_flat *f, size_t value) {
    uint16_t u = (uint16_t)value;
    push(f, &u, sizeof(u));
}

static void push_u32(struct msc_flat *f, size_t value) {
    uint32_t u = (uint32_t)value;
    push(f, &u, sizeof(u));
}

static void push_distance(struct msc_flat *f, uint32_t ref) {
    push_u32(f, f->n_bytes + sizeof(uint32_t) - ref);
}

uint32_t msc_flat_vector(struct msc_flat *f, const void *elements, size_t n, size_t element_bytes,
                         size_t alignment) {
    assert(alignment >= element_bytes && alignment <= MSC_FLAT_WIDE);
    alignment = alignment > sizeof(uint32_t) ? alignment : sizeof(uint32_t);
    align(f, n * element_bytes, alignment);
    push(f, elements, n * element_bytes);
    push_u32(f, n);
    return (uint32_t)f->n_bytes;
}

uint32_t msc_flat_string(struct msc_flat *f, const char *text) {
    size_t n = strlen(text);
    align(f, n + 1, sizeof(uint32_t));
    push(f, text, n + 1);
    push_u32(f, n);
    return (uint32_t)f->n_bytes;
}

uint32_t msc_flat_refs(struct msc_flat *f, const uint32_t refs[], size_t n) {
    align(f, 0, sizeof(uint32_t));
    for (size_t i = n; i-- > 0;) {
        push_distance(f, refs[i]);
    }
    push_u32(f, n);
    return (uint32_t)f->n_bytes;
}

void msc_flat_begin(struct msc_flat *f) {
    align(f, 0, sizeof(uint32_t));
    f->table = f->n_bytes;
    memset(f->fields, 0, sizeof(f->fields));
}

static void note_field(struct msc_flat *f, int field) {
    assert(field >= 0 && field < MSC_FLAT_MOST_FIELDS);
    f->fields[field] = f->n_bytes;
}

void msc_flat_put_i8(struct msc_flat *f, int field, int8_t value) {
    push(f, &value, sizeof(value));
    note_field(f, field);
}

void msc_flat_put_i32(struct msc_flat *f, int field, int32_t value) {
    align(f, 0, sizeof(value));
    push(f, &value, sizeof(value));
    note_field(f, field);
}

void msc_flat_put_f32(struct msc_flat *f, int field, float value) {
    align(f, 0, sizeof(value));
    push(f, &value, sizeof(value));
    note_field(f, field);
}

void msc_flat_put_ref(struct msc_flat *f, int field, uint32_t ref) {
    align(f, 0, sizeof(ref));
    push_distance(f, ref);
    note_field(f, field);
}

uint32_t msc_flat_end(struct msc_flat *f) {
    align(f, 0, sizeof(int32_t));
    push_u32(f, 0); // replaced below
    size_t table = f->n_bytes;
    int n = MSC_FLAT_MOST_FIELDS;
    while (n > 0 && f->fields[n - 1] == 0) {
        n--;
    }
    for (int i = n; i-- > 0;) {
        push_u16(f, f->fields[i] == 0 ? 0 : table - f->fields[i]);
    }
    push_u16(f, table - f->table);
    push_u16(f, sizeof(uint16_t) * (size_t)(n + 2));
    if (f->status == MSC_OK) {
        int32_t distance = (int32_t)(f->n_bytes - table);
        memcpy(f->bytes + f->capacity - table, &distance, sizeof(distance));
    }
    return (uint32_t)table;
}

void msc_flat_finish(struct msc_flat *f, uint32_t root, const char identifier[]) {
    assert(strlen(identifier) == IDENTIFIER_BYTES);
    align(f, sizeof(uint32_t) + IDENTIFIER_BYTES, MSC_FLAT_WIDE);
    push(f, identifier, IDENTIFIER_BYTES);
    push_distance(f, root);
}

void msc_flat_free(struct msc_flat *f) {
    msc_free(f->bytes);
    *f = (struct msc_flat){0};
}
