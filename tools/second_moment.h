// Second moments of the inputs of weights: H = X' X / n. Each row of X holds the inputs that one
// output element of a joint sums up (im2col of a convolution), in the float model on the samples.
// If a row of weights has error d, the joint's outputs have a mean square error of d' H d, which
// tools/rounding.h minimises (B. Hassibi and D. Stork, "Second order derivatives for network
// pruning", NIPS 1992).
//
// Each batch contributes a number of rows in proportion to its size, `n_rows` in all. The batch is
// divided into this number of equal stretches, and one row is drawn at random from each stretch.
// The random numbers depend on the seed, the weight and the batch. H is summed in the order of the
// rows, independent of threads; rows themselves are not stored (tools/moment_sums.h).
//
//     struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
//     size_t n_done;
//     MSC_TRY(msc_moments_measure(moments, &n_done, slots, n, ev, &o)); // the first n_done of them
//     ... moments[i].h ...
//     msc_moment_finish(&moments[i]);
//
// Under a plan, the rows are the inputs as the plan quantises them. The moment then also has the
// products of these rows with the float model's rows at the same positions.
#ifndef MSC_TOOLS_SECOND_MOMENT_H
#define MSC_TOOLS_SECOND_MOMENT_H

#include "kernels/engine/evaluator.h"

// The moment of one use of a weight. h[g] belongs to the weight's rows in group g of a
// convolution; columns are in the order (channel, kernel position) of the weight. Open structure.
// The moment is all zero if the joint is not a convolution or linear layer, or if the joint's input
// is constant.
struct msc_moment {
    int64_t n_groups, n_columns;
    int64_t n_rows; // rows sampled
    // Columns per block, 0 or n_columns for one block. Only products of columns of the same block
    // are measured; the last block may have fewer columns.
    int64_t block_columns;
    // [n_groups, blocks of n_columns x n_columns, one after another, each symmetric]; see
    // msc_moment_n_products
    float *h;
    double *means; // [n_groups, n_columns] means of the columns
    // Rows held back [n_groups, n_held, n_columns], the last of the sampled rows; NULL: none. They
    // are part of h and means; msc_moment_without_held has the moment of the others.
    float *held;
    int64_t n_held;
    // Under a plan, else NULL: F' X / n of the float model's rows F.
    float *cross;        // [n_groups, n_columns, n_columns], by columns of F, then of X
    double *float_means; // [n_groups, n_columns] means of F
};

struct msc_moment_options {
    int64_t n_rows; // greatest number of sampled rows; at least one row per batch is sampled
                    // nevertheless
    uint64_t seed;
    uint64_t memory_bytes; // limit, not counting the evaluator's; one use is always measured
    int n_threads;
    // The most rows per column; 0: no limit. With many more rows than columns, further rows change
    // a moment less than rounding does.
    double most_of_column;
    // For the float model: columns are divided into blocks of equal size, of at most this many
    // columns. 0: no limit.
    int64_t most_columns;
    // For the float model: a use with fewer rows per column of a block gets only means.
    double least_rows;
    bool only_means; // for the float model: moments get only `means`, and h is NULL
    // For the float model: a use holds back this share of its rows if the samples have fewer rows
    // per column of a block than `held_below`, sampled or not; but at least 8 rows, and half of
    // fewer than 16. 0: none.
    double held_back, held_below;
    // The plan: edits [n_slots] of the evaluator; edits of inputs must be quantisations. NULL:
    // the float model.
    const struct msc_edit *const *edits;
    // Optional: called by one thread at a time with the number of uses done.
    void (*progress)(void *payload, size_t done);
    void *payload;
};

#define MSC_MOMENT_OPTIONS_INIT                                                                    \
    { .n_rows = 16384, .memory_bytes = (uint64_t)256 << 20, .n_threads = 1 }

// Runs the float model once and, if there is a plan, the plan in the same pass. `slots` [n], n > 0,
// are slots of weights. Measures as many slots, from the first on, as fit in memory, and sets
// *n_done to the number measured. The zeroed moments [n] are owned by the caller
// (msc_moment_finish). MSC_E_CANCELLED, MSC_E_NOMEM.
enum msc_status msc_moments_measure(struct msc_moment moments[], size_t *n_done,
                                    const int32_t slots[], size_t n, struct msc_evaluator *ev,
                                    const struct msc_moment_options *options);
// The number of products of a group with n_columns in blocks, and the number of blocks.
int64_t msc_moment_n_products(int64_t n_columns, int64_t block_columns);
int64_t msc_moment_n_blocks(int64_t n_columns, int64_t block_columns);
// Combines the moments of two uses of one weight, weighted by their rows. *is_added is false,
// without effect, if their groups or columns differ or one has no moments. MSC_E_NOMEM.
enum msc_status msc_moment_add(bool *is_added, struct msc_moment *sum, const struct msc_moment *m);
// Centres products of columns, in the blocks of the moment, around the means a and b, which
// leaves the part that no bias can correct.
void msc_moment_centre(float out[], const float products[], const double a[], const double b[],
                       const struct msc_moment *m);
// Shrinks products of columns, in the blocks of the moment, towards their diagonal: all others are
// multiplied by 1 - s, with s the share that minimises the expected square error of a block,
// sum of var(h_kl) / sum of h_kl^2 over k != l. The variance of a product is estimated as that of
// Gaussian columns, (h_kk h_ll + h_kl^2) / n_rows (J. Schaefer and K. Strimmer, "A shrinkage
// approach to large-scale covariance matrix estimation", SAGMB 4(1), 2005). With few rows for many
// columns, most of the other products are noise of the sample, to which rounding would fit.
void msc_moment_shrink(float products[], const struct msc_moment *m);
// The moment of the rows that are not held back, in one part. *out is owned by the caller
// (msc_moment_finish); it is all zero if no rows are held back, or all. MSC_E_NOMEM.
enum msc_status msc_moment_without_held(struct msc_moment *out, const struct msc_moment *m);
void msc_moment_finish(struct msc_moment *m); // accepts zeros

#endif
