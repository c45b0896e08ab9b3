// A dataset: samples for each model input, optional labels, cut into batches.
//
// Samples come from a .npz or .safetensors file (one array per input, by name; other arrays are
// ignored; for a model with one input a single array may have any name), a .npy file, or a folder
// of images. Batches are fixed at creation: batch b holds samples [b * batch, min((b + 1) *
// batch, n)); the last one may be short.
//
// How an array holds the samples of an input of shape [d0, d1, ...]:
//
//     input is                            array is               a batch is
//     batched                             [n, d1, ...]           [batch, d1, ...]
//     not batched, d0 = 1                 [n, d1, ...]           [1, d1, ...]
//     not batched, any d0 or a scalar     [n, d0, d1, ...]       [d0, d1, ...]
//     not batched, d0 other than 1        [d0, d1, ...]          [d0, d1, ...], in every sample
//
// If the model has state, samples are chunks in order. A batch is then a sequence of chunks,
// whatever the inputs' shapes, and the state restarts with each batch. A batch of an input then
// holds
//
//     if the array has a row or part per sample   [batch, then a sample's own shape]
//     if all samples share the array              that array
//     if the input is a state                     its first value in its own shape, or zeros if
//                                                 the file has no such array
//
// If one input is not batched, every batch is one sample, whatever batch size was requested.
// Samples of different shapes are arrays NAME/0, NAME/1, ... without a gap, each of the input's
// own shape with one sample, or images without a fixed size; then each batch holds samples of one
// shape.
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

// An input of the model: the samples that it expects.
struct msc_input_spec {
    const char *name;
    enum msc_dtype dtype;
    int n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: any
    bool is_batched;            // the first axis counts samples and may have any length
    const char *place;          // where its array in memory comes from, for error messages; NULL:
                                // "dataset"
    // For a state: the output that feeds it in the next sample; NULL: the input is not a state.
    // Borrowed for the dataset's life. Open dims of a state are 1 unless the file gives a first
    // value.
    const char *state;
};

struct msc_image_options { // for folders of images; read with stb, sorted by name
    int64_t height, width; // 0: taken from the spec; if that is open, the image's own
    int channels;          // 1, 3 or 4
    bool channels_last;    // [n, h, w, c] instead of [n, c, h, w]
    // Float inputs: pixel * scale, then (x - mean) / std. uint8 inputs get the raw pixels.
    double scale; // default 1/255
    double mean[4], std[4];
};

struct msc_dataset_options {
    const char *inputs; // a .npz, .npy or .safetensors file, or a folder of images
    const char *labels; // a .npy of integers [n], or NULL
    int64_t samples;    // use only the first N of the selected samples; 0: all
    int64_t skip_last;  // first leave out N samples at the end (for validation)
    int64_t take_last;  // instead select only the last N samples; 0: off
    int64_t batch;      // samples per batch; >= 1, or with a state 0: all
    struct msc_image_options image;
};

#define MSC_DATASET_OPTIONS_INIT                                                                   \
    {                                                                                              \
        .batch = 1, .image = {.channels = 3, .scale = 1.0 / 255.0, .std = {1, 1, 1, 1} }           \
    }

// Number of samples that `inputs` holds, before any limit.
enum msc_status msc_dataset_count(int64_t *out, const struct msc_dataset_options *options,
                                  const struct msc_input_spec specs[], size_t n_specs);

// *out is owned by the caller. A difference from the specs is reported in one line with the
// input, the expected and the found shape, dtype and value range. Floats are converted to the
// input's float type, integers to its integer type if every value fits; integers for a float
// input are refused. Floats may be NaN, for models that fill in missing values. Labels are
// integers, one for each sample of the file.
enum msc_status msc_dataset_load(struct msc_dataset **out,
                                 const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// Creates a dataset from arrays in memory, one per spec (references are retained), for tests and
// embedding programs. `labels` may be NULL.
enum msc_status msc_dataset_create(struct msc_dataset **out, const struct msc_input_spec specs[],
                                   struct msc_array *const arrays[], size_t n_specs,
                                   const struct msc_array *labels, int64_t batch);
// Creates one batch of these arrays, one per spec, in the inputs' own shapes, for running a
// network once. Any contents are allowed: NaN, no elements, no inputs. Floats are converted to
// the input's float type, integers to its integer type if every value fits. It has no hash.
enum msc_status msc_dataset_create_whole(struct msc_dataset **out,
                                         const struct msc_input_spec specs[],
                                         const struct msc_array *const arrays[], size_t n_specs);
// Samples [first, first + n) of `from`, in batches of the same size. Shares memory with `from`,
// which must outlive it. MSC_E_INVALID: the range is outside `from` or would cut a sequence.
enum msc_status msc_dataset_create_part(struct msc_dataset **out, const struct msc_dataset *from,
                                        int64_t first, int64_t n);
// The samples of `from` that are not in `other`, compared by all their inputs; for sequences, whole
// sequences. Batches have the size of `from`, or 1 if the shapes of the rest differ. *n_shared
// samples are left out; *out is NULL if none or all of them are.
enum msc_status msc_dataset_create_apart(struct msc_dataset **out, int64_t *n_shared,
                                         const struct msc_dataset *from,
                                         const struct msc_dataset *other);
// True if there are several samples and all are equal.
bool msc_dataset_is_constant(const struct msc_dataset *dataset);
void msc_dataset_destroy(struct msc_dataset *dataset);

int64_t msc_dataset_n_samples(const struct msc_dataset *dataset);
int64_t msc_dataset_batch_size(const struct msc_dataset *dataset);
size_t msc_dataset_n_inputs(const struct msc_dataset *dataset);
size_t msc_dataset_n_batches(const struct msc_dataset *dataset);
// Samples of batch `b`: the batch size, or fewer for the last one.
int64_t msc_dataset_batch_samples(const struct msc_dataset *dataset, size_t b);
// Rows of input `input` in batch `b`, borrowed until the dataset is destroyed.
const struct msc_array *msc_dataset_batch(const struct msc_dataset *dataset, size_t b,
                                          size_t input);
// Smallest and largest finite value of an input over all samples; reads them all. Shown to users,
// because only they can see that 0 to 255 should have been 0 to 1.
void msc_dataset_range(double *min, double *max, const struct msc_dataset *dataset, size_t input);
// How a batch of an input holds its samples.
enum msc_input_form {
    MSC_INPUT_BATCHED, // the model has no state: as the model reads it
    MSC_INPUT_CHUNKS,  // [samples, ...]
    MSC_INPUT_SHARED,  // the same for every chunk
    MSC_INPUT_STATE,   // of the first chunk
};
enum msc_input_form msc_dataset_form(const struct msc_dataset *dataset, size_t input);
// Are batches sequences of chunks?
bool msc_dataset_is_sequence(const struct msc_dataset *dataset);
// The output that feeds this input; NULL if it is not a state.
const char *msc_dataset_state(const struct msc_dataset *dataset, size_t input);
// An input of chunk `chunk` of a sequence as the model reads it; for a state, its first value.
// *out is owned by the caller.
enum msc_status msc_dataset_chunk(struct msc_array **out, const struct msc_dataset *dataset,
                                  size_t b, size_t input, int64_t chunk);
// An input of the first sample of a batch as the model reads a single sample. *out is owned by
// the caller.
enum msc_status msc_dataset_first_sample(struct msc_array **out, const struct msc_dataset *dataset,
                                         size_t b, size_t input);
bool msc_dataset_has_labels(const struct msc_dataset *dataset);
int64_t msc_dataset_label(const struct msc_dataset *dataset, int64_t sample);
// Hash over all samples and labels in order, independent of the batch size; with a state, over
// sequences.
struct msc_hash msc_dataset_hash(const struct msc_dataset *dataset);

MSC_PUBLIC_END

#endif
