// Value ranges, what an array becomes for an input, and the one line that tells how it differs from
// what the input expects.
// Internal to data/.
#ifndef MSC_DATA_MISMATCH_H
#define MSC_DATA_MISMATCH_H

#include "data/dataset.h"

struct msc_range {
    double min, max; // over the finite values; 0 when there is none
    int64_t n_finite, n_infinite, n_nan;
};

void msc_range__scan(struct msc_range *out, const struct msc_array *array);

// MSC_E_INVALID: "PLACE: input "x": expected [N,3,8,8] float32, found [4,8,8,3] uint8, values 0 to
// 255; FIX". A NULL `fix` is found by comparing.
enum msc_status msc_mismatch__fail(const struct msc_input_spec *spec, const struct msc_array *array,
                                   const char *place, const char *fix);

// `array` as the input's element type, a new reference or a copy: floats of any kind for floats,
// integers for integers where every one fits. MSC_E_INVALID like that, naming the first that does
// not.
enum msc_status msc_mismatch__convert(struct msc_array **out, const struct msc_input_spec *spec,
                                      const struct msc_array *array, const char *place);

#endif
