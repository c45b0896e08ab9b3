// Reads the notes of an ONNX file, and writes notes to exported files.
#include "graph/notes.h"

#include "graph/onnx/onnx_export_internal.h"
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// Keys that MSC writes. Values from an earlier export are no longer valid and are dropped.
#define OWN_PREFIX "mscgym."

static const char *text_of(const char *text) {
    return text == NULL ? "" : text;
}

static enum msc_status take_docs(const struct msc_attr **out, size_t *n, struct msc_onnx_import *im,
                                 Onnx__ValueInfoProto *const values[], size_t n_values) {
    struct msc_attr *docs = msc_arena_array(&im->builder.arena, n_values + 1, sizeof(docs[0]));
    MSC_TRY(MSC_ALLOCATED(docs));
    for (size_t i = 0; i < n_values; i++) {
        if (text_of(values[i]->doc_string)[0] != '\0') {
            docs[(*n)++] = (struct msc_attr){text_of(values[i]->name), values[i]->doc_string};
        }
    }
    *out = docs;
    return MSC_OK;
}

enum msc_status msc_onnx__read_notes(struct msc_onnx_import *im) {
    const Onnx__ModelProto *m = im->model;
    const Onnx__GraphProto *g = m->graph;
    struct msc_attr *metadata =
        msc_arena_array(&im->builder.arena, m->n_metadata_props + 1, sizeof(metadata[0]));
    struct msc_graph_notes notes = {.opset = im->opset,
                                    .model_version = m->has_model_version ? m->model_version : 0,
                                    .doc = m->doc_string,
                                    .graph_doc = g->doc_string,
                                    .domain = m->domain,
                                    .metadata = metadata};
    MSC_TRY(MSC_ALLOCATED(metadata));
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = m->metadata_props[i];
        if (strncmp(text_of(entry->key), OWN_PREFIX, strlen(OWN_PREFIX)) != 0) {
            metadata[notes.n_metadata++] =
                (struct msc_attr){text_of(entry->key), text_of(entry->value)};
        }
    }
    MSC_TRY(take_docs(&notes.input_docs, &notes.n_input_docs, im, g->input, g->n_input));
    MSC_TRY(take_docs(&notes.output_docs, &notes.n_output_docs, im, g->output, g->n_output));
    return msc_graph_set_notes(im->builder.graph, &notes);
}

static void add_entry(Onnx__ModelProto *model, Onnx__StringStringEntryProto *entry, const char *key,
                      const char *value) {
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)key;
    entry->value = (char *)value;
    model->metadata_props[model->n_metadata_props++] = entry;
}

// True if the options' metadata replace this key of the model.
static bool is_replaced(const struct msc_onnx_export *e, const char *key) {
    for (size_t i = 0; i < e->options->n_metadata; i++) {
        if (strcmp(e->options->metadata[i][0], key) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status write_metadata(Onnx__ModelProto *model, struct msc_onnx_export *e) {
    const struct msc_graph_notes *notes = msc_graph_notes(e->graph);
    size_t n = notes->n_metadata + e->options->n_metadata;
    model->metadata_props = msc_arena_array(&e->arena, n + 1, sizeof(model->metadata_props[0]));
    Onnx__StringStringEntryProto *entries = msc_arena_array(&e->arena, n + 1, sizeof(entries[0]));
    MSC_TRY(MSC_ALLOCATED(model->metadata_props && entries));
    for (size_t i = 0; i < notes->n_metadata; i++) {
        if (!is_replaced(e, notes->metadata[i].key)) {
            add_entry(model, entries++, notes->metadata[i].key, notes->metadata[i].value);
        }
    }
    for (size_t i = 0; i < e->options->n_metadata; i++) {
        add_entry(model, entries++, e->options->metadata[i][0], e->options->metadata[i][1]);
    }
    return MSC_OK;
}

static char *given(const char *text) {
    return text == NULL || text[0] == '\0' ? NULL : (char *)text;
}

static void write_docs(Onnx__ValueInfoProto *const values[], size_t n_values,
                       const struct msc_attr docs[], size_t n_docs) {
    for (size_t i = 0; i < n_values; i++) {
        for (size_t k = 0; k < n_docs; k++) {
            if (strcmp(docs[k].key, values[i]->name) == 0) {
                values[i]->doc_string = (char *)docs[k].value;
            }
        }
    }
}

enum msc_status msc_onnx__write_notes(Onnx__ModelProto *model, struct msc_onnx_export *e) {
    const struct msc_graph_notes *notes = msc_graph_notes(e->graph);
    model->doc_string = given(notes->doc);
    model->domain = given(notes->domain);
    model->has_model_version = notes->model_version != 0;
    model->model_version = notes->model_version;
    model->graph->doc_string = given(notes->graph_doc);
    write_docs(model->graph->input, model->graph->n_input, notes->input_docs, notes->n_input_docs);
    write_docs(model->graph->output, model->graph->n_output, notes->output_docs,
               notes->n_output_docs);
    return write_metadata(model, e);
}
