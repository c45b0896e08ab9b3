// Encodes a weight in blocks of GGUF (data/gguf_block.h), its rows being what is multiplied by the
// same inputs (tools/weight_rows.h).
//
// The numbers of the blocks are fitted with the diagonal of the second moments of the inputs as
// weights (tools/block_fit.h). The codes are then improved like other integers (tools/rounding.h):
// with the minimum of its part added, an element is scale * (code - zero).
#ifndef MSC_TOOLS_BLOCK_ROWS_H
#define MSC_TOOLS_BLOCK_ROWS_H

#include "tools/weight_rows.h"

struct msc_block_rows_options {
    const struct msc_gguf_block_type *type;
    int32_t axis;                   // of the weight, along which rows run
    const float *h;                 // second moments [blocks of w]; NULL: all columns count alike
    enum msc_rounding rounding;     // `nearest` if h is NULL
    struct msc_gptq_order **orders; // of h; may be NULL for `nearest`
    int n_threads;
};

// True if the weight can be encoded in blocks of this type: a matrix whose rows are whole blocks.
bool msc_block_rows_fits(const struct msc_tensor *weight, int32_t axis, int32_t n_axes,
                         const struct msc_gguf_block_type *type);
// *out is owned by the caller (msc_quant_finish), sealed. The weight has one group of rows.
// MSC_E_NOMEM.
enum msc_status msc_block_rows_round(struct msc_quant *out, const struct msc_weight_rows *w,
                                     const struct msc_block_rows_options *o);

#endif
