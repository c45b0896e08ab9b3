// A model that stays loaded: its weights are packed once, and each run reads and writes arrays in
// place. Other languages call these functions directly, as mscgym-runtime does with Python's
// ctypes, so no option is a struct.
//
//     MSC_TRY(msc_resident_open(&r, "digits.onnx", "cpu", 1));
//     MSC_TRY_OUT(msc_resident_shape(r, 0, 4, (const int64_t[]){1, 1, 8, 8}));
//     msc_resident_input(&in, r, 0);                              // fill in.data
//     MSC_TRY_OUT(msc_resident_run(r));
//     msc_resident_output(&out, r, 0);                            // read out.data
//     out: msc_resident_close(r);
//
// Runs have the bits of `mscgym run`, kernels use all threads, and values keep the model's types.
// All functions of one model are called from one thread at a time.
#ifndef MSC_MODEL_RESIDENT_H
#define MSC_MODEL_RESIDENT_H

#include "model/model.h"

MSC_PUBLIC_BEGIN

struct msc_resident;

// An input or output. Open structure; name, dtype and data are borrowed from the model.
struct msc_resident_value {
    const char *name;
    const char *dtype; // "float32"
    int64_t n_dims;
    int64_t dims[MSC_MAX_DIMS]; // -1: any length
    void *data; // row-major elements; NULL: an input without a shape, or an output before a run
};

// *out is owned by the caller.
enum msc_status msc_resident_open(struct msc_resident **out, const char *path, const char *device,
                                  int n_threads);
void msc_resident_close(struct msc_resident *r); // accepts NULL
int64_t msc_resident_n_inputs(const struct msc_resident *r);
int64_t msc_resident_n_outputs(const struct msc_resident *r);
// Sets the shape of an input, whose elements become 0. MSC_E_STATE after the first run.
enum msc_status msc_resident_shape(struct msc_resident *r, int64_t input, int64_t n_dims,
                                   const int64_t dims[]);
// The data of an input stays at its place until the first run, and then after it. The data of an
// output is valid until the next run.
enum msc_status msc_resident_input(struct msc_resident_value *out, const struct msc_resident *r,
                                   int64_t i);
enum msc_status msc_resident_output(struct msc_resident_value *out, const struct msc_resident *r,
                                    int64_t i);
// The name of an open length of an input, which --bind takes; NULL: the length has none.
const char *msc_resident_length(const struct msc_resident *r, int64_t input, int64_t axis);
// The first run prepares the model for the shapes of its inputs, and moves the inputs' data: call
// msc_resident_input again. MSC_E_INVALID: an input has no shape, or the shapes do not fit.
// MSC_E_UNSUPPORTED: the model has branches, which one batch could decide wrongly for the next.
enum msc_status msc_resident_run(struct msc_resident *r);

MSC_PUBLIC_END

#endif
