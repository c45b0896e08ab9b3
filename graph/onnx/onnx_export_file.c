// Writes a model's message in pieces, so that no copy of it is in memory. protobuf limits a message
// to 2^31 - 1 bytes. The initialisers of a larger model are written to a second file, PATH.data, as
// ONNX's external data; the message then holds their file offsets.
#include "graph/onnx/onnx_export_internal.h"

#include "base/file.h"
#include "graph/onnx/onnx.h"

#include <inttypes.h>
#include <string.h>

enum {
    PIECE_BYTES = 1 << 16,
    PAGE_BYTES = 4096,    // tensors begin at pages, so that runtimes can map them
    LEAST_OUTSIDE = 1024, // smaller initialisers stay in the message
    N_ENTRIES = 3,        // location, offset, length
};

// ---- The message ------------------------------------------------------------------------------

// Buffers the many short pieces that protobuf-c passes to `append`.
struct message {
    ProtobufCBuffer base; // the first member: `append` gets a pointer to it
    struct msc_file_writer writer;
    enum msc_status status; // of the first write that failed
    size_t n;
    uint8_t piece[PIECE_BYTES];
};

static void write_piece(struct message *m, const void *data, size_t n_bytes) {
    if (m->status == MSC_OK && n_bytes > 0) {
        m->status = msc_file_writer_write(&m->writer, data, n_bytes);
    }
}

static void append(ProtobufCBuffer *base, size_t n_bytes, const uint8_t *data) {
    struct message *m = (struct message *)(void *)base;
    if (n_bytes > PIECE_BYTES - m->n) {
        write_piece(m, m->piece, m->n);
        m->n = 0;
    }
    if (n_bytes > PIECE_BYTES) {
        write_piece(m, data, n_bytes);
    } else if (n_bytes > 0) {
        memcpy(m->piece + m->n, data, n_bytes);
        m->n += n_bytes;
    }
}

static enum msc_status write_message(const Onnx__ModelProto *model, const char *path) {
    struct message *m = msc_alloc_zero(1, sizeof(*m));
    MSC_TRY(MSC_ALLOCATED(m));
    m->base.append = append;
    m->status = msc_file_writer_begin(&m->writer, path);
    if (m->status == MSC_OK) {
        onnx__model_proto__pack_to_buffer(model, &m->base);
        write_piece(m, m->piece, m->n);
    }
    enum msc_status status = m->status == MSC_OK ? msc_file_writer_commit(&m->writer) : m->status;
    msc_file_writer_abort(&m->writer);
    msc_free(m);
    return status;
}

// ---- External data ----------------------------------------------------------------------------

static enum msc_status put_entry(Onnx__StringStringEntryProto **out, struct msc_arena *arena,
                                 const char *key, const char *value) {
    Onnx__StringStringEntryProto *entry = msc_arena_alloc(arena, sizeof(*entry));
    MSC_TRY(MSC_ALLOCATED(entry && value));
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)key;
    entry->value = (char *)value;
    *out = entry;
    return MSC_OK;
}

// Makes the tensor refer to its bytes in the file of external data.
static enum msc_status refer(Onnx__TensorProto *t, struct msc_arena *arena, const char *location,
                             uint64_t offset) {
    t->external_data = msc_arena_array(arena, N_ENTRIES, sizeof(t->external_data[0]));
    MSC_TRY(MSC_ALLOCATED(t->external_data));
    MSC_TRY(put_entry(&t->external_data[0], arena, "location", location));
    MSC_TRY(put_entry(&t->external_data[1], arena, "offset",
                      msc_arena_printf(arena, "%" PRIu64, offset)));
    MSC_TRY(put_entry(&t->external_data[2], arena, "length",
                      msc_arena_printf(arena, "%zu", t->raw_data.len)));
    t->n_external_data = N_ENTRIES;
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = false;
    t->raw_data = (ProtobufCBinaryData){0, NULL};
    return MSC_OK;
}

static enum msc_status write_tensors(struct msc_onnx_export *e, struct msc_file_writer *w,
                                     const char *location) {
    static const char zeros[PAGE_BYTES];
    for (size_t i = 0; i < e->n_initializers; i++) {
        Onnx__TensorProto *t = e->initializers[i];
        if (!t->has_raw_data || t->raw_data.len < LEAST_OUTSIDE) {
            continue;
        }
        size_t rest = (size_t)(w->n_bytes % PAGE_BYTES);
        MSC_TRY(rest > 0 ? msc_file_writer_write(w, zeros, PAGE_BYTES - rest) : MSC_OK);
        uint64_t offset = w->n_bytes;
        // Mapped arrays are not accessed before this point: each access may evict another array.
        const struct msc_array *source = msc_onnx__initializer(t)->source;
        const void *data = source != NULL ? msc_array_data(source) : t->raw_data.data;
        MSC_TRY(msc_file_writer_write(w, data, t->raw_data.len));
        MSC_TRY(refer(t, &e->arena, location, offset));
    }
    return MSC_OK;
}

static enum msc_status write_data(struct msc_onnx_export *e, const char *path) {
    struct msc_file_writer w = {0};
    const char *data_path = msc_arena_printf(&e->arena, "%s.data", path);
    MSC_TRY(MSC_ALLOCATED(data_path));
    enum msc_status status = msc_file_writer_begin(&w, data_path);
    if (status == MSC_OK) {
        status = write_tensors(e, &w, msc_path_name(data_path));
    }
    if (status == MSC_OK) {
        status = msc_file_writer_commit(&w);
    }
    msc_file_writer_abort(&w);
    return status;
}

enum msc_status msc_onnx__write_file(struct msc_onnx_export *e, const Onnx__ModelProto *model,
                                     const char *path, uint64_t n_bytes) {
    uint64_t most = e->options->most_bytes > 0 ? e->options->most_bytes : INT32_MAX;
    if (n_bytes > most) {
        MSC_TRY(write_data(e, path));
        n_bytes = onnx__model_proto__get_packed_size(model);
    }
    if (n_bytes > INT32_MAX) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "without its weights, the model has %" PRIu64
                        " bytes, but at most 2^31 - 1 can be written",
                        n_bytes);
    }
    return write_message(model, path);
}

enum msc_status msc_onnx_remove(const char *path) {
    struct msc_arena arena = {0};
    const char *const *beside = NULL;
    const char *data_path = msc_arena_printf(&arena, "%s.data", path);
    size_t n = 0;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(data_path));
    MSC_TRY_OUT(msc_file_exists(data_path) ? msc_onnx_locations(&beside, &n, &arena, path)
                                           : MSC_OK);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(beside[i], data_path) == 0) {
            MSC_TRY_OUT(msc_file_remove(data_path));
        }
    }
    status = msc_file_remove(path);
out:
    msc_arena_finish(&arena);
    return status;
}
