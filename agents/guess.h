// Guesses the isolated losses of choices that were not observed yet from the observed ones, so that
// a plan can be made early. Only init allocates.
#ifndef MSC_AGENTS_GUESS_H
#define MSC_AGENTS_GUESS_H

#include "agents/exact_bounds.h"

struct msc_guess {
    const struct msc_exact_bounds *bounds; // borrowed
    double *values;                        // [n_entries], observed or guessed
    double *sums;                          // [n_places], by position in most_expensive_first
    size_t *counts;                        // [n_places]
    uint32_t *places;                      // [n_places], 0, 1, …
    uint32_t n_places;                     // greatest number of choices of a task
};

enum msc_status msc_guess_init(struct msc_guess *guess, struct msc_arena *arena,
                               const struct msc_exact_bounds *bounds);
// Fills losses that are NaN and open (`is_open` [n_entries]; NULL: all) between two known choices
// of a task, by linear interpolation over positions in most_expensive_first.
void msc_guess_between(double losses[], const bool is_open[],
                       const struct msc_exact_bounds *bounds);
// Fills and returns `values`. Known losses are kept. An open loss between two known choices is
// interpolated as by msc_guess_between. Any other open loss is the average loss at the same
// position of other tasks. If no task has a known loss at a position, the average is interpolated
// between positions. After the last position with a known loss, the average doubles from position
// to position.
const double *msc_guess_fill(struct msc_guess *guess, const double known[], const bool is_open[]);

#endif
