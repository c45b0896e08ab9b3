// The samples of a dataset as files that mscgym-runtime takes (docs/runtime.md): run in order, so many
// at a time, they are the batches of the search.
//
//     MSC_TRY(msc_runtime_samples_write(&samples, &arena, dataset, specs, folder, "calibration"));
//     job.inputs = samples.paths[0];
//     job.batch = samples.batch;
#ifndef MSC_MODEL_RUNTIME_SAMPLES_H
#define MSC_MODEL_RUNTIME_SAMPLES_H

#include "base/alloc.h"
#include "data/dataset.h"

struct msc_runtime_samples {
    const char **paths; // in the arena; several where samples differ in shape
    size_t n;
    int64_t batch; // samples of one run
};

// Writes FOLDER/NAME_0.npz and so on. Not for sequences, whose states nobody else hands on.
enum msc_status msc_runtime_samples_write(struct msc_runtime_samples *out, struct msc_arena *arena,
                                          const struct msc_dataset *dataset,
                                          const struct msc_input_spec specs[], const char *folder,
                                          const char *name);
// The first batch of a dataset alone; of a sequence its first chunk.
enum msc_status msc_runtime_samples_write_first(struct msc_runtime_samples *out,
                                                struct msc_arena *arena,
                                                const struct msc_dataset *dataset,
                                                const struct msc_input_spec specs[],
                                                const char *folder, const char *name);

#endif
