#include "graph/onnx/onnx_file_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

// Deeper than any real model. The limit keeps a hostile file from overflowing the stack.
#define MAX_DEPTH 100

// If memory is short, sets the flag that `payload` points to, if any.
static void *onnx_file_allocate(void *payload, size_t n_bytes) {
    void *pointer = msc_alloc(n_bytes);
    if (pointer == NULL && payload != NULL) {
        *(bool *)payload = true;
    }
    return pointer;
}

static void onnx_file_release(void *payload, void *pointer) {
    (void)payload;
    msc_free(pointer);
}

static ProtobufCAllocator make_allocator(bool *is_short) {
    return (ProtobufCAllocator){
        .alloc = onnx_file_allocate, .free = onnx_file_release, .allocator_data = is_short};
}

// protobuf-c reports only that a message is damaged. This scan of the same bytes finds the position
// of the damage. It also rejects excessive nesting before the message is unpacked.
struct scan {
    const uint8_t *data;
    size_t at;
    const char *message; // the innermost message being read
    bool is_deep;        // the nesting is too deep
    const char *field;   // a string that is not UTF-8 or contains NUL
};

static bool scan_varint(struct scan *s, size_t end, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && s->at < end; shift += 7) {
        uint8_t byte = s->data[s->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool skip_bytes(struct scan *s, size_t end, uint64_t n) {
    if (n > end - s->at) {
        return false;
    }
    s->at += (size_t)n;
    return true;
}

static bool scan_message(struct scan *s, size_t end, const ProtobufCMessageDescriptor *type,
                         int depth);

// True for descriptions and metadata, which may hold any bytes: they are copied unchanged to
// exported files and never shown.
static bool is_only_kept(const struct scan *s, const ProtobufCFieldDescriptor *field) {
    return strcmp(field->name, "doc_string") == 0 ||
           strcmp(s->message, "StringStringEntryProto") == 0;
}

static bool scan_field(struct scan *s, size_t end, const ProtobufCMessageDescriptor *type,
                       int depth) {
    uint64_t key, value;
    if (!scan_varint(s, end, &key) || key >> 3 == 0 || key >> 3 > INT32_MAX) {
        return false;
    }
    switch (key & 7) {
    case 0:
        return scan_varint(s, end, &value);
    case 1:
        return skip_bytes(s, end, 8);
    case 5:
        return skip_bytes(s, end, 4);
    case 2:
        break;
    default:
        return false;
    }
    if (!scan_varint(s, end, &value) || value > end - s->at) {
        return false;
    }
    const ProtobufCFieldDescriptor *field =
        type == NULL ? NULL : protobuf_c_message_descriptor_get_field(type, (unsigned)(key >> 3));
    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = (const char *)s->data + s->at;
        size_t good = is_only_kept(s, field) ? strnlen(text, (size_t)value)
                                             : msc_utf8_length(text, (size_t)value);
        s->field = good < value ? field->name : NULL;
        return skip_bytes(s, end, good) && s->field == NULL;
    }
    if (field == NULL || field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return skip_bytes(s, end, value);
    }
    return scan_message(s, s->at + (size_t)value, field->descriptor, depth + 1);
}

static bool scan_message(struct scan *s, size_t end, const ProtobufCMessageDescriptor *type,
                         int depth) {
    s->message = type->short_name;
    if (depth > MAX_DEPTH) {
        s->is_deep = true;
        return false;
    }
    while (s->at < end) {
        size_t begin = s->at;
        if (!scan_field(s, end, type, depth)) {
            s->at = s->at > end ? begin : s->at;
            return false;
        }
        s->message = type->short_name;
    }
    return true;
}

static enum msc_status fail_scan(const struct scan *s, size_t n_bytes, const char *path) {
    return s->is_deep
               ? MSC_FAIL(MSC_E_UNSUPPORTED,
                          "%s: nested too deeply at byte %zu of %zu, in %s: at most %d levels of "
                          "messages are supported",
                          path, s->at, n_bytes, s->message, MAX_DEPTH)
           : s->field
               ? MSC_FAIL(MSC_E_FORMAT,
                          "%s: byte %zu is 0x%02x, which %s, in %s.%s: write the model again with "
                          "UTF-8 names and strings",
                          path, s->at, (unsigned)s->data[s->at],
                          s->data[s->at] == 0 ? "strings cannot contain" : "is not UTF-8",
                          s->message, s->field)
               : MSC_FAIL(MSC_E_FORMAT, "%s: damaged or cut short at byte %zu of %zu, in %s", path,
                          s->at, n_bytes, s->message);
}

enum msc_status msc_onnx__check_message(const void *data, size_t n_bytes,
                                        const ProtobufCMessageDescriptor *type, const char *name) {
    struct scan scan = {.data = data};
    return scan_message(&scan, n_bytes, type, 0) ? MSC_OK : fail_scan(&scan, n_bytes, name);
}

static enum msc_status onnx_file_unpack(Onnx__ModelProto **out, const void *data, size_t n_bytes,
                                        const char *path) {
    if (n_bytes == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the file is empty, expected an ONNX model", path);
    }
    MSC_TRY(msc_onnx__check_message(data, n_bytes, &onnx__model_proto__descriptor, path));
    bool is_short = false;
    ProtobufCAllocator allocator = make_allocator(&is_short);
    *out = onnx__model_proto__unpack(&allocator, n_bytes, data);
    if (is_short) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    if (*out == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: not an ONNX model, or damaged", path);
    }
    if ((*out)->graph == NULL) {
        msc_onnx_model_free(*out);
        *out = NULL;
        return MSC_FAIL(MSC_E_FORMAT, "%s: not an ONNX model, or one without a graph", path);
    }
    return MSC_OK;
}

enum msc_status msc_onnx_model_read(Onnx__ModelProto **out, const char *path) {
    const void *data;
    size_t n_bytes;
    MSC_TRY(msc_file_map(&data, &n_bytes, path));
    enum msc_status status = onnx_file_unpack(out, data, n_bytes, path);
    msc_file_unmap(data, n_bytes);
    return status;
}

void msc_onnx_model_free(Onnx__ModelProto *model) {
    ProtobufCAllocator allocator = make_allocator(NULL);
    if (model != NULL) {
        onnx__model_proto__free_unpacked(model, &allocator);
    }
}
