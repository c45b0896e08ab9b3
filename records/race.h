// Races: trials of a round go on only while they are among its best (successive halving: Jamieson &
// Talwalkar 2016, arXiv 1502.07943). A rung is a number of batches after which the trials of a round
// are compared by what their losses have come to, and some are let go.
//
//     struct msc_race race;
//     MSC_TRY(msc_race_read(&race, config, n_batches, "quantize[0]"));
//     size_t n = msc_race_kept(&race, 32);
#ifndef MSC_RECORDS_RACE_H
#define MSC_RECORDS_RACE_H

#include "records/record.h"

// Reads `true`, or {"rungs": [batches, ...], "keep": share}, either of which may be absent, for samples
// in so many batches; 0: not known yet, and rungs by default are left out. MSC_E_INVALID, beginning with
// `where`.
enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where);
// The same in a form that msc_race_read takes; owned by the caller, NULL: no memory.
struct cJSON *msc_race_write(const struct msc_race *race);
// How many of n trials go on after a rung; at least 1.
size_t msc_race_kept(const struct msc_race *race, size_t n);
// What a trial of a round of n takes on average, as a part of one that is measured in full.
double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches);

// What is known of rungs: of the lines so far that were measured to the end, the sums of their losses
// over what these had come to there.
struct msc_race_ratios {
    double sums[MSC_RACE_MAX_RUNGS];
    size_t n[MSC_RACE_MAX_RUNGS];
};

// Notes a line; in the order of ids.
void msc_race_note(struct msc_race_ratios *ratios, const struct msc_goal *goal,
                   const struct msc_record_line *line);
// The trial as its agent is told it, once its round is noted: of one that was raced out the objective is
// an estimate of the whole (docs/agents.md).
struct msc_trial msc_race_told(const struct msc_race_ratios *ratios, const struct msc_goal *goal,
                               const struct msc_record_line *line);

#endif
