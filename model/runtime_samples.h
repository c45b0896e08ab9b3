// Writes the samples of a dataset to files that mscgym-runtime reads (docs/runtime.md). If a
// runtime takes the samples in order, `batch` at a time, they form the same batches as in the
// search.
//
//     MSC_TRY(msc_runtime_samples_write(&samples, &arena, dataset, specs, folder, "calibration"));
//     job.inputs = samples.paths[0];
//     job.batch = samples.batch;
#ifndef MSC_MODEL_RUNTIME_SAMPLES_H
#define MSC_MODEL_RUNTIME_SAMPLES_H

#include "base/alloc.h"
#include "data/dataset.h"

struct msc_runtime_samples {
    const char **paths; // in the arena; several files if the shapes of samples differ
    size_t n;
    int64_t batch;            // samples of one run
    struct msc_binding *axes; // [n_axes] by input, the axis of samples; none for sequences
    size_t n_axes;
};

// Writes FOLDER/NAME_0.npz and so on. Sequences are not supported, since other runtimes do not pass
// states from run to run.
enum msc_status msc_runtime_samples_write(struct msc_runtime_samples *out, struct msc_arena *arena,
                                          const struct msc_dataset *dataset,
                                          const struct msc_input_spec specs[], const char *folder,
                                          const char *name);
// Writes only the first batch of a dataset, or the first chunk of a sequence.
enum msc_status msc_runtime_samples_write_first(struct msc_runtime_samples *out,
                                                struct msc_arena *arena,
                                                const struct msc_dataset *dataset,
                                                const struct msc_input_spec specs[],
                                                const char *folder, const char *name);

#endif
