// What a search will cost, before it starts.
#ifndef MSC_SEARCH_ESTIMATE_H
#define MSC_SEARCH_ESTIMATE_H

#include "search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

struct msc_str;

struct msc_estimate {
    double trial_s;      // one trial, as part of a round; NaN: not known yet
    size_t n_measured;   // trials it was measured on
    double n_points;     // in the space
    double n_trials;     // what the budget buys from here on; +inf: no limit
    bool is_counted;     // the budget is a number of trials: as many are to be expected
    double left_s;       // until then; +inf: no limit, NaN: not known
    double end_wall_s;   // seconds since 1970, UTC
    uint64_t line_bytes; // of one trial
    double record_bytes; // that will be added; +inf: no limit
    uint64_t free_bytes; // where the record is
    size_t n_recorded;   // trials already in the record
};

// Evaluates the baselines (one point when there are none) and writes nothing. With a record that
// has evaluated trials, their times are taken instead.
enum msc_status msc_estimate_make(struct msc_estimate *out,
                                  const struct msc_search_options *options);
// The same from a record that the caller has open.
enum msc_status msc_estimate_from_record(struct msc_estimate *out, const struct msc_record *record,
                                         const struct msc_search_options *options);
// MSC_E_IO when the record of a counted budget will not fit on its disk, or the disk is full.
enum msc_status msc_estimate_check(const struct msc_estimate *estimate, const char *record_path);
// Appends a few lines for people.
void msc_estimate_text(struct msc_str *out, const struct msc_estimate *estimate);

#ifdef __cplusplus
}
#endif

#endif
