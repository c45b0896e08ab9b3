// The source of a dataset's samples: opened once, counted, then read. Internal to data/.
#ifndef MSC_DATA_SOURCE_H
#define MSC_DATA_SOURCE_H

#include "data/image.h"
#include "data/samples.h"

// Zero-initialise. `samples` has one entry per input.
struct msc_source {
    const char *path; // begins every error message; borrowed
    const struct msc_input_spec *specs;
    size_t n_specs;
    const struct msc_image_options *image;
    struct msc_samples *samples;
    struct msc_image_list images; // for a folder: decoded on reading
    int64_t n;                    // samples
    int64_t first;                // the sample at which `samples` begins
};

// Reads the file, or lists the folder, and checks it against the inputs. All arguments are
// borrowed until the source is finished. The caller finishes *out, even on failure.
enum msc_status msc_source__open(struct msc_source *out, const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// The same from one array per input.
enum msc_status msc_source__from_arrays(struct msc_source *out, const struct msc_input_spec specs[],
                                        struct msc_array *const arrays[], size_t n_specs);
// Makes samples [first, first + count) ready for msc_source__batch.
enum msc_status msc_source__prepare(struct msc_source *source, int64_t first, int64_t count);
enum msc_status msc_source__batch(struct msc_array **out, const struct msc_source *source,
                                  size_t input, int64_t first, int64_t count);
// The same as chunks of a sequence, or the value of a state before them.
enum msc_status msc_source__chunks(struct msc_array **out, const struct msc_source *source,
                                   size_t input, int64_t first, int64_t count);
void msc_source__finish(struct msc_source *source);

#endif
