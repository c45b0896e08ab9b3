// Notes: information in a model file that is not part of the network, such as class names, a sample
// rate or a licence. Notes never change what is computed. A graph made from another (by binding,
// pruning, ...) has the same notes, and exports write them.
//
//     const struct msc_graph_notes *notes = msc_graph_notes(graph);
//     for (size_t i = 0; i < notes->n_metadata; i++) { ... notes->metadata[i].key ... }
#ifndef MSC_GRAPH_NOTES_H
#define MSC_GRAPH_NOTES_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// Versions of ONNX's own operator set that models may use.
enum {
    MSC_ONNX_OLDEST_OPSET = 1,
    MSC_ONNX_NEWEST_OPSET = 28,
};

// Strings are copied from the model file byte for byte. In the notes of a graph they are never
// NULL; "" means absent.
struct msc_graph_notes {
    int64_t opset;         // version of ONNX's own operator set; 0: unknown
    int64_t model_version; // 0: absent
    const char *doc, *graph_doc, *domain;
    size_t n_metadata;
    const struct msc_attr *metadata; // in the order of the file; each key once
    size_t n_input_docs, n_output_docs;
    const struct msc_attr *input_docs, *output_docs; // keys are names of tensors; each key once
    // Attributes have the order of the file, and defaults that the file leaves out follow. If
    // false, attributes are sorted by key. Readers of the JSON and text forms set this if a joint
    // of the file has attributes in another order, as Relax's operators do.
    bool keeps_attr_order;
};

const struct msc_graph_notes *msc_graph_notes(const struct msc_graph *g); // borrowed, never NULL
// Replaces the graph's notes by a copy of `notes`. If a key occurs more than once, the last value
// is kept, as in ONNX Runtime.
enum msc_status msc_graph_set_notes(struct msc_graph *g, const struct msc_graph_notes *notes);
// True if any note is set.
bool msc_graph_has_notes(const struct msc_graph *g);

MSC_PUBLIC_END

#endif
