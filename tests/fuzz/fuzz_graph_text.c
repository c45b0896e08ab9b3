// The bytes are an MSCGraph as text, a NUL, and a safetensors file with its weights; the NUL and
// the weights may be missing. The graph is read, written in every form, and each form is read back.
// The text is also read without weights; then the printed graph must read back as the same text.
#include "base/alloc.h"
#include "base/str.h"
#include "graph/onnx/load.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/graph_forms.h"

#include <string.h>

static void read_alone(const char *text, size_t length) {
    struct msc_graph *g = NULL, *again = NULL;
    struct msc_str first = {0}, second = {0};
    if (fuzz_check(msc_graph_read_text(&g, text, length, "model.msc", NULL, NULL)) == MSC_OK) {
        msc_graph_print(g, &first);
        if (fuzz_check(msc_graph_read_text(&again, msc_str_text(&first), first.length, "printed",
                                           NULL, NULL)) != MSC_OK) {
            fuzz_fail("a printed graph is refused");
        }
        msc_graph_print(again, &second);
        if (strcmp(msc_str_text(&first), msc_str_text(&second)) != 0) {
            fuzz_fail("a printed graph reads as another graph");
        }
    }
    msc_str_finish(&first);
    msc_str_finish(&second);
    msc_graph_destroy(g);
    msc_graph_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"model.msc", "model.safetensors", "export.onnx", NULL};
    struct msc_graph *g = NULL;
    const uint8_t *end = n_bytes > 0 ? memchr(data, '\0', n_bytes) : NULL;
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    size_t length = end == NULL ? n_bytes : (size_t)(end - data);
    fuzz_write("model.msc", data, length);
    if (end == NULL) {
        fuzz_remove("model.safetensors");
    } else {
        fuzz_write("model.safetensors", end + 1, n_bytes - length - 1);
    }
    if (fuzz_check(msc_graph_load(&g, fuzz_path("model.msc"))) == MSC_OK) {
        fuzz_use_graph(g);
    }
    msc_graph_destroy(g);
    read_alone((const char *)data, length);
    fuzz_check_files(files);
    return 0;
}
