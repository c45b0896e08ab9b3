// A bias under edits (graph/edit.h), as kernels add it: its floats to scaled sums or, where it is
// rounded to just the step that integer sums have, without a shift, its integers to these themselves.
#ifndef MSC_KERNELS_LOWERING_BIAS_H
#define MSC_KERNELS_LOWERING_BIAS_H

#include "graph/edit.h"

struct msc_bias {
    int64_t n;
    float *floats;     // [n]; NULL: without an edit
    int32_t *integers; // [n] that they stand for; NULL: it is not rounded, or with a shift
    float *steps;      // [n] that it is rounded to
    int64_t largest;   // of the sizes of integers
};

// `elements`, n of them, under an edit. Finished by the caller, unless it fails.
enum msc_status msc_bias_init(struct msc_bias *out, const struct msc_array *elements,
                              const struct msc_edit *edit);
void msc_bias_finish(struct msc_bias *b); // accepts zeroed
// Is every step the float32 product that the sums of channel c stand in, x_scale * scale[c]?
bool msc_bias_joins_sums(const struct msc_bias *b, const struct msc_quant *weight, float x_scale);
// The greatest size of n integers; 0 for NULL.
int64_t msc_bias_largest(const int32_t integers[], int64_t n);

#endif
