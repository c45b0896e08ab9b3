// How quick a search is of late, and so how many trials to evaluate together.
//
// A long round is evaluated in parts, so that a kill costs no more than the part in work. A part
// is to take about so many seconds; how many trials that are is learned in this launch. Nothing of
// it changes what a trial gives.
//
//     struct msc_pace pace = MSC_PACE_INIT;
//     size_t n = msc_pace_part(&pace, 60.0);           // 1 at first, then as many as are worth it
//     ... evaluate n trials ...
//     msc_pace_note(&pace, n, seconds);
#ifndef MSC_SEARCH_PACE_H
#define MSC_SEARCH_PACE_H

#include <stdbool.h>
#include <stddef.h>

// Seconds for one of something, where the last ones count most. The first note, in which memory is
// touched and weights are packed, counts only until there is a second.
struct msc_rate {
    size_t n_notes;
    size_t n_seen;
    double n, seconds; // sums in which what is long past has faded
};

void msc_rate_note(struct msc_rate *rate, size_t n, double seconds); // n 0 is passed over
double msc_rate_seconds(const struct msc_rate *rate);                // NaN: nothing was noted

struct msc_pace {
    struct msc_rate trials; // one, as part of an evaluation
    size_t n_beside;        // so many run beside one another: fewer would leave threads idle
    bool is_full;           // and more do not
    size_t n_last;          // of the last evaluation, 0: none but the first
    double last_s;
};

#define MSC_PACE_INIT                                                                              \
    { .n_beside = 1 }

void msc_pace_note(struct msc_pace *pace, size_t n, double seconds); // n trials together
// How many trials take about `seconds`: at least 1, and few while little is known. More than that
// where they run beside one another.
size_t msc_pace_part(const struct msc_pace *pace, double seconds);
// How many trials end within `seconds`; at least 1.
size_t msc_pace_fit(const struct msc_pace *pace, double seconds);

#endif
