// Shared by estimate.c and estimate_agent.c.
#ifndef MSC_SEARCH_ESTIMATE_INTERNAL_H
#define MSC_SEARCH_ESTIMATE_INTERNAL_H

#include "search/estimate.h"

// Makes a probe of one of the space's baselines, or of its first point if it has none.
enum msc_status msc_estimate__baseline(struct msc_trial *trial, struct msc_arena *arena,
                                       const struct msc_space *space, size_t index);
// Fills `left` and `effort` from what a new agent reports, for the state after `n_done` proposals.
enum msc_status msc_estimate__ask(struct msc_estimate_live *out, const struct msc_search_options *o,
                                  size_t n_done);
// Opens the agent, which reacts to requests to stop the search. *out is NULL for an external agent:
// its program is not run.
enum msc_status msc_estimate__open_agent(struct msc_agent **out,
                                         const struct msc_search_options *o);
// Fills n_shared and the ratios, if the environment runs the network in batches. `baselines` are
// the measured baselines, or one measured point if there are none.
enum msc_status msc_estimate__reuse(struct msc_estimate *e, const struct msc_search_options *o,
                                    struct msc_trial *const baselines[], size_t n_baselines);
// The agent's own time, measured by giving it made-up losses.
struct msc_estimate_agent {
    bool is_known;
    double n, seconds; // number of proposed trials, and time to propose them
    double later_s;    // time for each further trial
    double plan_s;     // time to make its final plan
};
// Measures a new agent over the first `n` trials (+inf: no known end), but for at most a fraction
// of a second.
enum msc_status msc_estimate__probe(struct msc_estimate_agent *out,
                                    const struct msc_search_options *o, double n);

#endif
