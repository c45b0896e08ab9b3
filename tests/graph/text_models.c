// Checks that graphs read back from their text and JSON forms, for many models and at all stages:
// imported, after the passes, without fused joints, bound, and in float32.
//
//     text_models [--at-least N] PATH...
//
// A path is an ONNX file, or a folder that is searched for ONNX files. Models that cannot be read
// are counted. Exits with 1 if a form reads back as another graph, or if fewer than N models were
// read; with 77 if a path does not exist.
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/npy.h"
#include "graph/graph_internal.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/wide.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 3, MAX_INPUTS = 64, MAX_FOLDERS_OPEN = 16 };

// nftw passes no payload to its callback.
static struct { int n_models, n_refused, n_graphs, n_failed; } counts;

typedef void (*write_form)(const struct msc_graph *g, struct msc_str *out);
typedef enum msc_status (*read_form)(struct msc_graph **out, const char *text, size_t length,
                                     const char *name, const struct msc_array_list *weights,
                                     struct msc_operators *operators);

static void report(const char *path, const char *stage, const char *form, const char *what) {
    printf("FAIL %s: %s: %s: %s\n", path, stage, form, what);
    counts.n_failed++;
}

static const struct form {
    const char *name;
    write_form write;
    read_form read;
} forms[] = {
    {"text", msc_graph_print, msc_graph_read_text},
    {"json", msc_graph_write_json, msc_graph_read_json},
};

static bool is_written_as(const struct msc_graph *g, const struct form *form,
                          const struct msc_str *text) {
    struct msc_str again = {0};
    form->write(g, &again);
    bool is_same =
        msc_str_status(&again) == MSC_OK && strcmp(msc_str_text(&again), msc_str_text(text)) == 0;
    msc_str_finish(&again);
    return is_same;
}

// Reads the form with the weights (NULL: without) and compares.
static void check_read(const char *path, const char *stage, const struct form *form,
                       const struct msc_graph *g, const struct msc_str *text,
                       const struct msc_array_list *weights) {
    struct msc_graph *read = NULL;
    if (form->read(&read, text->data, text->length, form->name, weights, NULL) != MSC_OK) {
        report(path, stage, form->name, msc_status_message());
        return;
    }
    if (weights != NULL && !msc_graph_equal(g, read, true)) {
        report(path, stage, form->name, "reads back as another graph");
    } else if (!msc_hash_equal(msc_graph_hash(g), msc_graph_hash(read))) {
        report(path, stage, form->name, "reads back with another hash");
    } else if (!is_written_as(read, form, text)) {
        report(path, stage, form->name, "reads back as another text");
    }
    msc_graph_destroy(read);
}

static void check_graph(const char *path, const char *stage, const struct msc_graph *g) {
    struct msc_arena arena = {0};
    struct msc_array_list weights = {0};
    counts.n_graphs++;
    if (msc_graph_list_weights(&weights, &arena, g, "") != MSC_OK) {
        report(path, stage, "weights", msc_status_message());
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct msc_str text = {0};
        forms[i].write(g, &text);
        check_read(path, stage, &forms[i], g, &text, &weights);
        check_read(path, stage, &forms[i], g, &text, NULL);
        msc_str_finish(&text);
    }
    msc_array_list_finish(&weights);
    msc_arena_finish(&arena);
}

// A copy in which every symbolic length of an input is LENGTH; NULL if the model refuses it.
static struct msc_graph *bind(const struct msc_graph *g) {
    struct msc_input_shape shapes[MAX_INPUTS];
    struct msc_graph *bound = NULL;
    int32_t n = msc_graph_n_inputs(g);
    if (n > MAX_INPUTS) {
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        shapes[i].n_dims = t->n_dims;
        for (int d = 0; d < t->n_dims; d++) {
            shapes[i].dims[d] = t->dims[d] < 0 ? LENGTH : t->dims[d];
        }
    }
    return msc_graph_bind_shapes(&bound, g, shapes, (size_t)n) == MSC_OK ? bound : NULL;
}

// Checks the graph, which may be NULL, and destroys it.
static void check_stage(const char *path, const char *stage, struct msc_graph *g) {
    if (g != NULL) {
        check_graph(path, stage, g);
    }
    msc_graph_destroy(g);
}

static void check_model(const char *path) {
    static const struct msc_onnx_import_options kept = {.keep_batch_norm = true};
    struct msc_graph *g = NULL, *other = NULL;
    int32_t n_taken;
    counts.n_models++;
    if (msc_onnx_load(&g, path, NULL) != MSC_OK) {
        counts.n_refused++;
        return;
    }
    check_graph(path, "passes", g);
    if (msc_onnx_load(&other, path, &kept) == MSC_OK) {
        check_stage(path, "batch norm kept", other);
    }
    if (msc_graph_split(&other, g) == MSC_OK) {
        check_stage(path, "split", other);
    }
    if (msc_graph_widen(&other, g) == MSC_OK) {
        check_stage(path, "wide", other);
    }
    const struct msc_array *unknown[MAX_INPUTS] = {NULL};
    size_t n_inputs = (size_t)msc_graph_n_inputs(g);
    if (n_inputs <= MAX_INPUTS &&
        msc_graph_take_branches(&other, &n_taken, g, unknown, n_inputs) == MSC_OK) {
        check_stage(path, "branches", other);
    }
    check_stage(path, "bound", bind(g));
    msc_graph_destroy(g);
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info;
    (void)place;
    if (type == FTW_F && msc_path_ends_in(path, ".onnx")) {
        check_model(path);
    }
    return 0;
}

int main(int argc, char **argv) {
    int at_least = 1, first = 1;
    if (argc > 2 && strcmp(argv[1], "--at-least") == 0) {
        at_least = atoi(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        if (nftw(argv[i], visit, MAX_FOLDERS_OPEN, FTW_PHYS) != 0) {
            printf("skipped: %s does not exist\n", argv[i]);
            return 77;
        }
    }
    printf("%d models (%d refused), %d graphs, %d failures\n", counts.n_models, counts.n_refused,
           counts.n_graphs, counts.n_failed);
    return counts.n_failed > 0 || counts.n_models - counts.n_refused < at_least;
}
