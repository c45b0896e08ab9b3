// Where a dataset's samples come from: opened once, counted, then read. Internal to data/.
#ifndef MSC_DATA_SOURCE_H
#define MSC_DATA_SOURCE_H

#include "data/image.h"
#include "data/samples.h"

// Zero-initialise. One entry of `samples` for each input.
struct msc_source {
    const char *path; // begins every error text; borrowed
    const struct msc_input_spec *specs;
    size_t n_specs;
    const struct msc_image_options *image;
    struct msc_samples *samples;
    struct msc_image_list images; // for a folder: decoded when they are read
    int64_t n;                    // samples
    int64_t first;                // sample at which `samples` begin
};

// Reads the file, or lists the folder, and checks it against the inputs. Everything given is
// borrowed until the source is finished. The caller finishes *out, also on failure.
enum msc_status msc_source__open(struct msc_source *out, const struct msc_dataset_options *options,
                                 const struct msc_input_spec specs[], size_t n_specs);
// The same from one array for each input.
enum msc_status msc_source__from_arrays(struct msc_source *out, const struct msc_input_spec specs[],
                                        struct msc_array *const arrays[], size_t n_specs);
// Makes samples [first, first + count) ready for msc_source__batch.
enum msc_status msc_source__prepare(struct msc_source *source, int64_t first, int64_t count);
enum msc_status msc_source__batch(struct msc_array **out, const struct msc_source *source,
                                  size_t input, int64_t first, int64_t count);
// As chunks of a sequence, or what a state is before them.
enum msc_status msc_source__chunks(struct msc_array **out, const struct msc_source *source,
                                   size_t input, int64_t first, int64_t count);
void msc_source__finish(struct msc_source *source);

#endif
