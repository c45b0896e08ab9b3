// A bias under edits (graph/edit.h), as kernels add it. It is added to scaled sums as floats. If it
// is rounded to exactly the step of integer sums, without a shift, it is added to these as
// integers.
#ifndef MSC_KERNELS_LOWERING_BIAS_H
#define MSC_KERNELS_LOWERING_BIAS_H

#include "graph/edit.h"

struct msc_bias {
    int64_t n;
    float *floats;     // [n] with the edit applied
    int32_t *integers; // [n] rounded bias; NULL: not rounded, or with a shift
    float *steps;      // [n] rounding steps of `integers`
    int64_t largest;   // largest magnitude of `integers`
};

// Applies an edit to the n `elements` of a bias. On success the caller finishes *out.
enum msc_status msc_bias_init(struct msc_bias *out, const struct msc_array *elements,
                              const struct msc_edit *edit);
void msc_bias_finish(struct msc_bias *b); // accepts zeroed
// Is each step equal to t of the sums of its channel c, x_scale * scale[c]?
bool msc_bias_joins_sums(const struct msc_bias *b, const struct msc_quant *weight, float x_scale);
// The largest magnitude of n integers; 0 for NULL.
int64_t msc_bias_largest(const int32_t integers[], int64_t n);

#endif
