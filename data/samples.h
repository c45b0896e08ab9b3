// The samples of one model input as read from a file, checked against the input's spec. Internal to
// data/.
#ifndef MSC_DATA_SAMPLES_H
#define MSC_DATA_SAMPLES_H

#include "data/dataset.h"

enum msc_samples_form {
    MSC_SAMPLES_ROWS,    // one array; sample i is index i of `axis`, which stays with length 1
    MSC_SAMPLES_STACKED, // one array; sample i is row i without the first axis
    MSC_SAMPLES_SHARED,  // one array shared by all samples
    MSC_SAMPLES_PARTS,   // one array per sample; shapes may differ
};

struct msc_samples {
    enum msc_samples_form form;
    int axis;  // of the samples, in rows and in joined parts
    int64_t n; // 1 if shared
    struct msc_array **arrays;
    size_t n_arrays, capacity;
};

// Checks and converts `array` (borrowed) for `spec`, into a zeroed *out. Error messages begin with
// `place`, the file's name. The caller finishes *out, even on failure.
enum msc_status msc_samples__from_array(struct msc_samples *out, const struct msc_input_spec *spec,
                                        const struct msc_array *array, const char *place);
// Adds a sample to samples of form MSC_SAMPLES_PARTS. The sample has the input's own shape.
enum msc_status msc_samples__add_part(struct msc_samples *samples,
                                      const struct msc_input_spec *spec,
                                      const struct msc_array *array, const char *place);
void msc_samples__finish(struct msc_samples *samples);

// Samples [first, first + count) in the shape that the input reads. Parts of one batch must have
// equal shapes. `place` and `spec` are for the error message.
enum msc_status msc_samples__batch(struct msc_array **out, const struct msc_samples *samples,
                                   int64_t first, int64_t count, const struct msc_input_spec *spec,
                                   const char *place);

// Like msc_samples__batch, but as chunks of a sequence: [count, then a sample's own shape]. A
// shared array is returned unchanged.
enum msc_status msc_samples__chunks(struct msc_array **out, const struct msc_samples *samples,
                                    int64_t first, int64_t count, const struct msc_input_spec *spec,
                                    const char *place);
// A state's value before sample `first`; zeros if the file gives no value.
enum msc_status msc_samples__state(struct msc_array **out, const struct msc_samples *samples,
                                   int64_t first);
enum msc_status msc_samples__zero_state(struct msc_samples *out, const struct msc_input_spec *spec);

#endif
