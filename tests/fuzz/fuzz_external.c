// External data of an ONNX model: the entries of a tensor and the file they name, "w.bin". The
// first byte is the tensor's type (an enum of onnx.proto), the second the number of entries. Keys
// and values follow in turn, then the file's contents; each ends with a NUL except the last.
//
// A tensor that loads must have the file's bytes at the given offset, and nothing outside the
// folder may be read.
#include "base/alloc.h"
#include "graph/onnx/onnx.h"
#include "onnx.pb-c.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 6, N_ELEMENTS = 4 };

struct entries {
    Onnx__StringStringEntryProto protos[MAX_ENTRIES];
    Onnx__StringStringEntryProto *pointers[MAX_ENTRIES];
    size_t n;
};

// Returns the text up to the next NUL, or "" at the end, and moves *data after it.
static char *next_text(const uint8_t **data, size_t *n_bytes, char *memory) {
    const uint8_t *end = *n_bytes > 0 ? memchr(*data, 0, *n_bytes) : NULL;
    size_t length = end ? (size_t)(end - *data) : *n_bytes;
    memcpy(memory, *data, length);
    memory[length] = '\0';
    *data += length + (end ? 1 : 0);
    *n_bytes -= length + (end ? 1 : 0);
    return memory;
}

static void write_model(const struct entries *entries, int32_t type) {
    char name[] = "w", output[] = "y", op[] = "Identity";
    int64_t dims[] = {N_ELEMENTS};
    Onnx__TensorProto tensor = ONNX__TENSOR_PROTO__INIT, *tensors[] = {&tensor};
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes[] = {&node};
    Onnx__ValueInfoProto value = ONNX__VALUE_INFO_PROTO__INIT, *values[] = {&value};
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    char *inputs[] = {name}, *outputs[] = {output};
    tensor.name = name;
    tensor.n_dims = 1;
    tensor.dims = dims;
    tensor.has_data_type = 1;
    tensor.data_type = type;
    tensor.has_data_location = 1;
    tensor.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor.n_external_data = entries->n;
    tensor.external_data = (Onnx__StringStringEntryProto **)entries->pointers;
    node.n_input = node.n_output = 1;
    node.input = inputs;
    node.output = outputs;
    node.op_type = op;
    value.name = output;
    graph.n_node = graph.n_initializer = graph.n_output = 1;
    graph.node = nodes;
    graph.initializer = tensors;
    graph.output = values;
    opset.has_version = 1;
    opset.version = 13;
    model.has_ir_version = 1;
    model.ir_version = 8;
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = opsets;
    uint8_t *bytes = malloc(onnx__model_proto__get_packed_size(&model));
    fuzz_write("m.onnx", bytes, onnx__model_proto__pack(&model, bytes));
    free(bytes);
}

static const char *value_of(const struct entries *entries, const char *key) {
    for (size_t i = 0; i < entries->n; i++) {
        if (strcmp(entries->protos[i].key, key) == 0) {
            return entries->protos[i].value;
        }
    }
    return NULL;
}

// Checks a float32 tensor, whose bytes are not converted.
static void check_weight(const struct msc_graph *g, const struct entries *entries,
                         const uint8_t *file, size_t n_bytes) {
    const char *offset = value_of(entries, "offset");
    unsigned long long at = offset ? strtoull(offset, NULL, 10) : 0;
    size_t n = N_ELEMENTS * sizeof(float);
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        if (t->data && t->dtype == MSC_DTYPE_F32 &&
            (at > n_bytes || n > n_bytes - at ||
             memcmp(msc_array_data(t->data), file + at, n) != 0)) {
            fuzz_fail("a weight is not what stands in its file");
        }
    }
}

static void load(const struct entries *entries, const uint8_t *file, size_t n_bytes) {
    struct msc_graph *g = NULL;
    struct msc_arena arena = {0};
    const char *const *paths;
    size_t n = 0;
    fuzz_check(msc_onnx_locations(&paths, &n, &arena, fuzz_path("m.onnx")));
    if (fuzz_check(msc_onnx_load(&g, fuzz_path("m.onnx"), NULL)) == MSC_OK) {
        const char *location = value_of(entries, "location");
        // Only relative names without ".." that lead to w.bin may have been read.
        if (!location || location[0] == '/' || strstr(location, "..") ||
            !strstr(location, "w.bin")) {
            fuzz_fail("a file was read that is not the model's");
        }
        check_weight(g, entries, file, n_bytes);
    }
    msc_graph_destroy(g);
    msc_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"m.onnx", "w.bin", NULL};
    struct entries entries = {.n = 0};
    if (n_bytes < 2 || n_bytes > 4096) {
        return -1;
    }
    char *memory = malloc(2 * n_bytes + 2 * MAX_ENTRIES + 2), *at = memory;
    int32_t type = data[0] % 32;
    entries.n = data[1] % (MAX_ENTRIES + 1);
    data += 2;
    n_bytes -= 2;
    for (size_t i = 0; i < entries.n; i++) {
        entries.protos[i] = (Onnx__StringStringEntryProto)ONNX__STRING_STRING_ENTRY_PROTO__INIT;
        entries.pointers[i] = &entries.protos[i];
        entries.protos[i].key = next_text(&data, &n_bytes, at);
        at += strlen(at) + 1;
        entries.protos[i].value = next_text(&data, &n_bytes, at);
        at += strlen(at) + 1;
    }
    fuzz_write("w.bin", data, n_bytes);
    write_model(&entries, type);
    load(&entries, data, n_bytes);
    free(memory);
    fuzz_check_files(files);
    return 0;
}
