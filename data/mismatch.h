// Value ranges of arrays, conversion to an input's type, and the error message for an array that
// does not match its input. Internal to data/.
#ifndef MSC_DATA_MISMATCH_H
#define MSC_DATA_MISMATCH_H

#include "data/dataset.h"

struct msc_range {
    double min, max; // range of the finite values; 0 if there are none
    int64_t n_finite, n_infinite, n_nan;
};

void msc_range__scan(struct msc_range *out, const struct msc_array *array);

// Fails with MSC_E_INVALID: "PLACE: input "x": expected [N,3,8,8] float32, found [4,8,8,3] uint8,
// values 0 to 255; FIX". If `fix` is NULL, a suggestion is derived from the difference.
enum msc_status msc_mismatch__fail(const struct msc_input_spec *spec, const struct msc_array *array,
                                   const char *place, const char *fix);

// Converts `array` to the input's element type: any float type to floats, integers to integers if
// every value fits. *out is a new reference or a copy. MSC_E_INVALID if a value does not fit; the
// message is as in msc_mismatch__fail and gives the first such value.
enum msc_status msc_mismatch__convert(struct msc_array **out, const struct msc_input_spec *spec,
                                      const struct msc_array *array, const char *place);

#endif
