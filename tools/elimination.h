// Columns of weights that go unit by unit, while those that stay make up for them: with rows W that are
// multiplied by inputs of second moments C, what a unit's columns c take along is
//
//     tr(W_c ((C^-1)_cc)^-1 W_c')
//
// once the others have taken over what they can, and W and C^-1 become those of what is left (B. Hassibi
// and D. Stork, "Second order derivatives for network pruning", NIPS 1992; E. Frantar and D. Alistarh,
// "Optimal Brain Compression", NeurIPS 2022):
//
//     W - W_c ((C^-1)_cc)^-1 (C^-1)_c:,    C^-1 - (C^-1)_:c ((C^-1)_cc)^-1 (C^-1)_c:
//
// That is a Cholesky factor of C^-1 whose pivots are chosen on the way. Its rows are kept and taken from
// C^-1 many at a time; only the units' own blocks of it, which the next choice rests on, are up to date
// always. Columns that have gone are left out as soon as rows are taken. So with n columns it takes at most
// n^3 multiply-accumulates to invert, and as many to let all of them go, nearly all of them in products of
// matrices.
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

// Open structure; borrowed while an elimination is made.
struct msc_eliminated {
    int64_t n_rows, n_columns;
    const float *w; // [n_rows, n_columns]
    double *c;      // [n_columns, n_columns], symmetric; overwritten
    int32_t n_units;
    const int64_t *columns; // of all units, one after the other; others never go
    const int64_t *first;   // [n_units + 1] where in `columns` a unit's begin
};

// *out is owned by the caller. MSC_E_INVALID: c is not positive definite; MSC_E_NOMEM.
enum msc_status msc_elimination_create(struct msc_elimination **out,
                                       const struct msc_eliminated *of);
void msc_elimination_destroy(struct msc_elimination *e); // accepts NULL

// What a unit that has not gone takes along. Several may be asked for at once. MSC_E_INVALID: it is not
// positive definite any more.
enum msc_status msc_elimination_score(double *out, const struct msc_elimination *e, int32_t unit);
// Lets units go, all at once. Failing leaves it of no use.
enum msc_status msc_elimination_remove(struct msc_elimination *e, const int32_t units[], int32_t n);

#endif
