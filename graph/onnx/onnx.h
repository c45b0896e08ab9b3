// Reads and writes ONNX files.
//
// Import: opsets 1 to 28, initialisers, Constant nodes and external data (only in the model's own
// folder). Weights stored as integers with a scale become floats. Constants used only as parameters
// of an operator become attributes. BatchNormalization is folded into the convolution before it,
// and shape arithmetic on fixed shapes is folded. Names: a joint has its node's name if this is
// unique and not empty; an activation's alias is its ONNX value name; a weight has its
// initialiser's name.
//
// Export: uses the lowest opset that supports every node written. It is at least 13 and at least
// the model's own.
#ifndef MSC_GRAPH_ONNX_ONNX_H
#define MSC_GRAPH_ONNX_ONNX_H

#include "data/npy.h"
#include "graph/edit.h"
#include "graph/notes.h"
#include "graph/site.h"

MSC_PUBLIC_BEGIN

struct msc_operators;

struct msc_onnx_import_options {
    const struct msc_binding *bindings; // symbols bound at import; may be NULL
    size_t n_bindings;
    bool keep_batch_norm; // do not fold batch normalisation
    bool keep_joints;     // run no pass, so that most nodes remain one joint
    // True, for ONNX's test data: operators behave as ONNX's specification says. False: they behave
    // as on the target `generic` (graph/targets.def), whose behaviour all targets share.
    bool by_text;
    // Inputs by name; the graph will be valid only for these inputs. The lengths of inputs, and the
    // values of integer inputs of at most one dimension, become constants. May be NULL.
    const struct msc_array_list *feeds;
    // New elements for initialisers, by name. Shape and type must match the initialiser's; floats
    // may differ in width. Shapes may be smaller if these are all weights of a network from which
    // channels were removed. May be NULL.
    const struct msc_array_list *weights;
    // Plug-ins that compute external joints (graph/external.h). May be NULL.
    struct msc_operators *operators;
};

// *out is finalized and owned by the caller. `options` may be NULL. Errors name the file, the
// node (by name or index, and operator) and the cause. MSC_E_FORMAT: damaged. MSC_E_UNSUPPORTED:
// an operator, attribute value or type that is not supported. MSC_E_INVALID: weights with NaN or
// infinity.
enum msc_status msc_onnx_load(struct msc_graph **out, const char *path,
                              const struct msc_onnx_import_options *options);

// Finds the paths of the other files that hold the model's weights. The paths are in the arena; the
// files are not opened.
enum msc_status msc_onnx_locations(const char *const **out, size_t *n, struct msc_arena *arena,
                                   const char *path);

struct msc_onnx_export_options {
    const struct msc_sites *sites;
    // [sites->n_slots]; NULL entry: the slot remains float. May be NULL.
    const struct msc_edit *const *slot_edits;
    // n_metadata pairs (key, value), added to the graph's notes. If keys are equal, these pairs
    // win.
    const char *const (*metadata)[2];
    size_t n_metadata;
    // Write a weight that was read as bytes with a scale in this form again (data/array_codes.h).
    // False: write its elements as floats. Biases stay floats.
    bool keeps_codes;
    // If the file would have more bytes than this, its tensors are written to a second file,
    // PATH.data (ONNX's external data). 0: 2^31 - 1, protobuf's limit.
    uint64_t most_bytes;
};

// Writes the graph with QDQ pairs (QuantizeLinear, DequantizeLinear) at the edited slots. A
// weight is stored as integers with a DequantizeLinear. An activation gets one pair for all slots
// with equal edits.
//   - Types: 2-8 bits use (u)int8, 9-16 bits (u)int16. Weights of 4 bits, and grouped weights of
//     fewer bits, use (u)int4. (ONNX Runtime rejects (u)int4 for activations at its default
//     optimisation level.) If the range is narrower than the type, a Clip before the pair enforces
//     it for activations; the stored integers of weights are already within it.
//   - Groups of weights become blocks. If groups extend over several axes, these axes are stored
//     as one axis, and a Reshape restores them.
//   - Float types: a weight is stored in the type and followed by a Cast; an activation is cast to
//     the type and back.
//   - Masks: a Mul of the activation before the pair. Replaced and masked weights, and replaced,
//     masked and rounded biases, are stored with their new elements.
//   - If the sites' target has forms (graph/target.h), joints between pairs are written as the node
//     patterns that this target fuses.
// A wide graph (graph/wide.h) is written in the model's own types, except for joints with edits and
// joints whose outputs have edits. These are written in float32; Casts connect them with the
// others. Fused joints are written as the joints that they contain; with edits the graph must be
// split first (MSC_E_STATE). The file is either complete or does not exist, and PATH.data is
// complete before the file exists. Values keep their ONNX names.
enum msc_status msc_onnx_save(const struct msc_graph *g, const char *path,
                              const struct msc_onnx_export_options *options);
// Removes a file that msc_onnx_save has written, and PATH.data if the model's weights are there.
enum msc_status msc_onnx_remove(const char *path);
// Size of the file that msc_onnx_save would write, without metadata and the model's notes.
enum msc_status msc_onnx_measure(uint64_t *n_bytes, const struct msc_graph *g,
                                 const struct msc_onnx_export_options *options);

MSC_PUBLIC_END

#endif
