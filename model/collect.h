// The collecter: tensors of a network, float or compressed, on all samples of its dataset, written to
// a .npz or .safetensors as they are computed.
//
//     struct msc_collect collect = {.patterns = (const char *[]){"conv*"}, .n_patterns = 1,
//                                   .path = "tensors.npz"};
//     MSC_TRY(msc_collect(model, &collect));
//     ... collect.n_tensors, collect.n_bytes ...
//
// Memory is needed for the tensors of one batch. An array holds a tensor [1, d1, ...] of n samples as
// [n, d1, ...], any other one [d0, d1, ...] as [n, d0, d1, ...], so that it can be a dataset's input
// again (data/dataset.h). Where samples have different shapes they are arrays NAME/0, NAME/1, ... Of
// sequences arrays have a row for each chunk.
#ifndef MSC_MODEL_COLLECT_H
#define MSC_MODEL_COLLECT_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_collect {
    const struct msc_strategy *strategy; // NULL: float
    // Names, and patterns of "*" and "?", of tensors: the model's names, else those of the graph, as
    // arrays are called in the file. What joints make is found by patterns; n_patterns 0: the outputs.
    const char *const *patterns;
    size_t n_patterns;
    const char *path; // ends in .npz or .safetensors
    // Results.
    size_t n_tensors;
    int64_t n_samples;
    uint64_t n_bytes; // of the file
};

// The model's dataset is loaded, in batches of one sample. MSC_E_NOT_FOUND: a pattern fits no
// tensor. MSC_E_INVALID: the file would replace one that holds other arrays than those. The file is
// complete or absent.
enum msc_status msc_collect(struct msc_model *model, struct msc_collect *collect);

MSC_PUBLIC_END

#endif
