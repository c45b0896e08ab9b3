// Between estimate.c and estimate_agent.c.
#ifndef MSC_SEARCH_ESTIMATE_INTERNAL_H
#define MSC_SEARCH_ESTIMATE_INTERNAL_H

#include "search/estimate.h"

// A probe of the space's baseline; of its first point where there is no such baseline.
enum msc_status msc_estimate__baseline(struct msc_trial *trial, struct msc_arena *arena,
                                       const struct msc_space *space, size_t index);
// Fills `left` and `effort` without a search that runs, when `n_done` trials were asked for already.
enum msc_status msc_estimate__ask(struct msc_estimate_live *out, const struct msc_search_options *o,
                                  size_t n_done);
// What an agent takes itself, when it is asked and told with losses that are made up.
struct msc_estimate_agent {
    bool is_known;
    double n, seconds; // so many trials, and the time that they took
    double later_s;    // of each after them
    double plan_s;     // of the plan that it makes of what it was told
};
// Of a fresh agent over the first `n` trials (+inf: no end is in sight), for a moment at most.
enum msc_status msc_estimate__probe(struct msc_estimate_agent *out,
                                    const struct msc_search_options *o, double n);

#endif
