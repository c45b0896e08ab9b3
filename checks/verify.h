// Evaluates lines of a record, and the improved plan of its winner, again and compares the results.
//
// Under the numerics id that a line was measured with, every metric must have equal bits; under
// another it must be within the noise. A metric measured outside the program
// (msc_metric.is_measured) may differ, and so may a state that depends on it; both count as within
// the noise. Failed lines are skipped, because they may crash the program.
#ifndef MSC_CHECKS_VERIFY_H
#define MSC_CHECKS_VERIFY_H

#include "base/cancel.h"
#include "base/log.h"
#include "env/api/env.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

struct msc_str;

enum msc_verify_verdict {
    MSC_VERIFY_EQUAL,
    MSC_VERIFY_WITHIN_NOISE,
    MSC_VERIFY_DIFFERENT,
    MSC_VERIFY_SKIPPED,
    MSC_VERIFY_VERDICT_COUNT
};
const char *msc_verify_verdict_name(enum msc_verify_verdict verdict);

struct msc_verify_line {
    int64_t id;
    enum msc_verify_verdict verdict;
    // For a line that differs: the metric or "state" (borrowed from the record and its
    // environment), the recorded value and the new one.
    const char *metric;
    double recorded, found;
    enum msc_trial_state recorded_state, found_state;
};

struct msc_verify_options {
    const struct msc_record *record;
    struct msc_env *env;
    const char *numerics; // numerics id of this program and machine
    const int64_t *ids;   // lines to verify, or NULL
    size_t n_ids;
    size_t n_sample; // number of lines drawn at random by `seed` if ids is NULL; 0: all
    uint64_t seed;
    double noise_ratio; // relative; < 0: the environment's noise for the best trial, or 1e-3
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

struct msc_verify_result {
    struct msc_verify_line *lines; // [n_lines], in id order
    size_t n_lines;
    // The improved plan of the winner (records/distilled.h), if there is one and no ids are given.
    bool has_distilled;
    struct msc_verify_line distilled;
    size_t n_by_verdict[MSC_VERIFY_VERDICT_COUNT];
    double noise_ratio; // NaN: not needed
};

// Differing lines are not an error: see the result. Warns if the model or the samples have changed
// since the search. MSC_E_INVALID: an id does not exist.
enum msc_status msc_verify_run(struct msc_verify_result *result,
                               const struct msc_verify_options *options);
// Describes how a line differs: "distill_loss is 0.25 in the record and 0.5 now".
void msc_verify_describe(struct msc_str *out, const struct msc_verify_line *line);
void msc_verify_result_finish(struct msc_verify_result *result);
// Parses "3,7-9" into sorted ids without repeats. *ids is owned by the caller (msc_free).
enum msc_status msc_verify_parse_ids(int64_t **ids, size_t *n, const char *text);

MSC_PUBLIC_END

#endif
