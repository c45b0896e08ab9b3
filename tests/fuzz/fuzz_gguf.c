// A GGUF file as a model, and any bytes as an importance file of llama.cpp. A model that loads is
// written in every form and as GGUF; the latter must have the same graph.
#include "graph/onnx/load.h"
#include "model/gguf_export.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/graph_forms.h"
#include "tools/importance.h"

#include <stdio.h>

static void write_again(const struct msc_graph *g) {
    struct msc_graph *again = NULL;
    uint64_t n_bytes;
    char model[256], output[256];
    snprintf(model, sizeof(model), "%s", fuzz_path("model.gguf"));
    snprintf(output, sizeof(output), "%s", fuzz_path("again.gguf"));
    const struct msc_gguf_export e = {.graph = g, .model = model, .output = output};
    if (fuzz_check(msc_gguf_export(&n_bytes, &e)) != MSC_OK) {
        return;
    }
    if (fuzz_check(msc_graph_load(&again, output)) != MSC_OK) {
        fuzz_fail("a GGUF file of our own is refused");
    }
    if (!msc_hash_equal(msc_graph_hash(g), msc_graph_hash(again))) {
        fuzz_fail("a GGUF file reads as another graph than was written");
    }
    msc_graph_destroy(again);
    fuzz_remove("again.gguf");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"model.gguf", "export.onnx", NULL};
    struct msc_graph *g = NULL;
    struct msc_array_list list = {0};
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    fuzz_write("model.gguf", data, n_bytes);
    if (fuzz_check(msc_graph_load(&g, fuzz_path("model.gguf"))) == MSC_OK) {
        fuzz_use_graph(g);
        write_again(g);
    }
    msc_graph_destroy(g);
    fuzz_check(msc_importance_load(&list, fuzz_path("model.gguf")));
    msc_array_list_finish(&list);
    fuzz_check_files(files);
    return 0;
}
