// Second moments of what weights are multiplied by: H = X' X / n, where the rows of X are what one
// output element of a joint sums up (im2col of a convolution), in the float model on the samples.
// With a row of weights off by d, the joint's outputs are off by d' H d in the mean square, which
// is what tools/rounding.h keeps small (B. Hassibi and D. Stork, "Second order derivatives for
// network pruning", NIPS 1992).
//
// Of all rows in a batch so many are taken as its share of `n_rows` is: one from each of as many
// stretches of equal length, where in it a random number from the seed, the weight and the batch
// says. H is added up in the order of the rows, whatever the threads, as they come: rows themselves
// are not kept (tools/moment_sums.h).
//
//     struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
//     size_t n_done;
//     MSC_TRY(msc_moments_measure(moments, &n_done, slots, n, ev, &o)); // the first n_done of them
//     ... moments[i].h ...
//     msc_moment_finish(&moments[i]);
//
// Under a plan the rows are of what its joints read, quantised as it says, and beside H there are
// their products with the rows of the float model at the same places.
#ifndef MSC_TOOLS_SECOND_MOMENT_H
#define MSC_TOOLS_SECOND_MOMENT_H

#include "kernels/engine/evaluator.h"

// Of one use of a weight. Rows of the weight that belong to a convolution's group g are multiplied
// by what h[g] is of; columns are in the order (channel, kernel position) of the weight itself.
// Open structure; all zero where there is none: the joint is no convolution or linear layer, or what
// it reads is constant.
struct msc_moment {
    int64_t n_groups, n_columns;
    int64_t n_rows; // that were taken
    float *h;       // [n_groups, n_columns, n_columns], symmetric
    double *means;  // [n_groups, n_columns] of the columns
    // Under a plan, else NULL: F' X / n of the float model's rows F.
    float *cross;        // [n_groups, n_columns, n_columns], by columns of F, then of X
    double *float_means; // [n_groups, n_columns] of F
};

struct msc_moment_options {
    int64_t n_rows; // at most, but one of each batch
    uint64_t seed;
    uint64_t memory_bytes; // that this may take, beside the evaluator; one use is measured always
    int n_threads;
    // The plan: edits [n_slots] of the evaluator, those of inputs quantisations. NULL: the float
    // model.
    const struct msc_edit *const *edits;
    // Optional: told, by one thread at a time, how much is done: as much as so many of its uses.
    void (*progress)(void *payload, size_t done);
    void *payload;
};

#define MSC_MOMENT_OPTIONS_INIT                                                                    \
    { .n_rows = 16384, .memory_bytes = (uint64_t)256 << 20, .n_threads = 1 }

// Runs the float model once, and the plan beside it. `slots` [n], n > 0, are weights'; as many are
// measured as memory has room for, the first *n_done of them, into zeroed moments [n], which are the
// caller's (msc_moment_finish). MSC_E_CANCELLED, MSC_E_NOMEM.
enum msc_status msc_moments_measure(struct msc_moment moments[], size_t *n_done,
                                    const int32_t slots[], size_t n, struct msc_evaluator *ev,
                                    const struct msc_moment_options *options);
// Makes the moments of two uses of one weight those of both: each counts by its rows. False, with
// nothing done, where they have not the same groups and columns, or one has no moments.
bool msc_moment_add(struct msc_moment *sum, const struct msc_moment *m);
// Products of columns [n_groups, n_columns, n_columns] around the means of the two: what no bias makes
// up for.
void msc_moment_centre(float out[], const float products[], const double a[], const double b[],
                       const struct msc_moment *m);
void msc_moment_finish(struct msc_moment *m); // accepts zeroed

#endif
