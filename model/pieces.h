// A model cut into pieces that run one after another, each in a runtime of its own (docs/split.md).
//
//     struct msc_split_options o = {.by = MSC_SPLIT_BY_TARGET, .target = "onnxruntime"};
//     MSC_TRY(msc_split(&pieces, graph, &o));                 // writes models and manifest
//     ...
//     MSC_TRY(msc_pieces_load(&pieces, "pieces/manifest.json"));
//     MSC_TRY(msc_pieces_run(pieces, "inputs.npz", "outputs.npz", &options));
//     msc_pieces_close(pieces);
#ifndef MSC_MODEL_PIECES_H
#define MSC_MODEL_PIECES_H

#include "model/model.h"

MSC_PUBLIC_BEGIN

#define MSC_PIECES_SCHEMA "mscgym.pieces"

enum msc_split_by {
    MSC_SPLIT_BY_TARGET, // joints that a target takes, and others
    MSC_SPLIT_BY_OPS,    // joints of the given operators, and others
    MSC_SPLIT_BY_CUT,    // at the given tensors
    MSC_SPLIT_BY_PLAN,   // as `parts` has them
};
#define MSC_SPLIT_BY_NAMES "target|ops|cut"

struct msc_split_options {
    enum msc_split_by by;
    const char *model;  // path of the model's file, for the manifest
    const char *folder; // gets the pieces and manifest.json; exists
    // BY_TARGET. External joints, and joints without a form in ONNX, are not taken. If
    // `only_integers` is set, neither are joints that the target computes in float.
    const char *target;
    bool only_integers;
    // BY_OPS: names of operators or patterns with "*" and "?", as MSCGraph prints them or, for
    // external joints, "domain::op" or "op". None: all external joints. BY_CUT: names of tensors.
    const char *const *names;
    size_t n_names;
    // BY_PLAN: the graph of each piece [n_plan], in an order in which pieces can run, and its
    // backend: a runtime, or a device of mscgym such as "cpu".
    const struct msc_graph *const *parts;
    const char *const *backends;
    size_t n_plan;
    // Plug-ins that pieces with external joints need, for the manifest.
    const char *const *plugins;
    size_t n_plugins;
};

// A tensor that enters or leaves a piece.
struct msc_piece_value {
    const char *name;
    const char *dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: unknown
};

struct msc_piece {
    const char *name;
    const char *model;   // path, relative to the manifest
    const char *hash;    // of the model's file; NULL: not checked
    const char *runtime; // "mscgym", or a runtime of tools/runtime.h
    const char *device;  // with "mscgym": the device that computes it; NULL: that of the options
    const char *target;  // the target that takes the piece; NULL: none
    int64_t n_joints;    // joints, without constants
    size_t n_operators;  // external operators in it: "domain::op"
    const char **operators;
    bool needs_plugin; // after msc_split: one of the operators has no body
    size_t n_inputs, n_outputs;
    struct msc_piece_value *inputs, *outputs;
};

struct msc_pieces {
    struct msc_arena arena;
    const char *path;   // of the manifest
    const char *folder; // of the manifest
    const char *model;  // the model that was cut, relative to the manifest; for messages
    size_t n_inputs, n_outputs;
    const char **inputs, **outputs; // names of the whole model's values
    size_t n_plugins;
    const char **plugins; // relative to the manifest
    size_t n_pieces;
    struct msc_piece *pieces; // in the order in which they run
};

// Cuts a graph, writes a model for each piece and the manifest. *out describes them and is owned
// by the caller. MSC_E_INVALID: a name matches nothing.
enum msc_status msc_split(struct msc_pieces **out, const struct msc_graph *g,
                          const struct msc_split_options *options);
// MSC_E_INVALID: at most so many pieces in this folder would replace the model, or a file that is
// no manifest. msc_split checks this too; a caller can do so before long work.
enum msc_status msc_split_check_folder(const char *model, const char *folder, int32_t most_pieces);

// True if the file is a manifest. Files that cannot be read are not.
bool msc_pieces_is_manifest(const char *path);
// Reads a manifest and checks that each input is available before the piece that reads it.
enum msc_status msc_pieces_load(struct msc_pieces **out, const char *path);
void msc_pieces_close(struct msc_pieces *pieces); // accepts NULL

// Runs the pieces one after another on all samples of `inputs` (a .npz of arrays by the names of
// the model's inputs), and writes the outputs to `output` (.npz or .safetensors). If `keep` is not
// NULL, each piece's inputs are written to KEEP/NAME.npz, as samples for a search of that piece.
// `options` are those of each piece's model; its plug-ins come before the manifest's, which are
// opened only if `allow_plugins` is set. MSC_E_STATE: a piece's model differs from its hash.
struct msc_pieces_run {
    const char *inputs, *output, *keep;
    bool allow_plugins;
    const struct msc_model_options *options;
};
enum msc_status msc_pieces_run(const struct msc_pieces *pieces, const struct msc_pieces_run *run);

MSC_PUBLIC_END

#endif
