// Races: trials of a round go on only while they are among its best (successive halving: Jamieson &
// Talwalkar 2016, arXiv 1502.07943), and while they may yet be better than the best trial so far. A
// rung is a number of batches after which the trials of a round are compared by what their losses
// have come to, and some are let go.
//
//     struct msc_race race;
//     MSC_TRY(msc_race_read(&race, config, n_batches, "quantize[0]"));
//     size_t n = msc_race_going(&race, &known, 0, sums, 32, true);
//
// What a trial's loss and the best one's come to after the same batches differs by nearly the same
// factor as the losses do: batches are hard or easy for both. How nearly follows from how that
// factor changed between rungs in trials so far (paired comparisons, as those of Birattari et al.
// 2002, F-Race). Trials that break a bound by their exact costs cannot win, and go on until what
// they lose beyond a baseline is known.
#ifndef MSC_RECORDS_RACE_H
#define MSC_RECORDS_RACE_H

#include "records/record.h"

// Reads `true`, or {"rungs": [batches, ...], "keep": share, "margin": errors or false}, any of
// which may be absent, for samples in so many batches; 0: not known yet, and rungs by default are
// left out. MSC_E_INVALID, beginning with `where`.
enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where);
// The version of these rules, which a record's header states.
#define MSC_RACE_VERSION 1

// For a record: reads what msc_race_write made, owned by the caller (NULL: no memory). Without a
// margin none is used.
enum msc_status msc_race_read_header(struct msc_race *out, const struct cJSON *value,
                                     const char *where);
struct cJSON *msc_race_write(const struct msc_race *race);
// From so many batches on a share of a round goes on, however many of it may be better than the
// best so far.
size_t msc_race_halves_from(const struct msc_race *race);
// What a trial of a round of n takes on average, as a part of one that is measured in full, if as
// many go on as may: by a margin most end sooner, and those that cannot win later.
double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches);

#define MSC_RACE_BASELINES 4

// What lines so far say of rungs.
struct msc_race_known {
    // Of those that were measured to the end: the sums of their losses over what these had come to
    // there.
    double sums[MSC_RACE_MAX_RUNGS];
    size_t n[MSC_RACE_MAX_RUNGS];
    // The best trial that meets the bounds: what its loss had come to, and the loss.
    bool has_best;
    double best[MSC_RACE_MAX_RUNGS + 1];
    // The same of the first baselines.
    size_t n_baselines;
    double baselines[MSC_RACE_BASELINES][MSC_RACE_MAX_RUNGS + 1];
    // Of changes of a trial's factor from rung to rung: the sum of their squares as if between
    // single batches, and their number; of trials that break a bound, and of those that do not.
    double squares[2];
    size_t n_squares[2];
};

// Notes a line; in the order of ids.
void msc_race_note(struct msc_race_known *known, const struct msc_race *race,
                   const struct msc_goal *goal, const struct msc_record_line *line);
// The standard error of the logarithm of a factor as found at a rung.
double msc_race_error(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      bool can_win);
// How many of n trials that came to a rung, by ascending sums, go on: those that can win, or the
// others.
size_t msc_race_going(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      const double sums[], size_t n, bool can_win);
// The trial as its agent is told it, once its round is noted: of one that was raced out the
// objective is an estimate of the whole (docs/agents.md). `measured`: the line that it repeats, or
// itself.
struct msc_trial msc_race_told(const struct msc_race_known *known, const struct msc_race *race,
                               const struct msc_goal *goal, const struct msc_record_line *line,
                               const struct msc_record_line *measured);
// The same of a line of a record, or of one behind its last; what that repeats is in the record.
struct msc_trial msc_race_told_of(const struct msc_race_known *known,
                                  const struct msc_record *record,
                                  const struct msc_record_line *line);

#endif
