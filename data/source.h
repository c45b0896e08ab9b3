// The source of a dataset's samples. It is opened once, counted, then read. Internal to data/.
#ifndef MSC_DATA_SOURCE_H
#define MSC_DATA_SOURCE_H

#include "data/image.h"
#include "data/samples.h"

// Zero-initialise. `samples` has one entry per input.
struct msc_source {
    const char *path; // beginning of every error message; borrowed
    const struct msc_input_spec *specs;
    size_t n_specs;
    const struct msc_image_options *image;
    int64_t sequence; // token ids per sample (data/tokens.h); 0: from the model or the file
    struct msc_samples *samples;
    struct msc_image_list images; // images of a folder; decoded when read
    int64_t n;                    // number of samples
    int64_t first;                // index in the source of the first sample in `samples`
};

// Reads the file, or lists the folder, and checks it against the inputs. All arguments are borrowed
// until the source is finished. The caller finishes *out, even on failure.
enum msc_status msc_source__open(struct msc_source *out, const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// Like msc_source__open, for one array per input in memory.
enum msc_status msc_source__from_arrays(struct msc_source *out, const struct msc_input_spec specs[],
                                        struct msc_array *const arrays[], size_t n_specs);
// Loads samples [first, first + count), so that msc_source__batch can return them.
enum msc_status msc_source__prepare(struct msc_source *source, int64_t first, int64_t count);
enum msc_status msc_source__batch(struct msc_array **out, const struct msc_source *source,
                                  size_t input, int64_t first, int64_t count);
// Like msc_source__batch, but as chunks of a sequence. For a state, returns its value before the
// first chunk.
enum msc_status msc_source__chunks(struct msc_array **out, const struct msc_source *source,
                                   size_t input, int64_t first, int64_t count);
void msc_source__finish(struct msc_source *source);

#endif
