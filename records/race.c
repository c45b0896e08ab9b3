#include "records/race.h"

#include "base/json.h"
#include "base/maths.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_KEEP 0.5
#define DEFAULT_MARGIN 1.5
#define LEAST_BATCHES 4
// Prior before the first trials: the standard deviation of single-batch factors, with the weight
// of this many observed changes.
#define FIRST_SPREAD 0.3
#define FIRST_CHANGES 4
// If the standard error of a sum is larger, no trial ends before the last rung, because agents
// learn from the estimate.
#define ENOUGH 0.25
// The same limit for trials that cannot win: the loss that their choices add to the baseline is a
// small part of their total loss.
#define ENOUGH_BEYOND 0.06
#define MOST_MARGIN 100.0

static enum msc_status read_keep(struct msc_race *out, const cJSON *value, const char *where) {
    out->keep = DEFAULT_KEEP;
    if (!value) {
        return MSC_OK;
    }
    out->keep = cJSON_IsNumber(value) ? value->valuedouble : 0.0;
    return out->keep > 0.0 && out->keep < 1.0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: keep must be more than 0 and less than 1: the share of trials that "
                          "continue after a rung",
                          where);
}

static enum msc_status read_margin(struct msc_race *out, const cJSON *value, double absent,
                                   const char *where) {
    out->margin = cJSON_IsFalse(value) ? 0.0 : absent;
    if (!value || cJSON_IsFalse(value)) {
        return MSC_OK;
    }
    out->margin = cJSON_IsNumber(value) ? value->valuedouble : 0.0;
    return out->margin > 0.0 && out->margin <= MOST_MARGIN
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: margin must be a number of standard errors above 0 and at most %g, "
                          "or false",
                          where, MOST_MARGIN);
}

// The number of batches whose mean is as precise as the mean of LEAST_BATCHES batches of an
// infinite set, by the correction for finite populations (Cochran 1977, chapter 4). It is close to
// LEAST_BATCHES if there are many batches, and close to all of them if there are few.
static size_t telling_batches(size_t n_batches) {
    size_t sum = LEAST_BATCHES + n_batches;
    size_t n = (LEAST_BATCHES * n_batches + sum - 1) / sum; // rounded up
    return n < n_batches / 2 ? n : n_batches / 2;
}

// Each rung has twice as many batches as the previous one, up to half of all. With a margin the
// first rung is as small as the maximum number of rungs allows; without one it must be precise by
// itself.
static void set_default_rungs(struct msc_race *out, size_t n_batches) {
    size_t first = telling_batches(n_batches);
    for (size_t most = 1; out->margin > 0.0 && most <= MSC_RACE_MAX_RUNGS; most++) {
        first = (n_batches >> most) > 0 ? n_batches >> most : first;
    }
    for (size_t rung = first;
         rung > 0 && 2 * rung <= n_batches && out->n_rungs < MSC_RACE_MAX_RUNGS; rung *= 2) {
        out->rungs[out->n_rungs++] = (uint32_t)rung;
    }
}

static enum msc_status fail_rungs(size_t n_batches, const char *where) {
    char most[64] = "";
    if (n_batches > 0) {
        snprintf(most, sizeof most, ", fewer than all %zu batches", n_batches);
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: rungs must be at most %d batch counts in increasing order%s", where,
                    MSC_RACE_MAX_RUNGS, most);
}

static enum msc_status read_rungs(struct msc_race *out, const cJSON *list, size_t n_batches,
                                  const char *where) {
    double most = n_batches > 0 ? (double)n_batches : UINT32_MAX;
    const cJSON *item = NULL;
    double last = 0.0;
    cJSON_ArrayForEach(item, list) {
        double rung = cJSON_IsNumber(item) ? item->valuedouble : 0.0;
        if (out->n_rungs == MSC_RACE_MAX_RUNGS || rung != floor(rung) || !(rung > last) ||
            !(rung < most)) {
            return fail_rungs(n_batches, where);
        }
        out->rungs[out->n_rungs++] = (uint32_t)rung;
        last = rung;
    }
    return out->n_rungs > 0 ? MSC_OK : fail_rungs(n_batches, where);
}

static bool is_key(const char *key, bool is_header) {
    return strcmp(key, "rungs") == 0 || strcmp(key, "keep") == 0 || strcmp(key, "margin") == 0 ||
           (is_header && (strcmp(key, "batches") == 0 || strcmp(key, "version") == 0));
}

static enum msc_status check_members(const cJSON *value, bool is_header, const char *where) {
    const cJSON *member = NULL;
    if (!cJSON_IsObject(value) && !cJSON_IsTrue(value)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: expected true, or an object such as {\"rungs\": [1, 4], \"keep\": 0.5}", where);
    }
    cJSON_ArrayForEach(member, value) {
        if (!is_key(member->string, is_header)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: unknown key \"%s\", the known keys are rungs, keep and margin",
                            where, member->string);
        }
    }
    return MSC_OK;
}

enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where) {
    const cJSON *rungs = msc_json_get(value, "rungs");
    *out = (struct msc_race){.n_batches = n_batches};
    MSC_TRY(check_members(value, false, where));
    MSC_TRY(read_keep(out, msc_json_get(value, "keep"), where));
    MSC_TRY(read_margin(out, msc_json_get(value, "margin"), DEFAULT_MARGIN, where));
    if (n_batches == 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: a race needs several batches, but the samples are one batch; "
                        "lower dataset.batch",
                        where);
    }
    if (!rungs) { // none by default if the number of batches is unknown
        set_default_rungs(out, n_batches);
        return MSC_OK;
    }
    return read_rungs(out, rungs, n_batches, where);
}

static enum msc_status check_version(const cJSON *value, const char *where) {
    return cJSON_IsNumber(value) && value->valuedouble == MSC_RACE_VERSION
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: the version of the race is not %d", where,
                          MSC_RACE_VERSION);
}

enum msc_status msc_race_read_header(struct msc_race *out, const struct cJSON *value,
                                     const char *where) {
    const cJSON *batches = msc_json_get(value, "batches");
    double n = cJSON_IsNumber(batches) ? batches->valuedouble : 0.0;
    *out = (struct msc_race){.n_batches = n >= 2.0 && n <= UINT32_MAX ? (size_t)n : 0};
    MSC_TRY(check_members(value, true, where));
    MSC_TRY(check_version(msc_json_get(value, "version"), where));
    MSC_TRY(read_keep(out, msc_json_get(value, "keep"), where));
    MSC_TRY(read_margin(out, msc_json_get(value, "margin"), 0.0, where));
    if (out->margin > 0.0 && (out->n_batches == 0 || (double)out->n_batches != n)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"margin\" needs \"batches\"", where);
    }
    return read_rungs(out, msc_json_get(value, "rungs"), out->n_batches, where);
}

struct cJSON *msc_race_write(const struct msc_race *race) {
    cJSON *object = cJSON_CreateObject();
    cJSON *rungs = cJSON_CreateArray();
    bool is_written = object && rungs && cJSON_AddItemToObject(object, "rungs", rungs);
    if (!is_written) {
        cJSON_Delete(rungs);
    }
    for (size_t i = 0; is_written && i < race->n_rungs; i++) {
        is_written = cJSON_AddItemToArray(rungs, cJSON_CreateNumber(race->rungs[i]));
    }
    is_written = is_written && cJSON_AddNumberToObject(object, "keep", race->keep);
    if (is_written && race->margin > 0.0) {
        is_written = cJSON_AddNumberToObject(object, "margin", race->margin) &&
                     cJSON_AddNumberToObject(object, "batches", (double)race->n_batches);
    }
    is_written = is_written && cJSON_AddNumberToObject(object, "version", MSC_RACE_VERSION);
    if (!is_written) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}

// ---- Continuing ------------------------------------------------------------------------------

size_t msc_race_halves_from(const struct msc_race *race) {
    return race->margin > 0.0 ? telling_batches(race->n_batches) : 0;
}

// The number of n trials that continue after a rung; at least 1. If the rung's batches are too
// few to compare similar trials, only the margin ends trials.
static size_t count_kept(const struct msc_race *race, size_t rung, size_t n) {
    bool is_share = race->rungs[rung] >= msc_race_halves_from(race);
    return is_share ? (size_t)ceil(race->keep * (double)n) : n;
}

double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches) {
    double sum = 0.0;
    size_t n_left = n, before = 0;
    for (size_t i = 0; i <= race->n_rungs; i++) {
        size_t end = i < race->n_rungs ? race->rungs[i] : n_batches;
        sum += (double)n_left * (double)(end - before);
        before = end;
        n_left = i < race->n_rungs ? count_kept(race, i, n_left) : 0;
    }
    return sum / ((double)n * (double)n_batches);
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

// The largest loss at a rung that still lets a trial beat the best one.
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

// Lists a line's sums at rungs, and its final loss if measured to the end; returns how many there
// are.
static size_t list_sums(double out[], const struct msc_race *race, double loss, bool is_whole,
                        const struct msc_record_line *line) {
    memcpy(out, line->rungs, line->n_rungs * sizeof *out);
    bool has_loss = is_whole && line->n_rungs == race->n_rungs;
    out[line->n_rungs] = has_loss ? loss : 0.0;
    return line->n_rungs + has_loss;
}

// Between two rungs the logarithm of a factor changes by the effect of the batches in between.
// Scales that change to single batches; changes at successive rungs are independent. Trials that
// break a bound behave unlike the best trial, so their changes, relative to the nearest
// reference, are kept separately.
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

// The sums of the best trial or of a baseline, whichever is nearest at a rung; NULL if there are
// none.
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

// Batches are hard or easy for all trials alike, most of all for similar ones. A sum is therefore
// extrapolated as the nearest reference developed (the best trial or a baseline), or without one
// by the ratio estimate (Cochran 1977, chapter 6).
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
