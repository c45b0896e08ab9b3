// Measures the effect of single choices and of pairs on the objective, from the trials of any
// record.
//
// The reference is a trial with many neighbours: trials that differ from it in one task. The
// candidates are the baselines and the first trials after them. The reference is the first
// candidate with at least half as many neighbours as the candidate with the most. The effect of a
// choice is known if a trial differs from the reference in that choice only. The interaction of a
// pair is known if both effects are known and a trial differs from the reference in just these two
// choices:
//
//     (loss of both - loss of the reference)
//         - sum over the two of (loss of one - loss of the reference)
//
// The interaction is 0 if losses add up. A loss is the value of the first objective, not negated if
// the objective is maximised.
//
//     struct msc_analysis analysis;
//     MSC_TRY(msc_analysis_make(&analysis, record));
//     msc_analysis_text(&text, &analysis, 20, 0);
//     msc_analysis_finish(&analysis);
#ifndef MSC_RESULTS_ANALYSIS_H
#define MSC_RESULTS_ANALYSIS_H

#include "base/alloc.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_analysis_alone {
    size_t task;
    uint32_t choice;
    int64_t id;        // id of the trial
    double value;      // value of the first objective
    double difference; // `value` minus the reference's value
};

struct msc_analysis_pair {
    size_t alone[2]; // indices of the two choices in msc_analysis.alone
    int64_t id;
    double value;
    double difference;  // `value` minus the reference's value
    double sum;         // sum of the two single differences
    double interaction; // difference - sum
};

struct msc_analysis {
    const struct msc_record *record; // borrowed
    const char *metric;
    bool has_reference; // false: no trial has a result yet
    struct msc_record_line reference;
    double reference_value;
    size_t n_choices; // number of choices of all tasks, without the reference's choices
    size_t n_alone, alone_capacity;
    struct msc_analysis_alone *alone; // greatest differences first
    size_t n_pairs, pairs_capacity;
    struct msc_analysis_pair *pairs; // greatest interactions first, by absolute value
    struct msc_arena arena;          // owns the memory of the analysis
};

enum msc_status msc_analysis_make(struct msc_analysis *out, const struct msc_record *record);
void msc_analysis_finish(struct msc_analysis *analysis); // accepts a zeroed struct

// Writes text for people: at most `most_pairs` pairs, in tables of at most `n_columns` characters a
// line (0: any width).
enum msc_status msc_analysis_text(struct msc_str *out, const struct msc_analysis *analysis,
                                  size_t most_pairs, size_t n_columns);
// Writes CSV (RFC 4180): a header line, then a line for each choice and each pair.
void msc_analysis_csv(struct msc_str *out, const struct msc_analysis *analysis, size_t most_pairs);
// Describes the analysis as JSON. *out is owned by the caller.
enum msc_status msc_analysis_describe(struct cJSON **out, const struct msc_analysis *analysis,
                                      size_t most_pairs);

MSC_PUBLIC_END

#endif
