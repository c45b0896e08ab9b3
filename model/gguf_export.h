// Writes a GGUF model with the weights of a plan, and the plan as a list of types for llama.cpp's
// llama-quantize.
//
// The list has a line "^NAME$=TYPE" for each matrix. llama-quantize takes the name as a regular
// expression and keeps tensors of one axis as they are, so they are not in the list.
//
//     const struct msc_gguf_export e = {.graph = g, .strategy = s, .model = "model.gguf",
//                                       .output = "small.gguf", .types = "types.txt"};
//     MSC_TRY(msc_gguf_export(&n_bytes, &e));
#ifndef MSC_MODEL_GGUF_EXPORT_H
#define MSC_MODEL_GGUF_EXPORT_H

#include "graph/graph.h"

struct msc_strategy;

struct msc_gguf_export {
    const struct msc_graph *graph;       // of the model
    const struct msc_strategy *strategy; // NULL: no edits
    const char *model;                   // the GGUF file that the graph was read from
    const char *output, *types;          // the files to write; each may be NULL
};

// Tensors without an edit are copied. All values of the model are kept; `general.file_type` becomes
// the type with the most bytes. *n_bytes is the sum of the bytes of all tensors, without the gaps
// between them. MSC_E_UNSUPPORTED: GGUF cannot store an edit.
enum msc_status msc_gguf_export(uint64_t *n_bytes, const struct msc_gguf_export *e);

#endif
