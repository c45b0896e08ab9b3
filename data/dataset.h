// A dataset: samples for each model input, optional labels, cut into batches.
//
// Samples come from a .npz or .safetensors (one array for each input, by name; others beside them
// are not looked at; a single array of any name serves a model with one input), a .npy, or a folder
// of images. Batches are fixed at creation: batch b holds samples [b * batch, min((b + 1) * batch,
// n)); the last one may be short.
//
// How an array holds the samples of an input of shape [d0, d1, ...]:
//
//     input is                            array is               a batch is
//     batched                             [n, d1, ...]           [batch, d1, ...]
//     not batched, d0 = 1                 [n, d1, ...]           [1, d1, ...]
//     not batched, any d0 or a scalar     [n, d0, d1, ...]       [d0, d1, ...]
//     not batched, d0 other than 1        [d0, d1, ...]          [d0, d1, ...], in every sample
//
// With a state, samples are chunks that follow one another: a batch is a sequence of them, whatever
// the inputs' shapes, and the state begins anew with each batch. Then a batch of an input holds
//
//     an array with a row or a part for each sample   [batch, then a sample's own shape]
//     one that all samples share                      that array
//     of a state: its first value, in its own shape; zeros where the file has no such array
//
// One input that is not batched makes every batch one sample, whatever batch size was asked for.
// Samples of different shapes are arrays NAME/0, NAME/1, ... without a gap, each of the input's own
// shape with one sample, or images without a fixed size; then a batch holds samples of one shape
// only.
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

// What the model expects of one input.
struct msc_input_spec {
    const char *name;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: any
    bool is_batched;            // the first axis takes any number of samples
    const char *place;          // of its array in memory, for error texts; NULL: "dataset"
    // The output that feeds it in the next sample, for a state; NULL: it is none. Borrowed for the
    // dataset's life. Open lengths of a state are 1 unless the file says.
    const char *state;
};

struct msc_image_options { // for folders of images; read with stb, sorted by name
    int64_t height, width; // 0: taken from the spec; where that is open, the image's own
    int channels;          // 1, 3 or 4
    bool channels_last;    // [n, h, w, c] instead of [n, c, h, w]
    // Float inputs: pixel * scale, then (x - mean) / std. uint8 inputs get the pixels themselves.
    double scale; // default 1/255
    double mean[4], std[4];
};

struct msc_dataset_options {
    const char *inputs; // a .npz, .npy or .safetensors file, or a folder of images
    const char *labels; // a .npy of integers [n], or NULL
    int64_t samples;    // of those left, take the first so many; 0: all
    int64_t skip_last;  // set so many aside at the end first (a validation fraction)
    int64_t take_last;  // instead take only so many at the end; 0: no
    int64_t batch;      // samples a batch; >= 1, or with a state 0: all
    struct msc_image_options image;
};

#define MSC_DATASET_OPTIONS_INIT                                                                   \
    {                                                                                              \
        .batch = 1, .image = {.channels = 3, .scale = 1.0 / 255.0, .std = {1, 1, 1, 1} }           \
    }

// Number of samples that `inputs` holds, before any limit.
enum msc_status msc_dataset_count(int64_t *out, const struct msc_dataset_options *options,
                                  const struct msc_input_spec specs[], size_t n_specs);

// *out is owned by the caller. Every difference from the specs is one line that names the input,
// the expected and the found shape, dtype and value range. Floats are converted to the input's
// float type, integers to its integer type where every one fits; integers to a float input are
// refused. Floats may be NaN: what a missing value is to a model that fills it in. Labels are integers, one for each sample of the file.
enum msc_status msc_dataset_load(struct msc_dataset **out,
                                 const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// From arrays in memory, one for each spec (borrowed references are retained), for tests and
// embedding programs. `labels` may be NULL.
enum msc_status msc_dataset_create(struct msc_dataset **out, const struct msc_input_spec specs[],
                                   struct msc_array *const arrays[], size_t n_specs,
                                   const struct msc_array *labels, int64_t batch);
// One batch of these arrays, one for each spec, in the inputs' own shapes and whatever they hold
// (NaN, no elements at all, or no input): for running a network once. Floats are converted to the
// input's float type, integers to its integer type where every one fits. It has no hash.
enum msc_status msc_dataset_create_whole(struct msc_dataset **out,
                                         const struct msc_input_spec specs[],
                                         const struct msc_array *const arrays[], size_t n_specs);
// Samples [first, first + n) of another one, in batches of its size; it shares what it can with that,
// which must outlive it. MSC_E_INVALID: there are no such samples, or they would cut a sequence.
enum msc_status msc_dataset_create_part(struct msc_dataset **out, const struct msc_dataset *from,
                                        int64_t first, int64_t n);
// Samples of `from` that `other` does not have, by all that their inputs hold, of sequences whole ones, in
// batches of its size, or of one where those left differ in shape. *n_shared samples are left out; *out is
// NULL where that is none, or all of them.
enum msc_status msc_dataset_create_apart(struct msc_dataset **out, int64_t *n_shared,
                                         const struct msc_dataset *from,
                                         const struct msc_dataset *other);
// Are all samples, several of them, the same?
bool msc_dataset_is_constant(const struct msc_dataset *dataset);
void msc_dataset_destroy(struct msc_dataset *dataset);

int64_t msc_dataset_n_samples(const struct msc_dataset *dataset);
int64_t msc_dataset_batch_size(const struct msc_dataset *dataset);
size_t msc_dataset_n_inputs(const struct msc_dataset *dataset);
size_t msc_dataset_n_batches(const struct msc_dataset *dataset);
// Samples of batch `b`: batch size, or fewer for the last one.
int64_t msc_dataset_batch_samples(const struct msc_dataset *dataset, size_t b);
// Rows of input `input` in batch `b`, borrowed until the dataset is destroyed.
const struct msc_array *msc_dataset_batch(const struct msc_dataset *dataset, size_t b,
                                          size_t input);
// Smallest and largest finite value of one input over all samples; reads them all. For telling the
// user, who alone can see that 0 to 255 should have been 0 to 1.
void msc_dataset_range(double *min, double *max, const struct msc_dataset *dataset, size_t input);
// How an input of a batch holds its samples.
enum msc_input_form {
    MSC_INPUT_BATCHED, // no state anywhere: as the model reads it
    MSC_INPUT_CHUNKS,  // [samples, ...]
    MSC_INPUT_SHARED,  // the same for every chunk
    MSC_INPUT_STATE,   // of the first chunk
};
enum msc_input_form msc_dataset_form(const struct msc_dataset *dataset, size_t input);
// Are batches sequences of chunks?
bool msc_dataset_is_sequence(const struct msc_dataset *dataset);
// The output that feeds the input; NULL: it is no state.
const char *msc_dataset_state(const struct msc_dataset *dataset, size_t input);
// An input of chunk `chunk` of a sequence as the model reads it; of a state the first one. *out is
// owned by the caller.
enum msc_status msc_dataset_chunk(struct msc_array **out, const struct msc_dataset *dataset,
                                  size_t b, size_t input, int64_t chunk);
// An input of the first sample of a batch as the model reads it, alone. *out is owned by the caller.
enum msc_status msc_dataset_first_sample(struct msc_array **out, const struct msc_dataset *dataset,
                                         size_t b, size_t input);
bool msc_dataset_has_labels(const struct msc_dataset *dataset);
int64_t msc_dataset_label(const struct msc_dataset *dataset, int64_t sample);
// Hash over all samples and labels in order, whatever the batch size; with a state over sequences.
struct msc_hash msc_dataset_hash(const struct msc_dataset *dataset);

MSC_PUBLIC_END

#endif
