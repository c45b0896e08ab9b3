// Edits of points that both prune and quantise: the pruner's edit of a weight (tools/pruner.h),
// followed by the quantizer's edit of the result (tools/quantizer.h).
//
// Activations keep the scales of the float model whatever is pruned, because the weights that read
// them are repaired and the remaining values change little. A weight whose input channels are
// pruned is requantised for each cut: it is repaired, then its range is observed and its integers
// are chosen as for a weight of the model. Its elements for removed channels are 0; they do not
// affect the range and remain 0. The second moments of its inputs (for the observer `hessian`, the
// roundings `gptq` and `descent`, and the correction `affine`) are the pruner's, restricted to the
// remaining channels. If the pruner keeps no moments, the weight is rounded to nearest. Removing
// output channels does not change a weight: rows that no joint reads are rounded with the others.
//
// A requantised weight is made once for each combination of input cuts and choice.
//
//     MSC_TRY(msc_pruned_edits_create(&j, pruner, quantizer));
//     MSC_TRY(msc_pruned_edits_make(j, points, n, n_threads));
//     ... fill edits [n_slots] with the quantizer's choices ...
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

// Pruner and quantizer are borrowed until destroy and must have sites of the same scheme. The
// quantizer must have scales before the first point is made. *out is owned by the caller.
enum msc_status msc_pruned_edits_create(struct msc_pruned_edits **out, struct msc_pruner *p,
                                        const struct msc_quantizer *q);
void msc_pruned_edits_destroy(struct msc_pruned_edits *j); // accepts NULL

// Makes the missing edits of points; the result does not depend on n_threads. A failure discards
// everything made, including the pruner's edits. MSC_E_NOMEM.
enum msc_status msc_pruned_edits_make(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point points[], size_t n,
                                      int n_threads);
// Replaces the edits of pruned tensors in edits [n_slots], which the caller has filled with the
// quantizer's edits. The point must have been made; edits are borrowed until the next
// msc_pruned_edits_forget. MSC_E_NOMEM.
enum msc_status msc_pruned_edits_fill(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point *point,
                                      const struct msc_edit *edits[]);
// The quantisation of a site, in the shape of the whole model; NULL: float. The point must have
// been made.
const struct msc_quant *msc_pruned_edits_quant(const struct msc_pruned_edits *j,
                                               const struct msc_pruned_point *point, int32_t site);
// Do the edits exceed the pruner's memory? Then call msc_pruned_edits_forget, which invalidates all
// edits, including the pruner's.
bool msc_pruned_edits_are_full(const struct msc_pruned_edits *j);
void msc_pruned_edits_forget(struct msc_pruned_edits *j);

// The quantisation of a site without the removed units, is_gone [n_units]. Its pointers are in
// the arena or in `quant`; the caller releases its arrays (msc_array_release), except after an
// error. MSC_E_NOMEM.
enum msc_status msc_pruned_quant(struct msc_quant *out, const struct msc_quant *quant,
                                 const struct msc_channels *channels, const struct msc_site *site,
                                 const bool is_gone[], struct msc_arena *arena);

#endif
