// Collects tensors of a network, float or compressed, over all samples of its dataset, and writes
// them to a .npz or .safetensors file as they are computed.
//
//     struct msc_collect collect = {.patterns = (const char *[]){"conv*"}, .n_patterns = 1,
//                                   .path = "tensors.npz"};
//     MSC_TRY(msc_collect(model, &collect));
//     ... collect.n_tensors, collect.n_bytes ...
//
// Only the tensors of one batch are held in memory. For n samples, a tensor [1, d1, ...] becomes an
// array [n, d1, ...] and any other tensor [d0, d1, ...] an array [n, d0, d1, ...], which a dataset
// can read as an input (data/dataset.h). If samples have different shapes, each gets an array of
// its own: NAME/0, NAME/1, ... Arrays of sequences have a row for each chunk.
#ifndef MSC_MODEL_COLLECT_H
#define MSC_MODEL_COLLECT_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_collect {
    const struct msc_strategy *strategy; // NULL: float
    // Names of tensors in the model's file or in the graph, or patterns with "*" and "?", which
    // match outputs of joints. If `n_patterns` is 0, the outputs of the network are collected.
    // Arrays have the names in the model's file or, for tensors without one, the names in the
    // graph.
    const char *const *patterns;
    size_t n_patterns;
    const char *path; // ends in .npz or .safetensors
    // Results.
    size_t n_tensors;
    int64_t n_samples;
    uint64_t n_bytes; // size of the file
};

// The model's dataset must be loaded, in batches of one sample. MSC_E_NOT_FOUND: a pattern matches
// no tensor. MSC_E_INVALID: the file exists and holds other arrays. The file is either complete or
// absent afterwards.
enum msc_status msc_collect(struct msc_model *model, struct msc_collect *collect);

MSC_PUBLIC_END

#endif
