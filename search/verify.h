// Evaluates lines of a record, and the improved plan of its winner, again and compares.
//
// Under the numerics id the line was made with, every metric must have equal bits; under another
// one it must be within the noise. What something outside of the program has measured may differ
// (msc_metric.is_measured), which counts as within the noise, and so may the state by it. Failed lines are passed over: they may take the program down.
#ifndef MSC_SEARCH_VERIFY_H
#define MSC_SEARCH_VERIFY_H

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
    // Of a different line: the metric (or "state"), whose name is borrowed from the record and its
    // environment, and what the record has and what came out.
    const char *metric;
    double recorded, found;
    enum msc_trial_state recorded_state, found_state;
};

struct msc_verify_options {
    const struct msc_record *record;
    struct msc_env *env;
    const char *numerics; // of this program and machine
    const int64_t *ids;   // lines to verify, or NULL
    size_t n_ids;
    size_t n_sample; // lines drawn by `seed` when ids is NULL; 0: all
    uint64_t seed;
    double noise_ratio; // relative; < 0: what the environment says of the record's best, or 1e-3
    const struct msc_log *log;
    const struct msc_cancel *cancel;
};

struct msc_verify_result {
    struct msc_verify_line *lines; // [n_lines], in id order
    size_t n_lines;
    // Unless ids are given: the improved plan of the winner beside the record (search/distilled.h),
    // if there is one.
    bool has_distilled;
    struct msc_verify_line distilled;
    size_t n_by_verdict[MSC_VERIFY_VERDICT_COUNT];
    double noise_ratio; // NaN: not needed
};

// MSC_OK when lines differ, too: the result says so. MSC_E_INVALID for an id that is not there.
enum msc_status msc_verify_run(struct msc_verify_result *result,
                               const struct msc_verify_options *options);
// Appends how a line that is different differs: "distill_loss is 0.25 in the record and 0.5 now".
void msc_verify_describe(struct msc_str *out, const struct msc_verify_line *line);
void msc_verify_result_finish(struct msc_verify_result *result);
// "3,7-9" -> ids, in order, without repeats. *ids is owned by the caller (msc_free).
enum msc_status msc_verify_parse_ids(int64_t **ids, size_t *n, const char *text);

MSC_PUBLIC_END

#endif
