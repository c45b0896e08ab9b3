// A dataset: samples for each model input and optional labels, divided into batches.
//
// Samples come from a .npz, .safetensors, .npy or .jsonl file or a folder of images. A .jsonl file
// has token ids; inputs that follow from token ids are made (data/tokens.h). A .npz or .safetensors
// file has one array per input, found by name; other arrays are ignored. If the model has one input
// and the file one array, the array may have any name. Batches are fixed at creation: batch b holds
// samples [b * batch, min((b + 1) * batch, n)); the last batch may be short.
//
// How an array holds the samples of an input of shape [d0, d1, ...]:
//
//     input is                            array is               a batch is
//     batched                             [n, d1, ...]           [batch, d1, ...]
//     batched along axis 1                [d0, n, ...]           [d0, batch, ...]
//     not batched, d0 = 1                 [n, d1, ...]           [1, d1, ...]
//     not batched, any d0 or a scalar     [n, d0, d1, ...]       [d0, d1, ...]
//     not batched, d0 other than 1        [d0, d1, ...]          [d0, d1, ...], in every sample
//
// If the model has state, samples are consecutive chunks of sequences. A batch is then one sequence
// of chunks, whatever the inputs' shapes, and the state restarts with each batch. A batch of an
// input then holds
//
//     if the array has a row or part per sample   [batch, then a sample's own shape]
//     if all samples share the array              that array
//     if the input is a state                     its first value in its own shape, or zeros if
//                                                 the file has no such array
//
// If one input is not batched, every batch is one sample, whatever batch size was requested.
// Samples may have different shapes. They are then images without a fixed size, or arrays NAME/0,
// NAME/1, ... without a gap, each with one sample in the input's own shape. In this case all
// samples of a batch have equal shapes.
//
//     struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
//     o.inputs = "calibration.npz";
//     o.batch = 64;
//     MSC_TRY(msc_dataset_load(&data, &o, specs, n_specs));
//     const struct msc_array *x = msc_dataset_batch(data, 0, 0);   // batch 0 of input 0
#ifndef MSC_DATA_DATASET_H
#define MSC_DATA_DATASET_H

#include "data/array.h"

MSC_PUBLIC_BEGIN

struct msc_dataset;

// An input of the model, and the samples that it accepts.
struct msc_input_spec {
    const char *name;
    enum msc_dtype dtype;
    enum msc_dtype rounded; // elements of arrays are rounded to this type first; NONE: they are not
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: any
    bool is_batched;            // the axis `axis` counts samples and may have any length
    int axis;                   // 0: the first axis
    const char *place;          // source of an array in memory, for error messages; NULL: "dataset"
    // For a state: the name of the output whose value this input gets in the next sample. NULL: the
    // input is not a state. Borrowed until the dataset is destroyed. In the spec of a state, a dim
    // of -1 becomes 1 unless the file gives a first value.
    const char *state;
};

struct msc_image_options { // for folders of images, which are sorted by name
    int64_t height, width; // 0: from the spec, else the image's own size
    int channels;          // 1, 3 or 4
    bool channels_last;    // [n, h, w, c] instead of [n, c, h, w]
    // Float inputs: pixel * scale, then (x - mean) / std. uint8 inputs get the raw pixels.
    double scale; // default 1/255
    double mean[4], std[4];
};

struct msc_dataset_options {
    const char *inputs; // a .npz, .npy, .safetensors or .jsonl file, or a folder of images
    const char *labels; // a .npy of integers [n], MSC_LABELS_NEXT or NULL
    int64_t samples;    // use only the first N selected samples; 0: all
    int64_t skip_last;  // omit the last N samples (for validation)
    int64_t take_last;  // instead use only the last N samples; 0: off
    int64_t batch;      // samples per batch, >= 1; for models with state, 0 means all
    int64_t sequence;   // token ids of a sample; 0: as the file or the model has them
    struct msc_image_options image;
};

// The value of `labels` that makes the next token the label of each token, for language models.
#define MSC_LABELS_NEXT "next"
bool msc_labels_are_next(const char *labels); // accepts NULL

#define MSC_DATASET_OPTIONS_INIT                                                                   \
    {                                                                                              \
        .batch = 1, .image = {.channels = 3, .scale = 1.0 / 255.0, .std = {1, 1, 1, 1} }           \
    }

// Counts the samples that `inputs` holds, ignoring all limits in the options.
enum msc_status msc_dataset_count(int64_t *out, const struct msc_dataset_options *options,
                                  const struct msc_input_spec specs[], size_t n_specs);

// Loads a dataset. The caller owns *out. If the data do not fit the specs, the message has one line
// with the input, and the expected and the found shape, dtype and value range. Floats are converted
// to the input's float type. Integers are converted to the input's integer type if every value
// fits; integers for a float input are rejected. Floats may be NaN, for models that fill in missing
// values. Labels are integers, one per sample of the file.
enum msc_status msc_dataset_load(struct msc_dataset **out,
                                 const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// Creates a dataset from arrays in memory, one per spec, for tests and embedding programs.
// References to the arrays are retained. `labels` may be NULL.
enum msc_status msc_dataset_create(struct msc_dataset **out, const struct msc_input_spec specs[],
                                   struct msc_array *const arrays[], size_t n_specs,
                                   const struct msc_array *labels, int64_t batch);
// Creates one batch of these arrays, one per spec, in the inputs' own shapes, for running a network
// once. NaN, empty arrays and n_specs 0 are allowed. Floats are converted to the input's float
// type. Integers are converted to the input's integer type if every value fits. The dataset has no
// hash.
enum msc_status msc_dataset_create_whole(struct msc_dataset **out,
                                         const struct msc_input_spec specs[],
                                         const struct msc_array *const arrays[], size_t n_specs);
// Creates a dataset of samples [first, first + n) of `from`, with the same batch size. The new
// dataset shares memory with `from`; `from` must outlive it. MSC_E_INVALID if the range is outside
// `from` or cuts a sequence.
enum msc_status msc_dataset_create_part(struct msc_dataset **out, const struct msc_dataset *from,
                                        int64_t first, int64_t n);
// Creates a dataset of the samples of `from` that are not in `other`. Samples are equal if all
// their inputs are; for sequences, whole sequences are compared. The result has the batch size of
// `from`, or 1 if the remaining samples differ in shape. *n_shared is the number of samples
// omitted. *out is NULL if none or all are omitted.
enum msc_status msc_dataset_create_apart(struct msc_dataset **out, int64_t *n_shared,
                                         const struct msc_dataset *from,
                                         const struct msc_dataset *other);
// True if there are at least two samples and all are equal.
bool msc_dataset_is_constant(const struct msc_dataset *dataset);
void msc_dataset_destroy(struct msc_dataset *dataset);

int64_t msc_dataset_n_samples(const struct msc_dataset *dataset);
int64_t msc_dataset_batch_size(const struct msc_dataset *dataset);
size_t msc_dataset_n_inputs(const struct msc_dataset *dataset);
size_t msc_dataset_n_batches(const struct msc_dataset *dataset);
// Number of samples in batch `b`: the batch size, or fewer in the last batch.
int64_t msc_dataset_batch_samples(const struct msc_dataset *dataset, size_t b);
// Batch `b` of input `input`, borrowed until the dataset is destroyed.
const struct msc_array *msc_dataset_batch(const struct msc_dataset *dataset, size_t b,
                                          size_t input);
// Smallest and largest finite value of an input; reads all samples. The range is shown to users,
// because only they can see that 0 to 255 should have been 0 to 1.
void msc_dataset_range(double *min, double *max, const struct msc_dataset *dataset, size_t input);
// How the array of a batch holds its samples.
enum msc_input_form {
    MSC_INPUT_BATCHED, // without a state: the array that the model reads
    MSC_INPUT_CHUNKS,  // one row per chunk: [samples, ...]
    MSC_INPUT_SHARED,  // one array, shared by all chunks
    MSC_INPUT_STATE,   // the state before the first chunk
};
enum msc_input_form msc_dataset_form(const struct msc_dataset *dataset, size_t input);
// True if batches are sequences of chunks.
bool msc_dataset_is_sequence(const struct msc_dataset *dataset);
// The name of the output that feeds this input; NULL if the input is not a state.
const char *msc_dataset_state(const struct msc_dataset *dataset, size_t input);
// Creates an input of chunk `chunk` of a sequence, in the shape that the model reads. For a state,
// this is its first value. The caller owns *out.
enum msc_status msc_dataset_chunk(struct msc_array **out, const struct msc_dataset *dataset,
                                  size_t b, size_t input, int64_t chunk);
// Creates an input of the first sample of a batch, in the shape in which the model reads a single
// sample. The caller owns *out.
enum msc_status msc_dataset_first_sample(struct msc_array **out, const struct msc_dataset *dataset,
                                         size_t b, size_t input);
bool msc_dataset_has_labels(const struct msc_dataset *dataset);
int64_t msc_dataset_label(const struct msc_dataset *dataset, int64_t sample);
// True if the label of each token is the next one. Then the token ids of a sample are available:
// their number, and the id at a position.
bool msc_dataset_has_next(const struct msc_dataset *dataset);
int64_t msc_dataset_n_tokens(const struct msc_dataset *dataset, int64_t sample);
int64_t msc_dataset_token(const struct msc_dataset *dataset, int64_t sample, int64_t position);
// Hash of all samples and labels in order. It does not depend on the batch size, except for models
// with state, whose batches are sequences.
struct msc_hash msc_dataset_hash(const struct msc_dataset *dataset);

MSC_PUBLIC_END

#endif
