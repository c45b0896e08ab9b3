// Measures the recent speed of a search and chooses how many trials to evaluate together.
//
// A long round is evaluated in parts, so that a kill loses at most the current part. Each part
// should take a given time, and its number of trials follows from the speed measured in this
// launch. The parts do not affect results.
//
//     struct msc_pace pace = MSC_PACE_INIT;
//     size_t n = msc_pace_part(&pace, 60.0);           // 1 at first, then more
//     ... evaluate n trials ...
//     msc_pace_note(&pace, n, seconds);
#ifndef MSC_SEARCH_PACE_H
#define MSC_SEARCH_PACE_H

#include <stdbool.h>
#include <stddef.h>

// Seconds per unit of work, weighted towards recent notes. The first note includes the time to
// touch memory and pack weights, so it counts only until the second note.
struct msc_rate {
    size_t n_notes;
    size_t n_seen;
    double n, seconds; // sums with exponential decay
};

void msc_rate_note(struct msc_rate *rate, size_t n, double seconds); // ignores n = 0
double msc_rate_seconds(const struct msc_rate *rate);                // NaN: nothing noted

struct msc_pace {
    struct msc_rate trials; // seconds per trial, as part of an evaluation
    size_t n_beside;        // trials that run in parallel; fewer would leave threads idle
    bool is_full;           // would more trials in parallel be no faster?
    size_t n_last;          // trials of the last evaluation after the first; 0: none yet
    double last_s;
};

#define MSC_PACE_INIT                                                                              \
    { .n_beside = 1 }

void msc_pace_note(struct msc_pace *pace, size_t n, double seconds); // n trials, evaluated together
// The number of trials to evaluate in about `seconds`; at least 1. While few trials were measured,
// the number is small, but it is at least the number of trials that run in parallel.
size_t msc_pace_part(const struct msc_pace *pace, double seconds);
// The number of trials that end within `seconds`; at least 1.
size_t msc_pace_fit(const struct msc_pace *pace, double seconds);

#endif
