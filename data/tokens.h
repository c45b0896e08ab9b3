// Samples of language models, whose inputs are token ids. Internal to data/.
//
// Ids come as an array of integers, or as a .jsonl file whose lines are lists of ids or objects
// with such a list under "ids" or "input_ids". An array of one axis, and any file if
// `sequence` is set, is one text after another: it is cut into samples of `sequence` ids, or of the
// model's own length, and what is left at the end is dropped.
//
// Inputs that follow from the ids are made if the file has no arrays for them:
//
//     attention_mask    ones, in the shape of the ids
//     position_ids      0, 1, 2, ... in each sample
//     token_type_ids    zeros
//     past_key_values*  no past: the first open axis that does not count samples has length 0
#ifndef MSC_DATA_TOKENS_H
#define MSC_DATA_TOKENS_H

#include "data/source.h"

#define MSC_TOKENS_NO_INPUT SIZE_MAX

// The input of token ids: integers of two axes, the only input that does not follow from another.
// MSC_TOKENS_NO_INPUT: there is none.
size_t msc_tokens__find(const struct msc_input_spec specs[], size_t n_specs);
// Whether the input can be made from the ids.
bool msc_tokens__is_made(const struct msc_source *source, size_t input);
// Fills the samples of the ids from an array, and cuts it if necessary.
enum msc_status msc_tokens__take(struct msc_source *source, size_t ids,
                                 const struct msc_array *array);
// Makes the samples of every input that has none. The samples of the ids are filled.
enum msc_status msc_tokens__make(struct msc_source *source, size_t ids);
// Opens a .jsonl file.
enum msc_status msc_tokens__open_lines(struct msc_source *source);

#endif
