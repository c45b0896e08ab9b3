#include "graph/edit.h"

#include <stddef.h>

void msc_edit_seal(struct msc_edit *e) {
    msc_quant_seal(&e->quant);
    e->hash = e->quant.hash;
}

struct msc_edit msc_edit_quantize(struct msc_quant quant) {
    struct msc_edit e = {.kind = MSC_EDIT_QUANTIZE, .quant = quant};
    msc_edit_seal(&e);
    return e;
}

enum msc_status msc_edit_apply(struct msc_array **out, const struct msc_array *x,
                               const struct msc_edit *e) {
    return msc_fake_quantize_array(out, x, &e->quant);
}

const struct msc_quant *msc_edit_quant(const struct msc_edit *e) {
    return e != NULL ? &e->quant : NULL;
}
