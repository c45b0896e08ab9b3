// What a search will cost, before it starts.
#ifndef MSC_SEARCH_ESTIMATE_H
#define MSC_SEARCH_ESTIMATE_H

#include "agents/agent.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_estimate {
    double trial_s;    // one trial, as part of a round; NaN: not known yet
    size_t n_measured; // trials it was measured on
    double n_points;   // in the space
    double n_trials;   // from here on, by what ends first; +inf: no limit
    bool is_exact;     // else at most so many
    bool is_timed;     // what ends first is the budget of time: about so many
    bool is_counted;   // the budget is a number of trials: as many are to be expected
    double n_plan; // trials up to the plan that the agent makes of them (msc_agent_left); 0: none
    bool is_agent_counted; // `left_s` counts what the agent takes itself
    double agent_s;        // that, of all these trials
    double left_s;         // until then; +inf: no limit, NaN: not known
    double reevaluate_s;   // then, for what is measured once more for the report; NaN: not known
    double end_wall_s;     // seconds since 1970, UTC
    uint64_t line_bytes;   // of one trial
    double record_bytes;   // that will be added; +inf: no limit
    uint64_t free_bytes;   // where the record is
    size_t n_recorded;     // trials already in the record
    struct msc_race race;  // between trials of a round; without rungs: none
    size_t n_batches;      // that its rungs are of
};

// What a running search knows better than its record does.
struct msc_estimate_live {
    struct msc_agent_left left; // trials to come
    double effort;              // what they cost, in trials of `trial_s`
    double trial_s;             // NaN: not known
    size_t n_measured;
};

// Evaluates the baselines (one point when there are none) and writes nothing. With a record that
// has evaluated trials, their times are taken instead.
enum msc_status msc_estimate_make(struct msc_estimate *out,
                                  const struct msc_search_options *options);
// The same from a record that the caller has open. `live` NULL: no search runs.
enum msc_status msc_estimate_from_record(struct msc_estimate *out, const struct msc_record *record,
                                         const struct msc_search_options *options,
                                         const struct msc_estimate_live *live);
// Seconds that measuring the record's best and the baselines once more will take
// (msc_env_reevaluate); NaN: not known. `trial_s`: of one trial of late, NaN: what the record says.
enum msc_status msc_estimate_reevaluate(double *out, struct msc_env *env,
                                        const struct msc_record *record, double trial_s);
// MSC_E_IO when the record of a counted budget will not fit on its disk, or the disk is full.
enum msc_status msc_estimate_check(const struct msc_estimate *estimate, const char *record_path);
// Appends a few lines for people.
void msc_estimate_text(struct msc_str *out, const struct msc_estimate *estimate);
// The same for programs, as members of `object`. null: no limit, or not known.
enum msc_status msc_estimate_describe(const struct msc_estimate *estimate, struct cJSON *object);

MSC_PUBLIC_END

#endif
