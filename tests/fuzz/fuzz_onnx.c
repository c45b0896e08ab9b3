// The bytes are an ONNX model: it is imported, written in every printed form, as MSCGraph JSON
// and as ONNX, and each is read back.
#include "graph/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/graph_forms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"model.onnx", "saved.json", "saved.safetensors",
                                        "export.onnx", NULL};
    static const struct msc_binding bindings[] = {{"N", 2}};
    const struct msc_onnx_import_options options = {
        .bindings = bindings, .n_bindings = 1, .keep_batch_norm = true};
    struct msc_graph *g = NULL, *bound = NULL;
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    fuzz_write("model.onnx", data, n_bytes);
    if (fuzz_check(msc_onnx_load(&g, fuzz_path("model.onnx"), NULL)) == MSC_OK) {
        fuzz_use_graph(g);
    }
    fuzz_check(msc_onnx_load(&bound, fuzz_path("model.onnx"), &options));
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    fuzz_check_files(files);
    return 0;
}
