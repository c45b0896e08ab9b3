// Internal to data/: the dataset struct.
#ifndef MSC_DATA_DATASET_INTERNAL_H
#define MSC_DATA_DATASET_INTERNAL_H

#include "base/hash.h"
#include "data/dataset.h"

struct msc_dataset_input {
    char *name;
    bool is_batched; // the batches hold samples along `axis`
    int axis;
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
    bool has_next;            // labels are the next ones of the token ids, input `ids`
    size_t ids;
    bool is_sequence; // the samples of a batch form a sequence
    struct msc_hash hash;
};

// One sample of an input: n_blocks pieces of n_bytes, `stride` bytes apart. The first piece is at
// `data`. If the input is not batched, this is its whole batch.
struct msc_dataset_sample {
    const struct msc_array *batch;
    int axis; // of the samples; -1: none
    const char *data;
    size_t n_blocks, n_bytes, stride;
};
// Sample `index` of batch `b`.
struct msc_dataset_sample msc_dataset__sample(const struct msc_dataset *dataset, size_t input,
                                              size_t b, int64_t index);

// Hash of all samples and labels, once they are loaded.
struct msc_hash msc_dataset__hash(const struct msc_dataset *dataset);

#endif
