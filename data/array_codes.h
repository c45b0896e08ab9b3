// The codes that a float32 array was dequantised from: each element is (code - zero point) * scale,
// rounded to float32. Folding a DequantizeLinear of a constant sets them, so that kernels can
// multiply the codes. A copy or conversion of the array has no codes.
#ifndef MSC_DATA_ARRAY_CODES_H
#define MSC_DATA_ARRAY_CODES_H

#include "data/npy.h"

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

// Files have the codes of an array NAME as its scales and zero points: NAME:scales and
// NAME:zero_points, in a shape that broadcasts against the array.
//
// Adds these parts to a list, if the array has codes. A name that the list has already is kept.
enum msc_status msc_array_list_add_codes(struct msc_array_list *list, const char *name,
                                         const struct msc_array *array);
// Sets the codes of an array of a list from these parts. The array keeps no codes if a part is
// absent or does not fit, or if an element is not a multiple of its scale, because it was changed
// after it was stored.
enum msc_status msc_array_list_set_codes(const struct msc_array_list *list, const char *name);

MSC_PUBLIC_END

#endif
