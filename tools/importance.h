// llama.cpp's importance file (llama-imatrix): for weights of a decoder, the mean square of each
// input channel over some text. It has one of two forms.
//
//     GGUF    `general.type` is "imatrix"; tensors "NAME.in_sum2" [1, n] with sums of squares, and
//             "NAME.counts" [1, 1] with the number of tokens
//     binary  i32 number of entries, then for each: i32 length and bytes of the name, i32 number of
//             calls, i32 n, and n floats, which are the means times the number of calls; whatever
//             follows is not read. Little-endian
//
// Weights of experts, which have several counts, are left out.
#ifndef MSC_TOOLS_IMPORTANCE_H
#define MSC_TOOLS_IMPORTANCE_H

#include "data/npy.h"

// Appends an array [n] of float32 for each weight, with the weight's name. All numbers are finite
// and not negative. The caller finishes the list. MSC_E_FORMAT: the message names the place.
enum msc_status msc_importance_load(struct msc_array_list *out, const char *path);

#endif
