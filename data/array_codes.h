// The codes that a float32 array was dequantised from: each element is (code - zero point) * scale,
// rounded to float32. Folding a DequantizeLinear of a constant sets them, so that kernels can
// multiply the codes. A copy or conversion of the array has no codes.
#ifndef MSC_DATA_ARRAY_CODES_H
#define MSC_DATA_ARRAY_CODES_H

#include "data/array.h"

MSC_PUBLIC_BEGIN

struct msc_array_codes {
    int32_t low, high;                   // smallest and largest code
    int axis;                            // axis of the scales, if there are several
    const struct msc_array *scales;      // float32, of one element or one per position of `axis`
    const struct msc_array *zero_points; // as many integers; NULL: all are 0
};

// Sets the codes of an array that is not shared yet. The array keeps references to the scales and
// zero points.
enum msc_status msc_array_set_codes(struct msc_array *array, const struct msc_array_codes *codes);
// NULL if the array has no codes.
const struct msc_array_codes *msc_array_codes_of(const struct msc_array *array);

MSC_PUBLIC_END

#endif
