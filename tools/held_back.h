// Judges quantisations of a weight on rows of its inputs that were held back
// (tools/second_moment.h).
#ifndef MSC_TOOLS_HELD_BACK_H
#define MSC_TOOLS_HELD_BACK_H

#include "graph/quant.h"
#include "tools/weight_rows.h"

// Sets *error to the sum, over the moment's held-back rows x and the rows w of the weight, of
// ((q - w) x + s)^2, where q is the quantised row and s its shift. The result does not depend on
// the number of threads. MSC_E_NOMEM.
enum msc_status msc_held_back_error(double *error, const struct msc_weight_rows *rows,
                                    const struct msc_moment *moment, const struct msc_quant *quant,
                                    int n_threads);

#endif
