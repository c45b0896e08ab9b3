// Reads and writes ONNX backend test cases, as declared in onnx_case.h.
#include "tests/graph/onnx_case.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

// The wire format of protocol buffers: a message is a sequence of fields. Each has a number, a
// kind, and a value: a varint, 4 or 8 bytes, or a length followed by bytes.
struct span {
    const unsigned char *at, *end;
};

struct field {
    uint32_t number, kind;
    uint64_t value;    // for kinds 0, 1 and 5
    struct span bytes; // for kind 2
};

static bool read_varint(uint64_t *out, struct span *s) {
    *out = 0;
    for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        unsigned char byte = *s->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

static bool read_field(struct field *f, struct span *s) {
    uint64_t key;
    if (s->at == s->end || !read_varint(&key, s)) {
        return false;
    }
    f->number = (uint32_t)(key >> 3);
    f->kind = key & 7;
    size_t n_bytes = f->kind == 1 ? 8 : 4;
    switch (f->kind) {
    case 0:
        return read_varint(&f->value, s);
    case 1:
    case 5:
        if ((size_t)(s->end - s->at) < n_bytes) {
            return false;
        }
        f->value = 0;
        memcpy(&f->value, s->at, n_bytes);
        s->at += n_bytes;
        return true;
    case 2:
        if (!read_varint(&f->value, s) || f->value > (uint64_t)(s->end - s->at)) {
            return false;
        }
        f->bytes = (struct span){s->at, s->at + f->value};
        s->at += f->value;
        return true;
    default:
        return false;
    }
}

static void copy_text(char *to, size_t n_bytes, struct span from) {
    size_t length = (size_t)(from.end - from.at);
    length = length < n_bytes ? length : n_bytes - 1;
    memcpy(to, from.at, length);
    to[length] = '\0';
}

// TensorProto.DataType, indexed by number.
static const enum msc_dtype dtypes[] = {
    [1] = MSC_DTYPE_F32,   [2] = MSC_DTYPE_U8,   [3] = MSC_DTYPE_I8,   [4] = MSC_DTYPE_U16,
    [5] = MSC_DTYPE_I16,   [6] = MSC_DTYPE_I32,  [7] = MSC_DTYPE_I64,  [9] = MSC_DTYPE_BOOL,
    [10] = MSC_DTYPE_F16,  [11] = MSC_DTYPE_F64, [12] = MSC_DTYPE_U32, [13] = MSC_DTYPE_U64,
    [16] = MSC_DTYPE_BF16,
};

struct tensor_proto {
    int n_dims;
    int64_t dims[MSC_MAX_DIMS];
    enum msc_dtype dtype;
    struct span raw;
    // `n` elements of the typed fields as 64-bit patterns.
    uint64_t values[4096];
    size_t n;
};

static void add_value(struct tensor_proto *t, uint64_t value) {
    if (t->n < sizeof(t->values) / sizeof(t->values[0])) {
        t->values[t->n++] = value;
    }
}

// Appends a repeated number, packed or not. `width` is 4 for floats, 8 for doubles and 0 for
// varints.
static void add_values(struct tensor_proto *t, const struct field *f, size_t width) {
    if (f->kind != 2) {
        add_value(t, f->value);
        return;
    }
    struct span s = f->bytes;
    uint64_t value;
    while (width == 0 && s.at < s.end && read_varint(&value, &s)) {
        add_value(t, value);
    }
    for (; width > 0 && (size_t)(s.end - s.at) >= width; s.at += width) {
        value = 0;
        memcpy(&value, s.at, width);
        add_value(t, value);
    }
}

static bool read_tensor(struct tensor_proto *t, struct span s) {
    struct field f;
    while (read_field(&f, &s)) {
        if (f.number == 1 && f.kind == 0 && t->n_dims < MSC_MAX_DIMS) {
            t->dims[t->n_dims++] = (int64_t)f.value;
        } else if (f.number == 1 && f.kind == 2) {
            uint64_t value;
            while (t->n_dims < MSC_MAX_DIMS && read_varint(&value, &f.bytes)) {
                t->dims[t->n_dims++] = (int64_t)value;
            }
        } else if (f.number == 2 && f.kind == 0) {
            bool is_known = f.value < sizeof(dtypes) / sizeof(dtypes[0]);
            t->dtype = is_known ? dtypes[f.value] : MSC_DTYPE_NONE;
        } else if (f.number == 4) {
            add_values(t, &f, 4);
        } else if (f.number == 5 || f.number == 7 || f.number == 11) {
            add_values(t, &f, 0);
        } else if (f.number == 9 && f.kind == 2) {
            t->raw = f.bytes;
        } else if (f.number == 10) {
            add_values(t, &f, 8);
        }
    }
    return s.at == s.end && t->dtype != MSC_DTYPE_NONE;
}

// Returns NULL if the file is not a tensor or has a type or size that we do not support.
static struct msc_array *array_of_file(const char *file, size_t n_bytes) {
    struct tensor_proto t = {.n_dims = 0};
    struct msc_array *array;
    struct span s = {(const unsigned char *)file, (const unsigned char *)file + n_bytes};
    if (!read_tensor(&t, s)) {
        return NULL;
    }
    size_t width = msc_dtype_bytes(t.dtype);
    int64_t n = msc_dims_product(t.n_dims, t.dims);
    bool is_raw = t.raw.at != NULL;
    // The array's size is limited by the stored data, because dims may be wrong.
    if (n < 0 || (is_raw ? (size_t)(t.raw.end - t.raw.at) / width : t.n) != (size_t)n ||
        msc_array_create(&array, t.dtype, t.n_dims, t.dims) != MSC_OK) {
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) { // little-endian: the pattern's low bytes
        memcpy((char *)msc_array_data(array) + (size_t)i * width,
               is_raw ? (const void *)(t.raw.at + (size_t)i * width) : &t.values[i], width);
    }
    return array;
}

static bool load_tensors(struct onnx_tensor tensors[], int *n, const char *folder,
                         const char *name) {
    for (*n = 0; *n < ONNX_CASE_MAX_TENSORS; (*n)++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%d.pb", folder, name, *n);
        if (!msc_file_exists(path)) {
            return true;
        }
        struct onnx_tensor *t = &tensors[*n];
        if (msc_file_read(&t->file, &t->file_bytes, path) != MSC_OK) {
            return false;
        }
        t->array = array_of_file(t->file, t->file_bytes);
    }
    return false;
}

static bool read_node(struct onnx_case *c, struct span s) {
    struct field f;
    if (c->n_ops == ONNX_CASE_MAX_NODES) {
        return false;
    }
    while (read_field(&f, &s)) {
        if (f.number == 4 && f.kind == 2) {
            copy_text(c->ops[c->n_ops], sizeof(c->ops[0]), f.bytes);
        } else if (f.number == 7 && f.kind == 2 && f.bytes.at < f.bytes.end) {
            c->has_domain = true;
        }
    }
    c->n_ops++;
    return true;
}

static bool read_graph(struct onnx_case *c, struct span s) {
    struct field f, name;
    while (read_field(&f, &s)) {
        if (f.number == 1 && f.kind == 2 && !read_node(c, f.bytes)) {
            return false;
        }
        if (f.number == 11 && f.kind == 2) {
            if (c->n_graph_inputs == ONNX_CASE_MAX_TENSORS) {
                return false;
            }
            while (read_field(&name, &f.bytes)) {
                if (name.number == 1 && name.kind == 2) {
                    copy_text(c->input_names[c->n_graph_inputs], sizeof(c->input_names[0]),
                              name.bytes);
                }
            }
            c->n_graph_inputs++;
        }
    }
    return true;
}

bool onnx_case_load(struct onnx_case *c, const char *folder) {
    char path[1024];
    *c = (struct onnx_case){.model = NULL};
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    if (msc_file_read(&c->model, &c->model_bytes, path) != MSC_OK) {
        return false;
    }
    const unsigned char *model = (const unsigned char *)c->model;
    struct span s = {model, model + c->model_bytes};
    struct field f;
    while (read_field(&f, &s)) {
        if (f.number == 7 && f.kind == 2 && !read_graph(c, f.bytes)) {
            return false;
        }
    }
    return load_tensors(c->inputs, &c->n_inputs, folder, "input") &&
           load_tensors(c->outputs, &c->n_outputs, folder, "output");
}

void onnx_case_finish(struct onnx_case *c) {
    for (int i = 0; i < ONNX_CASE_MAX_TENSORS; i++) {
        msc_array_release(c->inputs[i].array);
        msc_array_release(c->outputs[i].array);
        msc_free(c->inputs[i].file);
        msc_free(c->outputs[i].file);
    }
    msc_free(c->model);
}

static void write_varint(struct msc_str *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        msc_str_char(out, (char)(value | 0x80));
    }
    msc_str_char(out, (char)value);
}

static void write_bytes(struct msc_str *out, uint32_t number, const void *bytes, size_t n) {
    write_varint(out, number << 3 | 2);
    write_varint(out, n);
    msc_str_append_n(out, bytes, n);
}

enum msc_status onnx_case_write(const struct onnx_case *c, const char *path, int first) {
    struct msc_str file = {0}, graph = {0}, tensor = {0};
    enum msc_status status;
    msc_str_append_n(&file, c->model, c->model_bytes);
    for (int i = first; i < c->n_inputs; i++) {
        // Protocol buffers merge repeated graph fields of a model into one graph, so initialisers
        // are added by appending another graph field. Each initialiser has the name of a graph
        // input.
        msc_str_clear(&tensor);
        msc_str_append_n(&tensor, c->inputs[i].file, c->inputs[i].file_bytes);
        write_bytes(&tensor, 8, c->input_names[i], strlen(c->input_names[i]));
        write_bytes(&graph, 5, tensor.data, tensor.length);
    }
    if (graph.length > 0) {
        write_bytes(&file, 7, graph.data, graph.length);
    }
    MSC_TRY_OUT(msc_str_status(&graph));
    MSC_TRY_OUT(msc_str_status(&tensor));
    MSC_TRY_OUT(msc_str_status(&file));
    // without msc_file_write, which would wait for the disk
    FILE *f = fopen(path, "wb");
    bool is_written = f && fwrite(file.data, 1, file.length, f) == file.length;
    if (!f || fclose(f) != 0 || !is_written) {
        status = MSC_FAIL(MSC_E_IO, "cannot write %s", path);
    }
out:
    msc_str_finish(&file);
    msc_str_finish(&graph);
    msc_str_finish(&tensor);
    return status;
}
