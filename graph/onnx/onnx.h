// ONNX in and out.
//
// In: opsets 1 to 21, initialisers, Constant nodes and external data (only inside the model's own
// folder), float32 networks. Weights stored as integers with a scale become floats. Constants that
// feed only an operator's parameters become attributes, BatchNormalization is folded into the
// convolution before it, chains of shape arithmetic over fixed shapes are folded. Names: a joint
// has its node's name when that is not empty and unique, an activation's alias is its ONNX value
// name, a weight keeps its initialiser's name.
//
// Out: the least opset from 13 on that holds what is written and is not below the model's own.
#ifndef MSC_GRAPH_ONNX_ONNX_H
#define MSC_GRAPH_ONNX_ONNX_H

#include "data/npy.h"
#include "graph/edit.h"
#include "graph/notes.h"
#include "graph/site.h"

MSC_PUBLIC_BEGIN

struct msc_onnx_import_options {
    const struct msc_binding *bindings; // symbols bound at import; may be NULL
    size_t n_bindings;
    bool keep_batch_norm; // do not fold
    // Operators mean what ONNX's text says, for its test data; else what they mean to a target
    // (graph/targets.def), of which all agree with `generic`.
    bool by_text;
    // By input: what the graph is read for, and only that. Lengths, and integers of at most one
    // dimension, are taken as they are there. May be NULL.
    const struct msc_array_list *feeds;
    // By name, of the same shape, and of the same type or both floats: elements in place of the initialisers'.
    // May be NULL.
    const struct msc_array_list *weights;
};

// *out is finalized and owned by the caller. `options` may be NULL. Errors name the file, the node
// (by name or index and operator) and what is wrong: MSC_E_FORMAT damaged, MSC_E_UNSUPPORTED an
// operator, attribute value or type outside the table, MSC_E_INVALID weights with NaN or infinity.
enum msc_status msc_onnx_load(struct msc_graph **out, const char *path,
                              const struct msc_onnx_import_options *options);

// The files beside a model that hold weights of it, in the arena; none of them is opened.
enum msc_status msc_onnx_locations(const char *const **out, size_t *n, struct msc_arena *arena,
                                   const char *path);

struct msc_onnx_export_options {
    const struct msc_sites *sites;
    const struct msc_edit *const *slot_edits; // [sites->n_slots], NULL entries stay float; or NULL
    // n_metadata pairs, beside those of the graph's notes; of equal keys these are written.
    const char *const (*metadata)[2];
    size_t n_metadata;
};

// Writes the graph, with QuantizeLinear/DequantizeLinear pairs around the edited slots: weights as
// stored integers with DequantizeLinear, activations as a pair shared by the slots of equal edits.
// 2-8 bits use (u)int8, 9-16 bits (u)int16, weights of exactly 4 bits and those of fewer in groups
// (u)int4 (for activations ONNX Runtime does not take these at its default optimisation level);
// ranges narrower than the type are kept by a Clip before the pair (activations) or by the stored
// integers (weights). Weights in groups are blocks; where groups run over several axes these are
// stored as one and a Reshape follows. Float types: weights are stored so behind a Cast,
// activations cast there and back. Masks are a Mul of the activation before the pair; replaced and
// masked weights, replaced, masked and rounded biases are written as such. Where the sites' target has
// forms (graph/target.h), joints between pairs are written in these. Joints that hold others
// are written as these; with edits the graph must be split before (MSC_E_STATE). Complete or
// absent. Values keep their ONNX names.
enum msc_status msc_onnx_save(const struct msc_graph *g, const char *path,
                              const struct msc_onnx_export_options *options);
// The size of the file that msc_onnx_save would write, without metadata and the model's notes.
enum msc_status msc_onnx_measure(uint64_t *n_bytes, const struct msc_graph *g,
                                 const struct msc_onnx_export_options *options);

MSC_PUBLIC_END

#endif
