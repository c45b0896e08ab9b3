// Removes columns of weights unit by unit, while the remaining weights compensate. W is a matrix of
// rows whose inputs have second moments C. Removing a unit with columns c costs
//
//     tr(W_c ((C^-1)_cc)^-1 W_c')
//
// after the other weights have compensated as far as possible. W and C^-1 are then updated (B.
// Hassibi and D. Stork, "Second order derivatives for network pruning", NIPS 1992; E. Frantar and
// D. Alistarh, "Optimal Brain Compression", NeurIPS 2022):
//
//     W - W_c ((C^-1)_cc)^-1 (C^-1)_c:,    C^-1 - (C^-1)_:c ((C^-1)_cc)^-1 (C^-1)_c:
//
// This is a Cholesky factorisation of C^-1 whose pivots are chosen on the way. Rows of the factor
// are collected and subtracted from C^-1 in batches; only the diagonal blocks of units, which the
// next choice needs, are always up to date. Each batch also drops removed columns. For n columns,
// inverting C takes at most n^3 multiply-accumulates, and removing all columns takes at most as
// many again. Matrix products make up nearly all of this work.
//
//     MSC_TRY(msc_elimination_create(&e, &of));
//     MSC_TRY(msc_elimination_score(&score, e, unit));
//     MSC_TRY(msc_elimination_remove(e, units, n));
//     msc_elimination_destroy(e);
#ifndef MSC_TOOLS_ELIMINATION_H
#define MSC_TOOLS_ELIMINATION_H

#include "base/status.h"

#include <stdint.h>

struct msc_elimination;

// Open structure; borrowed during msc_elimination_create.
struct msc_eliminated {
    int64_t n_rows, n_columns;
    const float *w; // [n_rows, n_columns]
    double *c;      // [n_columns, n_columns], symmetric; overwritten
    int32_t n_units;
    const int64_t *columns; // columns of all units, unit by unit; other columns are never removed
    const int64_t *first;   // [n_units + 1] start of each unit's columns in `columns`
};

// *out is owned by the caller. MSC_E_INVALID: c is not positive definite; MSC_E_NOMEM.
enum msc_status msc_elimination_create(struct msc_elimination **out,
                                       const struct msc_eliminated *of);
void msc_elimination_destroy(struct msc_elimination *e); // accepts NULL

// The cost of removing a unit that still remains. Threads may compute scores concurrently.
// MSC_E_INVALID: the unit's block is no longer positive definite.
enum msc_status msc_elimination_score(double *out, const struct msc_elimination *e, int32_t unit);
// Removes units, all at once. After a failure the elimination can only be destroyed.
enum msc_status msc_elimination_remove(struct msc_elimination *e, const int32_t units[], int32_t n);

#endif
