// Weights that go one by one, which leaves a matrix as large as it was, with zeros: which, and what the
// others become.
//
// Rows W that are multiplied by the same inputs, of second moments C (tools/second_moment.h), lose a share
// of their weights, or all but N of each M neighbours, "N:M" (A. Mishra et al., "Accelerating Sparse
// Deep Neural Networks", arXiv 2104.08378). A weight is worth
//
//     l1, l2    its magnitude
//     energy    w^2 C_kk (M. Sun et al., "A Simple and Effective Pruning Approach for Large Language
//               Models", ICLR 2024: magnitude times the norm of what comes in)
//     hessian   w^2 / (C^-1)_kk: what is missed once the others have made up for it (B. Hassibi and D.
//               Stork, "Second order derivatives for network pruning", NIPS 1992). Weights go in eight
//               stages, fewer and fewer (M. Zhu and S. Gupta, arXiv 1710.01878: 1 - (1 - t / 8)^3 of them
//               after stage t), and in between the others do make up for them, as below. SparseGPT
//               (E. Frantar and D. Alistarh, ICML 2023), which lets columns make up for those before
//               them, lost about as much where half of the weights go, and twice as much at 70 %
//
// A share goes of all rows together. Of equal ones the first goes.
//
// Where they are repaired, weights W_k that stay are those with which W's outputs are met best: for each
// row, with g those that go,
//
//     W_k' = W_k + W_g C_gk (C_kk)^-1
//
// by conjugate gradients for all rows at once, as each row has a C_kk of its own; C has its ridge already.
//
//     MSC_TRY(msc_sparse_rows_choose(&rows, &sparsity, MSC_CRITERION_HESSIAN));
//     MSC_TRY(msc_sparse_rows_repair(&rows));                 // or msc_sparse_rows_mask(&rows)
#ifndef MSC_TOOLS_SPARSITY_H
#define MSC_TOOLS_SPARSITY_H

#include "base/status.h"
#include "tools/criterion.h"

#include <stdbool.h>
#include <stdint.h>

// N of each M stay, or without M all but a share.
struct msc_sparsity {
    double share; // that goes, 0 <= share < 1
    int n, m;     // 0: no pattern
};
#define MSC_SPARSITY_MOST 32 // m

// Open structure; everything is the caller's.
struct msc_sparse_rows {
    int64_t n_rows, n_columns;
    int64_t run; // neighbours are within so many columns: the input channels of one kernel position
    double *w;   // [n_rows, n_columns]
    const double
        *c; // [n_columns, n_columns] symmetric; NULL where neither criterion nor repair needs it
    bool *is_kept; // [n_rows, n_columns]
};

// How many weights stay. What a run has beyond multiples of M keeps N of them, too, or all.
int64_t msc_sparsity_count(const struct msc_sparsity *s, int64_t n_rows, int64_t n_columns,
                           int64_t run);
// What `n_kept` of n float32 weights take in memory: 4 bytes each, and to say where they are, of a
// pattern ceil(log2 M) bits each (2 for 2:4, as tensor cores have it), else one bit for each of the n.
double msc_sparsity_bytes(const struct msc_sparsity *s, int64_t n_kept, int64_t n);

// Fills is_kept; no criterion is MSC_CRITERION_LOSS. MSC_E_INVALID: c is not positive definite, which
// hessian needs; MSC_E_NOMEM.
enum msc_status msc_sparse_rows_choose(struct msc_sparse_rows *r, const struct msc_sparsity *s,
                                       enum msc_criterion criterion);
// Both set what goes to 0. MSC_E_NOMEM.
enum msc_status msc_sparse_rows_repair(struct msc_sparse_rows *r);
void msc_sparse_rows_mask(struct msc_sparse_rows *r);

#endif
