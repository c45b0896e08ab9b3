// Edits: what a trial does at a slot, as plain data.
//
//     struct msc_edit edit = msc_edit_quantize(quant);
//     edits[slot] = &edit;
#ifndef MSC_GRAPH_EDIT_H
#define MSC_GRAPH_EDIT_H

#include "graph/quant.h"

MSC_PUBLIC_BEGIN

enum msc_edit_kind {
    MSC_EDIT_QUANTIZE,
};

// Constant once made; equal content has equal `hash`.
struct msc_edit {
    enum msc_edit_kind kind;
    struct msc_quant quant; // of MSC_EDIT_QUANTIZE
    struct msc_hash hash;
};

// Fills `hash` from the other members.
void msc_edit_seal(struct msc_edit *e);
// Sealed; the parameters of `quant` are borrowed.
struct msc_edit msc_edit_quantize(struct msc_quant quant);
// A whole array under an edit. *out is float32 of the same shape.
enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e);
// The quantisation of an edit; NULL where there is none, or no edit.
const struct msc_quant *msc_edit_quant(const struct msc_edit *e);

MSC_PUBLIC_END

#endif
