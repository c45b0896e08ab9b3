#include "records/race.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_KEEP 0.5
#define LEAST_BATCHES 4

static enum msc_status read_keep(struct msc_race *out, const cJSON *value, const char *where) {
    out->keep = DEFAULT_KEEP;
    if (!value) {
        return MSC_OK;
    }
    out->keep = cJSON_IsNumber(value) ? value->valuedouble : 0.0;
    return out->keep > 0.0 && out->keep < 1.0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: keep is the share of trials that go on after a rung, more than 0 "
                          "and less than 1",
                          where);
}

// The first rung tells as much of the whole as LEAST_BATCHES would of a set without end: its variance is the
// same by the correction for finite populations (Cochran 1977, chapter 4). So it has nearly that many batches
// where there are many, and most of them where there are few. Each further rung has twice as many.
static void set_default_rungs(struct msc_race *out, size_t n_batches) {
    size_t sum = LEAST_BATCHES + n_batches;
    size_t first = (LEAST_BATCHES * n_batches + sum - 1) / sum; // rounded up
    first = first < n_batches / 2 ? first : n_batches / 2;
    for (size_t rung = first;
         rung > 0 && 2 * rung <= n_batches && out->n_rungs < MSC_RACE_MAX_RUNGS; rung *= 2) {
        out->rungs[out->n_rungs++] = (uint32_t)rung;
    }
}

static enum msc_status fail_rungs(size_t n_batches, const char *where) {
    char most[64] = "";
    if (n_batches > 0) {
        snprintf(most, sizeof most, ", less than the %zu that there are", n_batches);
    }
    return MSC_FAIL(MSC_E_INVALID, "%s: rungs are at most %d numbers of batches in rising order%s",
                    where, MSC_RACE_MAX_RUNGS, most);
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

static enum msc_status check_members(const cJSON *value, const char *where) {
    const cJSON *member = NULL;
    if (!cJSON_IsObject(value) && !cJSON_IsTrue(value)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: expected true, or an object such as {\"rungs\": [1, 4], \"keep\": 0.5}", where);
    }
    cJSON_ArrayForEach(member, value) {
        if (strcmp(member->string, "rungs") != 0 && strcmp(member->string, "keep") != 0) {
            return MSC_FAIL(MSC_E_INVALID, "%s: there is no key \"%s\"; it has rungs and keep",
                            where, member->string);
        }
    }
    return MSC_OK;
}

enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where) {
    const cJSON *rungs = cJSON_GetObjectItemCaseSensitive(value, "rungs");
    *out = (struct msc_race){0};
    MSC_TRY(check_members(value, where));
    MSC_TRY(read_keep(out, cJSON_GetObjectItemCaseSensitive(value, "keep"), where));
    if (n_batches == 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: the samples are one batch, and a race is between batches; set "
                        "dataset.batch lower",
                        where);
    }
    if (!rungs) { // of so many batches as are not known there are none
        set_default_rungs(out, n_batches);
        return MSC_OK;
    }
    return read_rungs(out, rungs, n_batches, where);
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
    if (!is_written || !cJSON_AddNumberToObject(object, "keep", race->keep)) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}

size_t msc_race_kept(const struct msc_race *race, size_t n) {
    return (size_t)ceil(race->keep * (double)n);
}

double msc_race_effort(const struct msc_race *race, size_t n, size_t n_batches) {
    double sum = 0.0;
    size_t n_left = n, before = 0;
    for (size_t i = 0; i <= race->n_rungs; i++) {
        size_t rung = i < race->n_rungs ? race->rungs[i] : n_batches;
        sum += (double)n_left * (double)(rung - before);
        before = rung;
        n_left = msc_race_kept(race, n_left);
    }
    return sum / ((double)n * (double)n_batches);
}

void msc_race_note(struct msc_race_ratios *ratios, const struct msc_goal *goal,
                   const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    double loss = outcome->metrics[goal->objectives[0].metric];
    bool is_whole = msc_trial_state_is_result(outcome->state);
    for (size_t i = 0; is_whole && line->repeat_of < 0 && i < line->n_rungs; i++) {
        if (line->rungs[i] > 0.0 && isfinite(loss / line->rungs[i])) {
            ratios->sums[i] += loss / line->rungs[i];
            ratios->n[i]++;
        }
    }
}

// The ratio estimate (Cochran 1977, chapter 6): samples differ, and they do so for all trials alike.
struct msc_trial msc_race_told(const struct msc_race_ratios *ratios, const struct msc_goal *goal,
                               const struct msc_record_line *line) {
    struct msc_trial told = line->trial;
    size_t n = line->n_rungs;
    if (n > 0 && msc_goal_is_estimate(goal, &told) && ratios->n[n - 1] > 0) {
        told.outcome.objectives[0] =
            line->rungs[n - 1] * (ratios->sums[n - 1] / (double)ratios->n[n - 1]);
    }
    return told;
}
