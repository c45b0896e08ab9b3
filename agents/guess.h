// What choices lose of which nothing was told yet, by those of other tasks.
#ifndef MSC_AGENTS_GUESS_H
#define MSC_AGENTS_GUESS_H

#include "agents/exact_bounds.h"

struct msc_guess {
    const struct msc_exact_bounds *bounds; // borrowed
    double *values;                        // [n_entries], what was told and what is guessed
    double *sums;                          // [most choices of a task], by place
    size_t *counts;                        // the same
    uint32_t *places;                      // the same: 0, 1, …
    uint32_t n_places;
};

enum msc_status msc_guess_init(struct msc_guess *guess, struct msc_arena *arena,
                               const struct msc_exact_bounds *bounds);
// Fills what is open (`is_open` [n_entries], NULL: all) and not a number between two choices of a task that
// are known: what they lose is taken to rise evenly from place to place of most_expensive_first.
void msc_guess_between(double losses[], const bool is_open[],
                       const struct msc_exact_bounds *bounds);
// Fills `values`: what is known as it is, what is open between two that are known as above, all else that is
// open by what choices in the same place of other tasks lose on average. Where no task tells of a place that
// is the same between two others; after the last that is known each loses twice as much as the one before.
const double *msc_guess_fill(struct msc_guess *guess, const double known[], const bool is_open[]);

#endif
