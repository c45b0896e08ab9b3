// What choices do to the objective alone and in pairs, by the trials of a record: whoever searched.
//
// The reference is a trial that many others differ from in one task alone: of the baselines and the trials
// after them the first that has half as many such neighbours as the one with most. A choice is known alone when
// a trial differs from the reference in that choice only; a pair of them, when both are, and a trial
// differs in just these two. Its interaction is
//
//     (loss of both - loss of the reference) - sum over the two of (loss alone - loss of the reference)
//
// 0 where losses add up. Losses are those of the first objective, in its own direction.
//
//     struct msc_analysis analysis;
//     MSC_TRY(msc_analysis_make(&analysis, record));
//     msc_analysis_text(&text, &analysis, 20, 0);
//     msc_analysis_finish(&analysis);
#ifndef MSC_SEARCH_ANALYSIS_H
#define MSC_SEARCH_ANALYSIS_H

#include "base/alloc.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_analysis_alone {
    size_t task;
    uint32_t choice;
    int64_t id;        // of the trial
    double value;      // of the objective
    double difference; // from the reference's
};

struct msc_analysis_pair {
    size_t alone[2]; // places in the list of those alone
    int64_t id;
    double value;
    double difference;  // from the reference's
    double sum;         // of the two differences alone
    double interaction; // difference - sum
};

struct msc_analysis {
    const struct msc_record *record; // borrowed
    const char *metric;
    bool has_reference; // else no trial has a result yet
    struct msc_record_line reference;
    double reference_value;
    size_t n_choices; // of all tasks, but those of the reference
    size_t n_alone, alone_capacity;
    struct msc_analysis_alone *alone; // the greatest differences first
    size_t n_pairs, pairs_capacity;
    struct msc_analysis_pair *pairs; // the greatest interactions, whatever their sign, first
    struct msc_arena arena;          // of what it is made by
};

enum msc_status msc_analysis_make(struct msc_analysis *out, const struct msc_record *record);
void msc_analysis_finish(struct msc_analysis *analysis); // accepts a zeroed one

// For people: at most `most_pairs` pairs, in tables folded to `n_columns` (0: however wide).
enum msc_status msc_analysis_text(struct msc_str *out, const struct msc_analysis *analysis,
                                  size_t most_pairs, size_t n_columns);
// One line for each choice and pair, as RFC 4180 has it, with a line of names before.
void msc_analysis_csv(struct msc_str *out, const struct msc_analysis *analysis, size_t most_pairs);
// *out is owned by the caller.
enum msc_status msc_analysis_describe(struct cJSON **out, const struct msc_analysis *analysis,
                                      size_t most_pairs);

MSC_PUBLIC_END

#endif
