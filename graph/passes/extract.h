// Cuts a graph into pieces: which joints belong together, and the graph of each piece.
//
//     int32_t *pieces = ...;                                          // [n_joints]
//     MSC_TRY(msc_graph_partition(pieces, &n_pieces, g, colors));
//     MSC_TRY(msc_graph_extract(&piece, g, pieces, 0, "piece0"));
#ifndef MSC_GRAPH_PASSES_EXTRACT_H
#define MSC_GRAPH_PASSES_EXTRACT_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

// Joints that no piece holds: inputs, and constants that are not outputs of the graph. Each piece
// gets its own copy of the constants that it reads.
bool msc_graph_is_shared(const struct msc_graph *g, int32_t joint);

// Groups joints of equal color (colors[n_joints], of shared joints ignored) into pieces:
// pieces[joint] is a number below *n_pieces, or -1 for shared joints. Each piece is connected, and
// pieces form no cycle: no path leaves a piece and returns to it. Two pieces of one color that are
// connected directly are joined unless that would make a cycle. Pieces are numbered in an order in
// which they can run.
enum msc_status msc_graph_partition(int32_t pieces[], int32_t *n_pieces, const struct msc_graph *g,
                                    const int32_t colors[]);

// Whether a tensor may pass between pieces that get one sample after another: the samples are along
// its first axis. A length that is not known is not refused, and without an open number of samples
// (msc_graph_sample_symbol) no tensor is. `lengths` [n_prims] come from msc_graph_sample_lengths.
void msc_graph_sample_lengths(int64_t lengths[], const struct msc_graph *g);
bool msc_graph_counts_samples(const struct msc_graph *g, int32_t tensor, const int64_t lengths[]);

// Makes the graph of a piece, which has the given name. Its inputs are the tensors of other pieces
// and inputs of `g` that its joints read, and its outputs the tensors that other pieces read or
// that are outputs of `g`. Both have the tensors' labels in `g` (msc_tensor_label) as aliases. A
// length that is an expression of symbols becomes a symbol. The weights share their elements. *out
// is owned by the caller.
enum msc_status msc_graph_extract(struct msc_graph **out, const struct msc_graph *g,
                                  const int32_t pieces[], int32_t piece, const char *name);

MSC_PUBLIC_END

#endif
