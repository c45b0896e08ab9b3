// Writes, reads back and binds a graph, as declared in graph_forms.h.
#include "tests/fuzz/graph_forms.h"

#include "base/json.h"
#include "base/str.h"
#include "graph/cost.h"
#include "graph/onnx/load.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/site.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { LENGTH = 3, MAX_INPUTS = 8 }; // every symbol is bound to LENGTH

static void print_all(const struct msc_graph *g) {
    struct msc_str text = {0};
    cJSON *counts = NULL;
    msc_graph_print(g, &text);
    msc_graph_write_prototxt(g, &text);
    fuzz_check(msc_str_status(&text));
    msc_str_finish(&text);
    if (fuzz_check(msc_graph_inspect(g, &counts)) == MSC_OK) {
        cJSON_Delete(counts);
    }
    msc_graph_hash(g);
    msc_graph_weights_hash(g);
}

static void find_sites(const struct msc_graph *g) {
    struct msc_graph *split = NULL;
    struct msc_sites sites = {0};
    if (fuzz_check(msc_graph_split(&split, g)) == MSC_OK) {
        fuzz_check(msc_sites_find(&sites, split, &(struct msc_site_scheme){.by_use = true}));
        msc_sites_finish(&sites);
        fuzz_check(msc_sites_find(&sites, split, NULL));
    }
    msc_sites_finish(&sites);
    msc_graph_destroy(split);
}

// Saves the graph in a form of MSCGraph and reads it; writing it again must give the same text.
static void write_form(const struct msc_graph *g, const char *file,
                       void (*write)(const struct msc_graph *g, struct msc_str *out)) {
    struct msc_graph *again = NULL;
    struct msc_str first = {0}, second = {0};
    if (fuzz_check(msc_graph_save(g, fuzz_path(file))) == MSC_OK) {
        if (fuzz_check(msc_graph_load(&again, fuzz_path(file))) != MSC_OK) {
            fuzz_fail("an MSCGraph of our own is refused");
        }
        write(g, &first);
        write(again, &second);
        if (strcmp(msc_str_text(&first), msc_str_text(&second)) != 0) {
            fuzz_fail("an MSCGraph reads as another graph");
        }
    }
    msc_str_finish(&first);
    msc_str_finish(&second);
    msc_graph_destroy(again);
    fuzz_remove(file);
    fuzz_remove("saved.safetensors");
}

static void write_onnx(const struct msc_graph *g) {
    static const char *const metadata[1][2] = {{"key", "value"}};
    const struct msc_onnx_export_options options = {.metadata = metadata, .n_metadata = 1};
    struct msc_graph *again = NULL;
    if (fuzz_check(msc_onnx_save(g, fuzz_path("export.onnx"), &options)) == MSC_OK) {
        fuzz_check(msc_graph_load(&again, fuzz_path("export.onnx")));
    }
    msc_graph_destroy(again);
}

static void bind(const struct msc_graph *g) {
    struct msc_graph *bound = NULL;
    struct msc_input_shape shapes[MAX_INPUTS];
    int32_t n = msc_graph_n_inputs(g);
    if (n > MAX_INPUTS) {
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        shapes[i].n_dims = t->n_dims;
        for (int d = 0; d < t->n_dims; d++) {
            shapes[i].dims[d] = t->dims[d] < 0 ? LENGTH : t->dims[d];
        }
    }
    if (fuzz_check(msc_graph_bind_shapes(&bound, g, shapes, (size_t)n)) == MSC_OK) {
        for (int32_t i = 0; i < msc_graph_n_joints(bound); i++) {
            msc_joint_macs(bound, msc_graph_joint(bound, i));
        }
        print_all(bound);
        write_onnx(bound);
    }
    msc_graph_destroy(bound);
}

void fuzz_use_graph(const struct msc_graph *g) {
    print_all(g);
    find_sites(g);
    write_form(g, "saved.json", msc_graph_write_json);
    write_form(g, "saved.msc", msc_graph_print);
    write_onnx(g);
    bind(g);
}
