#include "records/race.h"

#include "base/maths.h"

#include <math.h>
#include <string.h>

// Prior of the statistics. FIRST_SPREAD is the assumed standard deviation of the log factor of a
// single batch. It has the weight of FIRST_CHANGES observed changes.
#define FIRST_SPREAD 0.3
#define FIRST_CHANGES 4
// If the standard error at a rung is larger than this, no trial ends there, unless it is the last
// rung. Agents observe the estimated loss, so it must be precise.
#define ENOUGH 0.25
// Like ENOUGH, but for trials that cannot win. The limit is lower, because the loss that the
// choices of these trials add to the baseline is a small part of their total loss.
#define ENOUGH_BEYOND 0.06

// ---- Continuing ------------------------------------------------------------------------------

// How many of n trials continue after a rung, by the share `keep`; at least 1. At rungs with too
// few batches to compare similar trials, the share ends no trial, but the margin may.
static size_t count_kept(const struct msc_race *race, size_t rung, size_t n) {
    bool is_share = race->rungs[rung] >= msc_race_halves_from(race);
    return is_share ? (size_t)ceil(race->keep * (double)n) : n;
}

// The greatest number of n trials that may continue after a rung: trials that can win, or trials
// that cannot. With a margin, the latter continue until their loss is known well enough.
static size_t count_most(const struct msc_race *race, size_t rung, size_t n, bool can_win) {
    bool is_last = rung + 1 == race->n_rungs;
    return can_win || race->margin == 0.0 ? count_kept(race, rung, n) : is_last ? 0 : n;
}

// The greatest number of batches that n trials are measured on together.
static double most_batches(const struct msc_race *race, size_t n, size_t n_batches, bool can_win) {
    double sum = 0.0;
    size_t before = 0;
    for (size_t i = 0; i <= race->n_rungs; i++) {
        size_t end = i < race->n_rungs ? race->rungs[i] : n_batches;
        sum += (double)n * (double)(end - before);
        before = end;
        n = i < race->n_rungs ? count_most(race, i, n, can_win) : 0;
    }
    return sum;
}

double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches) {
    double most = 0.0;
    for (size_t n_winners = 0; n_winners <= n; n_winners++) {
        most = fmax(most, most_batches(race, n_winners, n_batches, true) +
                              most_batches(race, n - n_winners, n_batches, false));
    }
    return most / ((double)n * (double)n_batches);
}

// The variance of the mean at a rung, relative to the variance of single batches.
static double variance_share(const struct msc_race *race, size_t rung) {
    return rung < race->n_rungs ? 1.0 / race->rungs[rung] - 1.0 / (double)race->n_batches : 0.0;
}

double msc_race_error(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      bool can_win) {
    double squares = known->squares[can_win] + FIRST_CHANGES * FIRST_SPREAD * FIRST_SPREAD;
    double spread = sqrt(squares / (double)(known->n_squares[can_win] + FIRST_CHANGES));
    return spread * sqrt(variance_share(race, rung));
}

// The largest loss at a rung with which a trial may still beat the best trial.
static double most_sum(const struct msc_race *race, const struct msc_race_known *known,
                       size_t rung) {
    double best = known->has_best ? known->best[rung] : 0.0;
    double behind = race->margin * msc_race_error(race, known, rung, true);
    return best > 0.0 ? best * msc_maths_exp(behind) : INFINITY;
}

size_t msc_race_going(const struct msc_race *race, const struct msc_race_known *known, size_t rung,
                      const double sums[], size_t n, bool can_win) {
    size_t n_most = n > 0 ? count_kept(race, rung, n) : 0;
    size_t n_going = 0;
    if (race->margin == 0.0) {
        return n_most;
    }
    bool is_last = rung + 1 == race->n_rungs;
    double enough = can_win ? ENOUGH : ENOUGH_BEYOND;
    if (!is_last && msc_race_error(race, known, rung, can_win) > enough) {
        return n;
    }
    double most = can_win ? most_sum(race, known, rung) : -INFINITY;
    while (n_going < n_most && !(sums[n_going] > most)) {
        n_going++;
    }
    return n_going;
}

// ---- Statistics -------------------------------------------------------------------------------

// Lists a line's losses at the rungs, then its final loss if it was measured to the end. Returns
// their number.
static size_t list_sums(double out[], const struct msc_race *race, double loss, bool is_whole,
                        const struct msc_record_line *line) {
    memcpy(out, line->rungs, line->n_rungs * sizeof *out);
    bool has_loss = is_whole && line->n_rungs == race->n_rungs;
    out[line->n_rungs] = has_loss ? loss : 0.0;
    return line->n_rungs + has_loss;
}

// Adds the squared changes, from rung to rung, of a trial's log factor: the logarithm of its loss
// relative to the reference. Changes are scaled to single batches. Each change is the effect of the
// batches between two rungs, so successive changes are independent. Trials that break a bound
// behave unlike the best trial, so their changes are counted separately.
static void note_changes(struct msc_race_known *known, const struct msc_race *race,
                         const double sums[], size_t n, const double reference[], bool can_win) {
    for (size_t i = 0; i + 1 < n; i++) {
        double before = msc_maths_log(sums[i] / reference[i]);
        double change = msc_maths_log(sums[i + 1] / reference[i + 1]) - before;
        double square = change * change / (variance_share(race, i) - variance_share(race, i + 1));
        if (isfinite(square)) {
            known->squares[can_win] += square;
            known->n_squares[can_win]++;
        }
    }
}

// The losses at the rungs of a reference: the best trial or a baseline, whichever has the loss
// nearest to `sum` at this rung. NULL if there is no best trial and no baseline.
static const double *nearest_reference(const struct msc_race_known *known, size_t rung,
                                       double sum) {
    const double *nearest = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < known->n_baselines + known->has_best; i++) {
        const double *reference = i < known->n_baselines ? known->baselines[i] : known->best;
        double distance = fabs(msc_maths_log(sum / reference[rung]));
        if (distance < least) {
            least = distance;
            nearest = reference;
        }
    }
    return nearest;
}

static void note_baseline(struct msc_race_known *known, const struct msc_race *race,
                          const struct msc_record_line *line, const double sums[], size_t n) {
    if (race->margin > 0.0 && line->baseline >= 0 && n == race->n_rungs + 1 &&
        known->n_baselines < MSC_RACE_BASELINES) {
        memcpy(known->baselines[known->n_baselines++], sums, n * sizeof *sums);
    }
}

static void note_best(struct msc_race_known *known, const struct msc_race *race,
                      const struct msc_outcome *outcome, const double sums[], size_t n) {
    if (race->margin > 0.0 && outcome->state == MSC_TRIAL_COMPLETE && n == race->n_rungs + 1 &&
        (!known->has_best || sums[race->n_rungs] < known->best[race->n_rungs])) {
        memcpy(known->best, sums, n * sizeof *sums);
        known->has_best = true;
    }
}

void msc_race_note(struct msc_race_known *known, const struct msc_race *race,
                   const struct msc_goal *goal, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    double loss = outcome->metrics[goal->objectives[0].metric];
    bool is_whole = msc_trial_state_is_result(outcome->state);
    double sums[MSC_RACE_MAX_RUNGS + 1];
    if (line->repeat_of >= 0 || line->n_rungs == 0) {
        return;
    }
    for (size_t i = 0; is_whole && i < line->n_rungs; i++) {
        if (line->rungs[i] > 0.0 && isfinite(loss / line->rungs[i])) {
            known->sums[i] += loss / line->rungs[i];
            known->n[i]++;
        }
    }
    size_t n = list_sums(sums, race, loss, is_whole, line);
    bool can_win = outcome->violation <= 0.0;
    const double *reference = !can_win          ? nearest_reference(known, n - 1, sums[n - 1])
                              : known->has_best ? known->best
                                                : NULL;
    if (reference) {
        note_changes(known, race, sums, n, reference, can_win);
    }
    note_best(known, race, outcome, sums, n);
    note_baseline(known, race, line, sums, n);
}

// If a batch is hard for one trial, it is hard for most trials, and the more so for similar trials.
// A loss at a rung is therefore multiplied by the growth of the nearest reference (the best trial
// or a baseline) from this rung to the end. Without a reference, the ratio estimate is used
// (Cochran 1977, chapter 6).
static double whole_over_sum(const struct msc_race_known *known, const struct msc_race *race,
                             size_t rung, double sum) {
    const double *reference = nearest_reference(known, rung, sum);
    if (reference) {
        return reference[race->n_rungs] / reference[rung];
    }
    return known->n[rung] > 0 ? known->sums[rung] / (double)known->n[rung] : 1.0;
}

struct msc_trial msc_race_told(const struct msc_race_known *known, const struct msc_race *race,
                               const struct msc_goal *goal, const struct msc_record_line *line,
                               const struct msc_record_line *measured) {
    struct msc_trial told = line->trial;
    size_t n = measured->n_rungs;
    if (n > 0 && msc_goal_is_estimate(goal, &told)) {
        double sum = measured->rungs[n - 1];
        told.outcome.objectives[0] = sum * whole_over_sum(known, race, n - 1, sum);
    }
    return told;
}

struct msc_trial msc_race_told_of(const struct msc_race_known *known,
                                  const struct msc_record *record,
                                  const struct msc_record_line *line) {
    const struct msc_race *race = msc_record_race(record);
    struct msc_record_line measured = *line;
    if (line->repeat_of >= 0) {
        measured = msc_record_trial(record, (size_t)line->repeat_of);
    }
    return msc_race_told(known, race, msc_record_goal(record), line, &measured);
}
