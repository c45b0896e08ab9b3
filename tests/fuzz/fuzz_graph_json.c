// The bytes are an MSCGraph JSON, a NUL, and a safetensors file with its weights. The graph is
// read, written in every form, and each form is read back.
#include "base/alloc.h"
#include "data/safetensors.h"
#include "graph/onnx/load.h"
#include "graph/passes/bind.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/graph_forms.h"

#include <string.h>

static void read_alone(const char *text, size_t length) {
    struct msc_graph *g = NULL;
    if (fuzz_check(msc_graph_read_json(&g, text, length, "model.json", NULL, NULL)) == MSC_OK) {
        struct msc_graph *split = NULL;
        fuzz_check(msc_graph_split(&split, g));
        msc_graph_destroy(split);
    }
    msc_graph_destroy(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"model.json", "model.safetensors", "export.onnx", NULL};
    struct msc_graph *g = NULL;
    const uint8_t *end = n_bytes > 0 ? memchr(data, '\0', n_bytes) : NULL;
    if (!end || n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    size_t length = (size_t)(end - data);
    fuzz_write("model.json", data, length);
    fuzz_write("model.safetensors", end + 1, n_bytes - length - 1);
    if (fuzz_check(msc_graph_load(&g, fuzz_path("model.json"))) == MSC_OK) {
        fuzz_use_graph(g);
    }
    msc_graph_destroy(g);
    read_alone((const char *)data, length);
    fuzz_check_files(files);
    return 0;
}
