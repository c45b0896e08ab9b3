// Removes single weights: chooses them, sets them to 0 and repairs the others. The matrix keeps its
// size.
//
// The rows W are multiplied by the same inputs, which have second moments C
// (tools/second_moment.h). The rows lose a share of their weights or, with a pattern "N:M", all but
// N of each M neighbouring weights (A. Mishra et al., "Accelerating Sparse Deep Neural Networks",
// arXiv 2104.08378). The worth of a weight is
//
//     l1, l2    its magnitude
//     energy    w^2 C_kk (M. Sun et al., "A Simple and Effective Pruning Approach for Large
//               Language Models", ICLR 2024: magnitude times the norm of the inputs)
//     hessian   w^2 / (C^-1)_kk: the loss after the others have compensated (B. Hassibi and
//               D. Stork, "Second order derivatives for network pruning", NIPS 1992). Weights are
//               removed in eight stages of decreasing size (M. Zhu and S. Gupta, arXiv 1710.01878:
//               a share of 1 - (1 - t / 8)^3 of them after stage t), and the others are repaired
//               in between, as below. SparseGPT (E. Frantar and D. Alistarh, ICML 2023), in which
//               later columns compensate for earlier ones, lost about as much at 50 % sparsity, and
//               twice as much at 70 %
//
// A share is taken over all rows together. Among weights of equal worth, the first is removed
// first.
//
// Repair chooses the remaining weights W_k that best reproduce W's outputs: for each row, with g
// the removed columns,
//
//     W_k' = W_k + W_g C_gk (C_kk)^-1
//
// This is solved by conjugate gradients for all rows at once, since each row has its own C_kk. C
// already includes its ridge.
//
//     MSC_TRY(msc_sparse_rows_choose(&rows, &sparsity, MSC_CRITERION_HESSIAN));
//     MSC_TRY(msc_sparse_rows_repair(&rows));                 // or msc_sparse_rows_mask(&rows)
#ifndef MSC_TOOLS_SPARSITY_H
#define MSC_TOOLS_SPARSITY_H

#include "base/status.h"
#include "tools/criterion.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Keeps N of each M weights or, without a pattern, all weights except a share.
struct msc_sparsity {
    double share; // share to remove, 0 <= share < 1
    int n, m;     // 0: no pattern
};
#define MSC_SPARSITY_MOST 32 // m

// Open structure; the caller owns everything.
struct msc_sparse_rows {
    int64_t n_rows, n_columns;
    int64_t run; // number of columns within which a pattern remains: the input channels of one
                 // kernel position
    double *w;   // [n_rows, n_columns]
    const double
        *c; // [n_columns, n_columns] symmetric; NULL if neither criterion nor repair needs it
    bool *is_kept; // [n_rows, n_columns]
};

// The number of weights kept. An incomplete group at the end of a run also keeps N weights, or all
// of the group's weights if there are fewer than N.
int64_t msc_sparsity_count(const struct msc_sparsity *s, int64_t n_rows, int64_t n_columns,
                           int64_t run);
// Memory of `n_kept` out of n weights: `element_bytes` each, plus their positions. With a pattern,
// a position takes ceil(log2 M) bits (2 for 2:4, as in tensor cores). Without a pattern, positions
// take one bit for each of the n weights.
double msc_sparsity_bytes(const struct msc_sparsity *s, int64_t n_kept, int64_t n,
                          size_t element_bytes);

// Fills is_kept; MSC_CRITERION_LOSS is not supported. MSC_E_INVALID: `c` is not positive definite,
// as the criterion `hessian` requires; MSC_E_NOMEM.
enum msc_status msc_sparse_rows_choose(struct msc_sparse_rows *r, const struct msc_sparsity *s,
                                       enum msc_criterion criterion);
// Both functions set removed weights to 0. Repair may fail with MSC_E_NOMEM.
enum msc_status msc_sparse_rows_repair(struct msc_sparse_rows *r);
void msc_sparse_rows_mask(struct msc_sparse_rows *r);

#endif
