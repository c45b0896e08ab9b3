// Edits of points that take channels away and quantise what is left: what the pruner makes of a weight
// (tools/pruner.h), then what the quantizer makes of that (tools/quantizer.h).
//
// Activations have the scales that the float model gave them, whatever goes: weights that read them are
// repaired, so that what is left has much the same values. A weight that loses channels it reads is
// another one for each cut of these: repaired first, then its range is observed and its integers are
// chosen anew, as if it were a weight of the model. It holds 0 where channels are gone, which moves no
// range and stays 0; second moments of its inputs (observer hessian, gptq, descent, affine) are the
// pruner's, of the channels that stay. Where the pruner keeps none it is rounded to nearest. Channels that
// a weight makes change nothing about it: rows that nobody reads are rounded with the others.
//
// Such a weight is made once for each (cuts of what it reads, choice).
//
//     MSC_TRY(msc_pruned_edits_create(&j, pruner, quantizer));
//     MSC_TRY(msc_pruned_edits_make(j, points, n, n_threads));
//     ... edits [n_slots] of the quantizer's choices ...
//     msc_pruned_edits_fill(j, &points[0], edits);
#ifndef MSC_TOOLS_PRUNED_EDITS_H
#define MSC_TOOLS_PRUNED_EDITS_H

#include "tools/pruner.h"
#include "tools/quantizer.h"

struct msc_pruned_edits;

struct msc_pruned_point {
    const uint32_t *cuts;   // [n_groups] of the pruner
    const int32_t *choices; // [n_sites] of the quantizer; negative: float
};

// Both are borrowed until destroy, and have sites of one scheme; scales are there by the first point.
// *out is owned by the caller.
enum msc_status msc_pruned_edits_create(struct msc_pruned_edits **out, struct msc_pruner *p,
                                        const struct msc_quantizer *q);
void msc_pruned_edits_destroy(struct msc_pruned_edits *j); // accepts NULL

// Makes what the edits of points need and is not there yet, n_threads at a time; what comes of it does
// not depend on them. Failed, all that was made is gone, the pruner's as well. MSC_E_NOMEM.
enum msc_status msc_pruned_edits_make(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point points[], size_t n,
                                      int n_threads);
// Puts what becomes of pruned tensors into edits [n_slots] that have the quantizer's choices. Of a point
// that was made; what is filled in is borrowed until the next msc_pruned_edits_forget. MSC_E_NOMEM.
enum msc_status msc_pruned_edits_fill(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point *point,
                                      const struct msc_edit *edits[]);
// What becomes of a site, in the shape of the whole model; NULL: float. Of a point that was made.
const struct msc_quant *msc_pruned_edits_quant(const struct msc_pruned_edits *j,
                                               const struct msc_pruned_point *point, int32_t site);
// Has what was made come to more than the pruner's memory? Then it is to be forgotten, edits and all,
// with what the pruner has made.
bool msc_pruned_edits_are_full(const struct msc_pruned_edits *j);
void msc_pruned_edits_forget(struct msc_pruned_edits *j);

// What is left of a site's quantisation without the units that go, is_gone [n_units]. What it points
// to is in the arena, or `quant`'s; arrays are references of the caller's (msc_array_release), which
// has them freed after an error. MSC_E_NOMEM.
enum msc_status msc_pruned_quant(struct msc_quant *out, const struct msc_quant *quant,
                                 const struct msc_channels *channels, const struct msc_site *site,
                                 const bool is_gone[], struct msc_arena *arena);

#endif
