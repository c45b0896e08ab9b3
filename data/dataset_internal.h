// Internal to data/: the dataset struct.
#ifndef MSC_DATA_DATASET_INTERNAL_H
#define MSC_DATA_DATASET_INTERNAL_H

#include "base/hash.h"
#include "data/dataset.h"

struct msc_dataset_input {
    char *name;
    bool is_batched;
    enum msc_input_form form;
    const char *state;          // the output that feeds the input; NULL: not a state
    struct msc_array **batches; // [n_batches]
};

struct msc_dataset {
    int64_t n_samples;
    int64_t batch;
    size_t n_batches;
    size_t n_inputs;
    struct msc_dataset_input *inputs;
    struct msc_array *labels; // int64 [n_samples], or NULL
    bool is_sequence;         // the samples of a batch form a sequence
    struct msc_hash hash;
};

// Hash of all samples and labels, once they are loaded.
struct msc_hash msc_dataset__hash(const struct msc_dataset *dataset);

#endif
