// A bias under an edit (graph/edit.h), as kernels add it. Normally the bias is added as float32 to
// scaled sums. If the edit rounds the bias, without a shift, to multiples of exactly the scale of
// the integer sums, the rounded bias is added to these sums as integers.
#ifndef MSC_KERNELS_LOWERING_BIAS_H
#define MSC_KERNELS_LOWERING_BIAS_H

#include "graph/edit.h"

struct msc_bias {
    int64_t n;
    float *floats;     // [n] the bias with the edit applied
    int32_t *integers; // [n] rounded bias; NULL: not rounded, or rounded with a shift
    float *steps;      // [n] rounding steps of `integers`
    int64_t largest;   // largest magnitude of `integers`
};

// Applies an edit to the n `elements` of a bias. On success the caller calls msc_bias_finish.
enum msc_status msc_bias_init(struct msc_bias *out, const struct msc_array *elements,
                              const struct msc_edit *edit);
void msc_bias_finish(struct msc_bias *b); // accepts a zeroed structure
// True if the bias can be added to integer sums: its rounding step equals x_scale * weight scale in
// each channel.
bool msc_bias_joins_sums(const struct msc_bias *b, const struct msc_quant *weight, float x_scale);
// The largest magnitude of n integers; 0 if `integers` is NULL.
int64_t msc_bias_largest(const int32_t integers[], int64_t n);

#endif
