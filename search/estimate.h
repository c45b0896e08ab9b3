// Estimates how long a search will take and how much it will write, before it starts.
#ifndef MSC_SEARCH_ESTIMATE_H
#define MSC_SEARCH_ESTIMATE_H

#include "agents/agent.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_estimate {
    double trial_s;    // time of one trial as part of a round; NaN: unknown
    size_t n_measured; // trials that `trial_s` was measured on
    double n_points;   // points in the space
    double n_trials;   // trials to come until the first limit is reached; +inf: no limit
    bool is_exact;     // n_trials is exact; else it is an upper bound
    bool is_timed;     // the time budget is reached first, so n_trials is an estimate
    bool is_counted;   // is there a budget of trials?
    double n_plan; // trials until the agent makes its final plan (msc_agent_left); 0: it makes none
    bool is_agent_counted; // does `left_s` include the agent's own time?
    double agent_s;        // the agent's own time for all these trials
    double left_s;         // time until the end; +inf: no limit, NaN: unknown
    double reevaluate_s;   // time of the measurements for the report; NaN: unknown
    double end_wall_s;     // seconds since 1970, UTC
    uint64_t line_bytes;   // length of one trial's line
    double record_bytes;   // bytes still to be written; +inf: no limit
    uint64_t free_bytes;   // free space on the record's disk
    size_t n_recorded;     // trials already in the record
    struct msc_race race;  // the race between the trials of a round; without rungs there is none
    double race_effort;    // greatest share of its batches that a round takes; 1 without a race
    size_t n_batches;      // batches of the samples; a rung is a number of batches
    // Of the n_shared trials of the agent's first round, measured on one batch; 0 trials: unknown.
    // The shares of their multiply-accumulates that are reused from each other, and from results
    // that the cache keeps of the baselines.
    size_t n_shared;
    double shared_ratio, kept_ratio;
};

// Values that a running search knows more exactly than its record.
struct msc_estimate_live {
    struct msc_agent_left left; // trials to come
    double effort;              // cost of these trials, in units of `trial_s`
    double trial_s;             // time of one trial; NaN: unknown
    size_t n_measured;
};

// Measures the baselines (or one point if there are none), and the agent's first round on one
// batch, and writes nothing. If the record has evaluated trials, their times are used instead.
enum msc_status msc_estimate_make(struct msc_estimate *out,
                                  const struct msc_search_options *options);
// Like msc_estimate_make, but for a record that the caller has open. `live` NULL: no search runs.
enum msc_status msc_estimate_from_record(struct msc_estimate *out, const struct msc_record *record,
                                         const struct msc_search_options *options,
                                         const struct msc_estimate_live *live);
// Seconds to measure the record's best trial and the baselines again (msc_env_reevaluate); NaN:
// unknown. `trial_s`: recent time of one trial; NaN: take it from the record.
enum msc_status msc_estimate_reevaluate(double *out, struct msc_env *env,
                                        const struct msc_record *record, double trial_s);
// MSC_E_IO if the disk is full, or too small for the record of a search with a budget of trials.
enum msc_status msc_estimate_check(const struct msc_estimate *estimate, const char *record_path);
// Appends a few lines of text for people.
void msc_estimate_text(struct msc_str *out, const struct msc_estimate *estimate);
// Adds the estimate to `object` as JSON members. `null` means that there is no limit, or that the
// value is unknown.
enum msc_status msc_estimate_describe(const struct msc_estimate *estimate, struct cJSON *object);

MSC_PUBLIC_END

#endif
