// Reads the network of a GGUF file as a graph: a decoder whose input is `input_ids` [batch,
// sequence], and whose output is `logits` [batch, sequence, vocabulary]. The file has weights and
// numbers; which network they belong to follows from `general.architecture`.
//
//     MSC_TRY(msc_gguf_to_text(&text, &n_bytes, &weights, "model.gguf"));
//     MSC_TRY(msc_graph_read_text(&graph, text, n_bytes, "model.gguf", &weights, NULL));
//
// Weights keep the names that they have in the file. They are decoded to float32.
#ifndef MSC_GRAPH_GGUF_DECODER_H
#define MSC_GRAPH_GGUF_DECODER_H

#include "data/npy.h"

// Writes the graph in its text form (docs/text-form.md), and its weights. The caller owns *text
// (msc_free) and finishes the list. MSC_E_UNSUPPORTED: the architecture, or a part of it, is not
// known.
enum msc_status msc_gguf_to_text(char **text, size_t *n_bytes, struct msc_array_list *weights,
                                 const char *path);

#endif
