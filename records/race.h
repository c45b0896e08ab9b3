// Races: a trial continues only while it is among the best of its round (successive halving:
// Jamieson & Talwalkar 2016, arXiv 1502.07943) and may still beat the best trial so far. A rung is
// a number of batches after which the trials of a round are compared by their losses so far; some
// of them end there.
//
//     struct msc_race race;
//     MSC_TRY(msc_race_read(&race, config, n_batches, "quantize[0]"));
//     size_t n = msc_race_going(&race, &known, 0, sums, 32, true);
//
// At a rung, the ratio of a trial's loss to the best trial's loss is close to the ratio of their
// final losses, because batches are hard or easy for both. The error is estimated from the changes
// of that ratio between rungs in earlier trials (paired comparisons, as in F-Race, Birattari et al.
// 2002). Trials whose exact costs break a bound cannot win; they continue until their loss relative
// to a baseline is known.
#ifndef MSC_RECORDS_RACE_H
#define MSC_RECORDS_RACE_H

#include "records/record.h"

// Reads `true`, or {"rungs": [batches, ...], "keep": share, "margin": errors or false} for samples
// in n_batches batches; each member may be missing. If `n_batches` is 0, the number is not known
// yet, and default rungs are not set. On MSC_E_INVALID the message begins with `where`.
enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where);
// The rules that `true` stands for, for samples in n_batches batches, 2 or more.
void msc_race_default(struct msc_race *out, size_t n_batches);
// The version of these rules. The header of a record names the version.
#define MSC_RACE_VERSION 1

// For a record's header: msc_race_write returns JSON owned by the caller (NULL: out of memory), and
// msc_race_read_header reads it. A header without a margin means no margin.
enum msc_status msc_race_read_header(struct msc_race *out, const struct cJSON *value,
                                     const char *where);
struct cJSON *msc_race_write(const struct msc_race *race);
// From this number of batches on, only a share of a round continues, even if more of its trials may
// still beat the best one.
size_t msc_race_halves_from(const struct msc_race *race);
// The greatest possible mean effort of a trial in a round of n, relative to a full measurement,
// however many of the trials can win. With a margin most trials end sooner.
double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches);

#define MSC_RACE_BASELINES 4

// Statistics of the lines so far.
struct msc_race_known {
    // Over trials measured to the end: the sum of the ratios of final loss to loss at the rung.
    double sums[MSC_RACE_MAX_RUNGS];
    size_t n[MSC_RACE_MAX_RUNGS];
    // The losses at the rungs, then the final loss, of the best trial that meets the bounds.
    bool has_best;
    double best[MSC_RACE_MAX_RUNGS + 1];
    // Like `best`, for the first baselines.
    size_t n_baselines;
    double baselines[MSC_RACE_BASELINES][MSC_RACE_MAX_RUNGS + 1];
    // The sum of squares and the number of changes of trials' log factors between rungs, scaled to
    // single batches. Index 0: trials that break a bound; 1: trials that do not.
    double squares[2];
    size_t n_squares[2];
};

// Adds a line to the statistics; call in the order of ids.
void msc_race_note(struct msc_race_known *known, const struct msc_race *race,
                   const struct msc_goal *goal, const struct msc_record_line *line);
// The standard error, for a trial observed at a rung, of the logarithm of (loss of the trial / loss
// of the reference).
double msc_race_error(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      bool can_win);
// How many of the n trials at a rung continue. `sums` [n] are their losses so far, ascending.
// Either all of these trials can win (can_win), or none can.
size_t msc_race_going(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      const double sums[], size_t n, bool can_win);
// The trial as its agent observes it after the round. If it was eliminated early, the objective is
// an estimate of the full loss (docs/agents.md). `measured` is the line that `line` repeats, or
// `line` itself.
struct msc_trial msc_race_told(const struct msc_race_known *known, const struct msc_race *race,
                               const struct msc_goal *goal, const struct msc_record_line *line,
                               const struct msc_record_line *measured);
// Like msc_race_told, for a line of a record or a new line to append. Finds the repeated line in
// the record.
struct msc_trial msc_race_told_of(const struct msc_race_known *known,
                                  const struct msc_record *record,
                                  const struct msc_record_line *line);

#endif
